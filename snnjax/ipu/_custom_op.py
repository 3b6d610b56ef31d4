"""A JAX function as the attributes of a custom operation for an installed Poplar SDK."""

import base64
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from snnjax import _jax_compat
from snnjax._check import fail
from snnjax.ipu.lowering import lower


class CustomOp(NamedTuple):
    """The attributes, as text, for the functions `Build` and `Build_grad` of ``snnjax_custom_op.so``."""

    attributes: str
    gradient_attributes: str


def custom_op(function: Callable[..., Any], *arguments: PyTree) -> CustomOp:
    r"""Make the attributes with which ``xla_ext/custom_op`` builds `function` into the graph of a Poplar framework.

    The operation takes the leaves of `arguments` in the order of `jax.tree.leaves` and returns the leaves of the result
    of `function`; `Build_grad` returns :math:`g^T \partial y / \partial x` for each floating-point input, where `g` are
    the gradients of all floating-point outputs. It recomputes the forward pass.

    In TensorFlow for the IPU, pass both texts, the path of the library and ``separate_gradients=False`` to
    ``precompiled_user_op``; in JAX for the IPU they are the attributes of a custom primitive. **Not run on hardware,
    nor compiled by an SDK**: tests load the library on the IPU Model.

    Args:
        function: a function that `jax.jit` accepts, of float32, float16, and integers of at most 32 bits.
        arguments: arrays or `jax.ShapeDtypeStruct`, or pytrees of them; only shapes and dtypes matter.

    Raises:
        ValueError: if an argument is bfloat16 or complex, for which Poplar has no types.
        Exception: ``snnjax.ipu.lowering.errors.Unsupported``, if the IPU cannot run the function.

    Example:
        >>> import base64, jax.numpy as jnp
        >>> from snnjax.ipu import custom_op
        >>> square = custom_op(lambda x: x * x, jnp.ones(3))
        >>> base64.b64decode(square.attributes)[:7], square.attributes == square.gradient_attributes
        (b'SNNPLNA', False)

    Source: ``custom_codelet.rst`` and ``user_op.cc`` of https://github.com/graphcore/tensorflow, API level 5.
    """
    leaves, structure = jax.tree.flatten(arguments)
    inputs = [jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves]

    def forward(*leaves: Array) -> list[Any]:
        return jax.tree.leaves(function(*jax.tree.unflatten(structure, leaves)))

    outputs = jax.eval_shape(forward, *inputs)
    for leaf in (*inputs, *outputs):
        if leaf.dtype == jnp.bfloat16 or jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            hint = "Convert them to float16" if leaf.dtype == jnp.bfloat16 else "Pass both parts"
            fail(f"custom_op: `arguments` must have types that Poplar has, got {leaf.dtype}. {hint}.")
    given = [leaf for leaf in outputs if _has_gradient(leaf)]
    backward = _backward(forward, inputs)
    return CustomOp(_attributes(forward, inputs), _attributes(backward, [*inputs, *given]))


def _backward(forward: Callable[..., list[Any]], inputs: Sequence[Any]) -> Callable[..., list[Any]]:
    """A function of all inputs and the gradients of the differentiable outputs, to those of differentiable inputs."""

    def backward(*leaves: Array) -> list[Any]:
        values, given = leaves[: len(inputs)], leaves[len(inputs) :]
        outputs, pull = jax.vjp(lambda *some: list(filter(_has_gradient, forward(*some))), *values)
        gradients = pull(list(given)) if outputs else values
        return [gradient for gradient, leaf in zip(gradients, inputs, strict=True) if _has_gradient(leaf)]

    return backward


def _has_gradient(leaf: Array | jax.ShapeDtypeStruct) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def _attributes(function: Callable[..., list[Any]], inputs: Sequence[Any]) -> str:
    """The plan of a function, in base64 because attributes are text."""
    traced: Any = jax.jit(function, keep_unused=True).trace(*inputs)
    module = traced.lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
    plan = lower(_jax_compat.mlir.module_to_bytecode(module), _jax_compat.default_compile_options())
    return base64.b64encode(plan).decode()
