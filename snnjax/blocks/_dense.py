"""`dense`: weights from all inputs to all neurons."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from snnjax._arguments import explained
from snnjax._check import check_integer, check_rounding, check_switches, fail, short_repr
from snnjax._quantised import Quantised
from snnjax._types import Signal, upcast
from snnjax.blocks.block import Shape, flat
from snnjax.blocks.linear import Linear, Product
from snnjax.ops._connection import Connection
from snnjax.ops.spike_matmul import spike_matmul


@dataclass(frozen=True, eq=False)
class Mask:
    """Which dense weights exist; masks with the same entries are equal."""

    entries: Bool[np.ndarray, "inputs neurons"]

    @functools.cached_property
    def _key(self) -> tuple[Shape, bytes]:
        return self.entries.shape, np.packbits(self.entries).tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@dataclass(frozen=True)
class Dense(Linear):
    """Dense weights; made by `dense`."""

    kind = "dense"
    num_neurons: int
    mask: Mask | None = None
    rounds_cotangents: bool = False
    exact_within: float = 0.0

    def out_shape(self, *shapes: Shape) -> Shape:
        """The neurons, on one axis."""
        (shape,) = shapes
        if self.mask is not None and self.mask.entries.shape[0] != math.prod(shape):
            fail(
                f"dense: `mask` must have {math.prod(shape)} rows, one per input, "
                f"got {self.mask.entries.shape[0]}. Make it for the block before."
            )
        return (self.num_neurons,)

    def weights_shape(self, shape: Shape) -> Shape:
        """``[inputs, neurons]``."""
        return math.prod(shape), self.num_neurons

    def fan_in(self, shape: Shape) -> float:
        """The number of inputs, or the mean number that the mask leaves to a neuron."""
        if self.mask is None:
            return math.prod(shape)
        return float(np.count_nonzero(self.mask.entries)) / self.num_neurons

    def held(self, weights: Any) -> Any:
        """The weights with masked entries set to 0, which also makes their gradients 0."""
        if self.mask is None:
            return weights
        if isinstance(weights, Quantised):
            return weights._replace(values=self.held(weights.values))
        return jnp.where(jnp.asarray(self.mask.entries), weights, jnp.zeros_like(weights))

    def product(self, weights: Any, x: Signal, shape: Shape, implementation: str | None) -> Array:
        """``spikes @ weights``."""
        del shape
        return spike_matmul(flat(x), upcast(weights), implementation=implementation)

    def op(self, shape: Shape) -> Product:
        """A product of the fused op."""
        del shape
        return Product(Connection(None, None, self.rounds_cotangents, self.exact_within))


@explained
def dense(
    num_neurons: int,
    *,
    bias: bool = True,
    mask: Any = None,
    cotangent_dtype: Any = None,
    exact_within: float | None = None,
) -> Dense:
    """Make a connection with dense weights: ``current = spikes @ weights + bias``.

    Args:
        num_neurons: number of neurons that receive the current.
        bias: add a learned bias to the current of every step.
        mask: bool ``[inputs, neurons]``; weights stay 0 where it is False.
        cotangent_dtype: ``jnp.bfloat16`` allows the backward product ``g_spikes = g_current @ weights.T`` to round both
            factors to bfloat16 where that is faster; sums stay float32. Each factor then has a relative error of at
            most 2^-8. None rounds nothing.
        exact_within: with `cotangent_dtype`, neurons of the layer below whose membrane is nearer than this to their
            threshold, ``|v - threshold| < exact_within``, get their ``g_spikes`` from factors that are not rounded.
            There a surrogate is steep, so that these few carry most of the gradient. Where rounding is not faster, and
            on the references, nothing is rounded then. None rounds all.

    Raises:
        ValueError: if the width, the mask, the dtype or the distance is invalid.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import dense
        >>> connection = dense(4)
        >>> params = connection.init(jax.random.key(0), (3,), dtype=jnp.float32)
        >>> connection.currents(params, jnp.ones((5, 2, 3))).shape
        (5, 2, 4)
    """
    num_neurons = check_integer("dense", "num_neurons", num_neurons, 1)
    check_switches("dense", bias=bias)
    rounds = check_rounding("dense", "cotangent_dtype", cotangent_dtype)
    distance = _checked_distance(exact_within, rounds)
    return Dense(int(num_neurons), _as_mask(mask, num_neurons), rounds, distance, bias=bool(bias))


def _as_mask(mask: Any, num_neurons: int) -> Mask | None:
    if mask is None:
        return None
    entries = np.array(mask)
    if entries.ndim != 2 or entries.shape[1] != num_neurons or entries.dtype != bool:
        fail(
            f"dense: `mask` must be bool [inputs, neurons] = [any, {num_neurons}], "
            f"got {entries.dtype.name}{list(entries.shape)}. Compare the weights with 0, or cast it."
        )
    entries.setflags(write=False)
    return Mask(entries)


def _checked_distance(exact_within: float | None, rounds: bool) -> float:
    """The distance from the threshold, 0 for None, which must be above 0 and comes with rounding."""
    if exact_within is None:
        return 0.0
    given = short_repr(exact_within)
    if not rounds:
        fail(
            f"dense: `exact_within` must come with a `cotangent_dtype`, got {given}. "
            "Pass cotangent_dtype=jnp.bfloat16 as well."
        )
    limits = np.finfo(np.float32)
    is_number = isinstance(exact_within, int | float) and not isinstance(exact_within, bool)
    if not is_number or not float(limits.tiny) <= exact_within <= float(limits.max):
        fail(
            f"dense: `exact_within` must be a finite float32 above 0, got {given}. "
            "Omit it to round all cotangents."
        )
    return float(exact_within)
