"""Sizes that no array can have: each public function refuses them in its own words, before it allocates anything."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import DelayedSynapses, SparseSpikes, blocks, data, encoding, neurons, online, train
from snnjax._check import MAX_SIZE, check_integer, check_size
from snnjax.cli import _OUR_ERROR

KEY = jax.random.key(0)
ROWS, IDS, COUNTS = jnp.ones((2, 5)), jnp.zeros((2, 3), jnp.int32), jnp.full(2, 3)
IMAGES, LISTED = np.zeros((2, 8, 8), np.uint8), np.full((1, 2), 3, np.int32)
RECORDINGS = [(np.array([0.0]), np.array([0]))]
PIXELS = np.array([(1, 1, 1, 0)], [("x", "i4"), ("y", "i4"), ("t", "i8"), ("p", "i4")])
LAYER = snnjax.LIFLayer(jnp.ones((5, 3)), 0.9)
READOUT = snnjax.leaky_readout(2)
NETWORK = snnjax.network(5, [snnjax.layer(4)], READOUT)
PARAMS = jax.jit(NETWORK.init)(KEY)
SYNAPSES = snnjax.Synapses.from_mask(np.ones((3, 3), bool))
DELAYED = DelayedSynapses.of(SYNAPSES, jnp.ones(9))
CELLS = neurons.cuba_lif(
    tau=20.0, synaptic_taus=(5.0,), rest=0.0, threshold=1.0, reset=0.0, refractory=1.0, dt=0.1
)


def events(num_neurons, num_classes=2) -> data.EventDataset:
    ids = np.zeros((1, 2, 3), np.uint16 if num_neurons == 5 else np.int32)
    return data.EventDataset(ids, LISTED, np.zeros(1, np.int32), num_neurons, num_classes)


def convolved(**options):
    options = {"channels": 2, "kernel": 3} | options
    return snnjax.network((4, 4, 1), [snnjax.layer(snnjax.conv2d(**options))], READOUT)


def pooled(**options):
    return snnjax.pool_spikes(jnp.ones((2, 16)), **({"shape": (4, 4, 1), "window": 2} | options))


def simulated(**options):
    state = snnjax.simulation_state(CELLS, DELAYED)
    return snnjax.simulate(CELLS, DELAYED, state, **({"steps": 2} | options))


def conv(**options):
    return snnjax.spike_conv(jnp.ones((2, 16)), jnp.ones((3, 3, 1, 2)), **({"shape": (4, 4, 1)} | options))


SIZES: dict[str, Callable[[Any], Any]] = {
    "SparseSpikes": lambda n: SparseSpikes(IDS, jnp.ones((2, 3)), COUNTS, COUNTS, COUNTS, n),
    "SparseSpikes.from_dense": lambda n: SparseSpikes.from_dense(ROWS, n),
    "SparseSpikes.from_ids": lambda n: SparseSpikes.from_ids(IDS, n),
    "select_spikes": lambda n: snnjax.select_spikes(ROWS, 1.0, 0.9, capacity=n),
    "delay_spikes": lambda n: snnjax.delay_spikes(ROWS[None], jnp.ones(5), max_delay=n),
    "simulate, steps": lambda n: simulated(steps=n),
    "simulate, capacity": lambda n: simulated(capacity=n),
    "DelayedSynapses.of, delays": lambda n: DelayedSynapses.of(SYNAPSES, jnp.ones(9), n),
    "DelayedSynapses.of, max_delay": lambda n: DelayedSynapses.of(SYNAPSES, jnp.ones(9), max_delay=n),
    "DelayedSynapses.of, blocks": lambda n: DelayedSynapses.of(SYNAPSES, jnp.ones(9), blocks=n),
    "PoissonInput.of": lambda n: snnjax.PoissonInput.of(rate=1.0, weight=1.0, dt=0.1, receptor=n),
    "Synapses.with_probability, num_neurons": lambda n: SYNAPSES.with_probability(KEY, n, 3, 0.5),
    "Synapses.with_probability, num_targets": lambda n: SYNAPSES.with_probability(KEY, 3, n, 0.5),
    "pool_spikes, window": lambda n: pooled(window=n),
    "pool_spikes, strides": lambda n: pooled(strides=n),
    "pool_spikes, shape": lambda n: pooled(shape=(n, 4, 1)),
    "spike_conv, shape": lambda n: conv(shape=(n, 4, 1)),
    "spike_conv, strides": lambda n: conv(strides=n),
    "spike_conv, dilation": lambda n: conv(dilation=n),
    "spike_conv, input_dilation": lambda n: conv(input_dilation=n),
    "spike_conv, strides of a transposed convolution": lambda n: conv(input_dilation=n, strides=n),
    "spike_conv, padding": lambda n: conv(padding=((n, n), (0, 0))),
    "spike_conv, groups": lambda n: conv(groups=n),
    "lif_network, chunk": lambda n: snnjax.lif_network(ROWS[None], [LAYER], chunk=n),
    "lif_network, capacity": lambda n: snnjax.lif_network(ROWS[None], [LAYER], capacity=n),
    "lif_network_state": lambda n: snnjax.lif_network_state(n, [LAYER]),
    "network": lambda n: snnjax.network(n, [snnjax.layer(4)], READOUT),
    "network, image": lambda n: snnjax.network((n, 4, 1), [snnjax.layer(4)], READOUT),
    "network.apply": lambda n: NETWORK.apply(PARAMS, None, ROWS[None], chunk=n),
    "network.initial_state": lambda n: NETWORK.initial_state(PARAMS, n),
    "layer": snnjax.layer,
    "layer, capacity": lambda n: snnjax.layer(4, capacity=n),
    "dense": snnjax.dense,
    "leaky_readout": snnjax.leaky_readout,
    "spiking_readout": snnjax.spiking_readout,
    "axonal": snnjax.axonal,
    "conv1d": lambda n: snnjax.conv1d(n, 3),
    "conv2d, channels": lambda n: convolved(channels=n),
    "conv2d, kernel": lambda n: convolved(kernel=n),
    "conv2d, strides": lambda n: convolved(strides=n),
    "conv2d, padding": lambda n: convolved(padding=((n, n), (0, 0))),
    "conv2d, groups": lambda n: convolved(groups=n),
    "conv2d, dilation": lambda n: convolved(dilation=n),
    "conv2d_transpose": lambda n: snnjax.network((4, 4, 1), [blocks.conv2d_transpose(2, 3, strides=n)]),
    "max_pool, strides": lambda n: snnjax.network((4, 4, 1), [snnjax.max_pool(2, strides=n)]),
    "sum_pool": lambda n: snnjax.network((4, 4, 1), [snnjax.sum_pool(n), snnjax.layer(3)], READOUT),
    "refractory": lambda n: neurons.refractory(neurons.lif(), n),
    **{
        f"{name}.init": lambda n, name=name: getattr(neurons, name)().init(KEY, n)
        for name in train.tasks.NEURONS
    },
    **{
        f"{name}.initial_state": lambda n, name=name: (own := getattr(neurons, name)()).initial_state(
            own.init(KEY, 3), n, 3
        )
        for name in train.tasks.NEURONS
    },
    "bin_events, num_steps": lambda n: data.bin_events([0], [3], n, 4),
    "bin_events, num_neurons": lambda n: data.bin_events([0], [3], 2, n),
    "bin_events, capacity": lambda n: data.bin_events([0], [3], 2, 4, capacity=n),
    "EventDataset, num_neurons": events,
    "EventDataset, num_classes": lambda n: events(5, n),
    "EventDataset.from_events, num_steps": lambda n: data.EventDataset.from_events(
        RECORDINGS, [0], n, 3, num_classes=2
    ),
    "EventDataset.from_events, num_neurons": lambda n: data.EventDataset.from_events(
        [], [], 2, n, num_classes=2
    ),
    "EventDataset.channels_last": lambda n: events(5).channels_last(n),
    "saccade_events, num_steps": lambda n: data.saccade_events(IMAGES, [0, 1], num_steps=n),
    "saccade_events, margin": lambda n: data.saccade_events(IMAGES, [0, 1], margin=n),
    "make_inner_ear, sample_rate": lambda n: data.make_inner_ear(n, 100, 10),
    "make_inner_ear, num_samples": lambda n: data.make_inner_ear(8000, n, 10),
    "make_inner_ear, num_channels": lambda n: data.make_inner_ear(8000, 100, n),
    "batches, num_samples": lambda n: data.batches(KEY, n, 4),
    "batches, batch_size": lambda n: data.batches(KEY, 5, n),
    "batches, epoch": lambda n: data.batches(KEY, 5, 2, epoch=n),
    "camera_events, height": lambda n: data.camera_events(PIXELS, height=n, width=3),
    "camera_events, width": lambda n: data.camera_events(PIXELS, height=3, width=n),
    "rate_encode": lambda n: encoding.rate_encode(KEY, ROWS, n),
    "latency_encode": lambda n: encoding.latency_encode(ROWS, n),
    "latency_spikes, num_steps": lambda n: encoding.latency_spikes(ROWS, n, 2),
    "latency_spikes, capacity": lambda n: encoding.latency_spikes(ROWS, 2, n),
    "online.truncated": lambda n: online.truncated(NETWORK, lambda *_: jnp.zeros(()), window=n),
    "online.ottt": lambda n: online.ottt(NETWORK, lambda *_: jnp.zeros(()), rate_window=n),
    "TrainConfig, batch_size": lambda n: train.TrainConfig(batch_size=n),
    "TrainConfig, epochs": lambda n: train.TrainConfig(epochs=n),
    "TaskSettings, samples": lambda n: train.TaskSettings("digits", samples=n),
}
TOO_LARGE = (2**31, 2**33, 2**63, 10**30)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_do_not_fit_are_refused(name: str) -> None:
    for size in (*TOO_LARGE, -1, 2.0, 2.5, True):
        with pytest.raises(ValueError) as caught:
            SIZES[name](size)
        assert _OUR_ERROR.match(str(caught.value)), f"{size!r}: {caught.value}"


@pytest.mark.parametrize("size", TOO_LARGE)
def test_the_error_names_the_limit(size) -> None:
    with pytest.raises(ValueError) as caught:
        SparseSpikes.from_ids(IDS, size)
    text = "SparseSpikes.from_ids: `num_neurons` must be below 2**31, got {}. Pass a smaller integer."
    assert str(caught.value) == text.format(repr(size))


def test_numpy_integers_have_the_same_limit() -> None:
    for size in (np.int64(2**31), np.uint64(2**63)):
        with pytest.raises(ValueError, match=r"`num_neurons` must be below 2\*\*31, got np"):
            SparseSpikes.from_ids(IDS, size)


def test_numpy_integers_are_read_as_those_of_python() -> None:
    """Sums and products of uint8 would overflow, which is a warning, and of it and an array not be promoted."""
    size = np.uint8(200)
    assert type(check_integer("op", "size", size, 0)) is type(check_size("op", "size", size)) is int
    spikes = SparseSpikes(IDS.astype(jnp.uint8), None, COUNTS, COUNTS, COUNTS, size)
    assert type(spikes.num_neurons) is type(SYNAPSES.__class__(IDS[0], IDS[0], size).num_targets) is int
    assert spikes.to_dense().shape == (2, 200)


@pytest.mark.parametrize(
    "shape, layer",
    [
        (2**24 + 1, snnjax.layer(2**24)),
        ((4, 4, 1), snnjax.layer(2**24 + 1, recurrent=True)),
        (
            (4, 4, 1),
            snnjax.layer(2**14, recurrent=[snnjax.dense(2**28), snnjax.dense(2**28), snnjax.dense(2**14)]),
        ),
        ((2**30, 2**30, 1), snnjax.layer(2)),
        ((4, 4, 1), snnjax.layer(snnjax.conv2d(2, 2**30))),
    ],
)
def test_sizes_whose_product_is_too_large_are_refused(shape, layer) -> None:
    with pytest.raises(ValueError, match=r"^(network: `inputs`|(dense|conv2d): `weights`) must be at most"):
        snnjax.network(shape, [layer], READOUT)


def test_the_largest_size_is_taken() -> None:
    spikes = SparseSpikes.from_ids(IDS, MAX_SIZE)
    assert spikes.num_neurons == MAX_SIZE == jnp.iinfo(jnp.int32).max
    assert snnjax.network(MAX_SIZE, [snnjax.layer(4)], READOUT).num_inputs == MAX_SIZE
