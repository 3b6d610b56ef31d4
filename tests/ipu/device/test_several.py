"""Several IPUs: arrays spread over them, programs on all or some, in any order; collectives beside those of CPUs."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.ipu.device.on_device import in_process, numbers

SPREAD = PartitionSpec("ipus")


@pytest.fixture(params=[(0, 1), (2, 1), (0, 1, 2, 3), (3,)], ids=str)
def mesh(ipus, request):
    """Some of the IPUs, not always in their order."""
    return Mesh(np.array([ipus[number] for number in request.param]), ("ipus",))


def spread(array, mesh, spec=SPREAD):
    return jax.device_put(array, NamedSharding(mesh, spec))


def on_each(f, mesh, in_specs=SPREAD, out_specs=SPREAD, **options):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs), **options)


def test_program_runs_on_the_ipus_of_its_arrays(mesh):
    array = np.arange(24, dtype=np.float32).reshape(12, 2)
    result = on_each(lambda x: x * 2 + 1, mesh)(spread(array, mesh))
    assert result.sharding == NamedSharding(mesh, SPREAD)
    assert [shard.device for shard in result.addressable_shards] == list(mesh.devices)
    np.testing.assert_array_equal(result, array * 2 + 1)


def test_arrays_without_elements_are_divided_and_gathered(mesh):
    x = spread(np.ones((12, 3), np.float32), mesh)
    nothing = jax.jit(lambda x: x[:, 5:])(x)
    assert nothing.shape == (12, 0)
    gathered = on_each(
        lambda x: (jax.lax.all_gather(x, "ipus"), jax.lax.psum(x, "ipus")), mesh, SPREAD, (SPREAD, SPREAD)
    )
    many = len(mesh.devices)
    assert [each.shape for each in gathered(nothing)] == [(many**2, 12 // many, 0), (12, 0)]


def test_operands_may_be_whole_on_each_ipu(mesh):
    x, w = np.arange(24, dtype=np.float32).reshape(12, 2), np.float32([[3, 5]])
    f = on_each(lambda x, w: (x + w, w * 2), mesh, (SPREAD, PartitionSpec()), (SPREAD, PartitionSpec()))
    sums, doubled = f(spread(x, mesh), spread(w, mesh, PartitionSpec()))
    np.testing.assert_array_equal(sums, x + w)
    np.testing.assert_array_equal(doubled, w * 2)
    assert doubled.sharding.is_fully_replicated


def test_sum_over_the_ipus_is_that_of_the_whole(mesh):
    array = np.arange(24, dtype=np.float32).reshape(12, 2)
    total = on_each(lambda x: jax.lax.psum(x.sum(axis=0), "ipus"), mesh, out_specs=PartitionSpec())
    np.testing.assert_array_equal(total(spread(array, mesh)), array.sum(axis=0))


def test_donated_shards_are_used_up(mesh):
    x = spread(np.arange(24, dtype=np.float32), mesh)
    step = on_each(lambda x: x + 1, mesh, donate_argnums=0)
    y = x
    for _ in range(3):
        y = step(y)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, np.arange(24) + 3)


def test_results_pass_between_programs_on_one_and_on_several(ipus):
    mesh = Mesh(np.array(ipus[:2]), ("ipus",))
    both, alone = on_each(lambda x: x + 1, mesh), jax.jit(lambda x: x * 2)
    x = spread(np.arange(8, dtype=np.float32), mesh)
    for _ in range(3):
        first, second = (shard.data for shard in both(x).addressable_shards)
        x = jax.make_array_from_single_device_arrays(
            (8,), x.sharding, [alone(first), jax.device_put(alone(jax.device_put(second, ipus[0])), ipus[1])]
        )
    expected = np.arange(8)
    for _ in range(3):
        expected = (expected + 1) * 2
    np.testing.assert_array_equal(x, expected)


def test_ahead_of_time_program_says_how_its_arrays_are_spread(mesh):
    x = spread(np.arange(12, dtype=np.float32), mesh)
    compiled = on_each(lambda x: x + 1, mesh).lower(x).compile()
    (parameter,), _ = compiled.input_shardings
    assert parameter.is_equivalent_to(NamedSharding(mesh, SPREAD), 1)
    assert compiled.output_shardings.is_equivalent_to(NamedSharding(mesh, SPREAD), 1)


def test_plain_jit_trains_over_batch_and_columns_in_parts(ipus):
    mesh = Mesh(np.array(ipus[:4]).reshape(2, 2), ("batch", "columns"))
    rng = np.random.default_rng(0)
    shapes = {"w": (5, 6), "v": (6, 4), "x": (8, 5), "y": (8, 4)}
    whole = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    specs = {
        "w": PartitionSpec(None, "columns"),
        "v": PartitionSpec("columns"),
        "x": PartitionSpec("batch"),
        "y": PartitionSpec("batch"),
    }

    def step(params, x, y):
        def loss(params):
            return jnp.mean((jax.nn.gelu(x @ params["w"]) @ params["v"] - y) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        jax.debug.callback(lambda value: seen.append(float(value)), value)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    seen = []
    arrays = {name: spread(array, mesh, specs[name]) for name, array in whole.items()}
    params = {"w": arrays["w"], "v": arrays["v"]}
    train = jax.jit(step, donate_argnums=0)
    expected = {"w": whole["w"], "v": whole["v"]}
    for _ in range(2):
        params, value = train(params, arrays["x"], arrays["y"])
        expected, loss = jax.jit(step)(expected, whole["x"], whole["y"])
        chex.assert_trees_all_close(params, expected, rtol=1e-4, atol=1e-5, strict=True)
        np.testing.assert_allclose(value, loss, rtol=1e-5)
    jax.effects_barrier()
    assert len(seen) == 4  # once a step, here and on the CPU
    assert {name: array.sharding.spec for name, array in params.items()} == {"w": specs["w"], "v": specs["v"]}


ROWS = PartitionSpec("i")


def on(devices, function, x, names=("i",), shape=None, out=ROWS):
    """The result of the function over the devices, of a row each."""
    mesh = Mesh(np.array(devices).reshape(shape or (len(devices),)), names)
    spec = PartitionSpec(names) if len(names) > 1 else ROWS
    spread = jax.device_put(x, NamedSharding(mesh, spec))
    f = jax.shard_map(
        function, mesh=mesh, in_specs=spec, out_specs=spec if len(names) > 1 else out, check_vma=False
    )
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(f)(spread))]


def check(ipus, count, function, x, rtol=1e-6, **where):
    actual = on(ipus[:count], function, x, **where)
    for a, b in zip(actual, on(jax.devices("cpu")[:count], function, x, **where), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol, 1e-6)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_reductions_of_few_elements(ipus, count):
    def reduced(x):
        kinds = lax.psum, lax.pmax, lax.pmin, lax.pmean
        return [(kind(x, "i"), kind(jnp.sum(x, keepdims=True), "i")) for kind in kinds]

    check(ipus, count, reduced, numbers((count * 3, 7), "float32", count))


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32"])
def test_reductions_go_around_the_ring(ipus, count, dtype):
    check(ipus, count, lambda x: lax.psum(x, "i"), numbers((count * 130, 129), dtype, 1))


def test_all_replicas_hold_the_same_bits(ipus):
    (sums,) = on(ipus, lambda x: lax.psum(jnp.sin(x), "i"), numbers((4 * 41, 3), "float32", 2))
    np.testing.assert_array_equal(sums.reshape(4, 41, 3), np.broadcast_to(sums[:41], (4, 41, 3)))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_gathered_along_any_dimension(ipus, count, dtype):
    def gather(x):
        return lax.all_gather(x, "i").reshape(-1, 5), lax.all_gather(x, "i", axis=1, tiled=True)

    check(ipus, count, gather, numbers((count * 2, 5), dtype, 3))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_scattered_and_exchanged_parts(ipus, count):
    def parts(x):
        scattered = (
            lax.psum_scatter(x, "i", tiled=True),
            lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        )
        return *scattered, lax.all_to_all(x, "i", 0, 1, tiled=True), lax.all_to_all(x, "i", 1, 0, tiled=True)

    check(ipus, count, parts, numbers((count * count * 2, count * 3), "float32", 4))


@pytest.mark.parametrize("pairs", [[(0, 1), (1, 2), (2, 0)], [(0, 2)], [(2, 1), (1, 0)], []])
def test_permutations_leave_zeros_where_nothing_comes(ipus, pairs):
    check(
        ipus,
        3,
        lambda x: lax.ppermute(x, "i", pairs) + lax.axis_index("i").astype(x.dtype),
        numbers((6, 5), "float32", 5),
    )


@pytest.mark.parametrize("axis", ["a", "b"])
def test_groups_of_devices(ipus, axis):
    def groups(x):
        gathered = lax.all_gather(x, axis, axis=1, tiled=True)
        return lax.psum(x, axis), lax.psum_scatter(gathered, axis, scatter_dimension=1, tiled=True)

    check(ipus, 4, groups, numbers((4 * 3, 9), "float32", 6), names=("a", "b"), shape=(2, 2))


def test_inside_loops(ipus):
    def loop(x):
        return lax.scan(
            lambda carry, row: (carry + lax.psum(row, "i"), lax.pmax(carry, "i")), jnp.zeros(5), x
        )[1]

    check(ipus, 2, loop, numbers((8, 5), "float32", 7))


def test_gradients_of_a_mean_over_devices(ipus):
    def gradient(x):
        return jax.grad(lambda x: jnp.sum(lax.pmean(jnp.sin(x), "i") ** 2))(x)

    check(ipus, 4, gradient, numbers((8, 5), "float32", 8), rtol=1e-5)


CACHED = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
ipus = jax.devices("ipu")
def double(x): return 2 * x
def double_on_both(x): return 2 * x
both = NamedSharding(Mesh(np.array(ipus), ("ipus",)), PartitionSpec("ipus"))
array = np.arange(4, dtype=np.float32)
for f, place in ((double, jax.devices("cpu")[0]), (double, ipus[0]), (double_on_both, both)):
    np.testing.assert_array_equal(jax.jit(f)(jax.device_put(array, place)), 2 * array)
"""


def test_programs_of_several_ipus_stay_out_of_the_cache_of_jax(tmp_path):
    """jaxlib would end the process where it stores one."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    in_process(CACHED, **cache, SNNJAX_IPU_DEVICES="2", JAX_PLATFORMS="cpu,ipu")
    kept = [path.name.split("-")[0] for path in tmp_path.glob("*-cache")]
    assert kept.count("jit_double") == 2
    assert "jit_double_on_both" not in kept
