"""One primitive per target: the interface between the ops and whatever evaluates them.

An op calls `evaluate` with the name of a target, its jnp reference, its CPU kernel if there is one, and its operands.
Each target becomes one primitive, so that an op stays whole until it is lowered, and `vmap` has one rule for all of
them:

* every operand has a leading ``groups`` axis of length 1 (shared) or G;
* `vmap` folds into the batch if all mapped operands and all results have a batch axis;
* any other `vmap` folds into the groups: one result per example, as `vmap(grad)` needs for weights.

Neither adds a loop. When a program is lowered for the CPU, the kernel is called if it supports the operands and is
faster; otherwise the reference is used. Other platforms say themselves (`snnjax._platforms`) whether they support a
target.
"""

import functools
import re
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from snnjax import _platforms, _targets
from snnjax._check import check_choice, fail
from snnjax._jax_compat import DropVar, Primitive, ShapedArray, ad, batching, cache, mlir, set_dce_rule

# Marks an operand or a result without a batch axis, such as weights or their gradient.
SHARED = -1

# None chooses by platform, shapes and available kernels. "composed" is not a target: the op is then plain jax.numpy,
# which JAX can differentiate in forward mode and more than once.
IMPLEMENTATIONS = (None, "reference", "cpu", "composed")

_STATIC = (
    "target",
    "reference",
    "operand_axes",
    "result_axes",
    "results",
    "droppable",
    "tree",
    "static",
    "kernel",
    "forced",
)


class Kernel(NamedTuple):
    """How and when the compiled kernel of a target is called.

    Operands are pytrees like those of the reference, but each array has a leading groups axis, of length 1 if the
    groups share it; shapes are such trees of shapes and dtypes. Results are the leaves of the reference's results, each
    with a leading groups axis.
    """

    # (operands, static, the shapes and dtypes of the reference's results) -> results
    call: Callable[[Any, Any, Sequence[jax.ShapeDtypeStruct]], Sequence[Any]]
    # (shapes, static) -> what the CPU kernel does not support, for instance "float64 weights", or None. If this field
    # is None, there is no CPU kernel, and the call is only for the codelets of a device.
    obstacle: Callable[[Any, Any], str | None] | None
    # (shapes, static) -> whether it is faster than the reference
    pays: Callable[[Any, Any], bool] = lambda shapes, static: True
    # `call` on the CPU, if it differs there
    call_on_cpu: Callable[[Any, Any, Sequence[jax.ShapeDtypeStruct]], Sequence[Any]] | None = None


def evaluate(
    target: str,
    reference: Callable[..., Any],
    operands: Any,
    operand_axes: Any,
    result_axes: Any,
    static: Hashable = (),
    *,
    results: Any = None,
    droppable: Any = None,
    kernel: Kernel | None = None,
    implementation: str | None = None,
) -> Any:
    """Evaluate `reference(operands, static)` as one primitive named `target`.

    `operand_axes` and `result_axes` are trees like the operands and results that hold the position of each
    array's batch axis, or `SHARED`. `results` are the shapes and dtypes of the results in such a tree; without them the
    reference is traced to find them, which takes long if it is long. Results that are true in the tree `droppable` have
    no rows (axis 0) in a compiled program that does not use them. `implementation` is one of `IMPLEMENTATIONS` except
    "composed": "reference" and "cpu" (the `kernel`) force that path, and "cpu" raises a `ValueError` if the kernel is
    unavailable.
    """
    leaves, tree = jax.tree.flatten(operands)
    axes, result_tree = jax.tree.flatten(result_axes)
    leaves = [jnp.expand_dims(leaf, 0) for leaf in vary_alike(leaves)]
    _check_implementation(target, implementation, kernel)
    params = {
        "target": target,
        "reference": reference,
        "operand_axes": tuple(jax.tree.leaves(operand_axes)),
        "result_axes": tuple(axes),
        "results": None if results is None else _shapes(jax.tree.leaves(results)),
        "droppable": tuple(jax.tree.leaves(droppable)),
        "tree": tree,
        "static": static,
        "kernel": None if implementation == "reference" else kernel,
        "forced": implementation == "cpu",
    }
    if params["forced"]:
        _takes_kernel([jax.typeof(leaf) for leaf in leaves], **params)  # raises in the caller's stack frame
    results = _primitive(target).bind(*leaves, **params)
    return jax.tree.unflatten(result_tree, [jnp.squeeze(result, 0) for result in results])


# The end of a target's name that is not of its op: "_rows", "_backward", "_weights_backward".
_PART_OF_OP = re.compile(r"(_rows)?(_(values|weights|inputs))?(_backward)?$")


def _name(target: str) -> str:
    """The name of a target's op for users."""
    return _PART_OF_OP.sub("", target.removeprefix("snnjax_"), count=1)


def _check_implementation(target: str, implementation: str | None, kernel: Kernel | None) -> None:
    """Check for unknown names, and for a forced kernel that does not exist."""
    op = _name(target)
    check_choice(op, "implementation", implementation, IMPLEMENTATIONS)
    if implementation != "cpu":
        return
    expected = "`implementation` must be None or 'reference'"
    if kernel is None or kernel.obstacle is None:
        fail(f"{op}: {expected} for an op without a CPU kernel, got 'cpu'. Leave it None for the reference.")
    sentence = _targets.missing()
    if sentence is not None:
        fail(f"{op}: {expected} without the compiled kernels, got 'cpu'. {sentence}.")


def _takes_kernel(
    avals: Sequence[Any], target: str, kernel: Kernel, tree: Any, static: Any, forced: bool, **_: Any
) -> bool:
    """Whether to use the kernel for operands of these shapes on the CPU."""
    if kernel.obstacle is None:
        return False
    shapes = jax.tree.unflatten(tree, avals)
    obstacle = kernel.obstacle(shapes, static)
    if forced:
        if obstacle is not None:
            fail(
                f"{_name(target)}: `implementation` must be None or 'reference' for {obstacle}, got 'cpu'. "
                "Leave it None for an automatic choice."
            )
        return True
    if obstacle is not None or not kernel.pays(shapes, static):
        return False
    sentence = _targets.missing()
    if sentence is not None:
        _warn_once(sentence)
    return sentence is None


def missing_kernels() -> str | None:
    """None if the compiled kernels are available, else a sentence that says why not."""
    return _targets.missing()


def instruction_set() -> str | None:
    """The instruction set of the compiled CPU kernels on this machine, such as `avx2`; None without kernels."""
    return _targets.instruction_set() if missing_kernels() is None else None


@functools.cache
def _warn_once(sentence: str) -> None:
    """Warn once per process that the kernels are missing and the slower references are used."""
    text = f"snnjax runs without its compiled kernels, on slower references. {sentence}."
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def vary_alike(arrays: Any) -> Any:
    """Cast a tree of arrays to the union of the `shard_map` axes over which they vary (a no-op outside `shard_map`)."""
    leaves, tree = jax.tree.flatten(arrays)
    varying = [jax.typeof(leaf).manual_axis_type.varying for leaf in leaves]
    union = frozenset().union(*varying)
    cast = [
        jax.lax.pcast(leaf, tuple(sorted(union - own)), to="varying") if union - own else leaf
        for leaf, own in zip(leaves, varying, strict=True)
    ]
    return jax.tree.unflatten(tree, cast)


def gathered(tree: Any) -> Any:
    """The arrays whole on every device: a target takes no array that is sharded over explicit axes of a mesh."""

    def whole(leaf: Any) -> Any:
        sharding = getattr(jax.typeof(leaf), "sharding", None) if isinstance(leaf, jax.Array) else None
        if sharding is None or not any(sharding.spec):
            return leaf
        return jax.sharding.reshard(leaf, sharding.update(spec=PartitionSpec(*(None,) * leaf.ndim)))

    return jax.tree.map(whole, tree)


@jax.custom_batching.custom_vmap
def any_group(condition: jax.Array) -> jax.Array:
    """True for every group if `condition` holds in one, so that `vmap` keeps a `lax.cond` in a reference a branch."""
    return jnp.any(condition)


@any_group.def_vmap
def _any_of_all_groups(
    axis_size: int, in_batched: Sequence[bool], condition: jax.Array
) -> tuple[jax.Array, bool]:
    del axis_size, in_batched
    return any_group(condition), False


def _grouped(
    *leaves: Any, reference: Callable[..., Any], tree: Any, static: Hashable, results: Any = None, **_: Any
) -> list[Any]:
    """The reference on operands with a leading groups axis."""
    groups = _groups(leaves)
    shared = [leaf.shape[0] == 1 and groups > 1 for leaf in leaves]

    def one_group(*arrays: Any) -> list[Any]:
        return jax.tree.leaves(reference(jax.tree.unflatten(tree, arrays), static))

    arrays = [leaf[0] if is_shared else leaf for leaf, is_shared in zip(leaves, shared, strict=True)]
    in_axes = tuple(None if is_shared else 0 for is_shared in shared)
    yielded = jax.vmap(one_group, in_axes, 0, axis_size=groups)(*arrays)
    if results is None:
        return yielded
    # Dropped results have no rows.
    return [own[:, : shape[0]] if shape else own for own, (shape, _) in zip(yielded, results, strict=True)]


def _groups(leaves: Sequence[Any]) -> int:
    return max((leaf.shape[0] for leaf in leaves), default=1)


def _called(*leaves: Any, kernel: Kernel, tree: Any, static: Hashable, **params: Any) -> list[Any]:
    """The kernel on operands with a leading groups axis."""
    results = _results_of(leaves, tree=tree, static=static, **params)
    return list(kernel.call(jax.tree.unflatten(tree, leaves), static, results))


def _called_on_cpu(*leaves: Any, kernel: Kernel, **params: Any) -> list[Any]:
    return _called(*leaves, kernel=kernel._replace(call=kernel.call_on_cpu or kernel.call), **params)


def _shapes(arrays: Sequence[Any]) -> tuple[Any, ...]:
    return tuple((array.shape, array.dtype) for array in arrays)


def _plain(aval: Any) -> ShapedArray:
    """Only the shape and dtype of `aval`."""
    return ShapedArray(aval.shape, aval.dtype)


def _abstract(*avals: Any, **params: Any) -> list[ShapedArray]:
    """Shapes and dtypes of the results; they vary over the `shard_map` axes of the operands."""
    results = _results_of(avals, **params)
    if not avals:
        return [ShapedArray(result.shape, result.dtype) for result in results]

    def alike(result: Any) -> ShapedArray:
        sharding = avals[0].sharding.update(spec=PartitionSpec(*(None,) * result.ndim))
        varies = avals[0].manual_axis_type
        return ShapedArray(result.shape, result.dtype, sharding=sharding, manual_axis_type=varies)

    return [alike(result) for result in results]


def _results_of(
    operands: Sequence[Any],
    results: Any,
    reference: Callable[..., Any],
    tree: Any,
    static: Hashable,
    **_: Any,
) -> list[Any]:
    """The shapes and dtypes of the results, with their groups axis."""
    if results is None:
        return _traced_shapes(_shapes(operands), reference, tree, static)
    groups = _groups(operands)
    return [jax.ShapeDtypeStruct((groups, *shape), dtype) for shape, dtype in results]


@cache()
def _traced_shapes(shapes: Any, reference: Callable[..., Any], tree: Any, static: Hashable) -> list[Any]:
    """The cached shapes of the results: a program binds the same shapes many times."""
    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    return jax.eval_shape(functools.partial(_grouped, reference=reference, tree=tree, static=static), *leaves)


def _lower(function: Callable[..., Any], context: Any, *operands: Any, **params: Any) -> Any:
    """Lower `function` in a scope named after the target; inside `shard_map` it sees each shard as a plain array."""

    def named(*operands: Any, **params: Any) -> Any:
        with jax.named_scope(params["target"]):
            return function(*operands, **params)

    plain = context.replace(
        avals_in=[_plain(aval) for aval in context.avals_in],
        avals_out=[_plain(aval) for aval in context.avals_out],
    )
    return mlir.lower_fun(named, multiple_results=True)(plain, *operands, **params)


def _lower_on_cpu(context: Any, *operands: Any, **params: Any) -> Any:
    """Lower to the kernel if it is available, supports the operands and is faster, else to the reference."""
    takes_kernel = params["kernel"] is not None and _takes_kernel(context.avals_in, **params)
    return _lower(_called_on_cpu if takes_kernel else _grouped, context, *operands, **params)


def _lower_elsewhere(context: Any, *operands: Any, **params: Any) -> Any:
    """Lower to the named target if all platforms of the program support it, else to the reference."""
    platforms = context.platforms or context.module_context.platforms
    if params["forced"]:
        op, expected = _name(params["target"]), f"be None or 'reference' on platform {'/'.join(platforms)}"
        hint = "Leave it None, or run the program under jax.default_device of a CPU"
        fail(f"{op}: `implementation` must {expected}, got 'cpu'. {hint}.")
    call = params["target"], jax.tree.unflatten(params["tree"], context.avals_in), params["static"]
    takes = params["kernel"] is not None and all(_platforms.takes(platform, *call) for platform in platforms)
    return _lower(_called_in_turn if takes else _grouped, context, *operands, **params)


def _called_in_turn(*leaves: Any, **params: Any) -> list[Any]:
    """The target on one group after another: platforms other than the CPU do not support groups."""
    groups = _groups(leaves)
    if groups == 1:
        return _called(*leaves, **params)

    def one_group(group: Any) -> list[Any]:
        own = [
            leaf if leaf.shape[0] == 1 else jax.lax.dynamic_slice_in_dim(leaf, group, 1) for leaf in leaves
        ]
        return [jnp.squeeze(result, 0) for result in _called(*own, **params)]

    return jax.lax.map(one_group, jnp.arange(groups, dtype=jnp.int32))


def _drop(used: Sequence[bool], equation: Any) -> tuple[list[bool], Any]:
    """The dead-code rule: unused results that are droppable get no rows."""
    if not any(used):
        return [False] * len(equation.invars), None
    params = dict(equation.params)
    drops = [may and not own for may, own in zip(params["droppable"], used, strict=False)]
    if any(drops):
        each = list(zip(params["results"], drops, strict=True))
        params["results"] = tuple(
            ((0, *shape[1:]) if dropped else shape, dtype) for (shape, dtype), dropped in each
        )
        avals = _abstract(*(invar.aval for invar in equation.invars), **params)
        kept = zip(equation.outvars, avals, drops, strict=True)
        outvars = [DropVar(aval) if dropped else outvar for outvar, aval, dropped in kept]
        equation = equation.replace(params=params, outvars=outvars)
    return [True] * len(equation.invars), equation


def _refuse_second_order(*_: Any, target: str, forced: bool, **params: Any) -> NoReturn:
    """The derivative of a target, which is only needed for second derivatives: the ops define the first ones."""
    actual = "'cpu'" if forced else "a kernel or its reference"
    fail(
        f"{_name(target)}: `implementation` must be 'composed' for second derivatives and forward mode, got {actual}. "
        "Pass implementation='composed'."
    )


def _batch(primitive: Primitive, operands: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    """The `vmap` rule: fold the new axis into the batch if possible, else into the groups."""
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
    if into_batch and params["results"] is not None:
        shapes = zip(params["results"], params["result_axes"], strict=True)
        params["results"] = tuple((_with_batch(shape, axis, size), dtype) for (shape, dtype), axis in shapes)
    results = primitive.bind(*folded, **params)
    return [unfold(*each, size) for each in zip(results, params["result_axes"], strict=True)], [0] * len(
        results
    )


def _none(primitive: Primitive, operands: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    """The results of `vmap` over zero examples."""
    shapes = [
        tuple(length for place, length in enumerate(operand.shape) if place != dim)
        for operand, dim in zip(operands, dims, strict=True)
    ]
    one = [jax.ShapeDtypeStruct(s, operand.dtype) for s, operand in zip(shapes, operands, strict=True)]
    results = jax.eval_shape(functools.partial(primitive.bind, **params), *one)
    return [jnp.zeros((0, *result.shape), result.dtype) for result in results], [0] * len(results)


def _with_batch(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """The shape of a result whose batch is `size` times as large."""
    return (*shape[:axis], size * shape[axis], *shape[axis + 1 :])


def _into_batch(operand: Any, dim: int | None, axis: int, size: int, groups: int) -> Any:
    del groups
    if axis == SHARED:
        return operand
    if dim is None:
        operand, dim = jnp.broadcast_to(operand[None], (size, *operand.shape)), 0
    operand = jnp.moveaxis(operand, dim, axis + 1)  # just before the batch axis, after the groups axis
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
    compiled = jax.jit(primitive.bind, static_argnames=_STATIC)

    def evaluated(*leaves: Any, **params: Any) -> Any:
        with jax.disable_jit(False):  # else `bind` would come back here
            return compiled(*leaves, **params)

    primitive.def_impl(evaluated)
    batching.primitive_batchers[primitive] = functools.partial(_batch, primitive)
    ad.primitive_jvps[primitive] = _refuse_second_order
    set_dce_rule(primitive, _drop)
    mlir.register_lowering(primitive, _lower_elsewhere)
    mlir.register_lowering(primitive, _lower_on_cpu, platform="cpu")
    return primitive
