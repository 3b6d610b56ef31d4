"""One primitive per target: the border between the ops and whatever evaluates them.

An op hands `evaluate` the name of a target, its jnp reference and its operands. Each target becomes one primitive, so
that a program keeps the op whole until it is lowered, and so that `vmap` has one rule for all of them:

* every operand has a leading ``groups`` axis of length 1 (shared) or G;
* `vmap` over operands that all own a batch axis, with results that all own one too, folds into the batch;
* any other `vmap` folds into the groups: one result per example, as `vmap(grad)` needs for weights.

Neither adds a loop. This is the only module outside `snnjax/ipu` that may touch names private to jax.
"""

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax._src.core import ShapedArray  # results of a primitive carry the axes they vary over in shard_map
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jax.sharding import PartitionSpec

# Marks an operand or a result without a batch axis, such as weights or their gradient.
SHARED = -1

_STATIC = ("reference", "operand_axes", "result_axes", "tree", "static")


def evaluate(
    target: str,
    reference: Callable[..., Any],
    operands: Any,
    operand_axes: Any,
    result_axes: Any,
    static: Hashable = (),
) -> Any:
    """The results of `reference(operands, static)`, as one primitive named `target`.

    `operand_axes` and `result_axes` are trees like the operands and the results that hold the position of each
    array's batch axis, or `SHARED`.
    """
    leaves, tree = jax.tree.flatten(operands)
    axes, result_tree = jax.tree.flatten(result_axes)
    results = _primitive(target).bind(
        *(jnp.expand_dims(leaf, 0) for leaf in vary_alike(leaves)),
        reference=reference,
        operand_axes=tuple(jax.tree.leaves(operand_axes)),
        result_axes=tuple(axes),
        tree=tree,
        static=static,
    )
    return jax.tree.unflatten(result_tree, [jnp.squeeze(result, 0) for result in results])


def vary_alike(leaves: Sequence[Any]) -> list[Any]:
    """The arrays cast to the union of the `shard_map` axes that they vary over (nothing outside of `shard_map`)."""
    varying = [jax.typeof(leaf).manual_axis_type.varying for leaf in leaves]
    union = frozenset().union(*varying)
    return [
        jax.lax.pcast(leaf, tuple(sorted(union - own)), to="varying") if union - own else leaf
        for leaf, own in zip(leaves, varying, strict=True)
    ]


@jax.custom_batching.custom_vmap
def any_group(condition: jax.Array) -> jax.Array:
    """True for every group if `condition` holds in one: keeps a `lax.cond` in a reference a branch, not a select."""
    return jnp.any(condition)


@any_group.def_vmap
def _any_of_all_groups(
    axis_size: int, in_batched: Sequence[bool], condition: jax.Array
) -> tuple[jax.Array, bool]:
    del axis_size, in_batched
    return any_group(condition), False


def _grouped(*leaves: Any, reference: Callable[..., Any], tree: Any, static: Hashable, **_: Any) -> list[Any]:
    """The reference on operands with a leading groups axis."""
    groups = max((leaf.shape[0] for leaf in leaves), default=1)
    shared = [leaf.shape[0] == 1 and groups > 1 for leaf in leaves]

    def one_group(*arrays: Any) -> list[Any]:
        return jax.tree.leaves(reference(jax.tree.unflatten(tree, arrays), static))

    arrays = [leaf[0] if is_shared else leaf for leaf, is_shared in zip(leaves, shared, strict=True)]
    in_axes = tuple(None if is_shared else 0 for is_shared in shared)
    return jax.vmap(one_group, in_axes, 0, axis_size=groups)(*arrays)


def _plain(aval: Any) -> ShapedArray:
    """The shape and dtype of `aval` alone."""
    return ShapedArray(aval.shape, aval.dtype)


def _abstract(*avals: Any, **params: Any) -> list[ShapedArray]:
    """Shapes and dtypes of the results; they vary over the `shard_map` axes of the operands."""
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    results = jax.eval_shape(functools.partial(_grouped, **params), *shapes)
    if not avals:
        return [ShapedArray(result.shape, result.dtype) for result in results]

    def alike(result: Any) -> ShapedArray:
        sharding = avals[0].sharding.update(spec=PartitionSpec(*(None,) * result.ndim))
        varies = avals[0].manual_axis_type
        return ShapedArray(result.shape, result.dtype, sharding=sharding, manual_axis_type=varies)

    return [alike(result) for result in results]


def _lower(context: Any, *operands: Any, **params: Any) -> Any:
    """Lower to the reference; inside `shard_map` each shard is a plain array to it."""
    plain = context.replace(
        avals_in=[_plain(aval) for aval in context.avals_in],
        avals_out=[_plain(aval) for aval in context.avals_out],
    )
    return mlir.lower_fun(_grouped, multiple_results=True)(plain, *operands, **params)


def _batch(primitive: Primitive, operands: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    """The rule of `vmap`: fold the new axis into the batch where possible, else into the groups."""
    axes = params["operand_axes"]
    mapped = zip(operands, dims, strict=True)
    size = next(operand.shape[dim] for operand, dim in mapped if dim is not None)
    if size == 0:
        return _none(primitive, operands, dims, **params)
    into_batch = SHARED not in params["result_axes"] and all(
        dim is None or axis != SHARED for dim, axis in zip(dims, axes, strict=True)
    )
    fold, unfold = (_into_batch, _out_of_batch) if into_batch else (_into_groups, _out_of_groups)
    groups = max(
        operand.shape[0 if dim is None else int(dim == 0)]
        for operand, dim in zip(operands, dims, strict=True)
    )
    folded = [fold(*each, size, groups) for each in zip(operands, dims, axes, strict=True)]
    results = primitive.bind(*folded, **params)
    return [unfold(*each, size) for each in zip(results, params["result_axes"], strict=True)], [0] * len(
        results
    )


def _none(primitive: Primitive, operands: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    """The results of `vmap` over no examples."""
    shapes = [
        tuple(length for place, length in enumerate(operand.shape) if place != dim)
        for operand, dim in zip(operands, dims, strict=True)
    ]
    one = [jax.ShapeDtypeStruct(s, operand.dtype) for s, operand in zip(shapes, operands, strict=True)]
    results = jax.eval_shape(functools.partial(primitive.bind, **params), *one)
    return [jnp.zeros((0, *result.shape), result.dtype) for result in results], [0] * len(results)


def _into_batch(operand: Any, dim: int | None, axis: int, size: int, groups: int) -> Any:
    del groups
    if axis == SHARED:
        return operand
    if dim is None:
        operand, dim = jnp.broadcast_to(operand[None], (size, *operand.shape)), 0
    operand = jnp.moveaxis(operand, dim, axis + 1)  # just before the batch axis, behind the groups axis
    shape = operand.shape
    return operand.reshape(*shape[: axis + 1], size * shape[axis + 2], *shape[axis + 3 :])


def _out_of_batch(result: Any, axis: int, size: int) -> Any:
    shape = result.shape
    split = result.reshape(*shape[: axis + 1], size, shape[axis + 1] // size, *shape[axis + 2 :])
    return jnp.moveaxis(split, axis + 1, 0)


def _into_groups(operand: Any, dim: int | None, axis: int, size: int, groups: int) -> Any:
    del axis
    if dim is None and operand.shape[0] == 1:
        return operand
    if dim is None:
        operand, dim = jnp.broadcast_to(operand[None], (size, *operand.shape)), 0
    operand = jnp.moveaxis(operand, dim, 0)
    operand = jnp.broadcast_to(operand, (size, groups, *operand.shape[2:]))
    return operand.reshape(size * groups, *operand.shape[2:])


def _out_of_groups(result: Any, axis: int, size: int) -> Any:
    del axis
    return result.reshape(size, result.shape[0] // size, *result.shape[1:])


@functools.cache
def _primitive(target: str) -> Primitive:
    """The primitive of a target, made once."""
    primitive = Primitive(target)
    primitive.multiple_results = True
    primitive.def_abstract_eval(_abstract)
    primitive.def_impl(jax.jit(primitive.bind, static_argnames=_STATIC))
    batching.primitive_batchers[primitive] = functools.partial(_batch, primitive)
    mlir.register_lowering(primitive, _lower)
    return primitive
