"""The configuration of all tests: strict JAX, checked annotations, four CPUs, four IPUs, reproducible hypothesis."""

import contextlib
import ctypes
import gc
import mmap
import os
import platform
import sys
import unittest.mock
from collections.abc import Iterator
from pathlib import Path

from tests import quick

# Modules, and what they make for their tests, are there to stay: there is no garbage to look for while they are loaded.
gc.disable()
# Before JAX is imported: `shard_map` is tested over four devices, which one CPU can emulate.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
FLAGS = f"--xla_force_host_platform_device_count=4 {quick.XLA_FLAGS}"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}".strip()
# Programs, also those that tests start, compile in about half the time, and run slower; kernels and plans are those of
# users.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
# Pictures are written to files; no test needs a window.
os.environ["MPLBACKEND"] = "agg"

import jaxtyping

import tests.project.type_checker  # noqa: F401  (the hook looks it up by name)

# Before snnjax is imported: the hook rewrites the modules as they are loaded.
jaxtyping.install_import_hook("snnjax", "tests.project.type_checker.check")

import hypothesis
import jax
import pytest
from snnjax_jax_plugin import _wire

from snnjax import _jax_compat
from snnjax.graph import segments
from tests.errors import messages

# With few tiles, so that programs compile and run fast. Programs that tests start see none of these settings.
IPUS = {"SNNJAX_IPU_DEVICES": "4", "SNNJAX_IPU_TILES": "8"}
if _wire.path().exists():
    jax.config.update("jax_platforms", "cpu,ipu")
    # IPU tests report what is wrong with it (tests/ipu/conftest.py); the others continue.
    with unittest.mock.patch.dict(os.environ, IPUS), contextlib.suppress(RuntimeError, RuntimeWarning):
        jax.devices()
    jax.config.update("jax_platforms", "cpu")

_jax_compat.lower_with_few_dialects()
# Without a folder for it there is no cache, and no key of each program to compute.
jax.config.update("jax_enable_compilation_cache", "JAX_COMPILATION_CACHE_DIR" in os.environ)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

messages.watch()

# The first example compiles for seconds, so there is no deadline; the examples are the same everywhere, so that a
# failure is due to the change. `HYPOTHESIS_PROFILE=search` looks for new ones.
hypothesis.settings.register_profile(
    "repeatable",
    max_examples=12,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "search", parent=hypothesis.settings.get_profile("repeatable"), max_examples=200, derandomize=False
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# Of one process: two workers then fit in a laptop of 8 GB, beside a browser.
MOST_MEMORY = 2 * 2**30


def pytest_collection_finish() -> None:
    """The collector of garbage need not look again at what modules hold, nor at the rest as often as usual."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)
    gc.enable()


def pytest_runtest_teardown() -> None:
    """A worker that holds much after a test drops the programs that it has compiled, and returns their memory.

    Nearly all of it is what XLA and LLVM needed while they compiled, freed with the programs and kept by the allocator.
    """
    statistics = Path("/proc/self/statm")
    if not statistics.exists():  # macOS and Windows do not say
        return
    held = int(statistics.read_text(encoding="utf-8").split()[1]) * mmap.PAGESIZE
    if held > 0.6 * MOST_MEMORY:  # single tests need up to 0.3 more
        jax.clear_caches()
        gc.collect()
        if platform.libc_ver()[0] == "glibc":
            ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="session", autouse=True)
def memory_stays_small() -> Iterator[None]:
    """No worker of the suite, and no program that it starts, has needed more than a laptop has."""
    yield
    if sys.platform == "win32":  # does not say
        return
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        assert resource.getrusage(who).ru_maxrss * unit < MOST_MEMORY


@pytest.fixture(scope="session", autouse=True)
def small_networks_are_fused() -> Iterator[None]:
    """Networks of tests stand for large ones: few rows are no reason for scans (graph/test_run.py tests those)."""
    with unittest.mock.patch.object(segments, "FEWEST_ROWS", 0):
        yield
