"""Forward mode and second order through a network: Hessian-vector products against differences of the gradient."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from snnjax import axonal, conv1d, dense, layer, leaky_readout, network, neurons, sum_pool
from snnjax.surrogates import Surrogate
from tests.graph.helpers import random_spikes
from tests.numbers import assert_close
from tests.ops.common import jit

SMOOTH = Surrogate("superspike", 3.0, smooth=True)
# Everything is listed and learned, resets included: the relaxed network is then a smooth function.
OPTIONS: Any = {"surrogate": SMOOTH, "detach_reset": False, "learn_threshold": True}
LISTED: Any = {"capacity": 12, "second_threshold": -1e9}
NETWORK = network(
    (6, 1),
    [
        layer(conv1d(2, 3), neurons.lif(learn_decay=True, **OPTIONS), **LISTED),
        sum_pool(2),
        layer([axonal(3), dense(4)], neurons.adlif(**OPTIONS), recurrent=[axonal(3), dense(4)]),
    ],
    leaky_readout(2, learn_decay=True),
)
STEP = (
    1e-6  # of central differences in float64: an error of 1e-10 by rounding, of 1e-12 by the third derivative
)


def test_derivatives_of_a_network_equal_finite_differences() -> None:
    with jax.enable_x64(True):
        params = NETWORK.init(jax.random.key(0), dtype=jnp.float64)
        inputs, lengths = jnp.asarray(random_spikes(0.4, 5, 2, 6), jnp.float64), jnp.array([5, 3])
        point, unravel = ravel_pytree(params)
        direction = jax.random.normal(jax.random.key(1), point.shape, jnp.float64)

        def loss(flat):
            out, _ = NETWORK.apply(unravel(flat), None, inputs, lengths=lengths, implementation="composed")
            return jnp.sum(jnp.sin(out.output)) + sum(jnp.sum(each**2) for each in out.activity.values())

        compiled = jit(lambda flat: jax.jvp(jax.value_and_grad(loss), (flat,), (direction,)))

        def run(flat):
            return jax.tree.map(np.asarray, compiled(flat))

        (_, gradient), (slope, product) = run(point)
        (above, after), _ = run(point + STEP * direction)
        (below, before), _ = run(point - STEP * direction)
    chex.assert_trees_all_close(slope, np.vdot(gradient, np.asarray(direction)), rtol=1e-12, strict=True)
    assert_close(slope, (above - below) / (2 * STEP), of_largest=1e-7)
    assert_close(product, (after - before) / (2 * STEP), of_largest=1e-7)
