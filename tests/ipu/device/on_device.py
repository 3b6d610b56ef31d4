"""A function on the modelled IPU beside the same function on the CPU; the devices, and arrays of every kind."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from tests.numbers import array
from tests.project.architecture import ROOT

NUMBERS = ("float32", "float16", "bfloat16", "int32", "uint32")
ANY = (*NUMBERS, "int8", "uint8", "int16", "uint16", "bool")
EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)


def examples(count: int) -> hypothesis.settings:
    """So many examples, more in a search; each compiles two programs, and ``ipus`` is the same for all of them."""
    count = count * hypothesis.settings.default.max_examples // 12
    checks = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture]
    return hypothesis.settings(max_examples=count, suppress_health_check=checks)


def on(device: jax.Device, function: Callable[..., Any], *arguments) -> list[np.ndarray]:
    """The leaves of the results of the compiled function, on a device."""
    results = jax.jit(function)(*jax.device_put(arguments, device))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def in_process(program: str, *arguments: object, **settings: str) -> str:
    """What a program writes in a process of its own, which must end well and say nothing else."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("JAX")}
    done = subprocess.run(
        (sys.executable, "-c", program, *map(str, arguments)),
        cwd=ROOT,
        env={**known, "SNNJAX_IPU_TILES": "4", **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def check(
    ipu: jax.Device, function: Callable[..., Any], *arguments, rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Integers and Booleans are those of the CPU bit for bit, others within the tolerance, NaN and inf alike."""
    (cpu,) = jax.devices("cpu")[:1]
    for actual, expected in zip(on(ipu, function, *arguments), on(cpu, function, *arguments), strict=True):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        if jnp.issubdtype(actual.dtype, jnp.inexact):
            wide = np.complex128 if jnp.iscomplexobj(actual) else np.float64
            np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol, atol)
        else:
            np.testing.assert_array_equal(actual, expected)


def tolerance(dtype: str) -> dict[str, float]:
    """For sums of a few numbers around 1, which the CPU may round more often than the IPU does."""
    return {"float16": {"rtol": 1e-2, "atol": 1e-2}, "bfloat16": {"rtol": 6e-2, "atol": 6e-2}}.get(
        dtype, {"rtol": 1e-5, "atol": 1e-5}
    )


def numbers(shape: tuple[int, ...], dtype: str, seed: int, *, edges: bool = False) -> jax.Array:
    """Eighths around 0, or integers of a few bits; with infinities, zeros of both signs and NaN between them."""
    generator = np.random.default_rng(seed)
    if jnp.issubdtype(jnp.dtype(dtype), jnp.inexact):
        values = generator.integers(-16, 17, shape) / 8
        if edges:
            values = np.where(generator.random(shape) < 0.3, generator.choice(EDGES, shape), values)
        return array(values, dtype)
    low = 0 if dtype.startswith(("u", "bool")) else -5
    return array(generator.integers(low, 2 if dtype == "bool" else 6, shape), dtype)


def shapes(min_rank: int = 1, max_rank: int = 4, max_side: int = 9) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(1, max_side), min_size=min_rank, max_size=max_rank).map(tuple)


seeds = st.integers(0, 2**16)


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
