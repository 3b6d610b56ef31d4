"""Whether parameters and states are those of a network: their structure, shapes and dtypes are compared."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import PyTree

from snnjax._check import fail, type_words
from snnjax._compare import check_like, dtype_of, same_array, same_shape
from snnjax._quantised import Quantised
from snnjax._types import Params, State, Stats
from snnjax.blocks._sparse import SparseParams
from snnjax.blocks._synaptic import SynapticParams
from snnjax.blocks.linear import LinearParams
from snnjax.graph.containers import Node
from snnjax.graph.init import in_dtype, params_like

# What connections hold: weights, and a bias or none.
CONNECTIONS = LinearParams | SparseParams | SynapticParams
# States of the last networks and batches, which `apply` compares in every call outside of `jit`.
_KEPT = 128


def check_params(op: str, params: Params, nodes: tuple[Node, ...], shapes: tuple[Any, ...]) -> None:
    """Check that `params` have the structure and shapes of those that `init` draws; their dtypes are the user's choice.

    Those of a batch of networks have them under `jax.vmap`, and quantised weights have the shape of the weights.
    """
    if not isinstance(params, Mapping):
        fail(
            f"{op}: `params` must be a dict by block, got {type_words(params)}. Make them with network.init(key)."
        )
    hint = "Make them with init of this network"
    held = jax.tree.map(_of_synapses, params, is_leaf=lambda own: isinstance(own, SparseParams))
    check_like(op, "params", held, params_like(nodes, shapes), same_shape, hint)


def are_weights(params: Params) -> PyTree:
    """Whether each array is one of weights: those of connections, and elsewhere what has several axes."""

    def of(part: Params) -> PyTree:
        if isinstance(part, Quantised):
            return part._replace(values=True, scale=False)
        if not isinstance(part, CONNECTIONS):
            return jnp.ndim(part) > 1
        rest = jax.tree.map(lambda _: False, part._replace(weights=None))
        return rest._replace(weights=of(part.weights) if isinstance(part.weights, Quantised) else True)

    return jax.tree.map(of, params, is_leaf=lambda part: isinstance(part, CONNECTIONS | Quantised))


def _of_synapses(params: Params) -> PyTree:
    """Params with the shape of quantised weights of synapses; their scale is checked where the targets are known."""
    if not isinstance(params, SparseParams) or not isinstance(params.weights, Quantised):
        return params
    return params._replace(weights=jax.ShapeDtypeStruct(params.weights.shape, params.weights.dtype))


def check_dtypes(op: str, params: Mapping[str, Any]) -> None:
    """Check that the weights and biases of all connections have one dtype, which is that of the network."""
    held = jax.tree.leaves_with_path(params, is_leaf=lambda own: isinstance(own, CONNECTIONS))
    found = [(jax.tree_util.keystr(path), own) for path, own in held if isinstance(own, CONNECTIONS)]
    named = [(f"{path}.{part}", getattr(own, part)) for path, own in found for part in ("weights", "bias")]
    dtypes = [(name, dtype_of(array)) for name, array in named if array is not None]
    for name, dtype in dtypes:
        if dtype != dtypes[0][1]:
            expected = f"have the dtype of the first weights, {dtypes[0][1].name}"
            fail(f"{op}: `params{name}` must {expected}, got {dtype.name}. Cast one of them.")


def checked_stats(op: str, stats: dict[str, Any] | None, like: Mapping[str, Any]) -> dict[str, Any]:
    """Stats with the structure and shapes of `like`; none are needed where there are none."""
    hint = "Make them with network.initial_stats(key)"
    if stats is None and like:
        fail(f"{op}: `stats` must hold those of {', '.join(like)}, got None. {hint}.")
    stats = {} if stats is None else stats
    check_like(op, "stats", stats, like, same_shape, hint)
    return stats


def check_state(
    op: str,
    argument: str,
    state: State,
    init: Callable[..., Any],
    params: Params,
    batch: int,
    stats: Stats,
    dtype: DTypeLike = jnp.float32,
) -> None:
    """Check that a state has the structure, shapes and dtypes of ``init(params, batch, stats)``.

    Those of a network without parameters follow from the `dtype` of its results.
    """
    leaves, form = jax.tree.flatten((params, stats))
    like = _initial(init, form, tuple((np.shape(leaf), dtype_of(leaf)) for leaf in leaves), batch)
    like = in_dtype(like, dtype)
    check_like(op, argument, state, like, same_array, f"Make it with {init.__name__} of this network")


@functools.lru_cache(maxsize=_KEPT)
def _initial(init: Callable[..., Any], form: Any, arrays: tuple[Any, ...], batch: int) -> PyTree:
    held = jax.tree.unflatten(form, [jax.ShapeDtypeStruct(*each) for each in arrays])
    return jax.eval_shape(lambda params, stats: init(params, batch, stats), *held)
