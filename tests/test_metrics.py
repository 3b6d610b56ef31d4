"""Metrics: numbers a reader can check by hand, lists = dense, messages."""

import itertools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, metrics
from snnjax.ops._connection import Connection
from snnjax.ops._convolution import Convolution
from snnjax.ops.pool_spikes import Pooling

OUTPUTS = jnp.array(  # [time=3, batch=2, classes=3]
    [[[0, 0, 0], [1, 0, 0]], [[0, 1, 0], [0, 0, 1]], [[1, 1, 0], [0, 0, 1]]], jnp.float32
)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("decoder, expected", [("sum", [1, 2]), ("max", [0, 0]), ("first_spike", [1, 0])])
def test_predictions_decode_sum_maximum_and_first_spike(
    decoder: str, expected: list[int], sparse: bool
) -> None:
    outputs = SparseSpikes.from_dense(OUTPUTS, capacity=2) if sparse else OUTPUTS
    predicted = metrics.predictions(outputs, decoder=decoder)
    assert predicted.dtype == jnp.int32
    np.testing.assert_array_equal(predicted, expected)


def test_predictions_ignore_steps_after_the_end() -> None:
    np.testing.assert_array_equal(metrics.predictions(OUTPUTS, lengths=jnp.array([3, 1])), [1, 0])


def test_accuracy_is_the_share_of_right_predictions() -> None:
    assert metrics.accuracy(OUTPUTS, jnp.array([1, 0])) == 0.5
    assert metrics.accuracy(OUTPUTS, jnp.array([1, 0]), lengths=jnp.array([3, 1])) == 1.0


def test_accuracy_of_steps_is_the_share_of_all_labels() -> None:
    np.testing.assert_array_equal(metrics.predictions(OUTPUTS, decoder="steps"), [[0, 0], [1, 2], [0, 2]])
    labels = jnp.array([[0, 1], [-1, 2], [1, 2]])
    assert metrics.accuracy(OUTPUTS, labels, decoder="steps") == np.float32(3 / 5)
    assert metrics.accuracy(OUTPUTS, labels, lengths=jnp.array([1, 3]), decoder="steps") == 0.75
    assert metrics.accuracy(OUTPUTS, labels, lengths=jnp.array([0, 0]), decoder="steps") == 0


def test_mean_activity_and_activation_sparsity_weigh_layers_differently() -> None:
    activity = [jnp.full((2, 6), 0.5), jnp.zeros((2, 2))]
    np.testing.assert_array_equal(metrics.mean_activity(activity), [0.5, 0.0])
    assert metrics.activation_sparsity(activity) == 1 - 3 / 8


def test_silent_layers_counts_neurons_that_never_spike() -> None:
    rates = jnp.zeros((3, 4)).at[1, 2].set(0.01)
    np.testing.assert_array_equal(metrics.silent_layers([rates, jnp.zeros((3, 5))]), [0.75, 1.0])


def test_dropped_share_is_relative_to_true_spikes() -> None:
    activity = [jnp.array([[0.5, 0.5], [0.25, 0.0]]), jnp.zeros((2, 3))]
    dropped = [jnp.array([1, 0]), jnp.array([0, 0])]
    # 10 + 2 spikes in layer 0, one dropped; a silent layer drops nothing
    np.testing.assert_allclose(
        metrics.dropped_share(dropped, activity, jnp.array([10, 8])), [1 / 12, 0], rtol=1e-6
    )


def test_class_maxima_counts_steps_where_lists_name_an_id_twice() -> None:
    count = jnp.full((2, 1), 2, jnp.int32)
    values = jnp.array([[[-1.0, -2.0]], [[0.0, 0.0]]])
    twice = SparseSpikes(jnp.array([[[0, 0]], [[1, 1]]]), values, count, count, 0 * count, 2)
    np.testing.assert_array_equal(metrics.class_maxima(twice), [[0, 0]])  # step 1 does not list class 0
    np.testing.assert_array_equal(metrics.class_maxima(twice, jnp.array([1])), [[-3, 0]])
    np.testing.assert_array_equal(metrics.predictions(twice, lengths=jnp.array([1]), decoder="max"), [1])


@pytest.mark.parametrize("sparse", [False, True])
def test_input_counts_leaves_out_padding(sparse: bool) -> None:
    inputs = SparseSpikes.from_dense(OUTPUTS * 2, capacity=3) if sparse else OUTPUTS * 2
    counts = metrics.input_counts(inputs, jnp.array([3, 2]))
    np.testing.assert_array_equal(counts, [[1, 2, 0], [1, 0, 1]])


def test_input_counts_takes_integers_as_sensors_give_them() -> None:
    counts = metrics.input_counts(OUTPUTS.astype(jnp.uint8))
    np.testing.assert_array_equal(counts, [[1, 2, 0], [1, 0, 2]])


def test_synaptic_operations_equal_neurobench_on_its_own_example() -> None:
    # Columns of the documented example are our rows: inputs 0, 1.3, -1; 4 effective operations, 9 dense.
    weights = jnp.array([[1.3, 0.0, -1.1], [0.0, 1.2, 2.7], [-3.2, -5.1, 0.0]])
    counts = metrics.input_counts(jnp.array([[[0.0, 1.3, -1.0]]]))
    cost = metrics.synaptic_operations([weights], counts, [], jnp.array([1]), binary_inputs=False)
    assert tuple(map(float, cost)) == (4, 0, 9)


def test_synaptic_operations_equal_a_count_over_all_steps() -> None:
    rng = np.random.default_rng(0)
    widths, time, batch = (5, 4, 3, 2), 6, 2
    spikes = [(rng.random((time, batch, n)) < 0.3).astype(np.float32) for n in widths[:-1]]
    weights = [rng.integers(0, 2, size).astype(np.float32) for size in itertools.pairwise(widths)]
    loop = rng.integers(0, 2, (4, 4)).astype(np.float32)
    expected = sum(np.sum(s @ w) for s, w in zip(spikes, weights, strict=True)) + np.sum(spikes[1] @ loop)
    cost = metrics.synaptic_operations(
        [jnp.asarray(w) for w in weights],
        metrics.input_counts(jnp.asarray(spikes[0])),
        [jnp.mean(jnp.asarray(s), axis=0) for s in spikes[1:]],
        jnp.full(batch, time),
        recurrent=[jnp.asarray(loop), None],
    )
    # rates are rounded quotients: counts come back within some ulp
    np.testing.assert_allclose(cost.effective_acs, expected / batch, rtol=1e-6)
    assert cost.effective_macs == 0
    assert cost.dense == time * (5 * 4 + 4 * 3 + 3 * 2 + 4 * 4)


def test_synaptic_operations_of_a_spiking_readout_end_with_its_recurrent_weights() -> None:
    ones, rates = jnp.ones((2, 2)), jnp.full((1, 2), 0.5)
    counts, lengths = jnp.array([[3.0, 0.0]]), jnp.array([4])
    cost = metrics.synaptic_operations([ones], counts, [rates], lengths, recurrent=[ones])
    assert (cost.effective_acs, cost.dense) == (3 * 2 + 4 * 2, 4 * (4 + 4))


def test_synaptic_operations_of_a_convolution_count_the_taps_that_a_spike_meets() -> None:
    # Kernels of 3 over 4 pixels, from 1 to 2 channels: 2 + 3 + 3 + 2 taps lie within the image.
    connection = Connection(None, Convolution.of("test", (4, 1), (3,), 2))
    weights = (
        jnp.ones((3, 1, 2)).at[0, 0, 0].set(0)
    )  # the tap from a pixel to the next one, which the last one lacks
    lengths = jnp.array([3])
    for pixel, fan_out in enumerate([2 * 2 - 1, 3 * 2 - 1, 3 * 2 - 1, 2 * 2]):
        counts = jnp.zeros((1, 4)).at[0, pixel].set(2)
        cost = metrics.synaptic_operations([weights], counts, [], lengths, connections=[connection])
        assert (cost.effective_acs, cost.dense) == (2 * fan_out, 3 * (2 + 3 + 3 + 2) * 2)


@pytest.mark.parametrize("mean", [False, True])
def test_synaptic_operations_behind_a_pool_count_spikes(mean: bool) -> None:
    # Two windows of two pixels; the fifth pixel lies in none.
    connection = Connection(Pooling((5, 1), (2,), mean))
    counts = jnp.array([[1.0, 2.0, 0.0, 4.0, 8.0]])
    weights = jnp.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    cost = metrics.synaptic_operations([weights], counts, [], jnp.array([9]), connections=[connection])
    assert (cost.effective_acs, cost.dense) == ((1 + 2) * 3 + 4 * 2, 9 * 4 * 3)


@pytest.mark.parametrize(
    "options",
    [{"strides": 2}, {"padding": "valid", "groups": 2}, {"padding": ((2, 0), (0, 3)), "strides": (1, 2)}],
)
def test_dense_synaptic_operations_are_those_of_spikes_everywhere(options: dict[str, Any]) -> None:
    convolution = Convolution.of("test", (5, 6, 2), (3, 2), 4, **options)
    connection, ones = Connection(None, convolution), jnp.ones(convolution.weights_shape)
    spikes = jnp.ones((1, convolution.num_inputs))
    cost = metrics.synaptic_operations([ones], spikes, [], jnp.array([1]), connections=[connection])
    assert cost.effective_acs == cost.dense == jnp.sum(connection.current(spikes, ones))


def test_metrics_work_under_jit() -> None:
    cost = jax.jit(metrics.synaptic_operations)([jnp.ones((3, 2))], jnp.ones((1, 3)), [], jnp.array([4]))
    assert (cost.effective_acs, cost.dense) == (6, 24)


def test_static_metrics_count_arrays() -> None:
    params = {"weights": jnp.array([[0.0, 1.0], [0.0, 0.0]]), "bias": jnp.zeros(2), "decay": jnp.zeros(2)}
    assert metrics.connection_sparsity(params) == 0.75
    assert metrics.connection_sparsity(params | {"kernel": jnp.ones((2, 2, 1, 1))}) == 3 / 8
    assert metrics.parameter_count(params) == 8
    assert metrics.footprint(params) == 32
    assert metrics.footprint(params, jnp.zeros(3, jnp.uint8)) == 35


ONES = jnp.ones((2, 2))
FAILURES = {
    "outputs": (
        lambda: metrics.accuracy(jnp.zeros((0, 1, 2)), jnp.array([0])),
        "accuracy: `outputs` must hold at least one step, got none. Run the network for at least one step.",
    ),
    "decoder": (
        lambda: metrics.predictions(OUTPUTS, decoder="mean"),
        "predictions: `decoder` must be 'sum', 'max', 'first_spike' or 'steps', got 'mean'. Choose one of these.",
    ),
    "labels": (
        lambda: metrics.accuracy(OUTPUTS, jnp.array([0])),
        "accuracy: `labels` must have shape [batch] = [2], got [1]. Pass one class index per sequence.",
    ),
    "no layer": (
        lambda: metrics.mean_activity([]),
        "mean_activity: `activity` must hold at least one layer, got none. "
        "Pass the activity that a network returns, one array per layer.",
    ),
    "rank": (
        lambda: metrics.silent_layers([jnp.zeros(3)]),
        "silent_layers: `activity[0]` must have shape [batch, neurons], got [3]. "
        "Pass the activity that a network returns, one array per layer.",
    ),
    "dropped": (
        lambda: metrics.dropped_share([], [ONES], jnp.array([1, 1])),
        "dropped_share: `dropped` must hold 1 layer, got 0. Pass both as the network returned them.",
    ),
    "lengths": (
        lambda: metrics.dropped_share([jnp.array([0, 0])], [ONES], jnp.array([1])),
        "dropped_share: `lengths` must have shape [batch] = [2], got [1]. "
        "Pass the number of steps of each sequence of the batch.",
    ),
    "weights": (
        lambda: metrics.synaptic_operations([ONES], ONES, [ONES, ONES], jnp.array([1, 1])),
        "synaptic_operations: `weights` must hold 3 arrays (2 with a spiking read-out), got 1. "
        "Pass the weights of every hidden layer and of the read-out.",
    ),
    "order": (
        lambda: metrics.synaptic_operations([ONES, jnp.ones((3, 1))], ONES, [ONES], jnp.array([1, 1])),
        "synaptic_operations: `weights[1]` must have shape [inputs, outputs] = [2, any], got [3, 1]. "
        "Order the weights from input to read-out.",
    ),
    "recurrent": (
        lambda: metrics.synaptic_operations([ONES], ONES, [], jnp.array([1, 1]), recurrent=[None]),
        "synaptic_operations: `recurrent` must hold 0 arrays, got 1. "
        "Pass one per layer, None if it is not recurrent.",
    ),
    "connections": (
        lambda: metrics.synaptic_operations([ONES], ONES, [], jnp.array([1, 1]), connections=[]),
        "synaptic_operations: `connections` must hold 1 connection, got 0. "
        "Pass one for each of the weights, or None.",
    ),
    "connection": (
        lambda: metrics.synaptic_operations(
            [ONES], ONES, [], jnp.array([1, 1]), connections=[Connection(Pooling((4, 1), (2,), mean=False))]
        ),
        "synaptic_operations: `connections[0]` must have 2 inputs, got 4. "
        "Order the layers from input to read-out.",
    ),
    "no matrix": (
        lambda: metrics.connection_sparsity({"bias": jnp.zeros(2)}),
        "connection_sparsity: `params` must hold a weight matrix, got none. "
        "Pass the parameters that a network's init returned.",
    ),
}


@pytest.mark.parametrize("case", sorted(FAILURES))
def test_wrong_arguments_are_named(case: str) -> None:
    call, text = FAILURES[case]
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        call()
