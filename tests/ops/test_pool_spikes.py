"""`pool_spikes`: windows in an image, of arrays and of lists."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, pool_spikes


def test_sum_of_windows_drops_what_is_left_over():
    image = jnp.arange(15.0)  # 3 x 5 pixels of one channel
    assert pool_spikes(image, (3, 5, 1), 2).tolist() == [0 + 1 + 5 + 6, 2 + 3 + 7 + 8]


def test_mean_of_windows_along_one_axis_keeps_channels_apart():
    sound = jnp.array([1.0, 10.0, 3.0, 30.0])  # two steps of two channels
    assert pool_spikes(sound, (2, 2), 2, mean=True).tolist() == [2.0, 20.0]


def test_lists_stay_lists_whose_entries_name_windows():
    spikes = SparseSpikes.from_ids(jnp.array([[0, 6, 4, 15]]), num_neurons=15)
    pooled = pool_spikes(spikes, (3, 5, 1), 2)
    assert pooled.ids.tolist() == [[0, 0, 2, 2]]  # one window twice; left over, and no neuron at all: none
    assert pooled.num_neurons == 2 and pooled.num_spikes.tolist() == [3]


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("shape, window", [((6, 4, 3), 2), ((7, 5, 2), (3, 2)), ((9, 2), 4)])
def test_lists_equal_arrays(shape: tuple[int, ...], window: int | tuple[int, ...], mean: bool):
    rng = np.random.default_rng(0)
    ids = jnp.asarray(rng.integers(-2, np.prod(shape) + 2, (4, 10)), jnp.int32)
    spikes = SparseSpikes.from_ids(ids, int(np.prod(shape)))
    lists = pool_spikes(spikes, shape, window, mean=mean)
    chex.assert_trees_all_close(
        lists.to_dense(), pool_spikes(spikes.to_dense(), shape, window, mean=mean), rtol=1e-6, strict=True
    )


def test_pools_behind_one_another_are_one():
    image = jnp.asarray(np.random.default_rng(1).integers(0, 5, 11 * 13 * 2), jnp.float32)
    twice = pool_spikes(pool_spikes(image, (11, 13, 2), 2), (5, 6, 2), (2, 3))
    chex.assert_trees_all_equal(twice, pool_spikes(image, (11, 13, 2), (4, 6)), strict=True)


def test_the_gradient_reaches_every_pixel_of_a_window():
    gradient = jax.grad(lambda image: jnp.sum(pool_spikes(image, (3, 3, 1), 2, mean=True)))(jnp.ones(9))
    assert gradient.tolist() == [0.25, 0.25, 0, 0.25, 0.25, 0, 0, 0, 0]
