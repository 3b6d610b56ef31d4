"""Whether parameters and states are those of a network: their structure, shapes and dtypes are compared."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from snnjax._check import fail, type_words
from snnjax._compare import check_like, dtype_of, same_array, same_shape
from snnjax._network.init import params_like
from snnjax._network.specs import LayerSpec, NetworkParams, ReadoutSpec

# States of the last networks and batches, which `apply` compares in every call outside of `jit`.
_KEPT = 128


def check_is_params(op: str, params: Any) -> None:
    """Check that `params` are those of a network, whichever it is."""
    if not isinstance(params, NetworkParams):
        actual = type_words(params)
        fail(f"{op}: `params` must be NetworkParams, got {actual}. Make them with network.init(key).")


def check_params(op: str, params: Any, layers: tuple[LayerSpec, ...], readout: ReadoutSpec | None) -> None:
    """Check that `params` have the structure and shapes of those that `init` draws; their dtypes are the user's choice.

    Those of a batch of networks have them under `jax.vmap`, and quantised weights have the shape of the weights.
    """
    check_is_params(op, params)
    check_like(
        op, "params", params, params_like(layers, readout), same_shape, "Make them with init of this network"
    )


def check_dtypes(op: str, params: NetworkParams) -> None:
    """Check that the weights and biases of all layers have one dtype, which is that of the network."""
    dtype, hint = dtype_of(params.layers[0].weights), "Cast one of them"
    named = {f"layers[{index}]": layer for index, layer in enumerate(params.layers)}
    for name, layer in (named | {"readout": params.readout}).items():
        for part in ("weights", "bias", "recurrent"):
            array = None if layer is None else getattr(layer, part)
            if array is not None and dtype_of(array) != dtype:
                expected, actual = f"have the dtype of the first weights, {dtype.name}", dtype_of(array).name
                fail(f"{op}: `params.{name}.{part}` must {expected}, got {actual}. {hint}.")


def check_state(
    op: str, argument: str, state: Any, init: Callable[..., Any], params: Any, batch: Any
) -> None:
    """Check that a state has the structure, shapes and dtypes of ``init(params, batch)``."""
    leaves, form = jax.tree.flatten(params)
    like = _initial(init, form, tuple((np.shape(leaf), dtype_of(leaf)) for leaf in leaves), batch)
    check_like(op, argument, state, like, same_array, f"Make it with {init.__name__} of this network")


@functools.lru_cache(maxsize=_KEPT)
def _initial(init: Callable[..., Any], form: Any, arrays: tuple[Any, ...], batch: Any) -> Any:
    params = jax.tree.unflatten(form, [jax.ShapeDtypeStruct(*each) for each in arrays])
    return jax.eval_shape(lambda own: init(own, batch), params)
