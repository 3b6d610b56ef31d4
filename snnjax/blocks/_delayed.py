"""Synapses that move between `snnjax.simulate` and recurrent layers, with their weights and delays."""

import jax.numpy as jnp
import numpy as np

from snnjax._arguments import explained
from snnjax._check import check_switches, concrete, fail, short_repr
from snnjax._delayed_synapses import DelayedSynapses
from snnjax._synapses import Synapses
from snnjax._types import Unchecked, id_dtype
from snnjax.blocks._sparse import Sparse, sparse
from snnjax.blocks._synaptic import Synaptic, SynapticParams, SynapticStats, synaptic
from snnjax.blocks.delay import raw_of


@explained
def to_delayed_synapses(block: Synaptic, params: SynapticParams, stats: SynapticStats) -> DelayedSynapses:
    """The recurrent connection ``synaptic(sparse(...), max_delay)`` of a layer as synapses of `snnjax.simulate`.

    Recurrent spikes already take one step, so a delay of d steps in a layer is ``d + 1`` in a simulation. Learned
    delays are rounded.

    Args:
        block: the connection as it was given to the layer, without a bias.
        params: of its node, ``params["layer_0/recurrent"]`` for instance.
        stats: likewise.

    Raises:
        ValueError: if `block` is another kind of connection or has a bias, or delays are traced.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import blocks, sparse, synaptic
        >>> block = synaptic(sparse(8, fan_out=2, bias=False), max_delay=10, initial=4, learn=False)
        >>> params = block.init(jax.random.key(0), (8,), dtype=jnp.float32)
        >>> stats = block.initial_stats(jax.random.key(1), (8,))
        >>> blocks.to_delayed_synapses(block, params, stats).delays()[:3].tolist()
        [5, 5, 5]
    """
    op = "to_delayed_synapses"
    if not isinstance(block, Synaptic) or not isinstance(block.connection, Sparse) or block.bias:
        fail(
            f"{op}: `block` must be synaptic(sparse(...)) without a bias, got {short_repr(block)}. Pass bias=False."
        )
    delays = concrete(block.delays(params, stats))
    if delays is None:
        fail(f"{op}: `params` must be of known values, got a tracer. Convert them outside of jit.")
    late = 1 + np.rint(delays).astype(np.int32)
    assert stats.synapses is not None
    return DelayedSynapses.of(stats.synapses, params.weights, late, max_delay=1 + block.max_delay)


@explained
def from_delayed_synapses(
    synapses: DelayedSynapses, *, learn: bool = False
) -> tuple[Synaptic, SynapticParams, SynapticStats]:
    """The converse: a recurrent connection with the weights and delays of a simulation, its params and its stats.

    Weights are float32. With `learn`, delays start learning from their values, which at the ends of their range are
    moved inwards by up to a thousandth of it; without `learn` they stay integers.

    Raises:
        ValueError: if `synapses` is not a `DelayedSynapses`, or is traced.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import DelayedSynapses, Synapses, blocks
        >>> drawn = Synapses.fixed_fan_out(jax.random.key(0), 6, 6, fan_out=2)
        >>> given = DelayedSynapses.of(drawn, jnp.arange(12.0), jnp.arange(12) % 3 + 1)
        >>> block, own, held = blocks.from_delayed_synapses(given)
        >>> net = snnjax.network(4, [snnjax.layer(6, recurrent=block)])
        >>> params = net.init(jax.random.key(1)) | {"layer_0/recurrent": own}
        >>> stats = net.initial_stats(jax.random.key(1)) | {"layer_0/recurrent": held}
        >>> bool((blocks.to_delayed_synapses(block, own, held).delays() == given.delays()).all())
        True
    """
    op = "from_delayed_synapses"
    check_switches(op, learn=learn)
    if not isinstance(synapses, DelayedSynapses):
        hint = "Make them with DelayedSynapses.of"
        fail(f"{op}: `synapses` must be DelayedSynapses, got {short_repr(synapses)}. {hint}.")
    sources, targets, late, weights = map(_known, _parts(synapses))
    order = np.argsort(sources, kind="stable")
    ends = np.cumsum(np.bincount(sources, minlength=synapses.num_neurons)).astype(np.int32)
    leading = jnp.asarray(targets[order], id_dtype(synapses.num_targets))
    own = Synapses(jnp.asarray(ends), leading, synapses.num_targets)
    span = max(synapses.max_delay - 1, 1)
    connection = sparse(synapses.num_targets, synapses=own, bias=False)
    block = synaptic(connection, span, initial=(0, span), learn=learn)
    raw = raw_of(jnp.asarray((late[order] - 1) / span, jnp.float32), span)
    held = jnp.asarray(weights[order], jnp.float32)
    return (
        block,
        SynapticParams(held, None, raw if learn else None),
        SynapticStats(own, None if learn else raw),
    )


def _parts(synapses: DelayedSynapses) -> tuple[Unchecked, ...]:
    return synapses.sources(), synapses.targets(), synapses.delays(), synapses.weights()


def _known(array: Unchecked) -> np.ndarray:
    found = concrete(array)
    if found is None:
        fail(
            "from_delayed_synapses: `synapses` must be of known values, got a tracer. Convert them outside of jit."
        )
    return found
