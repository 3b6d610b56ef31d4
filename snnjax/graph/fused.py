"""A chain of nodes as one call of `snnjax.lif_network`."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import sum_dtype, wide
from snnjax.blocks.block import BlockResult, Context, Shape, Signal, flat, shaped
from snnjax.blocks.delay import DelayState
from snnjax.blocks.linear import rescaled
from snnjax.blocks.spiking import Neurons, SpikingState
from snnjax.graph.containers import Node
from snnjax.graph.plan import Fused, FusedLayer
from snnjax.ops import LeakyReadout, LIFLayer, LIFNetworkState
from snnjax.ops.lif_network import count_network, network_switches


class Arrays(NamedTuple):
    """What the nodes of a network hold, by name."""

    params: Mapping[str, Any]
    state: Mapping[str, Any]
    stats: Mapping[str, Any]

    def operands(self, node: Node, shape: Shape) -> Any:
        """The arrays of the node's op."""
        return node.block.operands(self.params.get(node.name), self.stats.get(node.name), shape)


class _Chain(NamedTuple):
    """A chain, and what its nodes hold."""

    nodes: tuple[Node, ...]
    shapes: tuple[tuple[Shape, ...], ...]  # that each node receives
    arrays: Arrays
    context: Context

    def operands(self, index: int) -> Any:
        return self.arrays.operands(self.nodes[index], self.shapes[index][0])

    def op(self, index: int) -> Any:
        return self.nodes[index].block.op(self.shapes[index][0])

    def state(self, index: int) -> Any:
        return self.arrays.state.get(self.nodes[index].name)

    def linear(self, layer: FusedLayer) -> tuple[Any, Array | None]:
        """Weights and bias of a layer, with the norm behind them."""
        weights, bias = self.operands(layer.product)
        if layer.norm is None:
            return weights, bias
        factor, term = self.operands(layer.norm)
        folded = rescaled(weights, factor)
        repeats = math.prod(self.shapes[layer.neuron][0][:-1])
        factor, term = jnp.tile(factor, repeats), jnp.tile(term, repeats)
        return folded, (term if bias is None else wide(bias) * factor + term).astype(weights.dtype)

    def lif_layer(self, layer: FusedLayer) -> tuple[LIFLayer, Any]:
        """A layer in the form of the op, and its second threshold."""
        weights, bias = self.linear(layer)
        constants, second, recurrent = self.operands(layer.neuron)
        decay, threshold, gain, second_state = constants
        delays = None if layer.delay is None else self.operands(layer.delay)
        options = (recurrent, second_state, layer.connection, delays)
        return LIFLayer(weights, decay, threshold, gain, bias, *options), second


def run_fused(
    chain: Fused,
    nodes: tuple[Node, ...],
    shapes: tuple[tuple[Shape, ...], ...],
    arrays: Arrays,
    x: Signal,
    context: Context,
) -> dict[int, BlockResult]:
    """The results of the nodes of a chain whose state or signal leaves it."""
    own = _Chain(nodes, shapes, arrays, context)
    layers, seconds = zip(*(own.lif_layer(layer) for layer in chain.layers), strict=True)
    ops: list[Neurons] = [own.op(layer.neuron) for layer in chain.layers]
    readout, first_readout = _readout(own, chain, layers[-1])
    records = list(chain.taps)
    if chain.readout is None and ops[-1].capacity is None:
        records[-1] = False  # its spikes are the output
    switches = network_switches(
        layers,
        readout,
        [op.capacity for op in ops],
        [op.surrogate for op in ops],
        [op.form.reset for op in ops],
        [op.form.detach_reset for op in ops],
        records,
        [jnp.bfloat16 if op.rounds_record else None for op in ops],
        context.implementation,
    )
    others = context.second_threshold
    names = (nodes[layer.neuron].name for layer in chain.layers)
    given = tuple(others.get(name, second) for name, second in zip(names, seconds, strict=True))
    state = _op_state(own, chain, layers, first_readout)
    out, end = count_network(flat(x), layers, readout, state, context.lengths, given, switches)
    results = _layer_results(own, chain, out, end)
    if chain.readout is not None:
        last = own.state(chain.readout.neuron)._replace(v=end.readout)
        results[chain.readout.neuron] = BlockResult(shaped(out.output, shapes[chain.readout.neuron][0]), last)
    return results


def _layer_results(own: _Chain, chain: Fused, out: Any, end: LIFNetworkState) -> dict[int, BlockResult]:
    results, spikes = {}, list(out.spikes or [None] * len(chain.layers))
    if chain.readout is None and spikes[-1] is None:
        spikes[-1] = out.output
    for place, layer in enumerate(chain.layers):
        before: SpikingState = own.state(layer.neuron)
        v, w, sent = end.v[place], end.w[place], end.spikes[place]
        neuron = type(before.neuron)(*((v,) if w is None else (v, w)))
        after = before._replace(neuron=neuron, spikes=None if sent is None else wide(sent))
        signal = None if spikes[place] is None else shaped(spikes[place], own.shapes[layer.neuron][0])
        results[layer.neuron] = BlockResult(signal, after, None, out.activity[place], out.dropped[place])
        if layer.delay is not None and end.pending is not None:
            results[layer.delay] = BlockResult(None, DelayState(wide(end.pending[place])))
    return results


def _op_state(
    own: _Chain, chain: Fused, layers: tuple[LIFLayer, ...], readout: Array | None
) -> LIFNetworkState:
    """The state of the chain in the form of the op, which carries spikes in the dtype of the weights."""
    before = [own.state(layer.neuron) for layer in chain.layers]
    dtypes = [layer.weights.dtype for layer in layers]
    rows = [None if layer.delay is None else own.state(layer.delay).pending for layer in chain.layers]
    return LIFNetworkState(
        v=tuple(state.neuron[0] for state in before),
        w=tuple(state.neuron[1] if len(state.neuron) > 1 else None for state in before),
        spikes=tuple(
            None if state.spikes is None else state.spikes.astype(dtype)
            for state, dtype in zip(before, dtypes, strict=True)
        ),
        readout=readout,
        pending=tuple(
            None if own is None else own.astype(dtype) for own, dtype in zip(rows, dtypes, strict=True)
        ),
    )


def _readout(own: _Chain, chain: Fused, last: LIFLayer) -> tuple[LeakyReadout | None, Array | None]:
    """The read-out that the op computes, and its first membrane."""
    if chain.readout is not None:
        weights, bias = own.linear(chain.readout)
        (decay, _, gain, _), *_ = own.operands(chain.readout.neuron)
        return LeakyReadout(weights, decay, gain, bias, chain.readout.connection), own.state(
            chain.readout.neuron
        ).v
    if own.op(chain.layers[-1].neuron).capacity is None:
        return None, None
    # None would list the last layer in full: a read-out with no neurons keeps the lists and costs nothing.
    width, dtype = last.connection.num_outputs(last.weights.shape), last.weights.dtype
    nothing, batch = jnp.zeros((), dtype), own.state(chain.layers[-1].neuron).neuron[0].shape[0]
    return LeakyReadout(jnp.zeros((width, 0), dtype), nothing, nothing), jnp.zeros(
        (batch, 0), sum_dtype(dtype)
    )
