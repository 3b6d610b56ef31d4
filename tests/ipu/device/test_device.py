"""One IPU as an ordinary device of JAX: arrays, programs, errors, donation, copies, programs as bytes, memory."""

import gc
import pickle
import re
import threading
import warnings

import jax
import jax.export
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import pytest
from jax.experimental import serialize_executable

from snnjax.ipu import read_profile
from tests.ipu.device.on_device import ARRAYS, cpu, in_process, ipu, put

pytestmark = pytest.mark.usefixtures("ipus")


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_arrays_come_back_as_they_went(array):
    for placed in (put(array), put(put(array, cpu())), put(put(array), ipu(1))):
        back = np.asarray(placed)
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
    assert placed.devices() == {ipu(1)}
    np.testing.assert_array_equal(put(placed, cpu()), array)


def test_host_array_may_change_once_it_was_put():
    array = np.arange(1000, dtype=np.float32)
    placed = put(array)
    array[:] = 0
    np.testing.assert_array_equal(placed, np.arange(1000, dtype=np.float32))


@pytest.mark.parametrize("dtype", ["float8_e5m2"])
def test_dtype_that_the_ipu_lacks_is_refused(dtype):
    with pytest.raises(
        jax.errors.JaxRuntimeError,
        match=r"UNIMPLEMENTED: device_put: `x` must be bool, an integer or a float of at most 32 bits, bfloat16, "
        r"or complex64, got .*\. Cast it before it goes to the IPU\.",
    ):
        put(np.zeros(2, jnp.dtype(dtype)))


def test_program_of_several_results():
    results = jax.jit(lambda x, y: (x + y, x * 2, x.sum()))(put(jnp.arange(4.0)), put(jnp.ones(4)))
    for result, expected in zip(results, ([1, 2, 3, 4], [0, 2, 4, 6], 6), strict=True):
        assert result.devices() == {ipu()}
        np.testing.assert_array_equal(result, expected)


def test_program_runs_where_its_arrays_are():
    double = jax.jit(lambda x: x * 2)
    for number in (2, 0, 3):
        result = double(put(jnp.arange(3.0), ipu(number)))
        assert result.devices() == {ipu(number)}
        np.testing.assert_array_equal(result, [0, 2, 4])


def test_program_without_arguments_or_results():
    with jax.default_device(ipu()):
        assert jax.jit(lambda: jnp.float32(3))().devices() == {ipu()}
        assert jax.jit(lambda x: ())(put(jnp.ones(3))) == ()


def test_eager_operations_and_random_numbers():
    with jax.default_device(ipu()):
        x = jnp.arange(6.0)
        y = x[2:] * 2
        key = jax.random.key(3)
        drawn = jax.random.uniform(key, (5,))
    assert y.devices() == drawn.devices() == {ipu()}
    np.testing.assert_array_equal(y, [4, 6, 8, 10])
    with jax.default_device(cpu()):
        np.testing.assert_array_equal(drawn, jax.random.uniform(jax.random.key(3), (5,)))


def test_refusal_of_the_lowering_is_an_exception_that_names_op_and_line():
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"UNIMPLEMENTED: .*test_device\.py"):
        jax.jit(lambda x: jax.lax.rng_uniform(x[0], x[1], (3,)))(put(np.arange(2, dtype=np.float32)))


@pytest.mark.parametrize(
    "option, value, message",
    [
        (
            "ipu_tile",
            "4",
            "`compiler_options` must be among ipu_version, ipu_tiles, ipu_ipus and ipu_half_partials, ",
        ),
        ("ipu_tiles", "0", '`ipu_tiles` must be an integer of at least 1, got "0". Leave it out'),
        ("ipu_tiles", 1473, '`ipu_tiles` must be an integer from 1 to 1472, got "1473". Leave it out'),
        ("ipu_ipus", "65", '`ipu_ipus` must be an integer from 1 to 64, got "65". Leave it out'),
        (
            "ipu_half_partials",
            "maybe",
            '`ipu_half_partials` must be true or false, got "maybe". Leave it out',
        ),
        ("ipu_version", "ipu21", '`ipu_version` must be mk1, mk2, bow or c600, got "ipu21". Leave it out'),
    ],
)
def test_compiler_option_that_the_ipu_lacks_is_refused(option, value, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: compile: " + re.escape(message)):
        jax.jit(lambda x: x + 1, compiler_options={option: value})(put(np.ones(3, np.float32)))


@pytest.mark.parametrize("function", [jax.lax.linalg.hessenberg, jnp.linalg.eigvals, jax.scipy.linalg.schur])
def test_what_jax_knows_for_other_platforms_alone_is_refused_likewise(function):
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=r"UNIMPLEMENTED: custom_call.*\. .* \(test_device\.py"
    ):
        jax.jit(function)(put(np.eye(3, dtype=np.float32)))


@pytest.mark.parametrize("platforms", [("ipu",), ("cpu", "ipu")])
def test_exported_program_runs_where_it_may(platforms):
    def f(x):
        return jax.lax.platform_dependent(x, ipu=lambda x: x * 2, default=lambda x: x * 3) + 1

    exported = jax.export.export(jax.jit(f), platforms=platforms)(jax.ShapeDtypeStruct((3,), jnp.float32))
    for platform, expected in (("ipu", [1, 3, 5]), ("cpu", [1, 4, 7])):
        x = put(jnp.arange(3.0), jax.devices(platform)[0])
        if platform in platforms:
            np.testing.assert_array_equal(jax.jit(exported.call)(x), expected)
        else:
            with pytest.raises(ValueError, match=r"exported for platforms '\('ipu',\)' but it is used on"):
                exported.call(x)


def test_program_that_does_not_fit_onto_the_tiles_is_refused():
    big = jax.ShapeDtypeStruct((2 * 2**20,), jnp.float32, sharding=jax.sharding.SingleDeviceSharding(ipu()))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED: .*tile"):
        jax.jit(lambda x: x + 1).lower(big).compile()


@pytest.mark.parametrize("mode", ["low", "high"])
def test_random_numbers_that_fit_nowhere_are_refused_before_they_are_counted(mode):
    """Neither the host's lowering nor the graph makes room for all of them first."""
    bernoulli = jax.jit(lambda key: jax.random.bernoulli(key, 1e-10, 100_000_000, mode))
    lowered = bernoulli.lower(jax.device_put(jax.random.key(0), ipu()))
    with pytest.raises(
        jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED: compile: `program` must fit in "
    ):
        lowered.compile()


def test_donated_argument_is_used_up():
    step = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = put(jnp.arange(4.0)), put(jnp.ones(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z = step(x, y)
    assert x.is_deleted()
    assert not y.is_deleted()
    np.testing.assert_array_equal(z, [1, 2, 3, 4])
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        step(x, y)


@pytest.mark.parametrize("keeps_old", [False, True])
def test_results_stay_on_the_tiles_from_step_to_step(keeps_old):
    @jax.jit
    def step(weights, momentum, x):
        y = jnp.tanh(x @ weights)
        return weights - x.T @ y, momentum + x.T @ y, y.sum(), y.mean()

    def run(weights, momentum, batches):
        old = []
        for x in batches:
            if keeps_old:
                old.append((weights, momentum))
            weights, momentum, *small = step(weights, momentum, x)
            old.append([float(each) for each in small])
        return [np.asarray(leaf) for leaf in jax.tree.leaves((weights, momentum, old))]

    arguments = np.full((4, 4), 0.1, np.float32), np.zeros((4, 4), np.float32)
    batches = [np.full((2, 4), 0.1 * i, np.float32) for i in range(4)]
    on_ipu = run(*map(put, arguments), [put(x) for x in batches])
    for actual, expected in zip(on_ipu, run(*arguments, batches), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    compiled = step.lower(*map(put, arguments), put(batches[0])).compile()
    transfers = [each for each in read_profile(compiled).steps if each.phases.host]

    def times(name):
        return sum(each.executions for each in transfers if each.name == name)

    assert [times(f"argument {name}") for name in ("weights", "momentum", "x")] == [1, 1, 4]
    assert times("result[2]") == times("result[3]") > 0
    # Each request has a sync: one an upload, one for all small results of a step, and for the old arrays that are read.
    assert sum(each.executions for each in transfers if each.phases.sync) <= 4 + 4 + 4 * keeps_old


def test_array_given_twice_cannot_be_donated():
    step = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x = put(jnp.arange(4.0))
    with pytest.raises(jax.errors.JaxRuntimeError, match="`argument 0` must be given once if it is donated"):
        step(x, x)
    np.testing.assert_array_equal(x, [0, 1, 2, 3])


def test_chain_of_donations_equals_the_sum():
    step = jax.jit(lambda state, x: {"v": state["v"] * 0.5 + x, "n": state["n"] + 1}, donate_argnums=0)
    state = put({"v": jnp.zeros(3), "n": jnp.int32(0)})
    x = put(jnp.ones(3))
    for _ in range(20):
        state = step(state, x)
    assert int(state["n"]) == 20
    np.testing.assert_allclose(state["v"], np.full(3, 2 - 2.0**-19), rtol=1e-6)


def test_unread_results_outlive_the_donated_arguments_of_the_next_call():
    """A result that gives its memory to no argument may lie where a donated argument did."""
    step = jax.jit(lambda x, y: (x[:3] + 1, y * 2), donate_argnums=0)
    with warnings.catch_warnings():  # that no result takes the argument's place
        warnings.simplefilter("ignore", UserWarning)
        results = [step(put(jnp.full(6, float(i))), put(jnp.full((2, 3), float(i)))) for i in range(3)]
    for i, (first, second) in enumerate(results):
        np.testing.assert_array_equal(first, np.full(3, i + 1))
        np.testing.assert_array_equal(second, np.full((2, 3), 2 * i))


def test_arrays_are_copied_while_a_run_is_under_way():
    """Copies wait for the run that makes what they copy."""
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, y: y * 1.01 + 1, x))
    x = put(jnp.zeros(64))
    y = f(x)
    moved, home = put(y, ipu(1)), put(y, cpu())
    expected = np.asarray(jax.jit(f)(put(jnp.zeros(64), cpu())))
    for copy in (y, moved, home):
        np.testing.assert_allclose(copy, expected, rtol=1e-5)


def test_program_is_compiled_ahead_and_described():
    lowered = jax.jit(lambda x, y: (x @ y, x.sum())).lower(put(jnp.ones((4, 8))), put(jnp.ones((8, 2))))
    compiled = lowered.compile()
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 4 * (4 * 8 + 8 * 2)
    assert memory.output_size_in_bytes == 4 * (4 * 2 + 1)
    assert memory.temp_size_in_bytes > 0
    np.testing.assert_array_equal(
        compiled(put(jnp.ones((4, 8))), put(jnp.ones((8, 2))))[0], np.full((4, 2), 8)
    )


def test_device_is_described():
    assert (repr(ipu(1)), str(ipu(1)), ipu(1).device_kind) == ("IpuDevice(id=1)", "ipu:1", "IPU Model (mk2)")
    assert (ipu().platform, ipu().process_index, ipu().local_hardware_id) == ("ipu", 0, 0)
    assert (ipu().chip, ipu().memory_per_tile, ipu().clock_hz) == ("mk2", 624 * 1024, 1.33e9)
    assert "nothing of it has run on IPU hardware" in ipu().client.platform_version
    assert [memory.kind for memory in ipu().addressable_memories()] == ["device"]


def test_what_arrays_on_tiles_cannot_do_is_refused():
    x = put(jnp.ones((2, 3)))
    assert x.format.layout.major_to_minor == (0, 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED: PJRT_Buffer_"):
        np.from_dlpack(x)


def test_pointers_tell_which_arrays_share_their_memory():
    x = put(jnp.ones((2, 3)))
    assert x.unsafe_buffer_pointer() == jnp.asarray(x).unsafe_buffer_pointer() != 0
    assert x.unsafe_buffer_pointer() != jnp.array(x).unsafe_buffer_pointer()


def test_fingerprints_are_those_of_living_programs():
    functions = (lambda x: x + 1), (lambda x: x + 1), (lambda x: x + 2)
    living = [jax.jit(f).lower(put(jnp.ones(4))).compile() for f in functions]
    fingerprints = [each.runtime_executable().fingerprint for each in living]
    assert all(fingerprints)
    assert len({*fingerprints}) == 3


def test_program_of_other_arguments_is_refused_before_it_runs():
    compiled = jax.jit(lambda x: x + 1).lower(put(jnp.ones(4))).compile()
    with pytest.raises(TypeError):
        compiled(put(jnp.ones(5)))


def test_serialised_program_gives_the_same_bits():
    x, y = (put(np.random.default_rng(0).normal(size=shape).astype(np.float32)) for shape in ((5, 7), (7, 3)))
    compiled = jax.jit(lambda x, y: jnp.tanh(x @ y).sum(axis=0)).lower(x, y).compile()
    loaded = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), backend="ipu", execution_devices=[ipu()]
    )
    np.testing.assert_array_equal(np.asarray(loaded(x, y)), np.asarray(compiled(x, y)))


def in_another_process(program, *arguments):
    """What a program writes that puts `x`, 0 to 1 in 6 steps, on an IPU of the same kind."""
    before = """
import pickle, sys
import jax, numpy as np
from jax.experimental import serialize_executable
import snnjax
ipu = jax.devices("ipu")[0]
x = jax.device_put(np.linspace(0, 1, 6, dtype=np.float32), ipu)
"""
    return in_process(before + program, *arguments, SNNJAX_IPU_TILES=str(ipu().num_tiles))


def test_serialised_program_runs_in_another_process(tmp_path):
    x = np.linspace(0, 1, 6, dtype=np.float32)
    compiled = jax.jit(lambda x: jnp.exp(x).sum() + x).lower(put(x)).compile()
    (tmp_path / "program").write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
    program = """
loaded = pickle.load(open(sys.argv[1], "rb"))
compiled = serialize_executable.deserialize_and_load(*loaded, backend="ipu")
sys.stdout.write(np.asarray(compiled(x)).tobytes().hex())
"""
    written = in_another_process(program, tmp_path / "program")
    assert written == np.asarray(compiled(put(x))).tobytes().hex()


def test_serialised_program_calls_no_function_of_another_process(tmp_path):
    """Whatever the other process has called back before."""

    def doubled(x):
        return jax.pure_callback(lambda x: 2 * x, jax.typeof(x), x)

    compiled = jax.jit(doubled).lower(put(np.zeros(6, np.float32))).compile()
    (tmp_path / "program").write_bytes(compiled.runtime_executable().serialize())
    program = """
def negated(x):
    return jax.pure_callback(lambda x: -x, jax.typeof(x), x)
for each in range(300):
    jax.jit(negated).lower(x)
jax.block_until_ready(jax.jit(negated)(x))
loaded = ipu.client.deserialize_executable(open(sys.argv[1], "rb").read(), jax._src.lib.xla_client.DeviceList((ipu,)))
try:
    print(np.asarray(loaded.execute_sharded([x]).disassemble_into_single_device_arrays()[0][0]))
except jax.errors.JaxRuntimeError as error:
    print(error)
"""
    written = in_another_process(program, tmp_path / "program")
    expected = (
        r"LookupError: callback: `number` must be that of a function of this process, got \d+\. Compile"
    )
    assert re.search(expected, written), written


def test_memory_is_that_of_tiles():
    compiled = jax.jit(lambda x: x * 2).lower(put(jnp.ones(100))).compile()
    jax.block_until_ready(compiled(put(jnp.ones(100))))
    statistics = ipu().memory_stats()
    assert 0 < statistics["bytes_in_use"] <= statistics["peak_bytes_in_use"] <= statistics["bytes_limit"]
    assert statistics["bytes_limit"] == ipu().num_tiles * ipu().memory_per_tile
    for key in ("largest_alloc_size", "bytes_reservable_limit", "largest_free_block_bytes"):
        assert 0 < statistics[key] <= statistics["bytes_limit"]
    assert statistics["bytes_reserved"] == statistics["peak_bytes_reserved"] == 0
    before = statistics["num_allocs"]
    kept = [put(jnp.ones(3)) for _ in range(5)]
    assert ipu().memory_stats()["num_allocs"] == before + len(kept)
    del compiled
    jax.clear_caches()
    gc.collect()
    assert ipu().memory_stats()["bytes_in_use"] == 0
    assert ipu().memory_stats()["peak_bytes_in_use"] >= statistics["bytes_in_use"]


def test_threads_compile_and_run_at_once():
    failures = []

    def work(number):
        try:
            f = jax.jit(lambda x: x * number + number)
            for i in range(5):
                np.testing.assert_array_equal(f(put(jnp.full(8, float(i)))), np.full(8, i * number + number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(float(number),)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
