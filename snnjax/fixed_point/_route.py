"""`Route`: what spikes pass on their way to the neurons of a layer, and `drive_of`, the sums that arrive."""

import dataclasses
import math
from dataclasses import dataclass

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from snnjax._quantised import Quantised
from snnjax.blocks.conv import Convolve
from snnjax.blocks.pool import Pool
from snnjax.graph.layers import ChainLayer
from snnjax.ops._convolution import Convolution
from snnjax.ops.pool_spikes import Pooling, pooled
from snnjax.ops.spike_conv import spike_conv
from snnjax.ops.spike_matmul import spike_matmul


@dataclass(frozen=True)
class Route:
    """Pools, and then a convolution or dense weights. All pools are sums: weights behind a mean divide."""

    pools: tuple[Pooling, ...] = ()
    convolution: Convolution | None = None

    @property
    def num_inputs(self) -> int | None:
        """The number of inputs, None where only the weights know it."""
        first = (*self.pools, self.convolution)[0]
        return None if first is None else first.num_inputs

    @property
    def factor(self) -> float:
        """What weights of the network are multiplied by."""
        return math.prod(pooling.scale for pooling in self.pools)

    def fan_in(self, num_inputs: int) -> int:
        """How many neurons may spike for one, of as many inputs of dense weights."""
        windows = math.prod(math.prod(pooling.window) for pooling in self.pools)
        return windows * (num_inputs if self.convolution is None else round(self.convolution.fan_in))


DENSE = Route()


def route_of(layer: ChainLayer) -> Route:
    """The way of spikes through a layer."""
    pools, shape = list[Pooling](), layer.in_shape
    for node in layer.before:
        if isinstance(node.block, Pool):
            pools.append(node.block.pooling(shape))
        shape = node.block.out_shape(shape)
    block = layer.connection.block
    return Route(tuple(pools), block.geometry(shape) if isinstance(block, Convolve) else None)


def pooled_on(route: Route, spikes: Array) -> Array:
    """The spikes behind the pools."""
    for pooling in route.pools:
        spikes = pooled(dataclasses.replace(pooling, how="sum"), spikes.astype(jnp.float32))
    return spikes


def drive_of(
    weights: Array, shift: ArrayLike, spikes: Array, route: Route = DENSE
) -> Float[Array, "*axes synapses batch neurons"]:
    """The sums of the weights of all spikes, float32 that holds integers: exact within the bounds of `_refuse`."""
    spikes = pooled_on(route, spikes)
    if route.convolution is not None:
        options = route.convolution.options
        sums = jnp.stack([spike_conv(spikes, own.astype(jnp.float32), **options) for own in weights], axis=-3)
    else:
        synapses, inputs, neurons = weights.shape
        flat = jnp.moveaxis(weights, 0, 1).reshape(inputs, synapses * neurons)
        if flat.dtype == jnp.int8:
            flat = Quantised(flat, jnp.ones(synapses * neurons, jnp.float32))
        found = spike_matmul(spikes, flat).reshape(*spikes.shape[:-1], synapses, neurons)
        sums = jnp.moveaxis(found, -2, -3)
    return sums * (1 << jnp.asarray(shift, jnp.int32)).astype(jnp.float32)
