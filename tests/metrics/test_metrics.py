"""Metrics: numbers a reader can check by hand, lists = dense, messages."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    SparseSpikes,
    Synapses,
    blocks,
    conv1d,
    conv2d,
    dense,
    layer,
    leaky_readout,
    max_pool,
    mean_pool,
    metrics,
    network,
    neurons,
    sparse,
    spiking_readout,
    sum_pool,
    synaptic,
)
from snnjax._types import Params, State, Stats
from snnjax.blocks._sparse import SparseParams
from snnjax.blocks.conv import Convolve
from snnjax.blocks.linear import LinearParams
from snnjax.circuits import SpikeTrains
from tests.errors.refusals import refusals
from tests.numbers import array

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


@pytest.mark.parametrize("decoder", ["sum", "max", "first_spike"])
def test_predictions_ignore_steps_after_the_end(decoder: str) -> None:
    lengths = jnp.array([3, 1, 0])
    behind = jnp.arange(4)[:, None] >= lengths[None]
    spikes = jax.random.bernoulli(jax.random.key(0), 0.3, (4, 3, 5)).astype(jnp.float32)
    outputs = jnp.where(behind[..., None], jnp.arange(5.0)[None, None], spikes)
    predict = functools.partial(metrics.predictions, lengths=lengths, decoder=decoder)
    expected = predict(jnp.where(behind[..., None], 0, spikes))
    for given in (outputs, SparseSpikes.from_dense(outputs, 5)):
        np.testing.assert_array_equal(predict(given), expected)


@pytest.mark.parametrize("decoder", ["sum", "max", "first_spike", "steps"])
def test_outputs_that_are_nan_predict_no_class_and_are_never_right(decoder: str) -> None:
    """The membranes of a diverged run have no largest one."""
    outputs = jnp.zeros((2, 2, 3)).at[:, 0, 1].set(jnp.nan)
    labels = jnp.zeros((2, 2) if decoder == "steps" else 2, jnp.int32)
    expected = np.broadcast_to([-1, 0], labels.shape)
    np.testing.assert_array_equal(metrics.predictions(outputs, decoder=decoder), expected)
    assert metrics.accuracy(outputs, labels, decoder=decoder) == 0.5
    assert int(metrics.confusion(outputs, labels, decoder=decoder).sum()) == labels.size // 2
    # Nor where the label is no class either, which nothing can check within `jit`.
    assert jax.jit(functools.partial(metrics.accuracy, decoder=decoder))(outputs, labels - 1) == 0


def test_accuracy_is_the_share_of_right_predictions() -> None:
    assert metrics.accuracy(OUTPUTS, jnp.array([1, 0])) == 0.5
    assert metrics.accuracy(OUTPUTS, jnp.array([1, 0]), lengths=jnp.array([3, 1])) == 1.0


def test_accuracy_of_steps_is_the_share_of_all_labels() -> None:
    np.testing.assert_array_equal(metrics.predictions(OUTPUTS, decoder="steps"), [[0, 0], [1, 2], [0, 2]])
    labels = jnp.array([[0, 1], [-1, 2], [1, 2]])
    assert metrics.accuracy(OUTPUTS, labels, decoder="steps") == np.float32(3 / 5)
    assert metrics.accuracy(OUTPUTS, labels, lengths=jnp.array([1, 3]), decoder="steps") == 0.75
    assert metrics.accuracy(OUTPUTS, labels, lengths=jnp.array([0, 0]), decoder="steps") == 0


def test_confusion_counts_labels_by_prediction_and_its_diagonal_is_the_accuracy() -> None:
    matrix = metrics.confusion(OUTPUTS, jnp.array([1, 0]))
    np.testing.assert_array_equal(matrix, [[0, 0, 1], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(metrics.class_accuracy(matrix), [0, 1, np.nan])
    rng = np.random.default_rng(0)
    outputs = array(rng.random((4, 30, 5)), jnp.float32)
    for decoder, shape in (("sum", (30,)), ("max", (30,)), ("steps", (4, 30))):
        least = -1 if decoder == "steps" else 0
        labels = jnp.asarray(rng.integers(least, 5, shape))
        options: Any = {"lengths": jnp.asarray(rng.integers(1, 5, 30)), "decoder": decoder}
        matrix = metrics.confusion(outputs, labels, **options)
        assert matrix.dtype == jnp.int32
        accuracy = metrics.accuracy(outputs, labels, **options)
        np.testing.assert_allclose(jnp.trace(matrix) / matrix.sum(), accuracy, rtol=1e-6)


def test_mean_activity_and_activation_sparsity_weigh_layers_differently() -> None:
    activity = [jnp.full((2, 6), 0.5), jnp.zeros((2, 2))]
    np.testing.assert_array_equal(metrics.mean_activity(activity), [0.5, 0.0])
    assert metrics.activation_sparsity(activity) == 1 - 3 / 8


def test_activation_sparsity_of_integer_spikes_is_a_lower_bound_and_exact_from_their_steps() -> None:
    """Of four neurons one sends 4 in both steps, one in the first; the activity counts magnitudes: 4 and 2 a step."""
    spikes = jnp.array([[[4.0, 4.0, 0.0, 0.0]], [[4.0, 0.0, 0.0, 0.0]]])
    assert metrics.activation_sparsity([jnp.array([[4.0, 2.0, 0.0, 0.0]])]) == 0.5
    shares = metrics.input_counts(spikes) / 2
    assert metrics.activation_sparsity([shares]) == 1 - 1.5 / 4


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
    only = [jnp.full((1, 4), 0.025)]  # one spike in ten steps
    np.testing.assert_allclose(metrics.dropped_share([jnp.array([1])], only, jnp.array([10])), [1], rtol=1e-6)


def test_layers_by_name_are_measured_in_the_order_of_the_activity() -> None:
    activity = {"b": jnp.full((2, 6), 0.5), "a": jnp.zeros((2, 2))}
    dropped = {"a": jnp.array([0, 0]), "b": jnp.array([3, 0])}  # as `jax.jit` sorts it
    for measure in (metrics.mean_activity, metrics.silent_layers, metrics.activation_sparsity):
        np.testing.assert_array_equal(measure(activity), measure([*activity.values()]))
    np.testing.assert_allclose(metrics.dropped_share(dropped, activity, jnp.array([1, 1])), [0.5, 0])


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


def counted(net, params: Params, counts, activity, steps: int = 1, **options):
    """The operations of sequences of equal length."""
    lengths = jnp.full(jax.tree.leaves(counts)[0].shape[0], steps)
    return metrics.synaptic_operations(net, params, counts, activity, lengths, **options)


def test_synaptic_operations_equal_neurobench_on_its_own_example() -> None:
    # Columns of the documented example are our rows: inputs 0, 1.3, -1; 4 effective operations, 9 dense.
    weights = jnp.array([[1.3, 0.0, -1.1], [0.0, 1.2, 2.7], [-3.2, -5.1, 0.0]])
    net, params = network(3, [dense(3, bias=False)]), {"dense_0": LinearParams(weights)}
    counts = metrics.input_counts(jnp.array([[[0.0, 1.3, -1.0]]]))
    assert tuple(map(float, counted(net, params, counts, {}, binary_inputs=False))) == (4, 0, 9)


def test_synaptic_operations_equal_a_count_over_all_steps() -> None:
    rng = np.random.default_rng(0)
    widths, time, batch = (5, 4, 3, 2), 6, 2
    spikes = [(rng.random((time, batch, n)) < 0.3).astype(np.float32) for n in widths[:-1]]
    weights = [rng.integers(0, 2, size).astype(np.float32) for size in itertools.pairwise(widths)]
    loop = rng.integers(0, 2, (4, 4)).astype(np.float32)
    expected = sum(np.sum(s @ w) for s, w in zip(spikes, weights, strict=True)) + np.sum(spikes[1] @ loop)
    net = network(5, [layer(4, recurrent=True).named("a"), layer(3).named("b")], leaky_readout(2))
    params = net.init(jax.random.key(0))
    for name, own in zip(("a", "b", "readout"), weights, strict=True):
        params[f"{name}/connection"] = params[f"{name}/connection"]._replace(weights=jnp.asarray(own))
    recurrent = LinearParams(jnp.asarray(loop))
    rates = {
        f"{name}/neuron": jnp.mean(jnp.asarray(s), axis=0) for name, s in zip("ab", spikes[1:], strict=True)
    }
    counts = metrics.input_counts(jnp.asarray(spikes[0]))
    cost = counted(net, params | {"a/recurrent": recurrent}, counts, rates, time)
    # rates are rounded quotients: counts come back within some ulp
    np.testing.assert_allclose(cost.effective_acs, expected / batch, rtol=1e-6)
    assert cost.effective_macs == 0
    assert cost.dense == time * (5 * 4 + 4 * 3 + 3 * 2 + 4 * 4)


def ones(net):
    """Parameters whose weights are 1."""
    return jax.tree.map(
        lambda leaf: jnp.ones_like(leaf) if leaf.ndim > 1 else leaf, net.init(jax.random.key(0))
    )


def test_synaptic_operations_of_a_spiking_readout_end_with_its_recurrent_weights() -> None:
    net = network(2, [], spiking_readout(2, recurrent=True))
    cost = counted(net, ones(net), jnp.array([[3.0, 0.0]]), {"readout/neuron": jnp.full((1, 2), 0.5)}, 4)
    assert (cost.effective_acs, cost.dense) == (3 * 2 + 4 * 2, 4 * (4 + 4))


def test_synaptic_operations_of_a_convolution_count_the_taps_that_a_spike_meets() -> None:
    # Kernels of 3 over 4 pixels, from 1 to 2 channels: 2 + 3 + 3 + 2 taps lie within the image.
    net = network((4, 1), [conv1d(2, 3, bias=False)])
    # Without the tap from a pixel to the next one, which the last one lacks.
    params = {"conv1d_0": LinearParams(jnp.ones((3, 1, 2)).at[0, 0, 0].set(0))}
    for pixel, fan_out in enumerate([2 * 2 - 1, 3 * 2 - 1, 3 * 2 - 1, 2 * 2]):
        cost = counted(net, params, jnp.zeros((1, 4)).at[0, pixel].set(2), {}, 3)
        assert (cost.effective_acs, cost.dense) == (2 * fan_out, 3 * (2 + 3 + 3 + 2) * 2)


@pytest.mark.parametrize("pool", [mean_pool(2), sum_pool(2)])
def test_synaptic_operations_behind_a_pool_count_spikes(pool) -> None:
    # Two windows of two pixels; the fifth pixel lies in none.
    net = network((5, 1), [pool, dense(3, bias=False)])
    params = {"dense_0": LinearParams(jnp.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))}
    cost = counted(net, params, jnp.array([[1.0, 2.0, 0.0, 4.0, 8.0]]), {}, 9)
    assert (cost.effective_acs, cost.dense) == ((1 + 2) * 3 + 4 * 2, 9 * 4 * 3)


@pytest.mark.parametrize("shape, factor", [((2, 1), 3), ((2, 2, 1), 2)])
def test_synaptic_operations_behind_upsampling_count_a_spike_for_each_pixel(
    shape: tuple[int, ...], factor: int
) -> None:
    net = network(shape, [blocks.upsample(factor), dense(3, bias=False)])
    counts = jnp.arange(math.prod(shape), dtype=jnp.float32)[None]
    cost, copies = counted(net, ones(net), counts, {}, 5), factor ** (len(shape) - 1)
    assert (cost.effective_acs, cost.effective_macs) == (3 * copies * jnp.sum(counts), 0)
    assert cost.dense == 5 * 3 * copies * math.prod(shape)


@pytest.mark.parametrize(
    "join, arriving, everywhere",
    [("add", 8, 4), ("either", 8, 4), ("multiply", 2, 2), ("concatenate", 8, 4), ("iand", 4, 2)],
)
def test_synaptic_operations_behind_a_join_count_the_spikes_of_both(
    join: str, arriving: int, everywhere: int
) -> None:
    # Spikes of two inputs each: 3 and 1, and 1 and 3. Three outputs, which each value that arrives reaches.
    net = network({"a": 2, "b": 2}, [blocks.join(join).receiving("a", "b"), dense(3, bias=False)])
    counts = {"a": jnp.array([[3.0, 1.0]]), "b": jnp.array([[1.0, 3.0]])}
    cost = counted(net, ones(net), counts, {}, 5)
    assert cost.effective_acs == 3 * arriving
    assert cost.dense == 5 * 3 * everywhere


def test_synaptic_operations_of_values_that_are_no_spikes_are_products() -> None:
    net = network(2, [dense(3, bias=False), blocks.layer_norm(), dense(4, bias=False)])
    cost = counted(net, ones(net), jnp.array([[1.0, 0.0]]), {}, 5)
    assert (cost.effective_acs, cost.effective_macs, cost.dense) == (3, 5 * 3 * 4, 5 * (2 * 3 + 3 * 4))


@pytest.mark.parametrize(
    "options",
    [
        {"strides": 2},
        {"padding": "valid", "groups": 2},
        {"padding": ((2, 0), (0, 3)), "strides": (1, 2)},
        {"dilation": (1, 3), "strides": 2},
    ],
)
def test_dense_synaptic_operations_are_those_of_spikes_everywhere(options: dict[str, Any]) -> None:
    net = network((5, 6, 2), [conv2d(4, (3, 2), bias=False, **options)])
    params, spikes = ones(net), jnp.ones((1, 60))
    cost = counted(net, params, spikes, {})
    connection = net.nodes[0].block
    currents = connection.currents(params["conv2d_0"], spikes.reshape(1, 1, 5, 6, 2))
    assert cost.effective_acs == cost.dense == jnp.sum(currents)


def test_synaptic_operations_of_sparse_connections_are_those_of_weights_other_than_0() -> None:
    """As prune and regrow leave them: a new synapse has the weight 0, and one that found no place a target too many."""
    net = network(2, [sparse(3, fan_out=2, bias=False)])
    synapses = Synapses(jnp.array([2, 4]), jnp.array([0, 1, 2, 3], jnp.uint16), 3)
    params, stats = {"sparse_0": SparseParams(jnp.array([1.0, 0.0, 1.0, 1.0]))}, {"sparse_0": synapses}
    cost = counted(net, params, jnp.array([[5.0, 7.0]]), {}, stats=stats)
    assert (cost.effective_acs, cost.dense) == (5 + 7, 4)


@dataclasses.dataclass(frozen=True)
class Scale(blocks.Linear):
    """One weight for each neuron, of which `lif_network` knows nothing."""

    kind = "scale"

    def weights_shape(self, shape):
        return 1, shape[0]

    def product(self, weights, x, shape, implementation):
        return x * weights[None]


@dataclasses.dataclass(frozen=True)
class Repeat(blocks.Block):
    """Each neuron twice."""

    kind = "repeat"

    def out_shape(self, *shapes):
        return (2 * shapes[0][0],)

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return blocks.BlockResult(signals[0].repeat(2, axis=2))


@dataclasses.dataclass(frozen=True)
class OwnConvolution(Convolve):
    """A convolution of one's own product."""

    def op(self, shape):
        return None


def test_synaptic_operations_of_own_connections_are_those_of_their_products() -> None:
    net = network(3, [Scale(bias=False)])
    params = {"scale_0": LinearParams(jnp.array([[2.0, 0.0, -1.0]]))}
    cost = counted(net, params, jnp.array([[5.0, 7.0, 1.0]]), {}, 9)
    assert (cost.effective_acs, cost.effective_macs, cost.dense) == (5 + 1, 0, 9 * 3)
    given = conv2d(4, (3, 2), strides=2, groups=2)
    own = OwnConvolution(**{field.name: getattr(given, field.name) for field in dataclasses.fields(given)})
    known, same = (network((5, 6, 2), [block]) for block in (given, own))
    params = {"conv2d_0": known.init(jax.random.key(0))["conv2d_0"]}
    params["conv2d_0"] = params["conv2d_0"]._replace(weights=jnp.round(params["conv2d_0"].weights))
    counts = jax.random.randint(jax.random.key(1), (2, 60), 0, 5).astype(jnp.float32)
    assert counted(known, params, counts, {}, 4) == counted(same, params, counts, {}, 4)


def test_synaptic_operations_behind_a_maximum_of_rates_count_the_fastest_neuron() -> None:
    net = network((4, 1), [blocks.max_rate_pool(2), dense(3, bias=False)])
    cost = counted(net, ones(net), jnp.array([[1.0, 5.0, 2.0, 0.0]]), {}, 6)
    assert (cost.effective_acs, cost.dense) == ((5 + 2) * 3, 6 * 2 * 3)


def test_synaptic_operations_of_own_blocks_need_the_counts_of_their_signals() -> None:
    net = network(2, [Repeat(), dense(3, bias=False)])
    counts = {"input": jnp.array([[2.0, 1.0]])}
    with pytest.raises(ValueError) as error:
        counted(net, ones(net), counts, {}, 5)
    assert str(error.value) == (
        "synaptic_operations: `network` must hold blocks whose operations are known, got repeat in 'repeat_0'. "
        "Derive it from blocks.Linear; or pass the counts of its signal, and count its own apart."
    )
    counts["repeat_0"] = jnp.array([[2.0, 2.0, 1.0, 1.0]])
    cost = counted(net, ones(net), counts, {}, 5)
    assert (cost.effective_macs, cost.effective_acs, cost.dense) == (6 * 3, 0, 5 * 4 * 3)
    with pytest.raises(ValueError) as error:
        counted(net, ones(net), counts | {"other": counts["input"]}, {}, 5)
    assert str(error.value) == (
        "synaptic_operations: `counts` must be of inputs and blocks, got one of 'other'. "
        "Print [node.name for node in network.nodes]."
    )


def test_synaptic_operations_take_the_number_of_spikes_that_a_maximum_passed_on() -> None:
    net = network((4, 1), [max_pool(2), dense(3, bias=False)])
    counts = {"input": jnp.array([[2.0, 2.0, 1.0, 0.0]])}
    assert counted(net, ones(net), counts, {}, 9).effective_acs == (4 + 1) * 3  # if none coincide
    counts["max_pool_0"] = jnp.array([[3.0, 1.0]])
    assert counted(net, ones(net), counts, {}, 9).effective_acs == (3 + 1) * 3


def test_synaptic_operations_of_transposed_convolutions_and_overlapping_pools() -> None:
    """A spike adds a whole patch; in a maximum, no more than one spike a step."""
    net = network((4, 1), [blocks.conv1d_transpose(2, 3, strides=2, padding="valid", bias=False)])
    assert counted(net, ones(net), jnp.ones((1, 4)), {}).dense == 4 * 3 * 2
    net = network((4, 1), [max_pool(2, strides=1), dense(3, bias=False)])
    cost = counted(net, ones(net), jnp.array([[1.0, 1.0, 0.0, 0.0]]), {}, 1)
    assert (cost.effective_acs, cost.dense) == (2 * 3, 3 * 3)  # in windows 0 and 1


def test_metrics_work_under_jit() -> None:
    net = network(3, [dense(2, bias=False)])
    run = jax.jit(lambda params, counts: counted(net, params, counts, {}, 4))
    cost = run(ones(net), jnp.ones((1, 3)))
    assert (cost.effective_acs, cost.dense) == (6, 24)


def test_static_metrics_count_arrays() -> None:
    params = {"weights": jnp.array([[0.0, 1.0], [0.0, 0.0]]), "bias": jnp.zeros(2), "decay": jnp.zeros(2)}
    assert metrics.connection_sparsity(params) == 0.75
    assert metrics.connection_sparsity(params | {"kernel": jnp.ones((2, 2, 1, 1))}) == 3 / 8
    sparse_params = {"own": SparseParams(jnp.array([0.0, 1.0]), jnp.zeros(1)), "delays": jnp.zeros(3)}
    assert metrics.connection_sparsity(sparse_params) == 0.5
    assert metrics.parameter_count(params) == 8
    assert metrics.footprint(params) == 32
    assert metrics.footprint(params, jnp.zeros(3, jnp.uint8)) == 35


ONES = jnp.ones((2, 2))
CHAIN = network(3, [layer(2)], leaky_readout(1))


def test_trains_by_population_are_those_of_each_neuron() -> None:
    """Of random spikes, beside the definitions for one neuron after another."""
    rng = np.random.default_rng(0)
    steps, ids = np.nonzero(rng.random((400, 7)) < np.linspace(0, 0.2, 7))
    trains = SpikeTrains.of((steps + 1) * 0.5, ids, dt=0.5)
    populations = {"E": slice(0, 5), "I": slice(5, 7)}
    found = metrics.raster(trains, populations)
    rates = metrics.firing_rates(trains, populations, duration=150.0, start=50.0)
    variations = metrics.interval_variations(trains, populations)
    for name, own in populations.items():
        each = [0.5 * (np.sort(steps[ids == n]) + 1) for n in range(own.start, own.stop)]
        lists = [found[name].times[found[name].ids == k] for k in range(len(each))]
        assert all(np.array_equal(a, b) for a, b in zip(lists, each, strict=True))
        expected = [np.sum((times > 50) & (times <= 200)) / 0.15 for times in each]
        np.testing.assert_allclose(rates[name], expected)
        gaps = [np.diff(times) for times in each]
        expected = [np.std(gap) / np.mean(gap) for gap in gaps if len(gap) >= 2]
        np.testing.assert_allclose(variations[name], expected)


def test_spikes_on_a_border_count_before_it() -> None:
    """As products of rounded steps they are beyond it: 3 * 0.1 is above 0.3."""
    trains = SpikeTrains.of(np.arange(1, 101) * 0.1, np.zeros(100, int), dt=0.1)
    for last in range(1, 100):
        border = round(last * 0.1, 1)
        before = metrics.firing_rates(trains, {"E": slice(0, 1)}, border)["E"][0] * border / 1000
        behind = metrics.firing_rates(trains, {"E": slice(0, 1)}, 10.0 - border, start=border)["E"][0]
        assert (round(before), round(behind * (10.0 - border) / 1000)) == (last, 100 - last)


TRAINS = SpikeTrains.of([1.0], [0], dt=0.1)
REFUSED = {
    "raster: `trains` must be SpikeTrains, got a list. Call circuits.SpikeTrains.listed.": lambda: (
        metrics.raster([], {})
    ),
    "interval_variations: `populations` must be slices by name, got a list. "
    "Pass circuits.Populations.slices.": lambda: metrics.interval_variations(TRAINS, [slice(0, 1)]),
    "raster: `populations['E']` must be a slice, got 3. Pass neurons in a row, with both ends.": lambda: (
        metrics.raster(TRAINS, {"E": 3})
    ),
    "raster: `populations['E']` must be a slice, got slice(0, 4, 2). "
    "Pass neurons in a row, with both ends.": lambda: metrics.raster(TRAINS, {"E": slice(0, 4, 2)}),
    "firing_rates: `duration` must be above 0, got 0. Pass a length in ms.": lambda: metrics.firing_rates(
        TRAINS, {"E": slice(0, 1)}, duration=0.0
    ),
    "class_accuracy: `confusion` must have shape [classes, classes], got [2, 3]. "
    "Pass what metrics.confusion returns.": lambda: metrics.class_accuracy(jnp.zeros((2, 3), int)),
    "accuracy: `outputs` must hold at least one step, got none. "
    "Run the network for at least one step.": lambda: metrics.accuracy(jnp.zeros((0, 1, 2)), jnp.array([0])),
    "predictions: `weights` must be None for the decoder 'max', got some. Leave them out, or decode the sum.": lambda: (
        metrics.predictions(jnp.ones((2, 1, 3)), decoder="max", weights=jnp.ones(2))
    ),
    "predictions: `decoder` must be 'sum', 'max', 'first_spike' or 'steps', got 'mean'. "
    "Choose one of these.": lambda: metrics.predictions(OUTPUTS, decoder="mean"),
    "accuracy: `labels` must have shape [batch] = [2], got [1]. Pass one class index per sequence.": lambda: (
        metrics.accuracy(OUTPUTS, jnp.array([0]))
    ),
    "mean_activity: `activity` must hold at least one layer, got none. "
    "Pass the activity that a network returns, one array per layer.": lambda: metrics.mean_activity([]),
    "mean_activity: `activity` must be a dict or a list by layer, got an array. "
    "Pass the activity that a network returns, one array per layer.": lambda: metrics.mean_activity(OUTPUTS),
    "silent_layers: `activity[0]` must have shape [batch, neurons], got [3]. Pass the "
    "activity that a network returns, one array per layer.": lambda: metrics.silent_layers([jnp.zeros(3)]),
    "dropped_share: `dropped` must hold 1 layer, got 0. Pass both as the network returned them.": lambda: (
        metrics.dropped_share([], [ONES], jnp.array([1, 1]))
    ),
    "dropped_share: `dropped[0]` must have shape [batch] = [2], got [3]. Pass both as the network "
    "returned them.": lambda: metrics.dropped_share([jnp.array([0, 0, 3])], [ONES], jnp.array([1, 1])),
    "dropped_share: `lengths` must have shape [batch] = [2], got [1]. Pass the number of steps of "
    "each sequence of the batch.": lambda: metrics.dropped_share([jnp.array([0, 0])], [ONES], jnp.array([1])),
    "synaptic_operations: `counts` must have shape [batch, inputs] = [any, 3], got [2, 2]. "
    "Make it with metrics.input_counts.": lambda: counted(CHAIN, ones(CHAIN), ONES, {"layer_0/neuron": ONES}),
    "synaptic_operations: `activity['layer_0/neuron']` must have shape [batch, neurons] = [2, 2], got []. "
    "Pass the activity that the network returned.": lambda: counted(CHAIN, ones(CHAIN), jnp.ones((2, 3)), {}),
    "synaptic_operations: `params` must hold layer_0/connection, got none of it. Make "
    "them with init of this network.": lambda: counted(CHAIN, {}, jnp.ones((2, 3)), {"layer_0/neuron": ONES}),
    "connection_sparsity: `params` must hold a weight matrix, got none. Pass the "
    "parameters that a network's init returned.": lambda: metrics.connection_sparsity({"bias": jnp.zeros(2)}),
}
test_wrong_arguments_are_named = refusals(REFUSED)


def test_energy_by_hand() -> None:
    """A layer of 3 neurons with two states and 2 inputs, 4 steps, 5 spikes: 12 pairs a step are 24 in all."""
    net = network(2, [layer(3, neurons.current_lif())])
    params, costs = net.init(jax.random.key(0)), metrics.Energies(1, 2, 3, 4, 10, 100, 1000, "by hand")
    rates = {"layer_0/neuron": jnp.zeros((1, 3))}
    found = metrics.synaptic_operations(net, params, jnp.array([[3.0, 2.0]]), rates, jnp.array([4]))
    energy = metrics.energy(net, params, found, costs)
    # 15 additions; 4 steps of 6 states that decay and add, and of 3 neurons with two more additions.
    np.testing.assert_allclose(
        energy.spiking, (0.015, 0.15, 0.0, 4 * (6 * 3 + 3 * 2) / 1000, 4 * 2 * 6 * 0.1)
    )
    np.testing.assert_allclose(energy.once, (6 * 7 / 1000, 6 * 0.01, 5.0))
    np.testing.assert_allclose(energy.every_step, (4 * 6 * 7 / 1000, 4 * 6 * 0.01, 20.0))
    np.testing.assert_allclose(energy.zeros_skipped, (15 * 7 / 1000, 0.15, 20.0))
    rest = energy.spiking.updates + energy.spiking.states
    even = [(sum(own) - rest) / (24 * 0.011) for own in (energy.once, energy.every_step)]
    np.testing.assert_allclose((energy.break_even_once, energy.break_even_every_step), tuple(even))
    in_memory = metrics.energy(net, params, found, costs, accumulators=True)
    np.testing.assert_allclose(in_memory.spiking.accumulators, 15 * 2 * 0.1)
    assert "0.015 additions + 0.15 weights + 0.096 updates + 4.8 states" in str(energy)


@pytest.mark.parametrize("connection", [dense(3), sparse(3, fan_in=2), synaptic(dense(3), max_delay=2)])
def test_energy_of_rectifiers_has_activations_of_every_connection(connection) -> None:
    """Two inputs and three outputs are read and written."""
    net, costs = network(2, [layer(connection)]), metrics.Energies(1, 2, 3, 4, 10, 100, 1000, "by hand")
    params, stats = net.init(jax.random.key(0)), net.initial_stats(jax.random.key(0))
    given = (net, params, jnp.ones((1, 2)), {"layer_0/neuron": jnp.zeros((1, 3))}, jnp.array([4]))
    found = metrics.synaptic_operations(*given, stats=stats)
    assert metrics.energy(net, params, found, costs, stats=stats).once.activations == (2 + 3) * 1000 / 1000


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        (None, "energy: `operations` must be a SynapticOperations, got None. "),
        (
            metrics.SynapticOperations(*jnp.zeros(3)),
            "energy: `operations` must be finite and not 0, got 0 dense ones. ",
        ),
    ],
)
def test_energy_checks_its_operations(operations: Any, message: str) -> None:
    net = network(2, [layer(3)])
    with pytest.raises(ValueError) as error:
        metrics.energy(net, net.init(jax.random.key(0)), operations)
    hints = (
        "Pass what metrics.synaptic_operations returned.",
        "Count those of at least one step of a network whose blocks are known.",
    )
    assert str(error.value) in [message + hint for hint in hints]
