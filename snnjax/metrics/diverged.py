"""Detection of diverged runs, which their output does not show."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from snnjax._check import fail
from snnjax._types import State


def diverged(state: State) -> Bool[Array, " batch"]:
    """Find the sequences of a batch with a non-finite number in any layer.

    A NaN membrane stays NaN and does not spike: the layers above it, the output and the loss are finite, and only the
    state that a network returns shows what happened.

    Args:
        state: a state returned by a network or by `lif_network`, or any pytree of arrays ``[batch, ...]``.

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
    found = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        # Before the batch axis, what is in transit may have a row for each step, and a chip's current one a synapse.
        rows = "pending", "sent", "spikes", "earlier_spikes", "arriving", "current"
        has_rows = path and getattr(path[-1], "name", None) in rows
        batch_axis = jnp.ndim(leaf) - 2 if has_rows else 0
        others = tuple(axis for axis in range(jnp.ndim(leaf)) if axis != batch_axis)
        found.append(jnp.any(~jnp.isfinite(jnp.asarray(leaf)), axis=others))
    if not found:
        fail("diverged: `state` must hold arrays, got none. Pass the state that `apply` returned.")
    return functools.reduce(jnp.logical_or, found)
