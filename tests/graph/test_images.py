"""Blocks on images and tokens: upsampling, dropout of channels, attention, pools of all pixels."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import SparseSpikes, blocks
from snnjax.blocks import Context
from tests.errors.refusals import refusals
from tests.ops.common import jit

STEPS, BATCH = 3, 2


def spikes(*shape: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random((STEPS, BATCH, *shape)) < 0.4).astype(np.float32)


def applied(block, *signals, shapes, **context):
    apply = functools.partial(block.apply, None, None, None, shapes=shapes, context=Context(**context))
    return jit(lambda *own: apply(*own).signal)(*signals)


@pytest.mark.parametrize("shape, factor", [((3, 4, 2), 2), ((5, 3), 3), ((2, 2, 1), 1)])
def test_upsampling_repeats_pixels_of_arrays_and_lists(shape: tuple[int, ...], factor: int) -> None:
    block, x = blocks.upsample(factor), spikes(*shape)
    expected = x
    for axis in range(2, x.ndim - 1):
        expected = expected.repeat(factor, axis)
    assert block.out_shape(shape) == expected.shape[2:]
    np.testing.assert_array_equal(applied(block, jnp.asarray(x), shapes=(shape,)), expected)
    lists = SparseSpikes.from_dense(jnp.asarray(x.reshape(STEPS, BATCH, -1)), int(np.prod(shape)))
    found = applied(block, lists, shapes=(shape,))
    np.testing.assert_array_equal(found.to_dense().reshape(expected.shape), expected)
    np.testing.assert_array_equal(found.num_spikes, expected.reshape(STEPS, BATCH, -1).sum(-1))


def test_dropout_of_channels_keeps_or_silences_whole_channels() -> None:
    x, key = jnp.ones((STEPS, BATCH, 4, 5, 16)), jax.random.key(1)
    found = applied(blocks.dropout(0.5, per="channel"), x, shapes=((4, 5, 16),), train=True, key=key)
    channels = found[0, :, 0, 0]
    np.testing.assert_array_equal(found, jnp.broadcast_to(channels[None, :, None, None], x.shape))
    assert set(np.unique(channels)) == {0.0, 2.0}


@pytest.mark.parametrize("heads, shape", [(1, (5, 8)), (2, (5, 8)), (4, (3, 4, 8)), (8, (2, 8))])
def test_attention_is_that_of_each_head(heads: int, shape: tuple[int, ...]) -> None:
    """Written out for each head, whichever product comes first."""
    signals = [spikes(*shape, seed=seed) for seed in range(3)]
    query, key, value = (np.split(x.reshape(STEPS, BATCH, -1, shape[-1]), heads, -1) for x in signals)
    each = [q @ k.swapaxes(-1, -2) @ v for q, k, v in zip(query, key, value, strict=True)]
    expected = 0.125 * np.concatenate(each, -1).reshape(STEPS, BATCH, *shape)
    block = blocks.spiking_attention(heads, scale=0.125)
    found = applied(block, *map(jnp.asarray, signals), shapes=(shape,) * 3)
    np.testing.assert_array_equal(found, expected)  # counts and a power of 2 are exact


def test_pools_without_a_window_are_of_all_pixels() -> None:
    assert snnjax.mean_pool().out_shape((7, 5, 3)) == (1, 1, 3)
    x = spikes(4, 4, 3)
    found = applied(snnjax.mean_pool(), jnp.asarray(x), shapes=((4, 4, 3),))
    np.testing.assert_allclose(found[:, :, 0, 0], x.mean((2, 3)), rtol=1e-6)


def test_zeros_on_every_side_are_those_of_each_axis() -> None:
    """As PyTorch pads: the image of stride 2 keeps its centre, which "same" moves for even lengths."""
    for conv, shape, padding in (
        (snnjax.conv2d, (8, 6, 2), [(1, 1), (1, 1)]),
        (snnjax.conv1d, (8, 2), [(1, 1)]),
    ):
        one, pairs = conv(3, 3, strides=2, padding=1), conv(3, 3, strides=2, padding=padding)
        assert one == pairs and one.out_shape(shape) == (*(length // 2 for length in shape[:-1]), 3)
    assert snnjax.conv2d(3, 3, padding=(2, 0)) == snnjax.conv2d(3, 3, padding=((2, 2), (0, 0)))


test_refusals = refusals(
    {
        "upsample: `factor` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: (
            blocks.upsample(0)
        ),
        "dropout: `per` must be 'neuron' or 'channel', got 'pixel'. Choose one of these.": lambda: (
            blocks.dropout(0.5, per="pixel")
        ),
        "spiking_attention: `scale` must be a number above 0, got 0. Try 0.125.": lambda: (
            blocks.spiking_attention(2, scale=0)
        ),
        "spiking_attention: `heads` must divide the channels, 6, got 4. Choose a divisor.": lambda: (
            blocks.spiking_attention(4).out_shape((3, 6), (3, 6), (3, 6))
        ),
        "spiking_attention: `signals` must be queries, keys and values of the same tokens, got (3, 6), (3, 4) and "
        "(3, 6). Make them of one signal, such as by parallel(q=..., k=..., v=...).": lambda: (
            blocks.spiking_attention().out_shape((3, 6), (3, 4), (3, 6))
        ),
        "pool_spikes: `padding` must be less than the window, [2, 2], got 2. Pad less, or choose a larger "
        "window.": lambda: snnjax.pool_spikes(jnp.ones(16), 2, shape=(4, 4, 1), padding=2),
        "max_pool: `padding` must be an integer, or one or a pair for each axis, got (1, 1, 1). Pass the pixels on "
        "every side, such as 1.": lambda: snnjax.max_pool(2, padding=(1, 1, 1)).out_shape((4, 4, 1)),
    }
)
