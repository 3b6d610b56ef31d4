"""Calls outside of jit compile what they need once, not in each call."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import snnjax

KEY = jax.random.key(0)
ROWS = jax.random.bernoulli(KEY, 0.3, (5, 2, 8)).astype(jnp.float32)
LISTS = snnjax.SparseSpikes.from_dense(ROWS, 2)
WEIGHTS, KERNEL = jnp.ones((8, 3)), jnp.ones((3, 2, 4))
NETWORK = snnjax.network(8, [snnjax.layer(6, capacity=3)], snnjax.leaky_readout(2))
CALLS: dict[str, Callable[[], Any]] = {
    "init": lambda: NETWORK.init(KEY, ROWS),
    "init with lengths": lambda: NETWORK.init(KEY, LISTS, lengths=[5, 3]),
    "select_spikes": lambda: snnjax.select_spikes(ROWS, 0.5, 0.4, capacity=2, implementation="composed"),
    **{
        f"{op} of {form}": lambda call=call, spikes=spikes: call(spikes)
        for form, spikes in (("rows", ROWS), ("lists", LISTS))
        for op, call in (
            ("spike_matmul", lambda x: snnjax.spike_matmul(x, WEIGHTS, implementation="composed")),
            ("spike_conv", lambda x: snnjax.spike_conv(x, KERNEL, shape=(4, 2), implementation="composed")),
        )
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_a_second_call_compiles_nothing(name: str, caplog: pytest.LogCaptureFixture) -> None:
    def compilations() -> int:
        caplog.clear()
        with jax.log_compiles():
            jax.block_until_ready(CALLS[name]())
        return sum("Finished XLA compilation" in record.getMessage() for record in caplog.records)

    jax.clear_caches()
    assert compilations() > 0
    assert compilations() == 0
