"""A function of JAX as the attributes of one custom operation on an installed Poplar SDK."""

import base64
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from snnjax import _jax_compat
from snnjax._check import fail
from snnjax.ipu.lowering import lower


class CustomOp(NamedTuple):
    """What the functions `Build` and `Build_grad` of ``snnjax_custom_op.so`` are told, as text."""

    attributes: str
    gradient_attributes: str


def custom_op(function: Callable[..., Any], *arguments: Any) -> CustomOp:
    r"""The attributes by which ``xla_ext/custom_op`` builds `function` into the graph of a framework on Poplar.

    The operation takes the leaves of `arguments` in the order of `jax.tree.leaves` and gives the leaves of what
    `function` returns; `Build_grad` gives :math:`g^T \partial y / \partial x`, where `g` are the gradients of all
    floating-point outputs, for each floating-point input. It runs the forward pass again.

    In TensorFlow for the IPU ``precompiled_user_op`` takes both texts, the library's path, and
    ``separate_gradients=False``; in JAX for the IPU they are the attributes of a custom primitive. **Not run on
    hardware, nor compiled by an SDK**: tests load the library on the IPU Model.

    Args:
        function: of arrays, as `jax.jit` takes it; float32, float16, and integers of at most 32 bits.
        arguments: arrays, or pytrees of them, or `jax.ShapeDtypeStruct`: shapes and types alone count.

    Raises:
        ValueError: for bfloat16 and complex numbers, for which Poplar has no types.
        Unsupported: of ``snnjax.ipu.lowering``, where the IPU does not run the function.

    Example:
        >>> import base64, jax.numpy as jnp
        >>> from snnjax.ipu import custom_op
        >>> square = custom_op(lambda x: x * x, jnp.ones(3))
        >>> base64.b64decode(square.attributes)[:7], square.attributes == square.gradient_attributes
        (b'SNNPLNA', False)

    Source: ``custom_codelet.rst`` and ``user_op.cc`` of https://github.com/graphcore/tensorflow, API level 5.
    """
    shapes = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), arguments
    )
    inputs, structure = jax.tree.flatten(shapes)

    def forward(*leaves: Any) -> list[Any]:
        return jax.tree.leaves(function(*jax.tree.unflatten(structure, leaves)))

    outputs = jax.eval_shape(forward, *inputs)
    for leaf in (*inputs, *outputs):
        if leaf.dtype == jnp.bfloat16 or jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            way_out = "Convert them to float16" if leaf.dtype == jnp.bfloat16 else "Pass both parts"
            fail("custom_op", "arguments", "have types that Poplar has", leaf.dtype, way_out)
    given = [leaf for leaf in outputs if _has_gradient(leaf)]
    backward = _backward(forward, inputs)
    return CustomOp(_attributes(forward, inputs), _attributes(backward, [*inputs, *given]))


def _backward(forward: Callable[..., list[Any]], inputs: Sequence[Any]) -> Callable[..., list[Any]]:
    """The gradients of those inputs that have one, of all inputs and the gradients of those outputs that have one."""

    def backward(*leaves: Any) -> list[Any]:
        values, given = leaves[: len(inputs)], leaves[len(inputs) :]
        outputs, pull = jax.vjp(lambda *some: list(filter(_has_gradient, forward(*some))), *values)
        gradients = pull(list(given)) if outputs else values
        return [gradient for gradient, leaf in zip(gradients, inputs, strict=True) if _has_gradient(leaf)]

    return backward


def _has_gradient(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def _attributes(function: Callable[..., list[Any]], inputs: Sequence[Any]) -> str:
    """The plan of a function, in base64: attributes are text."""
    traced: Any = jax.jit(function, keep_unused=True).trace(*inputs)
    module = traced.lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
    plan = lower(_jax_compat.mlir.module_to_bytecode(module), _jax_compat.default_compile_options())
    return base64.b64encode(plan).decode()
