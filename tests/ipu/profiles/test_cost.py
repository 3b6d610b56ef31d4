"""`cost_analysis` of a compiled program: what it asks of any machine, under the names that XLA uses."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X, W = np.ones((64, 32), np.float32), np.ones((32, 16), np.float32)


def cost_of(device: jax.Device, function: Callable[..., Any], *arrays) -> dict[str, float]:
    placed = [jax.device_put(each, device) for each in arrays]
    return jax.jit(function).lower(*placed).compile().cost_analysis()


@pytest.mark.parametrize("function", [lambda x, w: x @ w, lambda x, w: (jnp.exp(x) + 1, w)[0]])
def test_products_and_chains_are_counted_as_on_the_cpu(ipus: list[jax.Device], function) -> None:
    ours, theirs = (cost_of(device, function, X, W) for device in (ipus[0], jax.devices("cpu")[0]))
    for name in ("flops", "transcendentals", "bytes accessed"):
        assert ours[name] == theirs.get(name, 0)


def test_loops_count_as_often_as_they_run(ipus: list[jax.Device]) -> None:
    def looped(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 10, lambda _, x: x @ w @ w.T, x)

    assert cost_of(ipus[0], looped, X, W)["flops"] == 10 * 2 * (2 * 64 * 32 * 16)


def test_the_branch_with_most_bytes_counts(ipus: list[jax.Device]) -> None:
    def branched(i: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.switch(i, [lambda: w, lambda: x.T @ x @ w, lambda: w + 1])

    products, clamped = 2 * (32 * 64 * 32 + 32 * 32 * 16), 2  # the index is clamped to the branches there are
    assert cost_of(ipus[0], branched, np.int32(0), X, W)["flops"] == products + clamped


def test_windows_count_as_what_they_move(ipus: list[jax.Device]) -> None:
    i = np.zeros(8, np.int32)
    row, index = 32 * 4, 4
    assert cost_of(ipus[0], lambda x, i: x[i], X, i)["bytes accessed"] >= 8 * (2 * row + index)
    assert (
        cost_of(ipus[0], lambda x, i: lax.dynamic_slice_in_dim(x, i[0], 2), X, i)["bytes accessed"] < X.nbytes
    )
    added = cost_of(ipus[0], lambda x, i: x.at[i].add(1.0), X, i)
    assert added["flops"] >= 8 * 32
    assert added["bytes accessed"] < 2 * X.nbytes


def test_views_cost_nothing(ipus: list[jax.Device]) -> None:
    cost = cost_of(ipus[0], lambda x: x[:, ::2].T.reshape(-1, 4), X)
    assert set(cost.values()) == {0.0}
