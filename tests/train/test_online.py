"""Training by an online rule: the gradient of the mean loss of each step, and what such a rule does not know."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import snnjax
from snnjax import losses, train
from snnjax.data import Batch
from snnjax.train.online import online_gradients
from tests.numbers import assert_close
from tests.ops.common import jit

STEPS, SIZE = 6, 3


def setting(labels: Any) -> tuple[Any, Any, Batch]:
    net = snnjax.network(5, [snnjax.layer(7)], snnjax.leaky_readout(4, decay=0.8))
    rows = jax.random.bernoulli(jax.random.key(1), 0.4, (STEPS, SIZE, 5)).astype(jnp.float32)
    events = snnjax.SparseSpikes.from_dense(rows, capacity=5)
    params = net.init(jax.random.key(0), rows, target_activity=0.3)
    return net, params, Batch(events, labels, jnp.array([6, 2, 4]))


def penalty(activity: Any) -> Any:
    return losses.activity_upper_bound(activity, 0.05) + losses.activity_lower_bound(activity, 0.5)


@pytest.mark.parametrize("of_steps, is_penalised", [(False, False), (True, False), (False, True)])
def test_eprop_is_exact_for_one_layer(of_steps: bool, is_penalised: bool) -> None:
    """It equals back-propagation of the mean over the steps of the loss of each, where samples have not ended, and of
    the penalty on the activity of each sample.
    """
    labels = jnp.array([0, 1, 3])
    labels = jnp.tile(labels, (STEPS, 1)) if of_steps else labels
    loss = losses.cross_entropy_steps if of_steps else losses.cross_entropy_sum
    net, params, batch = setting(labels)

    lengths = batch.lengths
    assert lengths is not None

    def mean_loss(params: Any) -> tuple[jax.Array, Any]:
        run = net.apply(params, None, batch.inputs, lengths=lengths)[0]
        rows = jnp.tile(labels, (STEPS, 1)) if labels.ndim == 1 else labels
        error = optax.softmax_cross_entropy_with_integer_labels(run.output, rows)
        inside = jnp.arange(STEPS)[:, None] < lengths[None, :]
        error = jnp.sum(jnp.where(inside, error, 0)) / (STEPS * SIZE)
        return error + penalty(run.activity) if is_penalised else error, run.activity

    with jax.numpy_dtype_promotion("standard"):  # as optax needs it
        want, activity = jit(jax.grad(mean_loss, has_aux=True))(params)
    pulls = jax.grad(penalty)(activity) if is_penalised else None
    got = jit(lambda params: online_gradients(net, loss, "eprop")(params, batch, lengths, pulls))(params)
    assert_close(got, want, rtol=1e-3, atol=1e-6 if is_penalised else 1e-7)
    assert float(jnp.abs(got.layers[0].weights).max()) > (0.1 if is_penalised else 1e-4)


def rates_of(rule: str, strength: float) -> Any:
    """The activity of the layer in each of 20 steps."""
    net, params, batch = setting(jnp.array([0, 1, 3]))
    optimiser, rates = optax.adam(0.1), []
    config = train.TrainConfig(rule=rule, activity_bound=0.05, activity_strength=strength)
    step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, config)
    state = train.TrainState(params, optimiser.init(params))
    for _ in range(20):
        state, totals = step(state, batch, None)
        rates.append(float(totals.spikes[0].sum() / totals.steps) / net.layers[0].num_neurons)
    return np.array(rates)


def test_penalty_is_off_for_online_rules_unless_it_is_given() -> None:
    assert train.TrainConfig().penalty_weight == 1
    assert train.TrainConfig(rule="ottt").penalty_weight == 0
    assert train.TrainConfig(rule="ottt", activity_strength=0.5).penalty_weight == 0.5


def test_penalty_lowers_activity_as_in_back_propagation() -> None:
    """Within 2 of the 84 places for spikes in every step, where it falls by 5; without penalty it rises."""
    expected = rates_of("bptt", 1.0)
    assert expected[-1] < expected[0] - 4 / 84
    for rule in ("eprop", "ostl", "ottt"):
        assert_close(rates_of(rule, 1.0), expected, rtol=0, atol=2.1 / 84)
        assert rates_of(rule, 0.0)[-1] > expected[0]


@pytest.mark.parametrize("rule", ["eprop", "ostl", "ottt"])
def test_steps_of_a_rule_lower_the_loss(rule: str) -> None:
    net, params, batch = setting(jnp.array([0, 1, 3]))
    optimiser = optax.adam(0.1)
    config = train.TrainConfig(rule=rule)
    step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, config)
    state, errors = train.TrainState(params, optimiser.init(params)), []
    for _ in range(20):
        state, totals = step(state, batch, None)
        errors.append(float(totals.loss))
    assert errors[-1] < 0.5 * errors[0]
    assert np.isfinite(errors).all()


def test_what_a_rule_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError) as caught:
        train.TrainConfig(rule="rtrl")
    choices = "'bptt', 'eprop', 'ostl', 'ottt'"
    assert str(caught.value) == (
        f"TrainConfig: `rule` must be one of {choices}, got 'rtrl'. Choose one of these."
    )
    with pytest.raises(ValueError) as caught:
        train.TrainConfig(rule="ottt", second_threshold=0.8)
    assert str(caught.value) == (
        "TrainConfig: `second_threshold` must be None with rule 'ottt', got 0.8. "
        "Leave it None: each layer has its own."
    )
    net, _, _ = setting(jnp.array([0, 1, 3]))
    config, mesh = train.TrainConfig(rule="ottt"), train.data_mesh(jax.devices()[:1])
    with pytest.raises(ValueError) as caught:
        train.make_train_step(net, losses.cross_entropy_sum, optax.sgd(0.1), config, mesh=mesh)
    assert str(caught.value) == (
        "fit: `rule` must be 'bptt' on several devices, got 'ottt'. Train on one device."
    )
