"""Elementwise chains, gathers and scatter-adds beside published cycles of a Bow; nothing of ours has run on one.

Points of chains are tile cycles around one vertex, the 45 of two cycle counters included
(graphcore-research/tessellate-ipu). Those vertices are assembly, in part with dual loads; ours are what a compiler
makes of C++, and compared with what vectorised loops take as well. Points of rows are mean cycles of PopTorch's
operations in float32 (graphcore/Gradient-Pytorch-Geometric, ipu-speed-advantage): compute, exchange and sync, without
the host.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import ipu

# rows of the input, features, rows of the output: thousand cycles
GATHERS = {
    (16, 64, 1024): 1.89, (16, 512, 32): 1.73, (32, 16, 32768): 3.30, (64, 64, 1024): 2.29, (128, 128, 1024): 3.05,
    (256, 16, 16384): 4.24, (512, 64, 512): 5.45, (2048, 64, 256): 7.85, (4096, 16, 4096): 11.60,
}  # fmt: skip
SCATTERS = {
    (16, 64, 128): 2.83, (32, 64, 2048): 3.92, (64, 32, 8192): 5.62, (128, 16, 1024): 4.02, (256, 128, 1024): 7.86,
    (512, 16, 8192): 9.15, (1024, 32, 128): 4.83, (2048, 64, 1024): 11.19, (4096, 16, 4096): 14.09,
}  # fmt: skip


BOW = {"ipu_version": "bow", "ipu_tiles": "1472"}


def _error(function, values, ids, published):
    phases = ipu.profile(jax.jit(function, compiler_options=BOW), values, ids).phases
    return (phases.compute + phases.exchange + phases.sync) / (1000 * published) - 1


def _gather_error(rows, features, outputs, published):
    ids = np.random.default_rng(0).integers(0, rows, outputs).astype(np.int32)
    return _error(lambda x, ids: x[ids], jnp.ones((rows, features)), ids, published)


def _scatter_error(rows, features, outputs, published):
    ids = np.random.default_rng(0).integers(0, outputs, rows).astype(np.int32)

    def add(x, ids):
        return jnp.zeros((outputs, features)).at[ids].add(x)

    return _error(add, jnp.ones((rows, features)), ids, published)


@pytest.mark.parametrize(("error", "points"), [(_gather_error, GATHERS), (_scatter_error, SCATTERS)])
def test_cycles_of_rows_are_near_the_published(ipus, error, points):
    errors = np.abs([error(*sizes, published) for sizes, published in points.items()])
    assert np.median(errors) < 0.15
    assert max(errors) < 0.75


TILES, COUNTERS = 4, 45
OPTIONS = {"ipu_version": "bow", "ipu_tiles": str(TILES)}
ADD_ONE = {1024: 1860}
ADD_SCALED = {64: 375, 128: 467, 256: 665, 512: 1043}  # elements of a tile: cycles


def _cycles(function, elements, *dtypes):
    arrays = [jnp.ones(TILES * elements, dtype) for dtype in dtypes]
    return ipu.profile(jax.jit(function, compiler_options=OPTIONS), *arrays).phases.compute


def _slots(function, *dtypes):
    """Issue slots of a worker for one element, which are cycles of a tile with six workers."""
    return (_cycles(function, 3072, *dtypes) - _cycles(function, 1536, *dtypes)) / 1536


def _lif(v, current):
    v = 0.9 * v + current
    spikes = (v > 1).astype(v.dtype)
    return v - spikes, spikes


def test_cycles_of_chains_are_near_the_published(ipus):
    f32 = jnp.float32
    errors = [(_cycles(lambda x: x + 1, n, f32) + COUNTERS) / known - 1 for n, known in ADD_ONE.items()]
    for n, known in ADD_SCALED.items():
        errors.append((_cycles(lambda x, y: x + 0.5 * y, n, f32, f32) + COUNTERS) / known - 1)
    assert np.median(np.abs(errors)) < 0.15
    assert max(np.abs(errors)) < 0.2


@pytest.mark.parametrize(
    ("function", "operands", "float32", "float16"),
    [
        # Four elements take, of floats, two loads and two stores for each array and, of halves, one, and the branch.
        (lambda x: x + 1, 1, 5 / 4, 4 / 4),
        (lambda x, y: x + y, 2, 7 / 4, 5 / 4),
        (lambda x, y, z: x * y + z, 3, 9 / 4, 6 / 4),
        # A maximum that passes on a NaN is a comparison and an and, for each register.
        (lambda x: jnp.maximum(x, 0), 1, 7 / 4, 5 / 4),
        # Four products, sums, comparisons and differences of floats beside them; comparisons of halves are of floats.
        (_lif, 2, 13 / 4, 14 / 4),
        # 6 slots for the exponentials of two floats; load, store and branch; halves are widened and rounded.
        (jnp.exp, 1, (1 + 12 + 2) / 4, (1 + 16 + 2) / 4),
    ],
)
def test_a_chain_runs_at_the_rate_of_vectorised_code(ipus, function, operands, float32, float16):
    for dtype, slots in ((jnp.float32, float32), (jnp.float16, float16)):
        assert _slots(function, *[dtype] * operands) == slots


def test_one_row_for_all_and_single_elements_cost_no_load_in_the_loop(ipus):
    def scaled(x):
        return jnp.float32(0.5) * x

    assert _slots(scaled, jnp.float32) == 5 / 4
