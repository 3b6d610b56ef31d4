"""Which of snnjax's own ops the IPU has codelets for; `snnjax._platforms` asks when it lowers one for the IPU."""

import functools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from snnjax.ipu.device import network_cost, network_pieces
from snnjax.ipu.device.core import (
    IN_ROUNDS,
    WITHOUT_LOOP,
    BackwardArguments,
    BackwardOnTiles,
    ForwardOnTiles,
    Kernel,
    LayerConstants,
    Needs,
    Sizes,
    Surrogate,
    Switches,
    Target,
    as_kernel_reads,
    backward,
    call_for_cotangents,
    call_forward,
    differentiable,
    forward,
    named,
    result_shapes,
)
from snnjax.ipu.device.core import Operands as NetworkOperands
from snnjax.ipu.device.network_record import keep, kept, on_tiles_from, record_from, shapes_on_tiles
from snnjax.ipu.lowering.rules.calls import TIGHT, TRANSPOSED

_IN_ROUNDS, _WITHOUT_COPIES, _OTHER_FORM = TIGHT
_DTYPES = ("float32", "float16")
_UNKNOWN = ("bfloat16", "float64", "int8")
NOTE = (
    f"on ipu: codelets take weights of {' and '.join(_DTYPES)}; others, such as bfloat16 and int8, "
    "run on the references, which multiply densely"
)
# Of the memory of a chip's tiles: an op on codelets whose operands and results take less is far from not fitting.
_SURELY_FITS, _BYTES_OF_TILE = 1 / 16, 638_976
# Ids in lists have 16 bits on the tiles, and the largest id marks an unused slot.
_MAX_WIDTH = 65_534


@functools.cache
def kernel(target: Target) -> Kernel | None:
    """The custom call of a target that has codelets: that of the CPU, unless it has none or an own one."""
    op = target.name.removeprefix("snnjax_").removesuffix("_backward")
    if op not in _OBSTACLES:
        return None
    call = _CALLS[target.name] if target.name in _CALLS else target.kernels["cpu"].call
    obstacle = functools.partial(_obstacle, target.name, _OBSTACLES[op])
    pays = _PAYS.get(op, _always)
    return Kernel(call, obstacle, pays, takes_groups=False, either=_whichever_fits)


def reference(target: Target) -> Callable[..., PyTree] | None:
    """The form in which a reference runs: of `lif_network` with hardly a loop, and with membranes left on the tiles."""
    return _REFERENCES.get(target.name)


def _whichever_fits(
    codelets: Callable[[], PyTree], reference: Callable[[], PyTree], pays: bool, arrays: Sequence[Any]
) -> PyTree:
    """The faster form of an op, or the other one if the program does not fit on the tiles with it."""
    faster, other = (codelets, reference) if pays else (reference, codelets)
    # The reference takes long to trace, for nothing where the program surely fits.
    size = sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)
    if pays and size < _SURELY_FITS * network_cost.TILES * _BYTES_OF_TILE:
        return codelets()
    return jax.lax.cond(_is_tight(_OTHER_FORM), other, faster)


def _is_tight(target: str) -> Array:
    """Whether it does not, which the plan knows (`lowering.rules.calls`)."""
    return jax.ffi.ffi_call(target, jax.ShapeDtypeStruct((), bool))()


def _always(shapes: object, static: object) -> bool:
    del shapes, static
    return True


def _network_pays(shapes: PyTree, static: PyTree) -> bool:
    """Both passes decide alike: the record of each form can be read, but at a cost."""
    is_backward = isinstance(shapes, BackwardArguments)
    return network_cost.pays(*((shapes.operands, static[0]) if is_backward else (shapes, static)))


def _product_pays(shapes: PyTree, static: object) -> bool:
    del static
    (_, rows, _), (_, num_neurons, num_outputs) = shapes.ids.shape, shapes.weights.shape
    return 9.4 * shapes.ids.size <= 3e3 + num_neurons * (num_outputs / 400 + 0.16 * rows)


def _slots_pay(shapes: PyTree, static: object) -> bool:
    del static
    return shapes.ids.size <= 40 + shapes.weights.size / 47_000


def _weights_pay(shapes: PyTree, sizes: Sizes) -> bool:
    return shapes.ids.size <= 26 + math.prod(sizes) / 146_000


def _obstacle(
    target: str, find: Callable[[str, Any, Any], str | None], shapes: PyTree, static: Hashable
) -> str | None:
    """Why the codelets do not support operands of these shapes (with a groups axis), or None."""
    wrong = [array.dtype.name for array in _arrays(shapes) if array.dtype.name in _UNKNOWN]
    return f"{wrong[0]} arrays" if wrong else find(target, shapes, static)


def _of_product(target: str, shapes: PyTree, static: object) -> str | None:
    del target, static
    return "spikes as rows" if shapes.ids is None else _of_sizes(shapes)


def _of_surrogate(surrogate: Surrogate) -> str | None:
    return surrogate.obstacle or ("a surrogate with a cutoff" if surrogate.cutoff > 0 else None)


def _of_selection(target: str, shapes: PyTree, static: PyTree) -> str | None:
    thresholds = [shapes.threshold] + ([] if target.endswith("_backward") else [shapes.second_threshold])
    if any(threshold.ndim == 3 for threshold in thresholds):
        return "a threshold of each row and neuron"
    return _of_sizes(shapes) or _of_surrogate(static.surrogate)


def _of_sizes(shapes: PyTree) -> str | None:
    return "arrays without elements" if any(array.size == 0 for array in _arrays(shapes)) else None


def _arrays(shapes: PyTree) -> Iterator[Any]:
    return (leaf for leaf in jax.tree.leaves(shapes) if hasattr(leaf, "dtype"))


def _of_network(target: str, shapes: PyTree, static: PyTree) -> str | None:
    """The forward and the backward pass decide alike, because one reads what the other records."""
    is_backward = target.endswith("_backward")
    operands, switches = (shapes.operands, static[0]) if is_backward else (shapes, static)
    if operands.has_currents:
        return "given currents"
    dtype = operands.dtype.name
    if dtype not in _DTYPES:
        return f"{dtype} weights"
    connections = (*(layer.connection for layer in switches.layers), switches.readout)
    if any(each.parts for each in connections):
        return "convolutions and pools"
    if dtype == "float16" and any(each.max_delay is not None for each in connections):
        return "delays of float16 spikes"  # which are split in float32
    if any(each.recurrent_ends is not None for each in operands.constants):
        return "sparse recurrent weights"
    if any(each.glif.refractory is not None for each in operands.constants):
        return "refractory periods"
    for layer in switches.layers:
        if layer.recurrent_delay is not None:
            return "recurrent delays"
        if wrong := _of_surrogate(layer.surrogate):
            return wrong
    if any(layer.rounds_record for layer in switches.layers) and (is_backward or switches.keeps_record):
        return "membranes recorded in bfloat16"
    hidden = switches.layers[:-1] if operands.readout is None else switches.layers
    records = any(own.records_spikes for own in hidden)
    if records and (is_backward or switches.keeps_record):
        return "recorded spikes in a gradient"
    return _of_widths(operands)


def _of_widths(operands: NetworkOperands) -> str | None:
    first = next(_arrays(operands.inputs))
    widths = [linear.weights.shape[1:] for linear in operands.linears]
    if operands.readout is not None:
        widths.append(operands.readout.linear.weights.shape[1:])
    if 0 in (*first.shape[1:], *(math.prod(each) for each in widths)):
        return "an axis of length 0"
    if max(max(each) for each in widths) > _MAX_WIDTH:
        return f"more than {_MAX_WIDTH} neurons in a layer"
    return None


# The matrix unit multiplies all neurons, but many rows at once: with more slots than these it is modelled faster.
# Fitted to 20 products with lists, of 65 thousand to 16.8 million weights on 1,472 tiles.
_PAYS: dict[str, Callable[[Any, Any], bool]] = {
    "spike_matmul": _product_pays,
    "spike_matmul_spikes": _slots_pay,
    "spike_matmul_weights": _weights_pay,
    "lif_network": _network_pays,
}
_OBSTACLES: dict[str, Callable[[str, Any, Any], str | None]] = {
    "spike_matmul": _of_product,
    "spike_matmul_spikes": _of_product,
    "spike_matmul_weights": _of_product,
    "select_spikes": _of_selection,
    "lif_network": _of_network,
}


def _call_network(
    operands: NetworkOperands, switches: Switches, results: Sequence[jax.ShapeDtypeStruct]
) -> list[Array]:
    """The forward pass of one group, and the record made of what stays on the tiles."""
    network = _of_one_group(operands)
    yielded, record = network_pieces.forward(network, switches, _call_piece), None
    if yielded.record is not None:
        record = keep(record_from(network, switches, yielded.record), _as_group(yielded.record))
    leaves = jax.tree.leaves((yielded.results, record))
    # What nobody reads has no rows.
    return [leaf[None, : shape.shape[1]] for leaf, shape in zip(leaves, results, strict=True)]


def _call_piece(operands: NetworkOperands, switches: Switches) -> ForwardOnTiles:
    grouped, plain = _as_group(operands), result_shapes(operands, switches).results
    of_group = jax.tree.map(lambda shape: jax.ShapeDtypeStruct((1, *shape.shape), shape.dtype), plain)
    shapes = ForwardOnTiles(of_group, shapes_on_tiles(grouped, switches) if switches.keeps_record else None)
    called = call_forward(grouped, switches, named(shapes))
    return _of_one_group(jax.tree.unflatten(jax.tree.structure(shapes), list(called.values())))


def _call_network_backward(
    arguments: BackwardArguments, static: tuple[Switches, Needs], results: Sequence[jax.ShapeDtypeStruct]
) -> list[Array]:
    """The backward pass of one group, on what stayed on the tiles, or as its record says."""
    switches, needs = static
    own, readout = _of_one_group(arguments), needs.operands.readout
    on_tiles = kept(own.record, _as_group(on_tiles_from(own, switches, needs)))
    learns_readout = readout is not None and (readout.decay or readout.gain)
    given = own._replace(
        results=own.results._replace(output=own.results.output if learns_readout else None),
        g=own.g if needs.counts else own.g._replace(counts=()),
    )
    cotangents = network_pieces.backward(given, static, _of_one_group(on_tiles), _call_piece_backward)
    leaves = jax.tree.leaves(cotangents)
    return [leaf[None].astype(shape.dtype) for leaf, shape in zip(leaves, results, strict=True)]


def _call_piece_backward(
    arguments: BackwardOnTiles, needed: NetworkOperands, switches: Switches
) -> NetworkOperands:
    operands, grouped = arguments.operands, _as_group(arguments)
    asked = differentiable(needed, operands)
    read = grouped._replace(operands=as_kernel_reads(grouped.operands, switches))
    leaves, tree = jax.tree.flatten(differentiable(grouped.operands, operands))
    shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    called = call_for_cotangents(grouped.operands, read, asked, switches, shapes)
    return _of_one_group(jax.tree.unflatten(tree, called))


def _as_group(tree: PyTree) -> PyTree:
    """Arrays with a groups axis."""
    return jax.tree.map(lambda array: array[None], tree)


def _of_one_group(tree: PyTree) -> PyTree:
    """Arrays without their groups axis, which has length 1."""
    return jax.tree.map(lambda array: jnp.squeeze(array, 0), tree)


def _forward(operands: NetworkOperands, switches: Switches) -> PyTree:
    run = functools.partial(forward, operands, switches, keep=keep)
    return _in_fitting_loops(run, operands)


def _backward(arguments: BackwardArguments, static: tuple[Switches, Needs]) -> PyTree:
    operands = _with_transposed(arguments.operands)
    run = functools.partial(backward, arguments._replace(operands=operands), static, kept=kept)
    return _in_fitting_loops(run, operands)


def _with_transposed(operands: NetworkOperands) -> NetworkOperands:
    """Operands whose recurrent weights lie as the backward pass multiplies by them, in each step.

    They lie as the forward pass reads them, and a product with their transpose takes about twice as long.
    """
    constants = tuple(
        own._replace(recurrent=_transposed(own.recurrent)) if _multiplies_in_steps(own) else own
        for own in operands.constants
    )
    return operands._replace(constants=constants)


def _multiplies_in_steps(constants: LayerConstants) -> bool:
    """Whether each step has a product with recurrent weights as they are given; others than float32 are converted."""
    weights, is_sparse = constants.recurrent, constants.recurrent_ends is not None
    is_dense = isinstance(weights, Array) and not is_sparse and constants.synaptic_delays is None
    return is_dense and weights.dtype == jnp.float32


def _transposed(weights: Array) -> Array:
    """The same weights, whose transpose lies in memory of its own, if that fits."""
    turned = jax.ShapeDtypeStruct(weights.shape[::-1], weights.dtype)
    call = jax.ffi.ffi_call(TRANSPOSED, turned, vmap_method="sequential")
    return jax.lax.cond(_is_tight(_WITHOUT_COPIES), lambda: weights, lambda: call(weights).T)


def _in_fitting_loops(run: Callable[..., PyTree], operands: NetworkOperands) -> PyTree:
    """Without a loop, if that fits: the exchanges of all steps of a recurrent layer take code on each tile."""
    if all(each.recurrent is None for each in operands.constants):
        return run(loops=WITHOUT_LOOP)
    tight = _is_tight(_IN_ROUNDS)
    return jax.lax.cond(tight, lambda: run(loops=IN_ROUNDS), lambda: run(loops=WITHOUT_LOOP))


_REFERENCES: dict[str, Callable[..., PyTree]] = {
    "snnjax_lif_network": _forward,
    "snnjax_lif_network_backward": _backward,
}
# On the CPU records of networks have another form.
_CALLS: dict[str, Callable[..., Any]] = {
    "snnjax_lif_network": _call_network,
    "snnjax_lif_network_backward": _call_network_backward,
}
