"""`spike_sparse_matmul`: the product of spikes, as lists or dense rows, with weights of the synapses that exist."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from snnjax._arguments import explained
from snnjax._batching import SHARED
from snnjax._check import check_shape, fail, short_repr
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._quantised import Quantised, check_weights, refuse_gradient, scaled
from snnjax._sharding import gathered, vary_alike
from snnjax._sparse_spikes import SparseSpikes, gather, scatter
from snnjax._synapses import Synapses, ends_and_targets, targets_or_beyond
from snnjax._types import accumulation_dtype, upcast
from snnjax.ops._kernel_operands import call_by_records, dtype_obstacle
from snnjax.ops._tables.spike_sparse_matmul import (
    Operands,
    Results,
    RowOperands,
    RowsBackwardOperands,
    RowsBackwardResults,
    RowsWeightsBackwardOperands,
    ValuesBackwardOperands,
    ValuesBackwardResults,
    WeightsBackwardOperands,
    WeightsBackwardResults,
)
from snnjax.ops.spike_matmul import as_rows, neurons_of, shared


@explained
def spike_sparse_matmul(
    spikes: SparseSpikes | Num[Array, "*axes neurons"],
    weights: Float[Array, " synapses"] | Quantised,
    synapses: Synapses,
    *,
    implementation: str | None = None,
) -> Float[Array, "*axes targets"]:
    """Send spikes through the synapses that exist; each spike adds the weights of its neuron to its targets.

    ``out[b, targets[s]] += spikes[b, i] * weights[s]`` for all synapses s of neuron i. It is `spike_matmul` with the
    matrix ``synapses.to_dense(weights)``, which is never made: the compiled kernels read the synapses of neurons that
    spike and no others.

    An entry with value 0 adds nothing whatever its weights; in lists, ids outside ``[0, neurons)`` contribute nothing
    and duplicates add up. The backward pass is exact: ``dweights[s] = sum_b spikes[b, i] * g[b, targets[s]]``, and a
    spike receives the sum of ``weights[s] * g[b, targets[s]]`` over its synapses; so does a listed entry of value 0,
    and no neuron that is not listed.

    Args:
        spikes: lists with any leading axes, or an array with the neurons on its last axis.
        weights: one for each synapse; their dtype is the dtype of the result, and sums are computed in float32
            (float64 for float64). Of `quantisation.Quantised` ones int8 is read, and sums scaled once by target; those
            of spikes are exact.
        synapses: which synapses exist. They have no gradient.
        implementation: None chooses automatically; "reference" forces the jnp reference, which costs as much as if all
            neurons spiked; "cpu" forces the compiled kernel or raises; "composed" is plain jnp with forward mode and
            second-order derivatives.

    Raises:
        ValueError: if the weights or spikes do not fit the synapses, or the weights are not floating, and for an
            implementation that is unknown or unavailable; for a gradient with quantised weights.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import Synapses, spike_sparse_matmul
        >>> synapses = Synapses.from_mask(jnp.array([[True, False, True], [False, False, True]]))
        >>> spike_sparse_matmul(jnp.array([[1, 1], [0, 1]]), jnp.array([0.5, 1.5, 2.5]), synapses)
        Array([[0.5, 0. , 4. ],
               [0. , 0. , 2.5]], dtype=float32)
    """
    _check_arguments(spikes, weights, synapses)
    spikes, weights, synapses = gathered((spikes, weights, synapses))
    record: Any = Operands if isinstance(spikes, SparseSpikes) else RowOperands
    rows = as_rows(spikes, weights.dtype)
    operands = vary_alike(record(*rows, weights, *ends_and_targets(synapses)))
    out: Any
    if implementation == "composed":
        out = _composed(operands, synapses.num_targets)[0]
    else:
        out = _multiply(operands, synapses.num_targets, implementation)
    return out.reshape(*spikes.shape[:-1], synapses.num_targets)


def _check_arguments(spikes: Any, weights: Any, synapses: Any) -> None:
    op = "spike_sparse_matmul"
    num_neurons = neurons_of(op, spikes)
    if not isinstance(synapses, Synapses):
        hint = "Make them with Synapses.from_mask, for instance"
        fail(f"{op}: `synapses` must be Synapses, got {short_repr(synapses)}. {hint}.")
    check_weights(op, "weights", weights, synapses.num_targets)
    check_shape(op, "weights", weights, (synapses.num_synapses,), "synapses", "Pass one for each synapse")
    hint = f"Make synapses of {num_neurons} neurons"
    check_shape(op, "synapses.ends", synapses.ends, (num_neurons,), "neurons", hint)


def _structure(operands: Any, num_targets: int) -> tuple[Array, Array]:
    """The neuron before and behind each synapse, int32."""
    synapses = Synapses(operands.ends, operands.targets, num_targets)
    return synapses.sources(), targets_or_beyond(synapses)


def _at(row: Array, neurons: Array) -> Array:
    """What a row holds of the neuron of each synapse, 0 where there is none."""
    return jnp.take(row, neurons, mode="fill", fill_value=0)


def _dense(operands: Any) -> Array:
    """The spikes as rows in the accumulation dtype, from lists or rows."""
    if hasattr(operands, "ids"):
        return scatter(operands.ids, upcast(operands.values), operands.ends.shape[0])
    return upcast(operands.spikes)


def _reference(operands: Operands | RowOperands, num_targets: int) -> tuple[Array]:
    if isinstance(operands.weights, Quantised):
        numbers = operands.weights.values.astype(accumulation_dtype(operands.weights.dtype))
        (sums,) = _reference(operands._replace(weights=numbers), num_targets)
        return (scaled(sums, upcast(operands.weights.scale)).astype(operands.weights.dtype),)
    sources, targets = _structure(operands, num_targets)
    weights = upcast(operands.weights)

    def one(row: Array) -> Array:
        """Row by row: all rows at once would take memory for each synapse of each."""
        sent = _at(row, sources)
        # An entry of 0 adds nothing whatever its weights, but has a derivative.
        sent = jnp.where((sent != 0) | jnp.isfinite(weights), sent * weights, 0)
        return jnp.zeros(num_targets, weights.dtype).at[targets].add(sent, mode="drop")

    return (jax.lax.map(one, _dense(operands)).astype(operands.weights.dtype),)


def synaptic_product(rows: Array, weights: Any, synapses: Synapses) -> Array:
    """The currents of dense rows of spikes in the accumulation dtype, in plain jnp."""
    wide = weights.astype(accumulation_dtype(weights.dtype))
    return _reference(RowOperands(rows, wide, synapses.ends, synapses.targets), synapses.num_targets)[0]


def synaptic_cotangents(rows: Array, weights: Array, synapses: Synapses, g: Array) -> tuple[Array, Array]:
    """The cotangents of the rows and the weights of `synaptic_product`."""
    structure = synapses.ends, synapses.targets
    (g_rows,) = _rows_backward(RowsBackwardOperands(weights, *structure, g), ())
    (g_weights,) = _weights_backward(RowsWeightsBackwardOperands(rows, *structure, g), ())
    return g_rows.astype(rows.dtype), g_weights.astype(weights.dtype)


# Compiled once, not in each call outside jit.
_composed = jax.jit(_reference, static_argnums=1)


def _spikes_backward(operands: Any, num_neurons: int) -> Array:
    """``dspikes[b, i]``: the sum of ``weights[s] * g[b, targets[s]]`` over the synapses of neuron i."""
    sources, targets = _structure(operands, operands.g.shape[-1])
    weights = upcast(operands.weights)

    def one(g: Array) -> Array:
        products = weights * _at(g, targets)
        return jnp.zeros(num_neurons, weights.dtype).at[sources].add(products, mode="drop")

    return jax.lax.map(one, upcast(operands.g))


def _values_backward(operands: ValuesBackwardOperands, _: tuple[()]) -> tuple[Array]:
    g_spikes = _spikes_backward(operands, operands.ends.shape[0])
    return (gather(g_spikes, operands.ids).astype(operands.g.dtype),)


def _rows_backward(operands: RowsBackwardOperands, _: tuple[()]) -> tuple[Array]:
    return (_spikes_backward(operands, operands.ends.shape[0]).astype(operands.g.dtype),)


def _weights_backward(
    operands: WeightsBackwardOperands | RowsWeightsBackwardOperands, _: tuple[()]
) -> tuple[Array]:
    """``dweights[s]``: the sum of ``spikes[b, i] * g[b, targets[s]]`` over the rows."""
    sources, targets = _structure(operands, operands.g.shape[-1])
    rows = _dense(operands), upcast(operands.g)

    def add(total: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
        sent = _at(row[0], sources)
        return total + jnp.where(sent != 0, sent * _at(row[1], targets), 0), None

    start = vary_alike((jnp.zeros(targets.shape, rows[1].dtype), rows))[0]
    return (jax.lax.scan(add, start, rows)[0].astype(operands.g.dtype),)


def _calls(target: str, record: Any) -> Any:
    """How the kernel of a target is called."""

    def call(operands: Any, _: Any, results: Any) -> list[Array]:
        return call_by_records(target, operands, record(*results))

    return call


def _obstacle(shapes: Any, _: Any) -> str | None:
    return dtype_obstacle("weights", shapes.weights)


def _gradient_obstacle(shapes: Any, _: Any) -> str | None:
    return dtype_obstacle("weights", shapes.g)  # which has their dtype


def _target(name: str, reference: Any, record: Any, obstacle: Any = _obstacle) -> Target:
    name = f"snnjax_spike_sparse_matmul{name}"
    return Target(name, "spike_sparse_matmul", reference, {"cpu": Kernel(_calls(name, record), obstacle)})


_FORWARD = _target("", _reference, Results)
_ROWS = _target("_rows", _reference, Results)
_VALUES_BACKWARD = _target("_values_backward", _values_backward, ValuesBackwardResults)
_ROWS_BACKWARD = _target("_rows_backward", _rows_backward, RowsBackwardResults)
_WEIGHTS_BACKWARD = _target(
    "_weights_backward", _weights_backward, WeightsBackwardResults, _gradient_obstacle
)
_ROWS_WEIGHTS_BACKWARD = _target(
    "_rows_weights_backward", _weights_backward, WeightsBackwardResults, _gradient_obstacle
)
# Which operands have a batch axis.
_BATCHED = ("ids", "values", "spikes", "g")


def _evaluate(
    target: Target, operands: Any, result_axis: int, static: Any, implementation: str | None
) -> Array:
    axes = type(operands)(
        *(
            0 if name in _BATCHED else shared(part)
            for name, part in zip(operands._fields, operands, strict=True)
        )
    )
    return evaluate(target, operands, axes, (result_axis,), static, implementation=implementation)[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _multiply(operands: Any, num_targets: int, implementation: str | None) -> Array:
    target = _FORWARD if isinstance(operands, Operands) else _ROWS
    return _evaluate(target, operands, 0, num_targets, implementation)


def _fwd(operands: Any, num_targets: int, implementation: str | None) -> tuple[Array, Any]:
    refuse_gradient("spike_sparse_matmul", operands.weights)
    out: Any = _multiply(operands, num_targets, implementation)
    return out, operands


def _bwd(num_targets: int, implementation: str | None, operands: Any, g: Array) -> tuple[Any]:
    del num_targets
    weights, structure = operands.weights, (operands.ends, operands.targets)
    if isinstance(operands, Operands):
        back: Any = ValuesBackwardOperands(operands.ids, weights, *structure, g)
        g_values = _evaluate(_VALUES_BACKWARD, back, 0, (), implementation)
        back = WeightsBackwardOperands(operands.ids, operands.values, *structure, g)
        g_weights = _evaluate(_WEIGHTS_BACKWARD, back, SHARED, (), implementation)
        return (Operands(None, g_values, g_weights, None, None),)
    g_spikes = _evaluate(_ROWS_BACKWARD, RowsBackwardOperands(weights, *structure, g), 0, (), implementation)
    back = RowsWeightsBackwardOperands(operands.spikes, *structure, g)
    g_weights = _evaluate(_ROWS_WEIGHTS_BACKWARD, back, SHARED, (), implementation)
    return (RowOperands(g_spikes, g_weights, None, None),)


_multiply.defvjp(_fwd, _bwd)
