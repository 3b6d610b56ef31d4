"""Decompositions and triangular systems: the functions that JAX lowers for the IPU, and the primitives on the device.

A backward stable algorithm is off by a modest multiple of the size times the rounding of the largest element. `CLOSE`
is 16 roundings of float32 for each row.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from snnjax.ipu.lowering.rules import linear_algebra
from tests.ipu.device.on_device import check

CLOSE = 16 * np.finfo(np.float32).eps
# One row, fewer than a block, odd, a whole block, a block and one row.
SIZES = (1, 2, 7, 32, 33)
SYSTEMS = [
    dict(zip(("left_side", "lower", "transpose_a", "unit_diagonal"), each, strict=True))
    for each in itertools.product((False, True), repeat=4)
]


def matrices(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    generator = np.random.default_rng((seed, *shape))
    values = generator.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.normal(size=shape)
    return values.astype(dtype)


def adjoint(a: Any) -> np.ndarray:
    return np.conj(np.swapaxes(a, -2, -1))


def definite(size: int, dtype: Any = np.float32) -> np.ndarray:
    a = matrices(2, size, size, dtype=dtype)
    return a @ adjoint(a) + size * np.eye(size, dtype=dtype)


def is_close(actual: Any, expected: Any, size: int) -> bool:
    largest = np.abs(expected).max(initial=1)
    return bool(np.abs(np.asarray(actual) - np.asarray(expected)).max(initial=0) <= CLOSE * size * largest)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("size", SIZES)
def test_cholesky_factor_times_its_adjoint_is_the_matrix(size: int, dtype: Any) -> None:
    a = definite(size, dtype)
    factor = np.asarray(jax.jit(linear_algebra.cholesky)(a))
    assert is_close(factor @ adjoint(factor), a, size)
    assert np.array_equal(factor, np.tril(factor))


def test_cholesky_is_nan_where_a_matrix_is_not_positive_definite() -> None:
    a = np.stack([np.eye(40), -np.eye(40)]).astype(np.float32)
    good, bad = linear_algebra.cholesky(jnp.asarray(a))
    assert np.array_equal(good, np.eye(40))
    assert np.isnan(bad).all()


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
@pytest.mark.parametrize("size", (1, 7, 33))
def test_solution_of_a_triangular_system_satisfies_it(size: int, system: dict[str, bool]) -> None:
    keep = np.tril if system["lower"] else np.triu
    # The other triangle, and a unit diagonal, must not be read.
    a = matrices(2, size, size) / (3 * size**0.5) + 2 * np.eye(size, dtype=np.float32)
    b = matrices(2, size, 3) if system["left_side"] else matrices(2, 3, size)
    triangle = keep(a)
    if system["unit_diagonal"]:
        triangle = triangle * (1 - np.eye(size, dtype=np.float32)) + np.eye(size, dtype=np.float32)
        a = np.where(np.eye(size, dtype=bool), np.nan, a)
    unread = keep(np.ones_like(a)) == 0
    solve = jax.jit(lambda a, b: linear_algebra.triangular_solve(a, b, conjugate_a=False, **system))
    x = np.asarray(solve(np.where(unread, np.nan, a), b))
    triangle = np.swapaxes(triangle, -2, -1) if system["transpose_a"] else triangle
    assert is_close(triangle @ x if system["left_side"] else x @ triangle, b, size)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(1, 1), (4, 2), (3, 7), (33, 33), (40, 12)])
def test_reflectors_are_those_of_lapack(shape: tuple[int, int], dtype: Any) -> None:
    a = matrices(2, *shape, dtype=dtype)
    a[1, :, 0] = 0  # a column that needs no reflector
    packed, taus = jax.jit(linear_algebra.geqrf)(a)
    columns = min(shape)
    q = np.asarray(jax.jit(linear_algebra.householder_product)(packed[..., :columns], taus))
    r = np.triu(np.asarray(packed))[..., :columns, :]
    assert is_close(adjoint(q) @ q, np.eye(columns), shape[0])
    assert is_close(q @ r, a, shape[0])
    expected_q, expected_r = jnp.linalg.qr(a)
    assert is_close(r, expected_r, 4 * shape[0])  # the signs are theirs, too
    assert is_close(q[0], expected_q[0], 4 * shape[0])


def test_primitives_on_the_device(ipus: list[jax.Device]) -> None:
    a = definite(5)
    close = {"rtol": 1e-4, "atol": 1e-5}  # the CPU calls LAPACK, which rounds elsewhere
    check(ipus[0], jnp.linalg.cholesky, a, **close)
    check(ipus[0], lambda a: jnp.linalg.qr(a, mode="complete"), matrices(6, 3), **close)


def test_each_ipu_solves_its_own(ipus: list[jax.Device]) -> None:
    """In a `shard_map`, whose types tell over which axes an array varies."""
    mesh, spec = Mesh(np.array(ipus[:2]), ("ipus",)), PartitionSpec("ipus")
    a, b = definite(5), matrices(len(definite(5)), 5, 2)

    def solved(a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.linalg.triangular_solve(jnp.linalg.cholesky(a), b, left_side=True, lower=True)

    sharded = [jax.device_put(each[:2], NamedSharding(mesh, spec)) for each in (a, b)]
    each = jax.jit(jax.shard_map(solved, mesh=mesh, in_specs=spec, out_specs=spec))(*sharded)
    np.testing.assert_allclose(each, jax.jit(solved)(a[:2], b[:2]), rtol=1e-3, atol=1e-4)


def test_gradients_on_the_device(ipus: list[jax.Device]) -> None:
    def loss(a: jax.Array, b: jax.Array) -> jax.Array:
        factor, (q, _) = jnp.linalg.cholesky(a), jnp.linalg.qr(b)
        x = lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)
        return jnp.sum(x**2) + 2 * jnp.sum(jnp.log(jnp.diagonal(factor))) + jnp.sum(jnp.sin(q))

    check(ipus[0], jax.grad(loss, (0, 1)), definite(5)[0], matrices(5, 2), rtol=1e-3, atol=1e-4)


def test_complex_systems_on_the_device(ipus: list[jax.Device]) -> None:
    a, b = definite(4, np.complex64)[0], matrices(4, 2, dtype=np.complex64)

    def solve(a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.linalg.triangular_solve(
            a, b, left_side=True, lower=True, transpose_a=True, conjugate_a=True
        )

    check(ipus[0], lambda a, b: (jnp.linalg.cholesky(a), solve(a, b)), a, b, rtol=1e-4, atol=1e-5)


def test_eigenvectors_are_refused(ipus: list[jax.Device]) -> None:
    with pytest.raises(Exception, match="the IPU has no target 'eigh'"):
        check(ipus[0], jnp.linalg.eigh, definite(3))
