"""Initial parameters that keep activity alive in deep networks."""

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._check import concrete, fail
from snnjax._types import Params, Signal, Stats, accumulation_dtype
from snnjax.blocks.block import Block, Context, Shape, rounded
from snnjax.blocks.pool import Pooled
from snnjax.blocks.spiking import Spiking
from snnjax.graph.alone import block_key, run_alone
from snnjax.graph.containers import Node
from snnjax.graph.loop import Held, Loop, run_loop
from snnjax.graph.recurrence import loops, parts

# Weights of what returns to neurons start at this fraction of the scale at which they would drive them as strongly as
# their inputs.
RECURRENT_SHARE = 0.5
# Bisection steps of the search for a scale factor, from 2^-8 to 2^8.
_HALVINGS, _LOG2_RANGE = 12, 8.0

T = TypeVar("T")


class Sample(NamedTuple):
    """Inputs, and the mean activity that each layer should have on them."""

    inputs: Signal  # signals by name
    lengths: Array | None
    target: Any


@functools.partial(jax.jit, static_argnames=("nodes", "shapes", "dtype"))
def draw(
    key: Array,
    nodes: tuple[Node, ...],
    shapes: tuple[tuple[Shape, ...], ...],
    dtype: DTypeLike,
    stats: Stats,
    sample: Sample | None,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Draw the params of all nodes, scaled to the neurons that they drive, and to the activity on a sample.

    `stats` are the statistics for the sample, None for those before the first call. The second result is whether each
    layer of neurons could be given the activity.
    """
    params = _scaled_to_neurons(_drawn(key, nodes, shapes, dtype), nodes, shapes)
    if sample is None:
        return params, {}
    stats = initial_stats(key, nodes, shapes) if stats is None else stats
    wide = accumulation_dtype(dtype)
    sample = sample._replace(inputs={name: rounded(x, wide) for name, x in sample.inputs.items()})
    return _scaled_to_activity(params, nodes, shapes, stats, sample)


@functools.partial(jax.jit, static_argnames=("nodes", "shapes"))
def initial_stats(key: Array, nodes: tuple[Node, ...], shapes: tuple[Any, ...]) -> dict[str, Any]:
    """The stats of all nodes that have some before the first call."""
    each = zip(nodes, shapes, strict=True)
    found = {node.name: node.block.initial_stats(_key_of(key, node.name), *own) for node, own in each}
    return {name: own for name, own in found.items() if own is not None}


def _drawn(
    key: Array, nodes: tuple[Node, ...], shapes: tuple[tuple[Shape, ...], ...], dtype: DTypeLike
) -> dict[str, Any]:
    each = zip(nodes, shapes, strict=True)
    found = {node.name: node.block.init(_key_of(key, node.name), *own, dtype=dtype) for node, own in each}
    return {name: own for name, own in found.items() if own is not None}


def _key_of(key: Array, name: str) -> Array:
    own = block_key(key, name)
    assert own is not None
    return own


@functools.cache
def params_like(nodes: tuple[Node, ...], shapes: tuple[Any, ...]) -> dict[str, Any]:
    """The structure, shapes and dtypes of the params that `draw` draws in float32, without arrays."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    options = {"nodes": nodes, "shapes": shapes, "dtype": jnp.dtype(jnp.float32)}
    return jax.eval_shape(functools.partial(_drawn, **options), key)


def scaling_nodes(params: dict[str, Any], nodes: tuple[Node, ...]) -> dict[str, tuple[str, ...]]:
    """For each node with neurons, the nearest nodes before it that can scale its currents and scale no others'."""
    by_name, taken, found = {node.name: node for node in nodes}, set(), {}
    for node in nodes:
        if node.block.drive() is None:
            continue
        own, waiting, seen = [], list(node.sources), set()
        while waiting:
            source = by_name.get(waiting.pop())
            if source is None or source.block.drive() is not None or source.name in seen:
                continue
            seen.add(source.name)
            held = params.get(source.name)
            if (
                held is not None
                and jax.eval_shape(lambda p, b=source.block: b.scaled(p, jnp.float32(1)), held) is not None
            ):
                own.append(source.name)
            else:
                waiting += source.sources
        found[node.name] = tuple(name for name in dict.fromkeys(own) if name not in taken)
        taken.update(own)
    return found


@functools.lru_cache(maxsize=256)
def _returning(nodes: tuple[Node, ...]) -> frozenset[str]:
    """The nodes of loops that are reached by late signals before any neurons."""
    found, of_loops = set[str](), loops(nodes)
    for index, node in enumerate(nodes):  # each behind those that it receives, but for late ones
        passes = node.block.drive() is None and not found.isdisjoint(node.sources)
        if index in of_loops and (passes or node.is_late):
            found.add(node.name)
    return frozenset(found)


def _scaled_to_neurons(params: dict[str, Any], nodes: Any, shapes: Any) -> dict[str, Any]:
    """Params whose currents have the deviation that the neurons after them need."""
    by_name = {node.name: (node, own) for node, own in zip(nodes, shapes, strict=True)}
    returning = _returning(nodes)
    for name, scaling in scaling_nodes(params, nodes).items():
        drive = jnp.float32(_checked(name, by_name[name][0].block.drive()))
        for source in scaling:
            returns = source in returning
            wanted = drive * RECURRENT_SHARE if returns else drive / _share_of_pools(by_name, source)
            count = sum((other in returning) is returns for other in scaling)
            own = by_name[source][0].block
            params = {**params, source: own.scaled(params[source], wanted / math.sqrt(count))}
    return params


def _checked(name: str, drive: float | None) -> float:
    """The deviation of the currents that a node with neurons needs, if it is one."""
    if drive is None or not 0 < drive < math.inf:
        fail(
            f"network.init: `{name}` must have membranes that small currents move and leave finite, "
            f"got a drive of {drive}. Check the function integrate of its neuron."
        )
    return drive


def _share_of_pools(by_name: Any, name: str) -> float:
    """The deviation of a pooled signal relative to that of one spike, of the pools directly before a node."""
    share = 1.0
    while True:
        (source, *others) = by_name[name][0].sources
        if others or source not in by_name:
            return share
        node, own = by_name[source]
        op = node.block.op(*own) if len(own) == 1 else None
        if not isinstance(op, Pooled):
            return share
        share, name = share * math.sqrt(math.prod(op.pooling.window)) * op.pooling.scale, source


def _scaled_to_activity(
    params: dict[str, Any], nodes: Any, shapes: Any, stats: Stats, sample: Sample
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Scale the params before each layer of neurons until its mean activity is the target, in order.

    Where no factor makes them spike, as without spikes in the sample, params stay as they are.

    Layer-sequential, after Mishkin and Matas 2016 (arXiv:1511.06422), with the activity instead of the variance.
    """
    signals: dict[str, Signal] = dict(sample.inputs)
    returning, groups, reached = _returning(nodes), parts(nodes), {}
    scaling = {
        name: tuple(own for own in names if own not in returning)
        for name, names in scaling_nodes(params, nodes).items()
    }
    for place, group in enumerate(groups):
        for index in group:
            name, block, _ = nodes[index]
            names = scaling.get(name, ())
            if not block.is_spiking or not names:
                continue
            affected = _between(nodes, groups[: place + 1], set(names))

            def activity(log2_factor: Array, own: Any = (params, signals, name, names, affected)) -> Array:
                params, signals, name, names, affected = own
                scaled = _times(params, nodes, names, jnp.exp2(log2_factor))
                return _ran(nodes, shapes, affected, scaled, stats, signals, sample)[1][name]

            factor, reached[name] = _log2_factor(activity, sample.target)
            params = _times(params, nodes, names, jnp.exp2(factor))
            signals = _ran(nodes, shapes, affected[:-1], params, stats, signals, sample)[0]
        signals = _ran(nodes, shapes, [group], params, stats, signals, sample)[0]
    return params, reached


def warn_of_unreached(reached: dict[str, Array], target: Any) -> None:
    """Warn of layers that no scale of their weights gives the activity, if that is known."""
    for name, found in reached.items():
        if concrete(found) is not None and not found:
            text = (
                f"network.init: `{name}` does not reach an activity of {target} on these inputs at any scale of its "
                "weights. Pass inputs with more spikes, or another target_activity."
            )
            warnings.warn(text, RuntimeWarning, stacklevel=4)


def _between(nodes: Any, groups: Any, names: set[str]) -> list[tuple[int, ...]]:
    """The last group, and the ones before it with nodes that depend on `names`, these included."""
    depend, found = set(names), []
    for group in groups:
        own, received = {nodes[i].name for i in group}, {name for i in group for name in nodes[i].sources}
        if own & names or depend & received or group is groups[-1]:
            depend |= own
            found.append(group)
    return found


def _times(params: dict[str, Any], nodes: Any, names: tuple[str, ...], factor: Array) -> dict[str, Any]:
    own = {node.name: node.block.scaled(params[node.name], factor) for node in nodes if node.name in names}
    return {**params, **own}


def _ran(
    nodes: Any, shapes: Any, groups: Any, params: Params, stats: Stats, signals: Signal, sample: Sample
) -> tuple[dict[str, Signal], dict[str, Array]]:
    """The signals of groups of nodes in training without lists, and the mean activities of their neurons."""
    ran, rates = dict(signals), {}
    for group in groups:
        own = [(nodes[index], shapes[index]) for index in group]
        found, counts = _ran_together(own, params, stats or {}, ran, sample)
        ran |= found
        rates |= {name: _mean_rate(each, found[name].shape[0], sample) for name, each in counts.items()}
    return ran, rates


def _ran_together(
    group: list[tuple[Node, Any]], params: Params, stats: Stats, signals: Signal, sample: Sample
) -> tuple[dict[str, Signal], dict[str, Array]]:
    """The signals of a node, or of those of a loop, and the counts of their spikes."""
    nodes = [
        node._replace(block=node.block.without_capacity()) if isinstance(node.block, Spiking) else node
        for node, _ in group
    ]
    names = {node.name for node in nodes}
    given = {source: signals[source] for node in nodes for source in node.sources if source not in names}
    dtype, batch = next(iter(given.values())).dtype, next(iter(given.values())).shape[1]
    context = Context(lengths=sample.lengths, key=jax.random.key(0), second_threshold={}, train=True)
    state = {}
    for node, (_, own) in zip(nodes, group, strict=True):
        held = params.get(node.name), stats.get(node.name)
        state[node.name] = first_state(node.block, *held, batch, own, dtype)
    if len(nodes) == 1:
        (node,), ((_, own),) = nodes, group
        held = params.get(node.name), state[node.name], stats.get(node.name)
        result = run_alone(node, own, dtype, held, given, context)
        return {node.name: result.signal}, {} if result.counts is None else {node.name: result.counts}
    held = Held(*({name: part[name] for name in names if name in part} for part in (params, stats)))
    state = {name: own for name, own in state.items() if own is not None}
    loop = Loop(tuple(nodes), tuple(own for _, own in group), frozenset(names), dtype)
    found = run_loop(loop, held, state, given, context)
    return found.signals, found.counts


def _mean_rate(counts: Array, num_steps: int, sample: Sample) -> Array:
    counts = counts.astype(jnp.float32)
    if sample.lengths is None:
        return jnp.mean(counts / max(num_steps, 1))
    steps = jnp.maximum(sample.lengths, 1)[:, None].astype(counts.dtype)
    return jnp.mean(counts / steps, where=sample.lengths[:, None] > 0)


def first_state(
    block: Block, params: Params, stats: Stats, batch: int, shapes: tuple[Shape, ...], dtype: DTypeLike
) -> Any:
    """The state of a block before the first step, with float64 in place of float32 in a network of float64.

    Neurons whose constants are all numbers do not know the dtype of their currents.
    """
    return in_dtype(block.initial_state(params, stats, batch, *shapes), dtype)


def in_dtype(state: T, dtype: DTypeLike) -> T:
    """A state, or its shapes, with float64 in place of float32 for results in float64."""
    if dtype != jnp.float64:
        return state

    def wide(leaf: Array | jax.ShapeDtypeStruct) -> Array | jax.ShapeDtypeStruct:
        if leaf.dtype != jnp.float32:
            return leaf
        return leaf.update(dtype=dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf.astype(dtype)

    return jax.tree.map(wide, state)


def _log2_factor(activity: Callable[[Array], Array], target: Any) -> tuple[Array, Array]:
    """The logarithm of the factor at which an increasing activity is nearest to the target, and whether it reaches it.

    Where nothing spikes at any factor it is 0, the logarithm of 1.
    """

    def halve(_: object, before: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, spikes = before
        middle = 0.5 * (low + high)
        rate = activity(middle)
        too_quiet = rate < target
        low, high = jnp.where(too_quiet, middle, low), jnp.where(too_quiet, high, middle)
        return low, high, spikes | (rate > 0)

    start = jnp.float32(-_LOG2_RANGE), jnp.float32(_LOG2_RANGE), jnp.bool_(False)
    low, high, spikes = jax.lax.fori_loop(0, _HALVINGS, halve, start)
    return jnp.where(spikes, 0.5 * (low + high), 0), high < _LOG2_RANGE
