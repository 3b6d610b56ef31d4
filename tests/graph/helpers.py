"""Code shared by the network tests: small inputs, and a function that returns values and all gradients."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import Network, blocks
from snnjax._types import Params, Signal, State, Stats
from snnjax.blocks.linear import LinearParams
from tests.numbers import array
from tests.ops.common import jit, weighted_sum

STEPS, BATCH, INPUTS = 20, 3, 10


def random_spikes(rate: float, steps: int = STEPS, batch: int = BATCH, inputs: int = INPUTS, seed: int = 0):
    rng = np.random.default_rng(seed)
    return array(rng.random((steps, batch, inputs)) < rate, jnp.float32)


def initial(net: Network, *arguments, seed: int = 0, **options):
    """Parameters, compiled as one program: many times faster than one operation after the other."""
    return jit(lambda key, *rest: net.init(key, *rest, **options))(jax.random.key(seed), *arguments)


def louder(params: Params, factor: float = 2.0):
    """Parameters with larger weights, so that lists of a few slots overflow."""
    times = lambda own: own._replace(weights=own.weights * jnp.asarray(factor, own.weights.dtype))  # noqa: E731
    return {name: times(own) if isinstance(own, LinearParams) else own for name, own in params.items()}


def with_gradients(apply: Callable[..., Any]) -> Callable[..., Any]:
    """``(params, state, inputs, **traced) -> (output, new state), (loss, gradients by params, state and inputs)``.

    The loss sees every float entry of the output and of the new state.
    """

    def of(params: Params, state: State, inputs: Signal, **traced):
        def loss(params: Params, state: State, inputs: Signal) -> tuple[jax.Array, Any]:
            results = apply(params, state, inputs, **traced)
            return weighted_sum(results), results

        by_all = jax.value_and_grad(loss, (0, 1, 2), has_aux=True, allow_int=True)
        (value, results), gradients = by_all(params, state, inputs)
        # Integers, as in lists and refractory counters, have no gradient.
        return results, (
            value,
            jax.tree.map(lambda g: None if g.dtype == jax.dtypes.float0 else g, gradients),
        )

    return of


@dataclasses.dataclass(frozen=True)
class Sums(blocks.Block):
    """A block of one's own: sums over all steps so far, without a state."""

    kind = "sums"

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return blocks.BlockResult(jnp.cumsum(blocks.dense_signal(signals[0], shapes[0]), axis=0))


@dataclasses.dataclass(frozen=True)
class CarriedSums(Sums):
    """The same with a state."""

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes):
        return jnp.zeros((batch, *shapes[0]), jnp.float32)

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        x = blocks.dense_signal(signals[0], shapes[0])
        sums = jnp.cumsum(jnp.concatenate([state.astype(x.dtype)[None], x]), axis=0)
        return blocks.BlockResult(sums[1:], sums[-1].astype(state.dtype))


@dataclasses.dataclass(frozen=True)
class Totals(Sums):
    """The sum over all calls as its stats, which may be cut."""

    def needs_all_steps(self, train: bool) -> bool:
        return False

    def initial_stats(self, key, *shapes):
        return jnp.float32(0)

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        total = jnp.sum(blocks.dense_signal(signals[0], shapes[0])).astype(stats.dtype)
        return blocks.BlockResult(signals[0], state, stats + total)
