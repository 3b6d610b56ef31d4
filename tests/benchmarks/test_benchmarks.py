"""The benchmarks run, and the programs that they compare compute the same."""

import functools
import json
import os
import subprocess
import sys
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks import counting_program, peers, process, report, tables, timing, workloads
from tests.benchmarks.devices import beside_dense, gpus
from tests.benchmarks.plan import quick
from tests.benchmarks.process import Held
from tests.benchmarks.programs import (
    cameras,
    convolutions,
    deep,
    few_synapses,
    fresh,
    gradients,
    networks,
    neurons,
    products,
    residuals,
    streaming,
)
from tests.benchmarks.tables import Table
from tests.benchmarks.timing import Turn
from tests.benchmarks.trained import peers as trained_peers
from tests.benchmarks.trained import sequential

PLAN = quick()
# Sums of some tens of float32 numbers of order 1, in another order.
ROUNDING = {"rtol": 1e-4, "atol": 1e-4}


@pytest.mark.parametrize("workload", [PLAN.single[0][0], *PLAN.recurrent], ids=lambda workload: workload.name)
def test_alternatives_of_a_network_agree(workload):
    def value_and_gradient(name):
        run = networks.compiled(name, networks.GRADIENT, workload.readout)
        return run(*networks.arguments(workload, name, networks.GRADIENT)())

    own, *others = networks.EXACT
    expected = value_and_gradient(own)
    assert all(jnp.any(leaf != 0) for leaf in jax.tree.leaves(expected))
    for name in others:
        chex.assert_trees_all_close(value_and_gradient(name), expected, **ROUNDING, strict=True)


# Halves round each weight and each cotangent to 11 bits, and gradients are sums of some of both signs.
@pytest.mark.parametrize("kind", ["recurrent", "adLIF", "delays"])
def test_rivals_on_an_ipu_compute_the_same_network(monkeypatch, kind):
    monkeypatch.setattr(workloads, "SECOND_THRESHOLD", -np.inf)  # so that all neurons get gradients
    workload = beside_dense.of_size(kind, 24, 2, 8).at_density(0.1)
    layers, forms = networks.data(workload)
    cell = beside_dense.Cell(kind, 24, 2, "float32", "dense", 1.0)

    def value_and_gradient(forward, inputs):
        run = networks.jitted(forward, networks.GRADIENT, workload.readout)
        return run(layers, inputs, networks.output_weights(workload))

    expected = value_and_gradient(functools.partial(beside_dense.ours, cell=cell), forms["events"])
    assert all(jnp.any(leaf != 0) for leaf in jax.tree.leaves(expected))
    for dtype, close in (("float32", 1e-4), ("float16", 0.03)):
        rivals = beside_dense.rivals(cell._replace(dtype=dtype))
        fastest = next(each.forward for each in reversed(rivals) if each.dtype == "float32")
        actual = value_and_gradient(functools.partial(fastest, steps_a_round=8), forms["dense"])
        for x, y in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=close * float(jnp.max(jnp.abs(y))))


def test_no_network_on_an_ipu_is_5_percent_slower_than_in_its_other_form():
    """By the stored cells of the grid; the estimate knows sizes alone."""
    of_each = dict(beside_dense.losses(beside_dense.read()))
    assert {cell.kind for cell in of_each} == set(beside_dense.KINDS)
    assert {cell.key: loss for cell, loss in of_each.items() if loss > 1.05} == {}


# Factors of 8 bits change each cotangent by at most 1 %, and there are three layers.
@pytest.mark.parametrize("name", gradients.GRADIENTS)
def test_alternatives_of_a_gradient_agree(name):
    workload, gradient = PLAN.deep, gradients.GRADIENTS[name]
    layers, inputs = networks.data(workload)
    labels = jnp.asarray(workloads.labels(workload))

    def leaves_of(alternative):
        loss = networks.loss_of(alternative.forward, workload.readout)
        return jax.tree.leaves(jax.jit(jax.grad(loss))(layers, inputs[alternative.inputs], labels))

    expected, *others = (leaves_of(each) for each in gradients.alternatives(gradient).values())
    assert all(jnp.any(leaf != 0) for leaf in expected)
    for own in others:
        for x, y in zip(own, expected, strict=True):
            largest = float(jnp.max(jnp.abs(y)))
            np.testing.assert_allclose(
                x, y, rtol=0, atol=(0.03 if gradient.connection.rounds_cotangents else 1e-5) * largest
            )


@pytest.mark.parametrize("task", products.TASKS)
def test_alternatives_of_a_product_agree(task):
    product = workloads.Product(24, 3, 0.2)
    spikes = products.data(product)[1]
    run, operands = products.program(product, products.PLAIN, task)
    expected = run(*operands)
    if task == products.VALUES:  # lists have a gradient at their ids only
        padded = jnp.pad(expected, ((0, 0), (0, 1)))
        expected = jnp.take_along_axis(padded, spikes.ids.astype(jnp.int32), axis=1)
    for name in (*products.LISTED, *products.FORMS):
        run, operands = products.program(product, name, task)
        np.testing.assert_allclose(run(*operands), expected, **ROUNDING, err_msg=name)


@pytest.mark.parametrize("task", products.TASKS)
def test_alternatives_of_a_convolution_agree(task):
    (of,), (density,) = PLAN.convolutions, PLAN.convolved_densities
    run, operands = convolutions.program(of, density, convolutions.PLAIN, task)
    expected = run(*operands)
    is_flat = task != products.WEIGHTS
    expected = expected.reshape(of.rows, -1) if is_flat else expected
    for name in (convolutions.ROWS, convolutions.LISTS):
        run, operands = convolutions.program(of, density, name, task)
        if (task, name) == (products.VALUES, convolutions.LISTS):  # lists have a gradient at their ids only
            ids = convolutions.data(of, density)[1].ids.astype(jnp.int32)
            expected = jnp.take_along_axis(jnp.pad(expected, ((0, 0), (0, 1))), ids, axis=1)
        np.testing.assert_allclose(run(*operands), expected, **ROUNDING, err_msg=name)


def test_alternatives_of_a_camera_agree():
    """In loss and gradient, with spikes in every layer."""
    (camera,) = PLAN.cameras
    params, dense, events, labels = cameras.data(camera)

    def value_and_gradient(name):
        loss = neurons.loss_of(cameras.outputs_of(camera, name))
        inputs = events if cameras.ALTERNATIVES[name].events else dense
        return jax.jit(jax.value_and_grad(loss))(params, inputs, labels)

    activity = jax.jit(cameras.made(camera).apply)(params, None, dense)[0].activity
    assert all(jnp.mean(each) > 0.01 for each in activity.values())
    with jax.numpy_rank_promotion("allow"):  # as it is usually written
        expected = value_and_gradient(cameras.PLAIN)
    connections = [own for name, own in expected[1].items() if name.endswith("/connection")]
    assert all(jnp.any(leaf != 0) for leaf in jax.tree.leaves(connections))
    for name, alternative in cameras.ALTERNATIVES.items():
        if not alternative.capped and name != cameras.PLAIN:
            chex.assert_trees_all_close(value_and_gradient(name), expected, **ROUNDING, strict=True)
    images = cameras.images(camera)  # for other libraries
    np.testing.assert_array_equal(images.inputs.reshape(dense.shape), dense)
    assert all(type(leaf) is np.ndarray for leaf in jax.tree.leaves(images[:4]))


@pytest.mark.parametrize(
    "kind, stages, train", [(residuals.SEW, 2, True), (residuals.SEW, 1, False), (residuals.MS, 1, True)]
)
def test_alternatives_of_a_residual_network_agree(kind, stages, train):
    """In output, and in the gradient of training, with spikes in every layer; the second stage has shortcuts."""
    of = PLAN.residuals[0]._replace(kind=kind, stages=stages)
    params, stats, inputs, labels = residuals.data(of)
    activity = jax.jit(residuals.made(of).apply)(params, None, inputs, stats=stats)[0].activity
    assert all(jnp.mean(each) > 0.01 for each in activity.values())

    def run(name):
        forward = residuals.outputs_of(of, name, train)
        return jax.jit(jax.value_and_grad(neurons.loss_of(forward)))(params, inputs, labels)

    with jax.numpy_rank_promotion("allow"):  # as it is usually written
        expected = run(residuals.PLAIN)
    # Norms in training divide by deviations, which gradients of early layers pass seven times.
    chex.assert_trees_all_close(run(residuals.FULL), expected, rtol=1e-4, atol=1e-5, strict=True)


def test_alternatives_of_a_network_of_images_agree():
    """In loss and gradient, and in inference, with spikes in every layer."""
    (of,) = PLAN.images
    params, stats, inputs, _ = deep.data(of)
    activity = jax.jit(deep.made(of).apply)(params, None, inputs, stats=stats)[0].activity
    assert all(jnp.mean(each) > 0.01 for each in activity.values())
    for task in (deep.GRADIENT, deep.INFERENCE):
        with jax.numpy_rank_promotion("allow"):  # as it is usually written
            expected, found = (
                run(*given)
                for run, given in (deep.program(of, name, task) for name in (deep.PLAIN, deep.FULL))
            )
        chex.assert_trees_all_close(found, expected, rtol=1e-4, atol=1e-5, strict=True)


def test_alternatives_of_few_synapses_agree():
    """In loss and gradient, with spikes that are fed back."""
    params, _, inputs, labels = few_synapses.data(*PLAN.few_synapses)

    def value_and_gradient(name):
        loss = neurons.loss_of(few_synapses.outputs_of(*PLAN.few_synapses, name))
        return jax.jit(jax.value_and_grad(loss))(params, inputs, labels)

    with jax.numpy_rank_promotion("allow"):  # as it is usually written
        expected, *others = map(value_and_gradient, few_synapses.ALTERNATIVES)
    assert all(jnp.any(leaf != 0) for leaf in jax.tree.leaves(expected))
    for own in others:
        chex.assert_trees_all_close(own, expected, **ROUNDING, strict=True)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 1.0])
def test_layers_fire_at_their_rate(rate):
    workload = replace(PLAN.deep, steps=100).at_density(rate)
    spikes = workloads.bernoulli(workload.input_shape, rate)
    for layer, width in zip(workloads.layers(workload), workload.widths[1:], strict=True):
        spikes = workloads.fire(spikes @ layer.weights, layer.recurrent)
        # A different sample from the one that the weights were scaled with.
        assert np.mean(spikes) == pytest.approx(rate, rel=0.5)
        assert spikes.shape[-1] == width


def test_listed_ids_hold_every_spike():
    dense = np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]], np.float32)
    np.testing.assert_array_equal(workloads.listed_ids(dense), [[1, 3], [0, 2], [3, 3]])


def test_first_steps_measure_time_and_memory():
    with jax.numpy_dtype_promotion("standard"):  # which optax needs
        found = fresh.first_steps(PLAN.deep, "plain JAX, lax.scan", networks.TRAINING)
    assert found["seconds"] > 0
    assert found["growth"] is None or found["growth"] > 0


def test_processes_divide_a_step():
    name = "snnjax, events"
    one, two = (
        process.ask(functools.partial(fresh.in_processes, PLAN.deep, processes, 2, name))
        for processes in (1, 2)
    )
    assert len(two["seconds"]) == 2
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-5)


def test_ratio_is_that_of_medians_to_the_fastest_plain_alternative():
    columns = {"plain JAX, a": [4.0, 9.0, 5.0], "plain JAX, b": [8.0], "snnjax": [2.0, 2.5, 9.0]}
    table = Table("title", {("column", name): values for name, values in columns.items()})
    assert report.ratio(table, "column", "snnjax") == 2.0
    assert "| snnjax | 2500 (2.00x) |" in report.as_markdown(table)


def test_cpu_time_is_the_minimum_of_the_rounds():
    columns = {"plain JAX, a": [4.0, 9.0], "plain JAX, b": [3.0, 20.0], "snnjax": [2.0, 6.0]}
    cpu = {("column", name): values for name, values in columns.items()}
    table = Table("title", {key: [10.0, 10.0] for key in cpu}, cpu=cpu)
    said = report.as_markdown(table)
    assert "| snnjax | 10000 (1.00x) |" in said
    assert "| milliseconds of CPU, all threads, minimum | column |" in said
    assert "| snnjax | 2000 (1.50x) |" in said
    *_, own = report.as_json(table)["cells"]
    assert (own["CPU median"], own["CPU minimum"], own["CPU ratio"]) == (4.0, 2.0, 1.5)
    assert own["CPU rounds"] == [2.0, 6.0]
    without = report.as_json(table._replace(cpu={}))["cells"][-1]
    assert not any(name.startswith("CPU") for name in without)


def test_measure_runs_every_timer_in_every_round():
    calls, turn = [], Turn(0.01, 0.02)
    timers = {name: lambda n, name=name: calls.append((name, n)) or turn for name in "ab"}
    assert timing.measure(timers, rounds=3, min_seconds=0.03) == {"a": [turn] * 3, "b": [turn] * 3}
    assert sorted(calls) == sorted([("a", 1), ("b", 1)] + [("a", 3), ("b", 3)] * 3)
    assert {name for name, _ in calls[:2]} == {name for name, _ in calls[2:4]} == {"a", "b"}


def test_first_call_of_a_turn_is_not_timed(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(timing.time, "process_time", lambda: 2 * clock[0])

    def call(seconds):
        clock[0] += seconds

    calls = [functools.partial(call, seconds) for seconds in (100.0, 1.0, 3.0)]
    assert timing.turn(calls) == Turn(2.0, 4.0)


def processes_of(turns):
    """The one that ran each program."""
    found = {key: {turn.wall for turn in values} for key, values in turns.items()}
    assert all(len(each) == 1 for each in found.values())
    return {key: each.pop() for key, each in found.items()}


COUNTED = {(column, name): counting_program.made for column in ("1 %", "10 %") for name in "ab"}


def test_each_program_has_a_process_of_its_own():
    turns = tables.measure(PLAN, COUNTED, 3)
    assert [*turns] == [*COUNTED]
    assert len({os.getpid(), *processes_of(turns).values()}) == 1 + len(COUNTED)
    # Some turns warm up, one says how long a call takes; then there are three rounds.
    assert all(np.diff([turn.cpu for turn in values]).tolist() == [1, 1] for values in turns.values())


def test_sweep_keeps_the_process_of_an_alternative():
    turns = tables.sweep(PLAN, COUNTED, 3)
    found = processes_of(turns)
    assert found["1 %", "a"] == found["10 %", "a"] != found["1 %", "b"] == found["10 %", "b"]
    assert all(np.diff([turn.cpu for turn in values]).tolist() == [1, 1] for values in turns.values())


def test_process_that_fails_is_said(capfd):
    with pytest.raises(RuntimeError, match="ended early; its error stands above"):
        process.ask(functools.partial(int, "seven"))
    assert "invalid literal for int() with base 10: 'seven'" in capfd.readouterr().err


def test_what_a_program_prints_is_no_answer(capfd):
    assert process.ask(functools.partial(print, "loaded")) is None
    assert capfd.readouterr() == ("", "loaded\n")


def test_peers_need_no_jax():
    """Nor anything else that imports it: their interpreters may lack it."""
    modules = ", ".join(f"tests.benchmarks.{name}" for name in ("peers", "process", "trained.peers"))
    program = f"import sys, {modules}; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=process.ROOT)


def test_peers_are_looked_for_in_each_interpreter(monkeypatch, capsys):
    peer = peers.Peer("numpy", lambda workload, layers: {peers.INFERENCE: lambda: None})
    monkeypatch.setattr(peers, "PEERS", {"NumPy": peer, "other": peer._replace(package="no_such_package")})
    assert [*peers.labelled(())] == []
    assert [*peers.labelled(("false", sys.executable))] == [(f"NumPy {np.__version__}", sys.executable)]
    assert capsys.readouterr().out == (
        f"skipped other: no_such_package is not installed in false or {sys.executable}\n"
    )
    assert {*peers.programs(PLAN.deep, ["NumPy 2"])} == {
        (task, "NumPy 2") for task in (peers.INFERENCE, peers.TRAINING)
    }
    turn = peers.timed("NumPy", PLAN.deep, peers.INFERENCE)(2)
    assert turn.wall > 0


def test_trained_peers_see_each_recording_once_an_epoch():
    events = np.arange(66)[:, None, None] == np.arange(66)  # recording n is an event at input n
    seen = trained_peers.Recordings(events, np.arange(66), events[:0], np.arange(0), seed=0).epochs()
    orders = []
    for epoch in seen:
        batches = list(epoch)
        assert [inputs.shape for inputs, _ in batches] == [(1, trained_peers.BATCH, 66)] * 2
        for inputs, labels in batches:
            np.testing.assert_array_equal(inputs[0].argmax(-1), labels)
        orders.append(tuple(np.concatenate([labels for _, labels in batches])))
        assert len({*orders[-1]}) == 2 * trained_peers.BATCH
    assert len({*orders}) == trained_peers.EPOCHS


def test_times_of_trained_peers_are_the_least_over_folds():
    results = {"snnjax": [[0.9, 3.0], [1.0, 6.0]], "other": [[0.5, 9.0]]}
    record = {"cpus": 2, "kernels": "avx2", "results": results}
    rows = trained_peers.section(record).splitlines()[-2:]
    assert rows == [
        "| snnjax | 95.00 ± 7.07 % | 3.0 s | 1.0 |",
        "| other | 50.00 % | 9.0 s | 3.0 |",
    ]


@pytest.mark.parametrize("workload", PLAN.streamed, ids=lambda workload: f"{workload.steps} steps")
def test_alternatives_of_a_stream_agree(workload):
    """From the state of a call before, so that neurons do not start at rest."""

    def two_calls(name):
        run, (layers, state, inputs) = streaming.program(workload, name)
        state, _ = run(layers, state, inputs)
        state, outputs = run(layers, state, inputs)
        if hasattr(state, "layers"):
            state = [jnp.where(own.v > workloads.THRESHOLD, own.v - 1, own.v) for own in state.layers]
        return [*state, jnp.reshape(jnp.asarray(outputs), (-1, workload.batch, workload.widths[-1]))]

    expected, *others = map(two_calls, streaming.ALTERNATIVES)
    assert all(jnp.any(each != 0) for each in expected[:-1])
    for own in others:
        chex.assert_trees_all_close(own, expected, **ROUNDING, strict=True)


# What a target is stated for: the section, the title, and the column and alternative that hold it.
TARGETS = [
    ("W3", "W3", networks.TRAINING, "snnjax, events"),
    ("W3", "W3", networks.DONATED, "snnjax, events"),
    ("W3", "W3", networks.TRAINING, "snnjax, events, capacity 10 %"),
    ("W3", "W3", networks.INFERENCE, "snnjax, dense input"),
    ("W3", "W3", networks.INFERENCE, "snnjax, events"),
    ("W2", "W2, batch 128", networks.TRAINING, "snnjax, events"),
    ("W2", "W2, batch 128", networks.TRAINING, "snnjax, events, capacity 10 %"),
    (
        "W5",
        "W5, 700-256 (recurrent)-256 (recurrent)-20, 100 steps, batch 64",
        "adLIF, training step",
        "snnjax",
    ),
    *(
        (
            "W10",
            "W10, training step with other gradients, W3",
            f"superspike, cotangents {how}, donated",
            "snnjax, events",
        )
        for how in ("and records in bfloat16", "in bfloat16, exact within 0.2")
    ),
    *(
        ("W11", "W11, a few time steps a call, 2312-1024-512-256-10", column, "snnjax, events")
        for column in (*(f"batch {each}, 1 step" for each in (1, 4, 16, 48)), "batch 1, 10 steps")
    ),
]


def test_every_target_has_a_row_beside_plain_jax(monkeypatch):
    """Nothing is measured here: all turns take as long."""
    sections = benchmarks.sections
    same = [Turn(1.0, 1.0)]
    monkeypatch.setattr(sections, "measure", lambda plan, programs, *_: dict.fromkeys(programs, same))
    made = {
        (section, table.title): table
        for section in dict.fromkeys(section for section, *_ in TARGETS)
        for table in sections.SECTIONS[section](benchmarks.Plan())
    }
    for section, title, column, name in TARGETS:
        assert report.ratio(made[section, title], column, name) == 1.0


class Here:
    """Stands in for a process: measures in this one, which starts and compiles nothing twice."""

    def __init__(self, python):
        self._held, self._answer = Held(), None

    def send(self, method, argument):
        self._answer = method(self._held, argument)

    def answer(self):
        return self._answer

    def time(self, calls):
        return self._held.time(calls)

    def close(self):
        pass


def test_quick_run_writes_table_and_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "Process", Here)
    monkeypatch.setattr(process, "WARM_UP_SECONDS", 0.0)
    plan = replace(PLAN, recurrent=(), deep=PLAN.single[0][0])  # few layers compile fast
    with jax.numpy_dtype_promotion("standard"):
        benchmarks.run(plan, ["W1", "W3", "W4", "W11", "convolution", "density", "scaling"], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("results.md", "results.json"),
        *("speed.png", "products.png", "density.png", "scaling.png"),
    }
    written = json.loads((tmp_path / "results.json").read_text())["tables"]
    cells = [cell for table in written for cell in table["cells"]]
    assert all(cell["median"] >= cell["minimum"] > 0 for cell in cells)
    assert all(cell["CPU median"] >= cell["CPU minimum"] > 0 for cell in cells)


def test_command_line_takes_known_sections_only(capsys):
    assert benchmarks.arguments(["--only", "W3", "start"]).only == ["W3", "start"]
    with pytest.raises(SystemExit):
        benchmarks.arguments(["--only", "W99"])
    assert "invalid choice: 'W99'" in capsys.readouterr().err


def test_gpu_benchmark_runs_without_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(gpus, "TASKS", (networks.INFERENCE,))
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # optax, plain JAX
        gpus.main(["--quick", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "results.json").read_text())["tables"]
    assert len(found) == 4
    assert all(gpus.REFERENCE in json.dumps(table) and gpus.CAPPED in json.dumps(table) for table in found)
    assert all(
        table["title"].endswith("with products of full precision 0e+00 from the CPU") for table in found
    )


def test_pixels_are_learned_by_both_networks(capsys, monkeypatch, tmp_path):
    few = np.ones((32, 4, 1), np.float32), np.zeros(32, np.int32)
    monkeypatch.setattr(sequential, "sequences", lambda split, order: few)
    small = {"LSTM": sequential.lstm(3), "spiking": sequential.spiking(12)}
    networks_of = {name: sequential.Network(name, model, 0.1) for name, model in small.items()}
    monkeypatch.setattr(sequential, "NETWORKS", networks_of)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # optax, plain JAX
        asked = ("--orders", "rows", "--epochs", "20", "--seeds", "1", "--out", str(tmp_path / "out.json"))
        assert sequential.main(asked) == 0
    record = json.loads((tmp_path / "out.json").read_text())
    assert all(found[0][0] == 1.0 for found in record["results"]["rows"].values())
    assert "| row by row | spiking | 100.00 % |" in sequential.section(record) in capsys.readouterr().out
