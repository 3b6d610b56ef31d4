"""The steps of neurons on given currents: one after the other, with what their spikes feed back, or all at once."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_shape, fail
from snnjax._sharding import vary_alike
from snnjax.blocks._feedback import (
    Cells,
    Held,
    SpikingState,
    Steps,
    as_dense,
    behind,
    fed_back,
    length_of,
    one,
    run_recurrent,
    waiting,
)
from snnjax.blocks._fire import fire
from snnjax.blocks.block import Context, choose, within
from snnjax.blocks.sparse import Sparse
from snnjax.neurons import Neuron
from snnjax.ops._glif_step import align
from snnjax.ops._time_scan import platform_scan, time_scan
from snnjax.sparse_spikes import SparseSpikes


def run_steps(
    cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[SpikingState, Steps]:
    """The state after all steps, and the results of every step, all in the accumulation dtype."""
    run = _sequence if cells.neuron.sequence is not None else _scan if cells.lead == 0 else _in_pieces
    # A chain of blocks would run again afterwards, for what each passes on: that takes as long as it saves.
    if len(cells.feedback) != 1 or context.implementation == "composed":
        return run(cells, held, state, currents, context)
    held, state, currents, context = vary_alike((held, state, currents, context))
    return run_recurrent(run, cells, held, state, currents, context)


def _scan(
    cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[SpikingState, Steps]:
    model, valid = cells.neuron, context.valid(currents.shape[0])

    def step(held: Held, carry: tuple[SpikingState, Any], xs: tuple[Array, Any, Any]) -> Any:
        (carried, lists), (current, inside, offset) = carry, xs
        sent = carried.spikes if lists is None else lists
        fed, recurrent = fed_back(cells, held, one(sent), carried.recurrent, length_of(inside), context)
        current = current if fed is None else current + fed[0]
        membrane, threshold, after = model.advance(held.neuron, carried.neuron, current)
        hint = "Give the membrane the shape of the inputs"
        check_shape(f"{model.name}.integrate", "membrane", membrane, current.shape, "batch, neurons", hint)
        spikes, steps = _fired(cells, held, (membrane, threshold), (inside, offset), context)
        after, listed = model.finish(after, spikes), steps.listed
        _check_kept(model, carried.neuron, after)
        after, spikes = choose(inside, after, carried.neuron), carried.spikes
        if spikes is not None:
            spikes = choose(inside, as_dense(listed), spikes)
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
    it is part of the first currents; without the bias, which every step adds.
    """
    steps, batch = currents.shape[:2]
    are_lists = cells.slots is not None and [type(block) for block in cells.feedback] == [Sparse]
    if not are_lists or not isinstance(steps, int) or steps == 0:
        return None, currents
    (own,), inside = held.recurrent, None if context.lengths is None else context.lengths > 0
    first = held._replace(recurrent=(own._replace(bias=None),))
    fed, _ = fed_back(cells, first, one(state.spikes), state.recurrent, length_of(inside), context)
    neurons = math.prod(cells.shape)
    empty = SparseSpikes.from_dense(jnp.zeros((batch, neurons), currents.dtype), cells.slots or 0)
    return empty, currents.at[:1].add(fed)


def _in_pieces(
    cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[SpikingState, Steps]:
    """`_scan` in pieces that end before any of their spikes can arrive; each is fed those of the piece before."""
    steps, batch = currents.shape[:2]
    ends, alone = context.lengths, cells._replace(feedback=(), lead=0)
    if isinstance(steps, int) and steps == 0:
        return state, _scan(alone, held, SpikingState(state.neuron), currents, context)[1]
    size = min(cells.lead + 1, steps) if isinstance(steps, int) else 1
    count, are_lists = -(-steps // size), isinstance(steps, int) and cells.slots is not None
    if ends is None and count * size != steps:
        ends = jnp.full(batch, steps, jnp.int32)
    left = None
    if ends is not None:
        ends = jnp.minimum(ends.astype(jnp.int32), steps)
        left = jnp.clip(ends[None] - size * jnp.arange(count, dtype=jnp.int32)[:, None], 0, size)

    def cut(array: Array) -> Array:
        behind = ((0, count * size - steps), *((0, 0),) * (array.ndim - 1))
        return jnp.pad(array, behind).reshape(count, size, *array.shape[1:])

    def piece(held: Held, carried: Any, xs: tuple[Array, Any, Any]) -> tuple[Any, Steps]:
        (neuron, sent, recurrent), (current, left, offset) = carried, xs
        now = jax.tree.map(lambda leaf: leaf[:size], sent)
        fed, recurrent = fed_back(cells, held, now, recurrent, left, context)
        own = dataclasses.replace(context, lengths=left, offsets=offset)
        after, steps = _scan(alone, held, SpikingState(neuron), current + fed, own)
        sent = steps.listed if are_lists else jnp.concatenate([sent[size:], as_dense(steps.listed)])
        return (after.neuron, sent, recurrent), steps

    xs = cut(currents), left, None if context.offsets is None else cut(context.offsets)
    leaves, form = jax.tree.flatten((state.neuron, waiting(state.spikes), state.recurrent))
    carried = form.unflatten(vary_alike([*leaves, *jax.tree.leaves((held, xs))])[: len(leaves)])
    begun: Any = None
    if are_lists:  # what the state sends may be in no list: the first piece is one for itself
        first, xs = (jax.tree.map(lambda leaf, own=own: leaf[own], xs) for own in (0, slice(1, None)))
        carried, begun = piece(held, carried, first)
    (neuron, _, recurrent), ran = time_scan(piece, held, carried, xs)
    if begun is not None:
        ran = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), begun, ran)
    found: Steps = jax.tree.map(lambda leaf: leaf.reshape(count * size, *leaf.shape[2:])[:steps], ran)
    rows = jnp.concatenate([waiting(state.spikes), as_dense(found.listed)])
    return SpikingState(neuron, behind(rows, ends, steps), recurrent), found


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
