"""Nothing stays behind: memory of the process after compiles and runs, and the programs themselves.

The counts are small, but what is left behind by one run would show: the C library counts its bytes exactly.
"""

import ctypes
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from snnjax.ipu.device import library

COMPILES, RUNS = 20, 2000
# JAX's own caches grow by some hundred bytes a program; a program takes a hundred times that.
BYTES_A_COMPILE, BYTES_A_RUN = 8192, 8


class HeapUse(ctypes.Structure):
    """``struct mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    )


def bytes_in_use() -> int:
    """Of all memory that C and C++ have allocated in this process."""
    gc.collect()
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("this C library does not count its bytes")
    library.mallinfo2.restype = HeapUse
    use = library.mallinfo2()
    return use.uordblks + use.hblkhd


def compile_many(device: jax.Device, first: int) -> None:
    x = jax.device_put(np.arange(64, dtype=np.float32), device)
    for number in range(first, first + COMPILES):
        jax.jit(lambda x, number=number: jnp.tanh(x * float(number)) + x[::-1])(x).block_until_ready()
    jax.clear_caches()


def test_compiled_programs_leave_nothing_behind(ipus):
    for warm_up in (1, 2):
        compile_many(ipus[0], 1000 * warm_up)
    before = bytes_in_use()
    compile_many(ipus[0], 3000)
    assert bytes_in_use() - before < BYTES_A_COMPILE * COMPILES


def test_compiling_makes_no_reference_cycles(ipus):
    """Such garbage, which stays until the collector runs, JAX makes none of."""

    def function(x):
        return lax.fori_loop(0, 3, lambda _, y: y * 2 + x.sum(), x)

    x = jax.device_put(np.arange(3, dtype=np.float32), ipus[0])
    gc.collect()
    flags = gc.get_debug()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        jax.jit(function)(x).block_until_ready()
        assert gc.collect() == 0, gc.garbage
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()


def test_runs_leave_nothing_behind(ipus):
    step = jax.jit(lambda state, x: (state * 0.5 + x, jnp.sin(x)), donate_argnums=0)
    x = jax.device_put(np.arange(64, dtype=np.float32), ipus[0])
    state = jax.device_put(np.zeros(64, np.float32), ipus[0])

    def run_many(state):
        for number in range(RUNS):
            state, y = step(state, x)
            if number % 100 == 0:
                np.asarray(y)
        return jax.block_until_ready(state)

    state = run_many(state)
    before, buffers = bytes_in_use(), ipus[0].memory_stats()["num_allocs"]
    run_many(state)
    assert bytes_in_use() - before < BYTES_A_RUN * RUNS
    assert ipus[0].memory_stats()["num_allocs"] <= buffers


def test_program_ends_with_the_last_that_holds_it(ipus):
    compiled = jax.jit(lambda x: x * 3).lower(jax.device_put(jnp.ones(4), ipus[0])).compile()
    fingerprint = compiled.runtime_executable().fingerprint.decode()
    assert library.profile_of(fingerprint, reset=False).startswith("{")
    del compiled
    jax.clear_caches()
    gc.collect()
    with pytest.raises(ValueError, match="`fingerprint` must be that of a loaded program"):
        library.profile_of(fingerprint, reset=False)


def test_arrays_outlive_their_program(ipus):
    result = jax.jit(lambda x: x * 3)(jax.device_put(jnp.arange(4.0), ipus[0]))
    jax.clear_caches()
    gc.collect()
    np.testing.assert_array_equal(result, [0, 3, 6, 9])
