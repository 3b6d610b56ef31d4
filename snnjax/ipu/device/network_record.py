"""What an IPU keeps of a forward pass of `lif_network`, as the record that every backward pass reads, and back.

Membranes and lists stay on the tiles where the network left them. A record in the form of `Record` is made of them by
plain JAX, and they of it. Where both passes are in one program, `kept` finds what `keep` was given, and the plan drops
both conversions: nobody reads what they make.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree

from snnjax.ipu.device.core import (
    LIST_HEADER,
    BackwardArguments,
    LayerConstants,
    LayerOnTiles,
    LayerOverTime,
    LayerRecord,
    LayerRun,
    Needs,
    Neurons,
    Operands,
    Record,
    RecordOnTiles,
    SparseSpikes,
    Switches,
    as_dense,
    current_of,
    delayed_inputs,
    dense_inputs,
    id_dtype,
    named,
    neurons_of,
    record_of,
    run_of,
    unpacked,
    valid_steps,
)
from snnjax.ipu.lowering.rules.calls import KEEP, KEPT

# Of the neurons, each with an even number of them, for the workers of a tile (poplar_kernels/conventions.hpp).
_SHARES = LIST_HEADER["starts"] + 1
_HEADER = sum(LIST_HEADER.values())
_KEPT, _LISTED, *_ = range(len(LIST_HEADER))  # the first fields have one entry each


def shapes_on_tiles(operands: Operands, switches: Switches) -> RecordOnTiles:
    """The shapes of what the tiles keep, of operands with a groups axis."""
    groups, steps, batch = jax.tree.leaves(operands.inputs)[0].shape[:3]

    def timed(width: int, dtype: DTypeLike) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((groups, steps, batch, width), dtype)

    layers = []
    for number, (layer, first) in enumerate(zip(switches.layers, operands.first, strict=True)):
        neurons = first.v.shape[-1]
        slots = _slots(layer.capacity, neurons)
        layers.append(
            LayerOnTiles(
                timed(neurons, jnp.float32),
                timed(neurons, jnp.float32) if layer.needs_w or layer.records_current else None,
                timed(_HEADER + -(-slots // 4) * 4, jnp.uint16)
                if _fires_lists(operands, switches, number)
                else None,
            )
        )
    return RecordOnTiles(tuple(layers))


def _fires_lists(operands: Operands, switches: Switches, number: int) -> bool:
    """Whether somebody reads lists of a layer's spikes: this or the next layer, the readout, or the next piece."""
    following = switches.layers[number + 1 :]
    if following[0].connection.max_delay is None if following else operands.readout is not None:
        return True
    return operands.constants[number].recurrent is not None or switches.layers[number].capacity is not None


def _slots(capacity: int | None, neurons: int) -> int:
    return neurons if capacity is None else min(capacity, neurons)


def record_from(operands: Operands, switches: Switches, on_tiles: RecordOnTiles) -> Record:
    """The record of a forward pass that left this on the tiles."""
    x, layers = dense_inputs(operands, switches), []
    each = zip(operands.linears, neurons_of(operands, switches), on_tiles.layers, operands.first, strict=True)
    for linear, neurons, own, first in each:
        current, connection = None, neurons.switches.connection
        if neurons.switches.records_current:
            arriving, _ = delayed_inputs(operands, linear, x, first, connection)
            current = current_of(linear, arriving, connection)
        listed, spikes = None, None
        if own.lists is not None:
            listed, spikes = _marked(own.lists, neurons.switches.capacity, first.v.shape[-1])
        run = LayerRun(own.v, own.w, None if neurons.switches.capacity is None else listed)
        if spikes is None:
            x = neurons.listed_spikes(run, valid_steps(operands), operands.dtype)
        else:
            x = spikes.astype(operands.dtype)
        layers.append(LayerOverTime(neurons, current, run, x, first))
    return record_of(operands, layers)


def _marked(lists: Array, capacity: int | None, num_neurons: int) -> tuple[Array, Array]:
    """The neurons that are listed, and those of them that spike, bool ``[time, batch, neurons]``."""
    slots = _slots(capacity, num_neurons)
    ids = lists[..., _HEADER : _HEADER + slots]
    place = jax.lax.broadcasted_iota(jnp.int32, ids.shape, ids.ndim - 1)
    kept, listed = (lists[..., i : i + 1].astype(jnp.int32) for i in (_KEPT, _LISTED))
    numbers = (place < listed).astype(jnp.float32) + (place < kept).astype(jnp.float32)
    marks = as_dense(ids, numbers, num_neurons)
    return marks > 0, marks > 1


def sent_by(operands: Operands, switches: Switches, number: int, own: LayerOnTiles) -> Array | SparseSpikes:
    """The spikes that a layer sends to the next piece of the network: lists if it has a capacity, else rows."""
    neurons, num_neurons = neurons_of(operands, switches)[number], own.v.shape[-1]
    capacity = neurons.switches.capacity
    if capacity is None:
        return neurons.listed_spikes(LayerRun(own.v, own.w, None), valid_steps(operands), operands.dtype)
    slots = _slots(capacity, num_neurons)
    ids = own.lists[..., _HEADER : _HEADER + slots]
    ids = jnp.pad(ids, ((0, 0), (0, 0), (0, capacity - slots)), constant_values=num_neurons)
    place = jax.lax.broadcasted_iota(jnp.int32, ids.shape, ids.ndim - 1)
    values = (place < own.lists[..., _KEPT : _KEPT + 1].astype(jnp.int32)).astype(operands.dtype)
    return without_counts(ids, values, num_neurons)


def without_counts(ids: Array, values: Array, num_neurons: int) -> SparseSpikes:
    """Lists of which nobody reads the counts."""
    none: Any = None
    return SparseSpikes(ids, values, none, none, none, num_neurons)


def on_tiles_from(arguments: BackwardArguments, switches: Switches, needs: Needs) -> RecordOnTiles:
    """What the tiles would have kept of the forward pass with this record."""
    operands, valid, layers = arguments.operands, valid_steps(arguments.operands), []
    each = zip(
        arguments.record.layers,
        neurons_of(operands, switches),
        operands.first,
        needs.operands.constants,
        strict=True,
    )
    for number, (record, neurons, first, need) in enumerate(each):
        run = run_of(record, neurons, first, valid)
        reads_w = neurons.switches.needs_w or _learns(need)
        lists = _lists(record, neurons, run, valid) if _fires_lists(operands, switches, number) else None
        layers.append(LayerOnTiles(run.v, run.w if reads_w else None, lists))
    return RecordOnTiles(tuple(layers))


def _learns(need: LayerConstants) -> bool:
    """Whether cotangents of constants are wanted, which are computed together."""
    return any(jax.tree.leaves(need._replace(recurrent=None, second_threshold=None)))


def _lists(record: LayerRecord, neurons: Neurons, run: LayerRun, valid: Array | None) -> Array:
    """The lists ``[time, batch, entries]``: a header, spikes and other listed neurons by id, pads."""
    num_neurons = run.v.shape[-1]
    slots = _slots(neurons.switches.capacity, num_neurons)
    spikes = unpacked(record.spikes, num_neurons)
    listed = run.v > neurons.second_threshold(run) if run.listed is None else run.listed
    listed = spikes | (listed if valid is None else listed & valid[..., None])
    ids = jax.lax.broadcasted_iota(jnp.int32, spikes.shape, spikes.ndim - 1)
    # The largest keys are those of the spikes, by id, then those of the others; no key is that of two neurons.
    keys = jnp.where(spikes, 2 * num_neurons - ids, jnp.where(listed, num_neurons - ids, 0))
    found = jax.lax.top_k(keys, slots)[0]
    found = jnp.where(found > num_neurons, 2 * num_neurons, num_neurons) - found
    pads = jnp.full((*found.shape[:-1], -slots % 4), num_neurons, jnp.int32)
    kept, all_listed = (jnp.sum(marks, -1, keepdims=True, dtype=jnp.int32) for marks in (spikes, listed))
    share = -(-num_neurons // (2 * _SHARES)) * 2
    starts = (
        jnp.sum(spikes[..., : index * share], -1, keepdims=True, dtype=jnp.int32)
        for index in range(1, _SHARES)
    )
    return jnp.concatenate([kept, all_listed, kept, *starts, found, pads], -1).astype(id_dtype(0))


def keep(record: Record, on_tiles: PyTree) -> Record:
    """`record`, for which `kept` finds in the same program what it was made of."""
    first, *others = record.layers
    (marked,) = _call(KEEP, first.spikes, on_tiles, [first.spikes])
    return record._replace(layers=(first._replace(spikes=marked), *others))


def kept(record: Record, otherwise: PyTree) -> PyTree:
    """What `record` was made of in the same program, or `otherwise`."""
    leaves, tree = jax.tree.flatten(otherwise)
    return jax.tree.unflatten(tree, _call(KEPT, record.layers[0].spikes, otherwise, leaves))


def _call(target: str, key: Array, on_tiles: PyTree, results: Sequence[Array]) -> list[Array]:
    """The record is known by one of its arrays, and what it is made of by name."""
    arrays = named(on_tiles)
    shapes = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in results)
    call = jax.ffi.ffi_call(target, shapes, vmap_method="broadcast_all")
    return list(call(key, *arrays.values(), names=" ".join(arrays)))
