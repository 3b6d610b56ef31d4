"""How spikes become the current of a layer: they are delayed, pooled, and then convolved or multiplied densely."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_integer, check_switches, fail, short_repr
from snnjax._quantised import unscaled
from snnjax._types import Weights, upcast
from snnjax.ops._convolution import Convolution
from snnjax.ops.pool_spikes import Pooling
from snnjax.ops.spike_matmul import Guard, dense_product, without_zeros


@jax.tree_util.register_static
@dataclass(frozen=True)
class Connection:
    """The static part of a connection; without pooling and convolution it is just dense weights.

    Spikes are delayed, then pooled, then convolved or multiplied. Blocks make connections (`dense`, `conv2d`,
    `sum_pool`, `axonal`); by hand you need one for the delays of a layer of `lif_network`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import LIFLayer, lif_network
        >>> from snnjax import Connection
        >>> layer = LIFLayer(
        ...     jnp.eye(2), decay=0.0, connection=Connection(max_delay=2), delays=jnp.array([0.0, 2.0])
        ... )
        >>> spikes = jnp.zeros((4, 1, 2)).at[0].set(2.0)  # both inputs in the first step
        >>> lif_network(spikes, [layer])[0].output[:, 0]
        Array([[1., 0.],
               [0., 0.],
               [0., 1.],
               [0., 0.]], dtype=float32)
    """

    pooling: Pooling | None = None
    convolution: Convolution | None = None
    rounds_cotangents: bool = False  # to bfloat16, like the dense weights, before their product
    exact_within: float = 0.0  # but not where the membrane of the input is nearer than this to its threshold
    max_delay: int | None = None  # of the inputs, in steps; None for no delays

    def __post_init__(self) -> None:
        """Check the fields, which are static, so that none of them is wrong where it is used."""
        for name, kind in (("pooling", Pooling), ("convolution", Convolution)):
            if not isinstance(given := getattr(self, name), kind | None):
                fail(
                    f"Connection: `{name}` must be a {kind.__name__} or None, got {short_repr(given)}. Leave it out."
                )
        if self.max_delay is not None:
            check_integer("Connection", "max_delay", self.max_delay, 0)
        check_switches("Connection", rounds_cotangents=self.rounds_cotangents)
        if not isinstance(self.exact_within, int | float) or not 0 <= self.exact_within < math.inf:
            given = short_repr(self.exact_within)
            fail(
                f"Connection: `exact_within` must be a finite number of at least 0, got {given}. Leave it out."
            )

    def behind(self, pooling: Pooling | None, max_delay: int | None) -> "Connection":
        """This connection behind delays and a pool."""
        return dataclasses.replace(self, pooling=pooling, max_delay=max_delay)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The geometries of its parts, in order; dense weights have none."""
        fields = (getattr(self, field.name) for field in dataclasses.fields(self))
        return tuple(each for each in fields if dataclasses.is_dataclass(each))

    def num_inputs(self, weights: tuple[int, ...]) -> int:
        """The number of inputs, from the shape of the weights."""
        if self.pooling is not None:
            return self.pooling.num_inputs
        return weights[0] if self.convolution is None else self.convolution.num_inputs

    def num_outputs(self, weights: tuple[int, ...]) -> int:
        """The number of outputs, from the shape of the weights."""
        return weights[-1] if self.convolution is None else self.convolution.num_outputs

    def weights_shape(self, inputs: int) -> tuple[int | None, ...]:
        """The shape that weights must have for this number of inputs; None is any length."""
        if self.convolution is not None:
            return self.convolution.weights_shape
        return inputs if self.pooling is None else self.pooling.num_outputs, None

    def num_pairs(self, weights: tuple[int, ...]) -> int:
        """The number of pairs of an input and a weight it is multiplied by, from the shape of the weights."""
        pairs = math.prod(weights) if self.convolution is None else self.convolution.num_pairs
        return pairs if self.pooling is None else pairs * math.prod(self.pooling.window)

    def fan_out(self, weights: Weights) -> Array:
        """The number of nonzero weights that a spike of each input is multiplied by, float32 ``[inputs]``."""
        there = (unscaled(weights) != 0).astype(jnp.float32)
        if self.convolution is None:
            fan_out = jnp.sum(there, axis=1)
        else:
            everywhere = jnp.ones((1, self.convolution.num_outputs), jnp.float32)
            fan_out = self.convolution.transpose_inputs(there, everywhere)[0]
        if self.pooling is None:
            return fan_out
        # The same for mean and sum pooling; an input outside all windows has none.
        rows = jax.ShapeDtypeStruct((self.pooling.num_inputs,), jnp.float32)
        return jax.linear_transpose(dataclasses.replace(self.pooling, how="sum").pool, rows)(fan_out)[0]

    def pool(self, rows: Array) -> Array:
        """Dense rows ``[rows, inputs]`` as the weights receive them: pooled, in the accumulation dtype."""
        return rows if self.pooling is None else self.pooling.pool(upcast(rows))

    def current(self, rows: Array, weights: Weights, guard: Guard = without_zeros) -> Array:
        """The current of dense rows ``[rows, inputs]``, in the accumulation dtype.

        Without parts they may have several axes in place of `rows`, here and in `backward`.
        """
        pooled = self.pool(rows)
        if self.convolution is None:
            return dense_product(pooled, weights, guard)
        return guard(self.convolution.convolve, pooled, weights)

    def obstacle_to(self, *, recurrent: bool, spikes: bool) -> str | None:
        """What the kernels do not compute in front of such neurons, or None: `kernel.py` and plans ask alike."""
        if self.convolution is not None and recurrent:
            return "recurrent layers after a convolution"
        return None if self.convolution is None or spikes else "a readout after a convolution"

    def backward(self, rows: Array, weights: Array, g: Array) -> tuple[Array, Array]:
        """The cotangents of the rows and the weights from that of the current, all in the accumulation dtype."""
        pooled = self.pool(rows)
        if self.convolution is None:
            carried = (g, upcast(weights))
            if self.rounds_cotangents and self.exact_within == 0:
                carried = (g.astype(jnp.bfloat16), weights.astype(jnp.bfloat16))
            g_pooled = jnp.matmul(carried[0], carried[1].T, preferred_element_type=g.dtype)
            axes = tuple(range(g.ndim - 1))
            g_weights = jnp.tensordot(upcast(pooled), g, (axes, axes))
        else:
            g_pooled = self.convolution.transpose_inputs(weights, g)
            g_weights = self.convolution.transpose_weights(pooled, g)
        if self.pooling is None:
            return g_pooled, g_weights
        (g_rows,) = jax.linear_transpose(self.pool, upcast(rows))(g_pooled)
        return g_rows, g_weights


DENSE = Connection()
