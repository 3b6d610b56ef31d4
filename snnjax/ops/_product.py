"""`Product`: the products of spikes with weights are one op, with a geometry that says which weights a spike meets."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._batching import SHARED
from snnjax._check import check_real_array, fail
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._quantised import refuse_gradient
from snnjax._sharding import gathered, vary_alike
from snnjax._sparse_spikes import SparseSpikes, check_spikes, gather, scatter, values_of
from snnjax._types import Signal, uint16_or_int32, upcast
from snnjax.ops._convolution import Convolution
from snnjax.ops._kernel_operands import call_kernel, dtype_obstacle
from snnjax.ops._tables.products import Operands, SpikesBackwardOperands, WeightsBackwardOperands

# Which operands have a batch axis.
_BATCHED = ("ids", "values", "spikes", "g")


class Sizes(NamedTuple):
    """The geometry of weights that say the rest themselves."""

    num_inputs: int
    num_outputs: int


# Which weights a spike meets; static.
Geometry = Sizes | Convolution


@dataclass(frozen=True, eq=False)
class Product:
    """A product, in plain JAX and by its kernels; all functions take operands of the table and the geometry.

    What they yield is rounded to the dtype of the weights.
    """

    op: str
    forward: Callable[[Operands, Any], Array]  # the definition
    spikes_backward: Callable[
        [SpikesBackwardOperands, Any], Array
    ]  # of slots or, without ids, of all neurons
    weights_backward: Callable[[WeightsBackwardOperands, Any], Array]
    numbers: Callable[[Any], Sequence[Any]] = lambda _: ()  # of a geometry, for the kernels
    # What the kernels read as weights, from an array with a groups axis or its shape
    as_read: Callable[[Any, Any], Any] = lambda weights, _: weights
    pays: Callable[[Any, Any], bool] = lambda *_: True  # whether a backward kernel does
    has_rows_kernel: bool = True  # for the gradient of rows; else it is plain JAX

    @functools.cached_property
    def targets(self) -> tuple[Target, Target, Target]:
        """The forward pass, and the backward passes to spikes and weights."""
        return (
            self._target("", self.forward),
            self._target("_spikes_backward", self.spikes_backward),
            self._target("_weights_backward", self.weights_backward),
        )

    def _target(self, which: str, function: Callable[[Any, Any], Array]) -> Target:
        name = f"snnjax_{self.op}{which}"

        def call(operands: Any, geometry: Any, results: Sequence[Any]) -> list[Array]:
            (result,), shape = results, results[0]
            if "weights" in operands._fields:
                operands = operands._replace(weights=self.as_read(operands.weights, geometry))
            else:
                shape = self.as_read(result, geometry)
            yielded = {_result_of(operands): shape}
            (out,) = call_kernel(name, operands, yielded, *([row] for row in self.numbers(geometry))).values()
            return [out.reshape(result.shape)]

        kernel = Kernel(call, _obstacle, self.pays) if which else Kernel(call, _obstacle)
        return Target(
            name, self.op, lambda *given: (function(*given).astype(_dtype(given[0])),), {"cpu": kernel}
        )


def _result_of(operands: Any) -> str:
    """The name of the result in the table."""
    if isinstance(operands, Operands):
        return "out"
    if isinstance(operands, WeightsBackwardOperands):
        return "g_weights"
    return "g_spikes" if operands.ids is None else "g_values"


def _obstacle(shapes: Any, _: Any) -> str | None:
    return dtype_obstacle("weights", shapes.weights if isinstance(shapes, Operands) else shapes.g)


def _dtype(operands: Any) -> Any:
    """That of the weights, which a cotangent has too."""
    return operands.weights.dtype if isinstance(operands, Operands) else operands.g.dtype


def neurons_of(op: str, spikes: Any) -> int:
    """Check lists or rows, and return their number of neurons."""
    if isinstance(spikes, SparseSpikes):
        check_spikes(op, "spikes", spikes)
        return spikes.num_neurons
    check_real_array(op, "spikes", spikes)
    if spikes.ndim == 0:
        fail(f"{op}: `spikes` must have a neuron axis, got a number. Add it, for instance spikes[None].")
    return spikes.shape[-1]


def multiply(
    product: Product,
    spikes: Signal,
    weights: Any,
    geometry: Geometry,
    structure: tuple[Any, Any] = (None, None),
    *,
    implementation: str | None,
) -> Array:
    """The product of arguments that were checked; `structure` are the ends and targets of synapses."""
    spikes, weights, structure = gathered((spikes, weights, structure))
    operands = vary_alike(Operands(*_as_rows(spikes, weights.dtype), weights, *structure))
    run: Any = _composed if implementation == "composed" else functools.partial(_evaluated, implementation)
    return run(operands, product, geometry).reshape(*spikes.shape[:-1], geometry.num_outputs)


def _as_rows(spikes: Any, dtype: DTypeLike) -> tuple[Any, Any, Any]:
    """The ids and values of lists, or dense rows, with one axis for all leading ones, and numbers of `dtype`."""

    def rows(array: Any) -> Any:  # also of NumPy
        return array.reshape(math.prod(spikes.shape[:-1]), array.shape[-1])

    if isinstance(spikes, SparseSpikes):
        return rows(uint16_or_int32(spikes.ids)), rows(values_of(spikes, dtype)), None
    return None, None, rows(spikes.astype(dtype))


def rows_of(operands: Any, geometry: Geometry) -> Array:
    """The spikes as rows; those of lists, which may be sums, in the accumulation dtype."""
    if operands.ids is None:
        return operands.spikes
    return scatter(operands.ids, upcast(operands.values), geometry.num_inputs)


def at_slots(g_rows: Array, operands: SpikesBackwardOperands) -> Array:
    """From the cotangents of all neurons those that are asked for."""
    return g_rows if operands.ids is None else gather(g_rows, operands.ids)


# Compiled once, not in each call outside jit.
@functools.partial(jax.jit, static_argnums=(1, 2))
def _composed(operands: Operands, product: Product, geometry: Any) -> Array:
    return product.forward(operands, geometry).astype(operands.weights.dtype)


def shared(weights: Any) -> Any:
    """That no array of the weights has a batch axis."""
    return jax.tree.map(lambda _: SHARED, weights)


def _evaluate(
    target: Target,
    operands: Any,
    shape: tuple[int, ...],
    axis: int,
    geometry: Any,
    implementation: str | None,
) -> Array:
    """The result of a target, of this shape and with the batch on this axis."""
    names = zip(operands._fields, operands, strict=True)
    parts = (None if part is None else 0 if name in _BATCHED else shared(part) for name, part in names)
    results = (jax.ShapeDtypeStruct(shape, _dtype(operands)),)
    axes = type(operands)(*parts)
    return evaluate(
        target, operands, axes, (axis,), geometry, results=results, implementation=implementation
    )[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 2, 3))
def _evaluated(implementation: str | None, operands: Operands, product: Product, geometry: Any) -> Array:
    count = next(array.shape[0] for array in (operands.ids, operands.spikes) if array is not None)
    shape = (count, geometry.num_outputs)
    return _evaluate(product.targets[0], operands, shape, 0, geometry, implementation)


def _fwd(implementation: str | None, operands: Operands, product: Product, geometry: Any) -> tuple[Any, Any]:
    refuse_gradient(product.op, operands.weights)
    return _evaluated(implementation, operands, product, geometry), operands


def _bwd(
    implementation: str | None, product: Product, geometry: Any, operands: Operands, g: Array
) -> tuple[Operands]:
    ids, values, spikes, weights, ends, targets = operands
    _, to_spikes, to_weights = product.targets
    back = SpikesBackwardOperands(ids, weights, ends, targets, g)
    if ids is None and not product.has_rows_kernel:
        g_sent = product.spikes_backward(back, geometry).astype(g.dtype)
    else:
        shape = (g.shape[0], geometry.num_inputs) if ids is None else ids.shape
        g_sent = _evaluate(to_spikes, back, shape, 0, geometry, implementation)
    given = WeightsBackwardOperands(ids, values, spikes, ends, targets, g)
    g_weights = _evaluate(to_weights, given, weights.shape, SHARED, geometry, implementation)
    sent = (None, None, g_sent) if ids is None else (None, g_sent, None)
    return (Operands(*sent, g_weights, None, None),)


_evaluated.defvjp(_fwd, _bwd)
