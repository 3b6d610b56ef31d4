"""Detection of diverged runs, which their output does not show."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from snnjax._check import fail


def diverged(state: Any) -> Bool[Array, " batch"]:
    """Find the sequences of a batch with a non-finite number in any layer.

    A NaN membrane stays NaN and does not spike: the layers above it, the output and the loss are finite, and only the
    state that a network returns shows what happened.

    Args:
        state: a state returned by a network, ``NetworkState`` or `LIFNetworkState`, or any pytree of arrays ``[batch,
            ...]``.

    Raises:
        ValueError: if the state has no arrays.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax.metrics import diverged
        >>> net = snnjax.network(2, [snnjax.layer(4)], snnjax.leaky_readout(3))
        >>> inputs = jnp.ones((5, 2, 2)).at[1, 0, 0].set(jnp.nan)
        >>> output, state = net.apply(net.init(jax.random.key(0)), None, inputs)
        >>> bool(jnp.all(jnp.isfinite(output.output))), diverged(state)
        (True, Array([ True, False], dtype=bool))
    """
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(state)]
    if len(leaves) == 0:
        fail("diverged: `state` must hold arrays, got none. Pass the state that `apply` returned.")
    return functools.reduce(
        jnp.logical_or, [jnp.any(~jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim))) for leaf in leaves]
    )
