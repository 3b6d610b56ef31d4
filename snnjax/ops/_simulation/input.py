"""What simulations receive besides the spikes of their own neurons: random events and given spikes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from snnjax._arguments import explained
from snnjax._check import (
    check_integer,
    check_integers,
    check_real_array,
    check_within,
    concrete,
    fail,
    plural,
    short_repr,
)
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Unchecked
from snnjax.ops._simulation.records import constants, known, step_length

# The largest mean number of events in a step: each has a row in the table of the counts.
_MOST_EVENTS = 500.0
_MS_PER_S = 1000.0
_WORDS = 2.0**32  # random words that there are
_MOST_STEP = 2**31 - 1


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
        (1, 11, 1)
    """

    # A random word above so many limits stands for so many events; int32, ascending along the second axis.
    limits: Int[Array, "steps_or_1 levels neurons_or_1"]
    weights: Float[Array, " neurons_or_1"]
    receptor: int = field(metadata={"static": True})
    dt: float = field(metadata={"static": True})  # ms, the length of a step, that of the neurons

    @classmethod
    @explained
    def of(
        cls,
        *,
        rate: Unchecked,
        weight: Unchecked,
        dt: float,
        receptor: int = 0,
        peak: float | None = None,
    ) -> "PoissonInput":
        """Make the input from rates, which may change over time.

        Where the weight of a source is 0 for whole populations, it costs nothing there.

        Args:
            rate: events per second (Hz), one number or ``[neurons]``: the sum over all processes of a neuron. Or one
                rate for each step of a call, ``[steps, neurons]`` or ``[steps, 1]``. The table of counts takes about 10
                numbers for each rate.
            weight: what an event adds, like the weight of a synapse; one number or ``[neurons]``.
            dt: length of a step in ms.
            receptor: which receptor receives it.
            peak: the highest rate in Hz, for traced rates: their probabilities have the precision of float32, and if
                one is out of range, the potentials are NaN.

        Raises:
            ValueError: if a rate is negative, or so low above 0 that random words of 32 bits would never yield an
                event, there are more than 500 events a step, a rate is traced without a peak, or a number is not
                finite.
        """
        op = "PoissonInput.of"
        receptor = check_integer(op, "receptor", receptor, 0)
        step = step_length(op, dt)
        weights = constants(known(op, "weight", weight))
        if concrete(rate) is None:
            if peak is None:
                fail(f"{op}: `peak` must be given with a traced rate, got None. Pass the highest rate in Hz.")
            check_real_array(op, "rate", rate)
            mean = jnp.atleast_1d(rate).astype(weights.dtype) * (step / _MS_PER_S)
            most = _means(op, "peak", known(op, "peak", peak) * step / _MS_PER_S)
            limits = _traced_limits(mean, _limits(most).shape[1])
            fits = jnp.all((mean >= 0) & (mean <= most[0]))
            return cls(limits, jnp.where(fits, weights, jnp.nan), receptor, step)
        mean = _means(op, "rate", known(op, "rate", rate, in_time=True) * step / _MS_PER_S)
        return cls(_limits(mean), weights, receptor, step)


def _means(op: str, name: str, mean: np.ndarray) -> np.ndarray:
    """Mean numbers of events in a step, checked."""
    if np.any(mean < 0) or np.any(mean > _MOST_EVENTS):
        is_high = bool(np.any(mean > _MOST_EVENTS))
        wrong = float(np.max(mean) if is_high else np.min(mean))
        hint = "Use a smaller dt" if is_high else "For inhibition, pass a negative weight"
        fail(f"{op}: `{name}` must be between 0 and {_MOST_EVENTS:g} events a step, got {wrong:g}. {hint}.")
    never = (mean > 0) & (np.rint(np.exp(-mean) * _WORDS) == _WORDS)
    if np.any(never):
        expected = f"be 0 or at least {0.5 / _WORDS:.2g} events a step"
        wrong = float(np.max(mean[never]))
        fail(f"{op}: `{name}` must {expected}, got {wrong:g}. Use a larger dt, or 0 for no events.")
    return mean


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
    found = jnp.asarray(np.stack(rows, axis=-2), jnp.int32)
    return found if found.ndim == 3 else found[None]


def _traced_limits(mean: Array, levels: int) -> Array:
    """The same of traced means: of so many or more events the words are counted from the end, where few are."""
    count = jnp.arange(1, levels + 1, dtype=mean.dtype)[None, :, None]
    mean = jnp.atleast_2d(mean)[:, None, :]
    logarithm = count * jnp.log(jnp.maximum(mean, jnp.finfo(mean.dtype).tiny)) - mean
    terms = jnp.where(mean > 0, jnp.exp(logarithm - jax.scipy.special.gammaln(count + 1)), 0)
    beyond = jnp.cumsum(terms[:, ::-1], axis=1)[:, ::-1] * _WORDS
    words = jnp.minimum(jnp.round(beyond), _WORDS - 2**8).astype(
        jnp.uint32
    )  # of float32 the largest one below
    return jax.lax.bitcast_convert_type(jnp.uint32(_MOST_STEP) - words, jnp.int32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SpikeTrains:
    """Spikes by time: those given to neurons, or those that a simulation has listed.

    Example:
        >>> from snnjax.circuits import SpikeTrains
        >>> trains = SpikeTrains.of([[0.5, 2.0], [], [1.0]], dt=0.1)  # ms, a list for each neuron
        >>> trains.times, trains.ids
        (array([0.5, 1. , 2. ]), Array([0, 2, 0], dtype=int32))
        >>> trains.of_each(range(2))
        [array([0.5, 2. ]), array([], dtype=float64)]
    """

    steps: Int[
        Array, " spikes"
    ]  # int32, ascending, counted as those of a state; a spike is at the end of its step
    ids: Int[Array, " spikes"]  # int32
    dt: float = field(metadata={"static": True})  # ms, the length of a step

    @classmethod
    @explained
    def of(cls, times: Unchecked, ids: Unchecked = None, *, dt: float) -> "SpikeTrains":
        """Sort spikes with known times.

        Args:
            times: in ms from the beginning of the first step, rounded to the end of a step; the least is one step.
            ids: the neuron of each; None if `times` are lists, one for each neuron.
            dt: length of a step in ms.

        Raises:
            ValueError: if there are not as many ids as times, or one is out of range.
        """
        op = "SpikeTrains.of"
        step = step_length(op, dt)
        if ids is None:
            lists = [known(op, "times", each) if np.size(each) else np.zeros(0) for each in times]
            ids = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
            times = np.concatenate([np.zeros(0), *lists])
        found = known(op, "times", times) if np.size(times) else np.zeros(0)
        check_integers(op, "ids", jnp.asarray(ids))
        numbers = concrete(ids)
        if numbers is None or numbers.shape != found.shape:
            hint = "Pass the neuron of each time"
            fail(f"{op}: `ids` must be as many as the times, {len(found)}, got {short_repr(ids)}. {hint}.")
        check_within(op, "ids", numbers, _MOST_STEP, "Pass ids of neurons")
        steps = np.rint(found / step) - 1
        if np.any(steps < 0) or np.any(steps > _MOST_STEP):
            wrong = float(found.min() if steps.min() < 0 else found.max())
            hint = "The first spikes are at the end of the first step"
            fail(
                f"{op}: `times` must be at least {step:g} ms, and less than 2^31 steps, got {wrong:g}. {hint}."
            )
        order = np.lexsort((numbers, steps))
        return cls(jnp.asarray(steps[order], jnp.int32), jnp.asarray(numbers[order], jnp.int32), step)

    @classmethod
    @explained
    def listed(cls, spikes: SparseSpikes, *, dt: float, first: Unchecked = 0) -> "SpikeTrains":
        """The spikes that a simulation has listed.

        Args:
            spikes: `SimulationOutput.spikes`, with known values.
            dt: length of a step in ms.
            first: the number of steps before these: `SimulationState.step` of the state that the call was given.

        Raises:
            ValueError: if spikes were dropped, are traced, or belong to several networks.
        """
        op = "SpikeTrains.listed"
        ids, dropped = concrete(spikes.ids), concrete(spikes.num_dropped)
        if ids is None or dropped is None or ids.ndim != 2:
            hint = "Pass SimulationOutput.spikes outside of jit"
            fail(f"{op}: `spikes` must be known lists of steps, got {short_repr(spikes.ids)}. {hint}.")
        lost = int(np.sum(dropped))
        if lost > 0:
            fail(f"{op}: `spikes` must be complete, got {plural(lost, 'spike')} less. Raise `capacity`.")
        step, slot = np.nonzero(ids < spikes.num_neurons)
        numbers = jnp.asarray(ids[step, slot], jnp.int32)
        return cls(jnp.asarray(step + int(first), jnp.int32), numbers, step_length(op, dt))

    @property
    def times(self) -> np.ndarray:
        """In ms, float64."""
        return (np.asarray(self.steps, np.float64) + 1) * self.dt

    def of_each(self, neurons: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """The times of the spikes of each of these neurons in ms, as elephant and neo take them."""
        ids, times = np.asarray(self.ids), self.times
        order = np.argsort(ids, kind="stable")
        ends = [np.searchsorted(ids[order], neurons, side) for side in ("left", "right")]
        return [times[order[first:end]] for first, end in zip(*ends, strict=True)]
