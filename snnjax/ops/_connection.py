"""How the spikes in front of a layer become its current: delayed, pooled, and then convolved or multiplied densely."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._quantised import whole
from snnjax._types import sum_dtype, wide
from snnjax.ops._convolution import Convolution
from snnjax.ops.pool_spikes import Pooling
from snnjax.ops.spike_matmul import dense_product, without_zeros


@jax.tree_util.register_static
@dataclass(frozen=True)
class Connection:
    """What is static about a connection; without pooling and convolution it is dense weights alone."""

    pooling: Pooling | None = None
    convolution: Convolution | None = None
    rounds_cotangents: bool = False  # to bfloat16, with the dense weights, before they are multiplied
    max_delay: int | None = None  # of what comes in, in steps; None: it arrives at once

    @property
    def parts(self) -> tuple[Any, ...]:
        """The geometries that it is made of, in their order; dense weights have none."""
        fields = (getattr(self, field.name) for field in dataclasses.fields(self))
        return tuple(each for each in fields if dataclasses.is_dataclass(each))

    def num_inputs(self, weights: tuple[int, ...]) -> int:
        """The width of what comes in, from the shape of the weights."""
        if self.pooling is not None:
            return self.pooling.num_inputs
        return weights[0] if self.convolution is None else self.convolution.num_inputs

    def num_outputs(self, weights: tuple[int, ...]) -> int:
        """The width of the current, from the shape of the weights."""
        return weights[-1] if self.convolution is None else self.convolution.num_outputs

    def weights_shape(self, inputs: int) -> tuple[int | None, ...]:
        """The shape that weights must have behind so many inputs; None is any length."""
        if self.convolution is not None:
            return self.convolution.weights_shape
        return inputs if self.pooling is None else self.pooling.num_outputs, None

    def num_pairs(self, weights: tuple[int, ...]) -> int:
        """Inputs times the weights that each of them meets, from the shape of the weights."""
        pairs = math.prod(weights) if self.convolution is None else self.convolution.num_pairs
        return pairs if self.pooling is None else pairs * math.prod(self.pooling.window)

    def fan_out(self, weights: Any) -> Array:
        """How many weights other than 0 a spike of each input meets, float32 ``[inputs]``."""
        there = (whole(weights) != 0).astype(jnp.float32)
        if self.convolution is None:
            fan_out = jnp.sum(there, axis=1)
        else:
            everywhere = jnp.ones((1, self.convolution.num_outputs), jnp.float32)
            fan_out = self.convolution.transpose_inputs(there, everywhere)[0]
        if self.pooling is None:
            return fan_out
        # As many in front of a mean as in front of a sum; an input in no window meets none.
        rows = jax.ShapeDtypeStruct((self.pooling.num_inputs,), jnp.float32)
        return jax.linear_transpose(dataclasses.replace(self.pooling, mean=False).pool, rows)(fan_out)[0]

    def pool(self, rows: Array) -> Array:
        """What reaches the weights of dense rows ``[rows, inputs]``."""
        return rows if self.pooling is None else self.pooling.pool(rows)

    def current(self, rows: Array, weights: Any) -> Array:
        """The current of dense rows ``[rows, inputs]``, in the accumulation dtype."""
        return self._product(self.pool(rows), weights)

    def _product(self, rows: Array, weights: Any) -> Array:
        if self.convolution is None:
            return dense_product(rows, weights)
        return without_zeros(self.convolution.convolve, rows, weights)

    def backward(self, rows: Array, weights: Array, g: Array) -> tuple[Array, Array]:
        """The cotangents of the rows and of the weights, in the accumulation dtype, from that of the current."""
        pooled, dtype = self.pool(rows), sum_dtype(g.dtype)
        if self.convolution is None:
            carried = (g, weights)
            if self.rounds_cotangents:
                carried = (g.astype(jnp.bfloat16), weights.astype(jnp.bfloat16))
            g_pooled = jnp.matmul(carried[0], carried[1].T, preferred_element_type=dtype)
            g_weights = jnp.matmul(pooled.T, g, preferred_element_type=dtype)
        else:
            g_pooled = self.convolution.transpose_inputs(weights, g)
            g_weights = self.convolution.transpose_weights(pooled, g)
        if self.pooling is None:
            return g_pooled, g_weights
        (g_rows,) = jax.linear_transpose(self.pool, wide(rows))(g_pooled)
        return g_rows, g_weights


DENSE = Connection()
