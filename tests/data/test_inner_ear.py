"""The inner ear for recognition: its membrane beside lauscher's (tests/golden/make_membrane.py), and on tones."""

from pathlib import Path

import jax
import numpy as np
import pytest

from snnjax.data import inner_ear, make_inner_ear

KEY = jax.random.key(0)
RATE, SAMPLES, CHANNELS = 8000, 1600, 50


@pytest.fixture(scope="module")
def hear():
    return make_inner_ear(RATE, SAMPLES, CHANNELS)


def tone(pitch: float, level: float = 0.4) -> np.ndarray:
    return level * np.sin(2 * np.pi * pitch * np.arange(SAMPLES) / RATE)


def test_membrane_moves_as_lauschers() -> None:
    golden = np.load(Path(__file__).parents[1] / "golden/membrane.npz")
    wave = inner_ear.conditioned(golden["wave"], 22050)
    transfer = inner_ear.membrane_transfer(22050, len(wave), np.linspace(0, 3.5, len(golden["velocity"])))
    velocity = np.fft.ifft(transfer * np.fft.fft(wave)[: transfer.shape[1]]).real
    scale = np.abs(golden["velocity"]).max(axis=1, keepdims=True)  # which is kept in float32
    np.testing.assert_allclose(velocity[:, ::8] / scale, golden["velocity"] / scale, rtol=0, atol=1e-6)


def test_conditioned_is_at_its_level() -> None:
    loud = inner_ear.conditioned(np.sin(np.arange(RATE)), RATE)
    assert np.sqrt(np.mean(loud[RATE // 4 : -RATE // 4] ** 2)) == pytest.approx(0.3, rel=1e-3)
    assert loud[0] == loud[-1] == 0
    with pytest.raises(ValueError) as error:
        inner_ear.conditioned(np.zeros(9), RATE)
    assert str(error.value) == ("inner_ear.conditioned: `wave` must hold a sound, got silence. Omit it.")


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
