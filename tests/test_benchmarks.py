"""The benchmarks run, and the programs that they compare compute the same."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks import (
    cameras,
    convolutions,
    fresh,
    gradients,
    networks,
    neurons,
    products,
    report,
    timing,
    workloads,
)
from tests.benchmarks.plan import quick
from tests.benchmarks.tables import Table

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
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, **ROUNDING), value_and_gradient(name), expected
        )


# Factors of 8 bits change each cotangent by at most 1 %, and there are three layers.
@pytest.mark.parametrize("name", gradients.GRADIENTS)
def test_alternatives_of_a_gradient_agree(name):
    workload, gradient = PLAN.deep, gradients.GRADIENTS[name]
    layers, inputs = networks.data(workload)
    labels = jnp.asarray(workloads.labels(workload))

    def leaves_of(alternative):
        loss = networks.loss_of(alternative.forward, workload.readout)
        return jax.tree.leaves(jax.grad(loss)(layers, inputs[alternative.inputs], labels))

    expected, *others = (leaves_of(each) for each in gradients.alternatives(gradient).values())
    assert all(jnp.any(leaf != 0) for leaf in expected)
    for own in others:
        for x, y in zip(own, expected, strict=True):
            largest = float(jnp.max(jnp.abs(y)))
            np.testing.assert_allclose(
                x, y, rtol=0, atol=(0.03 if gradient.rounds_cotangents else 1e-5) * largest
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

    activity = cameras.made(camera).apply(params, None, dense)[0].activity
    assert all(jnp.mean(each) > 0.01 for each in activity)
    with jax.numpy_rank_promotion("allow"):  # as it is usually written
        expected = value_and_gradient(cameras.PLAIN)
    assert all(jnp.any(own.weights != 0) and jnp.any(own.bias != 0) for own in expected[1].layers)
    for name, alternative in cameras.ALTERNATIVES.items():
        if not alternative.capped and name != cameras.PLAIN:
            jax.tree.map(
                lambda x, y: np.testing.assert_allclose(x, y, **ROUNDING), value_and_gradient(name), expected
            )


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


def test_workload_survives_json():
    assert workloads.from_json(workloads.as_json(workloads.W3)) == workloads.W3


def test_first_steps_measure_time_and_memory():
    with jax.numpy_dtype_promotion("standard"):  # which optax needs
        found = fresh.first_steps(PLAN.deep, "plain JAX, lax.scan", networks.TRAINING)
    assert found["seconds"] > 0
    assert found["growth"] is None or found["growth"] > 0


def test_processes_divide_a_step():
    name = "snnjax, events"
    one, two = (fresh.ask("in_processes", PLAN.deep, processes, 2, name) for processes in (1, 2))
    assert len(two["seconds"]) == 2
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-5)


def test_ratio_is_that_of_medians_to_the_fastest_plain_alternative():
    columns = {"plain JAX, a": [4.0, 9.0, 5.0], "plain JAX, b": [8.0], "snnjax": [2.0, 2.5, 9.0]}
    table = Table("title", {("column", name): values for name, values in columns.items()})
    assert report.ratio(table, "column", "snnjax") == 2.0
    assert "| snnjax | 2500 (2.00x) |" in report.as_markdown(table)


def test_measure_runs_every_timer_in_every_round():
    calls = []
    timers = {name: lambda n, name=name: calls.append((name, n)) or 0.01 for name in "ab"}
    assert timing.measure(timers, rounds=3, min_seconds=0.03) == {"a": [0.01] * 3, "b": [0.01] * 3}
    assert sorted(calls) == sorted([("a", 1), ("b", 1)] * 2 + [("a", 3), ("b", 3)] * 3)


def test_quick_run_writes_table_and_pictures(tmp_path):
    plan = replace(PLAN, recurrent=(), deep=PLAN.single[0][0])  # few layers compile fast
    with jax.numpy_dtype_promotion("standard"):
        benchmarks.run(plan, ["W1", "W3", "W4", "convolution", "density", "scaling"], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("results.md", "results.json"),
        *("speed.png", "products.png", "density.png", "scaling.png"),
    }
    tables = json.loads((tmp_path / "results.json").read_text())["tables"]
    assert all(cell["median"] > 0 for table in tables for cell in table["cells"])


def test_command_line_takes_known_sections_only(capsys):
    assert benchmarks.arguments(["--only", "W3", "start"]).only == ["W3", "start"]
    with pytest.raises(SystemExit):
        benchmarks.arguments(["--only", "W99"])
    assert "invalid choice: 'W99'" in capsys.readouterr().err
