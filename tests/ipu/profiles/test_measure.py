"""Profiles of jitted programs: of one run, of all runs, with the user's lines, on one IPU and on several."""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import snnjax
from snnjax.ipu import profile, read_profile

pytestmark = pytest.mark.usefixtures("ipus")


def line() -> int:
    """Of the caller."""
    return sys._getframe(1).f_lineno


def compiled(function, *args):
    return jax.jit(function).lower(*jax.device_put(args, jax.devices("ipu")[0])).compile()


def test_operations_bear_the_lines_of_the_function() -> None:
    first = line() + 3

    def function(x, w):
        hidden = x @ w
        return jnp.sort(hidden)

    report = profile(function, jnp.ones((4, 8)), jnp.ones((8, 6)))
    lines = {each.name: each.where for each in report.operations}
    assert lines["dot"] == f"test_measure.py:{first}"
    assert lines["sort"] == f"test_measure.py:{first + 1}"
    assert report.data["program"] == "jit_function"
    assert report.first_run is not None
    assert (report.host_bytes, report.first_run[1]) == (0, 4 * (4 * 8 + 8 * 6))


def test_own_operations_are_named_as_in_the_library() -> None:
    lists = snnjax.SparseSpikes.from_dense(jnp.eye(6), 2)
    report = profile(jax.grad(lambda w: snnjax.spike_matmul(lists, w).sum()), jnp.ones((6, 5)))
    names = {each.name for each in report.operations}
    assert any(name.startswith("spike_matmul") for name in names)
    own = [each for each in report.operations if each.name.startswith("spike_matmul")]
    assert {each.where.split(":")[0] for each in own} == {"test_measure.py"}


def test_cycles_add_up_to_those_of_the_phases() -> None:
    def loop(x):
        return jax.lax.fori_loop(0, 5, lambda i, y: jnp.tanh(y @ y) + i.astype(jnp.float32), x)

    report = profile(loop, jnp.ones((6, 6)))
    sums = [sum(column) for column in zip(*(each.phases for each in report.operations), strict=True)]
    assert tuple(sums) == report.phases
    assert max(each.executions for each in report.operations) == 5


def test_longer_runs_cost_more() -> None:
    def loop(x, rounds):
        return jax.lax.fori_loop(0, rounds, lambda i, y: y * 1.5, x)

    few, many = (profile(loop, jnp.ones(64), rounds) for rounds in (3, 30))
    assert many.phases.compute > 5 * few.phases.compute
    assert many.tile_memory.max() == few.tile_memory.max()


def test_all_runs_are_counted_until_the_next_reset() -> None:
    x = jax.device_put(jnp.arange(16.0), jax.devices("ipu")[0])
    double = compiled(lambda x: 2 * x, x)
    jax.block_until_ready(double(x))
    once = read_profile(double, reset=True).phases.compute
    for _ in range(3):
        jax.block_until_ready(double(x))
    assert read_profile(double).phases.compute == 3 * once
    assert read_profile(double).runs == 3
    assert read_profile(double, reset=True).phases.compute == 3 * once
    assert read_profile(double).cycles == 0


def test_repeated_steps_count_alike_however_long_their_results_are_held() -> None:
    """Python may drop an unread result before or after the next run overwrites it."""
    state, batch = jax.device_put((jnp.ones((8, 8)), jnp.ones(8)), jax.devices("ipu")[0])

    def step(state, batch):
        after = state - 0.1 * jnp.outer(batch, batch @ state)
        return after, after.sum()

    program = jax.jit(step, donate_argnums=0).lower(state, batch).compile()
    state, _ = program(state, batch)
    counted = set()
    for repetition in range(6):
        read_profile(program, reset=True)
        held, value = [], jnp.zeros(())
        for _ in range(10):
            state, value = program(state, batch)
            held += [value] * (repetition % 2)
        float(value)
        report = read_profile(program)
        counted.add((report.runs, report.phases.host, report.cycles))
        for each in held[:3]:  # read late, each is a request as the last one was
            float(each)
        assert read_profile(program).phases.host == report.phases.host * (1 + min(len(held), 3))
    assert len(counted) == 1


def test_copies_count_in_the_order_of_the_program() -> None:
    """An array is read while another program, which takes it with others, waits to run or has run."""
    state = jax.device_put((jnp.ones(64), jnp.ones(64), jnp.ones(64)), jax.devices("ipu")[0])

    def halve(state):
        return jax.tree.map(lambda leaf: leaf / 2, state)

    def loop(state):
        return jax.lax.fori_loop(0, 3000, lambda _, y: y * 1.5 - y, sum(state))

    program = jax.jit(halve, donate_argnums=0).lower(state).compile()
    other = jax.jit(loop).lower(state).compile()
    counted = set()
    for waits in (False, True, False):
        state = jax.block_until_ready(program(state))
        read_profile(program, reset=True)
        result = other(state)
        if waits:
            jax.block_until_ready(result)
        np.asarray(state[1])
        counted.add(read_profile(program).phases.host)
    assert len(counted) == 1
    assert counted.pop() > 0


def test_donated_arguments_are_copied_first() -> None:
    x = jax.device_put(jnp.arange(16.0), jax.devices("ipu")[0])
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    assert profile(step, x).cycles == profile(step, x).cycles > 0
    assert x.tolist() == list(range(16))


def test_warm_runs_take_only_what_comes_from_the_host() -> None:
    def scaled(x, y):
        return x * y

    x, batch = jnp.ones((4, 8)), np.ones((4, 8), np.float32)
    warm, fed = profile(scaled, x, x, runs=3), profile(scaled, x, batch, runs=3)
    assert warm.runs == fed.runs == 3
    assert (warm.host_bytes, fed.host_bytes) == (0, 3 * 4 * 4 * 8)
    assert warm.chip_cycles == fed.chip_cycles == 3 * profile(scaled, x, x).chip_cycles
    assert [step.name for step in fed.steps if step.kind == "stream"] == ["argument y"]


def test_donated_state_stays_on_the_tiles_from_run_to_run() -> None:
    def step(params, state, batch):
        return {"w": params["w"] + batch}, state + 1, batch.sum()

    given = {"w": jnp.ones((4, 8))}, jnp.ones(4), np.ones((4, 8), np.float32)
    kept = profile(jax.jit(step, donate_argnums=(0, 1)), *given, runs=2)
    assert kept.host_bytes == 2 * 4 * 4 * 8
    assert given[0]["w"].sum() == 32

    def other(params, state, batch):
        return batch.sum(), state + 1, {"w": params["w"] + batch}

    brought = profile(jax.jit(other, donate_argnums=(0, 1)), *given, runs=2)
    assert brought.host_bytes > kept.host_bytes


@pytest.mark.parametrize("runs", [0, -1, 1.5])
def test_runs_are_a_positive_number(runs) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^profile: `runs` must be "):
        profile(jnp.sin, 1.0, runs=runs)


def test_options_of_the_compiler_belong_to_jit() -> None:
    with pytest.raises(ValueError) as error:
        profile(jnp.sin, 1.0, compiler_options={"ipu_tiles": "4"})
    assert str(error.value) == (
        "profile: `compiler_options` must be those of jax.jit, got {'ipu_tiles': '4'}. "
        "Write profile(jax.jit(function, compiler_options=...), ...)."
    )


@pytest.mark.parametrize("is_recurrent", [False, True])
def test_every_codelet_of_the_network_has_a_purpose(is_recurrent: bool) -> None:
    """A new one is a row of profiles/parts.py."""
    layers = [snnjax.layer(8, capacity=2, recurrent=is_recurrent), snnjax.layer(8, snnjax.neurons.adlif())]
    net = snnjax.network(6, layers, snnjax.leaky_readout(3))
    params = net.init(jax.random.key(0))
    inputs = snnjax.SparseSpikes.from_dense(jnp.ones((4, 2, 6)), 3)

    def loss(params):
        return jnp.sum(net.apply(params, None, inputs)[0].output)

    report = profile(jax.grad(loss), params)
    assert {part.operation for part in report.parts} == {"lif_network", "lif_network_backward"}
    assert "other" not in {part.purpose for part in report.parts}
    assert {"lists", "copies"} < {part.purpose for part in report.parts}
    own = [each for each in report.operations if each.name.startswith("lif_network")]
    assert sum(part.cycles for part in report.parts) == sum(each.cycles for each in own)


def test_events_of_ones_are_known_as_arguments_too() -> None:
    """Their currents are sums without products, and nothing is transferred for their values."""
    net = snnjax.network(6, [snnjax.layer(8, capacity=2)], snnjax.leaky_readout(3))
    params = net.init(jax.random.key(0))
    events = snnjax.SparseSpikes.from_ids(jnp.array([[[0, 2], [5, 6]]] * 4), 6)

    def outputs(params, events):
        return net.apply(params, None, events)[0].output

    ones, graded = (profile(outputs, params, each) for each in (events, events.with_values()))
    assert ones.chip_cycles < graded.chip_cycles
    assert ones.first_run is not None and graded.first_run is not None
    assert ones.first_run[1] == graded.first_run[1] - 4 * 4 * 2 * 2
    names = [[name for name in each.codelets if "RowsCurrent" in name] for each in (ones, graded)]
    assert all(name.endswith("false>") for name in names[0])
    assert any(name.endswith("true>") for name in names[1])


def test_values_that_are_known_take_no_memory_in_half_precision() -> None:
    """As an array, a constant would lie on one tile, beside its copy in float32."""
    net = snnjax.network(6, [snnjax.layer(8, capacity=2)], snnjax.leaky_readout(3))
    params = net.init(jax.random.key(0), dtype=jnp.float16)
    events = snnjax.SparseSpikes.from_ids(jnp.tile(jnp.arange(6, dtype=jnp.int32), (64, 8, 1)), 6)

    def outputs(params, events):
        return net.apply(params, None, events)[0].output

    fullest = [profile(outputs, params, each).tile_memory.max() for each in (events, events.with_values())]
    assert fullest[0] < fullest[1]


def test_keyword_arguments_numbers_and_keys() -> None:
    def draw(key, *, scale, size: int = 3):
        return scale * jax.random.uniform(key, (size,))

    assert profile(draw, jax.random.key(0), scale=2.0).phases.compute > 0


def test_live_memory_peaks_where_most_is_needed() -> None:
    def wide(x):
        table = jnp.outer(x, x)
        return jnp.sin(table @ table).sum()

    points = profile(wide, jnp.ones(64)).live_memory
    most = max(points, key=lambda point: point.bytes)
    assert most.bytes >= 2 * 64 * 64 * 4
    assert points[0].bytes < most.bytes
    assert "test_measure.py" in most.name


def test_program_of_several_ipus() -> None:
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("i",))
    place = NamedSharding(mesh, PartitionSpec("i"))

    def mean(x):
        return jax.lax.pmean(x, "i")

    spec = PartitionSpec("i")
    report = profile(
        jax.shard_map(mean, mesh=mesh, in_specs=spec, out_specs=PartitionSpec()),
        jax.device_put(jnp.ones((2, 8)), place),
    )
    assert report.data["ipus"] == 2
    assert len(report.tile_memory) == 16
    assert report.exchange.link_bytes > 0
    assert report.energy.watts == 500
    sums = [sum(column) for column in zip(*(each.phases for each in report.operations), strict=True)]
    assert tuple(sums) == report.phases


def test_page_of_a_jitted_program() -> None:
    html = profile(jax.jit(lambda x: jnp.cumsum(jnp.exp(x))), jnp.ones(20)).html()
    assert re.search(r"<h1>lambda \(test_measure\.py:\d+\)</h1>", html)
    assert "test_measure.py:" in html


@pytest.mark.parametrize(
    "given, name", [(jax.jit(jnp.sin), "PjitFunction"), (jax.jit(jnp.sin).lower(1.0), "Lowered")]
)
def test_what_is_not_compiled_has_no_profile(given, name: str) -> None:
    sentence = rf"read_profile: `compiled` must be a compiled program, got a {name}\. Pass jax\.jit\(function\)\.lower"
    with pytest.raises(ValueError, match=sentence):
        read_profile(given)


def test_program_of_another_platform_has_no_profile() -> None:
    with pytest.raises(ValueError) as error:
        read_profile(jax.jit(jnp.sin).lower(1.0).compile())
    assert str(error.value) == (
        "read_profile: `compiled` must be a program for the IPU, got one for cpu. "
        'Place its arguments on jax.devices("ipu").'
    )
