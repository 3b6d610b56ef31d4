"""Elementwise chains: compared with published cycles of a Bow, and with what vectorised loops take.

The published points are tile cycles around one vertex, the 45 of two cycle counters included
(graphcore-research/tessellate-ipu). Those vertices are assembly, in part with dual loads; ours are what a compiler
makes of C++. Nothing of this project has run on an IPU.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import ipu

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


def test_cycles_are_near_the_published(ipus):
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
