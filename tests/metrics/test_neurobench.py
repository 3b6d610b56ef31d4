"""NeuroBench's harness counts the same as `snnjax.metrics`, on the same network and data."""

import importlib
import importlib.util

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    axonal,
    blocks,
    conv1d,
    dense,
    flatten,
    layer,
    leaky_readout,
    mean_pool,
    metrics,
    network,
    neurons,
    parallel,
    spiking_readout,
)
from snnjax._types import Signal
from snnjax.neurobench import to_neurobench
from tests.numbers import array

is_installed = importlib.util.find_spec("neurobench") is not None
needs_neurobench = pytest.mark.skipif(not is_installed, reason="NeuroBench is not installed")

STEPS, SAMPLES, INPUTS, CLASSES = 15, 10, 6, 3
MASK = np.arange(INPUTS * 8).reshape(INPUTS, 8) % 3 > 0
NETWORKS = {
    "masked, delayed": ([axonal(4), layer(dense(8, mask=MASK)), layer(5)], leaky_readout(CLASSES)),
    "recurrent": (
        [layer(dense(8, bias=False), neurons.adlif(), recurrent=[axonal(2), dense(8, bias=False)])],
        leaky_readout(CLASSES),
    ),
    "lists": ([layer(8, capacity=8)], leaky_readout(CLASSES)),
    "spiking": ([layer(8)], spiking_readout(CLASSES)),
    "branches": (
        [parallel(fast=layer(8, norm=blocks.batch_norm()), slow=[axonal(4), flatten(), layer(4)])],
        leaky_readout(CLASSES),
    ),
}


def judged(model, inputs: Signal, labels, batch_size: int):
    """The report of NeuroBench's harness."""
    torch, data = importlib.import_module("torch"), importlib.import_module("torch.utils.data")
    static = importlib.import_module("neurobench.metrics.static")
    workload = importlib.import_module("neurobench.metrics.workload")
    benchmark = importlib.import_module("neurobench.benchmarks").Benchmark
    samples = data.TensorDataset(torch.from_numpy(inputs), torch.from_numpy(labels))
    fixed = [static.ParameterCount, static.Footprint, static.ConnectionSparsity]
    counted = [workload.ClassificationAccuracy, workload.ActivationSparsity, workload.SynapticOperations]
    loader = data.DataLoader(samples, batch_size=batch_size)
    return benchmark(model, loader, [], [], [fixed, counted]).run(quiet=True)


@needs_neurobench
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("binary", [True, False])
def test_neurobench_counts_as_we_do(name: str, binary: bool) -> None:
    """Over uneven batches of samples. Sums of float32 rates agree up to rounding; NeuroBench rounds connection
    sparsity to 4 decimals.
    """
    layers, readout = NETWORKS[name]
    net = network(INPUTS, layers, readout)
    rng = np.random.default_rng(0)
    inputs = (rng.random((SAMPLES, STEPS, INPUTS)) < 0.4).astype(np.float32) * (1 if binary else 2.5)
    labels = rng.integers(0, CLASSES, SAMPLES)
    x, lengths = jnp.swapaxes(jnp.asarray(inputs), 0, 1), jnp.full(SAMPLES, STEPS)
    params = net.init(jax.random.key(1), x, target_activity=0.2)
    stats = net.initial_stats(jax.random.key(0))
    report = judged(to_neurobench(net, params, stats), inputs, labels, batch_size=4)

    output = net.apply(params, None, x, stats=stats)[0]
    counts = metrics.input_counts(x)
    cost = metrics.synaptic_operations(net, params, counts, output.activity, lengths, binary_inputs=binary)
    assert report["ParameterCount"] == metrics.parameter_count(params)
    assert report["Footprint"] == metrics.footprint(params)
    connected = metrics.connection_sparsity(params)
    np.testing.assert_allclose(report["ConnectionSparsity"], connected, rtol=0, atol=5.1e-5)
    accuracy = metrics.accuracy(output.output, array(labels, jnp.int32))
    np.testing.assert_allclose(report["ClassificationAccuracy"], accuracy, rtol=1e-6)
    sparsity = metrics.activation_sparsity(output.activity)
    assert 0.5 < float(sparsity) < 0.98
    np.testing.assert_allclose(report["ActivationSparsity"], sparsity, rtol=1e-6)
    found = report["SynapticOperations"]
    operations = [found["Effective_MACs"], found["Effective_ACs"], found["Dense"]]
    np.testing.assert_allclose(operations, jnp.stack(list(cost)), rtol=1e-6)
    assert (found["Effective_MACs"] > 0) != binary


@needs_neurobench
def test_without_a_decoder_a_model_returns_outputs() -> None:
    torch = importlib.import_module("torch")
    net = network(INPUTS, [layer(8)], leaky_readout(CLASSES))
    params = net.init(jax.random.key(0))
    outputs = to_neurobench(net, params, decoder=None)(torch.ones(2, STEPS, INPUTS)).numpy()
    expected = net.apply(params, None, jnp.ones((STEPS, 2, INPUTS)))[0].output
    chex.assert_trees_all_close(outputs.swapaxes(0, 1), expected, rtol=1e-6, atol=1e-6, strict=True)


@needs_neurobench
def test_classes_of_steps_have_the_axes_of_neurobench() -> None:
    torch = importlib.import_module("torch")
    net = network(INPUTS, [layer(8)], leaky_readout(CLASSES))
    params, inputs = (
        net.init(jax.random.key(0)),
        np.random.default_rng(0).random((2, STEPS, INPUTS), np.float32),
    )
    found = to_neurobench(net, params, decoder="steps")(torch.from_numpy(inputs)).numpy()
    output = net.apply(params, None, jnp.swapaxes(jnp.asarray(inputs), 0, 1))[0].output
    np.testing.assert_array_equal(found, np.argmax(output, axis=-1).T)


@needs_neurobench
def test_what_neurobench_cannot_count_is_refused() -> None:
    torch = importlib.import_module("torch")
    expected = "to_neurobench: `network` must have "
    hint = " Count its operations with metrics.synaptic_operations."
    for inputs, (items, readout), text in (
        (
            (6, 1),
            ([layer(conv1d(2, 3))], None),
            f"dense weights alone, got conv1d in 'layer_0/connection'.{hint}",
        ),
        (
            (6, 1),
            ([mean_pool(2), layer(2)], None),
            f"dense weights alone, got mean_pool in 'mean_pool_0'.{hint}",
        ),
        (2, ([], {"a": layer(2)}), "one input and one output, got several. Make a network of one of them."),
    ):
        net = network(inputs, items, readout)
        with pytest.raises(ValueError) as caught:
            to_neurobench(net, net.init(jax.random.key(0)))
        assert str(caught.value) == expected + text
    net = network(INPUTS, [layer(8)], leaky_readout(CLASSES))
    with pytest.raises(ValueError) as caught:
        to_neurobench(net, net.init(jax.random.key(0), dtype=jnp.bfloat16))
    assert str(caught.value) == (
        "to_neurobench: `params` must be float32 or float64, got bfloat16. Cast or dequantise them."
    )
    with pytest.raises(ValueError) as caught:
        to_neurobench(net, net.init(jax.random.key(0)))(torch.ones(2, STEPS, 7))
    assert str(caught.value) == (
        f"to_neurobench: `batch` must have shape [batch, time, inputs] = [any, any, 6], got [2, {STEPS}, 7]. "
        "Flatten images in a preprocessor."
    )


def test_neurobench_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    net = network(INPUTS, [layer(8)], leaky_readout(CLASSES))
    with pytest.raises(ImportError) as caught:
        to_neurobench(net, net.init(jax.random.key(0)))
    assert str(caught.value) == (
        "to_neurobench: `neurobench` must be installed, got no such package. Install it, for instance with "
        "pip install 'snnjax[neurobench]'."
    )
