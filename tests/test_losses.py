"""Losses: values a reader can check, dense = lists, exact gradients, no dense intermediates, messages."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from snnjax import SparseSpikes, losses
from snnjax.metrics import class_first_spikes, predictions
from tests.errors.refusals import refusals
from tests.numbers import array
from tests.ops.common import jit, stack

RATES = functools.partial(losses.mean_square_rate, correct_rate=0.8, incorrect_rate=0.1)
LOSSES = {
    "cross_entropy_sum": losses.cross_entropy_sum,
    "cross_entropy_count": losses.cross_entropy_count,
    "cross_entropy_max": losses.cross_entropy_max,
    "mean_square_rate": RATES,
    "time_to_first_spike": losses.time_to_first_spike,
}


def of_each(function: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """`function` of every loss by its name, and of arrays, compiled as one program."""
    return jit(lambda *arrays: {name: function(loss, *arrays) for name, loss in LOSSES.items()})


SPIKES = jnp.array(  # [time=4, batch=2, classes=3]
    [[[0, 0, 0], [1, 0, 0]], [[0, 1, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 1]], [[1, 0, 0], [0, 1, 0]]],
    jnp.float32,
)
LABELS = jnp.array([1, 2])


def draw_spikes(seed: int, rate: float = 0.4, shape: tuple[int, ...] = (6, 3, 4)) -> jax.Array:
    return (np.random.default_rng(seed).random(shape) < rate).astype(np.float32) * jnp.ones(())


def test_cross_entropy_sum_equals_the_formula_written_out() -> None:
    outputs = jax.random.normal(jax.random.key(0), (5, 3, 4))
    labels = jnp.array([3, 0, 1])
    odds = np.exp(np.asarray(outputs).sum(0))
    expected = -np.mean(np.log(odds[np.arange(3), np.asarray(labels)] / odds.sum(1)))
    # float32 sums of 5 terms and a log: a few ulp
    np.testing.assert_allclose(jit(losses.cross_entropy_sum)(outputs, labels), expected, rtol=1e-5)


def test_weights_count_each_step_so_many_times() -> None:
    """Of arrays, of lists, and of the predictions that belong to them."""
    weights = jnp.array([2.0, 0.0, 1.0, 0.5])
    repeated = SPIKES * weights[:, None, None]
    lists = SparseSpikes.from_dense(SPIKES, capacity=3)
    lengths = jnp.array([4, 3])
    loss, named = jit(losses.cross_entropy_sum), jit(predictions)
    expected = loss(repeated, LABELS, lengths=lengths)
    for outputs in (SPIKES, lists):
        found = loss(outputs, LABELS, lengths=lengths, weights=weights)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_array_equal(named(outputs, weights=weights), named(repeated))
    assert list(named(SPIKES, weights=jnp.array([0.0, 0.0, 1.0, 9.0]))) != list(named(SPIKES))


def test_temporal_efficient_is_the_mean_of_each_steps_cross_entropy() -> None:
    outputs, labels, lengths = (
        jax.random.normal(jax.random.key(0), (5, 3, 4)),
        np.array([3, 0, 1]),
        np.array([5, 2, 0]),
    )
    each = -np.take_along_axis(np.asarray(jax.nn.log_softmax(outputs)), labels[None, :, None], -1)[..., 0]
    expected = np.mean([each[:steps, b].sum() / max(steps, 1) for b, steps in enumerate(lengths)])
    found = jit(losses.temporal_efficient)(outputs, jnp.asarray(labels), lengths=jnp.asarray(lengths))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_cross_entropy_count_is_the_log_of_the_odds_of_counts() -> None:
    counts = np.array([[1, 2, 0], [2, 1, 1]])
    odds = np.exp(counts)
    expected = -np.mean(np.log(odds[[0, 1], [1, 2]] / odds.sum(1)))
    np.testing.assert_allclose(jit(losses.cross_entropy_count)(SPIKES, LABELS), expected, rtol=1e-6)


def test_cross_entropy_max_sees_the_highest_membrane_only() -> None:
    outputs = jnp.array([[[-3.0, 1.0]], [[-1.0, -9.0]]])
    expected = np.log(1 + np.exp(-1.0 - 1.0))
    np.testing.assert_allclose(jit(losses.cross_entropy_max)(outputs, jnp.array([1])), expected, rtol=1e-6)


STEP_LABELS = np.array([[1, 2], [-1, 0], [0, 2], [2, -1]])  # [time=4, batch=2]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("lengths", [None, (4, 2)])
def test_cross_entropy_steps_equals_the_formula_written_out(lengths, smoothing: float) -> None:
    drawn = jax.random.normal(jax.random.key(0), (4, 2, 3))
    outputs = np.asarray(drawn)
    ends = (4, 4) if lengths is None else lengths
    expected = 0.0
    for b in range(2):
        steps = [t for t in range(ends[b]) if STEP_LABELS[t, b] >= 0]
        share = np.exp(outputs[steps, b]) / np.exp(outputs[steps, b]).sum(-1, keepdims=True)
        hot = (1 - smoothing) * np.eye(3)[STEP_LABELS[steps, b]] + smoothing / 3
        expected -= np.mean(np.sum(hot * np.log(share), axis=-1)) / 2
    options = {"lengths": None if lengths is None else jnp.array(lengths), "label_smoothing": smoothing}
    loss = functools.partial(losses.cross_entropy_steps, labels=jnp.asarray(STEP_LABELS), **options)
    value, gradient = jit(jax.value_and_grad(loss))(drawn)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    check_grads(jax.jit(loss), (drawn,), order=1, modes=["rev"], eps=1e-2)
    slope = np.abs(np.asarray(gradient)).sum(-1) > 0
    np.testing.assert_array_equal(slope, (STEP_LABELS >= 0) & (np.arange(4)[:, None] < np.array(ends)))


def test_cross_entropy_steps_is_0_without_a_label_and_nan_for_an_unknown_one() -> None:
    loss, outputs, none = jit(losses.cross_entropy_steps), jnp.ones((4, 2, 3)), jnp.full((4, 2), -1)
    assert loss(outputs, none) == 0
    assert not np.any(jit(jax.grad(losses.cross_entropy_steps))(outputs * jnp.nan, none))
    assert np.isnan(loss(outputs, jnp.full((4, 2), 3)))


def test_mean_square_rate_counts_each_class() -> None:
    # rates [[1/4, 2/4, 0], [2/4, 1/4, 1/4]], targets 1 for labels 1 and 2
    expected = np.mean([1 / 16, 1 / 4, 0, 1 / 4, 1 / 16, 9 / 16])
    np.testing.assert_allclose(losses.mean_square_rate(SPIKES, LABELS, 1.0, 0.0), expected, rtol=1e-6)


def test_time_to_first_spike_takes_the_steps_of_first_spikes() -> None:
    np.testing.assert_array_equal(class_first_spikes(SPIKES), [[3, 1, 4], [0, 3, 2]])
    odds = np.exp(-np.array([[3, 1, 4], [0, 3, 2]]) / 2)
    expected = -np.mean(np.log(odds[[0, 1], [1, 2]] / odds.sum(1)))
    loss = losses.time_to_first_spike(SPIKES, LABELS, time_scale=2.0)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_time_to_first_spike_gradient_is_the_documented_one() -> None:
    spikes = jnp.array([0, 0, 1, 0, 1, 0], jnp.float32)[:, None, None]  # first at 2, second at 4
    for outputs in (spikes, SparseSpikes(jnp.zeros((6, 1, 1), jnp.int32), spikes, *_counts(spikes), 1)):
        slope = jit(jax.grad(lambda out: class_first_spikes(out)[0, 0], allow_int=True))(outputs)
        slope = slope.values if isinstance(slope, SparseSpikes) else slope
        np.testing.assert_array_equal(slope.reshape(-1), [-2, -1, -2, 0, 0, 0])


def _counts(spikes: jax.Array) -> tuple[jax.Array, ...]:
    count = jnp.sum(spikes, -1, dtype=jnp.int32)
    return count, jnp.ones_like(count), jnp.zeros_like(count)


def test_time_to_first_spike_lets_a_silent_class_learn() -> None:
    gradient = jit(jax.grad(losses.time_to_first_spike))(jnp.zeros((4, 1, 2)), jnp.array([0]))
    assert np.all(np.asarray(gradient)[:3, 0, 0] < 0)  # more spikes of the label lower the loss


@of_each
def of_lists_and_dense(
    loss, dense: jax.Array, ids: jax.Array, values: jax.Array, labels, lengths
) -> tuple[Any, ...]:
    """Value and gradient of a loss on lists of 4 classes, and on an array."""
    count = jnp.sum(dense, -1, dtype=jnp.int32)

    def from_lists(values: jax.Array) -> jax.Array:
        lists = SparseSpikes(ids, values, count, count, 0 * count, 4)
        return loss(lists, labels=labels, lengths=lengths)

    from_dense = functools.partial(loss, labels=labels, lengths=lengths)
    return jax.value_and_grad(from_lists)(values), jax.value_and_grad(from_dense)(dense)


@hypothesis.given(st.integers(0, 2**31), st.booleans())
def test_lists_equal_dense_in_value_and_gradient(seed: int, with_lengths: bool) -> None:
    rng = np.random.default_rng(seed)
    dense = draw_spikes(seed) * rng.choice([1, 1, 2, -1], (6, 3, 4)).astype(np.float32)  # also graded
    ids = np.argsort(rng.random(dense.shape)).astype(np.int32)  # every class listed, in any order
    values = np.take_along_axis(np.asarray(dense), ids, -1)
    ids = np.concatenate([ids, np.full((*ids.shape[:2], 1), 4), np.full((*ids.shape[:2], 1), -1)], -1)
    # ids out of range count nowhere
    values = np.concatenate([values, np.ones((*values.shape[:2], 2), np.float32)], -1)
    labels = jnp.asarray(rng.integers(0, 4, 3))
    lengths = jnp.asarray(rng.integers(0, 7, 3)) if with_lengths else None
    found = of_lists_and_dense(dense, array(ids, jnp.int32), jnp.asarray(values), labels, lengths)
    for name, ((actual, list_slope), (expected, slope)) in found.items():
        # the same float32 sums in another order
        np.testing.assert_allclose(actual, expected, rtol=2e-6, err_msg=name)
        by_id = np.take_along_axis(np.asarray(slope), ids[..., :4], -1)
        np.testing.assert_allclose(list_slope[..., :4], by_id, atol=2e-6, err_msg=name)
        assert not np.any(list_slope[..., 4:]), name


def test_short_lists_equal_dense_where_all_spikes_fit() -> None:
    dense = draw_spikes(1, rate=0.2, shape=(5, 2, 6))
    spikes = SparseSpikes.from_dense(dense, capacity=4)
    both = of_each(lambda loss, *given: [loss(own, LABELS, lengths=jnp.array([5, 3])) for own in given])
    for name, (actual, expected) in both(spikes, dense).items():
        np.testing.assert_allclose(actual, expected, rtol=2e-6, err_msg=name)


@functools.partial(jax.jit, static_argnames=("name", "dense"))
def _loss_of_entries(values: jax.Array, ids: jax.Array, name: str, dense: bool, **options):
    """Value and gradient of a loss on lists of 3 classes, or on the dense array they stand for."""

    def loss(values: jax.Array) -> jax.Array:
        count = jnp.sum((ids >= 0) & (ids < 3), -1, dtype=jnp.int32)
        lists = SparseSpikes(ids, values, count, count, 0 * count, 3)
        return LOSSES[name](lists.to_dense() if dense else lists, **options)

    return jax.value_and_grad(loss)(values)


@hypothesis.given(st.integers(0, 2**31), st.sampled_from(["cross_entropy_sum", "cross_entropy_max"]))
def test_entries_of_one_id_and_step_add(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    ids = rng.integers(-1, 4, (4, 2, 5), np.int32)  # repeated, missing, out of range
    # halves between -1 and 1, or none above 0: sums are exact, and often equal in several steps or to what is unlisted
    values = rng.integers(-2, rng.choice([1, 3]), ids.shape).astype(np.float32) / 2
    options = {"labels": rng.integers(0, 3, 2, np.int32), "lengths": rng.integers(0, 5, 2, np.int32)}
    actual, expected = (_loss_of_entries(values, ids, name, dense, **options) for dense in (False, True))
    for got, want in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, want, atol=2e-6)  # the same float32 sums in another order


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_lists_make_no_array_of_the_dense_size(name: str) -> None:
    time, batch, classes, capacity = 7, 3, 50, 2
    spikes = SparseSpikes.from_ids(jnp.zeros((time, batch, capacity), jnp.int32), classes).with_values()

    def loss(values: jax.Array) -> jax.Array:
        lists = dataclasses.replace(spikes, values=values)
        return LOSSES[name](lists, jnp.zeros(batch, jnp.int32), lengths=jnp.full(batch, 5))

    largest = max(_sizes(jax.make_jaxpr(jax.value_and_grad(loss))(spikes.values).jaxpr))
    # [batch, classes] may be there, [time, batch, classes] not; scatters index rows and ids: 2 numbers an entry
    assert largest < time * batch * classes // 2


def _sizes(jaxpr) -> list[int]:
    inner = [
        sub
        for eqn in jaxpr.eqns
        for sub in jax.tree.leaves(list(eqn.params.values()))
        if hasattr(sub, "jaxpr")
    ]
    own = [int(np.prod(var.aval.shape)) for eqn in jaxpr.eqns for var in eqn.outvars]
    return own + list(itertools.chain.from_iterable(_sizes(sub.jaxpr) for sub in inner))


def test_padded_steps_count_nowhere() -> None:
    outputs = draw_spikes(2, shape=(6, 2, 3)) * 0.5
    labels, lengths = jnp.array([0, 2]), jnp.array([4, 4])
    run = of_each(
        lambda loss, padded, cut: (
            jax.value_and_grad(loss)(padded, labels, lengths=lengths),
            loss(cut, labels),
        )
    )
    for name, ((padded, slope), cut) in run(outputs.at[4:].set(jnp.nan), outputs[:4]).items():
        np.testing.assert_allclose(padded, cut, rtol=1e-6, err_msg=name)
        assert not np.any(slope[4:]), name


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_gradients_are_exact(name: str) -> None:
    with jax.enable_x64():
        # probabilities instead of spikes: the survival product is smooth there; distinct values have one maximum
        outputs = jax.random.uniform(jax.random.key(3), (4, 2, 3), jnp.float64, 0.1, 0.9)
        loss = functools.partial(LOSSES[name], labels=jnp.array([2, 0]), lengths=jnp.array([4, 2]))
        check_grads(jax.jit(loss), (outputs,), order=1, modes=["rev"])


@pytest.mark.parametrize("name", ["cross_entropy_sum", "cross_entropy_max", "mean_square_rate"])
def test_gradients_from_lists_are_exact(name: str) -> None:
    with jax.enable_x64():
        spikes = SparseSpikes.from_ids(jax.random.randint(jax.random.key(0), (4, 2, 3), 0, 6), 5)
        values = jax.random.uniform(jax.random.key(1), spikes.ids.shape, jnp.float64, 0.1, 0.9)

        def loss(values: jax.Array) -> jax.Array:
            lists = dataclasses.replace(spikes, values=values)
            return LOSSES[name](lists, labels=jnp.array([2, 0]), lengths=jnp.array([4, 2]))

        check_grads(jax.jit(loss), (values,), order=1, modes=["rev"])


def test_label_smoothing_mixes_the_label_with_all_classes() -> None:
    outputs, labels = draw_spikes(4), jnp.array([0, 1, 2])
    loss = jit(losses.cross_entropy_sum, static_argnames="label_smoothing")
    plain = loss(outputs, labels)
    uniform = np.mean([loss(outputs, jnp.full(3, c)) for c in range(4)])
    smooth = loss(outputs, labels, label_smoothing=0.2)
    np.testing.assert_allclose(smooth, 0.8 * plain + 0.2 * uniform, rtol=1e-6)


def test_label_out_of_range_is_nan_inside_jit_not_a_silent_zero() -> None:
    every = {**LOSSES, "temporal_efficient": losses.temporal_efficient}
    found = jit(
        lambda labels: {name: jax.value_and_grad(each)(SPIKES, labels) for name, each in every.items()}
    )
    for label in (-1, 3):
        for name, (value, slope) in found(jnp.array([0, label])).items():
            assert np.isnan(value), name
            assert np.any(np.isnan(slope[:, 1])), name


@pytest.mark.parametrize("label", [-1, 3])
@pytest.mark.parametrize("name", LOSSES)
def test_label_out_of_range_is_refused_where_it_is_known(name: str, label: int) -> None:
    text = (
        f"`labels` must be between 0 and 2, got {label}. "
        "Number the classes from 0, and give the readout one output for each."
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        jax.grad(LOSSES[name])(SPIKES, labels=jnp.array([0, label]))


def test_sequence_of_length_zero_gives_finite_loss_and_no_gradient() -> None:
    found = of_each(lambda loss, *given: jax.value_and_grad(loss)(*given, lengths=jnp.array([0, 4])))
    for name, (value, slope) in found(SPIKES, LABELS).items():
        chex.assert_tree_all_finite((value, slope))
        assert not np.any(slope[:, 0]), name


def test_bfloat16_outputs_accumulate_in_float32() -> None:
    found = of_each(lambda loss, *given: jax.value_and_grad(loss)(*given))(
        SPIKES.astype(jnp.bfloat16), LABELS
    )
    expected = of_each(lambda loss, *given: loss(*given))(SPIKES, LABELS)
    for name, (value, slope) in found.items():
        assert (value.dtype, slope.dtype) == (jnp.float32, jnp.bfloat16), name
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    rates = jnp.linspace(0, 0.5, 12).reshape(3, 4).astype(jnp.bfloat16)
    for bound in (losses.activity_upper_bound, losses.activity_lower_bound):
        both = [bound([each], 0.3) for each in (rates, rates.astype(jnp.float32))]
        np.testing.assert_array_equal(*both, strict=True)


def test_vmap_over_networks_equals_a_loop() -> None:
    outputs = jnp.stack([draw_spikes(seed) for seed in range(3)])
    labels = jnp.array([0, 1, 2])
    together = of_each(lambda loss, outputs: jax.vmap(lambda own: loss(own, labels))(outputs))(outputs)
    alone = of_each(lambda loss, own: loss(own, labels))
    chex.assert_trees_all_close(together, stack([alone(own) for own in outputs]), rtol=1e-6)


def test_activity_upper_bound_is_zero_below_and_one_at_twice_the_bound() -> None:
    below, twice = jnp.full((3, 4), 0.04), jnp.full((3, 2), 0.1)
    for over in ("population", "neurons"):
        assert losses.activity_upper_bound([below], 0.05, over=over) == 0
        np.testing.assert_allclose(losses.activity_upper_bound([below, twice], 0.05, over=over), 1, rtol=1e-6)


def test_activity_upper_bound_over_the_population_lets_one_neuron_fire() -> None:
    rates = jnp.zeros((1, 10)).at[0, 0].set(0.4)
    assert losses.activity_upper_bound([rates], 0.04) < 1e-10  # the population fires at 4 %, up to rounding
    np.testing.assert_allclose(losses.activity_upper_bound([rates], 0.04, over="neurons"), 81 / 10, rtol=1e-5)


def test_activity_lower_bound_counts_silent_neurons() -> None:
    rates = jnp.zeros((2, 4)).at[:, 0].set(0.5)
    np.testing.assert_allclose(losses.activity_lower_bound([rates], 0.1), 3 / 4, rtol=1e-6)
    assert losses.activity_lower_bound([rates], 0.1, over="population") == 0


@pytest.mark.parametrize("over", ["population", "neurons"])
@pytest.mark.parametrize("bound", [losses.activity_upper_bound, losses.activity_lower_bound])
def test_activity_bounds_have_exact_gradients(bound, over: str) -> None:
    with jax.enable_x64():
        rates = jax.random.uniform(jax.random.key(0), (3, 4), jnp.float64)

        def penalty(array: jax.Array) -> jax.Array:
            return bound([array, array[:, :2]], 0.4, over=over)

        check_grads(jax.jit(penalty), (rates,), order=1, modes=["rev"])


REFUSED = {
    "activity_upper_bound: `activity` must be a dict or a list by layer, got an array. Pass the "
    "activity that a network returns, one array per layer.": lambda: losses.activity_upper_bound(SPIKES, 0.1),
    "cross_entropy_steps: `outputs` must be an array, got SparseSpikes. Use "
    "the membranes of a leaky readout, or call to_dense().": lambda: losses.cross_entropy_steps(
        SparseSpikes.from_dense(SPIKES, capacity=2), LABELS
    ),
    "cross_entropy_steps: `labels` must have shape [time, batch] = [4, 2], got [2]. "
    "Pass one class index per step of each sequence.": lambda: losses.cross_entropy_steps(SPIKES, LABELS),
    "class_sums: `weights` must have shape [time] = [4], got [3]. Pass one weight for each step.": lambda: (
        losses.cross_entropy_sum(SPIKES, LABELS, weights=jnp.ones(3))
    ),
    "cross_entropy_sum: `outputs` must hold at least one step, got none. "
    "Run the network for at least one step.": lambda: losses.cross_entropy_sum(jnp.zeros((0, 2, 3)), LABELS),
    "cross_entropy_max: `outputs` must have shape [time, batch, classes], got [2, 3]. Stack the outputs "
    "of all steps along a first axis, time.": lambda: losses.cross_entropy_max(jnp.zeros((2, 3)), LABELS),
    "cross_entropy_count: `outputs` must have shape [time, batch, classes], got [2, 3]. "
    "Stack the outputs of all steps along a first axis, time.": lambda: losses.cross_entropy_count(
        SparseSpikes.from_ids(jnp.zeros((2, 1), jnp.int32), 3), LABELS
    ),
    "cross_entropy_sum: `outputs` must have a floating-point dtype, got int32. Cast it with "
    "outputs.astype(jnp.float32).": lambda: losses.cross_entropy_sum(jnp.zeros((1, 2, 3), jnp.int32), LABELS),
    "mean_square_rate: `labels` must have shape [batch] = [2], got [1]. "
    "Pass one class index per sequence.": lambda: RATES(SPIKES, jnp.array([1])),
    "cross_entropy_sum: `labels` must be an array, got a list. Pass a JAX or NumPy array.": lambda: (
        losses.cross_entropy_sum(SPIKES, [0, 1])
    ),
    "cross_entropy_sum: `labels` must hold integers, got float32. Cast it with labels.astype(int).": lambda: (
        losses.cross_entropy_sum(SPIKES, jnp.array([1.0, 2.0]))
    ),
    "cross_entropy_sum: `lengths` must have shape [batch] = [2], got [3]. Pass the number of steps of each "
    "sequence of the batch.": lambda: losses.cross_entropy_sum(SPIKES, LABELS, lengths=jnp.array([1, 2, 3])),
    "cross_entropy_sum: `label_smoothing` must be in [0, 1), got 1.0. Try 0.1, or 0.0 for none.": lambda: (
        losses.cross_entropy_sum(SPIKES, LABELS, label_smoothing=1.0)
    ),
    "time_to_first_spike: `time_scale` must be positive and finite, got 0.0. Try 1.0 for a sharp loss, or a tenth "
    "of the sequence for a soft one.": lambda: losses.time_to_first_spike(SPIKES, LABELS, time_scale=0.0),
    "activity_upper_bound: `bound` must be positive, got 0.0. Try "
    "0.04, four spikes in a hundred steps.": lambda: losses.activity_upper_bound([jnp.zeros((1, 1))], 0.0),
    "activity_lower_bound: `over` must be 'population' or 'neurons', got 'batch'. "
    "Choose one of these.": lambda: losses.activity_lower_bound([jnp.zeros((1, 1))], 0.1, over="batch"),
    "activity_lower_bound: `activity` must hold at least one layer, got none. Pass "
    "the activity that a network returns, one array per layer.": lambda: losses.activity_lower_bound([], 0.1),
    "activity_upper_bound: `activity[0]` must have shape [batch, neurons], got [3]. Pass the activity "
    "that a network returns, one array per layer.": lambda: losses.activity_upper_bound([jnp.zeros(3)], 0.1),
}
test_wrong_arguments_are_named = refusals(REFUSED)
