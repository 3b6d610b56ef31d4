"""`shard_map` over four devices: one plan for all, with what they exchange."""

from typing import Any

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
from tests.ipu.lowering.checks import equal
from tests.ipu.lowering.interpreter import Interpreter
from tests.ipu.lowering.reader import read

COUNT = 4


@pytest.fixture
def mesh():
    return Mesh(np.array(jax.devices("cpu")[:COUNT]), ("d",))


def options(count: int = COUNT) -> bytes:
    compile_options = xla_client.CompileOptions()
    compile_options.num_partitions = count
    assignment = np.arange(count)[None] + (4 if count == 2 else 0)
    compile_options.device_assignment = xla_client.DeviceAssignment.create(assignment)
    return compile_options.SerializeAsString()


def plan_of(function: Any, *arguments: Any) -> Any:
    """Lower as if the CPU's devices were IPUs; Shardy's operations stay as PJRT passes them."""
    traced = jax.jit(function).trace(*arguments)
    module = traced.lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
    return read(lower(mlir.module_to_bytecode(module), options()))


def parts(tree: Any) -> list[list[np.ndarray]]:
    """[device][leaf]"""
    shards = [
        sorted(leaf.addressable_shards, key=lambda shard: shard.device.id) for leaf in jax.tree.leaves(tree)
    ]
    return [[np.asarray(each[device].data) for each in shards] for device in range(COUNT)]


def check(function, mesh, specs, *arguments, rtol=1e-5):
    placed = [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(arguments, specs, strict=True)]
    plan = plan_of(function, *placed)
    results = Interpreter(plan).run(parts(placed))
    expected = jax.jit(function)(*placed)
    for device, each in enumerate(parts(expected)):
        equal(results[device], each, rtol)
    assert plan.num_partitions == COUNT
    assert plan.devices == [0, 1, 2, 3]
    for serialised, leaf in zip(plan.result_shardings, jax.tree.leaves(expected), strict=True):
        proto = leaf.sharding._to_xla_hlo_sharding(leaf.ndim).to_proto().SerializeToString()
        assert serialised == proto
    return plan


def mapped(body, mesh, in_specs, out_specs):
    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


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


def test_collectives_equal_cpu(mesh):
    out = dict.fromkeys(WHOLE, P()) | dict.fromkeys(SPREAD, P("d"))
    plan = check(mapped(collectives, mesh, P("d"), out), mesh, [P("d")], numbers(np.float32, (8, 3)))
    ops = {instruction.op for instruction in plan.main.instructions}
    assert {
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "collective_permute",
        "partition_id",
    } <= ops


def test_training_step_equals_cpu(mesh):
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

    sharded = mapped(step, mesh, (P(), P("d"), P("d")), (P(), P()))
    check(sharded, mesh, [P(), P("d"), P("d")], w, x, y.astype(np.int32), rtol=1e-4)


def test_meshes_of_two_axes_equal_cpu():
    mesh = Mesh(np.array(jax.devices("cpu")[:COUNT]).reshape(2, 2), ("a", "b"))

    def body(x, y):
        return lax.psum(x, "a"), lax.all_gather(y, "b", tiled=True), lax.axis_index(("a", "b"))[None]

    function = mapped(body, mesh, (P("a", "b"), P("b")), (P(None, "b"), P(None), P(("a", "b"))))
    function = jax.shard_map(
        body, mesh=mesh, in_specs=(P("a", "b"), P("b")), out_specs=(P(None, "b"), P(None), P(("a", "b"))),
        check_vma=False,
    )  # fmt: skip
    check(function, mesh, [P("a", "b"), P("b")], numbers(np.float32, (4, 6)), numbers(np.float32, (4,)))


def test_whole_arrays_are_cut_where_they_enter(mesh):
    def function(x, key):
        keys = jax.random.split(key, COUNT)
        body = mapped(lambda x, keys: x * jax.random.uniform(keys[0]), mesh, (P("d"), P("d")), P("d"))
        return body(x + 1.0, keys)

    x, key = numbers(np.float32, (8, 3)), jax.random.key(0)
    placed = jax.device_put(x, NamedSharding(mesh, P())), jax.device_put(key, NamedSharding(mesh, P()))
    plan = plan_of(function, *placed)
    arguments = [[x, np.asarray(jax.random.key_data(key))] for _ in range(COUNT)]
    results = Interpreter(plan).run(arguments)
    expected = jax.jit(function)(*placed)
    for device, each in enumerate(parts(expected)):
        equal(results[device], each)


def test_results_that_stay_whole_are_whole(mesh):
    function = mapped(lambda x: (x * 2, jnp.ones(3)), mesh, (P("d"),), (P("d"), P()))
    check(function, mesh, [P("d")], numbers(np.float32, (8, 3)))
    check(
        lambda x: (mapped(lambda x: x * 2, mesh, (P("d"),), P("d"))(x), jnp.ones(3)),
        mesh,
        [P("d")],
        numbers(np.float32, (8,)),
    )


def test_operands_move_to_where_shard_map_wants_them(mesh):
    x = numbers(np.float32, (8, 4))
    check(mapped(lambda x: x * 2, mesh, (P(None, "d"),), P(None, "d")), mesh, [P("d")], x)


def test_groups_of_different_sizes_are_refused(mesh):
    def body(x):
        return lax.psum(x, "d", axis_index_groups=[[0], [1, 2, 3]])

    function = jax.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    x = jax.device_put(numbers(np.float32, (4,)), NamedSharding(mesh, P("d")))
    with pytest.raises(
        Unsupported,
        match=r"all_reduce of f32\[1\]: its groups of IPUs differ in size\. Pass axis_index_groups of",
    ):
        plan_of(function, x)


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
def test_loops_and_branches_around_shard_map(mesh, name):
    f = mapped(lambda x: x * 2, mesh, P("d"), P("d"))
    placed = [jax.device_put(np.int32(1), NamedSharding(mesh, P()))]
    placed.append(jax.device_put(numbers(np.float32, (8,)), NamedSharding(mesh, P("d"))))

    def function(i, x):
        return lax.with_sharding_constraint(OUTSIDE[name](f, i, x), NamedSharding(mesh, P("d"))), i

    results = Interpreter(plan_of(function, *placed)).run(parts(placed))
    for result, each in zip(results, parts(jax.jit(function)(*placed)), strict=True):
        equal(result, each)


def test_loops_and_branches_inside_of_shard_map(mesh):
    def body(i, x, w):
        branches = [lambda x: x, lambda x: x * w, lambda x: x + lax.psum(x, "d")]
        return lax.fori_loop(0, i[0], lambda k, x: lax.switch(k, branches, x), x)

    function = jax.shard_map(
        body, mesh=mesh, in_specs=(P("d"), P("d"), P()), out_specs=P("d"), check_vma=False
    )
    i, x = np.full(4, 3, np.int32), numbers(np.float32, (8,))
    check(function, mesh, [P("d"), P("d"), P()], i, x, np.float32(3))


@pytest.fixture
def explicit():
    mesh = jax.make_mesh(
        (2, 2), ("a", "b"), (jax.sharding.AxisType.Explicit,) * 2, devices=jax.devices("cpu")[:4]
    )
    with jax.set_mesh(mesh):
        yield mesh


def test_sums_that_are_still_to_be_taken_pass_between_shard_maps(explicit):
    spread = P("a", unreduced={"b"})

    def own_sum(x):
        return lax.pcast(jnp.sum(x, axis=1), "b", to="unreduced")

    begin = jax.shard_map(own_sum, in_specs=P("a", "b"), out_specs=spread)
    end = jax.shard_map(lambda x: lax.psum(x, "b"), in_specs=spread, out_specs=P("a"))
    x = numbers(np.float32, (4, 6))
    check(begin, explicit, [P("a", "b")], x)
    check(lambda x: end(begin(x)), explicit, [P("a", "b")], x)


def test_sums_of_what_is_whole_are_refused(explicit):
    x = jax.device_put(numbers(np.float32, (4,)), NamedSharding(explicit, P()))
    with pytest.raises(
        Unsupported, match=r"a sum over IPUs would have to be undone\. Compute it with lax.psum"
    ):
        plan_of(lambda x: jax.reshard(x, P(unreduced={"a"})), x)


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
    mesh = Mesh(np.array(jax.devices("cpu")[:COUNT]).reshape(2, 2), ("a", "b"))

    def body(x, w):
        return x @ w, lax.psum(jnp.sum(x, 1), "a"), lax.axis_index("a")[None]

    function = jax.shard_map(
        body, mesh=mesh, in_specs=(P("a"), P()), out_specs=(P("a"), P(), P("a")), axis_names={"a"}
    )
    x, w = numbers(np.float32, (8, 4)), numbers(np.float32, (4, 6), 1)
    placed = [
        jax.device_put(x, NamedSharding(mesh, P("a", "b"))),
        jax.device_put(w, NamedSharding(mesh, P(None, "b"))),
    ]
    results = Interpreter(plan_of(function, *placed)).run(parts(placed))
    for device, (product, sums, place) in enumerate(results):
        a, b = divmod(device, 2)
        columns = slice(None) if product.shape[1] == 6 else slice(3 * b, 3 * b + 3)
        np.testing.assert_allclose(product, (x @ w)[4 * a : 4 * a + 4, columns], 1e-5)
        np.testing.assert_allclose(sums, x.sum(1).reshape(2, 4).sum(0), 1e-5)
        assert place == a


def test_one_device_of_a_mesh_is_no_exchange():
    mesh = Mesh(np.array(jax.devices("cpu")[:1]), ("d",))
    function = mapped(
        lambda x: (lax.psum(x, "d"), lax.all_gather(x, "d", tiled=True), lax.axis_index("d")[None]),
        mesh,
        P("d"),
        (P(), P("d"), P("d")),
    )
    x = numbers(np.float32, (4,))
    module = jax.jit(function).trace(x).lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
    plan = read(lower(mlir.module_to_bytecode(module), options(1)))
    assert plan.main.instructions == []
    assert plan.parameter_shardings == []
    equal(Interpreter(plan).run([[x]])[0], (x, x, np.zeros(1, np.int32)))
