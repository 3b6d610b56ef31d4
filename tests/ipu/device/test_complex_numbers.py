"""Complex numbers on the modelled IPU, which computes with pairs of float32, against the CPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.ipu.device.on_device import check, numbers

# The formulas round a few times more than the CPU's.
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


def complex_numbers(shape, seed):
    real, imaginary = (np.asarray(numbers(shape, "float32", each)) for each in (seed, seed + 1))
    return real + np.complex64(1j) * imaginary


def functions(x, y):
    """One of each elementwise function, so that one program does for all."""
    unary = (
        *(jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jnp.sqrt, lax.rsqrt, jnp.sin, jnp.cos, jnp.tan, jnp.tanh),
        *(jnp.abs, jnp.sign, jnp.conj, jnp.angle, jnp.square, jnp.reciprocal, lax.logistic),
    )
    return [function(x) for function in unary], x * y, x / y, x**y, x == y, x != x


def moves(x, indices):
    """What moves elements, or carries them round a loop."""
    looped = lax.fori_loop(0, x[0, 0].real.astype(jnp.int32) + 3, lambda _, c: c * (0.5 + 1j) + x, x)
    chosen = lax.cond(indices[0] > 0, lambda: x.T, lambda: jnp.conj(x.T))
    return looped, chosen, x.at[indices].add(1j), x[indices], jnp.pad(x, 1), jnp.where(x.real > 0, x, 2j)


def test_an_array_goes_there_and_back(ipus):
    x = complex_numbers((3, 2), 1)
    np.testing.assert_array_equal(jax.device_put(x, ipus[0]), x)
    strided = jax.device_put(x.T, ipus[0])
    assert strided.dtype == np.complex64
    np.testing.assert_array_equal(jax.device_put(strided, ipus[1]), x.T)


def test_nothing_is_no_complex_number(ipus):
    nothing = np.ones((3, 0), np.complex64)
    check(ipus[0], lambda x: (x + 1j, x.real, x == 1j, jnp.abs(x), x * x, x.sum(1)), nothing)


def test_counting(ipus):
    check(ipus[0], lambda x: jnp.arange(3, dtype=x.dtype) * x, complex_numbers(3, 1))


def test_elementwise_functions(ipus):
    x, y = complex_numbers(7, 1) / np.float32(4), complex_numbers(7, 3) / np.float32(4)
    check(ipus[0], functions, x, y, **CLOSE)


def test_roots_and_quotients_at_the_ends_of_the_range(ipus):
    x = np.array([0, -4, -4 - 0j, 4, 2e19 + 2e19j, 1e-20 + 1e-20j, -3j], np.complex64)
    x[2] = np.conj(x[1])
    check(ipus[0], lambda x: (jnp.sqrt(x), jnp.abs(x), (1 + 1j) * 1e19 / (x + 1e19)), x, **CLOSE)


def test_products_and_reductions(ipus):
    a, b = complex_numbers((2, 3, 5), 1), complex_numbers((2, 5, 4), 3)
    check(
        ipus[0], lambda a, b: (a @ b, a.sum(1), a.prod(2), jnp.cumsum(a, 2), a[:, :0].prod(1)), a, b, **CLOSE
    )


def test_functions_of_elements(ipus):
    def combined(x, i):
        pooled = lax.reduce_window(x, np.complex64(1), lax.mul, (2, 1), (1, 1), "VALID")
        return pooled, jnp.max(x, 1), x.at[i].multiply(x[:3]), x.at[i].apply(jnp.exp)

    check(ipus[0], combined, complex_numbers((4, 3), 5) / np.float32(4), np.int32([0, 0, 2]), **CLOSE)


def test_moves_loops_and_branches(ipus):
    check(ipus[0], moves, complex_numbers((3, 3), 5) / np.float32(4), np.array([2, 0, 2], np.int32), **CLOSE)


def test_gradients(ipus):
    def loss(weights, x):
        return jnp.sum(jnp.abs(jnp.tanh(x @ weights)) ** 2)

    weights, x = complex_numbers((3, 2), 1) / np.float32(8), complex_numbers((4, 3), 3) / np.float32(8)
    check(ipus[0], jax.value_and_grad(loss, (0, 1)), weights, x, **CLOSE)


def test_shards(ipus):
    mesh = jax.make_mesh((2,), ("d",), devices=ipus[:2], axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.P("d")
    x = complex_numbers((4, 3), 1)
    placed = jax.device_put(x, jax.NamedSharding(mesh, spec))
    summed = jax.jit(
        jax.shard_map(
            lambda x: (x * 1j, lax.psum(x, "d")), mesh=mesh, in_specs=spec, out_specs=(spec, jax.P())
        )
    )(placed)
    np.testing.assert_allclose(summed[0], x * 1j)
    np.testing.assert_allclose(summed[1], x[:2] + x[2:], rtol=1e-6)


def test_what_is_not_there_for_complex_numbers_is_refused(ipus):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"UNIMPLEMENTED: .* of c64\[3,3\].*complex numbers"):
        jax.jit(lax.linalg.schur)(jax.device_put(np.ones((3, 3), np.complex64), ipus[0]))
