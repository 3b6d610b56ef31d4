"""The model of the inner ear beside lauscher's (tests/golden/make_cochlea.py), and on tones."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax.data import cochlea, make_cochlea

GOLDEN = np.load(Path(__file__).parents[1] / "golden/cochlea.npz")
RATE = 22050
STRIDE = 8  # of the steps that are kept
NUM_CHANNELS, NUM_BINS = GOLDEN["spikes"].shape[1:]


@pytest.fixture(scope="module")
def wave():
    return cochlea.conditioned(GOLDEN["wave"], RATE)


@pytest.fixture(scope="module")
def velocity(wave):
    places = np.linspace(0, 3.5, NUM_CHANNELS)
    transfer = cochlea.membrane_transfer(RATE, len(wave), places).astype(np.complex64)
    return np.asarray(cochlea.membrane_velocity(transfer, jnp.asarray(wave, jnp.float32)))


def test_membrane_moves_as_lauschers(velocity):
    # The transform is in float32: its error is some units in the last place of the largest value.
    scale = np.abs(GOLDEN["velocity"]).max(axis=1, keepdims=True)
    np.testing.assert_allclose(velocity[:, ::STRIDE] / scale, GOLDEN["velocity"] / scale, rtol=0, atol=3e-6)


def test_hair_cells_fire_fibres_as_lauschers(velocity):
    def step(cells, at):
        return cochlea.hair_cells(cells, at, 2 / RATE)

    _, probability = jax.lax.scan(step, cochlea.resting(NUM_CHANNELS), jnp.asarray(velocity.T))
    np.testing.assert_allclose(probability.T[:, ::STRIDE], GOLDEN["probability"], rtol=1e-4, atol=1e-6)


def test_bushy_cells_spike_as_often_as_lauschers(wave):
    """Spikes are random in both: means over 100 repetitions differ by less than 5 of their standard errors."""
    repetitions = len(GOLDEN["spikes"])
    hear = make_cochlea(RATE, len(wave), NUM_CHANNELS)
    spikes = np.asarray(
        hear(np.tile(wave, (repetitions, 1)), jax.random.split(jax.random.key(1), repetitions))
    )
    starts = np.minimum(np.arange(spikes.shape[1]) * (2 / RATE) / 0.02, NUM_BINS - 1).astype(int)
    ours = np.stack([spikes[:, starts == n].sum(axis=1) for n in range(NUM_BINS)], axis=-1)
    theirs = GOLDEN["spikes"].astype(float)
    # A bin that varies little has an error of at least that of 5 spikes in all.
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / repetitions + (1 / repetitions) ** 2 * 5)
    np.testing.assert_array_less(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)), 5 * error)
    assert ours.mean(axis=0).max() > 1  # the bins hold spikes that can differ


def test_high_tones_are_heard_near_the_inlet():
    num_samples, num_channels = 2400, 24
    hear = make_cochlea(16000, num_samples, num_channels)
    seconds = np.arange(num_samples) / 16000
    waves = [cochlea.conditioned(np.sin(2 * np.pi * pitch * seconds), 16000) for pitch in (300, 1000, 3000)]
    keys = jax.random.split(jax.random.key(0), 3)
    spikes = np.asarray(hear(np.stack(waves), keys))
    assert spikes.shape == (3, num_samples // 2 + 1, num_channels) and spikes.dtype == bool
    low, middle, high = spikes.sum(axis=1) @ np.arange(num_channels) / spikes.sum(axis=(1, 2))
    assert low > middle + 2 and middle > high + 2
    # A word does not depend on those beside it.
    np.testing.assert_array_equal(hear(np.stack(waves[::-1]), keys[::-1])[::-1], spikes)
    # A cell pauses for at least a millisecond.
    gaps = [np.diff(np.flatnonzero(channel)) for word in spikes for channel in word.T]
    assert np.concatenate(gaps).min() > 8


@pytest.mark.parametrize("count, probability", [(40, 0.03), (17, 0.4), (40, 0.95), (5, 1.2), (0, 0.5)])
def test_binomial_draws_its_distribution(count, probability):
    uniform = (np.arange(20000) + 0.5) / 20000
    drawn = cochlea.binomial(
        jnp.full(20000, float(count)), jnp.full(20000, probability), jnp.asarray(uniform)
    )
    shares = np.bincount(np.asarray(drawn, int), minlength=count + 1) / 20000
    share = min(probability, 1)
    expected = [math.comb(count, n) * share**n * (1 - share) ** (count - n) for n in range(count + 1)]
    np.testing.assert_allclose(shares, expected, atol=2e-4)


def test_conditioned_is_at_its_level():
    loud = cochlea.conditioned(np.sin(np.arange(RATE)), RATE)
    assert np.sqrt(np.mean(loud[RATE // 4 : -RATE // 4] ** 2)) == pytest.approx(0.3, rel=1e-3)
    assert loud[0] == loud[-1] == 0
    with pytest.raises(ValueError, match="conditioned: `wave` must hold a sound, got silence"):
        cochlea.conditioned(np.zeros(9), RATE)


@pytest.mark.parametrize("arguments", [(7999, 100), (16000, 1), (16000, 100, 1)])
def test_make_cochlea_refuses(arguments):
    with pytest.raises(ValueError, match=r"make_cochlea: `.*` must be an integer of at least"):
        make_cochlea(*arguments)
