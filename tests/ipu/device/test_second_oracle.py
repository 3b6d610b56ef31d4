"""The device beside the reference interpreter of StableHLO, which computes by the specification and shares no code."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from tests.ipu.device import on_device

X = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)), jnp.float32)
IDS = jnp.array([3, 0, 7, -1, 2], jnp.int32)  # two of them out of range

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "elementwise": (lambda x: (jnp.tanh(x) * 2 + jnp.sqrt(jnp.abs(x)), x > 0, jnp.floor(x), jnp.sign(x)), X),
    "exponentials": (lambda x: (jnp.exp(x), jnp.log1p(jnp.abs(x)), jax.nn.sigmoid(x), jnp.expm1(x)), X),
    "integers": (lambda i: (i // 2, i % 3, i << 2, i & 5, -i, jnp.abs(i)), IDS),
    "conversions": (lambda x: (x.astype(jnp.int32), (x > 0).astype(jnp.float32), x.astype(jnp.float16)), X),
    "product": (lambda x: (x @ x.T, jnp.einsum("ij,ik->jk", x, x)), X),
    "reductions": (lambda x: (x.sum(0), x.max(1), x.min(), jnp.prod(x, 1), jnp.any(x > 1, 0)), X),
    "shapes": (lambda x: (x.T, x[::2, 1:5:3], jnp.concatenate([x, x], 1), x[:, ::-1], x.reshape(8, 3)), X),
    "padding": (lambda x: jax.lax.pad(x, 0.5, ((1, -1, 1), (0, 2, 2))), X),
    "gathered rows": (lambda x, i: x.at[i].get(mode="clip"), X, IDS),
    "added rows": (lambda x, i: x.at[i].add(x[:1], mode="drop"), X, IDS),
    "slices": (lambda x, i: jax.lax.dynamic_slice(x, (i[0], i[4]), (2, 3)), X, IDS),
    "updates": (lambda x, i: jax.lax.dynamic_update_slice(x, x[:2, :3], (i[0], i[4])), X, IDS),
    "sorted": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0)), X),
    "a loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + i, x), X),
    "a loop by its data": (lambda x: jax.lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2 + 1, x), X),
    "branches": (lambda x, i: jax.lax.switch(i[0], [jnp.sin, jnp.cos, jnp.abs], x), X, IDS),
}


def interpreted(function, *arguments: jax.Array) -> list[np.ndarray]:
    """What the specification says."""
    module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
    with module.context:
        constants = [ir.DenseElementsAttr.get(np.asarray(argument)) for argument in arguments]
        return [np.array(result) for result in stablehlo.eval_module(module, constants)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_device_computes_what_the_specification_says(ipus, name):
    function, *arguments = FUNCTIONS[name]
    pairs = zip(on_device.on(ipus[0], function, *arguments), interpreted(function, *arguments), strict=True)
    for actual, expected in pairs:
        # Sums in another order; functions of the C library beside those of the interpreter.
        np.testing.assert_allclose(
            actual.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-6
        )
