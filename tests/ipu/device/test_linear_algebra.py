"""Decompositions and triangular systems: the functions that JAX lowers for the IPU, and the primitives on the device.

A backward stable algorithm is off by a modest multiple of the size times the rounding of the largest element. `CLOSE`
is 16 roundings of float32 for each row.
"""

import itertools
from typing import Any

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from snnjax.ipu.lowering.rules import linear_algebra
from tests.ipu.device.on_device import check, examples

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


@examples(12)
@hypothesis.given(
    batch=st.sampled_from([(), (1,), (2,), (3, 2)]),
    height=st.integers(0, 70),
    width=st.integers(0, 70),
    dtype=st.sampled_from([np.float32, np.complex64]),
)
def test_lu_is_that_of_lapack(batch: tuple[int, ...], height: int, width: int, dtype: Any) -> None:
    a = matrices(*batch, height, width, dtype=dtype)
    packed, pivots, order = map(np.asarray, jax.jit(linear_algebra.lu)(a))
    expected = lax.linalg.lu(a)
    np.testing.assert_array_equal(pivots, expected[1], strict=True)
    np.testing.assert_array_equal(order, expected[2], strict=True)
    count = min(height, width)
    assert (packed.dtype, packed.shape) == (a.dtype, a.shape)
    lower = np.tril(packed, -1)[..., :count] + np.eye(height, count, dtype=dtype)
    upper = np.triu(packed)[..., :count, :]
    assert is_close(lower @ upper, np.take_along_axis(a, order[..., None], -2), max(height, 1))
    assert (np.abs(np.real(lower)) + np.abs(np.imag(lower))).max(initial=1) < 2


def test_lu_of_singular_and_of_integer_matrices() -> None:
    """Where a column is zero nothing is eliminated; sums of small integers are exact."""
    packed, pivots, order = linear_algebra.lu(jnp.zeros((3, 40, 35)))
    assert not packed.any()
    assert (np.asarray(pivots) == np.arange(35)).all()
    assert (np.asarray(order) == np.arange(40)).all()
    infinite = np.float32([[1, np.inf], [0, 1]])
    assert np.isnan(linear_algebra.lu(jnp.asarray(infinite))[0]).any()
    a = np.float32([[0, 2, 4], [8, 0, 2], [4, 4, 5]])
    for each in (a, a * [1, 0, 1], a[:, ::-1], a[::-1]):
        for actual, expected in zip(linear_algebra.lu(jnp.asarray(each)), lax.linalg.lu(each), strict=True):
            np.testing.assert_array_equal(actual, expected)


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


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_eigenvectors_are_orthogonal_and_ascending(size: int, lower: bool, dtype: Any) -> None:
    a = matrices(2, size, size, dtype=dtype)
    a = a + adjoint(a)
    unread = (np.triu if lower else np.tril)(np.ones_like(a), 1 if lower else -1) == 1
    v, w = jax.jit(lambda a: linear_algebra.eigh(a, lower=lower))(np.where(unread, np.float32(7), a))
    v, w = np.asarray(v), np.asarray(w)
    assert is_close(adjoint(v) @ v, np.eye(size), size)
    assert is_close(a @ v, v * w[:, None, :], size)
    assert (np.diff(w) >= 0).all()
    assert w.dtype == np.float32


def test_rotations_end_before_the_last_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rounding is all that is left, more of them would change nothing, but take their time."""
    sweeps, repeat = [], linear_algebra._repeat
    monkeypatch.setattr(linear_algebra, "_repeat", lambda *each: (sweeps.append(1), repeat(*each))[1])
    a = matrices(32, 32)
    with jax.disable_jit():
        linear_algebra.eigh(jnp.asarray(a + adjoint(a)), lower=True)
    assert 2 <= len(sweeps) <= linear_algebra._MOST_SWEEPS // 2


def test_eigenvalues_of_a_diagonal_or_repeated_ones() -> None:
    for a in (np.diag([3.0, 1.0, 2.0]), np.ones((4, 4)), np.zeros((3, 3))):
        w = linear_algebra.eigh(jnp.asarray(a, jnp.float32), lower=True)[1]
        assert is_close(w, np.linalg.eigvalsh(a), len(a))


def test_primitives_on_the_device(ipus: list[jax.Device]) -> None:
    a = definite(5)
    close = {"rtol": 1e-4, "atol": 1e-5}  # the CPU calls LAPACK, which rounds elsewhere
    check(ipus[0], jnp.linalg.cholesky, a, **close)
    check(ipus[0], lambda a: jnp.linalg.qr(a, mode="complete"), matrices(6, 3), **close)
    check(ipus[0], lambda a: jnp.abs(jnp.linalg.eigh(a)[1]), a, **close)  # the sign of a vector is free
    check(ipus[0], lambda a: jnp.linalg.svd(a, compute_uv=False), matrices(6, 3), **close)
    check(ipus[0], lambda a, b: jnp.linalg.lstsq(a, b)[0], matrices(6, 3), matrices(6, 2), **close)
    check(ipus[0], jax.vmap(jnp.linalg.inv), a, **close)
    check(ipus[0], lambda a: jax.vmap(jax.lax.linalg.lu)(a), matrices(2, 6, 4), **close)
    check(ipus[0], jnp.linalg.slogdet, matrices(3, 5, 5), **close)


def test_each_ipu_solves_its_own(ipus: list[jax.Device]) -> None:
    """In a `shard_map`, whose types tell over which axes an array varies."""
    mesh, spec = Mesh(np.array(ipus[:2]), ("ipus",)), PartitionSpec("ipus")
    a, b = definite(5), matrices(len(definite(5)), 5, 2)

    def solved(a: jax.Array, b: jax.Array) -> jax.Array:
        w, v = jnp.linalg.eigh(a)
        return (
            jnp.linalg.solve(a, b) + jnp.linalg.inv(jnp.linalg.cholesky(a)) @ b + (v * w[:, None]) @ v.mT @ b
        )

    sharded = [jax.device_put(each[:2], NamedSharding(mesh, spec)) for each in (a, b)]
    each = jax.jit(jax.shard_map(solved, mesh=mesh, in_specs=spec, out_specs=spec))(*sharded)
    np.testing.assert_allclose(each, jax.jit(solved)(a[:2], b[:2]), rtol=1e-3, atol=1e-4)


def test_gradients_on_the_device(ipus: list[jax.Device]) -> None:
    def loss(a: jax.Array, b: jax.Array) -> jax.Array:
        w, v = jnp.linalg.eigh(a)
        log_determinant = 2 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(a))))
        return jnp.sum(jnp.linalg.solve(a, b) ** 2) + log_determinant + jnp.sum((v * jnp.sqrt(w)[None]) @ v.T)

    check(ipus[0], jax.grad(loss, (0, 1)), definite(5)[0], matrices(5, 2), rtol=1e-3, atol=1e-4)

    def rectangular(a: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(lax.linalg.lu(a)[0]))

    for shape in ((5, 3), (3, 5)):
        check(ipus[0], jax.grad(rectangular), matrices(*shape), rtol=1e-3, atol=1e-4)


def test_complex_systems_on_the_device(ipus: list[jax.Device]) -> None:
    a, b = definite(4, np.complex64)[0], matrices(4, 2, dtype=np.complex64)

    def solve(a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.linalg.triangular_solve(
            a, b, left_side=True, lower=True, transpose_a=True, conjugate_a=True
        )

    check(ipus[0], lambda a, b: (jnp.linalg.cholesky(a), solve(a, b)), a, b, rtol=1e-4, atol=1e-5)
    check(ipus[0], jnp.linalg.solve, matrices(4, 4, dtype=np.complex64), b, rtol=1e-4, atol=1e-5)


def test_complex_eigenvalues_on_the_device(ipus: list[jax.Device]) -> None:
    a = definite(3, np.complex64)
    close = {"rtol": 1e-4, "atol": 1e-5}
    check(ipus[0], jnp.linalg.eigvalsh, a, **close)
    check(ipus[0], lambda a: jnp.linalg.svd(a, compute_uv=False), matrices(6, 3, dtype=np.complex64), **close)
    check(ipus[0], jnp.linalg.pinv, matrices(4, 3, dtype=np.complex64), **close)


def test_some_of_the_eigenvectors_are_refused(ipus: list[jax.Device]) -> None:
    with pytest.raises(Exception, match="the IPU has no target 'eigh'"):
        check(ipus[0], lambda a: lax.linalg.eigh(a, subset_by_index=(0, 2))[1], definite(3))
