"""A chain of nodes as one call of `snnjax.lif_network`."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._neuron_table import GLIFConstants
from snnjax._synapses import ends_and_targets
from snnjax._types import Signal, Stats, upcast
from snnjax.blocks._sparse import Sparse
from snnjax.blocks._synaptic import Synaptic, SynapticState
from snnjax.blocks.block import BlockResult, Context, Shape, dense_signal, flat, shaped
from snnjax.blocks.delay import Axonal, DelayState
from snnjax.blocks.late import LateState
from snnjax.blocks.linear import rescaled
from snnjax.graph.containers import Node
from snnjax.graph.recurrence import Recurrence
from snnjax.graph.segments import Fused, FusedLayer
from snnjax.neurons._conversion import after_reset, carried, restored
from snnjax.neurons._step import just_below
from snnjax.ops._connection import DENSE
from snnjax.ops._lif_network.fill import filled
from snnjax.ops._lif_network.primitive import run_network
from snnjax.ops._lif_network.records import LayerConstants, LayerState, Operands, ReadoutOperands, Weighted
from snnjax.ops._lif_network.switches import LayerSwitches, Switches


class Arrays(NamedTuple):
    """What the nodes of a network hold, by name."""

    params: Mapping[str, Any]
    state: Mapping[str, Any]
    stats: Mapping[str, Any]

    def operands(self, node: Node, shape: Shape) -> Any:
        """The arrays of the node's op."""
        return node.block.operands(self.params.get(node.name), self.stats.get(node.name), shape)


class _Given(NamedTuple):
    """The currents that a chain begins with, ``[time, batch, neurons]``, and the norm in front of its neurons."""

    currents: Array
    factor: Array | None  # one a channel, as the term
    term: Array | None
    stats: Stats  # after the call, None if there are none or they stay as they are


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

    def given_to(self, layer: FusedLayer, x: Signal) -> _Given:
        """A signal as the currents of a layer without a product."""
        shape = self.shapes[layer.neuron][0]
        x = dense_signal(x, shape)
        if layer.norm is None:
            return _Given(flat(x), None, None, None)
        norm: Any = self.nodes[layer.norm]
        held = self.arrays.params.get(norm.name), self.arrays.stats.get(norm.name)
        x, *found = norm.block.normaliser(*held, x, self.context)
        return _Given(flat(x), *found)

    def linear(self, layer: FusedLayer) -> tuple[Any, Array | None]:
        """Weights and bias of a layer, with the norm after them."""
        assert layer.product is not None
        weights, bias = self.operands(layer.product)
        if layer.norm is None:
            return weights, bias
        factor, term = self.operands(layer.norm)
        folded = rescaled(weights, factor)
        factor, term = self.for_each(layer, (factor, term))
        return folded, (term if bias is None else upcast(bias) * factor + term).astype(weights.dtype)

    def for_each(self, layer: FusedLayer, of_channels: tuple[Array, ...]) -> tuple[Array, ...]:
        """What channels have, for each neuron."""
        repeats = math.prod(self.shapes[layer.neuron][0][:-1])
        return tuple(jnp.tile(each, repeats) for each in of_channels)

    def records(self, layer: FusedLayer, given: _Given | None) -> tuple[Weighted, LayerConstants]:
        """A layer in the records of the op."""
        weights, bias, factor = None, None, None
        if layer.product is not None:
            weights, bias = self.linear(layer)
        elif given is not None and given.factor is not None:
            factor, bias = self.for_each(layer, (given.factor, cast(Array, given.term)))
        delays = None if layer.delay is None else self.operands(layer.delay)
        constants: LayerConstants = self.operands(layer.neuron)
        second = self.context.second_threshold.get(self.nodes[layer.neuron].name, constants.second_threshold)
        if self.op(layer.neuron).is_inclusive:
            threshold = constants.glif.threshold.astype(carried(self.state(layer.neuron))["v"].dtype)
            lower = just_below(threshold)
            constants = constants._replace(glif=constants.glif._replace(threshold=lower))
            if second is not None:  # it keeps its distance, as in the scan
                moved = jax.lax.stop_gradient(lower - threshold)
                second = jnp.asarray(second).astype(threshold.dtype) + moved
        constants = constants._replace(second_threshold=second, **self.recurrent(layer))
        return Weighted(weights, bias, delays, factor), constants

    def recurrent(self, layer: FusedLayer) -> dict[str, Any]:
        """The recurrent weights of a layer, with their synapses and delays, as `LayerConstants` name them."""
        if layer.recurrence is None:
            return {}
        *delay, place = layer.recurrence.blocks
        node, synapses, found = self.nodes[place], None, {}
        if isinstance(node.block, Synaptic):
            found["recurrent"], synapses, found["synaptic_delays"] = self.operands(place)
        else:
            found["recurrent"] = self.operands(place).weights
        if isinstance(node.block, Sparse):
            synapses = self.arrays.stats.get(node.name)
        if synapses is not None:
            found["recurrent_ends"], found["recurrent_targets"] = ends_and_targets(synapses)
        if delay:
            found["recurrent_delays"] = self.operands(delay[0])
        return found

    def longest_delay(self, layer: FusedLayer) -> int | None:
        """The longest delay of recurrent spikes, None without delays."""
        blocks: list[Any] = (
            [] if layer.recurrence is None else [self.nodes[i].block for i in layer.recurrence.blocks]
        )
        return next((block.max_delay for block in blocks if isinstance(block, Axonal | Synaptic)), None)

    def switches(self, layer: FusedLayer, records_spikes: bool) -> LayerSwitches:
        """The switches of a layer."""
        own: LayerSwitches = self.op(layer.neuron).switches
        return own._replace(
            connection=layer.connection,
            records_spikes=records_spikes,
            recurrent_delay=self.longest_delay(layer),
        )

    def layer_state(self, layer: FusedLayer, dtype: DTypeLike) -> LayerState:
        """The state of a layer in the form of the op, which carries spikes in the dtype of the weights."""
        rows = None if layer.delay is None else self.state(layer.delay).pending.astype(dtype)
        found = LayerState(**carried(self.state(layer.neuron)), spikes=None, pending=rows)
        if layer.recurrence is None:
            return found
        spikes = self.state(layer.recurrence.late).sent[0].astype(dtype)
        under_way = self.state(layer.recurrence.blocks[0])
        if isinstance(under_way, SynapticState):
            return found._replace(spikes=spikes, arriving=under_way.pending)
        if isinstance(under_way, DelayState):
            sent = jnp.concatenate([under_way.pending.astype(dtype), spikes[None]])
            return found._replace(spikes=sent[-1], earlier_spikes=sent[:-1])
        return found._replace(spikes=spikes)


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
    first_layer, given = chain.layers[0], None
    if first_layer.product is None:
        given = own.given_to(first_layer, x)
        x = given.currents
    linears, constants = zip(*(own.records(layer, given) for layer in chain.layers), strict=True)
    readout, first_readout = _readout(own, chain)
    switches = Switches(
        layers=tuple(own.switches(*layer) for layer in zip(chain.layers, chain.taps, strict=True)),
        readout=DENSE if chain.readout is None else chain.readout.connection,
        implementation=context.implementation,
    )
    weights = [linear.weights for linear in (*linears, *(() if readout is None else (readout.linear,)))]
    dtype = next((each.dtype for each in weights if each is not None), x.dtype)
    first = tuple(own.layer_state(layer, dtype) for layer in chain.layers)
    operands = Operands(flat(x), linears, constants, readout, first, first_readout, context.lengths)
    results: Any = run_network(filled("network.apply", operands, switches), switches)
    found = _layer_results(own, chain, results)
    if given is not None and given.stats is not None and first_layer.norm is not None:
        found[first_layer.norm] = BlockResult(None, stats=given.stats)
    if chain.readout is not None:
        last = own.state(chain.readout.neuron)._replace(v=results.last_readout)
        shape = shapes[chain.readout.neuron][0]
        found[chain.readout.neuron] = BlockResult(shaped(results.output, shape), last)
    return found


def _recurrent_results(recurrence: Recurrence, last: LayerState) -> dict[int, BlockResult]:
    """The states of the nodes through which spikes return."""
    found = {recurrence.late: BlockResult(None, LateState(upcast(last.spikes)[None]))}
    if last.arriving is not None:
        found[recurrence.blocks[0]] = BlockResult(None, SynapticState(last.arriving))
    if last.earlier_spikes is not None:
        found[recurrence.blocks[0]] = BlockResult(None, DelayState(upcast(last.earlier_spikes)))
    return found


def _layer_results(own: _Chain, chain: Fused, results: Any) -> dict[int, BlockResult]:
    found = {}
    for place, layer in enumerate(chain.layers):
        before = own.state(layer.neuron)
        last, spikes = results.last[place], results.spikes[place]
        v = last.v
        if own.op(layer.neuron).is_immediate:
            v = after_reset(
                cast(Any, own.nodes[layer.neuron].block).neuron, own.operands(layer.neuron).glif, v
            )
        after = restored(before, last._replace(v=v))
        signal = None if spikes is None else shaped(spikes, own.shapes[layer.neuron][0])
        counted: Any = {"counts": results.counts[place], "dropped": results.dropped[place]}
        found[layer.neuron] = BlockResult(signal, after, **counted)
        if layer.recurrence is not None:
            found |= _recurrent_results(layer.recurrence, last)
        if layer.delay is not None:
            found[layer.delay] = BlockResult(None, DelayState(upcast(last.pending)))
    return found


def _readout(own: _Chain, chain: Fused) -> tuple[ReadoutOperands | None, Array | None]:
    """The readout that the op computes, and its first membrane."""
    if chain.readout is None:
        return None, None
    glif: GLIFConstants = own.operands(chain.readout.neuron).glif
    weights, bias = own.linear(chain.readout)
    return ReadoutOperands(Weighted(weights, bias), glif.decay, glif.gain), own.state(chain.readout.neuron).v
