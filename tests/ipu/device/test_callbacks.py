"""Programs that call Python while they run, and what else can be done meanwhile."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import dispatch
from jax.experimental import checkify

from snnjax.ipu import read_profile
from tests.ipu.device.placing import ARRAYS, cpu, ipu, put

pytestmark = pytest.mark.usefixtures("ipus")


def end_of_failed_run():
    """The barrier fails with the run; JAX would wait for it again at the end of the process."""
    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.effects_barrier()
    dispatch.runtime_tokens.clear()


def test_program_prints_while_it_runs(capsys):
    @jax.jit
    def f(x):
        jax.debug.print("x is {x}, its first {first}", x=x, first=x[0])
        return x + 1

    f(put(jnp.arange(3.0)))
    jax.effects_barrier()
    assert capsys.readouterr().out == "x is [0. 1. 2.], its first 0.0\n"


def test_callback_gets_arrays_of_every_type():
    given = []

    @jax.jit
    def f(arrays):
        jax.debug.callback(lambda arrays: given.extend(np.array(array) for array in arrays), arrays)

    arrays = [np.ascontiguousarray(array) for array in ARRAYS.values() if array.size]
    f(put(arrays))
    jax.effects_barrier()
    for array, expected in zip(given, arrays, strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    "use, op",
    [
        (lambda x: jax.jit(lambda x: x + 1)(x), "execute"),
        (np.asarray, "device_get"),
        (lambda x: jax.device_put(x, ipu(1)), "device_put"),
        (lambda x: read_profile(jax.jit(lambda x: x + 1).lower(x).compile()).cycles, "profile"),
    ],
    ids=["execute", "device_get", "device_put", "profile"],
)
def test_callback_that_would_wait_for_itself_is_refused(use, op):
    x = jax.jit(lambda x: x * 2)(put(jnp.ones(2)))

    @jax.jit
    def f(x):
        jax.debug.callback(lambda _: jax.block_until_ready(use(on_device)), x)
        return x

    on_device = jax.jit(lambda x: x * 2)(x)
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=f"{op}: `callback` must not use the IPU that waits for it"
    ):
        jax.block_until_ready(f(x))
    end_of_failed_run()


def test_callback_leaves_the_rest_of_python_alone():
    """jaxlib calls some functions with Python's lock held: none of them may wait for a run that needs it."""
    started = threading.Event()

    def work(_):
        started.set()
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            sum(range(1000))

    @jax.jit
    def f(x):
        jax.debug.callback(work, x)
        return x + 1

    x = put(jnp.ones(4))
    double = jax.jit(lambda x: x * 2)
    programs = [jax.jit(lambda x: x * 3).lower(x).compile()]
    programs[0](x)
    for use in (
        np.asarray,
        double,
        lambda x: put(x, cpu()),
        lambda x: put(x, ipu(1)),
        lambda _: programs.clear(),
    ):
        y = jax.block_until_ready(double(x))
        started.clear()
        result = f(x)
        assert started.wait(60)
        use(y)
        np.testing.assert_array_equal(result, np.full(4, 2))


def test_call_returns_before_its_run_ends():
    arrived, go_on = threading.Event(), threading.Event()

    def wait(_):
        arrived.set()
        assert go_on.wait(60)

    @jax.jit
    def f(x):
        jax.debug.callback(wait, x)
        return x + 1

    result = f(put(jnp.arange(2.0)))
    assert arrived.wait(60)
    assert not result.is_ready()
    copy = put(result, ipu(1))
    assert not copy.is_ready()
    go_on.set()
    np.testing.assert_array_equal(copy, [1, 2])
    assert result.is_ready()


def test_run_that_fails_raises_where_its_result_is_used():
    """And what is computed from that result fails alike, and the IPU works on."""

    def fail(_):
        raise ValueError("no")

    @jax.jit
    def failing(x):
        jax.debug.callback(fail, x)
        return x + 1

    x = put(jnp.ones(4))
    with pytest.raises(
        jax.errors.JaxRuntimeError, match="INTERNAL: callback: the function raised ValueError: no"
    ):
        jax.block_until_ready(jax.jit(lambda x: x * 2)(failing(x)))
    end_of_failed_run()
    np.testing.assert_array_equal(jax.jit(lambda x: x * 2)(x), np.full(4, 2))


def test_check_is_never_taken_for_dead_code():
    def double(x):
        checkify.check(x > 0, "not positive")
        return 2 * x

    x = put(jnp.float32(-1))
    with pytest.raises(NotImplementedError, match="check"):  # ours, or JAX's where checkify was imported late
        jax.jit(double)(x)
    error, doubled = jax.jit(checkify.checkify(double))(x)
    assert error.get().startswith("not positive") and float(doubled) == -2
