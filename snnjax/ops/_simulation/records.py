"""What `simulate` takes and yields: constants of neurons, random input, the state and the result."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, UInt8

from snnjax._arguments import explained
from snnjax._check import check_integer, concrete, fail, short_repr
from snnjax._plasticity import ShortTermState, STDPTraces
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Unchecked
from snnjax.surrogates import Surrogate, superspike

# The largest mean number of events in a step: each has a row in the table of the counts.
_MOST_EVENTS = 500.0
_MS_PER_S = 1000.0
_WORDS = 2.0**32  # random words that there are
_SUPERSPIKE = superspike()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SynapticLIF:
    """Leaky neurons with exponential synapses and a refractory period, for `snnjax.simulate` and `snnjax.layer`.

    Made by `snnjax.neurons.cuba_lif` and `snnjax.neurons.coba_lif`. Constants have one number for each neuron, or one
    for all: ``[neurons]`` or ``[1]``.
    """

    leak: Float[Array, " neurons_or_1"]  # the decay of the membrane in a step; with conductances -dt/tau
    gain: Float[Array, " neurons_or_1"]  # of the resting potential and of given currents: 1 - decay; or 1
    rest: Float[Array, " neurons_or_1"]  # mV
    threshold: Float[Array, " neurons_or_1"]  # mV
    reset: Float[Array, " neurons_or_1"]  # mV
    refractory: Int[Array, " neurons_or_1"]  # int32, steps
    synaptic_decay: Float[Array, "receptors neurons_or_1"]  # in a step
    # What a current of 1 mV adds to the membrane in a step; or the reversal potential in mV.
    effect: Float[Array, "receptors neurons_or_1"]
    has_conductances: bool = field(metadata={"static": True})
    dt: float = field(metadata={"static": True})  # ms, the length of a step
    # In a layer: a function of the distance to the threshold in mV.
    surrogate: Surrogate = field(default=_SUPERSPIKE, metadata={"static": True})

    @property
    def num_receptors(self) -> int:
        """The number of kinds of synapses, which is that of time constants or reversal potentials."""
        return self.effect.shape[0]

    def relative(self, dtype: DTypeLike) -> "SynapticLIF":
        """The same, in a dtype, with potentials relative to rest.

        A membrane is so in steps that are small beside its distance to rest, however short a step of time is, and at
        rest it does not move.
        """
        own = jax.tree.map(lambda leaf: leaf if leaf.dtype == jnp.int32 else leaf.astype(dtype), self)
        effect = own.effect - own.rest[None] if self.has_conductances else own.effect
        return replace(own, threshold=own.threshold - own.rest, reset=own.reset - own.rest, effect=effect)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PoissonInput:
    """Independent Poisson processes, one for each neuron, whose events all have the same weight.

    The number of events in a step is drawn with a random word of 32 bits, so its probabilities are multiples of
    ``2**-32``, to the nearest one: 1e-9 events a step (1e-5 Hz with steps of 0.1 ms) are up to 12 % off, 1e-7 up to
    0.12 %. A rate of 0 never has an event.

    Example:
        >>> from snnjax import PoissonInput
        >>> background = PoissonInput.of(rate=8000.0, weight=0.15, dt=0.1)
        >>> background.limits.shape  # how many events a step may have
        (11, 1)
    """

    # A random word above so many limits stands for so many events; int32, ascending along the first axis.
    limits: Int[Array, "levels neurons_or_1"]
    weights: Float[Array, " neurons_or_1"]
    receptor: int = field(metadata={"static": True})
    dt: float = field(metadata={"static": True})  # ms, the length of a step, that of the neurons

    @classmethod
    @explained
    def of(cls, *, rate: Unchecked, weight: Unchecked, dt: float, receptor: int = 0) -> "PoissonInput":
        """Make the input of known rates.

        Args:
            rate: events per second (Hz), one number or ``[neurons]``: the sum over all processes of a neuron.
            weight: what an event adds, as the weight of a synapse; one number or ``[neurons]``.
            dt: length of a step in ms.
            receptor: which receptor receives it.

        Raises:
            ValueError: if a rate is negative, or so low above 0 that random words of 32 bits would never yield an
                event, there are more than 500 events a step, or a number is none.
        """
        op = "PoissonInput.of"
        receptor = check_integer(op, "receptor", receptor, 0)
        step = step_length(op, dt)
        mean = known(op, "rate", rate) * step / _MS_PER_S
        if np.any(mean < 0) or np.any(mean > _MOST_EVENTS):
            is_high = bool(np.any(mean > _MOST_EVENTS))
            wrong = float(np.max(mean) if is_high else np.min(mean))
            hint = "Use a smaller dt" if is_high else "For inhibition, pass a negative weight"
            fail(f"{op}: `rate` must be between 0 and {_MOST_EVENTS:g} events a step, got {wrong:g}. {hint}.")
        never = (mean > 0) & (np.rint(np.exp(-mean) * _WORDS) == _WORDS)
        if np.any(never):
            expected = f"be 0 or at least {0.5 / _WORDS:.2g} events a step"
            wrong = float(np.max(mean[never]))
            fail(f"{op}: `rate` must {expected}, got {wrong:g}. Use a larger dt, or 0 for no events.")
        weights = constants(known(op, "weight", weight))
        return cls(_limits(mean), weights, int(receptor), step)


def _limits(mean: np.ndarray) -> Array:
    """The limits between the counts of Poisson distributions, as far as random words of 32 bits tell them apart."""
    term = np.exp(-mean)
    total, rows = term, []
    while not rows or np.any(total * _WORDS < _WORDS - 0.5):
        # Rounded, so many of the words stand for no more events; the limit is the last one of them.
        rows.append(np.maximum(np.rint(total * _WORDS), 1) - 1 - _WORDS / 2)
        term = term * mean / len(rows)
        if np.all(total + term == total):
            break
        total = total + term
    return jnp.asarray(np.array(rows), jnp.int32)


class SimulationState(NamedTuple):
    """The state of `simulate` between two steps; made by `simulation_state`."""

    v: Float[Array, " neurons"]  # mV
    received: Float[Array, "receptors neurons"]  # currents in mV, or conductances in units of the leak
    remaining: Int[Array, " neurons"]  # int32, steps until the neuron is free again
    # A bit for each neuron that spiked in the last steps, whose spikes are under way; the earliest step first.
    sent: UInt8[Array, "max_delay bytes"]
    step: Int[Array, ""]  # int32, how many steps there were: the random numbers of a step depend on it
    # Of spike-timing-dependent plasticity; `before` is ``[max_delay, neurons]``, as the spikes of these steps found it.
    traces: STDPTraces | None = None
    short_term: ShortTermState | None = None
    released: Float[Array, "max_delay neurons"] | None = (
        None  # by the spikes of these steps, with `short_term`
    )
    # mV, what `v` has rounded off: close to rest, potentials are known in far smaller steps than `v` can hold.
    rounded_off: Float[Array, " neurons"] | None = None


class SimulationOutput(NamedTuple):
    """What `simulate` yields besides the state."""

    # Of each step, ``[steps]``: `num_spikes` is always the true number, lists hold at most `capacity` ids.
    spikes: SparseSpikes
    counts: Int[Array, " neurons"]  # int32, the spikes of each neuron
    # After the last step, where they are plastic: `DelayedSynapses.with_weights` takes them.
    weights: Float[Array, " synapses"] | None = None
    v: Float[Array, "steps recorded"] | None = None  # mV, of the neurons that are recorded, after each step


def constants(values: np.ndarray) -> Array:
    """Numbers as an array, float32, or float64 where 64 bits are enabled: `simulate` takes its own dtype of them."""
    return jnp.asarray(values, jax.dtypes.canonicalize_dtype(np.float64))


def known(op: str, name: str, value: Unchecked) -> np.ndarray:
    """Finite numbers ``[neurons]`` or ``[1]``, in float64."""
    numbers = concrete(value)
    numeric = numbers is not None and (
        np.issubdtype(numbers.dtype, np.floating) or np.issubdtype(numbers.dtype, np.integer)
    )
    if numbers is None or not numeric or numbers.ndim > 1 or not np.all(np.isfinite(numbers)):
        expected = "be a finite number, or one for each neuron, that is known"
        fail(f"{op}: `{name}` must {expected}, got {short_repr(value)}. Pass a float outside of jit.")
    return np.atleast_1d(np.asarray(numbers, np.float64))


def positive(
    op: str, name: str, value: Unchecked, *, or_zero: bool = False, hint: str = "Pass a length in ms"
) -> np.ndarray:
    """The same for numbers above 0."""
    numbers = known(op, name, value)
    if np.any(numbers < 0) or (not or_zero and np.any(numbers == 0)):
        least = "at least 0" if or_zero else "above 0"
        wrong = float(np.min(numbers))
        fail(f"{op}: `{name}` must be {least}, got {wrong:g}. {hint}.")
    return numbers


def step_length(op: str, dt: Unchecked) -> float:
    """The length of a step in ms, one for all neurons."""
    return scalar(op, "dt", dt, "All neurons have steps of one length", "Pass a length in ms")


def scalar(op: str, name: str, value: Unchecked, why: str, hint: str = "Pass a distance in mV") -> float:
    """One number above 0 for all neurons."""
    if np.ndim(value) != 0:
        fail(f"{op}: `{name}` must be one number, got {short_repr(value)}. {why}.")
    return float(positive(op, name, value, hint=hint)[0])
