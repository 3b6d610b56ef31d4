"""`lif_network` with delays, of which the codelets know nothing, on an IPU: pieces without any, one behind the other.

A piece begins with each layer that delays its inputs. It reads events: at each step the lists of the last
``max_delay + 2`` steps, of the spikes that arrive then. As a delay belongs to a neuron, so do the shares of its spikes
in two steps: they are factors of its weights, which the piece has twice. Where the lists would be longer than a row of
all inputs, or spikes of an earlier call are under way, it reads rows of what arrives.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import Signal
from snnjax.ipu.device.core import (
    BackwardArguments,
    BackwardOnTiles,
    Connection,
    Cotangents,
    ForwardOnTiles,
    LayerState,
    Needs,
    Operands,
    RecordOnTiles,
    SparseSpikes,
    Switches,
    Weighted,
    as_dense,
    delayed_inputs,
    differentiable,
    in_range,
)
from snnjax.ipu.device.network_record import sent_by, without_counts

# That send spikes to delayed lists: twice as many rows of weights have ids of 16 bits, the largest of which is unused.
_MOST_NEURONS = 32_767


class _Sent(NamedTuple):
    """What the spikes that arrive depend on, or cotangents."""

    values: Array  # of lists, or rows
    delays: Array
    pending: Array  # spikes under way from before
    weights: Array


class _Read(NamedTuple):
    """What a piece reads, or flags for it."""

    x: Array | SparseSpikes  # lists or rows
    weights: Array  # of its first layer


def spans(switches: Switches) -> list[slice]:
    """The layers of each piece."""
    delayed = [layer.connection.max_delay is not None for layer in switches.layers]
    starts = [0, *(number for number, own in enumerate(delayed) if own and number > 0)]
    return [slice(*span) for span in zip(starts, [*starts[1:], len(delayed)], strict=True)]


def forward(
    operands: Operands, switches: Switches, run: Callable[[Operands, Switches], ForwardOnTiles]
) -> ForwardOnTiles:
    """The forward pass of a network, of which `run` computes the pieces."""
    x, found, lasts = operands.inputs, [], []
    for layers in spans(switches):
        read, left = _arriving(operands, switches, layers.start, x)
        found.append(run(_part(operands, switches, layers, read), _switches_of(switches, layers)))
        first, *others = found[-1].results.last
        lasts += [first._replace(pending=left), *others]
        x = found[-1].results.spikes[-1]
    each = [own.results for own in found]
    spikes = zip(_joined(own.spikes for own in each), switches.layers, strict=True)
    results = each[-1]._replace(
        counts=_joined(own.counts for own in each),
        dropped=_joined(own.dropped for own in each),
        spikes=tuple(own if layer.records_spikes else None for own, layer in spikes),
        last=tuple(lasts),
    )
    if not switches.keeps_record:
        return ForwardOnTiles(results, None)
    return ForwardOnTiles(results, RecordOnTiles(_joined(own.record.layers for own in found)))


def _joined(tuples: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(each for own in tuples for each in own)


def backward(
    arguments: BackwardArguments,
    static: tuple[Switches, Needs],
    on_tiles: RecordOnTiles,
    run: Callable[[BackwardOnTiles, Operands, Switches], Operands],
) -> Operands:
    """The cotangents of the operands of a network, of which `run` computes those of the pieces."""
    (operands, results, _, g), (switches, needs) = arguments, static
    x, pieces = operands.inputs, []
    for layers in spans(switches):
        first_layer: int = layers.start
        last_layer: int = layers.stop - 1
        read, pull_back = _received(operands, switches, first_layer, x, g.last[first_layer])
        pieces.append((layers, read, pull_back))
        x = sent_by(operands, switches, last_layer, on_tiles.layers[last_layer])
    linears, constants, first, g_sent, last = (), (), (), None, None
    for layers, read, pull_back in reversed(pieces):
        given = BackwardOnTiles(
            _part(operands, switches, layers, read),
            results.output if last is None else None,
            RecordOnTiles(on_tiles.layers[layers]),
            _cotangents_of(g, switches, layers, g_sent),
        )
        needed = _part(needs.operands, switches, layers, _flags(read.x, needs, layers.start))
        own = run(given, needed, _switches_of(switches, layers))
        last = own if last is None else last
        (linear, *others), (state, *states), g_inputs = own.linears, own.first, own.inputs
        if pull_back is not None:
            g_inputs, g_delays, g_pending, g_weights = pull_back(g_inputs, linear.weights)
            linear = linear._replace(weights=g_weights, delays=g_delays)
            state = state._replace(pending=g_pending)
        g_sent = None if g_inputs is None else _numbers(g_inputs)  # of integers
        linears, first = (linear, *others, *linears), (state, *states, *first)
        constants = (*own.constants, *constants)
    all_of_them = cast(Operands, last)._replace(linears=linears, constants=constants, first=first)
    if isinstance(operands.inputs, SparseSpikes):
        g_sent = dataclasses.replace(operands.inputs, values=g_sent)
    return differentiable(all_of_them._replace(inputs=g_sent), operands)


def _flags(x: Array | SparseSpikes, needs: Needs, number: int) -> _Read:
    """Whether a piece passes cotangents of what it reads on: to the one before, to the delays, or to the inputs."""
    own, linear = needs.operands, needs.operands.linears[number]
    if linear.delays is None:
        return _Read(own.inputs, linear.weights)
    is_wanted = number > 0 or any(jax.tree.leaves(own.inputs))
    if not isinstance(x, SparseSpikes):
        is_wanted = is_wanted or linear.delays or own.first[number].pending
    return _Read(jax.tree.map(lambda _: is_wanted, x), linear.weights or linear.delays)


def _received(
    operands: Operands, switches: Switches, number: int, x: Array | SparseSpikes, g_last: LayerState
) -> tuple[_Read, Callable[[Any, Array], _Sent] | None]:
    """What a piece reads of the spikes `x`, and how cotangents of it become those of what is sent."""
    if switches.layers[number].connection.max_delay is None:
        return _Read(x, operands.linears[number].weights), None
    given = _sent(operands, number, x), x, operands, switches.layers[number].connection

    def arrive(sent: _Sent) -> tuple[tuple[Array, Array, Array], Any]:
        read, left = _arrive(sent, *given[1:])
        left = left if g_last.pending.shape[0] else g_last.pending
        return (_numbers(read.x), read.weights, left), read

    (_, _, left), pull_back, read = jax.vjp(arrive, given[0], has_aux=True)
    g_left = g_last.pending.astype(left.dtype)
    return read, lambda g, g_weights: pull_back((_numbers(g), g_weights, g_left))[0]


def _numbers(x: Array | SparseSpikes) -> Array:
    """The values of lists, or rows."""
    return cast(Array, x.values) if isinstance(x, SparseSpikes) else x


def _sent(operands: Operands, number: int, x: Array | SparseSpikes) -> _Sent:
    linear, values = operands.linears[number], _numbers(x).astype(operands.dtype)
    return _Sent(values, cast(Array, linear.delays), operands.first[number].pending, linear.weights)


def _arriving(
    operands: Operands, switches: Switches, number: int, x: Array | SparseSpikes
) -> tuple[_Read, Any]:
    """What arrives at a layer of the spikes `x`, and those then under way to it."""
    connection = switches.layers[number].connection
    if connection.max_delay is None:
        return _Read(x, operands.linears[number].weights), None
    return _arrive(_sent(operands, number, x), x, operands, connection)


def _arrive(
    sent: _Sent, x: Array | SparseSpikes, operands: Operands, connection: Connection
) -> tuple[_Read, Any]:
    """The same for the numbers `sent`; those of lists have the ids of `x`."""
    values, delays, pending, weights = sent
    most, num_neurons = cast(int, connection.max_delay), delays.shape[0]
    are_lists = isinstance(x, SparseSpikes)
    rows = as_dense(x.ids, values, num_neurons) if are_lists else values
    linear, first = Weighted(None, None, delays), LayerState(None, None, None, pending)
    received, left = delayed_inputs(operands, linear, rows, first, connection)
    fits = num_neurons <= _MOST_NEURONS and pending.shape[0] == 0
    if are_lists and fits and (most + 2) * x.capacity <= num_neurons:
        return _Read(_later(x.ids, values, delays, most), _shared(weights, delays)), left
    return _Read(received, weights), left


def _later(ids: Array, values: Array, delays: Array, most: int) -> SparseSpikes:
    """Lists ``[time, batch, (most + 2) * capacity]`` of what arrives of these ones, for the weights of `_shared`.

    An arrival with a share of 0 is listed as well: the derivative by its delay is that of the split.
    """
    num_neurons = delays.shape[0]
    none = 2 * num_neurons
    inside, ids = in_range(ids, num_neurons)[None], ids.astype(jnp.int32)[None]
    whole_steps = jnp.where(inside, jnp.floor(delays)[jnp.minimum(ids, num_neurons - 1)], most + 2)
    since = jnp.arange(most + 2, dtype=delays.dtype)[:, None, None, None]  # steps since they were sent
    arriving = jnp.where(since == whole_steps, 2 * ids, none)
    arriving = jnp.where(since == whole_steps + 1, 2 * ids + 1, arriving)
    values = jnp.broadcast_to(values[None], arriving.shape)
    return without_counts(_in_turn(arriving, none), _in_turn(values, 1), none)


def _shared(weights: Array, delays: Array) -> Array:
    """Row by row the weights for the shares of spikes that arrive after whole steps, and for those a step later."""
    fraction = (delays - jnp.floor(jax.lax.stop_gradient(delays)))[:, None]
    later = fraction * weights
    later = jnp.where(
        jnp.isnan(later) & (fraction == 0), 0, later
    )  # of an infinite weight nothing arrives later
    now = jnp.where(jnp.isinf(weights), weights, weights - later)  # whose gradient needs no other product
    return jnp.stack([now, later], 1).reshape(-1, weights.shape[1])


def _in_turn(lists: Array, fill: int) -> Array:
    """The lists of each step, made of ``[steps since then, time, batch, capacity]``.

    Rows of time that have `fill` behind them become rows that are one step shorter: each is moved on by one more.
    """
    since, num_steps, batch, capacity = lists.shape
    padded = jnp.pad(lists, ((0, 0), (0, since), (0, 0), (0, 0)), constant_values=fill)
    width = num_steps + since - 1
    rows = padded.reshape(-1, batch, capacity)[: since * width].reshape(since, width, batch, capacity)
    return jnp.moveaxis(rows[:, :num_steps], 0, 3).reshape(num_steps, batch, capacity * since)


def _part(operands: Operands, switches: Switches, layers: slice, read: _Read) -> Operands:
    """Operands of a piece, or what has their form."""
    is_last = layers.stop == len(switches.layers)
    first, *others = operands.linears[layers]
    linears = first._replace(weights=read.weights), *others
    return operands._replace(
        inputs=read.x,
        linears=tuple(own._replace(delays=None) for own in linears),
        constants=operands.constants[layers],
        readout=operands.readout if is_last else None,
        first=tuple(own._replace(pending=None) for own in operands.first[layers]),
        first_readout=operands.first_readout if is_last else None,
    )


def _switches_of(switches: Switches, layers: slice) -> Switches:
    """Those of a piece, which yields the spikes of its last layer if another one reads them.

    The longest delay of its first layer says how many slots of its lists are used.
    """
    own = list(switches.layers[layers])
    if layers.stop < len(switches.layers):
        own[-1] = own[-1]._replace(records_spikes=True)
    return switches._replace(layers=tuple(own))


def _cotangents_of(g: Cotangents, switches: Switches, layers: slice, g_sent: Signal) -> Cotangents:
    """The cotangents of the results of a piece, of which `g_sent` are those of what it sends to the next one."""
    is_last = layers.stop == len(switches.layers)
    spikes = g.spikes[layers]
    return Cotangents(
        g.output if is_last else None,
        g.counts[layers],
        spikes if is_last else (*spikes[:-1], g_sent),
        tuple(own._replace(pending=None) for own in g.last[layers]),
        g.last_readout if is_last else None,
    )
