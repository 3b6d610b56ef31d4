"""`convert`: a trained rectifier network as a network of integrate-and-fire neurons."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import check_float_array, fail, plural, short_repr, type_words
from snnjax.blocks.block import Block, Context, Shape, times
from snnjax.blocks.linear import Linear, LinearParams
from snnjax.blocks.norm import BatchNorm, NormParams, NormStats
from snnjax.blocks.pool import Flatten, Pool
from snnjax.blocks.rate_pool import RatePool
from snnjax.graph.build import network
from snnjax.graph.containers import Layer, layer, leaky_readout
from snnjax.graph.fold import times_norm
from snnjax.graph.network import Network, Params
from snnjax.neurons import integrate_and_fire

# The modules of flax, and where its dict has the arrays of each.
_FLAX = {"dense": "Dense", "conv1d": "Conv", "conv2d": "Conv", "batch_norm": "BatchNorm"}
_WEIGHTS = (("params", "kernel"), ("params", "bias"))
_NORM = (("params", "scale"), ("params", "bias"), ("batch_stats", "mean"), ("batch_stats", "var"))


class _Part(NamedTuple):
    """A layer of the source network."""

    place: int  # in the list
    block: Any = None  # None for a rectifier
    shape: Shape = ()  # of what it receives
    params: LinearParams | None = None  # of a connection, with the norm after it


@explained
def convert(
    layers: Sequence[Any],
    weights: Sequence[Any] | Mapping[str, Any],
    samples: Float[Array | np.ndarray, "samples ..."],
    *,
    percentile: float = 99.9,
) -> tuple[Network, Params]:
    """Turn a trained network of rectifiers into a spiking network, which computes with rates what it computed.

    Every rectifier becomes integrate-and-fire neurons, reset by subtraction, that start at half of their threshold.
    Given the same input in every step, a neuron spikes at the rate ``a / most``, where `a` is its activation and `most`
    the `percentile` of all positive activations of its layer on the samples. For this the weights after the neurons
    are multiplied by `most`, and weights and bias before them divided by it; larger activations are cut off. The
    readout sums up its currents, so after `t` steps ``output.output[-1] / t`` are the logits, up to the
    rounding of rates: more steps, smaller errors.

    Args:
        layers: the source network in order: `dense`, `conv1d`, `conv2d`, `blocks.batch_norm` directly after these,
            pools, `flatten` and ``jax.nn.relu``. It ends with the logits, without a softmax. A `max_pool` becomes a
            `blocks.max_rate_pool`.
        weights: its arrays in the order of the layers, as from ``get_weights()`` of a Keras model: weights and bias of
            a connection; scale, bias, mean and variance of a norm. Or a dict of flax, ``{"params": ..., "batch_stats":
            ...}``, in which a layer without a name is looked up under the one that flax gives it, as ``Conv_0``.
        samples: inputs that are typical of the source network, such as a hundred images of its training.
        percentile: of the activations; a smaller one makes neurons spike more often, and cuts off more.

    Raises:
        ValueError: if a layer has no counterpart, stands in a wrong place, or does not fit its arrays, or if the
            samples leave a layer silent.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> x, weights = (
        ...     jnp.array([[1.0, 0.5]]),
        ...     [jnp.eye(2), jnp.zeros(2), jnp.array([[2.0], [-1.0]]), jnp.ones(1)],
        ... )
        >>> layers = [snnjax.dense(2), jax.nn.relu, snnjax.dense(1)]  # 2 * 1.0 - 0.5 + 1
        >>> net, params = snnjax.convert(layers, weights, x, percentile=100)
        >>> output, _ = net.apply(params, None, jnp.broadcast_to(x, (32, 1, 2)))
        >>> output.output[-1] / 32
        Array([[2.5]], dtype=float32)

    Reference:
        Diehl et al. 2015, doi:10.1109/IJCNN.2015.7280696 (normalised weights); Rueckauer et al. 2017,
        doi:10.3389/fnins.2017.00682 (percentile, reset by subtraction, norms); Bu et al. 2022, arXiv:2202.01440 (half a
        threshold at the start).
    """
    if isinstance(percentile, bool) or not isinstance(percentile, int | float) or not 0 < percentile <= 100:
        fail(
            f"convert: `percentile` must be a number above 0 and at most 100, got {short_repr(percentile)}. Try 99.9."
        )
    check_float_array("convert", "samples", samples)
    if samples.ndim < 2 or len(samples) == 0:
        fail(
            f"convert: `samples` must have shape [samples, *shape], got {list(samples.shape)}. "
            "Pass a batch of inputs."
        )
    if not isinstance(layers, list | tuple):
        fail(f"convert: `layers` must be a list of layers, got {type_words(layers)}. Write [dense(10)].")
    if not isinstance(weights, list | tuple | Mapping):
        fail(
            f"convert: `weights` must be a list of arrays or a dict of flax, got {type_words(weights)}. "
            "Pass model.get_weights(), or {'params': ...}."
        )
    shape = tuple(samples.shape[1:])
    parts = _parts(
        layers, shape, _in_order(layers, weights) if isinstance(weights, Mapping) else list(weights)
    )
    net = _network(shape, parts)
    return net, _params(net, _normalised(parts, jnp.asarray(samples, jnp.float32), float(percentile)))


def _in_order(layers: Sequence[Any], tree: Mapping[str, Any]) -> list[Any]:
    """The arrays of a dict of flax in the order of the layers."""
    found: list[Any] = []
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    for item in layers:
        if not isinstance(item, Linear | BatchNorm):
            continue
        name, own = item.name, _FLAX.get(item.kind, item.kind)
        if name is None:
            numbers[own] = numbers.get(own, -1) + 1
            name = f"{own}_{numbers[own]}"
        arrays = _NORM if isinstance(item, BatchNorm) else _WEIGHTS[: 1 + item.bias]
        for collection, array in arrays:
            path = collection, name, array
            taken.add("".join(f"[{own!r}]" for own in path))
            found.append(_looked_up(tree, path))
    trained = {name: tree[name] for name in ("params", "batch_stats") if name in tree}
    for path, _ in jax.tree_util.tree_leaves_with_path(trained):
        if (name := jax.tree_util.keystr(path)) not in taken:
            hint = "A connection with a bias has bias=True"
            fail(f"convert: `weights` must be those of the layers, got {name} more. {hint}.")
    return found


def _looked_up(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    place: Any = tree
    for key in path:
        if not isinstance(place, Mapping) or key not in place:
            known = ", ".join(map(repr, place)) if isinstance(place, Mapping) else type_words(place)
            wanted = "".join(f"[{own!r}]" for own in path)
            fail(
                f"convert: `weights` must hold {wanted}, got {known or 'nothing'} in place of {key!r}. "
                "Name the layers as in flax, as in dense(10).named('Dense_0')."
            )
        place = place[key]
    return place


def _taken(arrays: list[Any], place: int, kind: str, shapes: Sequence[Shape]) -> list[Array]:
    """The next arrays, which are those of a layer, and of these shapes."""
    found = [arrays.pop(0) for _ in shapes[: len(arrays)]]
    if [np.shape(array) for array in found] != list(shapes):
        words = [" and ".join(str(list(shape)) for shape in own) for own in (shapes, map(np.shape, found))]
        fail(
            f"convert: `weights` must hold arrays of shape {words[0]} for layers[{place}], {kind}, "
            f"got {words[1] or 'none'}. A connection without a bias has bias=False."
        )
    return [jnp.asarray(np.asarray(array, np.float32)) for array in found]


def _parts(layers: Sequence[Any], shape: Shape, arrays: list[Any]) -> list[_Part]:
    """The layers with their arrays; norms are in the connections before them, and rectifiers before maxima."""
    parts: list[_Part] = []
    for place, item in enumerate(layers):
        if isinstance(item, Block) and item.is_skipped(train=False):
            continue
        if isinstance(item, BatchNorm):
            parts[-1:] = [_with_norm(place, item, parts, arrays)]
        elif item is jax.nn.relu:
            parts.insert(_before_maxima(parts), _rectifier(place, parts))
        elif isinstance(item, Linear | Pool | Flatten) and item.source is None:
            block: Any = item.fitted(shape)
            params = _linear(place, block, shape, arrays)
            if params is not None:
                block, params = block.plain(params)
            parts.append(_Part(place, block, shape, params))
            shape = block.out_shape(shape)
        else:
            names = (getattr(item, own, None) for own in ("kind", "name", "__name__"))
            got = next((name for name in names if name), None) or short_repr(item)
            got += " with a source" if isinstance(item, Block) and item.source is not None else ""
            fail(
                "convert: `layers` must be a chain of connections, batch_norm, pools, flatten and jax.nn.relu, "
                f"got {got} in layers[{place}]. Replace it, or leave it out."
            )
    if not _connections(parts):
        got = "no connection after the last rectifier" if parts else "none"
        fail(f"convert: `layers` must end with a connection, got {got}. Leave out what follows the logits.")
    if arrays:
        fail(
            f"convert: `weights` must be those of the layers, got {plural(len(arrays), 'array')} more. "
            "Add the layers that they belong to."
        )
    return parts


def _connections(parts: list[_Part]) -> list[_Part]:
    """The connections after the last rectifier."""
    last = max((index for index, part in enumerate(parts) if part.block is None), default=-1)
    return [part for part in parts[last + 1 :] if part.params is not None]


def _is_maximum(block: Any) -> bool:
    return isinstance(block, Pool) and block.how == "max"


def _before_maxima(parts: list[_Part]) -> int:
    """Where a rectifier stands: the maximum of rectified numbers is the rectified maximum."""
    index = len(parts)
    while index > 0 and _is_maximum(parts[index - 1].block):
        index -= 1
    return index


def _rectifier(place: int, parts: list[_Part]) -> _Part:
    if not _connections(parts):
        fail(
            f"convert: `layers` must have a connection before each rectifier, got none before layers[{place}]. "
            "Remove it."
        )
    return _Part(place)


def _linear(place: int, block: Any, shape: Shape, arrays: list[Any]) -> LinearParams | None:
    if not isinstance(block, Linear):
        return None
    wanted = [block.weights_shape(shape), (block.out_shape(shape)[-1],)]
    return LinearParams(*_taken(arrays, place, block.kind, wanted[: 1 + block.bias]))


def _with_norm(place: int, norm: BatchNorm, parts: list[_Part], arrays: list[Any]) -> _Part:
    """The connection before a norm, with the norm in it."""
    before = parts[-1] if parts else None
    if before is None or before.params is None:
        fail(
            f"convert: `layers` must have batch_norm directly after a connection, got it in layers[{place}]. "
            "Train the network with the norm there."
        )
    channels = before.block.out_shape(before.shape)[-1]
    scale, bias, mean, variance = _taken(arrays, place, norm.kind, [(channels,)] * len(_NORM))
    factor, term = norm.affine(NormParams(scale, bias), NormStats(mean, variance))
    block = dataclasses.replace(before.block, bias=True)
    return before._replace(block=block, params=times_norm(before.params, factor, term))


def _network(shape: Shape, parts: list[_Part]) -> Network:
    """Layers from each connection to its rectifier, and the readout."""
    items: list[Any] = []
    stack: list[Block] = []
    for part in parts:
        if part.block is None:
            name, connection = _stacked(stack)
            items.append(layer(connection, integrate_and_fire(initial=0.5)).named(name))
            stack = []
        elif _is_maximum(part.block) and stack:
            fail(
                f"convert: `layers` must have max_pool beside a rectifier, got it in layers[{part.place}]. "
                "Put them together."
            )
        elif stack or part.params is not None:
            stack.append(part.block)
        else:
            is_of_rates = _is_maximum(part.block) and any(isinstance(item, Layer) for item in items)
            items.append(RatePool(part.block).named(part.block.name) if is_of_rates else part.block)
    name, connection = _stacked(stack)
    return network(shape, items, leaky_readout(connection, decay=1, normalize=False).named(name))


def _stacked(blocks: list[Block]) -> tuple[str | None, Any]:
    """The blocks from a connection on, as the connection of a layer, and the name of that connection."""
    own = [block.named(None) for block in blocks]
    return blocks[0].name, own if len(own) > 1 else own[0]


def _normalised(parts: list[_Part], samples: Array, percentile: float) -> list[LinearParams]:
    """The arrays of all connections, for signals that are rates."""
    signal, scale, found = samples[None], jnp.float32(1), []
    for part in parts:
        if part.block is None:
            signal = jnp.maximum(signal, 0)
            scale = _most(part.place, signal, percentile)
            found[-1] = times(found[-1], 1 / scale)
            continue
        given = (part.params, None, None, signal)
        signal = part.block.apply(*given, shapes=(part.shape,), context=Context()).signal
        if part.params is not None:
            found.append(part.params._replace(weights=part.params.weights * scale))
            scale = jnp.float32(1)
    return found


def _most(place: int, activations: Array, percentile: float) -> Array:
    """The activation that becomes a spike in every step."""
    known = np.asarray(activations)
    positive = known[known > 0]
    if positive.size == 0 or not np.isfinite(known).all():
        got = "only zeros" if np.isfinite(known).all() else "numbers that are not finite"
        fail(
            f"convert: `samples` must activate every rectifier, got {got} in layers[{place}]. "
            "Pass inputs on the scale of the training."
        )
    return jnp.float32(np.percentile(positive, percentile))


def _params(net: Network, connections: list[LinearParams]) -> Params:
    """The parameters of a network: those of its connections in order, the others as they are drawn."""
    found, given = {}, iter(connections)
    for node, shapes in zip(net.nodes, net.in_shapes, strict=True):
        is_linear = isinstance(node.block, Linear)
        own = next(given) if is_linear else node.block.init(jax.random.key(0), *shapes, dtype=jnp.float32)
        if own is not None:
            found[node.name] = own
    return found
