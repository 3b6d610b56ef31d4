"""The optimiser of a training run, and its second thresholds: where they are from, and what they must be below."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from snnjax import (
    axonal,
    blocks,
    dense,
    layer,
    leaky_readout,
    losses,
    network,
    neurons,
    sparse,
    synaptic,
    train,
)
from snnjax.train.config import learning_rate_schedule, second_threshold_at


def test_layers_keep_their_second_thresholds_by_default() -> None:
    assert second_threshold_at(train.TrainConfig(), 0) is None


def test_a_final_one_needs_a_first_one() -> None:
    with pytest.raises(ValueError) as error:
        train.TrainConfig(final_second_threshold=0.95)
    assert str(error.value) == (
        "TrainConfig: `second_threshold` must be given together with a final one, got None. "
        "Set both, for instance second_threshold=0.8."
    )


@pytest.mark.parametrize("final", [False, True])
def test_one_that_is_not_below_the_threshold_gives_a_warning(final: bool) -> None:
    net = network(4, [layer(8, neurons.lif(threshold=0.5), capacity=4)], leaky_readout(3))
    given = {"second_threshold": 0.4, "final_second_threshold": 0.9} if final else {"second_threshold": 0.9}
    with pytest.warns(RuntimeWarning) as caught:
        train.make_train_step(net, losses.cross_entropy_sum, optax.adam(1e-2), train.TrainConfig(**given))
    assert [str(each.message) for each in caught] == [
        "TrainConfig: `second_threshold` must be below the threshold, 0.5, got 0.9. "
        "Leave it None for nine tenths of the way from rest to the threshold."
    ]


def test_one_without_lists_is_refused() -> None:
    net, config = network(4, [layer(8)], leaky_readout(3)), train.TrainConfig(second_threshold=0.5)
    with pytest.raises(ValueError) as error:
        train.make_train_step(net, losses.cross_entropy_sum, optax.adam(1e-2), config)
    assert str(error.value) == (
        "fit: `second_threshold` must be None without lists, got 0.5. Give a layer a capacity, or leave it out."
    )


def test_a_warm_up_longer_than_the_run_reaches_its_peak_in_the_last_step() -> None:
    schedule = learning_rate_schedule(train.TrainConfig(epochs=2, learning_rate=1.0, warmup_epochs=9.0), 2)
    np.testing.assert_allclose([float(schedule(step)) for step in range(4)], [0, 1 / 3, 2 / 3, 1], rtol=1e-6)


def test_weights_decay_and_nothing_else_does() -> None:
    connection, norm = [axonal(3), dense(4)], blocks.batch_norm()
    hidden = layer(connection, neurons.adlif(), norm=norm, recurrent=True).named("hidden")
    few = layer(synaptic(dense(4), 3), recurrent=sparse(4, fan_in=2)).named("few")
    net = network(3, [hidden, few], leaky_readout(2))
    params = jax.tree.map(jnp.ones_like, net.init(jax.random.key(0)))
    optimiser = train.make_optimiser(train.TrainConfig(weight_decay=0.5, warmup_epochs=0.0), 10)
    still = jax.tree.map(jnp.zeros_like, params)
    with jax.numpy_dtype_promotion("standard"):  # as optax needs it
        updates, _ = jax.jit(optimiser.update)(still, jax.jit(optimiser.init)(params), params)
    moved = {
        jax.tree_util.keystr(path)
        for path, update in jax.tree_util.tree_leaves_with_path(updates)
        if np.any(update)
    }
    assert moved == {
        "['hidden/connection/dense_0'].weights",
        "['hidden/recurrent'].weights",
        "['few/connection'].weights",
        "['few/recurrent'].weights",
        "['readout/connection'].weights",
    }
