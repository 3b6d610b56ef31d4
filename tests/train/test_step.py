"""Steps of training and evaluation: what they count of every connection, and what norms and dropout do in them."""

import dataclasses
import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.typing import DTypeLike

import snnjax
from snnjax import blocks, losses, metrics, train
from snnjax._types import Params, State, Stats
from snnjax.blocks.linear import Linear
from snnjax.data import Batch, SeriesDataset
from tests.graph.helpers import initial
from tests.numbers import array
from tests.ops.common import jit

TIME, BATCH = 6, 3
MASK = np.arange(36 * 5).reshape(36, 5) % 3 > 0
NETWORKS = {
    "no layer": [],
    "convolutions and dense layers": [
        snnjax.layer(snnjax.conv2d(3, 3), recurrent=snnjax.conv2d(3, 3, bias=False)),
        snnjax.mean_pool(2),
        snnjax.layer(snnjax.conv2d(4, 3, strides=2, padding="valid")),
        snnjax.layer(7),
        snnjax.layer(5, recurrent=True),
    ],
    "branches of pools, capacities and a mask": [
        snnjax.parallel(
            left=[
                snnjax.layer(snnjax.conv2d(3, 3), capacity=0.5),
                snnjax.sum_pool(2),
                snnjax.layer(snnjax.conv2d(2, 2), capacity=0.5),
                snnjax.layer(4, capacity=4),
            ],
            right=[snnjax.sum_pool(2), snnjax.layer(snnjax.dense(5, mask=MASK[:18]), capacity=5)],
        ),
        snnjax.layer(6),
    ],
    "residual with a norm": [
        snnjax.layer(snnjax.conv2d(2, 3)),
        snnjax.residual([snnjax.layer(snnjax.conv2d(2, 3), norm=blocks.batch_norm())]),
    ],
    "delays and a product of normalised currents": [
        snnjax.axonal(max_delay=2, learn=False),
        snnjax.conv2d(3, 3),
        blocks.layer_norm(),
        snnjax.layer(snnjax.conv2d(4, 1, bias=False)),
        snnjax.layer([snnjax.axonal(max_delay=2, initial=1.0), snnjax.dense(5)], recurrent=True),
    ],
}


def setting(layers) -> tuple[Any, Any, Any, Batch]:
    net = snnjax.network((6, 6, 2), layers, snnjax.leaky_readout(3))
    rows = jax.random.bernoulli(jax.random.key(1), 0.2, (TIME, BATCH, net.num_inputs))
    events = snnjax.SparseSpikes.from_dense(rows.astype(jnp.float32), capacity=40)
    batch = Batch(events, jnp.array([0, 1, 2]), jnp.array([6, 4, 6]))
    params = initial(net, events, lengths=batch.lengths, target_activity=0.2)
    return net, params, net.initial_stats(jax.random.key(0)), batch


def operations(net, params: Params, stats: Stats, batch: Batch) -> tuple[float, float]:
    """The accumulates and multiply-accumulates of a batch: products of what there is and the weights that there are."""
    by_name = {node.name: node for node in net.nodes}
    pools = {name: node.block for name, node in by_name.items() if node.block.kind == "mean_pool"}

    def sender(name: str) -> str:
        """Delayed spikes are counted where they are sent."""
        return (
            sender(by_name[name].sources[0])
            if name in by_name and by_name[name].block.kind in ("axonal", "late")
            else name
        )

    wanted = {sender(source) for node in net.nodes for source in node.sources}
    options = {"stats": stats, "lengths": batch.lengths, "record": tuple(wanted)}
    output, _ = jit(lambda params: net.apply(params, None, batch.inputs, **options))(params)
    valid = (np.arange(TIME)[:, None] < np.asarray(batch.lengths)).astype(np.float32)

    def met(block, weights, name: str) -> tuple[float, bool]:
        x, shape = output.recorded[name], net.shapes[name]
        x = np.asarray(x.to_dense() if isinstance(x, snnjax.SparseSpikes) else x)
        x = x.reshape(TIME, BATCH, *shape) * valid.reshape(TIME, BATCH, *(1 for _ in shape))
        x = x / pools[name].pooling(net.in_shapes[list(by_name).index(name)][0]).scale if name in pools else x
        is_real = name in by_name and by_name[name].block.kind == "layer_norm"
        there = array(np.asarray(block.used(weights.weights)) != 0, jnp.float32)
        x = array(x != 0 if is_real else x, jnp.float32)
        return float(jnp.sum(jit(lambda *given: block.product(*given, shape, None))(there, x))), is_real

    linear = [node for node in net.nodes if isinstance(node.block, Linear)]
    found = [met(node.block, params[node.name], sender(node.sources[0])) for node in linear]
    return sum(own for own, real in found if not real), sum(own for own, real in found if real)


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_evaluation_counts_the_weights_that_spikes_meet(name: str) -> None:
    net, params, stats, batch = setting(NETWORKS[name])
    accumulates, products = operations(net, params, stats, batch)
    options = {"loss": losses.cross_entropy_sum, "stats": stats, "batch_size": BATCH}
    tested = train.evaluate(net, params, One(batch), **options)
    # The activities that the spikes are counted from are rounded quotients.
    np.testing.assert_allclose(tested["effective_acs"] * BATCH, accumulates, rtol=1e-6)
    np.testing.assert_allclose(tested["effective_macs"] * BATCH, products, rtol=1e-6)
    assert (products > 0) == (name == "delays and a product of normalised currents")
    assert accumulates + products < tested["dense_operations"] * BATCH


def test_norms_use_the_batch_in_training_and_their_running_statistics_elsewhere() -> None:
    net, params, stats, batch = setting(NETWORKS["residual with a norm"])
    (name,) = stats
    optimiser = optax.sgd(0.0)
    step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, train.TrainConfig())
    state = jax.tree.map(jnp.copy, train.TrainState(params, optimiser.init(params), stats))
    run = jit(functools.partial(net.apply, lengths=batch.lengths), static_argnames="train")
    ran, _ = run(params, None, batch.inputs, stats=stats, train=True)
    state, totals = step(state, batch, None)
    chex.assert_trees_all_close(state.stats, ran.stats, rtol=1e-6, strict=True)
    assert state.stats is not None and not np.allclose(state.stats[name].mean, 0)
    expected = losses.cross_entropy_sum(ran.output, batch.labels, lengths=batch.lengths)
    np.testing.assert_allclose(totals.loss / BATCH, expected, rtol=1e-6)
    for own in (stats, state.stats):
        ran, _ = run(params, None, batch.inputs, stats=own)
        options = {"loss": losses.cross_entropy_sum, "stats": own, "batch_size": BATCH}
        expected = losses.cross_entropy_sum(ran.output, batch.labels, lengths=batch.lengths)
        np.testing.assert_allclose(
            train.evaluate(net, params, One(batch), **options)["loss"], expected, rtol=1e-6
        )
    with pytest.raises(ValueError, match=r"^network.apply: `stats` must hold those of "):
        train.evaluate(net, params, One(batch), loss=losses.cross_entropy_sum, batch_size=BATCH)


def test_dropout_drops_by_the_key_in_training_alone() -> None:
    net, params, _, batch = setting([snnjax.layer(20, dropout=blocks.dropout(0.5))])
    optimiser = optax.sgd(0.1)
    step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, train.TrainConfig())

    def loss(key) -> float:
        own = jax.tree.map(jnp.copy, params)
        return float(step(train.TrainState(own, optimiser.init(own)), batch, None, key)[1].loss) / BATCH

    first, again, other = (loss(jax.random.key(seed)) for seed in (0, 0, 1))
    assert first == again != other
    ran, _ = jit(net.apply)(params, None, batch.inputs, lengths=batch.lengths)
    tested = train.evaluate(net, params, One(batch), loss=losses.cross_entropy_sum, batch_size=BATCH)
    expected = losses.cross_entropy_sum(ran.output, batch.labels, lengths=batch.lengths)
    np.testing.assert_allclose(tested["loss"], expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"^dropout: `key` must be a PRNG key in training, got None"):
        step(train.TrainState(params, optimiser.init(params)), batch, None)


@dataclasses.dataclass(frozen=True)
class Mixing(blocks.Block):
    """Neurons of one's own, with weights that nobody else knows."""

    kind, is_spiking = "mixing", True

    def init(self, key, *shapes, dtype: DTypeLike):
        return jnp.eye(shapes[0][0], dtype=dtype)

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return blocks.BlockResult(snnjax.spike(signals[0] @ params - 0.5))


def test_networks_with_blocks_of_ones_own_are_evaluated_without_a_count_of_operations() -> None:
    net, params, _, batch = setting([snnjax.dense(8), Mixing(), snnjax.layer(5)])
    found = train.evaluate(net, params, One(batch), loss=losses.cross_entropy_sum, batch_size=BATCH)
    assert all(np.isnan(found[name]) for name in ("effective_macs", "effective_acs", "dense_operations"))
    assert found["events_per_second"] > 0 and np.all(np.array(found["activity"]) > 0)


def test_networks_of_few_synapses_are_evaluated() -> None:
    net, params, stats, batch = setting([snnjax.layer(snnjax.sparse(8, fan_out=2))])
    found = train.evaluate(net, params, One(batch), loss=losses.cross_entropy_sum, stats=stats)
    assert found["effective_acs"] * BATCH > 2 * found["input_events"]


def test_several_inputs_and_readouts_are_trained() -> None:
    """The loss sees all readouts; answers are those of the first one."""
    net = snnjax.network(
        {"sound": 5, "picture": (4, 4, 1)},
        [
            snnjax.layer(8).named("ear").receiving("sound"),
            snnjax.layer(snnjax.conv2d(2, 3)).named("eye").receiving("picture"),
            snnjax.layer(6).receiving("ear"),
        ],
        {"word": snnjax.leaky_readout(3), "colour": snnjax.leaky_readout(2).receiving("eye")},
    )
    keys = jax.random.split(jax.random.key(0), 2)
    inputs = {
        "sound": jax.random.bernoulli(keys[0], 0.3, (TIME, BATCH, 5)).astype(jnp.float32),
        "picture": jax.random.bernoulli(keys[1], 0.3, (TIME, BATCH, 4, 4, 1)).astype(jnp.float32),
    }
    batch = Batch(inputs, jnp.array([0, 1, 2]), jnp.array([6, 4, 6]))
    params = initial(net, inputs, target_activity=0.2)

    def loss(outputs, labels, *, lengths):
        word = losses.cross_entropy_sum(outputs["word"], labels, lengths=lengths)
        return word + losses.cross_entropy_sum(outputs["colour"], labels % 2, lengths=lengths)

    optimiser = optax.adam(0.05)
    step = train.make_train_step(net, loss, optimiser, train.TrainConfig(activity_strength=0.0))
    state, found = train.TrainState(params, optimiser.init(params)), []
    for _ in range(30):
        state, totals = step(state, batch, None)
        found.append(float(totals.loss))
    assert found[-1] < 0.5 * found[0]
    output = jit(net.apply)(state.params, None, inputs, lengths=batch.lengths)[0].output
    expected = metrics.accuracy(output["word"], batch.labels, lengths=batch.lengths)
    tested = train.evaluate(net, state.params, One(batch), loss=loss, batch_size=BATCH)
    np.testing.assert_allclose(tested["accuracy"], expected, rtol=1e-6)
    assert len(tested["activity"]) == 3


class One:
    """A data set of one batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return BATCH

    def take(self, indices) -> Batch:
        assert len(indices) == BATCH
        return self._batch


@pytest.mark.parametrize("given", [{"loss": losses.time_to_first_spike}, {"decoder": "first_spike"}])
def test_membranes_have_no_first_spike(given) -> None:
    """Products of one minus membranes are numbers, but not times."""
    options = {"loss": losses.cross_entropy_sum} | given
    net, spiking = (
        snnjax.network(3, [], readout(2)) for readout in (snnjax.leaky_readout, snnjax.spiking_readout)
    )
    data = SeriesDataset(np.zeros((3, 2, 3), np.float32), np.full(3, 2), np.zeros(3, int), 2)
    text = (
        "evaluate: `decoder` must be one of membranes for 'readout/neuron', got 'first_spike'. "
        "Give the network a snnjax.spiking_readout, or choose another loss."
    )
    with pytest.raises(ValueError) as caught:
        train.evaluate(net, initial(net), data, **options)
    assert str(caught.value) == text
    assert train.evaluate(spiking, initial(spiking), data, **options)["samples"] == 3


def test_predictions_are_decoded_with_the_weights_of_the_loss() -> None:
    """Bound to the loss, jitted or not: the last step alone decides otherwise than the sum."""
    inputs = np.zeros((3, 4, 2), np.float32)
    inputs[:, 0, 0], inputs[:, 3, 1] = 3, 1
    data = SeriesDataset(inputs, np.full(3, 4), np.ones(3, int), 2)
    net = snnjax.network(2, [], snnjax.leaky_readout(snnjax.dense(2, bias=False), decay=1.0, normalize=False))
    params = {"readout/connection": initial(net)["readout/connection"]._replace(weights=jnp.eye(2))}
    late = functools.partial(losses.cross_entropy_sum, weights=jnp.array([-4.0, 0.0, 0.0, 4.0]))
    for loss, right in ((losses.cross_entropy_sum, 0.0), (late, 1.0), (jax.jit(late), 1.0)):
        assert train.evaluate(net, params, data, loss=loss)["accuracy"] == right
