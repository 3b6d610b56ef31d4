"""The static switches of `lif_network`: what a layer does, and what a backward pass needs from a forward pass."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from snnjax._schema import Arrays, fields
from snnjax._sparse_spikes import SparseSpikes
from snnjax.ops._connection import DENSE, Connection
from snnjax.ops._lif_network.records import LayerConstants, LayerState, Operands, Record, Weighted
from snnjax.surrogates import Surrogate


class LayerSwitches(NamedTuple):
    """The static switches of a layer."""

    surrogate: Surrogate
    reset: str
    detach_reset: bool
    capacity: int | None = None  # None if every neuron receives its gradient
    connection: Connection = DENSE  # of its inputs
    records_spikes: bool = False  # as a result
    rounds_record: bool = (
        False  # of the membranes to bfloat16, whatever the weights are (`recorded_membranes`)
    )
    recurrent_delay: int | None = None  # the longest one of recurrent spikes, in steps; None for no delays
    # What the backward pass needs besides the membranes (see `with_records`): the second states, and the currents.
    needs_w: bool = False
    records_current: bool = False
    # Whether the membranes of the listed neurons may replace the others: forward both are recorded, backward those are
    # all there is.
    records_listed: bool = False

    def in_transit(self, state: LayerState, change: Callable[[Any, int], Any]) -> LayerState:
        """A state in which `change` was made to what has rows of what is in transit, given how many there are."""
        recurrent = self.recurrent_delay
        longest = {"pending": self.connection.max_delay, "earlier_spikes": recurrent, "arriving": recurrent}
        rows = {name: getattr(state, name) for name in longest}
        changed = {
            name: change(rows[name], own + (name != "arriving"))
            for name, own in longest.items()
            if own is not None and rows[name] is not None
        }
        return state._replace(**changed)


class Switches(NamedTuple):
    """The static switches of the target."""

    layers: tuple[LayerSwitches, ...]
    readout: Connection  # of the readout's inputs
    implementation: str | None = None
    keeps_record: bool = False  # for the backward pass


@jax.tree_util.register_static
@dataclass(frozen=True)
class Needs:
    """What the backward pass has to compute; XLA drops the rest, and kernels skip it."""

    operands: Operands  # flags
    counts: bool  # whether the counts have a cotangent


def differentiable(tree: Operands, operands: Operands) -> Operands:
    """`tree`, which has the structure of `operands`, without the leaves that have no cotangent."""
    inputs = tree.inputs
    if isinstance(operands.inputs, SparseSpikes):
        inputs = dataclasses.replace(inputs, ids=None)
    elif not jnp.issubdtype(operands.inputs.dtype, jnp.floating):
        inputs = None
    return without_others(tree, lambda arrays: arrays.gradient != "none")._replace(inputs=inputs)


def without_others(record: PyTree, is_wanted: Callable[[Arrays], bool]) -> PyTree:
    """A record, or records, with None for the arrays whose rows of the table are not wanted."""
    if not hasattr(record, "_fields"):
        return tuple(without_others(each, is_wanted) for each in record)
    found = {}
    for name, kind in fields(type(record)).items():
        own, rows = getattr(record, name), getattr(kind, "__metadata__", None)
        if rows is None and own is not None:
            found[name] = without_others(own, is_wanted)
        elif rows is not None and not is_wanted(rows[0]):
            found[name] = None
    return record._replace(**found)


def with_records(switches: Switches, operands: Operands, needed: Operands) -> Switches:
    """The switches of a forward pass whose backward pass has to compute what is true in `needed`.

    Membranes and listed spikes are recorded: they determine the slope of the surrogate and the reset. Only membranes
    that follow from given currents are computed again: a record takes longer to be written and read. The second
    states are needed if the threshold depends on them, or for the cotangents of the constants that multiply them. They
    are linear in membranes, spikes and currents, and are therefore recomputed instead of recorded. The currents are
    recorded if they reach both states and are needed by these or by the cotangents of the gains; otherwise the
    cotangent of the gain follows from sums over the weights, except for a convolution, without weights, and where
    recurrent synapses have delays. Currents
    that are given are read again (`reads_currents`). The membranes of the listed neurons are recorded apart where they
    may be all that the backward pass reads (`_needs_listed_only`).
    """

    def with_needs(
        layer: LayerSwitches, linear: Weighted, constants: LayerConstants, need: LayerConstants
    ) -> LayerSwitches:
        second, need_second = constants.glif.second_state, need.glif.second_state
        # Neurons with different gains may share the weights of a convolution; what is in transit has forgotten them.
        sums_products = linear.weights is not None and layer.connection.convolution is None
        sums_products = sums_products and constants.synaptic_delays is None
        w, current = False, bool(need.glif.gain) and not sums_products
        if second is not None and need_second is not None:
            w = second.threshold_coupling is not None or need_second.w_decay or bool(need_second.v_coupling)
            current |= second.w_gain is not None and bool(w or need.glif.gain or need_second.w_gain)
        current = current and not reads_currents(linear, constants)
        return layer._replace(needs_w=bool(w), records_current=current)

    layers = []
    each = zip(
        switches.layers, operands.linears, operands.constants, needed.constants, operands.first, strict=True
    )
    for layer, linear, constants, need, first in each:
        lists = _needs_listed_only(layer, first, need)
        lists = lists and not reads_currents(linear, constants)
        layers.append(with_needs(layer, linear, constants, need)._replace(records_listed=lists))
    return switches._replace(layers=tuple(layers), keeps_record=True)


def reads_currents(linear: Weighted, constants: LayerConstants) -> bool:
    """Whether the currents of a layer are its inputs, but for the bias."""
    return linear.weights is None and constants.recurrent is None


def _needs_listed_only(layer: LayerSwitches, first: LayerState, need: LayerConstants) -> bool:
    """Whether the membranes of the listed neurons determine all cotangents but that of the counts.

    Elsewhere the slope has no effect. A reset to zero, a reset that is not detached, the cotangents of decay and
    threshold, and other states of neurons depend on all membranes. Lists of more than half of the neurons save too
    little.
    """
    if layer.capacity is None or 2 * layer.capacity > first.v.shape[-1] or first.has_others:
        return False
    if need.glif.decay or need.glif.threshold:
        return False
    return layer.reset == "none" or (layer.reset == "subtract" and layer.detach_reset)


def as_read(switches: Switches, record: Record, needs_counts: bool) -> tuple[Switches, Record]:
    """The switches and the record of a backward pass: each layer's membranes once."""
    layers, records = [], []
    for layer, layer_record in zip(switches.layers, record.layers, strict=True):
        if layer.records_listed and needs_counts:
            layers.append(layer._replace(records_listed=False))
            records.append(layer_record._replace(listed_v=None))
        else:
            layers.append(layer)
            records.append(layer_record._replace(v=None) if layer.records_listed else layer_record)
    return switches._replace(layers=tuple(layers)), record._replace(layers=tuple(records))
