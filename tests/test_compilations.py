"""Calls outside of jit compile what they need once, not in each call."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax.neurons._drive import drive

KEY = jax.random.key(0)
# Of sizes that no other test has: what a first call compiles is then not there already.
ROWS = jnp.asarray(np.random.default_rng(0).random((5, 2, 22)) < 0.3, jnp.float32)
LISTS = snnjax.SparseSpikes.from_dense(ROWS, 2)
WEIGHTS, KERNEL = jnp.ones((22, 3)), jnp.ones((3, 2, 4))
LENGTHS = jnp.array([5, 3])
NETWORK = snnjax.network(22, [snnjax.layer(6, capacity=3)], snnjax.leaky_readout(2))
CALLS: dict[str, Callable[[], Any]] = {
    "init": lambda: NETWORK.init(KEY, ROWS),
    "init with lengths": lambda: NETWORK.init(KEY, LISTS, lengths=LENGTHS),
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


def test_init_compiles_one_program_for_each_network(caplog: pytest.LogCaptureFixture) -> None:
    """And once for all networks the response of each neuron model to a spike."""
    jax.clear_caches()
    drive.cache_clear()
    assert compilations(lambda: NETWORK.init(KEY, ROWS), caplog) == 3
    deeper = [snnjax.layer(5, capacity=3), snnjax.layer(7, recurrent=True)]
    other = snnjax.network(22, deeper, snnjax.leaky_readout(3))
    assert compilations(lambda: other.init(KEY, ROWS, lengths=LENGTHS), caplog) == 1
