"""Training by an online rule: the gradient of the mean loss of each step, and what such a rule does not know."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import snnjax
from snnjax import losses, train
from snnjax._types import Params
from snnjax.data import Batch
from snnjax.train.online import online_gradients
from tests.numbers import assert_close
from tests.ops.common import jit

STEPS, SIZE = 6, 3


def setting(labels) -> tuple[Any, Any, Batch]:
    net = snnjax.network(5, [snnjax.layer(7)], snnjax.leaky_readout(4, decay=0.8))
    rows = jax.random.bernoulli(jax.random.key(1), 0.4, (STEPS, SIZE, 5)).astype(jnp.float32)
    events = snnjax.SparseSpikes.from_dense(rows, capacity=5)
    params = net.init(jax.random.key(0), rows, target_activity=0.3)
    return net, params, Batch(events, labels, jnp.array([6, 2, 4]))


def penalty(activity):
    return losses.activity_upper_bound(activity, 0.05) + losses.activity_lower_bound(activity, 0.5)


def mean_loss(net, params: Params, batch: Batch, of_steps: bool) -> tuple[jax.Array, Any]:
    """The mean over the samples of the mean loss over each one's steps, or over those of them that have a label."""
    lengths = batch.lengths
    run = net.apply(params, None, batch.inputs, lengths=lengths)[0]
    steps = batch.inputs.shape[0]
    rows = batch.labels if of_steps else jnp.tile(batch.labels, (steps, 1))
    inside = (jnp.arange(steps)[:, None] < lengths[None, :]) & (rows >= 0)
    error = optax.softmax_cross_entropy_with_integer_labels(run.output, jnp.maximum(rows, 0))
    counts = jnp.maximum(jnp.sum(inside, axis=0), 1)
    return jnp.mean(jnp.sum(jnp.where(inside, error, 0), axis=0) / counts), run.activity


@pytest.mark.parametrize("of_steps, is_penalised", [(False, False), (True, False), (False, True)])
def test_eprop_is_exact_for_one_layer(of_steps: bool, is_penalised: bool) -> None:
    """It equals back-propagation of the mean loss of each sample's steps, and of the penalty on its activity."""
    labels = jnp.array([0, 1, 3])
    labels = jnp.tile(labels, (STEPS, 1)).at[1, 0].set(-1) if of_steps else labels
    loss = losses.cross_entropy_steps if of_steps else losses.cross_entropy_sum
    net, params, batch = setting(labels)

    def objective(params: Params) -> tuple[jax.Array, Any]:
        error, activity = mean_loss(net, params, batch, of_steps)
        return error + penalty(activity) if is_penalised else error, activity

    with jax.numpy_dtype_promotion("standard"):  # as optax needs it
        want, activity = jit(jax.grad(objective, has_aux=True))(params)
    pulls = jax.grad(penalty)(activity) if is_penalised else None
    learn = online_gradients(net, loss, "eprop")
    got = jit(lambda params: learn(params, batch, batch.lengths, pulls))(params)
    chex.assert_trees_all_close(got, want, rtol=1e-3, atol=1e-6 if is_penalised else 1e-7, strict=True)
    assert float(jnp.abs(got["layer_0/connection"].weights).max()) > (0.1 if is_penalised else 1e-4)


LOSSES: Any = {
    "sum": losses.cross_entropy_sum,
    "max": losses.cross_entropy_max,
    "count": losses.cross_entropy_count,
    "rate": lambda *given, **lengths: losses.mean_square_rate(*given, 0.8, 0.1, **lengths),
    "first": losses.time_to_first_spike,
    "steps": losses.cross_entropy_steps,
}


@pytest.mark.parametrize("rule, name", [*zip(("eprop", "ostl", "ottt") * 2, LOSSES, strict=True)])
def test_padding_changes_nothing(rule: str, name: str) -> None:
    """Of steps that hold NaN, and of each sample by itself: a short one counts as much as a long one.

    Tolerance: sums of other numbers of zeros, in another order.
    """
    labels = jnp.array([0, 1, 3])
    labels = jnp.tile(labels, (STEPS, 1)) if name == "steps" else labels
    net, params, batch = setting(labels)
    rows, lengths = batch.inputs.to_dense(), jnp.array([6, 2, 4])
    learn = online_gradients(net, LOSSES[name], rule)
    pulls = {"layer_0/neuron": jnp.cos(jnp.arange(21.0)).reshape(3, 7)}

    @jit
    def run(rows, labels, lengths, pulls):
        return learn(params, Batch(rows, labels, lengths), lengths, pulls)

    expected = run(rows, labels, lengths, pulls)
    assert float(jnp.abs(expected["layer_0/connection"].weights).max()) > 1e-3
    longer = jnp.concatenate([rows, jnp.full((2, SIZE, 5), jnp.nan)])
    own = jnp.concatenate([labels, jnp.full((2, SIZE), -1)]) if name == "steps" else labels
    assert_close(run(longer, own, lengths, pulls), expected, of_largest=1e-6)

    only = [run(rows, labels, jnp.where(jnp.arange(SIZE) == own, lengths, 0), pulls) for own in range(SIZE)]
    assert_close(jax.tree.map(lambda *each: sum(each), *only), expected, of_largest=1e-5)
    short = labels[:2, 1:2] if name == "steps" else labels[1:2]
    own = jax.tree.map(lambda leaf: SIZE * leaf[1:2], pulls)
    alone = run(rows[:2, 1:2], short, lengths[1:2], own)
    assert_close(jax.tree.map(lambda leaf: SIZE * leaf, only[1]), alone, of_largest=1e-5)


def test_gradients_in_bfloat16_are_summed_in_float32() -> None:
    """300 steps of one gradient: in bfloat16 their sum would stop at 256 of them."""
    net, params, batch = setting(jnp.array([0, 1, 3]))
    rows = jnp.ones((300, SIZE, 5))
    lengths = jnp.full(SIZE, 300)
    given = Batch(rows, batch.labels, lengths)
    learn = jit(
        lambda params: online_gradients(net, losses.cross_entropy_sum, "ostl")(params, given, lengths)
    )
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
    own = learn(narrow)
    exact = learn(jax.tree.map(lambda leaf: leaf.astype(jnp.float32), narrow))
    assert own["readout/connection"].bias.dtype == jnp.bfloat16
    name = "readout/connection"
    assert_close(own[name], exact[name], of_largest=0.02)


def rates_of(rule: str, strength: float):
    """The activity of the layer in each of 20 steps."""
    net, params, batch = setting(jnp.array([0, 1, 3]))
    optimiser, rates = optax.adam(0.1), []
    config = train.TrainConfig(rule=rule, activity_bound=0.05, activity_strength=strength)
    step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, config)
    state = train.TrainState(params, optimiser.init(params))
    for _ in range(20):
        state, totals = step(state, batch, None)
        rates.append(float(totals.spikes[0].sum() / totals.steps) / 7)
    return np.array(rates)


def test_penalty_is_off_for_online_rules_unless_it_is_given() -> None:
    assert train.TrainConfig().penalty_weight == 1
    assert train.TrainConfig(rule="ottt").penalty_weight == 0
    assert train.TrainConfig(rule="ottt", activity_strength=0.5).penalty_weight == 0.5


def test_penalty_lowers_activity_as_in_back_propagation() -> None:
    """Within 2 of the 84 places for spikes in every step, where it falls by 12; without penalty by 1."""
    expected = rates_of("bptt", 1.0)
    assert expected[-1] < expected[0] - 10 / 84
    for rule in ("eprop", "ostl", "ottt"):
        chex.assert_trees_all_close(rates_of(rule, 1.0), expected, rtol=0, atol=2.1 / 84, strict=True)
        assert rates_of(rule, 0.0)[-1] > expected[0] - 2.1 / 84


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
    chex.assert_tree_all_finite(errors)


def test_what_a_rule_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError) as caught:
        train.TrainConfig(rule="rtrl")
    assert str(caught.value) == (
        "TrainConfig: `rule` must be 'bptt', 'eprop', 'ostl' or 'ottt', got 'rtrl'. Choose one of these."
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
