"""Steps of training and evaluation: what they count of every connection."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import snnjax
from snnjax import losses, train
from snnjax.data import Batch

TIME, BATCH = 6, 3
MASK = np.arange(36 * 5).reshape(36, 5) % 3 > 0
NETWORKS = {
    "dense": [snnjax.layer(7), snnjax.layer(5, recurrent=True)],
    "convolution": [
        snnjax.conv2d(3, 3),
        snnjax.mean_pool(2),
        snnjax.conv2d(4, 3, strides=2, padding="valid"),
    ],
    "pools and capacity": [
        snnjax.layer(snnjax.conv2d(3, 3), capacity=0.5),
        snnjax.sum_pool(2),
        snnjax.layer(snnjax.conv2d(2, 2), capacity=0.5),
    ],
    "mask behind a pool": [snnjax.sum_pool(2), snnjax.dense(5, mask=MASK[:18])],
    "delays": [
        snnjax.layer(snnjax.conv2d(2, 3), delays=snnjax.axonal(max_delay=2, learn=False)),
        snnjax.layer(5, recurrent=True, delays=snnjax.axonal(max_delay=2, initial=1.0)),
    ],
}


def setting(layers: Any) -> tuple[Any, Any, Batch]:
    net = snnjax.network((6, 6, 2), layers, snnjax.leaky_readout(3))
    rows = jax.random.bernoulli(jax.random.key(1), 0.2, (TIME, BATCH, net.num_inputs))
    events = snnjax.SparseSpikes.from_dense(rows.astype(jnp.float32), capacity=40)
    batch = Batch(events, jnp.array([0, 1, 2]), jnp.array([6, 4, 6]))
    params = net.init(jax.random.key(0), events, lengths=batch.lengths, target_activity=0.2)
    return net, params, batch


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_step_counts_the_weights_that_spikes_meet(name: str) -> None:
    net, params, batch = setting(NETWORKS[name])
    output, _ = net.apply(params, None, batch.inputs, lengths=batch.lengths, record="spikes")
    assert output.spikes is not None and batch.lengths is not None
    valid = np.arange(TIME)[:, None, None] < np.asarray(batch.lengths)[:, None]
    sources = [np.asarray(jnp.asarray(batch.inputs.to_dense())) * valid]
    sources += [own.to_dense() if isinstance(own, snnjax.SparseSpikes) else own for own in output.spikes]
    assert net.readout is not None and params.readout is not None
    specs = [*net.layers, net.readout]
    expected = 0.0
    for spec, own, rows in zip(specs, [*params.layers, params.readout], sources, strict=True):
        there = (spec.fitted.masked(own.weights) != 0).astype(jnp.float32)
        pooling = spec.fitted.connection.pooling
        share = 1.0 if pooling is None else pooling.scale
        flat = jnp.asarray(rows, jnp.float32).reshape(TIME * BATCH, -1)
        expected += float(jnp.sum(spec.fitted.connection.current(flat, there))) / share
    for own, rows in zip(params.layers, sources[1:], strict=True):
        if own.recurrent is not None:
            expected += float(
                jnp.sum(jnp.asarray(rows, jnp.float32) @ (own.recurrent != 0).astype(jnp.float32))
            )
    # The activities that the spikes are counted from are rounded quotients.
    evaluation = train.evaluate(net, params, One(batch), loss=losses.cross_entropy_sum, batch_size=BATCH)
    np.testing.assert_allclose(evaluation["effective_acs"] * BATCH, expected, rtol=1e-6)
    config = train.TrainConfig()
    optimiser = optax.sgd(0.1)
    step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, config)
    state, totals = step(train.TrainState(params, optimiser.init(params)), batch, None)
    np.testing.assert_allclose(totals.effective_acs, expected, rtol=1e-6)
    assert expected < totals.dense
    chex.assert_tree_all_finite(state.params)


class One:
    """A data set of one batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return BATCH

    def take(self, indices: Any) -> Batch:
        assert len(indices) == BATCH
        return self._batch
