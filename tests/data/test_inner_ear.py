"""The inner ear for recognition, on tones."""

import jax
import numpy as np
import pytest

from snnjax.data import make_inner_ear

KEY = jax.random.key(0)
RATE, SAMPLES, CHANNELS = 8000, 1600, 50


@pytest.fixture(scope="module")
def hear():
    return make_inner_ear(RATE, SAMPLES, CHANNELS)


def tone(pitch: float, level: float = 0.4) -> np.ndarray:
    return level * np.sin(2 * np.pi * pitch * np.arange(SAMPLES) / RATE)


def test_higher_tones_are_heard_nearer_to_the_inlet(hear) -> None:
    most = [np.bincount(hear(tone(pitch), KEY)[1]).argmax() for pitch in (200, 400, 800, 1600, 3200)]
    assert np.all(np.diff(most) < 0)
    # The stiffness falls by exp(3) per cm, so an octave is 0.46 cm, and a channel 0.07 cm.
    np.testing.assert_allclose(np.diff(most), -0.46 / 0.07, atol=1.5)


def test_cells_spike_regularly_and_in_order(hear) -> None:
    steps, channels = hear(tone(800), KEY)
    assert np.all(np.diff(steps) >= 0) and steps.max() < SAMPLES // 2 and channels.max() < CHANNELS
    gaps = np.diff(steps[channels == np.bincount(channels).argmax()])[5:]  # behind the onset
    assert np.ptp(gaps) <= 1


def test_rates_grow_with_the_cube_root_of_the_amplitude(hear) -> None:
    quiet, loud = (np.bincount(hear(tone(800, level), KEY)[1]).max() for level in (0.1, 0.8))
    assert abs(loud - 2 * quiet) <= 2  # spikes at the beginning and at the end


def test_the_key_shifts_spikes_and_leaves_their_number(hear) -> None:
    one, same, other = (hear(tone(800), jax.random.key(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one[0], other[0])
    counts = [np.bincount(channels, minlength=CHANNELS) for _, channels in (one, other)]
    assert np.abs(counts[0] - counts[1]).max() <= 1


def test_longer_waves_are_refused(hear) -> None:
    with pytest.raises(ValueError) as error:
        hear(np.ones(1601), KEY)
    assert str(error.value) == ("make_inner_ear: `wave` must have at most 1600 samples, got 1601. Cut it.")
