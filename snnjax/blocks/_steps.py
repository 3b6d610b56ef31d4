"""The steps of neurons on given currents: one after the other, or all at once."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_shape, fail
from snnjax._sharding import vary_alike
from snnjax._types import State
from snnjax.blocks._fire import fire
from snnjax.blocks.block import Context, choose, within
from snnjax.neurons import Neuron
from snnjax.ops._glif_step import align
from snnjax.ops._time_scan import platform_scan


class Cells(NamedTuple):
    """Neurons, and how their spikes are passed on: the static part of a run."""

    neuron: Neuron
    slots: int | None  # of their lists


class Held(NamedTuple):
    """The arrays of a run, in the accumulation dtype, in which a scan adds up cotangents."""

    neuron: Any  # the constants, a set for each neuron
    second: Any  # the second threshold


class Steps(NamedTuple):
    """Neurons over all steps, ``[time, batch, neurons]``."""

    listed: Any  # the spikes that reach other neurons, an array or `SparseSpikes`
    counted: Array  # the true spikes, as the activity counts them
    membranes: Array | None


def run_steps(
    cells: Cells, held: Held, state: State, currents: Array, context: Context, offsets: Array | None = None
) -> tuple[Any, Steps]:
    """The neurons' state after all steps, and the results of every step, all in the accumulation dtype.

    `offsets` are added to the distances from the threshold at which neurons spike, ``[time, batch, neurons]``. Then
    these distances are recorded in place of membranes.
    """
    run = _scan if cells.neuron.sequence is None else _sequence
    return run(cells, held, state, currents, context, offsets)


def _scan(
    cells: Cells, held: Held, state: State, currents: Array, context: Context, offsets: Array | None
) -> tuple[Any, Steps]:
    model, valid = cells.neuron, context.valid(currents.shape[0])

    def step(held: Held, carried: Any, xs: tuple[Array, Any, Any]) -> Any:
        current, inside, offset = xs
        membrane, threshold, after = model.advance(held.neuron, carried, current)
        hint = "Give the membrane the shape of the inputs"
        each = (current.shape[0], current.shape[1] // model.num_receptors)
        check_shape(f"{model.name}.integrate", "membrane", membrane, each, "batch, neurons", hint)
        spikes, steps = _fired(cells, held, (membrane, threshold), (inside, offset), context, after)
        after = model.finish(after, spikes)
        _check_kept(model, carried, after)
        return choose(inside, after, carried), steps

    xs = currents, valid, offsets
    leaves, form = jax.tree.flatten(state)
    start = form.unflatten(vary_alike([*leaves, *jax.tree.leaves((held, xs))])[: len(leaves)])
    if currents.shape[0] == 1:  # a step of a loop, which is a scan itself
        state, steps = step(held, start, jax.tree.map(lambda leaf: leaf[0], xs))
        return state, jax.tree.map(lambda leaf: leaf[None], steps)
    return platform_scan(step, held, start, xs)


def _sequence(
    cells: Cells, held: Held, state: State, currents: Array, context: Context, offsets: Array | None
) -> tuple[Any, Steps]:
    """`_scan` of neurons that compute all steps at once."""
    model, steps = cells.neuron, currents.shape[0]
    assert model.sequence is not None
    if model.num_steps not in (None, steps):
        fail(
            f"{model.name}: `currents` must have {model.num_steps} steps, got {steps}. "
            f"Make the neurons for {steps} steps, or pad the sequences and pass their lengths."
        )
    valid = context.valid(steps)
    found = model.sequence(held.neuron, state, within(currents, valid), valid)
    membranes, thresholds, after = found
    hint = "Give the membranes the shape of the currents"
    check_shape(
        f"{model.name}.sequence", "membranes", membranes, currents.shape, "time, batch, neurons", hint
    )
    _check_kept(model, state, after)
    fired, given = (membranes, thresholds), (valid, offsets)
    return after, _fired(cells, held, fired, given, context)[1]


def _fired(
    cells: Cells,
    held: Held,
    fired: tuple[Array, Array],
    given: tuple[Array | None, Array | None],
    context: Context,
    after: State = None,
) -> tuple[Array, Steps]:
    """The true spikes of membranes and thresholds, and the results; `given` are where a sequence lasts, and offsets.

    All are ``[..., batch, neurons]``. `after` is the state of neurons whose spikes have a derivative of their own.
    """
    (membrane, threshold), (inside, offset) = fired, given
    threshold = jnp.broadcast_to(align(threshold.astype(membrane.dtype), membrane), membrane.shape)
    threshold = threshold if offset is None else threshold - offset
    spikes, counts = cells.neuron.graded(membrane, threshold)
    spikes = spikes if cells.neuron.sent is None else cells.neuron.sent(after, spikes)
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
