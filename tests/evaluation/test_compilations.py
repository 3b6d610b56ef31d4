"""Calls outside of jit compile what they need once, not in each call."""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import blocks, encoding, event_times, online
from snnjax._types import Params
from snnjax.blocks.block import Block, Stepwise
from snnjax.neurons._drive import drive
from tests.numbers import array

KEY = jax.random.key(0)
# Of sizes that no other test has: what a first call compiles is then not there already.
ROWS = array(np.random.default_rng(0).random((5, 2, 22)) < 0.3, jnp.float32)
LISTS = snnjax.SparseSpikes.from_dense(ROWS, 2)
WEIGHTS, KERNEL = jnp.ones((22, 3)), jnp.ones((3, 2, 4))
LENGTHS = jnp.array([5, 3])
SERIES, TIMES = ROWS + 0.5, jnp.linspace(0.0, 1.0, 44).reshape(2, 22)
NETWORK = snnjax.network(22, [snnjax.layer(6, capacity=3)], snnjax.leaky_readout(2))
PARAMS = jax.jit(NETWORK.init)(KEY)
WINDOW = online.truncated(NETWORK, lambda output, _: jnp.sum(output**2), window=3)
CALLS: dict[str, Callable[[], Any]] = {
    "init": lambda: NETWORK.init(KEY, ROWS),
    "init with lengths": lambda: NETWORK.init(KEY, LISTS, lengths=LENGTHS),
    "delta_encode": lambda: encoding.delta_encode(SERIES, 0.25),
    "synapses": lambda: snnjax.Synapses.fixed_fan_in(KEY, 22, 7, fan_in=3),
    "first spike times": lambda: jax.grad(
        lambda times: jnp.sum(event_times.first_spike_times(times, WEIGHTS, threshold=0.1))
    )(TIMES),
    "delayed_spike_matmul": lambda: jax.grad(
        lambda weights: jnp.sum(
            snnjax.delayed_spike_matmul(ROWS, weights, WEIGHTS, max_delay=2, implementation="composed")[0]
        )
    )(WEIGHTS),
    "truncated": lambda: WINDOW.step(PARAMS, WINDOW.init(PARAMS, 2), ROWS[0], jnp.zeros(2)),
    "select_spikes": lambda: snnjax.select_spikes(ROWS, 0.5, 0.4, capacity=2, implementation="composed"),
    **{
        f"{op} of {form}": lambda call=call, spikes=spikes: call(spikes)
        for form, spikes in (("rows", ROWS), ("lists", LISTS))
        for op, call in (
            ("spike_matmul", lambda x: snnjax.spike_matmul(x, WEIGHTS, implementation="composed")),
            ("spike_conv", lambda x: snnjax.spike_conv(x, KERNEL, shape=(11, 2), implementation="composed")),
        )
    },
}


IMAGE = snnjax.axonal(2), snnjax.conv1d(3, 3), blocks.conv1d_transpose(3, 2), blocks.max_rate_pool(2)
CONNECTIONS = snnjax.synaptic(snnjax.sparse(7, fan_in=3), 2), blocks.batch_norm(), snnjax.sparse(8, fan_in=2)
LATE = snnjax.axonal(3, min_delay=1), snnjax.dense(8, bias=False)
TOKEN = snnjax.layer(snnjax.conv1d(2, 1))
# Together, they have all blocks.
NETWORKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "few rows": ([snnjax.layer(6), blocks.layer_norm(), snnjax.residual(snnjax.layer(6), join="either")], {}),
    "images": ([*IMAGE, snnjax.sum_pool(2), snnjax.flatten(), snnjax.neurons.psn(num_steps=5)], {}),
    "connections": ([*CONNECTIONS, blocks.dropout(0.5), snnjax.neurons.izhikevich()], {"train": True}),
    "late": ([snnjax.layer(8, snnjax.neurons.izhikevich(), recurrent=LATE)], {"lengths": LENGTHS}),
    "in chunks": ([snnjax.layer(6, recurrent=True, capacity=3)], {"chunk": 2}),
    "images of tokens": (
        [
            blocks.upsample(2),
            snnjax.parallel(q=TOKEN, k=TOKEN, v=TOKEN, join=blocks.spiking_attention()),
        ],
        {},
    ),
    "composed": ([snnjax.layer(6)], {"implementation": "composed", "record": "membranes"}),
}


def made(name: str):
    shape = (11, 2) if name.startswith("images") else 22
    return snnjax.network(shape, NETWORKS[name][0], snnjax.leaky_readout(2))


def compilations(call: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> int:
    """The number of programs that a call compiles."""
    caplog.clear()
    with jax.log_compiles():
        jax.block_until_ready(call())
    return sum("Finished XLA compilation" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("name", CALLS)
def test_a_second_call_compiles_nothing(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert compilations(CALLS[name], caplog) > 0
    assert compilations(CALLS[name], caplog) == 0


@pytest.mark.parametrize("name", NETWORKS)
def test_a_second_gradient_compiles_nothing(name: str, caplog: pytest.LogCaptureFixture) -> None:
    net, options = made(name), NETWORKS[name][1]
    params, stats = net.init(KEY), net.initial_stats(KEY)

    def loss(params: Params):
        return jnp.sum(net.apply(params, None, ROWS, stats=stats, key=KEY, **options)[0].output ** 2)

    for call in (loss, jax.grad(loss)):
        assert compilations(lambda call=call: call(params), caplog) > 0
        assert compilations(lambda call=call: call(params), caplog) == 0


def test_all_blocks_are_among_these_networks() -> None:
    def leaves(kind: type) -> set[type]:
        # Examples in docstrings define blocks as well, which are not in the module.
        is_there = getattr(sys.modules[kind.__module__], kind.__name__, None) is kind
        is_public = kind.__module__.startswith("snnjax.") and not kind.__name__.startswith("_")
        own = {kind} if is_there and is_public else set()
        return own.union(*map(leaves, kind.__subclasses__()))

    abstract = {Block, Stepwise, blocks.Linear}
    found = {type(node.block) for name in NETWORKS for node in made(name).nodes}
    assert found >= leaves(Block) - abstract


def test_arrays_become_lists_and_lists_arrays_by_one_program(caplog: pytest.LogCaptureFixture) -> None:
    assert compilations(lambda: snnjax.SparseSpikes.from_dense(ROWS, 5), caplog) == 1
    assert compilations(LISTS.to_dense, caplog) == 1


def test_init_compiles_one_program_for_each_network(caplog: pytest.LogCaptureFixture) -> None:
    """And once for all networks the response of each neuron model to a spike."""
    jax.clear_caches()
    drive.cache_clear()
    assert compilations(lambda: NETWORK.init(KEY, ROWS), caplog) == 3
    deeper = [snnjax.layer(5, capacity=3), snnjax.layer(7, recurrent=True)]
    other = snnjax.network(22, deeper, snnjax.leaky_readout(3))
    assert compilations(lambda: other.init(KEY, ROWS, lengths=LENGTHS), caplog) == 1
