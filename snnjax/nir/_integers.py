"""The integers of a chip in the metadata of a graph, so that a network for a chip is exchanged with its bits."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._check import fail
from snnjax._types import Unchecked
from snnjax.fixed_point import FixedPoint, IntegerLayer, IntegerNetwork, Neurons
from snnjax.fixed_point._route import Route
from snnjax.nir._check import NIRNode
from snnjax.nir._file import read_graph
from snnjax.ops._convolution import Convolution
from snnjax.ops.pool_spikes import Pooling

_KEY = "snnjax_integers"
_INT8 = ("weights", "recurrent")
_INT32 = (*Neurons._fields, "shift", "recurrent_shift")


def written_integers(whole: IntegerNetwork) -> dict[str, Any]:
    """The metadata of a graph: JSON text of what is no array, and the arrays of each layer."""
    facts = {
        "chip": dataclasses.asdict(whole.chip),
        "names": [layer.name for layer in whole.layers],
        "spiking_output": whole.spiking_output,
        "routes": [dataclasses.asdict(layer.route) for layer in whole.layers],
    }
    found: dict[str, Any] = {_KEY: json.dumps(facts)}
    for place, layer in enumerate(whole.layers):
        held = {name: getattr(layer, name) for name in (*_INT8, "unit", "shift", "recurrent_shift")}
        held |= layer.neurons._asdict()
        given = {name: np.atleast_1d(np.asarray(own)) for name, own in held.items() if own is not None}
        found |= {f"{_KEY}_{place}_{name}": own for name, own in given.items()}
    return found


def integers_of(graph: NIRNode) -> IntegerNetwork:
    """Read the integers of a chip that `to_nir` stored in a graph, for `fixed_point.run`.

    Args:
        graph: a `nir.NIRGraph`, or the path of a file.

    Raises:
        ValueError: if there are none, or they are damaged.

    Example:
        >>> import jax, nir, snnjax
        >>> from snnjax import fixed_point, neurons
        >>> from snnjax.nir import integers_of, to_nir
        >>> net = snnjax.network(12, [snnjax.layer(8, neurons.current_lif())], snnjax.leaky_readout(4))
        >>> params = net.init(jax.random.key(0))
        >>> whole, _ = fixed_point.convert(net, params, fixed_point.XYLO)
        >>> nir.write("network.nir", to_nir(net, params, dt=1e-3, integers=whole))
        >>> integers_of("network.nir").chip == fixed_point.XYLO
        True
    """
    if isinstance(graph, str | os.PathLike):
        graph = read_graph(Path(graph))
    held = graph.metadata if isinstance(getattr(graph, "metadata", None), dict) else {}
    if _KEY not in held:
        fail("integers_of: `graph` must hold the integers of a chip, got none. Pass integers= to to_nir.")
    try:
        facts = json.loads(held[_KEY])
        named = zip(facts["names"], facts["routes"], strict=True)
        layers = [_layer(held, place, *given) for place, given in enumerate(named)]
        chip = FixedPoint(**_tuples(facts["chip"]))
        return IntegerNetwork(layers=tuple(layers), chip=chip, spiking_output=bool(facts["spiking_output"]))
    except (KeyError, TypeError, ValueError) as error:
        what = type(error).__name__
        fail(
            f"integers_of: `graph` must hold what to_nir wrote, got damaged metadata ({what}). Write it again."
        )


def _tuples(held: Unchecked) -> Any:
    """What JSON holds, with tuples for its lists."""
    if isinstance(held, dict):
        return {name: _tuples(own) for name, own in held.items()}
    return tuple(map(_tuples, held)) if isinstance(held, list) else held


def _layer(held: dict[str, Any], place: int, name: str, route: dict[str, Any]) -> IntegerLayer:
    def array(field: str, dtype: DTypeLike) -> Array:
        return jnp.asarray(np.asarray(held[f"{_KEY}_{place}_{field}"]).astype(dtype))

    pools = tuple(Pooling(**own) for own in _tuples(route["pools"]))
    convolution = None if route["convolution"] is None else Convolution(**_tuples(route["convolution"]))
    integers = {field: array(field, np.int32) for field in _INT32}
    return IntegerLayer(
        weights=array("weights", np.int8),
        recurrent=array("recurrent", np.int8) if f"{_KEY}_{place}_recurrent" in held else None,
        neurons=Neurons(*(integers[field] for field in Neurons._fields)),
        unit=array("unit", np.float32),
        shift=integers["shift"][0],
        recurrent_shift=integers["recurrent_shift"][0],
        route=Route(pools, convolution),
        name=name,
    )
