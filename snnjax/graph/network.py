"""`Network`: a graph of blocks as pure functions of plain pytrees of arrays."""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PyTree

from snnjax import _platforms
from snnjax._arguments import explained
from snnjax._check import (
    as_lengths,
    check_choice,
    check_integer,
    check_key,
    check_size,
    check_switches,
    fail,
    short_repr,
    type_words,
)
from snnjax._dispatch import IMPLEMENTATIONS
from snnjax._quantised import Quantised, any_quantised
from snnjax._sharding import gathered
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Signal
from snnjax.blocks.block import Context, Shape, rounded
from snnjax.blocks.delay import without_rows
from snnjax.graph.card import card, in_words
from snnjax.graph.check import CONNECTIONS, check_dtypes, check_params, check_state, checked_stats
from snnjax.graph.containers import Graph, Node
from snnjax.graph.fold import without_norms
from snnjax.graph.fused import Arrays
from snnjax.graph.init import Sample, draw, first_state, in_dtype, initial_stats, warn_of_unreached
from snnjax.graph.options import checked_record, recorded_nodes, second_thresholds
from snnjax.graph.run import Running, run
from snnjax.graph.segments import FEWEST_STEPS, MANY_ROWS, Mode, Segment, segments_of
from snnjax.graph.signals import checked_signals, warn_of_bytes
from snnjax.ops.lif_network import mean_activity

Params = dict[str, Any]  # of each block that learns something, by name
State = dict[str, Any]  # of each block that has one, by name
Stats = dict[str, Any]
# To which sample inputs scale the weights: one spike per neuron in 20 steps.
_USUAL_ACTIVITY = 0.05
# The hint for those who leave the state out.
_FROM_REST = "Write network.apply(params, None, inputs) to start from rest"


class NetworkOutput(NamedTuple):
    """The results of a network, by the names of its blocks."""

    output: Signal  # of the readout, or a dict of those of each readout
    activity: dict[str, Float[Array, "batch neurons"]]  # mean true spikes per step, before capping
    dropped: dict[str, Int[Array, " batch"]]  # spikes that did not fit into the lists
    stats: Stats  # after the call
    recorded: dict[str, Signal]  # the signals asked for
    # If asked for: the membranes of each step before the reset by its spikes; 0 after the end of a sequence.
    membranes: dict[str, Float[Array, "time batch ..."]]


@dataclass(frozen=True)
class Network:
    """A graph of blocks: pure functions of parameters and state; made by `network`.

    **Non-finite numbers.** A NaN membrane does not spike, so a NaN among the inputs permanently silences its layer
    while the output stays finite: a diverged run shows NaN only in the state. ``metrics.diverged(state)`` detects it,
    also under `jax.jit`, and recorded membranes show where it began; JAX's ``jax_debug_nans`` only detects it in
    functions that return the state. ``jax_debug_infs`` is of use under `jax.jit` only: elsewhere it raises at
    infinities that are meant, such as the second threshold of a layer without capacity, -inf. A weight that is
    NaN shows only where its input is not 0: an entry of 0 adds nothing to a connection (`snnjax.lif_network`).
    """

    kind = "network"
    name = None
    source = None
    inputs: tuple[tuple[str, Shape], ...]
    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, str], ...]  # the name of each readout, and of the node whose signal it is
    is_single: bool  # whether the output is one signal, not a dict
    results: tuple[tuple[str, str], ...]  # containers, and the node whose signal is their result

    @functools.cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shape of the signal of each input and node, by name."""
        found = dict(self.inputs)
        found |= {node.name: node.block.out_shape() for node in self.nodes if node.is_late}
        for node in self.nodes:  # what is late may come from a block behind it
            if node.name not in found:
                found[node.name] = node.block.out_shape(*(found[source] for source in node.sources))
        return found

    @functools.cached_property
    def in_shapes(self) -> tuple[tuple[Shape, ...], ...]:
        """The shapes that each node receives."""
        return tuple(tuple(self.shapes[source] for source in node.sources) for node in self.nodes)

    @functools.cached_property
    def _stats_like(self) -> Stats:
        return jax.eval_shape(self.initial_stats, jax.eval_shape(lambda: jax.random.key(0)))

    @property
    def out_shape(self) -> Shape:
        """The shape of the output, of the only one or the first one."""
        return self.shapes[next(node for _, node in self.outputs)]

    @property
    def num_inputs(self) -> int:
        """The number of inputs, over all axes of their shape, of the only input or the first one."""
        return math.prod(next(shape for _, shape in self.inputs))

    @property
    def num_outputs(self) -> int:
        """The number of outputs, which is the number of classes that the network can distinguish."""
        return math.prod(self.out_shape)

    def segments(
        self,
        train: bool = False,
        record: tuple[str, ...] = (),
        implementation: str | None = None,
        steps: int = FEWEST_STEPS,
        rows: int = MANY_ROWS,
        from_rest: bool = True,
    ) -> tuple[Segment, ...]:
        """How `apply` runs the network: chains that are one call of `lif_network`, and nodes that run alone.

        `rows` are its steps times its sequences. `from_rest` is whether it is called without a state and without
        `chunk`: only then neurons with an immediate reset are part of a chain.
        """
        mode = Mode(train, record, implementation, steps, rows, from_rest)
        return segments_of(self.nodes, self.in_shapes, self._read(record), mode)

    @property
    def paths(self) -> str:
        """The segments in words, a line for each call, and one of what the default device does not take."""
        return in_words(self.nodes, self.segments(), _platforms.note())

    def __repr__(self) -> str:
        """A line for each block: its name, kind, the shape of its signal, the number of its parameters and its path."""
        return card(self.inputs, self.nodes, self.in_shapes, self.shapes, self.segments())

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        """A network is run by `apply`: it holds no parameters."""
        fail(
            "network: `network` must be run by its function `apply`, got a call of itself. "
            "Write network.apply(params, state, inputs)."
        )

    def expand(self, graph: Graph, *sources: str) -> str:
        """Add its nodes to those of another network, of which it is a part."""
        if len(self.outputs) > 1:
            fail(
                f"network: `blocks` must hold networks with one output, got one with {len(self.outputs)}. "
                "Make it without readouts, and name sources in the outer network."
            )
        wanted, given = [shape for _, shape in self.inputs], [graph.shapes[source] for source in sources]
        if given != wanted:
            fail(
                f"network: `blocks` must hold networks for signals of {_listed(given)}, "
                f"got one of {_listed(wanted)}. Make it for the blocks before it."
            )
        names = dict(zip((name for name, _ in self.inputs), sources, strict=True))
        names |= {node.name: graph.prefix + node.name for node in self.nodes}
        for node in self.nodes:
            own = tuple(names[source] for source in node.sources)
            graph.insert(node.name, node.block, own, self.shapes[node.name])
        for name, node in self.results:
            graph.results[graph.prefix + name] = names[node]
        return names[next(node for _, node in self.outputs)]

    @functools.partial(explained, op="network.init")
    def init(
        self,
        key: Array,
        inputs: Signal = None,
        *,
        lengths: Any = None,
        stats: Stats | None = None,
        target_activity: float = _USUAL_ACTIVITY,
        dtype: DTypeLike = jnp.float32,
    ) -> Params:
        """Draw the initial parameters: weights are scaled to their fan-in and to the neurons that they drive.

        With sample `inputs`, they are also scaled, layer by layer, until each layer's activity is `target_activity`,
        over the steps within `lengths`. Where a layer does not spike at any scale, its weights are scaled to their
        fan-in alone.

        Raises:
            ValueError: if inputs or lengths do not fit, the activity is outside (0, 1), or no current has a finite
                effect on the membrane of some neurons; if lengths or an activity are given without inputs.

        Warns:
            RuntimeWarning: if sample inputs are as large as the bytes of an image; if a layer does not reach the
                activity.
        """
        check_key("network.init", key)
        if not jnp.issubdtype(dtype, jnp.floating):
            name = jnp.dtype(dtype).name
            fail(
                f"network.init: `dtype` must be floating-point, got {name}. Pass jnp.float32 or jnp.bfloat16."
            )
        sample = None
        is_usual = isinstance(target_activity, int | float) and target_activity == _USUAL_ACTIVITY
        if inputs is None and not (is_usual and lengths is None):
            what = "lengths" if is_usual else "target_activity"
            fail(f"network.init: `inputs` must be given with {what}, got None. Pass a batch of samples.")
        if inputs is not None:
            signals = checked_signals("network.init", self.inputs, inputs)
            for signal in signals.values():
                warn_of_bytes(signal)
            if isinstance(target_activity, int | float) and not 0 < target_activity < 1:
                fail(
                    f"network.init: `target_activity` must be between 0 and 1, got {target_activity}. "
                    "Try 0.05, one spike per neuron in 20 steps."
                )
            steps, batch = next(iter(signals.values())).shape[:2]
            lengths = None if lengths is None else as_lengths("network.init", lengths, steps, batch)
            sample = Sample(signals, lengths, target_activity)
        stats = None if stats is None else checked_stats("network.init", stats, self._stats_like)
        params, reached = draw(key, self.nodes, self.in_shapes, jnp.dtype(dtype), stats, sample)
        warn_of_unreached(reached, target_activity)
        return params

    @functools.partial(explained, op="network.initial_stats")
    def initial_stats(self, key: Array) -> Stats:
        """The stats before the first call: running statistics of norms, constants that are drawn and not learned."""
        check_key("network.initial_stats", key)
        return initial_stats(key, self.nodes, self.in_shapes)

    @functools.partial(explained, op="network.fold")
    def fold(self, params: Params, stats: Stats | None) -> tuple["Network", Params, Stats]:
        """The network without the norms directly behind a connection that nobody else reads, equal up to rounding.

        ``apply`` computes it so by itself in evaluation; a folded network is for exchange, and for networks that are
        stored.

        Raises:
            ValueError: if params or stats do not fit.

        Example:
            >>> import jax, snnjax
            >>> from snnjax import blocks
            >>> net = snnjax.network(20, [snnjax.layer(8, norm=blocks.batch_norm())], snnjax.leaky_readout(3))
            >>> params, stats = net.init(jax.random.key(0)), net.initial_stats(jax.random.key(0))
            >>> net, params, stats = net.fold(params, stats)
            >>> [node.name for node in net.nodes], stats
            (['layer_0/connection', 'layer_0/neuron', 'readout/connection', 'readout/neuron'], {})
        """
        check_params("network.fold", params, self.nodes, self.in_shapes)
        stats = checked_stats("network.fold", stats, self._stats_like)
        read = [node for _, node in self.outputs]
        nodes, taken, params, stats = without_norms(self.nodes, self.in_shapes, read, params, stats)
        outputs, results = (
            tuple((name, taken.get(node, node)) for name, node in pairs)
            for pairs in (self.outputs, self.results)
        )
        return dataclasses.replace(self, nodes=nodes, outputs=outputs, results=results), params, stats

    @functools.partial(explained, op="network.initial_state")
    def initial_state(self, params: Params, batch: int, stats: Stats | None = None) -> State:
        """Make the state before the first step.

        Raises:
            ValueError: if `batch` is not an integer of at least 0.
        """
        batch = check_size("network.initial_state", "batch", batch)
        check_params("network", params, self.nodes, self.in_shapes)
        found, stats, dtype = {}, stats or {}, params_dtype(params)
        for node, shapes in zip(self.nodes, self.in_shapes, strict=True):
            held = params.get(node.name), stats.get(node.name)
            own = first_state(node.block, *held, batch, shapes, dtype)
            if own is not None:
                found[node.name] = own
        return found

    @functools.partial(explained, op="network.apply", missing=_FROM_REST)
    def apply(
        self,
        params: Params,
        state: State | None,
        inputs: Signal,
        *,
        stats: Stats | None = None,
        train: bool = False,
        key: Array | None = None,
        lengths: Any = None,
        second_threshold: Any = None,
        record: str | Sequence[str] = (),
        chunk: int | None = None,
        implementation: str | None = None,
    ) -> tuple[NetworkOutput, State]:
        """Run the network over all time steps.

        Chains of generalised LIF layers (`neurons.GLIF`) are one call of `snnjax.lif_network` each; other blocks run
        alone, with equal results. ``network.paths`` says which path each block takes, and why.

        Args:
            params: from `init`.
            state: from `initial_state` or an earlier call; None starts from 0.
            inputs: ``[time, batch, *shape]`` or ``[time, batch, inputs]``, an array or `SparseSpikes`; a dict by name
                if the network has several inputs.
            stats: from `initial_stats` or an earlier call's ``output.stats``; only networks with norms, or neurons with
                constants that are drawn and not learned, need them.
            train: whether norms use the statistics of the call, and dropout drops.
            key: of the call's random numbers; each block receives its own.
            lengths: number of steps of each sequence.
            second_threshold: overrides that of all neurons that list their spikes, or of those in a dict by name; it
                may be traced.
            record: what to add to the output: "spikes" of all neurons, "membranes" of all neurons (they are scanned
                then), or names of blocks, whose signals are recorded.
            chunk: recompute the forward pass in chunks of this many steps to save memory, wherever no block needs
                all steps.
            implementation: the implementation of every product, list and fused op (the neurons themselves are plain
                JAX): "cpu" and "gpu" raise if one of them has no kernel there. "composed" scans every layer in plain
                jnp, which supports forward mode (`jax.jvp`, `jax.jacfwd`) and derivatives of any order; the kernels
                only support first order in reverse mode.

        Raises:
            ValueError: if inputs, state, stats, thresholds or implementation do not fit.
        """
        op = "network.apply"
        check_choice(op, "implementation", implementation, IMPLEMENTATIONS)
        if hasattr(state, "dtype") or isinstance(state, SparseSpikes):
            fail(f"{op}: `state` must be a dict by block or None, got {type_words(state)}. {_FROM_REST}.")
        if chunk is not None:
            chunk = check_integer(op, "chunk", chunk, 1)
        record = checked_record(record, {*self.shapes, *dict(self.results)}, implementation)
        if key is not None:
            check_key(op, key)
        check_switches(op, train=train)
        given = params, state, stats, inputs, lengths
        arrays, signals, lengths = checked_call(self, *given, is_whole=chunk is None)
        second = second_thresholds(second_threshold, self.nodes, self.results, self.shapes, arrays)
        context = Context(lengths, key, second, bool(train), record, implementation)
        return run_checked(self, arrays, signals, context, chunk, state is None and chunk is None)

    def _read(self, record: tuple[str, ...]) -> frozenset[str]:
        recorded = recorded_nodes(record, self.nodes, self.results)
        return frozenset(node for _, node in self.outputs) | frozenset(recorded.values())


def checked_call(
    network: Network,
    params: Params,
    state: State | None,
    stats: Stats | None,
    inputs: Signal,
    lengths: Any,
    is_whole: bool = True,
) -> tuple[Arrays, dict[str, Signal], Array | None]:
    """The arguments of `Network.apply`, checked, with a state; `is_whole` where no scan over chunks carries it."""
    check_params("network", params, network.nodes, network.in_shapes)
    check_dtypes("network.apply", params)
    params, state, stats, inputs, lengths = gathered((params, state, stats, inputs, lengths))
    signals = checked_signals("network.apply", network.inputs, inputs)
    steps, batch = next(iter(signals.values())).shape[:2]
    stats = checked_stats("network.apply", stats, network._stats_like)
    if state is None:
        state = in_dtype(network.initial_state(params, batch, stats), results_dtype(params, state, signals))
        state = without_rows(state) if is_whole else state
    else:
        dtype = results_dtype(params, state, signals)
        check_state("network.apply", "state", state, network.initial_state, params, batch, stats, dtype)
    lengths = None if lengths is None else as_lengths("network.apply", lengths, steps, batch)
    return Arrays(params, state, stats), signals, lengths


def run_checked(
    network: Network,
    arrays: Arrays,
    signals: Mapping[str, Signal],
    context: Context,
    chunk: int | None = None,
    from_rest: bool = False,
) -> tuple[NetworkOutput, State]:
    """`Network.apply` for checked arguments."""
    steps, batch = next(iter(signals.values())).shape[:2]
    most = FEWEST_STEPS if chunk is None else chunk
    # A number of steps that is left open counts as many.
    few = min(steps, most, FEWEST_STEPS) if isinstance(steps, int) else FEWEST_STEPS
    # Of rows, the power of two matters, so that batches of similar size share their segments.
    rows = steps * batch if isinstance(steps, int) and isinstance(batch, int) else MANY_ROWS
    rows = min(1 << rows.bit_length() >> 1, MANY_ROWS)
    segments = network.segments(context.train, context.record, context.implementation, few, rows, from_rest)
    read = network._read(context.record)
    dtype = results_dtype(arrays.params, arrays.state, signals)
    running = Running(network.nodes, network.in_shapes, segments, read, dtype)
    results = run(running, arrays, signals, context, chunk)
    return _output(network, results, running, steps, context), results.state


def _output(network: Network, results: Any, running: Running, steps: int, context: Context) -> NetworkOutput:
    def shown(name: str) -> Signal:
        return rounded(results.signals[name], running.dtype)

    outputs = {name: shown(node) for name, node in network.outputs}
    names = list(results.counts)
    activity = mean_activity([results.counts[name] for name in names], steps, context.lengths)
    wanted = recorded_nodes(context.record, network.nodes, network.results)
    recorded = {name: shown(node) for name, node in wanted.items()}
    return NetworkOutput(
        next(iter(outputs.values())) if network.is_single else outputs,
        dict(zip(names, activity, strict=True)),
        results.dropped,
        results.stats,
        recorded,
        results.membranes,
    )


def results_dtype(params: PyTree, state: PyTree, signals: Mapping[str, Signal]) -> np.dtype:
    """The dtype of the results of a network: that of its weights.

    Without any, it is float64 for a state of float64, or if none is given, for inputs of float64.
    """
    if jax.tree.leaves(params):
        return params_dtype(params)
    for tree in (state, signals):
        floats = {leaf.dtype for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)}
        if floats:
            return jnp.dtype(jnp.float64 if jnp.dtype(jnp.float64) in floats else jnp.float32)
    return params_dtype(params)


def params_dtype(params: Mapping[str, Any]) -> Any:
    """The dtype of the weights of a network, float32 without any."""
    parts = jax.tree.leaves(params, is_leaf=lambda part: isinstance(part, Quantised | CONNECTIONS))
    weights = [part.weights for part in parts if isinstance(part, CONNECTIONS)]
    others = [part for part in parts if not isinstance(part, CONNECTIONS)]
    others = [leaf for leaf in others if jnp.issubdtype(leaf.dtype, jnp.floating)]
    found = [*weights, *(leaf for leaf in others if leaf.ndim > 1), *others]
    return found[0].dtype if found else jnp.dtype(jnp.float32)


def check_trained(op: str, network: Network, params: Params, stats: Stats | None) -> None:
    """Check that all of a trained network is there, with weights in floating point: for what exports it."""
    if not isinstance(network, Network):
        fail(
            f"{op}: `network` must be a network, got {short_repr(network)}. Make it with snnjax.network(...)."
        )
    check_params(op, params, network.nodes, network.in_shapes)
    if any_quantised(params):
        hint = "Pass those that quantise_network was given"
        fail(f"{op}: `params` must have floating-point weights, got int8. {hint}.")
    if missing := network.initial_stats(jax.random.key(0)).keys() - (stats or {}).keys():
        hint = "Pass stats= those of the training"
        fail(f"{op}: `stats` must hold those of {', '.join(sorted(missing))}, got none. {hint}.")


def _listed(shapes: Sequence[Shape]) -> str:
    return " and ".join(map(str, shapes)) or "none"
