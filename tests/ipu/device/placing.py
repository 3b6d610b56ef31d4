"""The devices that tests put arrays on, and arrays of every kind."""

import jax
import jax.numpy as jnp
import numpy as np


def ipu(number=0):
    """One of the IPUs that tests/conftest.py sets up."""
    return jax.devices("ipu")[number]


def cpu():
    """The first CPU."""
    return jax.devices("cpu")[0]


def put(array, device=None):
    """On a device, the first IPU where none is given."""
    return jax.device_put(array, device or ipu())


ARRAYS = {
    "scalar": np.float32(2.5),
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
    "empty": np.zeros((0, 3), np.int32),
    "bools": np.array([True, False, True]),
    "halves": np.linspace(0, 1, 7).astype(np.float16),
    "bfloat16": np.asarray(jnp.arange(5, dtype=jnp.bfloat16)),
    "transposed": np.arange(24, dtype=np.int8).reshape(2, 3, 4).transpose(2, 0, 1),
    "every second": np.arange(20, dtype=np.uint16).reshape(5, 4)[::2, ::-1],
    "broadcast": np.broadcast_to(np.uint32(7), (3, 2)),
}
