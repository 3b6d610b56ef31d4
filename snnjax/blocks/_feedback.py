"""What spikes feed back to their own neurons, and the gradient of its params for all steps at once."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import fail
from snnjax.blocks._applied import applied
from snnjax.blocks.block import Block, Context, Shape, flat, shaped
from snnjax.neurons import Neuron
from snnjax.sparse_spikes import SparseSpikes


class SpikingState(NamedTuple):
    """The state of `spiking`."""

    neuron: Any  # the neuron's state, arrays [batch, neurons]
    # The last listed spikes, if they are fed back; where they arrive some steps later at the earliest, those of as many
    # steps more, ``[lead + 1, batch, neurons]``, oldest first
    spikes: Float[Array, "*lead batch neurons"] | None = None
    recurrent: tuple[Any, ...] | None = None  # of each block of the recurrent connection, before these spikes


class Cells(NamedTuple):
    """Neurons of a shape, and how their spikes are passed on: the static part of a run."""

    neuron: Neuron
    slots: int | None  # of their lists
    feedback: tuple[Block, ...]  # the blocks of the recurrent connection, in order
    shape: Shape
    lead: int = 0  # how many steps later than they return it their signal arrives


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


def fed_back(
    cells: Cells, held: Held, sent: Any, recurrent: Any, lengths: Any, context: Context
) -> tuple[Any, Any]:
    """What blocks make of the spikes of some steps, ``[time, batch, neurons]``, and their states after these."""
    if sent is None or recurrent is None:
        return None, recurrent
    signal, place, states = shaped(sent, cells.shape), cells.shape, []
    own = Context(lengths, context.key, train=context.train, implementation=context.implementation)
    each = zip(cells.feedback, held.recurrent, recurrent, held.drawn, strict=True)
    for part, params, state, stats in each:
        result = applied(part.kind, part, (params, state, stats), [signal], (place,), own)
        if result.stats is not None:
            fail(
                f"spiking: `recurrent` must hold blocks whose stats stay as they are, got {part.kind}. "
                "Put it before or behind the neurons."
            )
        signal, place = result.signal, part.out_shape(place)
        states.append(result.state)
    return flat(signal), tuple(states)


def one(sent: Any) -> Any:
    """The spikes of one step, with an axis of time."""
    return jax.tree.map(lambda leaf: leaf[None], sent)


def as_dense(spikes: Any) -> Array:
    """Spikes as an array."""
    return spikes.to_dense() if isinstance(spikes, SparseSpikes) else spikes


def waiting(spikes: Any) -> Array:
    """The spikes of a state that have not been fed back, ``[time, batch, neurons]``."""
    return spikes if spikes.ndim == 3 else spikes[None]


def length_of(inside: Array | None) -> Array | None:
    """The lengths of sequences of one step."""
    return None if inside is None else inside.astype(jnp.int32)


def behind(rows: Array, left: Array | None, size: int) -> Array:
    """The rows of each sequence, ``[time, batch, neurons]``, from its step `left` on, but for the last `size`."""
    most = rows.shape[0] - size
    if left is None:
        return rows[size:]
    own = functools.partial(jax.lax.dynamic_slice_in_dim, slice_size=most)
    return jax.vmap(own, in_axes=(1, 0), out_axes=1)(rows, left)


# (cells, held, state, currents, context) -> (state after all steps, results of every step)
Run = Callable[..., tuple[SpikingState, Steps]]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def run_recurrent(
    run: Run, cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[SpikingState, Steps]:
    """A run whose backward pass goes through its steps without the params and stats of the recurrent connection.

    Their gradient needs the spikes of all steps, and the cotangents of what came back, which are those of the given
    currents: one product afterwards. It is exact, as blocks that run step by step may be run on all steps at once.
    """
    return run(cells, held, state, currents, context)


def _forward(
    run: Run, cells: Cells, held: Held, state: SpikingState, currents: Array, context: Context
) -> tuple[tuple[SpikingState, Steps], Any]:
    def inner(others: Held, *given: Any) -> tuple[SpikingState, Steps]:
        return run(cells, others._replace(recurrent=held.recurrent, drawn=held.drawn), *given)

    others = held._replace(recurrent=(), drawn=())
    results, back = jax.vjp(inner, others, state, currents, context)
    return results, (held, state, context, results[1].listed, back)


def _backward(run: Run, cells: Cells, kept: Any, g: tuple[SpikingState, Steps]) -> tuple[Any, ...]:
    del run
    held, state, context, listed, back = kept
    g_others, g_state, g_currents, g_context = back(g)

    def came_back(recurrent: Any, drawn: Any) -> Any:
        own = held._replace(recurrent=recurrent, drawn=drawn)
        dense = as_dense(listed)
        steps = dense.shape[0]
        ends = None if context.lengths is None else jnp.minimum(context.lengths, steps)
        sent = jnp.concatenate([waiting(state.spikes), dense])[:steps]
        fed, after = fed_back(cells, own, sent, state.recurrent, ends, context)
        return fed.astype(g_currents.dtype), after

    back = jax.vjp(came_back, held.recurrent, held.drawn)[1]
    g_recurrent, g_drawn = back((g_currents, g[0].recurrent))
    return g_others._replace(recurrent=g_recurrent, drawn=g_drawn), g_state, g_currents, g_context


run_recurrent.defvjp(_forward, _backward)
