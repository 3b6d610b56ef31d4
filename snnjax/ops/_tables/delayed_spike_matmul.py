"""The table of `delayed_spike_matmul`: spikes over time, in lists or rows, and a weight and a delay of each synapse."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_IDS = arrays("given_ids", "steps", "batch", "capacity", given="optional")
_VALUES = arrays("sums", "steps", "batch", "capacity", given="with ids")
_ROWS = arrays("sums", "steps", "batch", "neurons", given="without ids")
_EACH = arrays("sums", "synapses")
_ENDS = arrays("counts", "neurons")
_TARGETS = arrays("given_ids", "synapses")
_CURRENTS = arrays("sums", "steps", "batch", "outputs")
_LEFT = arrays("sums", "arrivals", "batch", "outputs")


class Operands(NamedTuple):
    """The operands of ``snnjax_delayed_spike_matmul``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    spikes: Annotated[Any, _ROWS]
    weights: Annotated[Any, _EACH]
    delays: Annotated[Any, _EACH]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]
    pending: Annotated[Any, _LEFT._replace(given="optional")] = None
    bias: Annotated[Any, arrays("sums", "outputs", given="optional")] = None


class Received(NamedTuple):
    """What arrives in all steps, and in those of the longest delay behind them."""

    currents: Annotated[Any, _CURRENTS]
    left: Annotated[Any, _LEFT]


class Record(NamedTuple):
    """What the backward pass reads in place of rows that hold only 0 and 1; no steps if nobody does."""

    marks: Annotated[Any, arrays("bits", "steps_or_0", "batch", "neuron_bytes", given="optional")]
    is_binary: Annotated[Any, arrays("flags", "steps_or_0", "batch", given="with record.marks")]


class Results(NamedTuple):
    """Its results; lists are not recorded."""

    received: Received
    record: Record


class SpikesBackwardOperands(NamedTuple):
    """The operands of ``snnjax_delayed_spike_matmul_spikes_backward``."""

    ids: Annotated[Any, _IDS]
    weights: Annotated[Any, _EACH]
    delays: Annotated[Any, _EACH]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]
    g: Received


class SpikesBackwardResults(NamedTuple):
    """Its result: of each slot of the lists if there are some, else of each neuron."""

    g_values: Annotated[Any, _VALUES._replace(given="optional")]
    g_spikes: Annotated[Any, _ROWS._replace(given="without g_values")]


class WeightsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_delayed_spike_matmul_weights_backward``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    spikes: Annotated[Any, _ROWS]
    weights: Annotated[Any, _EACH]
    delays: Annotated[Any, _EACH]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]
    g: Received
    record: Record


class WeightsBackwardResults(NamedTuple):
    """Its results."""

    g_weights: Annotated[Any, _EACH]
    g_delays: Annotated[Any, arrays("sums", "synapses_or_0")]  # none if nobody reads them


ROOTS = (
    Operands,
    Results,
    SpikesBackwardOperands,
    SpikesBackwardResults,
    WeightsBackwardOperands,
    WeightsBackwardResults,
)
STATIC = ()
