"""The jnp reference of one layer of generalised LIF neurons over all time steps, and its vjp at recorded states.

All time steps of the inputs are known once the layer below has run, so products with weights are computed for all steps
at once; only the neurons (and recurrent weights) run step by step. Arrays are ``[time, batch, neurons]``.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree

from snnjax._batching import any_group
from snnjax._quantised import Quantised
from snnjax._synapses import Synapses
from snnjax._types import State, upcast
from snnjax.ops._connection import DENSE, Connection
from snnjax.ops._glif_step import LIFConvention, align, glif_step, raised
from snnjax.ops._lif_network.records import LayerConstants, LayerState
from snnjax.ops._lif_network.replayed_spikes import fire_with_slopes, masked, replayed_fire
from snnjax.ops._lif_network.switches import LayerSwitches
from snnjax.ops._tables.delay_spikes import Operands as DelayOperands
from snnjax.ops._time_scan import PLAIN, Loops, Scan, time_scan
from snnjax.ops.delay_spikes import arrivals
from snnjax.ops.select_spikes import candidates, cap, cap_by_lists, cap_by_ranks, is_overfull
from snnjax.ops.spike_matmul import dense_product, finite_product
from snnjax.ops.spike_sparse_matmul import synaptic_cotangents, synaptic_product

# (membranes, spikes, near, capacity) -> the masks spikes and near, capped; all arrays [rows, neurons]
Cap = Callable[[Array, Array, Array, int], tuple[Array, Array]]


class LayerRun(NamedTuple):
    """The run of a layer over all time steps; arrays are ``[time, batch, neurons]``."""

    v: Array  # the membranes after each step, in the accumulation dtype
    w: Any  # the second states after each step, or None
    listed: Any  # bool, the neurons in the capped lists; None without capacity
    # What is left of the refractory period before each step, in which a neuron is then silent; None without one
    remaining: Array | None = None
    # The derivatives of the listed spikes by the distance to the threshold, where they are known
    slopes: Array | None = None


class Neurons(NamedTuple):
    """The neurons of a layer, and their equations.

    A `run` is of one or several steps, ``[..., batch, neurons]``.
    """

    constants: LayerConstants
    switches: LayerSwitches
    loops: Loops = PLAIN
    replays: bool = False  # whether the states are recorded ones, for reverse mode alone

    @property
    def scan(self) -> Scan:
        """That of a step of the layer, in which recurrent weights let neurons act on one another."""
        return self.loops.apart if self.constants.recurrent is None else self.loops.mixed

    @property
    def convention(self) -> LIFConvention:
        """The switches of the equation."""
        return LIFConvention(self.switches.surrogate, self.switches.reset, self.switches.detach_reset)

    def threshold(self, run: LayerRun) -> Array:
        """The threshold, raised by the second state if coupled to it, in the accumulation dtype."""
        return self._of_free(run, self.constants.glif.threshold)

    def second_threshold(self, run: LayerRun) -> Array:
        """The second threshold, which keeps its distance from the threshold."""
        return self._of_free(run, self.constants.second_threshold)

    def _of_free(self, run: LayerRun, resting: Array) -> Array:
        """A threshold, infinite in the refractory period."""
        found = raised(resting, self.constants.glif.second_state, run.v, run.w)
        return found if run.remaining is None else jnp.where(run.remaining > 0, jnp.inf, found)

    def advance(self, state: State, current: Array) -> tuple[Array, Any, Any]:
        """Membrane, second state and what remains of the refractory period after a step with the current `current`."""
        v, w = glif_step(self.constants.glif, self.convention, state.v, state.w, current)[:2]
        if state.remaining is None:
            return v, w, None
        v, w = jax.tree.map(
            lambda new, old: jnp.where(state.remaining > 0, old, new), (v, w), (state.v, state.w)
        )
        return v, w, self.remaining_after(LayerRun(v, w, None, state.remaining))

    def remaining_after(self, run: LayerRun) -> Array:
        """What remains of the refractory period after a step."""
        assert run.remaining is not None
        period = align(self.constants.glif.refractory, run.v)
        return jax.lax.stop_gradient(
            jnp.where(run.v > self.threshold(run), period, jnp.maximum(run.remaining - 1, 0))
        )

    def fire(self, run: LayerRun, where: Array | None = None) -> Array:
        """The spikes, in the accumulation dtype; where the mask is false they are 0 and have no gradient."""
        if run.remaining is not None:
            free = run.remaining <= 0
            where = free if where is None else where & free
        distance = run.v - self.threshold(run)
        if run.slopes is not None:
            return fire_with_slopes(self.convention, distance, run.slopes, where)
        spikes: Any = replayed_fire(self.convention, distance) if self.replays else self._fire(distance)
        return masked(where, spikes)

    def slopes(self, run: LayerRun) -> Array:
        """The derivatives of the listed spikes by the distance to the threshold, thus by the membrane alone."""

        def spikes(v: Array) -> Array:
            return self._replace(replays=True).fire(run._replace(v=v), run.listed)

        return jax.vjp(spikes, run.v)[1](jnp.ones_like(run.v))[0]

    def _fire(self, distance: Array) -> Array:
        """Spikes with derivatives in both modes; a neuron whose membrane is not a number has none."""
        known = ~jnp.isnan(distance)
        return jnp.where(known, self.convention.fire(jnp.where(known, distance, 0)), 0)

    def listed(self, run: LayerRun, valid: Array | None, cap: Cap = cap) -> Array | None:
        """The mask of the neurons in the capped lists; None without capacity."""
        v, capacity = run.v, self.switches.capacity
        if capacity is None:
            return None
        rows, threshold, second = (rows_of(jnp.broadcast_to(each, v.shape)) for each in self._compared(run))
        spikes, near = candidates(rows, threshold, second)
        if valid is not None:
            inside = valid.reshape(-1)[:, None]
            spikes, near = spikes & inside, near & inside
        spikes, near = cap(rows, spikes, near, capacity)
        return (spikes | near).reshape(v.shape)

    def above(self, run: LayerRun, valid: Array | None) -> Array | None:
        """The mask of the neurons that are listed where there is room for all; None without capacity."""
        if self.switches.capacity is None:
            return None
        v, threshold, second = self._compared(run)
        above = v > jnp.fmin(threshold, second)
        return above if valid is None else above & valid[..., None]

    def listed_by_kernels(self, run: LayerRun, valid: Array | None) -> Array | None:
        """The same by the platform's kernels of `select_spikes`."""
        v, capacity = run.v, self.switches.capacity
        if capacity is None:
            return None
        membranes, threshold, second = self._compared(run)
        if valid is not None:
            membranes = jnp.where(valid[..., None], membranes, -jnp.inf)
        threshold, second = (
            rows_of(each) if each.shape == v.shape else each.reshape(-1) for each in (threshold, second)
        )
        return cap_by_lists(rows_of(membranes), threshold, second, capacity).reshape(v.shape)

    def _compared(self, run: LayerRun) -> tuple[Array, Array, Array]:
        """The membranes, and both thresholds in a form that can be broadcast to theirs."""
        each = run.v, self.threshold(run), self.second_threshold(run)
        membranes, threshold, second = (jax.lax.stop_gradient(own.astype(run.v.dtype)) for own in each)
        return membranes, threshold, second

    def listed_spikes(self, run: LayerRun, valid: Array | None, dtype: DTypeLike) -> Array:
        """The listed spikes, which reach other neurons, as a dense array."""
        if run.listed is None and valid is not None:
            return self.fire(run, valid[..., None]).astype(dtype)
        return self.fire(run, run.listed).astype(dtype)

    def true_spikes(self, run: LayerRun, valid: Array | None, dtype: DTypeLike) -> Array:
        """The spikes before the cap, with a gradient only above the second threshold."""
        near = run.v > self.second_threshold(run)
        if valid is not None:
            near = near & valid[..., None]
        spikes = self.listed_spikes(run._replace(listed=None), valid, dtype)
        return jnp.where(near, self.fire(run, near).astype(dtype), jax.lax.stop_gradient(spikes))


def rows_of(array: Array) -> Array:
    """``[time, batch, neurons]`` as ``[time * batch, neurons]``."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _choose(valid: Array | None, inside: Any, after: Any) -> Any:
    """Arrays from `inside` before the end of a sequence, from `after` after it (valid ``[..., batch]``)."""
    if valid is None:
        return inside
    return jax.tree.map(lambda new, old: jnp.where(valid[..., None], new, old), inside, after)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def product(connection: Connection, rows: Array, weights: Array) -> Array:
    """`Connection.current`, whose derivative are the exact products of `Connection.backward`."""
    return connection.current(rows, weights)


def _product_backward(connection: Connection, given: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    cotangents = connection.backward(*given, g)
    return cotangents[0].astype(given[0].dtype), cotangents[1].astype(given[1].dtype)


product.defvjp(lambda connection, *given: (product(connection, *given), given), _product_backward)


@jax.custom_vjp
def recorded(computed: Array, record: Array) -> Array:
    """What was recorded of a value, with the derivative of the computed one, which need not be computed then."""
    del computed
    return record


recorded.defvjp(lambda computed, record: (record, None), lambda _, g: (g, None))


class Known(NamedTuple):
    """What a step knows besides its state and its current."""

    inside: Any  # bool [..., batch], whether the sequence goes on; None without lengths
    record: LayerRun | None  # of the step, where it ran before


class Parts(NamedTuple):
    """What a step of a recurrent layer calls."""

    multiply: Callable[[Array, Any], Array] = dense_product
    listed: Callable[[Neurons, LayerRun, Array | None], Array | None] = Neurons.listed


_USUAL = Parts()
_WITHOUT_BRANCHES = Parts(finite_product, functools.partial(Neurons.listed, cap=cap_by_ranks))
_UNLISTED = Parts(finite_product, lambda *_: None)
_BY_KERNELS = Parts(finite_product, Neurons.listed_by_kernels)


def layer_step(
    switches: LayerSwitches,
    constants: LayerConstants,
    state: LayerState,
    current: Array,
    known: Known,
    parts: Parts = _USUAL,
) -> tuple[LayerState, LayerRun]:
    """The state after a step, and what happened in it; both as recorded, if they are.

    States are carried in the accumulation dtype: in bfloat16 a small current would be rounded away.
    """
    (inside, record), recurrent = known, constants.recurrent
    earlier, arriving = state.earlier_spikes, state.arriving
    neurons = Neurons(constants, switches, replays=record is not None)
    if recurrent is not None:
        sent = state.spikes
        if earlier is not None:
            (sent,), earlier = fed_back(constants, sent[None], earlier, switches.recurrent_delay)
        multiply = parts.multiply if record is None else functools.partial(product, DENSE)
        sent = sent if arriving is None else upcast(sent)  # as the taps
        back = returned(constants, sent, multiply, again=record is not None)
        if arriving is not None:
            back, arriving = arrived(back, arriving)
        current = current + back
    before = state if record is None else state._replace(remaining=record.remaining)
    kept = before.v, before.w, before.remaining
    v, w, remaining = _choose(inside, neurons.advance(before, current), kept)
    if record is None:
        run = LayerRun(v, w, None, before.remaining)
    else:
        remaining = None
        run = record._replace(v=recorded(v, record.v), w=None if w is None else recorded(w, record.w))
    if recurrent is None:
        return LayerState(run.v, run.w, None, remaining=remaining), run
    if record is None:
        run = run._replace(listed=parts.listed(neurons, run, inside))
    spikes = neurons.listed_spikes(run, None, state.spikes.dtype)
    new, old = (spikes, earlier, arriving), (state.spikes, state.earlier_spikes, state.arriving)
    spikes, earlier, arriving = _choose(inside, new, old)
    return LayerState(run.v, run.w, spikes, None, earlier, arriving, remaining), run


def returned(
    constants: LayerConstants, sent: Array, multiply: Callable[[Array, Any], Any], again: bool = False
) -> Array:
    """The currents of recurrent spikes ``[..., neurons]`` that arrive, in the accumulation dtype.

    Dense weights are multiplied by `multiply`; if it happens `again`, the derivative is exact. Those of taps are
    ``[..., taps * neurons]``.
    """
    weights, ends, targets = constants.recurrent, constants.recurrent_ends, constants.recurrent_targets
    rows = rows_of(sent)
    if ends is None:
        return multiply(rows, weights).reshape(*sent.shape[:-1], weights.shape[-1])
    through: Any = _product_of_synapses if again else synaptic_product
    return through(rows, weights, Synapses(ends, targets, sent.shape[-1])).reshape(sent.shape)


@jax.custom_vjp
def _product_of_synapses(rows: Array, weights: Array, synapses: Synapses) -> Array:
    """`synaptic_product`, whose derivative are the exact products of `synaptic_cotangents`."""
    return synaptic_product(rows, weights, synapses)


def _product_of_synapses_backward(given: tuple[Array, Array, Synapses], g: Array) -> Any:
    return *synaptic_cotangents(*given, g), None


_product_of_synapses.defvjp(
    lambda *given: (_product_of_synapses(*given), given), _product_of_synapses_backward
)


def as_taps(constants: LayerConstants, switches: LayerSwitches) -> LayerConstants:
    """The constants with the delays of recurrent synapses in their weights, then dense ``[neurons, taps * neurons]``.

    Tap k of a synapse is the share of its weight that arrives k steps late.
    """
    weights, delays, longest = constants.recurrent, constants.synaptic_delays, switches.recurrent_delay
    if delays is None or longest is None:
        return constants
    ends, wide = constants.recurrent_ends, weights.astype(delays.dtype)
    neurons = (weights if ends is None else ends).shape[0]
    whole = jnp.minimum(jnp.floor(delays), max(longest - 1, 0))
    later = delays - whole

    def tap(step: Array) -> Array:
        share = jnp.where(step == whole, 1 - later, jnp.where(step == whole + 1, later, 0))
        # A share of 0 is nothing whatever the weight, but has a derivative.
        own = jnp.where((share == 0) & ~jnp.isfinite(wide), 0, share * wide)
        if ends is None:
            return own
        return Synapses(ends, constants.recurrent_targets, neurons).to_dense(own)

    taps: Any = jax.lax.map(tap, jnp.arange(longest + 1, dtype=delays.dtype))
    flat = jnp.moveaxis(taps, 0, 1).reshape(neurons, (longest + 1) * neurons)
    return constants._replace(
        recurrent=flat, recurrent_ends=None, recurrent_targets=None, synaptic_delays=None
    )


def arrived(back: Array, arriving: Array) -> tuple[Array, Array]:
    """What arrives in a step whose spikes come back by taps ``[batch, taps * neurons]``, and in the steps after it."""
    by_tap = jnp.moveaxis(back.reshape(len(back), len(arriving) + 1, arriving.shape[-1]), 1, 0)
    rows = by_tap + jnp.pad(arriving, ((0, 1), (0, 0), (0, 0)))
    return rows[0], rows[1:]


def returned_over_time(
    constants: LayerConstants, switches: LayerSwitches, sent: Array, first: LayerState
) -> Array:
    """The recurrent currents of all steps, from the spikes of the step before each."""
    if first.arriving is None:
        sent, _ = fed_back(constants, sent, first.earlier_spikes, switches.recurrent_delay)
        return returned(constants, sent, dense_product)
    arriving = with_rows(first, switches).arriving
    back = returned(constants, upcast(sent), dense_product)

    def step(rows: Array, own: Array) -> tuple[Array, Array]:
        now, rows = arrived(own, rows)
        return rows, now

    return jax.lax.scan(step, arriving, back)[1]


def with_rows(first: LayerState, switches: LayerSwitches) -> LayerState:
    """A state with all rows of what is in transit."""
    return switches.in_transit(first, all_rows)


def fed_back(
    constants: LayerConstants, spikes: Array, earlier: Any, longest: int | None
) -> tuple[Array, Any]:
    """What of recurrent spikes of some steps arrives in the steps after them, and then `earlier` spikes."""
    if longest is None:
        return spikes, None
    given = DelayOperands(spikes, earlier, constants.recurrent_delays, None)
    results = arrivals(given, longest)
    return results.delayed, results.left


def all_rows(rows: Array, count: int) -> Array:
    """So many rows of what is in transit, of which none stand for rows of zeros."""
    return rows if rows.shape[0] > 0 else jnp.zeros((count, *rows.shape[1:]), rows.dtype)


def layer_forward(
    neurons: Neurons, current: Array, valid: Array | None, first: LayerState, dtype: DTypeLike
) -> tuple[LayerRun, Array, LayerState]:
    """Run a layer from its first state; also return the listed spikes in `dtype` and the last state."""

    def over_time(scan: Scan, parts: Parts) -> tuple[LayerState, LayerRun]:
        def step(
            constants: LayerConstants, state: LayerState, xs: tuple[Array, Array | None]
        ) -> tuple[LayerState, LayerRun]:
            return layer_step(neurons.switches, constants, state, xs[0], Known(xs[1], None), parts)

        return scan(step, neurons.constants, first, (current, valid))

    recurrent, first = neurons.constants.recurrent, with_rows(first, neurons.switches)
    usual = functools.partial(over_time, neurons.scan)
    if recurrent is not None and neurons.loops.hopes:
        last, run = usual(_UNLISTED)
        ran = last, run._replace(listed=neurons.above(run, valid))
        # A loop of single steps is hardly ever of use, and compiles faster.
        last, run = _unless_full(
            neurons, ran, lambda: over_time(time_scan, _BY_KERNELS), lambda ran: ran[1].listed
        )
    elif recurrent is None or neurons.loops.branches:
        last, run = usual(_USUAL)
    elif isinstance(recurrent, Quantised) or neurons.constants.recurrent_ends is not None:
        last, run = usual(_WITHOUT_BRANCHES)
    else:
        # Tested once. The other side is hardly ever of use, and compiles faster as a loop of single steps.
        last, run = jax.lax.cond(
            any_group(~jnp.isfinite(recurrent)),
            lambda: over_time(time_scan, _USUAL),
            lambda: usual(_WITHOUT_BRANCHES),
        )
    if recurrent is None:
        run = run._replace(listed=_listed_at_once(neurons, run, valid))
    return run, neurons.listed_spikes(run, valid, dtype), last


def _listed_at_once(neurons: Neurons, run: LayerRun, valid: Array | None) -> Array | None:
    """The mask of the neurons in the capped lists of all steps; None without capacity."""
    if not neurons.loops.hopes:
        return neurons.listed(run, valid)
    above = neurons.above(run, valid)
    return _unless_full(neurons, above, lambda: neurons.listed_by_kernels(run, valid), lambda mask: mask)


def _unless_full(
    neurons: Neurons, found: PyTree, again: Callable[[], PyTree], listed: Callable[[PyTree], Array | None]
) -> PyTree:
    """What was found without a cap, or with one, where more neurons are `listed` of it than a list has room for."""
    mask, capacity = listed(found), neurons.switches.capacity
    if mask is None or capacity is None or capacity >= mask.shape[-1]:
        return found
    return jax.lax.cond(is_overfull(rows_of(mask), capacity), again, lambda: found)


def layer_again(
    neurons: Neurons, current: Array, valid: Array | None, first: LayerState, run: LayerRun
) -> tuple[LayerRun, Array, LayerState]:
    """The same as recorded, in the accumulation dtype: its vjp is that of the steps at the recorded states."""
    spikes, dtype, known = None, first.v.dtype, Known(valid, run._replace(listed=None))
    remaining, first = first.remaining, first._replace(remaining=None)  # that before each step is in the run
    if neurons.constants.recurrent is not None:
        known = Known(valid, run._replace(slopes=neurons.slopes(run)))
        first = first._replace(spikes=upcast(first.spikes))
        spikes = neurons.listed_spikes(run, valid, dtype)
    step = functools.partial(_state_after, neurons.switches)
    if neurons.switches.recurrent_delay is None:
        states = LayerState(run.v, run.w, spikes)
        received = None if neurons.constants.recurrent is None else _received
        replay: Any = replayed(step, neurons.scan, received, neurons.constants, first, current, known, states)
    else:
        first = jax.tree.map(upcast, with_rows(first, neurons.switches))
        replay = _again_step_by_step(neurons, current, known, first)
    states, last = replay
    run, last = run._replace(v=states.v, w=states.w), last._replace(remaining=remaining)
    if spikes is None:
        return run, neurons.listed_spikes(run, valid, dtype), last
    return run, _choose(valid, states.spikes, jnp.zeros_like(spikes)), last


def _again_step_by_step(
    neurons: Neurons, current: Array, known: Known, first: LayerState
) -> tuple[LayerState, LayerState]:
    """The states after each step but for what is in transit, and the last one, of steps that feed many others."""

    def step(constants: LayerConstants, state: LayerState, xs: tuple[Array, Known]) -> Any:
        state = _state_after(neurons.switches, constants, state, *xs)
        return state, state._replace(earlier_spikes=None, arriving=None)

    last, states = neurons.scan(step, neurons.constants, first, (current, known))
    return states, last


def _state_after(
    switches: LayerSwitches, constants: LayerConstants, state: LayerState, current: Array, known: Known
) -> LayerState:
    return layer_step(switches, constants, state, current, known)[0]


def _received(constants: LayerConstants, before: LayerState, current: Array) -> Array:
    """The currents of recurrent neurons with what their own spikes bring."""
    return current + returned(constants, before.spikes, functools.partial(product, DENSE), again=True)


# (constants, state, current of the step, what else it knows) -> the state after it; of one step, or of many at once
Step = Callable[[Any, Any, Array, Any], Any]
# (constants, states before some steps, their currents) -> the currents with those of recurrent weights
Received = Callable[[LayerConstants, State, Array], Array]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def replayed(
    step: Step,
    scan: Scan,
    received: Received | None,
    constants: Any,
    first: Any,
    current: Array,
    known: Any,
    states: Any,
) -> tuple[Any, Any]:
    """The states after each step of a `scan` of `step`, which are recorded in `states`, and the last one.

    The derivative is that of the scan at these states. Nothing runs again, so the last state is not computed either:
    the first stands for it. Of steps with recurrent weights `received` says where these are.
    """
    del step, scan, received, constants, current, known
    return states, first


def _replayed_forward(step: Step, scan: Scan, received: Received | None, *given: Any) -> tuple[Any, Any]:
    return replayed(step, scan, received, *given), given


def _replayed_backward(
    step: Step, scan: Scan, received: Received | None, given: tuple[Any, ...], g: tuple[Any, Any]
) -> tuple[Any, ...]:
    """The states' cotangents step by step; then those of constants and currents, of all steps at once.

    With recurrent weights the loop knows the cotangents of currents, and surrogates are not taken twice for them.
    """
    constants, first, current, known, states = given
    before = jax.tree.map(lambda start, after: jnp.concatenate([start[None], after])[:-1], first, states)

    def back(constants: Any, g: Any, each: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        state, known, g_state = each
        g = jax.tree.map(jnp.add, g, g_state)
        # No derivative by the state depends on the current.
        nothing = jnp.zeros(jax.tree.leaves(state)[0].shape, current.dtype)
        pull = jax.vjp(lambda state, current: step(constants, state, current, known), state, nothing)[1]
        g_before, g_current = pull(g)
        return g_before, (g, None if received is None else g_current)

    g_first, g_after = scan(back, constants, g[1], (before, known, g[0]), reverse=True)

    def at_once(constants: PyTree, current: Array) -> tuple[Any, Any]:
        if received is None:
            return step(constants, before, current, known), None
        fixed = constants._replace(recurrent=jax.lax.stop_gradient(constants.recurrent))
        after = step(fixed, before, jax.lax.stop_gradient(current), known)
        return after, received(constants, before, current)

    g_constants, g_current = jax.vjp(at_once, constants, current)[1](g_after)
    return g_constants, g_first, g_current, None, None


replayed.defvjp(_replayed_forward, _replayed_backward)


def states_again(
    neurons: Neurons, v: Array, current: Any, valid: Array | None, first: LayerState
) -> LayerRun:
    """A run, of which all but the membranes is computed again: from these and, if they matter, its currents."""
    needs_w = neurons.switches.needs_w
    unused = None if first.w is None or needs_w else jnp.zeros_like(v)
    if not needs_w and first.remaining is None:
        return LayerRun(v, unused, None)
    before = jnp.concatenate([first.v[None], v])[:-1]

    def step(
        constants: LayerConstants, state: tuple[Any, Any], xs: tuple[Array, Array, Any, Array | None]
    ) -> tuple[Any, Any]:
        (w, remaining), (v, after, current, inside), own = state, xs, neurons._replace(constants=constants)
        current = jnp.zeros_like(v) if current is None else current
        run = LayerRun(
            after, own.advance(LayerState(v, w, None, remaining=remaining), current)[1], None, remaining
        )
        left = None if remaining is None else own.remaining_after(run)
        state = _choose(inside, (run.w, left), state)
        return state, (state[0], remaining)

    own = neurons.constants._replace(recurrent=None, recurrent_ends=None, recurrent_targets=None)
    start = first.w, first.remaining
    w, remaining = neurons.loops.apart(step, own, start, (before, v, current, valid))[1]
    return LayerRun(v, w if needs_w else unused, None, remaining)
