"""`jax.export` of networks, with the lengths of batch and time left open."""

import functools

import chex
import jax
import jax.numpy as jnp
import pytest
from jax import export

from snnjax import (
    Network,
    axonal,
    blocks,
    conv2d,
    layer,
    leaky_readout,
    losses,
    network,
    neurons,
    parallel,
    residual,
    spiking_readout,
    sum_pool,
)
from snnjax._types import Params, Signal
from tests.graph.helpers import initial, random_spikes
from tests.ops.common import jit

INPUTS = 12
KERNELS = ("lif_network", "lif_network_backward", "spike_matmul", "spike_matmul_weights_backward")
NETWORKS = {
    "listed and recurrent": network(
        INPUTS, [layer(8, capacity=3), layer(8, neurons.adlif(), recurrent=True)], spiking_readout(4)
    ),
    "delayed and convolutional": network(
        (2, 3, 2), [axonal(3), layer(conv2d(4, 2)), sum_pool(2), layer(6)], leaky_readout(4)
    ),
    "scanned": network(INPUTS, [layer(8, neurons.izhikevich())], leaky_readout(4)),
    "skips": network(
        INPUTS,
        [
            residual([layer(INPUTS, capacity=4)]),
            parallel(a=layer(5, capacity=3), b=[layer(4), blocks.layer_norm()], c=None),
            layer(INPUTS).named("late").receiving("residual_0"),
            blocks.join("multiply").receiving("late", "input"),
        ],
        leaky_readout(4),
    ),
}


def gradients(net: Network, implementation: str | None, params: Params, inputs: Signal, labels):
    def loss(params: Params) -> jax.Array:
        output, _ = net.apply(params, None, inputs, implementation=implementation)
        return losses.cross_entropy_sum(output.output, labels)

    return jax.value_and_grad(loss)(params)


@pytest.mark.parametrize("implementation", [None, "reference"])
@pytest.mark.parametrize("name", NETWORKS)
def test_loss_and_gradients_of_open_lengths_are_those_of_given_ones(
    name: str, implementation: str | None
) -> None:
    net = NETWORKS[name]
    params = initial(net)
    time, batch = export.symbolic_shape("time, batch")
    opened = (
        jax.ShapeDtypeStruct((time, batch, INPUTS), jnp.float32),
        jax.ShapeDtypeStruct((batch,), jnp.int32),
    )
    allowed = [export.DisabledSafetyCheck.custom_call(f"snnjax_{kernel}") for kernel in KERNELS]
    compiled = jit(functools.partial(gradients, net, implementation))
    exported = export.export(compiled, disabled_checks=allowed if implementation is None else ())(
        params, *opened
    )
    for steps, sequences in ((7, 3), (1, 2)):
        given = random_spikes(0.3, steps, sequences, INPUTS), jnp.arange(sequences, dtype=jnp.int32)
        # The same sums, divided among threads by other bounds of the batch: a few ulp.
        chex.assert_trees_all_close(
            exported.call(params, *given), compiled(params, *given), rtol=1e-5, atol=1e-5, strict=True
        )
