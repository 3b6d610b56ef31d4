"""`select_spikes`: short lists of the neurons that spike, or nearly do, from their membranes."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree

from snnjax._arguments import explained
from snnjax._batching import SHARED, any_group
from snnjax._check import check_float_array, check_integer, check_no_nan, check_number, fail
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import gathered, vary_alike
from snnjax._sparse_spikes import SparseSpikes, beyond, gather, in_range, list_ids, scatter
from snnjax._types import hash_of, id_dtype, upcast
from snnjax.ops._kernel_operands import call_by_records, obstacle_of, surrogate_numbers
from snnjax.ops._tables.select_spikes import (
    BackwardOperands,
    BackwardResults,
    Operands,
    Results,
    Rows,
    SurrogateNumbers,
)
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate, as_surrogate

# The default second threshold lies below the threshold by this share of its distance from rest.
_BAND = 0.1
# Up to so many neurons, each of a row is compared with each: on a GPU a few microseconds by its peak, not measured.
_MOST_RANKED = 1024


class Selection(NamedTuple):
    """The static part of `select_spikes`."""

    capacity: int
    surrogate: Surrogate


@explained
def select_spikes(
    v: Float[Array, "*axes neurons"],
    threshold: Float[ArrayLike, "..."],
    second_threshold: Float[ArrayLike, "..."],
    *,
    capacity: int,
    surrogate: str | Surrogate = "superspike",
    implementation: str | None = None,
) -> SparseSpikes:
    """List the neurons above the threshold, and those above the second threshold for their gradient.

    ``values`` is ``[v > threshold]`` at the listed ids: first the spikes, then the neurons with
    ``second_threshold < v <= threshold``, each group sorted by id. If there are more than `capacity`, spikes take
    precedence, then larger membranes; ties are broken by a fixed hash of the id, so that no position is favoured. The
    list of a row depends only on that row. A NaN neither spikes nor is listed.

    The gradient is ``dv[id] = surrogate.derivative(v - threshold) * dvalues`` at the listed ids and 0 elsewhere,
    and its negative sum for the threshold; the second threshold has none.

    Args:
        v: membranes.
        threshold: scalar, ``[neurons]`` or the shape of `v`.
        second_threshold: of the same form; ``-inf`` lists everything that fits. It may be traced.
        capacity: slots in a list, 0 or more; those beyond the number of neurons are never used.
        surrogate: replaces ``ds/dv``.
        implementation: None chooses automatically; "reference" forces the jnp reference; "cpu" forces the compiled
            kernel or raises; "composed" is plain jnp with forward mode and second-order derivatives.

    Returns:
        `SparseSpikes` with the leading axes of `v`; its values have the dtype of `v`.

    Raises:
        ValueError: if shapes do not match, a dtype is not floating-point, the capacity is negative, or the surrogate or
            the implementation is unknown or unavailable.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import select_spikes
        >>> spikes = select_spikes(jnp.array([0.5, 1.2, 0.95, 2.0]), 1.0, 0.9, capacity=4)
        >>> spikes.ids, spikes.values
        (Array([1, 3, 2, 4], dtype=uint16), Array([1., 1., 0., 0.], dtype=float32))

    Reference:
        Finkbeiner et al. 2024, arXiv:2311.04386 (two thresholds, capped lists).
    """
    check_float_array("select_spikes", "v", v)
    if v.ndim == 0:
        fail("select_spikes: `v` must have a neuron axis, got a scalar. Pass v[neurons].")
    capacity = check_integer("select_spikes", "capacity", capacity, 0)
    check_no_nan("select_spikes", "second_threshold", second_threshold, "Pass -inf to list all that fit")
    v, threshold, second_threshold = gathered((v, threshold, second_threshold))
    selection = Selection(int(capacity), as_surrogate("select_spikes", surrogate))
    flat = v.reshape(math.prod(v.shape[:-1]), v.shape[-1])
    thresholds = [
        _rows(name, value, v)
        for name, value in (("threshold", threshold), ("second_threshold", second_threshold))
    ]
    operands = vary_alike(Operands(flat, *thresholds))
    lists: Any = (
        _composed(operands, selection)
        if implementation == "composed"
        else _select_spikes(operands, selection, implementation)
    )
    axes = v.shape[:-1]
    ids, values = _constant(lists.ids).reshape(*axes, capacity), lists.values.reshape(*axes, capacity)
    num_spikes, num_listed = (_constant(each).reshape(axes) for each in (lists.num_spikes, lists.num_listed))
    counts = num_spikes, num_listed, beyond(num_spikes, capacity)
    return SparseSpikes(ids, values, *counts, v.shape[-1])


def _constant(numbers: Array) -> Array:
    """The same integers, which JAX then knows to have no derivative.

    Those of a function with a rule of its own have a tangent without numbers, whose cotangent JAX does not divide into
    steps in the backward pass of a scan: it fails where a scan over steps returns lists that something else reads.
    """
    return jax.lax.bitcast_convert_type(numbers, numbers.dtype)


def usual_second_threshold(threshold: Array, rest: float = 0.0) -> Array:
    """``threshold - 0.1 |threshold - rest|``, nine tenths of the way from rest to threshold; no gradient."""
    fixed = upcast(jax.lax.stop_gradient(threshold))
    return (fixed - _BAND * jnp.abs(fixed - rest)).astype(threshold.dtype)


def _rows(argument: str, value: ArrayLike, v: Array) -> Array:
    """A threshold as ``[1]``, ``[neurons]`` or ``[rows, neurons]``, in the dtype of `v`."""
    check_number("select_spikes", argument, value)
    array = jnp.asarray(value, v.dtype)
    if array.shape not in ((), (1,), v.shape[-1:], v.shape):
        expected = f"be a scalar, or have shape {list(v.shape[-1:])} or the shape of v, {list(v.shape)}"
        actual, hint = list(array.shape), "Broadcast it to the shape of v"
        fail(f"select_spikes: `{argument}` must {expected}, got {actual}. {hint}.")
    if array.ndim == 0:
        return array.reshape(1)
    return array if array.ndim == 1 else array.reshape(math.prod(v.shape[:-1]), v.shape[-1])


def candidates(v: Array, threshold: Array, second_threshold: Array) -> tuple[Array, Array]:
    """Bool masks of the neurons that spike, and of those that do not but are above the second threshold."""
    spikes = v > threshold
    return spikes, (v > second_threshold) & ~spikes


def cap(v: Array, spikes: Array, near: Array, capacity: int) -> tuple[Array, Array]:
    """The masks ``[rows, neurons]`` of `candidates`, limited to `capacity` neurons per row as in `select_spikes`."""
    if capacity >= v.shape[-1]:
        return spikes, near
    both = functools.partial(_shorten, v, spikes, near, capacity)
    return jax.lax.cond(_overflows(spikes | near, capacity), both, lambda: (spikes, near))


def _overflows(among: Array, capacity: int) -> Array:
    return any_group(jnp.sum(among, axis=-1, dtype=jnp.int32) > capacity)


def _shorten(v: Array, spikes: Array, near: Array, capacity: int) -> tuple[Array, Array]:
    """The spikes with the largest membranes, and then so many of those near that there are `capacity` in a row."""
    slots = jnp.full(v.shape[:1], capacity, jnp.int32)
    most = functools.partial(_largest, v, spikes, slots, capacity)
    spikes = jax.lax.cond(_overflows(spikes, capacity), most, lambda: spikes)
    return spikes, _largest(v, near, slots - jnp.sum(spikes, axis=-1, dtype=jnp.int32), capacity)


def cap_by_ranks(v: Array, spikes: Array, near: Array, capacity: int) -> tuple[Array, Array]:
    """`cap` without a conditional: each neuron counts those that come before it, which is cheap for few neurons."""
    if not capacity < v.shape[-1] <= _MOST_RANKED:
        return cap(v, spikes, near, capacity)
    place = jnp.asarray(np.argsort(_hash_order(v.shape[-1])).astype(np.int32))
    # A key is larger or smaller than that of another neuron, and thus in the order of `top_k`, also for -0 and 0.
    keys = [spikes.astype(jnp.int32), _in_order(upcast(v)), jnp.broadcast_to(-place, v.shape)]
    before = jnp.zeros((), bool)
    for key in reversed(keys):
        own, other = key[:, :, None], key[:, None, :]
        before = (other > own) | ((other == own) & before)
    among = spikes | near
    kept = jnp.sum(before & among[:, None, :], axis=-1, dtype=jnp.int32) < capacity
    return spikes & kept, near & kept


def cap_by_lists(v: Array, threshold: Array, second_threshold: Array, capacity: int) -> Array:
    """The mask ``[rows, neurons]`` of the neurons in the lists of `select_spikes`, which a platform's kernels make."""
    selection = Selection(capacity, as_surrogate("select_spikes", "superspike"))  # of which nothing is read
    lists: Any = _select_spikes(Operands(v, threshold, second_threshold), selection, None)
    return scatter(lists.ids, jnp.ones(lists.ids.shape, v.dtype), v.shape[-1]) > 0


def is_overfull(listed: Array, capacity: int) -> Array:
    """Whether more than `capacity` neurons of a row are true in the mask ``[rows, neurons]``, one bool.

    Where there is a matrix unit, a product with ones counts fastest. It counts pieces of rows: few tiles of an IPU
    would add up what is counted of whole ones.
    """
    rows, width = listed.shape
    pieces = math.gcd(width, 16)
    marks = listed.astype(jnp.float16).reshape(rows * pieces, width // pieces)
    of_pieces = jnp.matmul(
        marks, jnp.ones((width // pieces, 1), jnp.float16), preferred_element_type=jnp.float32
    )
    counts = jnp.sum(of_pieces.reshape(rows, pieces), axis=-1)
    return any_group(jnp.max(counts, initial=0) > capacity)


def _in_order(x: Array) -> Array:
    """Integers in the order of floating-point numbers, in which -0 is smaller than 0."""
    bits = jax.lax.bitcast_convert_type(x, jnp.int32 if x.dtype == jnp.float32 else jnp.int64)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)


def _largest(v: Array, among: Array, slots: Array, capacity: int) -> Array:
    """The mask of the ``slots[row]`` largest membranes of each row within `among`; ties are broken by the id's hash."""
    # top_k takes the first of equal elements, so the neurons are arranged in the order of their hash.
    order = jnp.asarray(_hash_order(v.shape[-1]))
    membranes = jnp.where(among, upcast(v), -jnp.inf)
    top, places = jax.lax.top_k(membranes[:, order], capacity)
    kept = (jnp.arange(capacity, dtype=jnp.int32)[None, :] < slots[:, None]) & (top > -jnp.inf)
    ids = jnp.where(kept, order[places], v.shape[-1])
    row = jnp.arange(v.shape[0])[:, None]
    return jnp.zeros(v.shape, bool).at[row, ids].set(True, mode="drop")


@functools.cache
def _hash_order(num_neurons: int) -> np.ndarray:
    """The ids in ascending order of their hash."""
    return np.argsort(hash_of(np.arange(num_neurons, dtype=np.uint32))).astype(np.int32)


def spike_lists(
    v: Array, threshold: Array, spikes: Array, near: Array, selection: Selection
) -> tuple[Array, Array]:
    """The ids and values of the capped masks `spikes` and `near`, all ``[rows, neurons]``."""
    ids = list_ids(spikes, selection.capacity, then=near)
    if selection.surrogate.smooth:
        values = listed_values(v, threshold, ids, selection.surrogate)
    else:
        count = jnp.sum(spikes, axis=-1, dtype=jnp.int32)
        slots = jnp.arange(selection.capacity, dtype=jnp.int32)[None, :]
        values = (slots < count[:, None]).astype(v.dtype)
    return ids.astype(id_dtype(v.shape[-1])), values


def listed_values(v: Array, threshold: Array, ids: Array, surrogate: Surrogate) -> Array:
    """The spikes of the listed neurons, with their derivatives; all ``[rows, ...]``."""
    distance = gather(upcast(v) - upcast(threshold), ids)  # of listed neurons, hence never NaN
    return jnp.where(in_range(ids, v.shape[-1]), spike(distance, surrogate), 0).astype(v.dtype)


@functools.partial(jax.jit, static_argnums=1)  # compiled once, not in each call outside jit
def _composed(operands: Operands, selection: Selection) -> Results:
    """The reference, whose values have derivatives of any mode and order."""
    lists = _reference(jax.lax.stop_gradient(operands), selection)
    v, threshold = operands.v, _of_each(operands.threshold, operands.v)
    return lists._replace(values=listed_values(v, threshold, lists.ids, selection.surrogate))


def _of_each(threshold: Array, v: Array) -> Array:
    """A threshold with the shape of the membranes ``[rows, neurons]``."""
    return jnp.broadcast_to(threshold if threshold.ndim == 2 else threshold[None, :], v.shape)


def _reference(operands: Operands, selection: Selection) -> Results:
    v = operands.v
    threshold, second = (_of_each(each, v) for each in (operands.threshold, operands.second_threshold))
    spikes, near = candidates(v, threshold, second)
    kept_spikes, kept_near = cap(v, spikes, near, selection.capacity)
    ids, values = spike_lists(v, threshold, kept_spikes, kept_near, selection)
    num_listed = jnp.sum(kept_spikes | kept_near, axis=-1, dtype=jnp.int32)
    return Results(ids, values, jnp.sum(spikes, axis=-1, dtype=jnp.int32), num_listed)


def _backward(operands: BackwardOperands, selection: Selection) -> BackwardResults:
    """The cotangents of v and threshold from that of the values."""
    v, threshold = operands.v, operands.threshold
    row_thresholds = upcast(threshold) if threshold.ndim == 2 else upcast(threshold)[None, :]
    g_spikes = scatter(operands.ids, upcast(operands.g), v.shape[-1])
    slope = selection.surrogate.derivative(upcast(v) - row_thresholds)
    g_v = jnp.where(g_spikes == 0, 0, g_spikes * slope)  # 0 even if a membrane is NaN
    g_threshold = -g_v if threshold.ndim == 2 else -jnp.sum(g_v, axis=0)
    if threshold.shape == (1,):
        g_threshold = jnp.sum(g_threshold, keepdims=True)
    return BackwardResults(g_v.astype(v.dtype), g_threshold.astype(threshold.dtype))


def _form(threshold: Any) -> Any:
    """A threshold, or its shape, as the kernels take it; all have a leading groups axis."""
    return Rows(threshold) if len(threshold.shape) == 3 else threshold


def _call(operands: Operands, _: Selection, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    threshold, second_threshold = _form(operands.threshold), _form(operands.second_threshold)
    read = operands._replace(threshold=threshold, second_threshold=second_threshold)
    return call_by_records("snnjax_select_spikes", read, Results(*results))


def _call_backward(
    operands: BackwardOperands, selection: Selection, results: Sequence[jax.ShapeDtypeStruct]
) -> list[Array]:
    g_v, g_threshold = results
    return call_by_records(
        "snnjax_select_spikes_backward",
        operands._replace(threshold=_form(operands.threshold)),
        BackwardResults(g_v, _form(g_threshold)),
        [SurrogateNumbers(**surrogate_numbers(selection.surrogate))],
    )


def _obstacle(shapes: Operands | BackwardOperands, selection: Selection) -> str | None:
    return obstacle_of("membranes", shapes.v, selection.surrogate)


FORWARD = Target("snnjax_select_spikes", "select_spikes", _reference, {"cpu": Kernel(_call, _obstacle)})
BACKWARD = Target(
    "snnjax_select_spikes_backward", "select_spikes", _backward, {"cpu": Kernel(_call_backward, _obstacle)}
)


def _axes(record: PyTree) -> PyTree:
    """The batch axis of each array of a record."""
    return jax.tree.map(lambda array: 0 if array.ndim == 2 else SHARED, record)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _select_spikes(operands: Operands, selection: Selection, implementation: str | None) -> Results:
    axes = Results(ids=0, values=0, num_spikes=0, num_listed=0)
    return evaluate(
        FORWARD,
        operands,
        _axes(operands),
        axes,
        selection,
        results=_lists(operands.v, selection.capacity),
        implementation=implementation,
    )


def _lists(v: Array, capacity: int) -> Results:
    """The shapes of the lists of membranes ``[rows, neurons]``."""
    rows, neurons = v.shape
    ids, count = id_dtype(neurons), jax.ShapeDtypeStruct((rows,), jnp.int32)
    entries = functools.partial(jax.ShapeDtypeStruct, (rows, capacity))
    return Results(entries(ids), entries(v.dtype), count, count)


def _fwd(
    operands: Operands, selection: Selection, implementation: str | None
) -> tuple[Results, tuple[Operands, Array]]:
    lists: Any = _select_spikes(operands, selection, implementation)
    return lists, (operands, lists.ids)


def _bwd(
    selection: Selection, implementation: str | None, residuals: tuple[Operands, Array], g: Results
) -> tuple[Operands]:
    operands, ids = residuals
    given = BackwardOperands(operands.v, operands.threshold, ids, g.values)
    axes = _axes(given)
    result_axes = BackwardResults(g_v=axes.v, g_threshold=axes.threshold)
    cotangents = evaluate(BACKWARD, given, axes, result_axes, selection, implementation=implementation)
    second = jnp.zeros_like(operands.second_threshold)
    return (Operands(cotangents.g_v, cotangents.g_threshold, second),)


_select_spikes.defvjp(_fwd, _bwd)
