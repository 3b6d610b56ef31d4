"""One primitive per target: the interface between the ops and whatever evaluates them.

An op states its targets in a table (`Target`): the name, the jnp reference, and by platform the kernels and other ways
to run the reference. It calls
`evaluate` with a target and its operands. Each target becomes one primitive, so that an op stays whole until it is
lowered, and `vmap` has one rule for all of them (`snnjax._batching`): every operand has a leading ``groups`` axis of
length 1 (shared) or G.

When a program is lowered for a platform, the kernel of the target for that platform is called if there is one that
supports the operands and is faster; otherwise the reference is used. Platforms that are packages of their own say
themselves which kernels they have (`snnjax._platforms`).
"""

import functools
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array, PyTree

from snnjax import _platforms, _targets
from snnjax._batching import fold, with_batch, without_axis
from snnjax._check import check_choice, fail
from snnjax._jax_compat import (
    DropVar,
    JaxprEqn,
    Lowered,
    LoweringContext,
    Primitive,
    ShapedArray,
    Value,
    ad,
    batching,
    cache,
    mlir,
    set_dce_rule,
)
from snnjax._sharding import vary_alike

# None chooses by platform, shapes and available kernels. "composed" is not a target: the op is then plain jax.numpy,
# which JAX can differentiate in forward mode and more than once.
IMPLEMENTATIONS = (None, "reference", "cpu", "gpu", "composed")

_Form = Callable[[], Sequence[Any]]


class Kernel(NamedTuple):
    """How and when a kernel of a target is called.

    Operands are pytrees like those of the reference, but each array has a leading groups axis, of length 1 if the
    groups share it; shapes are such trees of shapes and dtypes. Results are the leaves of the reference's results, each
    with a leading groups axis.
    """

    # (operands, static, the shapes and dtypes of the reference's results) -> results
    call: Callable[[Any, Any, Sequence[jax.ShapeDtypeStruct]], Sequence[Any]]
    # (shapes, static) -> what the kernel does not support, for instance "float64 weights", or None
    obstacle: Callable[[Any, Any], str | None]
    # (shapes, static) -> whether it is to be called without being asked for: where it is faster than the reference
    pays: Callable[[Any, Any], bool] = lambda shapes, static: True
    # Whether one call computes all groups; else it is called for one after another.
    takes_groups: bool = True
    # platform -> whether it is to be called there without being asked for
    is_usual: Callable[[str], bool] = lambda platform: True
    # (the kernel and the reference, both without arguments, whether the kernel pays, operands and results) -> the
    # results of one of them, where a platform finds out what fits into its memory when it compiles the program
    either: Callable[[_Form, _Form, bool, Sequence[Any]], Sequence[Any]] | None = None


@dataclass(frozen=True, eq=False)
class Target:
    """What an op is lowered to."""

    name: str  # that of the primitive, of the handler in the library, and of the custom call in the program
    op: str  # for users
    reference: Callable[[Any, Any], Any]  # (operands, static) -> results, in jax.numpy
    kernels: Mapping[str, Kernel] = field(default_factory=dict)  # by family of platforms
    # The reference in another form where that is faster, for instance with unrolled loops; by family of platforms
    references: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)

    def kernel(self, platform: str) -> Kernel | None:
        """The kernel for a platform, which may be a package that brings its own."""
        return self.kernels.get(_platforms.family(platform)) or _platforms.kernel(platform, self)

    def reference_on(self, platform: str) -> Callable[[Any, Any], Any]:
        """The form of the reference for a platform."""
        own = self.references.get(_platforms.family(platform)) or _platforms.reference(platform, self)
        return own or self.reference


@dataclass(frozen=True)
class _Call:
    """The static side of one call of a target."""

    target: Target
    operand_axes: tuple[int, ...]  # the batch axis of each operand, or `SHARED`
    result_axes: tuple[int, ...]
    results: tuple[Any, ...] | None  # their shapes and dtypes; None to trace the reference for them
    droppable: tuple[bool, ...]
    tree: Any  # of the operands
    static: Hashable
    implementation: str | None

    def results_of(self, operands: Sequence[Any]) -> list[Any]:
        """The shapes and dtypes of the results, with their groups axis."""
        if self.results is None:
            return _traced_shapes(_shapes(operands), self)
        groups = _groups(operands)
        return [jax.ShapeDtypeStruct((groups, *shape), dtype) for shape, dtype in self.results]


def evaluate(
    target: Target,
    operands: PyTree,
    operand_axes: PyTree,
    result_axes: PyTree,
    static: Hashable = (),
    *,
    results: PyTree = None,
    droppable: PyTree = None,
    implementation: str | None = None,
) -> PyTree:
    """Evaluate `target.reference(operands, static)` as one primitive.

    `operand_axes` and `result_axes` are trees like the operands and results that hold the position of each
    array's batch axis, or `SHARED`. `results` are the shapes and dtypes of the results in such a tree; without them the
    reference is traced to find them, which takes long if it is long. Results that are true in the tree `droppable` have
    no rows (axis 0) in a compiled program that does not use them. `implementation` is one of `IMPLEMENTATIONS` except
    "composed": the others force that path, and "cpu" and "gpu" raise a `ValueError` if there is no such kernel.
    """
    leaves, tree = jax.tree.flatten(operands)
    axes, result_tree = jax.tree.flatten(result_axes)
    leaves = [jax.lax.expand_dims(leaf, (0,)) for leaf in vary_alike(leaves)]
    call = _Call(
        target,
        tuple(jax.tree.leaves(operand_axes)),
        tuple(axes),
        None if results is None else _shapes(jax.tree.leaves(results)),
        tuple(jax.tree.leaves(droppable)),
        tree,
        static,
        implementation,
    )
    check_choice(target.op, "implementation", implementation, IMPLEMENTATIONS)
    if implementation in ("cpu", "gpu"):
        _forced_kernel(call, [jax.typeof(leaf) for leaf in leaves])  # raises in the caller's stack frame
    results = _primitive(target.name).bind(*leaves, call=call)
    return jax.tree.unflatten(result_tree, [jax.lax.squeeze(result, (0,)) for result in results])


def _forced_kernel(call: _Call, avals: Sequence[Any]) -> Kernel:
    """The kernel that was asked for, which must exist, be built, and support operands of these shapes."""
    expected = f"{call.target.op}: `implementation` must be None or 'reference'"
    asked = call.implementation or ""
    kernel = call.target.kernels.get(asked)
    if kernel is None:
        what = f"an op without a {asked.upper()} kernel"
        fail(f"{expected} for {what}, got {asked!r}. Leave it None for the reference.")
    sentence = _targets.missing() if asked == "cpu" else None
    if sentence is not None:
        fail(f"{expected} without the compiled kernels, got 'cpu'. {sentence}.")
    obstacle = kernel.obstacle(jax.tree.unflatten(call.tree, avals), call.static)
    if obstacle is not None:
        fail(f"{expected} for {obstacle}, got {asked!r}. Leave it None for an automatic choice.")
    return kernel


def _check_platforms(call: _Call, platforms: Sequence[str]) -> bool:
    """Check that what was asked for runs on all platforms of the program; whether it is a kernel."""
    asked = call.implementation
    if asked not in ("cpu", "gpu"):
        return False
    if any(_platforms.family(platform) != asked for platform in platforms):
        fail(
            f"{call.target.op}: `implementation` must be None or 'reference' on platform {'/'.join(platforms)}, "
            f"got {asked!r}. Leave it None, or run the program under jax.default_device of a {asked.upper()}."
        )
    return True


def _kernel_on_cpu(call: _Call, avals: Sequence[Any]) -> Kernel | None:
    """The compiled kernel, if it is to be used there."""
    if _check_platforms(call, ("cpu",)):
        return _forced_kernel(call, avals)
    kernel = _supporting_kernel(call, avals, "cpu")
    kernel = kernel if kernel is not None and _pays(call, avals, kernel) else None
    sentence = None if kernel is None else _targets.missing()
    if sentence is not None:
        _warn_once(sentence)
        return None
    return kernel


def _supporting_kernel(call: _Call, avals: Sequence[Any], platform: str) -> Kernel | None:
    """The kernel for a platform, if it supports operands of these shapes."""
    kernel = None if call.implementation == "reference" else call.target.kernel(platform)
    if kernel is None or not kernel.is_usual(platform):
        return None
    supports = kernel.obstacle(jax.tree.unflatten(call.tree, avals), call.static) is None
    return kernel if supports else None


def _pays(call: _Call, avals: Sequence[Any], kernel: Kernel) -> bool:
    """Whether a kernel that supports operands of these shapes is faster than the reference."""
    return kernel.pays(jax.tree.unflatten(call.tree, avals), call.static)


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


def _reference(*leaves: Array, call: _Call, reference: Callable[[Any, Any], Any]) -> list[Any]:
    """The reference on operands with a leading groups axis."""
    operands, results = jax.tree.unflatten(call.tree, leaves), None
    if call.results is not None:
        results = call.results_of(leaves)
    return _by_groups(reference, operands, call.static, results)


def _by_groups(
    function: Callable[[Any, Any], Any],
    operands: PyTree,
    static: Hashable,
    results: Sequence[jax.ShapeDtypeStruct] | None,
) -> list[Any]:
    """What a function yields for each group; dropped results have no rows."""
    leaves, tree = jax.tree.flatten(operands)
    groups = _groups(leaves)

    def one_group(*arrays: Array) -> list[Any]:
        return jax.tree.leaves(function(jax.tree.unflatten(tree, arrays), static))

    if groups == 1:  # nearly always, and quicker to trace than under `vmap`
        alone = one_group(*(jax.lax.squeeze(leaf, (0,)) for leaf in leaves))
        yielded = [jax.lax.expand_dims(result, (0,)) for result in alone]
    else:
        shared = [leaf.shape[0] == 1 for leaf in leaves]
        arrays = [leaf[0] if is_shared else leaf for leaf, is_shared in zip(leaves, shared, strict=True)]
        in_axes = tuple(None if is_shared else 0 for is_shared in shared)
        yielded = jax.vmap(one_group, in_axes, 0, axis_size=groups)(*arrays)
    if results is None:
        return yielded
    each = zip(yielded, results, strict=True)
    return [array if array.shape == result.shape else array[:, : result.shape[1]] for array, result in each]


def kernel_in_jax(
    function: Callable[[Any, Any], Any],
    obstacle: Callable[[Any, Any], str | None],
    is_usual: Callable[[str], bool],
) -> Kernel:
    """A kernel that is written in JAX like the reference."""
    return Kernel(functools.partial(_by_groups, function), obstacle, is_usual=is_usual)


def _groups(leaves: Sequence[Any]) -> int:
    return max((leaf.shape[0] for leaf in leaves), default=1)


def _called(*leaves: Array, call: _Call, kernel: Kernel) -> list[Any]:
    """The kernel on operands with a leading groups axis."""
    groups = _groups(leaves)
    if groups == 1 or kernel.takes_groups:
        operands = jax.tree.unflatten(call.tree, leaves)
        return list(kernel.call(operands, call.static, call.results_of(leaves)))

    def one_group(group: Array) -> list[Any]:
        of_group = [
            leaf if leaf.shape[0] == 1 else jax.lax.dynamic_slice_in_dim(leaf, group, 1) for leaf in leaves
        ]
        return [jnp.squeeze(result, 0) for result in _called(*of_group, call=call, kernel=kernel)]

    return jax.lax.map(one_group, jnp.arange(groups, dtype=jnp.int32))


def _shapes(arrays: Sequence[Any]) -> tuple[Any, ...]:
    return tuple((array.shape, array.dtype) for array in arrays)


def _plain(aval: Any) -> ShapedArray:
    """Only the shape and dtype of `aval`."""
    return ShapedArray(aval.shape, aval.dtype)


def _abstract(*avals: Any, call: _Call) -> list[ShapedArray]:
    """Shapes and dtypes of the results; they vary over the `shard_map` axes of the operands."""
    results = call.results_of(avals)
    if not avals:
        return [_plain(result) for result in results]

    def alike(result: jax.ShapeDtypeStruct) -> ShapedArray:
        sharding = avals[0].sharding.update(spec=PartitionSpec(*(None,) * result.ndim))
        varies = avals[0].manual_axis_type
        return ShapedArray(result.shape, result.dtype, sharding=sharding, manual_axis_type=varies)

    return [alike(result) for result in results]


@cache()
def _traced_shapes(shapes: tuple[Any, ...], call: _Call) -> list[Any]:
    """The cached shapes of the results: a program binds the same shapes many times."""
    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    function = functools.partial(_reference, call=call, reference=call.target.reference)
    return jax.eval_shape(function, *leaves)


# Behind the name of a target in scopes, where its reference runs.
_ON_REFERENCE = ".reference"


def _lower(
    context: LoweringContext,
    *operands: Value,
    call: _Call,
    kernel: Kernel | None,
    reference: Callable[[Any, Any], Any],
    pays: bool = True,
) -> Lowered:
    """Lower in a scope named after the target and its path; inside `shard_map` each shard is a plain array."""

    def by_reference(*leaves: Array) -> list[Array]:
        with jax.named_scope(f"{call.target.name}{_ON_REFERENCE}"):
            return _reference(*leaves, call=call, reference=reference)

    def by_kernel(own: Kernel, *leaves: Array) -> list[Array]:
        with jax.named_scope(call.target.name):
            return _called(*leaves, call=call, kernel=own)

    def named(*leaves: Array) -> list[Array]:
        if kernel is None or (kernel.either is None and not pays):
            return by_reference(*leaves)
        if kernel.either is None:
            return by_kernel(kernel, *leaves)
        forms = functools.partial(by_kernel, kernel, *leaves), functools.partial(by_reference, *leaves)
        return list(kernel.either(*forms, pays, [*leaves, *call.results_of(leaves)]))

    plain = context.replace(
        avals_in=[_plain(aval) for aval in context.avals_in],
        avals_out=[_plain(aval) for aval in context.avals_out],
    )
    return mlir.lower_fun(named, multiple_results=True)(plain, *operands)


def _lower_on_cpu(context: LoweringContext, *operands: Value, call: _Call) -> Lowered:
    kernel = _kernel_on_cpu(call, context.avals_in)
    return _lower(context, *operands, call=call, kernel=kernel, reference=call.target.reference_on("cpu"))


def _lower_elsewhere(context: LoweringContext, *operands: Value, call: _Call) -> Lowered:
    """Lower to the kernel that all platforms of the program share, else to the reference, in a form that they share."""
    platforms, avals = context.platforms or context.module_context.platforms, context.avals_in
    if _check_platforms(call, platforms):
        kernel, pays = _forced_kernel(call, avals), True
    else:
        kernel = _shared([_supporting_kernel(call, avals, platform) for platform in platforms])
        pays = kernel is not None and _pays(call, avals, kernel)
    reference = _shared([call.target.reference_on(platform) for platform in platforms])
    reference = reference or call.target.reference
    return _lower(context, *operands, call=call, kernel=kernel, reference=reference, pays=pays)


def _shared(of_platforms: Sequence[Any]) -> Any:
    """What all platforms have alike, else None."""
    return of_platforms[0] if all(each == of_platforms[0] for each in of_platforms) else None


def _drop(used: Sequence[bool], equation: JaxprEqn) -> tuple[list[bool], Any]:
    """The dead-code rule: unused results that are droppable get no rows."""
    if not any(used):
        return [False] * len(equation.invars), None
    call: _Call = equation.params["call"]
    drops = [may and not is_used for may, is_used in zip(call.droppable, used, strict=False)]
    if call.results is not None and any(drops):
        each = zip(call.results, drops, strict=True)
        results = tuple(((0, *shape[1:]) if dropped else shape, dtype) for (shape, dtype), dropped in each)
        call = replace(call, results=results)
        avals = _abstract(*(invar.aval for invar in equation.invars), call=call)
        kept = zip(equation.outvars, avals, drops, strict=True)
        outvars = [DropVar(aval) if dropped else outvar for outvar, aval, dropped in kept]
        equation = equation.replace(params={"call": call}, outvars=outvars)
    return [True] * len(equation.invars), equation


def _refuse_second_order(*_: object, call: _Call) -> NoReturn:
    """The derivative of a target, which is only needed for second derivatives: the ops define the first ones."""
    asked = call.implementation
    given = repr(asked) if asked in ("cpu", "gpu") else "a kernel or its reference"
    fail(
        f"{call.target.op}: `implementation` must be 'composed' for second derivatives and forward mode, got {given}. "
        "Pass implementation='composed'."
    )


def _batch(
    primitive: Primitive, operands: Sequence[Any], dims: Sequence[Any], call: _Call
) -> tuple[list[Array], list[int]]:
    """The `vmap` rule (`snnjax._batching`)."""
    mapped = zip(operands, dims, strict=True)
    size = next(operand.shape[dim] for operand, dim in mapped if dim is not None)
    if size == 0:
        one = [without_axis(operand, dim) for operand, dim in zip(operands, dims, strict=True)]
        shapes = jax.eval_shape(functools.partial(primitive.bind, call=call), *one)
        return [jnp.zeros((0, *shape.shape), shape.dtype) for shape in shapes], [0] * len(shapes)
    folded = fold(operands, dims, call.operand_axes, call.result_axes, size)
    if folded.into_batch and call.results is not None:
        each = zip(call.results, call.result_axes, strict=True)
        results = tuple((with_batch(shape, axis, size), dtype) for (shape, dtype), axis in each)
        call = replace(call, results=results)
    results = primitive.bind(*folded.operands, call=call)
    unfolded = [folded.unfold(*each) for each in zip(results, call.result_axes, strict=True)]
    return unfolded, [0] * len(unfolded)


@functools.cache
def _primitive(target: str) -> Primitive:
    """The primitive of a target, made once."""
    primitive = Primitive(target)
    primitive.multiple_results = True
    primitive.def_abstract_eval(_abstract)
    compiled = jax.jit(primitive.bind, static_argnames="call")

    def evaluated(*leaves: Array, call: _Call) -> list[Array]:
        with jax.disable_jit(False):  # else `bind` would come back here
            return compiled(*leaves, call=call)

    primitive.def_impl(evaluated)
    batching.primitive_batchers[primitive] = functools.partial(_batch, primitive)
    ad.primitive_jvps[primitive] = _refuse_second_order
    set_dce_rule(primitive, _drop)
    mlir.register_lowering(primitive, _lower_elsewhere)
    mlir.register_lowering(primitive, _lower_on_cpu, platform="cpu")
    return primitive
