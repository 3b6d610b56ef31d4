"""Programs that call Python while they run, and what else can be done meanwhile."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import dispatch
from jax.experimental import checkify, io_callback

from snnjax.ipu import read_profile
from tests.ipu.device.on_device import ARRAYS, cpu, ipu, put

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


def test_ordered_callbacks_run_in_order_through_loops_and_programs(capsys):
    @jax.jit
    def f(x):
        def body(i, x):
            jax.debug.print("{i}: {x}", i=i, x=x, ordered=True)
            return x + 1

        x = jax.lax.fori_loop(0, 3, body, x)
        return jax.lax.cond(x > 3, lambda: x, lambda: jax.debug.print("no", ordered=True) or x)

    for start in (0, 7):
        f(put(jnp.int32(start)))
    jax.effects_barrier()
    assert capsys.readouterr().out.split("\n")[:-1] == ["0: 0", "1: 1", "2: 2", "no", "0: 7", "1: 8", "2: 9"]


def test_programs_go_on_with_what_callbacks_return():
    calls = []

    def on_host(x, counts):
        calls.append(int(counts[0]))
        return np.sort(np.asarray(x))[::-1], {"total": np.asarray(counts).sum(), "none": np.zeros((0, 2))}

    types = (
        jax.ShapeDtypeStruct((3,), np.float16),
        {"total": jax.ShapeDtypeStruct((), np.int32), "none": jax.ShapeDtypeStruct((0, 2), np.float32)},
    )

    @jax.jit
    def f(x, counts):
        y, rest = jax.pure_callback(on_host, types, x, counts)
        z, _ = io_callback(on_host, types, y * 2, counts + 1, ordered=True)
        return y + 1, z, rest["total"], rest["none"]

    x, counts = np.float16([1, 3, 2]), np.int32([4, 5])
    y, z, total, none = f(put(x), put(counts))
    np.testing.assert_array_equal(y, [4, 3, 2])
    np.testing.assert_array_equal(z, [6, 4, 2])
    assert (total, none.shape, sorted(calls)) == (9, (0, 2), [4, 5])


def test_callback_that_returns_something_else_is_an_error():
    @jax.jit
    def f(x):
        return jax.pure_callback(lambda x: np.zeros(3, np.float32), jax.ShapeDtypeStruct((2,), np.float32), x)

    with pytest.raises(
        jax.errors.JaxRuntimeError,
        match=r"pure_callback: `callback` must return float32\[2\], got float32\[3\]\. Give `result_shape_dtypes`",
    ):
        jax.block_until_ready(f(put(jnp.ones(2))))


def test_all_ipus_go_on_with_the_result_of_one_call(ipus):
    calls = []
    mesh = jax.sharding.Mesh(np.array(ipus[:2]), ("ipus",))
    x = jax.device_put(np.arange(4.0, dtype=np.float32), jax.NamedSharding(mesh, jax.P("ipus")))

    @jax.jit
    def f(x):
        return x + io_callback(
            lambda x: calls.append(1) or np.sum(x), jax.ShapeDtypeStruct((), np.float32), x
        )

    np.testing.assert_array_equal(f(x), np.arange(4) + 6)
    assert calls == [1]


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
