"""The simulated event camera against a plain simulation pixel by pixel."""

import jax
import numpy as np
import pytest

from snnjax.data import Augmentation, augment_images, load_mnist_10k, saccade_events, saccade_spikes

DIGITS = load_mnist_10k("test").select(slice(0, 40))
LABELS = np.zeros(40, int)


def corner(along):
    """The displacement (y, x) at a place of the path: corners at 0, 1, 2 and 3."""
    corners = [(1, -1), (-1, 0), (1, 1), (1, -1)]
    k = min(int(along), 2)
    return tuple(a + (along - k) * (b - a) for a, b in zip(corners[k], corners[k + 1], strict=True))


def intensity(image, y, x):
    """The image at a real place, bilinear, 0 outside."""
    total = 0.0
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                total += (1 - abs(y - row)) * (1 - abs(x - column)) * image[row, column] / 255
    return total


def simulate(image, num_steps, threshold, dark, amplitude, margin):
    """The documented equations, one pixel at a time: [time, 2, height, width] of bool, and near misses."""
    height, width = (n + 2 * margin for n in image.shape)
    light = np.empty((num_steps + 1, height, width))
    for step in range(num_steps + 1):
        dy, dx = (amplitude * d for d in corner(3 * step / num_steps))
        for y in range(height):
            for x in range(width):
                light[step, y, x] = np.log(dark + intensity(image, y - margin - dy, x - margin - dx))
    reference, events = np.zeros((height, width)), np.zeros((num_steps, 2, height, width), bool)
    doubt = np.zeros((height, width), bool)
    for step in range(num_steps):
        relative = (light[step + 1] - light[0]) / threshold
        change = relative - reference
        # Where float32 may decide otherwise, the pixel is left out of the comparison; at its first light it cannot.
        doubt |= (np.abs(change - np.round(change)) < 1e-4) & (np.abs(change) > 0.5) & (relative != 0)
        levels = np.trunc(change)
        events[step] = levels < 0, levels > 0
        reference += levels
    return events, doubt


@pytest.mark.parametrize(
    "num_steps, threshold, amplitude, margin", [(7, 0.5, 3.0, 3), (6, 0.3, 1.7, 0), (3, 0.8, 2.5, 1)]
)
def test_saccade_events_equals_plain_simulation(num_steps, threshold, amplitude, margin):
    image = np.random.default_rng(num_steps).integers(0, 256, (8, 7), np.uint8)
    expected, doubt = simulate(image, num_steps, threshold, 0.1, amplitude, margin)
    assert doubt.mean() < 0.05
    data = saccade_events(
        image[None],
        [0],
        num_steps=num_steps,
        contrast_threshold=threshold,
        amplitude=amplitude,
        margin=margin,
    )
    assert data.num_neurons == expected[0].size
    actual = np.zeros((num_steps, data.num_neurons + 1), bool)
    actual[np.arange(num_steps)[:, None], data.ids[0]] = True
    actual = actual[:, :-1].reshape(expected.shape)
    assert np.array_equal(actual[:, :, ~doubt], expected[:, :, ~doubt])
    assert expected.any()


def test_saccade_events_lists_are_sorted_and_counted():
    data = saccade_events(DIGITS.images, DIGITS.labels, num_steps=12)
    assert data.num_neurons == 2312
    assert data.ids.dtype == np.uint16
    used = data.ids < 2312
    assert np.array_equal(used.sum(-1), data.counts)
    assert (np.diff(data.ids.astype(int), axis=-1)[used[:, :, 1:]] > 0).all()
    assert data.capacity == data.counts.max()
    assert np.array_equal(data.labels, DIGITS.labels)


def test_saccade_events_of_one_image_do_not_depend_on_others():
    whole = saccade_events(DIGITS.images, LABELS, num_steps=9, capacity=96)
    for k in (0, 31, 32, 39):
        alone = saccade_events(DIGITS.images[k : k + 1], [0], num_steps=9, capacity=96)
        assert np.array_equal(alone.ids[0], whole.ids[k])


def test_saccade_events_cap_keeps_true_counts():
    full = saccade_events(DIGITS.images, LABELS, num_steps=6)
    capped = saccade_events(DIGITS.images, LABELS, num_steps=6, capacity=40)
    assert capped.ids.shape == (40, 6, 40)
    assert np.array_equal(full.counts, capped.counts)
    assert capped.dropped > 0.1
    # Fair to both polarities: the share of "on" among the listed is that among all, within 3 points.
    shares = [(data.ids[data.ids < 2312] >= 1156).mean() for data in (full, capped)]
    assert abs(shares[0] - shares[1]) < 0.03


def test_saccade_events_of_still_darkness_are_none():
    data = saccade_events(np.zeros((2, 28, 28), np.uint8), [0, 0])
    assert data.counts.sum() == 0
    assert data.ids.shape == (2, 30, 1)


def test_saccade_events_without_images_is_empty():
    assert saccade_events(np.zeros((0, 28, 28), np.uint8), []).ids.shape == (0, 30, 1)


def test_saccade_events_key_augments():
    key, small = jax.random.key(5), Augmentation(shift=1.0, rotation=5.0, scale=0.05)
    moved = saccade_events(DIGITS.images, LABELS, num_steps=4, key=key, augmentation=small)
    expected = saccade_events(augment_images(key, DIGITS.images, small), LABELS, num_steps=4)
    assert np.array_equal(moved.ids, expected.ids)
    assert not np.array_equal(moved.counts, saccade_events(DIGITS.images, LABELS, num_steps=4).counts)


def test_saccade_spikes_is_time_first():
    spikes = saccade_spikes(DIGITS.images, num_steps=5, capacity=64)
    data = saccade_events(DIGITS.images, LABELS, num_steps=5, capacity=64)
    assert np.array_equal(spikes.ids, data.ids.swapaxes(0, 1))
    assert spikes.shape == (5, 40, 2312)


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"num_steps": 0},
            "`num_steps` must be an integer of at least 1, got 0. Pass 1 or more.",
        ),
        ({"margin": -1}, "`margin` must be an integer of at least 0, got -1. Pass 0 or more."),
        (
            {"augmentation": Augmentation(shift=1.0)},
            "`key` must be given with an augmentation, got None. Pass one, and another one each epoch.",
        ),
        ({"capacity": 0}, "`capacity` must be an integer of at least 1, got 0. Pass 1 or more."),
        *(
            (
                {name: 0.0},
                f"`{name}` must be a positive number, got 0.0. Leave it out for its default.",
            )
            for name in ("contrast_threshold", "dark", "amplitude")
        ),
    ],
)
def test_saccade_events_refuses(options, message):
    with pytest.raises(ValueError) as caught:
        saccade_events(DIGITS.images, LABELS, **options)
    assert str(caught.value) == f"saccade_events: {message}"


def test_saccade_spikes_refuses_float_images():
    with pytest.raises(ValueError) as caught:
        saccade_spikes(DIGITS.images / 255)
    assert str(caught.value) == (
        "saccade_spikes: `images` must have dtype uint8, got float64. Scale them to 0 to 255, and cast them."
    )
