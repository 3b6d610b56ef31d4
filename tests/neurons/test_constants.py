"""Decays from unconstrained numbers, and constants drawn with a key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax.neurons import decay_to_raw, lif, raw_to_decay, time_constant_to_decay
from snnjax.neurons._constants import within

KEY = jax.random.key(0)


def test_raw_of_known_decays() -> None:
    assert float(decay_to_raw(0.5)) == 0.0
    np.testing.assert_allclose(decay_to_raw(jnp.array([0.75, 0.25])), [np.log(3), -np.log(3)], rtol=1e-6)
    assert float(raw_to_decay(jnp.float32(0.0))) == 0.5


@given(st.floats(2**-16, 1 - 2**-16, width=32))
def test_raw_to_decay_inverts_decay_to_raw(decay: float) -> None:
    # One rounding of a raw value of up to 12, times d decay / d raw = decay (1 - decay), and four of functions of the
    # decay: 12 + 4 half units in the last place of float32.
    back = float(raw_to_decay(decay_to_raw(jnp.float32(decay))))
    assert abs(back - decay) <= 16 * 2**-24 * decay


@pytest.mark.parametrize("raw", [-80.0, -30.0, 0.0, 30.0, 80.0])
def test_gradient_of_decay_never_dies(raw: float) -> None:
    gradient = float(jax.grad(raw_to_decay)(jnp.float32(raw)))
    # exp(-|raw|) / (1 + exp(-|raw|))^2
    np.testing.assert_allclose(gradient, np.exp(-abs(raw)) / (1 + np.exp(-abs(raw))) ** 2, rtol=1e-5)
    assert gradient > 0


def test_constants_outside_their_bounds_are_clipped_and_still_learn() -> None:
    values = jnp.array([-2.0, 0.3, 5.0])
    np.testing.assert_array_equal(within(values, 0.0, jnp.ones(3)), jnp.array([0.0, 0.3, 1.0]))
    np.testing.assert_array_equal(jax.grad(lambda each: jnp.sum(within(each, 0.0, 1.0)))(values), [1, 1, 1])


def test_time_constant_to_decay_is_exponential() -> None:
    # After one time constant 1 / e is left.
    np.testing.assert_allclose(time_constant_to_decay(1.0, dt=1.0), np.exp(-1), rtol=1e-6)
    np.testing.assert_allclose(
        time_constant_to_decay(jnp.array([10.0, 20.0]), dt=0.5), np.exp([-0.05, -0.025]), rtol=1e-6
    )


def test_time_constants_that_make_no_sense_are_refused() -> None:
    for wrong in (0.0, jnp.array([5.0, 0.0])):
        with pytest.raises(ValueError) as error:
            time_constant_to_decay(wrong)
        assert str(error.value) == (
            "time_constant_to_decay: `time_constant` must be positive, got 0.0. Use the unit of dt."
        )
    with pytest.raises(ValueError) as error:
        time_constant_to_decay(1.0, dt=-1.0)
    assert str(error.value) == (
        "time_constant_to_decay: `dt` must be positive, got -1.0. Pass the length of a step."
    )


@given(st.floats(0.1, 0.4), st.floats(0.5, 0.9))
def test_range_spreads_constants_over_neurons(low: float, high: float) -> None:
    params = lif((low, high), (low, high), learn_decay=True).init(KEY, 50)
    params = params._replace(threshold=lif((low, high), (low, high)).initial_stats(KEY, 50).threshold)
    for values in (np.asarray(raw_to_decay(params.raw_decay)), np.asarray(params.threshold)):
        assert values.shape == (50,)
        assert np.all((values > low - 1e-6) & (values < high + 1e-6))
        # 50 draws leave a tenth of the range empty at an end once in 0.9^50 = 0.5 % of keys, and this key is fixed.
        assert values.min() < low + (high - low) / 5
        assert values.max() > high - (high - low) / 5


def test_one_constant_of_a_layer_has_no_axis() -> None:
    params = lif((0.5, 0.9), per="layer", learn_decay=True).init(KEY, 4)
    assert params.raw_decay.shape == ()
    assert params.threshold is None


def test_a_constant_is_drawn_alike_whether_it_is_learned_or_not() -> None:
    learned = lif((0.5, 0.9), (0.5, 2.0), learn_decay=True, learn_threshold=True).init(KEY, 5)
    drawn = lif((0.5, 0.9), (0.5, 2.0), learn_threshold=True)
    params, stats = drawn.init(KEY, 5), drawn.initial_stats(KEY, 5)
    np.testing.assert_array_equal(stats.raw_decay, learned.raw_decay)
    np.testing.assert_array_equal(params.threshold, learned.threshold)
    assert params.raw_decay is None
    assert stats.threshold is None


def test_both_kinds_of_keys_draw_alike() -> None:
    draws = [lif((0.5, 0.9)).initial_stats(key, 3).raw_decay for key in (KEY, jax.random.PRNGKey(0))]
    np.testing.assert_array_equal(*draws)


def test_number_of_neurons_is_checked() -> None:
    with pytest.raises(ValueError) as error:
        lif().init(KEY, -1)
    assert str(error.value) == (
        "Neuron.init: `num_neurons` must be an integer of at least 0, got -1. Pass 0 or more."
    )


@pytest.mark.parametrize("decay", [20.0, -0.1, float("nan"), jnp.array([0.5, 20.0])])
def test_a_decay_outside_its_bounds_has_no_parameter(decay) -> None:
    with pytest.raises(ValueError) as error:
        decay_to_raw(decay)
    found = decay if isinstance(decay, float) else 20.0
    assert str(error.value) == (
        f"decay_to_raw: `decay` must be between 0 and 1, got {found:g}. "
        "From a time constant it is exp(-dt / time_constant)."
    )
