"""Gathers and scatter-adds compared with published cycles of a Bow; nothing of this project has run on one.

The points are mean cycles of PopTorch's operations in float32 (graphcore/Gradient-Pytorch-Geometric,
ipu-speed-advantage): compute, exchange and sync, without the host.
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
def test_cycles_are_near_the_published(ipus, error, points):
    errors = np.abs([error(*sizes, published) for sizes, published in points.items()])
    assert np.median(errors) < 0.15
    assert max(errors) < 0.75
