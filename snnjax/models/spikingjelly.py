"""`from_spikingjelly`: weights of SpikingJelly's models as params and stats of `snnjax.models`."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from snnjax._check import fail
from snnjax.blocks.block import Shape
from snnjax.blocks.linear import Linear, LinearParams
from snnjax.blocks.norm import BatchNorm, NormParams, NormStats
from snnjax.graph.network import Network, Node, Params, Stats

_ARRAYS = ("weight", "bias", "running_mean", "running_var")
_UNREAD = "num_batches_tracked"  # which a norm with a momentum does not need


class _Module(NamedTuple):
    """The arrays of a convolution, a linear layer or a norm, by their last names."""

    name: str
    arrays: dict[str, np.ndarray]

    @property
    def is_norm(self) -> bool:
        """Whether it has running statistics."""
        return "running_mean" in self.arrays


def from_spikingjelly(network: Network, arrays: Mapping[str, Any]) -> tuple[Params, Stats]:
    """Take the weights of SpikingJelly's model: the params and stats of a network of `snnjax.models`.

    `vgg`, `sew_resnet` and `spikformer` know those of `spiking_vgg*_bn`, `sew_resnet*` and `Spikformer`. Modules are
    taken in their order, and every shape is checked. For equal spikes give the network SpikingJelly's neuron, such as
    ``lif(0.5, reset="zero", inclusive=True, reset_time="immediate", surrogate=sigmoid(4))`` for ``LIFNode()``.

    Args:
        network: the network of the same sizes.
        arrays: a state dict of NumPy arrays in its order, ``{name: tensor.numpy()}``. A file of safetensors has them by
            name instead: sort what `load_file` reads by the names of ``model.state_dict()``.

    Raises:
        ValueError: if the network has another number of modules, one has another shape or a bias that is not in the
            network, there are other arrays, such as the decays of `ParametricLIFNode`, or all are in the order of their
            names.

    Example:
        >>> import numpy as np
        >>> from snnjax import models
        >>> net = models.vgg((4, 4, 1), 2, [[3]])
        >>> norm = {f"1.{name}": 3 for name in ("weight", "bias", "running_mean", "running_var")}
        >>> shapes = {"0.weight": (3, 1, 3, 3), **norm, "9.weight": (2, 12), "9.bias": 2}
        >>> params, stats = models.from_spikingjelly(
        ...     net, {name: np.ones(own) for name, own in shapes.items()}
        ... )
        >>> params["readout"].weights.shape
        (12, 2)
    """
    _check_names(list(arrays))
    nodes = [node for node in network.nodes if isinstance(node.block, Linear | BatchNorm)]
    modules = list(_modules(arrays))
    if len(nodes) != len(modules):
        expected, hint = (
            f"{len(nodes)} modules with weights",
            "Make the network with the same depth and widths",
        )
        fail(f"models.from_spikingjelly: `arrays` must hold {expected}, got {len(modules)}. {hint}.")
    params: dict[str, PyTree] = {}
    stats: dict[str, PyTree] = {}
    for node, module in zip(nodes, modules, strict=True):
        expected = "a norm" if isinstance(node.block, BatchNorm) else "a connection"
        if module.is_norm != isinstance(node.block, BatchNorm):
            _refuse(node, module, expected, "a norm" if module.is_norm else "a connection")
        if module.is_norm:
            own = [_checked(network, node, module, name) for name in ("weight", "bias")]
            params[node.name] = NormParams(*own)
            seen = [_checked(network, node, module, name) for name in ("running_mean", "running_var")]
            stats[node.name] = NormStats(*seen)
        else:
            params[node.name] = _linear(network, node, module)
    return params, stats


def _check_names(names: list[str]) -> None:
    """Check that arrays are those of connections and norms, and may be in the order of their modules."""
    op, kept = "models.from_spikingjelly", [name for name in names if name.rpartition(".")[2] != _UNREAD]
    for name in kept:
        if name.rpartition(".")[2] not in _ARRAYS:
            expected, hint = (
                "hold those of connections and norms",
                "Give its value to the neurons, and leave it out",
            )
            fail(f"{op}: `arrays` must {expected}, got {name!r}. {hint}.")
    # A module has its weight before its bias, and its tenth part behind the second one.
    numbered = sorted(kept, key=lambda name: [part.zfill(9) for part in re.split(r"(\d+)", name)])
    has_bias = any(name.endswith("bias") and f"{name[:-4]}weight" in kept for name in kept)
    if kept == sorted(kept) and (has_bias or kept != numbered):
        hint = "Pass {name: arrays[name] for name in model.state_dict()}"
        fail(f"{op}: `arrays` must be in the order of a state dict, got the order of the names. {hint}.")


def _modules(arrays: Mapping[str, Any]) -> Iterator[_Module]:
    """The modules with weights in their order; one of queries, keys and values is three."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        module, _, last = name.rpartition(".")
        if last in _ARRAYS:
            groups.setdefault(module, {})[last] = np.asarray(array)
    modules = [_Module(*each) for each in groups.items()]
    for first, second in itertools.zip_longest(modules, modules[1:]):
        if second is not None and "qkv" in first.name and not first.is_norm:
            thirds = ([_third(own, part) for own in (first, second)] for part in range(3))
            yield from itertools.chain(*thirds)
        elif "qkv" not in first.name:
            yield first


def _third(module: _Module, part: int) -> _Module:
    return module._replace(arrays={name: np.split(own, 3)[part] for name, own in module.arrays.items()})


def _shapes(network: Network, node: Node) -> tuple[Shape, Shape]:
    """The shapes of the signals before and behind a node."""
    index = [each.name for each in network.nodes].index(node.name)
    return network.in_shapes[index][0], network.shapes[node.name]


def _checked(network: Network, node: Node, module: _Module, name: str) -> Array:
    """An array of the channels behind a node."""
    channels, found = (_shapes(network, node)[1][-1],), module.arrays.get(name, np.zeros(0))
    if found.shape != channels:
        _refuse(node, module, f"`{name}` of shape {channels}", found.shape)
    return jnp.asarray(found, jnp.float32)


def _linear(network: Network, node: Node, module: _Module) -> LinearParams:
    """Weights with the outputs last, and the pixels of an image before its channels."""
    before, _ = _shapes(network, node)
    block: Any = node.block
    shape, weights = block.weights_shape(before), module.arrays.get("weight", np.zeros(0))
    if weights.ndim == 2:
        image = weights.reshape(len(weights), before[-1], -1) if weights.size else weights[..., None]
        made = np.moveaxis(image, (2, 1, 0), (0, 1, 2)).reshape(-1, len(weights))
    else:
        made = np.moveaxis(weights, (1, 0), (-2, -1)) if weights.ndim > 2 else weights
        made = (
            made.reshape(shape) if made.size == math.prod(shape) and made.shape[-2:] == shape[-2:] else made
        )
    if made.shape != shape:
        _refuse(node, module, f"weights of shape {shape}", made.shape)
    if not block.bias and "bias" in module.arrays:
        _refuse(node, module, "no bias", "one")
    bias = _checked(network, node, module, "bias") if block.bias else None
    return LinearParams(jnp.asarray(made, jnp.float32), bias)


def _refuse(node: Node, module: _Module, expected: str, actual: object) -> None:
    fail(
        f"models.from_spikingjelly: `arrays` must hold {expected} in {module.name!r} for {node.name!r}, got {actual}. "
        "Make the network with the same sizes."
    )
