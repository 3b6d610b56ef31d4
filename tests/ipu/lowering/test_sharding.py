"""`shard_map` over four devices: one plan for all, with what they exchange."""

import contextlib
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import xla_client

from snnjax.ipu.lowering import Unsupported, lower
from tests.ipu.lowering.arrays import numbers
from tests.ipu.lowering.checks import equal, ipus
from tests.ipu.lowering.reader import read

COUNT = 4


def line(devices: list[jax.Device]) -> Mesh:
    return Mesh(np.array(devices), ("d",))


def square(devices: list[jax.Device]) -> Mesh:
    return Mesh(np.array(devices).reshape(2, 2), ("a", "b"))


def explicit(devices: list[jax.Device]) -> Mesh:
    return jax.make_mesh((2, 2), ("a", "b"), (jax.sharding.AxisType.Explicit,) * 2, devices=devices)


@contextlib.contextmanager
def mesh_of_cpus(mesh: Callable[..., Mesh] = line) -> Iterator[Mesh]:
    """Within, functions are for this mesh."""
    with jax.set_mesh(mesh(jax.devices("cpu")[:COUNT])) as made:
        yield made


def put(arguments, specs) -> list[jax.Array]:
    """On the mesh that functions are for."""
    mesh = jax.sharding.get_mesh()
    return [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(arguments, specs, strict=True)]


def on_ipus(function, mesh: Callable[..., Mesh], specs, *arguments):
    with jax.set_mesh(mesh(ipus(COUNT))):
        return jax.jit(function)(*put(arguments, specs))


def options(count: int = COUNT) -> bytes:
    compile_options = xla_client.CompileOptions()
    compile_options.num_partitions = count
    assignment = np.arange(count)[None] + (4 if count == 2 else 0)
    compile_options.device_assignment = xla_client.DeviceAssignment.create(assignment)
    return compile_options.SerializeAsString()


def plan_of(function, *arguments):
    """Lower as if the CPU's devices were IPUs; Shardy's operations stay as PJRT passes them."""
    traced = jax.jit(function).trace(*arguments)
    module = traced.lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
    return read(lower(mlir.module_to_bytecode(module), options()))


def parts(tree) -> list[list[np.ndarray]]:
    """[device][leaf]"""
    shards = [
        sorted(leaf.addressable_shards, key=lambda shard: shard.device.id) for leaf in jax.tree.leaves(tree)
    ]
    return [[np.asarray(each[device].data) for each in shards] for device in range(COUNT)]


def check(function, specs, *arguments, mesh=line, rtol=1e-5):
    """Each IPU holds what each CPU of the same mesh does."""
    with mesh_of_cpus(mesh):
        placed = put(arguments, specs)
        plan, expected = plan_of(function, *placed), jax.jit(function)(*placed)
    results = on_ipus(function, mesh, specs, *arguments)
    for actual, each in zip(parts(results), parts(expected), strict=True):
        equal(actual, each, rtol)
    for actual, leaf in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        sharding = NamedSharding(mesh(ipus(COUNT)), leaf.sharding.spec)
        assert actual.sharding.is_equivalent_to(sharding, leaf.ndim)
    assert plan.num_partitions == COUNT
    assert plan.devices == [0, 1, 2, 3]
    return plan


def mapped(body, in_specs, out_specs, **options):
    """On the mesh that functions are for when it is called."""
    return lambda *args: jax.shard_map(body, in_specs=in_specs, out_specs=out_specs, **options)(*args)


WHOLE = ("psum", "pmax", "mean", "half", "any")
SPREAD = ("gather", "tiled", "scatter", "all_to_all", "ring", "some", "number")


def collectives(x):
    twice = jnp.tile(x, (2, 1))
    return {
        "psum": lax.psum(x, "d"),
        "pmax": lax.pmax(x, "d"),
        "mean": lax.pmean(jnp.sum(x), "d"),
        "half": lax.psum(x.astype(jnp.bfloat16), "d"),
        "any": lax.pmax((x > 3).astype(jnp.int32), "d"),
        "gather": lax.all_gather(x, "d"),
        "tiled": lax.all_gather(x, "d", axis=1, tiled=True),
        "scatter": lax.psum_scatter(twice, "d", tiled=True),
        "all_to_all": lax.all_to_all(twice, "d", 0, 1, tiled=True),
        "ring": lax.ppermute(x, "d", [(k, (k + 1) % COUNT) for k in range(COUNT)]),
        "some": lax.ppermute(x, "d", [(0, 2)]),
        "number": lax.axis_index("d")[None],
    }


def test_collectives_equal_cpu():
    out = dict.fromkeys(WHOLE, P()) | dict.fromkeys(SPREAD, P("d"))
    plan = check(mapped(collectives, P("d"), out), [P("d")], numbers(np.float32, (8, 3)))
    ops = {instruction.op for instruction in plan.main.instructions}
    assert {
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "collective_permute",
        "partition_id",
    } <= ops


def test_training_step_equals_cpu():
    w, x, y = numbers(np.float32, (5, 3)), numbers(np.float32, (8, 5), 1), np.arange(8) % 3

    def step(w, x, y):
        def loss(w):
            def scanned(v, _):
                return jnp.tanh(v + x @ w), lax.pmean(jnp.sum(v), "d")

            logits, sums = lax.scan(scanned, lax.pcast(jnp.zeros((2, 3)), "d", to="varying"), None, length=3)
            picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1)
            return -lax.pmean(jnp.mean(picked), "d") + 0.01 * jnp.sum(sums)

        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.1 * gradient, value

    sharded = mapped(step, (P(), P("d"), P("d")), (P(), P()))
    check(sharded, [P(), P("d"), P("d")], w, x, y.astype(np.int32), rtol=1e-4)


def test_meshes_of_two_axes_equal_cpu():
    def body(x, y):
        return lax.psum(x, "a"), lax.all_gather(y, "b", tiled=True), lax.axis_index(("a", "b"))[None]

    function = mapped(
        body, (P("a", "b"), P("b")), (P(None, "b"), P(None), P(("a", "b"))),
        check_vma=False,
    )  # fmt: skip
    x, y = numbers(np.float32, (4, 6)), numbers(np.float32, (4,))
    check(function, [P("a", "b"), P("b")], x, y, mesh=square)


def test_whole_arrays_are_cut_where_they_enter():
    def function(x, key):
        keys = jax.random.split(key, COUNT)
        body = mapped(lambda x, keys: x * jax.random.uniform(keys[0]), (P("d"), P("d")), P("d"))
        return body(x + 1.0, keys)

    check(function, [P(), P()], numbers(np.float32, (8, 3)), jax.random.key(0))


def test_results_that_stay_whole_are_whole():
    function = mapped(lambda x: (x * 2, jnp.ones(3)), (P("d"),), (P("d"), P()))
    check(function, [P("d")], numbers(np.float32, (8, 3)))
    double = mapped(lambda x: x * 2, (P("d"),), P("d"))
    check(lambda x: (double(x), jnp.ones(3)), [P("d")], numbers(np.float32, (8,)))


def test_operands_move_to_where_shard_map_wants_them():
    x = numbers(np.float32, (8, 4))
    check(mapped(lambda x: x * 2, (P(None, "d"),), P(None, "d")), [P("d")], x)


def test_groups_of_different_sizes_are_refused():
    def body(x):
        return lax.psum(x, "d", axis_index_groups=[[0], [1, 2, 3]])

    function = mapped(body, P("d"), P("d"), check_vma=False)
    message = r"all_reduce of f32\[1\]: its groups of IPUs differ in size\. Pass axis_index_groups of"
    with mesh_of_cpus(), pytest.raises(Unsupported, match=message):
        plan_of(function, *put([numbers(np.float32, (4,))], [P("d")]))


OUTSIDE = {
    "switch": lambda f, i, x: lax.switch(i, [f, f], x),
    "cond": lambda f, i, x: lax.cond(i > 0, f, lambda x: x + 0, x),
    "switch between arrays": lambda f, i, x: lax.switch(i, [lambda: x, lambda: f(x)]),
    "switch between spread and whole": lambda f, i, x: lax.switch(i, [lambda: jnp.ones(8), lambda: x]),
    "loop": lambda f, i, x: lax.fori_loop(0, i, lambda _, y: f(x), jnp.ones(8)),
    "loop that counts": lambda f, i, x: lax.fori_loop(0, 3, lambda _, y: f(x), jnp.ones(8)),
    "loop over spread": lambda f, i, x: lax.fori_loop(0, i, lambda _, x: f(x), x),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_loops_and_branches_around_shard_map(name):
    f = mapped(lambda x: x * 2, P("d"), P("d"))

    def function(i, x):
        return lax.with_sharding_constraint(OUTSIDE[name](f, i, x), P("d")), i

    check(function, [P(), P("d")], np.int32(1), numbers(np.float32, (8,)))


def test_loops_and_branches_inside_of_shard_map():
    def body(i, x, w):
        branches = [lambda x: x, lambda x: x * w, lambda x: x + lax.psum(x, "d")]
        return lax.fori_loop(0, i[0], lambda k, x: lax.switch(k, branches, x), x)

    function = mapped(body, (P("d"), P("d"), P()), P("d"), check_vma=False)
    i, x = np.full(4, 3, np.int32), numbers(np.float32, (8,))
    check(function, [P("d"), P("d"), P()], i, x, np.float32(3))


def test_sums_that_are_still_to_be_taken_pass_between_shard_maps():
    spread = P("a", unreduced={"b"})

    def own_sum(x):
        return lax.pcast(jnp.sum(x, axis=1), "b", to="unreduced")

    begin = mapped(own_sum, P("a", "b"), spread)
    end = mapped(lambda x: lax.psum(x, "b"), spread, P("a"))
    x = numbers(np.float32, (4, 6))
    check(begin, [P("a", "b")], x, mesh=explicit)
    check(lambda x: end(begin(x)), [P("a", "b")], x, mesh=explicit)


def test_sums_of_what_is_whole_are_refused():
    message = r"a sum over IPUs would have to be undone\. Compute it with lax.psum"
    with mesh_of_cpus(explicit), pytest.raises(Unsupported, match=message):
        plan_of(lambda x: jax.reshard(x, P(unreduced={"a"})), *put([numbers(np.float32, (4,))], [P()]))


def test_replicas_are_refused():
    compile_options = xla_client.CompileOptions()
    compile_options.num_replicas = 2
    module = (
        jax.jit(lambda x: x * 2)
        .trace(jnp.ones(3))
        .lower(lowering_platforms=("ipu",))
        .compiler_ir("stablehlo")
    )
    with pytest.raises(Unsupported) as caught:
        lower(mlir.module_to_bytecode(module), compile_options.SerializeAsString())
    assert str(caught.value) == (
        "compile: `num_replicas` must be 1, got 2. Compile for partitions, as jax.jit and jax.shard_map do."
    )


def test_axes_that_shard_map_leaves_out_stay_sharded():
    """In it arrays are sharded over the axes that it leaves out; sums over those are taken where they are needed."""

    def body(x, w):
        return x @ w, lax.psum(jnp.sum(x, 1), "a"), lax.axis_index("a")[None]

    function = mapped(body, (P("a"), P()), (P("a"), P(), P("a")), axis_names={"a"})
    x, w = numbers(np.float32, (8, 4)), numbers(np.float32, (4, 6), 1)
    product, sums, place = on_ipus(function, square, [P("a", "b"), P(None, "b")], x, w)
    np.testing.assert_allclose(product, x @ w, 1e-5)
    np.testing.assert_allclose(sums, x.sum(1).reshape(2, 4).sum(0), 1e-5)
    np.testing.assert_array_equal(place, [0, 1])


def test_one_device_of_a_mesh_is_no_exchange():
    def function(x):
        return lax.psum(x, "d"), lax.all_gather(x, "d", tiled=True), lax.axis_index("d")[None]

    x = numbers(np.float32, (4,))
    with jax.set_mesh(line(ipus(1))):
        mapped_ = jax.jit(mapped(function, P("d"), (P(), P("d"), P("d"))))
        module = mapped_.trace(x).lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
        equal(list(map(np.asarray, mapped_(*put([x], [P("d")])))), (x, x, np.zeros(1, np.int32)))
    plan = read(lower(mlir.module_to_bytecode(module), options(1)))
    assert plan.main.instructions == []
    assert plan.parameter_shardings == []
