"""What `simulate` takes and returns: constants of neurons, the state, what is recorded and the result."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, UInt8

from snnjax._arguments import explained
from snnjax._check import (
    check_integer,
    check_integers,
    check_shape,
    check_switches,
    concrete,
    fail,
    short_repr,
)
from snnjax._plasticity import ShortTermState, STDPTraces
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import State, Unchecked, as_int32
from snnjax.surrogates import Surrogate, superspike

_SUPERSPIKE = superspike()

# The arguments of `cuba_lif`, `coba_lif` and `PoissonInput.of` from which constants are made.
_GIVEN_AS = {
    "neurons.leak": "neurons.tau",
    "neurons.gain": "neurons.tau",
    "neurons.synaptic_decay": "neurons.synaptic_taus",
    "neurons.effect": "neurons.reversals",
    "poisson.limits": "poisson.rate",
    "poisson.weights": "poisson.weight",
}


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

        Then the steps of a membrane are small compared with its distance to rest, however short a time step is, and at
        rest it does not move.
        """
        own = jax.tree.map(lambda leaf: leaf if leaf.dtype == jnp.int32 else leaf.astype(dtype), self)
        effect = own.effect - own.rest[None] if self.has_conductances else own.effect
        return replace(own, threshold=own.threshold - own.rest, reset=own.reset - own.rest, effect=effect)


class SimulationState(NamedTuple):
    """The state of `simulate` between two steps; made by `simulation_state`."""

    v: Float[Array, " neurons"] | None  # mV
    received: Float[Array, "receptors neurons"] | None  # currents in mV, or conductances in units of the leak
    remaining: Int[Array, " neurons"] | None  # int32, steps until the neuron is free again
    # A bit for each neuron that spiked in the last steps, whose spikes are under way; the earliest step first.
    sent: UInt8[Array, "max_delay bytes"]
    step: Int[Array, ""]  # int32, the number of steps so far: the random numbers of a step depend on it
    # Of spike-timing-dependent plasticity; `before` is ``[max_delay, neurons]``, as the spikes of these steps found it.
    traces: STDPTraces | None = None
    short_term: ShortTermState | None = None
    released: Float[Array, "max_delay neurons"] | None = (
        None  # by the spikes of these steps, with `short_term`
    )
    # mV, what `v` has rounded off: close to rest, potentials are known in far smaller steps than `v` can hold.
    rounded_off: Float[Array, " neurons"] | None = None
    cells: State = None  # of `Cells`, one for each part, in place of the first three


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Record:
    """What `simulate` records besides spikes, in columns that are neurons or means of some.

    Example:
        >>> from snnjax.circuits import Record
        >>> Record.of([5, 7], means=[slice(0, 80), slice(80, 100)], every=10).num_columns
        4
    """

    ids: Int[Array, " recorded"]  # int32, of neurons
    columns: Int[Array, " recorded"]  # int32, to which each is added
    shares: Float[Array, " recorded"]  # multiplied with this
    synapses: Int[Array, " watched"] | None  # int32
    num_columns: int = field(metadata={"static": True})
    every: int = field(metadata={"static": True})
    received: bool = field(metadata={"static": True})

    @classmethod
    @explained
    def of(
        cls,
        neurons: Unchecked = (),
        *,
        means: Sequence[slice | Sequence[int]] = (),
        every: int = 1,
        received: bool = False,
        synapses: Unchecked = None,
    ) -> "Record":
        """Choose what is recorded.

        Args:
            neurons: ids, with a column for each.
            means: slices, such as those of `circuits.Populations.slices`, or lists of ids, with a column for the mean
                of each.
            every: the number of steps from one sample to the next; a sample is taken after the last of them.
            received: whether currents or conductances are recorded besides the potentials; not with `Cells`.
            synapses: numbers of plastic synapses whose weights are recorded; `DelayedSynapses.sources` and `targets`
                say which ones these are.

        Raises:
            ValueError: if `every` is not an integer of at least 1, ids are not integers, or a mean is over no neurons.
        """
        op = "Record.of"
        every = check_integer(op, "every", every, 1)
        check_switches(op, received=received)
        own = _ids(op, "neurons", neurons)
        groups = [_members(op, f"means[{k}]", each) for k, each in enumerate(means)]
        sizes = np.array([len(each) for each in groups], int)
        columns = np.concatenate([np.arange(len(own)), len(own) + np.repeat(np.arange(len(groups)), sizes)])
        shares = np.concatenate([np.ones(len(own)), np.repeat(1 / sizes, sizes)])
        return cls(
            jnp.concatenate([own, *map(jnp.asarray, groups)]).astype(jnp.int32),
            jnp.asarray(columns, jnp.int32),
            constants(shares),
            None if synapses is None else _ids(op, "synapses", synapses),
            len(own) + len(groups),
            every,
            received,
        )


def _ids(op: str, argument: str, ids: Unchecked) -> Array:
    """Numbers, which may be traced, as int32."""
    if getattr(ids, "dtype", None) == np.bool_:
        fail(
            f"{op}: `{argument}` must be ids, got {short_repr(ids)}. Pass those of a mask with jnp.flatnonzero."
        )
    if np.size(ids) == 0:
        return jnp.zeros(0, jnp.int32)
    ids = jnp.asarray(ids)
    check_integers(op, argument, ids)
    check_shape(op, argument, ids, (None,), "ids", "Pass a list of them")
    return as_int32(ids)


def _members(op: str, argument: str, group: Unchecked) -> np.ndarray:
    """The ids of a slice or a list, of which there is at least one."""
    if isinstance(group, slice) and group.stop is not None:
        ids: np.ndarray | None = np.arange(group.start or 0, group.stop, group.step or 1)
    else:
        ids = None if isinstance(group, slice) else concrete(_ids(op, argument, group))
    if ids is None or ids.size == 0:
        fail(
            f"{op}: `{argument}` must be known neurons, got {short_repr(group)}. Pass a slice or a list of ids."
        )
    return ids


class Recording(NamedTuple):
    """What was recorded, with a row for each sample."""

    v: Float[Array, "samples columns"]  # mV
    received: (
        Float[Array, "samples receptors columns"] | None
    )  # currents in mV, or conductances, as in the state
    weights: Float[Array, "samples synapses"] | None


class SimulationOutput(NamedTuple):
    """What `simulate` returns besides the state."""

    # Of each step, ``[steps]``: `num_spikes` is always the true number, lists hold at most `capacity` ids.
    spikes: SparseSpikes
    counts: Int[Array, " neurons"]  # int32, the spikes of each neuron
    # After the last step, where they are plastic: `DelayedSynapses.with_weights` takes them.
    weights: Float[Array, " synapses"] | None = None
    recorded: Recording | None = None


def constants(values: np.ndarray) -> Array:
    """Numbers as an array, float32, or float64 where 64 bits are enabled: `simulate` converts them to its own dtype."""
    return jnp.asarray(values, jax.dtypes.canonicalize_dtype(np.float64))


def constant(op: str, name: str, value: Array, num_neurons: int) -> Array:
    """A constant of neurons ``[..., neurons or 1]``, checked."""
    if value.shape[-1] not in (1, num_neurons):
        argument = _GIVEN_AS.get(name, name)
        fail(
            f"{op}: `{argument}` must have one number, or one for each of {num_neurons} neurons, "
            f"got {value.shape[-1]}. Make them for as many neurons."
        )
    return value


def known(op: str, name: str, value: Unchecked, *, in_time: bool = False) -> np.ndarray:
    """Finite numbers ``[neurons]`` or ``[1]``, in float64; or of each step."""
    numbers = concrete(value)
    numeric = numbers is not None and (
        np.issubdtype(numbers.dtype, np.floating) or np.issubdtype(numbers.dtype, np.integer)
    )
    if numbers is None or not numeric or numbers.ndim > 1 + in_time or not np.all(np.isfinite(numbers)):
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
