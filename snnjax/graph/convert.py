"""`convert`: a trained rectifier network as a network of integrate-and-fire neurons."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from snnjax._check import check_float_array, check_shape, fail, plural, short_repr, type_words
from snnjax.blocks.block import Block, Context, Shape, times
from snnjax.blocks.linear import Linear, LinearParams
from snnjax.blocks.norm import BatchNorm, NormParams, NormStats
from snnjax.blocks.pool import Flatten, Pool
from snnjax.graph.containers import layer, leaky_readout
from snnjax.graph.fold import times_norm
from snnjax.graph.network import Network, Params, network
from snnjax.neurons import integrate_and_fire

# The modules of flax, and where its dict has the arrays of each.
_FLAX = {"dense": "Dense", "conv1d": "Conv", "conv2d": "Conv", "batch_norm": "BatchNorm"}
_WEIGHTS = (("params", "kernel"), ("params", "bias"))
_NORM = (("params", "scale"), ("params", "bias"), ("batch_stats", "mean"), ("batch_stats", "var"))


class _Part(NamedTuple):
    """A layer of the source network."""

    place: int  # in the list
    block: Any  # None for a rectifier
    shape: Shape  # of what it receives
    params: LinearParams | None = None  # of a connection, with the norm behind it


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
    the `percentile` of all positive activations of its layer on the samples. For this the weights behind the neurons
    are multiplied by `most`, and weights and bias before them divided by it; larger activations are cut off. The
    read-out sums up its currents, so after `t` steps ``output.output[-1] / t`` are the logits, up to the
    rounding of rates: more steps, smaller errors.

    Args:
        layers: the source network in order: `dense`, `conv1d`, `conv2d`, `blocks.batch_norm` directly behind these,
            `mean_pool`, `sum_pool`, `flatten` and ``jax.nn.relu``. It ends with the logits, without a softmax.
        weights: its arrays in the order of the layers, as from ``get_weights()`` of a Keras model: weights and bias of
            a connection; scale, bias, mean and variance of a norm. Or a dict of flax, ``{"params": ..., "batch_stats":
            ...}``, in which a layer without a name is looked up under the name that flax gives it, as ``Conv_0``.
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
        Array([[2.4375]], dtype=float32)

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
    shape = tuple(samples.shape[1:])
    parts = _parts(layers, shape, _Arrays(weights))
    net = _network(shape, parts)
    return net, _params(net, _normalised(parts, jnp.asarray(samples, jnp.float32), float(percentile)))


class _Arrays:
    """The arrays of the source network, taken layer by layer."""

    def __init__(self, given: Any) -> None:
        if not isinstance(given, list | tuple | Mapping):
            fail(
                f"convert: `weights` must be a list of arrays or a dict of flax, got {type_words(given)}. "
                "Pass model.get_weights(), or {'params': ...}."
            )
        self.given = given
        self.taken = 0
        self._numbers: dict[str, int] = {}

    def take(self, place: int, block: Any, wanted: Sequence[Shape], where: Any) -> list[Array]:
        """The arrays of a layer, of these shapes."""
        if isinstance(self.given, Mapping):
            name = block.name or self._flax_name(block.kind)
            found = [
                (f"weights['{tree}']['{name}']['{own}']", self._look_up(tree, name, own))
                for tree, own in where
            ]
        else:
            first, self.taken = self.taken, self.taken + len(wanted)
            own = self.given[first : self.taken]
            if len(own) < len(wanted):
                fail(
                    f"convert: `weights` must hold {plural(len(wanted), 'array')} for layers[{place}], "
                    f"{block.kind}, got {len(own)}. Pass bias=False for a connection without a bias."
                )
            found = [(f"weights[{first + index}]", array) for index, array in enumerate(own)]
        for (name, array), shape in zip(found, wanted, strict=False):
            hint = f"They belong to layers[{place}], {block.kind}"
            check_shape("convert", name, array, shape, "as the layer wants", hint)
        return [jnp.asarray(np.asarray(array, np.float32)) for _, array in found]

    def _flax_name(self, kind: str) -> str:
        own = _FLAX.get(kind, kind)
        self._numbers[own] = self._numbers.get(own, -1) + 1
        return f"{own}_{self._numbers[own]}"

    def _look_up(self, tree: str, name: str, own: str) -> Any:
        place = self.given
        for key in (tree, name, own):
            if not isinstance(place, Mapping) or key not in place:
                known = ", ".join(map(repr, place)) if isinstance(place, Mapping) else type_words(place)
                fail(
                    f"convert: `weights` must hold ['{tree}']['{name}']['{own}'], got only {known} in place of "
                    f"{key!r}. Name the layer as in flax, as in dense(10, name=...)."
                )
            place = place[key]
        return place

    def finish(self) -> None:
        """Check that every array of a list was taken."""
        if not isinstance(self.given, Mapping) and self.taken != len(self.given):
            fail(
                f"convert: `weights` must hold {plural(self.taken, 'array')}, got {len(self.given)}. "
                "Does the list of layers lack one?"
            )


def _parts(layers: Any, shape: Shape, arrays: _Arrays) -> list[_Part]:
    """The layers with their arrays, and norms in the connections before them."""
    if not isinstance(layers, list | tuple):
        fail(f"convert: `layers` must be a list of layers, got {type_words(layers)}. Write [dense(10)].")
    parts: list[_Part] = []
    for place, item in enumerate(layers):
        if isinstance(item, Block) and item.is_skipped(train=False):
            continue
        if isinstance(item, BatchNorm):
            parts.append(_with_norm(place, item, parts, arrays))
            continue
        if item is jax.nn.relu:
            parts.append(_rectifier(place, shape, parts))
            continue
        if not isinstance(item, Linear | Pool | Flatten) or item.source is not None:
            names = "connections, batch_norm, mean_pool, sum_pool, flatten and jax.nn.relu in a chain"
            got = getattr(item, "kind", None) or short_repr(item)
            fail(
                f"convert: `layers` must be {names}, got {got} in layers[{place}]. Replace it, or leave it out."
            )
        block = item.fitted(shape)
        parts.append(_Part(place, block, shape, _linear(place, block, shape, arrays)))
        shape = block.out_shape(shape)
    if not _connections(parts):
        fail(
            "convert: `layers` must end with a connection, got none behind the last rectifier. Leave it out."
        )
    arrays.finish()
    return parts


def _connections(parts: list[_Part]) -> list[_Part]:
    """The connections behind the last rectifier."""
    last = max((index for index, part in enumerate(parts) if part.block is None), default=-1)
    return [part for part in parts[last + 1 :] if part.params is not None]


def _rectifier(place: int, shape: Shape, parts: list[_Part]) -> _Part:
    if not _connections(parts):
        got = "none before" if len(parts) == 0 else "no connection since the last one before"
        fail(
            f"convert: `layers` must have a connection before each rectifier, got {got} layers[{place}]. Remove it."
        )
    return _Part(place, None, shape)


def _linear(place: int, block: Any, shape: Shape, arrays: _Arrays) -> LinearParams | None:
    if not isinstance(block, Linear):
        return None
    wanted, where = [block.weights_shape(shape), (block.out_shape(shape)[-1],)], _WEIGHTS
    count = 2 if block.bias else 1
    return LinearParams(*arrays.take(place, block, wanted[:count], where[:count]))


def _with_norm(place: int, norm: BatchNorm, parts: list[_Part], arrays: _Arrays) -> _Part:
    """The connection before a norm, with the norm in it."""
    before = parts.pop() if parts and parts[-1].params is not None else None
    if before is None:
        fail(
            f"convert: `layers` must have batch_norm directly behind a connection, got it in layers[{place}]. "
            "Train the network with the norm there."
        )
    channels = before.block.out_shape(before.shape)[-1]
    scale, bias, mean, variance = arrays.take(place, norm, [(channels,)] * 4, _NORM)
    factor, term = norm.affine(NormParams(scale, bias), NormStats(mean, variance))
    block = dataclasses.replace(before.block, bias=True)
    return before._replace(block=block, params=times_norm(before.params, factor, term))


def _network(shape: Shape, parts: list[_Part]) -> Network:
    """Layers from each connection to its rectifier, and the read-out."""
    items: list[Any] = []
    stack: list[Block] = []
    for part in parts:
        if part.block is None:
            name, connection = _stacked(stack)
            items.append(layer(connection, integrate_and_fire(initial=0.5), name=name))
            stack = []
        else:
            (stack if stack or part.params is not None else items).append(part.block)
    name, connection = _stacked(stack)
    return network(shape, items, leaky_readout(connection, decay=1, normalize=False, name=name))


def _stacked(blocks: list[Block]) -> tuple[str | None, Any]:
    """The blocks from a connection on, as the connection of a layer, and the name of that connection."""
    own = [dataclasses.replace(block, name=None) for block in blocks]
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
        got = "zeros alone" if np.isfinite(known).all() else "numbers that are not finite"
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
