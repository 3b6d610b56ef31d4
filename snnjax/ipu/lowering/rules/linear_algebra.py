"""Decompositions of matrices and triangular systems, as programs of products, slices and loops.

The IPU has no instruction for these primitives of `jax.lax.linalg`: JAX lowers the functions below in their place. All
take any leading axes. Triangular systems and Cholesky work through diagonal blocks of `_BLOCK` rows alone row by row;
the rest is products of blocks, as in LAPACK (Anderson et al., LAPACK Users' Guide, 3rd edition, 1999, section
"Block-Partitioned Algorithms"). QR applies one reflector at a time.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

# Rows of the diagonal blocks.
_BLOCK = 32


def _promoting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let ranks and dtypes be promoted inside, whatever the user's configuration forbids."""

    @functools.wraps(function)
    def call(*arrays: jax.Array, **parameters: Any) -> Any:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return function(*arrays, **parameters)

    return call


@_promoting
def triangular_solve(
    a: jax.Array,
    b: jax.Array,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> jax.Array:
    """The x with ``op(a) x = b``, or ``x op(a) = b`` unless `left_side`; only one triangle of `a` is read."""
    a = jnp.conj(a) if conjugate_a else a
    if transpose_a == left_side:  # x a = b is the same as a^T x^T = b^T
        a, lower = _transposed(a), not lower
    b = b if left_side else _transposed(b)
    if not lower:  # with its rows and columns in reverse, an upper triangle is a lower one
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    a = jnp.tril(a, -1 if unit_diagonal else 0)
    a = a + jnp.eye(a.shape[-1], dtype=a.dtype) if unit_diagonal else a
    x = _forward_substitution(a, b) if b.size else b
    x = x if lower else x[..., ::-1, :]
    return x if left_side else _transposed(x)


@_promoting
def cholesky(a: jax.Array) -> jax.Array:
    """The lower triangle whose product with its adjoint is `a`; NaN where `a` is not positive definite."""
    size, block = a.shape[-1], _block_of(a)
    a = _padded(a, block)
    rows = _range(a.shape[-1])

    def step(number: jax.Array, factor: jax.Array) -> jax.Array:
        first = number * block
        row_of_blocks = lax.dynamic_slice_in_dim(factor, first, block, -2)
        panel = lax.dynamic_slice_in_dim(a, first, block, -1) - _product(factor, _adjoint(row_of_blocks))
        diagonal = _cholesky_of_block(lax.dynamic_slice_in_dim(panel, first, block, -2))
        below = _product(panel, _adjoint(_inverse_of_block(diagonal)))
        column = jnp.where(rows[:, None] >= first + block, below, 0)
        column = lax.dynamic_update_slice_in_dim(column, diagonal, first, -2)
        return lax.dynamic_update_slice_in_dim(factor, column, first, -1)

    factor = _repeat(a.shape[-1] // block, step, jnp.zeros_like(a))[..., :size, :size]
    definite = jnp.all(jnp.isfinite(_diagonal(factor)), axis=-1)
    return jnp.where(definite[..., None, None], factor, jnp.nan)


@_promoting
def geqrf(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """R in the upper triangle, the v of reflectors ``I - tau v v^H`` below it, and tau, as from LAPACK's ``geqrf``."""
    count = min(a.shape[-2:])
    rows, columns = _range(a.shape[-2]), _range(a.shape[-1])

    def step(k: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, taus = carry
        is_column = columns == k  # columns are read and written by a mask: each part of `a` stays on its tile
        column = jnp.sum(jnp.where(is_column, a, 0), axis=-1)
        alpha = lax.dynamic_slice_in_dim(column, k, 1, -1)
        below = jnp.where(rows > k, column, 0)
        done = jnp.all(below == 0, axis=-1, keepdims=True) & (jnp.imag(alpha) == 0)
        norm = _norm(jnp.where(rows >= k, column, 0))
        beta = jnp.where(done, alpha, jnp.where(jnp.real(alpha) < 0, norm, -norm))
        tau = jnp.where(done, 0, (beta - alpha) / jnp.where(done, 1, beta))
        below = below / jnp.where(done, 1, alpha - beta)
        v = jnp.where(rows == k, 1, below)
        share = jnp.where(columns > k, jnp.conj(tau) * _product(jnp.conj(v)[..., None, :], a)[..., 0, :], 0)
        a = a - v[..., :, None] * share[..., None, :]
        column = jnp.where(rows > k, below, jnp.where(rows == k, beta, column))
        a = jnp.where(is_column, column[..., :, None], a)
        return a, lax.dynamic_update_slice_in_dim(taus, tau, k, -1)

    return _repeat(count, step, (a, jnp.zeros((*a.shape[:-2], count), a.dtype)))


@_promoting
def householder_product(a: jax.Array, taus: jax.Array) -> jax.Array:
    """The first columns of Q, the product of the reflectors whose v are below the diagonal of `a`."""
    count, rows, columns = taus.shape[-1], _range(a.shape[-2]), _range(a.shape[-1])

    def step(done: jax.Array, q: jax.Array) -> jax.Array:
        k = count - 1 - done
        column = jnp.sum(jnp.where(columns == k, a, 0), axis=-1)
        v = jnp.where(rows > k, column, (rows == k).astype(a.dtype))
        share = lax.dynamic_slice_in_dim(taus, k, 1, -1) * _product(jnp.conj(v)[..., None, :], q)[..., 0, :]
        return q - v[..., :, None] * share[..., None, :]

    return _repeat(count, step, jnp.broadcast_to(jnp.eye(*a.shape[-2:], dtype=a.dtype), a.shape))


def _forward_substitution(a: jax.Array, b: jax.Array) -> jax.Array:
    """The x with ``a x = b`` for a lower triangle: the diagonal blocks are inverted, all at once."""
    size, block = a.shape[-1], _block_of(a)
    a = _padded(a, block)
    count = a.shape[-1] // block
    b = jnp.pad(b, [(0, 0)] * (b.ndim - 2) + [(0, a.shape[-1] - size), (0, 0)])
    shape = b.shape
    blocks = a.reshape(*a.shape[:-2], count, block, count, block)
    inverses = _inverse_of_block(jnp.moveaxis(jnp.diagonal(blocks, axis1=-4, axis2=-2), -1, -3))

    # A single column would lie on one tile if it were sliced (`xla_ext/executor`); blocks of it do not.
    b = b.reshape(*b.shape[:-2], count, block, b.shape[-1])

    def step(number: jax.Array, x: jax.Array) -> jax.Array:
        known = _product(lax.dynamic_slice_in_dim(a, number * block, block, -2), x.reshape(shape))
        rest = lax.dynamic_index_in_dim(b, number, -3, keepdims=False) - known
        inverse = lax.dynamic_index_in_dim(inverses, number, -3, keepdims=False)
        return lax.dynamic_update_index_in_dim(x, _product(inverse, rest), number, -3)

    return _repeat(count, step, jnp.zeros_like(b)).reshape(shape)[..., :size, :]


def _inverse_of_block(a: jax.Array) -> jax.Array:
    """The inverse of a lower triangle, row by row."""
    identity = jnp.eye(a.shape[-1], dtype=a.dtype)

    def step(row: jax.Array, x: jax.Array) -> jax.Array:
        row_of_a = lax.dynamic_slice_in_dim(a, row, 1, -2)
        pivot = lax.dynamic_slice_in_dim(row_of_a, row, 1, -1)
        new = (lax.dynamic_slice_in_dim(identity, row, 1, -2) - _product(row_of_a, x)) / pivot
        return lax.dynamic_update_slice_in_dim(x, new, row, -2)

    return _repeat(a.shape[-1], step, jnp.zeros_like(a))


def _cholesky_of_block(a: jax.Array) -> jax.Array:
    """The Cholesky factor, column by column."""
    rows = _range(a.shape[-1])[:, None]

    def step(k: jax.Array, factor: jax.Array) -> jax.Array:
        column = lax.dynamic_slice_in_dim(a, k, 1, -1)
        column = column - _product(factor, _adjoint(lax.dynamic_slice_in_dim(factor, k, 1, -2)))
        pivot = jnp.sqrt(jnp.real(lax.dynamic_slice_in_dim(column, k, 1, -2)))
        return lax.dynamic_update_slice_in_dim(factor, jnp.where(rows >= k, column / pivot, 0), k, -1)

    return _repeat(a.shape[-1], step, jnp.zeros_like(a))


def _repeat(count: int, step: Any, start: Any) -> Any:
    return lax.fori_loop(jnp.int32(0), jnp.int32(count), step, start)


def _range(count: int) -> jax.Array:
    return lax.iota("int32", count)


def _block_of(a: jax.Array) -> int:
    return max(1, min(_BLOCK, a.shape[-1]))


def _padded(a: jax.Array, block: int) -> jax.Array:
    """Square matrices with an identity behind them, so that blocks divide their size."""
    size = a.shape[-1]
    more = -size % block
    a = jnp.pad(a, [(0, 0)] * (a.ndim - 2) + [(0, more)] * 2)
    return a + jnp.diag((_range(size + more) >= size).astype(a.dtype))


def _norm(x: jax.Array) -> jax.Array:
    """Euclidean, ``[..., 1]``; scaled, so that squares neither overflow nor vanish."""
    largest = jnp.max(jnp.abs(x), axis=-1, keepdims=True)
    scaled = jnp.abs(x) / jnp.where(largest == 0, 1, largest)
    return (largest * jnp.sqrt(jnp.sum(scaled * scaled, axis=-1, keepdims=True))).astype(x.dtype)


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _diagonal(a: jax.Array) -> jax.Array:
    return jnp.diagonal(a, axis1=-2, axis2=-1)


def _transposed(a: jax.Array) -> jax.Array:
    return jnp.swapaxes(a, -2, -1)


def _adjoint(a: jax.Array) -> jax.Array:
    return jnp.conj(_transposed(a))
