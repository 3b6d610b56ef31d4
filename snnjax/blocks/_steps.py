"""The steps of neurons on given currents: one after the other, with what their spikes feed back, or all at once."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_shape, fail
from snnjax._sharding import vary_alike
from snnjax.blocks._fire import fire
from snnjax.blocks.block import Block, Context, Shape, choose, flat, within
from snnjax.blocks.sparse import Sparse
from snnjax.neurons import Neuron
from snnjax.ops._glif_step import align
from snnjax.ops._time_scan import platform_scan
from snnjax.sparse_spikes import SparseSpikes


class SpikingState(NamedTuple):
    """The state of `spiking`."""

    neuron: Any  # the neuron's state, arrays [batch, neurons]
    spikes: Float[Array, "batch neurons"] | None = None  # the last listed spikes, if they are fed back
    recurrent: tuple[Any, ...] | None = None  # of each block of the recurrent connection


class Cells(NamedTuple):
    """Neurons of a shape, and how their spikes are passed on: the static part of a run."""

    neuron: Neuron
    slots: int | None  # of their lists
    feedback: tuple[Block, ...]  # the blocks of the recurrent connection, in order
    shape: Shape


class Held(NamedTuple):
    """The arrays of a run, in the accumulation dtype, in which a scan adds up cotangents."""

    neuron: Any  # the constants, a set for each neuron
    second: Any  # the second threshold
    recurrent: tuple[Any, ...]  # the params of each block of the recurrent connection
    drawn: tuple[Any, ...]  # the stats of each of these blocks


class Steps(NamedTuple):
    """Neurons over all steps, ``[time, batch, neurons]``."""

    listed: Any  # the spikes that reach other neurons, an array or `SparseSpikes`
    counted: Array  # the true spikes, as the activity counts them
    membranes: Array | None


def run_steps(
    cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[SpikingState, Steps]:
    """The state after all steps, and the results of every step, all in the accumulation dtype."""
    run = _scan if cells.neuron.sequence is None else _sequence
    return run(cells, held, state, currents, context)


def _scan(
    cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[SpikingState, Steps]:
    model, valid = cells.neuron, context.valid(currents.shape[0])

    def step(held: Held, carry: tuple[SpikingState, Any], xs: tuple[Array, Any, Any]) -> Any:
        (carried, lists), (current, inside, offset) = carry, xs
        sent = carried.spikes if lists is None else lists
        fed_back, recurrent = _fed_back(cells, held, sent, carried.recurrent, inside, context)
        current = current if fed_back is None else current + fed_back
        membrane, threshold, after = model.advance(held.neuron, carried.neuron, current)
        hint = "Give the membrane the shape of the inputs"
        check_shape(f"{model.name}.integrate", "membrane", membrane, current.shape, "batch, neurons", hint)
        spikes, steps = _fired(cells, held, (membrane, threshold), (inside, offset), context)
        after, listed = model.finish(after, spikes), steps.listed
        _check_kept(model, carried.neuron, after)
        after, spikes = choose(inside, after, carried.neuron), carried.spikes
        if spikes is not None:
            dense = listed.to_dense() if isinstance(listed, SparseSpikes) else listed
            spikes = choose(inside, dense, spikes)
        return (SpikingState(after, spikes, recurrent), None if lists is None else listed), steps

    lists, currents = _first_lists(cells, held, state, currents, context)
    leaves, form = jax.tree.flatten((state, lists))
    others = jax.tree.leaves((held, currents, valid, context.offsets))
    start = form.unflatten(vary_alike([*leaves, *others])[: len(leaves)])
    (state, _), steps = platform_scan(step, held, start, (currents, valid, context.offsets))
    return state, steps


def _first_lists(
    cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[SparseSpikes | None, Array]:
    """Lists without spikes to start from, None if spikes are not fed back as lists, and the currents of the steps.

    Synapses are then read for listed neurons alone, backwards as well. What the state feeds back may be in no list, so
    it is part of the first currents.
    """
    steps, batch = currents.shape[:2]
    are_lists = cells.slots is not None and state.spikes is not None and isinstance(cells.feedback[0], Sparse)
    if not are_lists or jax.tree.leaves(state.recurrent) or not isinstance(steps, int) or steps == 0:
        return None, currents
    inside = None if context.lengths is None else context.lengths > 0
    fed_back, _ = _fed_back(cells, held, state.spikes, state.recurrent, inside, context)
    neurons = math.prod(cells.shape)
    empty = SparseSpikes.from_dense(jnp.zeros((batch, neurons), currents.dtype), cells.slots or 0)
    return empty, currents.at[0].add(fed_back)


def _sequence(
    cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[SpikingState, Steps]:
    """`_scan` of neurons that compute all steps at once."""
    model, steps = cells.neuron, currents.shape[0]
    assert model.sequence is not None
    if model.num_steps not in (None, steps):
        fail(
            f"{model.name}: `currents` must have {model.num_steps} steps, got {steps}. "
            f"Make the neurons for {steps} steps, or pad the sequences and pass their lengths."
        )
    valid = context.valid(steps)
    found = model.sequence(held.neuron, state.neuron, within(currents, valid), valid)
    membranes, thresholds, after = found
    hint = "Give the membranes the shape of the currents"
    check_shape(
        f"{model.name}.sequence", "membranes", membranes, currents.shape, "time, batch, neurons", hint
    )
    _check_kept(model, state.neuron, after)
    fired, given = (membranes, thresholds), (valid, context.offsets)
    return SpikingState(after), _fired(cells, held, fired, given, context)[1]


def _fired(
    cells: Cells,
    held: Held,
    fired: tuple[Array, Array],
    given: tuple[Array | None, Array | None],
    context: Context,
) -> tuple[Array, Steps]:
    """The true spikes of membranes and thresholds, and the results; `given` are where a sequence lasts, and offsets.

    All are ``[..., batch, neurons]``.
    """
    (membrane, threshold), (inside, offset) = fired, given
    threshold = jnp.broadcast_to(align(threshold.astype(membrane.dtype), membrane), membrane.shape)
    threshold = threshold if offset is None else threshold - offset
    spikes, counts = cells.neuron.graded(membrane, threshold)
    each = (membrane, threshold, spikes, counts)
    listed, counted = fire(cells.neuron, held.neuron, cells.slots, each, held.second, inside, context)
    shown = None
    if "membranes" in context.record:
        shown = membrane if offset is None else membrane - threshold
        shown = choose(inside, shown, jnp.zeros_like(shown))
    return spikes, Steps(listed, counted, shown)


def _fed_back(
    cells: Cells, held: Held, sent: Any, recurrent: Any, inside: Any, context: Context
) -> tuple[Array | None, Any]:
    """The recurrent current of the spikes of the step before, and the states of the blocks that they passed."""
    if sent is None or recurrent is None:
        return None, recurrent
    are_lists = isinstance(sent, SparseSpikes)
    signal = jax.tree.map(lambda leaf: leaf[None], sent) if are_lists else sent.reshape(1, -1, *cells.shape)
    place, states = cells.shape, []
    lengths = None if inside is None else inside.astype(jnp.int32)
    own = Context(lengths, context.key, train=context.train, implementation=context.implementation)
    each = zip(cells.feedback, held.recurrent, recurrent, held.drawn, strict=True)
    for part, *arrays in each:
        result = part.apply(*arrays, signal, shapes=(place,), context=own)
        if result.stats is not None:
            fail(
                f"spiking: `recurrent` must hold blocks whose stats stay as they are, got {part.kind}. "
                "Put it before or behind the neurons."
            )
        signal, place = result.signal, part.out_shape(place)
        states.append(result.state)
    return flat(signal)[0], tuple(states)


def _check_kept(neuron: Neuron, before: Any, after: Any) -> None:
    """Check that a state keeps its structure from step to step, which a user's neuron may violate."""
    given, returned = (
        str(jax.tree.map(lambda leaf: f"{leaf.dtype.name}{list(leaf.shape)}", state))
        for state in (before, after)
    )
    if returned != given:
        fail(
            f"{neuron.name}.fire: `state` must stay {given}, got {returned}. "
            "Compute in the dtype of the state; inputs have the accumulation dtype, at least float32."
        )
