"""The records of `lif_network`: its arrays and numbers on their way to the kernels, in the one table of them.

It is read as `snnjax._schema` says, when the libraries are built too, and imports nothing else. Cotangents of constants
have one value per neuron.

Records are pytrees. A tree of the same structure may hold shapes, batch axes, cotangents, or flags for what is needed,
instead of arrays.
"""

from typing import Annotated, Any, NamedTuple

from snnjax._neuron_table import GLIFConstants
from snnjax._schema import arrays

# Rows of cotangents that kernels may write over recorded membranes consist of whole vectors of so many numbers.
WIDEST_VECTOR = 16


_CONSTANT = arrays("sums", "neurons_or_1", gradient="wanted")
_TIMED_SUMS = arrays("sums", "steps", "batch", "neurons", given="optional")
_COUNTS = arrays("counts", "batch")


class Weighted(NamedTuple):
    """What turns the incoming spikes of a layer into its current."""

    # An array or `Quantised`, or the weights of a convolution; None for a first layer whose inputs are its currents
    weights: Annotated[
        Any,
        arrays(
            "floats", "weight_rows", "weight_columns", given="optional", gradient="wanted", form="weights"
        ),
    ]
    bias: Annotated[Any, arrays("floats", "neurons", given="optional", gradient="wanted")]
    # In steps, in the accumulation dtype; None without a `max_delay`
    delays: Annotated[Any, arrays("sums", "sent", given="optional", gradient="wanted")] = None
    # Of given currents, which are multiplied with it before the bias is added; None for 1
    factor: Annotated[Any, arrays("sums", "neurons", given="optional", gradient="wanted")] = None


class LayerConstants(NamedTuple):
    """A layer's operands besides its input current; in the accumulation dtype except for the recurrent weights."""

    glif: GLIFConstants
    # None among cotangents, and for the usual one until it is filled in
    second_threshold: Annotated[Any, _CONSTANT._replace(gradient="none")] = None
    # An array, `Quantised` or None; with `recurrent_ends` one weight for each synapse
    recurrent: Annotated[
        Any,
        arrays(
            "floats",
            "recurrent_rows",
            "recurrent_columns",
            given="optional",
            gradient="wanted",
            form="sparse",
        ),
    ] = None
    # Of its recurrent spikes in steps, besides the one that they always take; None without a longest one
    recurrent_delays: Annotated[Any, arrays("sums", "neurons", given="optional", gradient="wanted")] = None
    # Which recurrent synapses exist, as in `Synapses`; None if all do
    recurrent_ends: Annotated[Any, arrays("counts", "neurons", given="optional")] = None
    recurrent_targets: Annotated[
        Any, arrays("given_ids", "recurrent_columns", given="with constants.recurrent_ends")
    ] = None
    # Of each recurrent synapse, as `recurrent`; in place of `recurrent_delays`
    synaptic_delays: Annotated[
        Any, arrays("sums", "recurrent_rows", "recurrent_columns", given="optional", gradient="wanted")
    ] = None


class ReadoutOperands(NamedTuple):
    """A leaky integrator after the last layer."""

    linear: Weighted
    decay: Annotated[Any, _CONSTANT]
    gain: Annotated[Any, _CONSTANT]


class LayerState(NamedTuple):
    """The state that a layer carries from step to step."""

    # As a result without rows if nobody reads it, as `w` and `remaining`
    v: Annotated[Any, arrays("sums", "batch_or_0", "neurons", gradient="wanted")]
    w: Annotated[
        Any,
        arrays("sums", "batch_or_0", "neurons", given="with constants.glif.second_state", gradient="wanted"),
    ]
    # The listed spikes of recurrent layers, else None
    spikes: Annotated[
        Any, arrays("floats", "batch", "neurons", given="with constants.recurrent", gradient="always")
    ]
    # For layers with delays, else None: the undelayed inputs of the last max_delay + 1 steps, oldest first. No rows
    # stand for rows of zeros.
    pending: Annotated[
        Any, arrays("floats", "pending_or_0", "batch", "sent", given="with linears.delays", gradient="always")
    ] = None
    # For recurrent layers with delays, else None: the listed spikes of as many steps before the last one, likewise
    earlier_spikes: Annotated[
        Any,
        arrays(
            "floats",
            "earlier_or_0",
            "batch",
            "neurons",
            given="with constants.recurrent_delays",
            gradient="always",
        ),
    ] = None
    # For recurrent layers with a delay for each synapse, else None: what the spikes before the last ones bring in the
    # next steps, as many as the longest delay has, likewise
    arriving: Annotated[
        Any,
        arrays(
            "sums",
            "arrivals_or_0",
            "batch",
            "neurons",
            given="with constants.synaptic_delays",
            gradient="always",
        ),
    ] = None

    # Of neurons with a refractory period, else None: the steps that are left of it
    remaining: Annotated[
        Any, arrays("sums", "batch_or_0", "neurons", given="with constants.glif.refractory")
    ] = None

    @property
    def has_others(self) -> bool:
        """Whether neurons have more states than the membrane."""
        return self.w is not None or self.remaining is not None


class Operands(NamedTuple):
    """The operands of the target."""

    inputs: Annotated[
        Any, arrays("inputs", "steps", "batch", "width", gradient="wanted", form="events")
    ]  # an array or `SparseSpikes`
    linears: tuple[Weighted, ...]  # one per layer
    constants: tuple[LayerConstants, ...]
    readout: ReadoutOperands | None
    first: tuple[LayerState, ...]
    first_readout: Annotated[Any, arrays("sums", "batch", "neurons", given="with readout", gradient="always")]
    lengths: Annotated[Any, arrays("counts", "batch", given="optional")]

    @property
    def dtype(self) -> Any:
        """The dtype of weights, spikes and output."""
        return self.inputs.dtype if self.has_currents else self.linears[0].weights.dtype

    @property
    def has_currents(self) -> bool:
        """Whether the inputs are the currents of the first layer."""
        return self.linears[0].weights is None


class Results(NamedTuple):
    """The results of the target."""

    # None without a readout: the spikes of the last layer stand for it
    output: Annotated[Any, arrays("floats", "steps", "batch", "neurons", given="with readout")]
    # Of true spikes, no rows if nobody reads them
    counts: tuple[Annotated[Any, arrays("sums", "batch_or_0", "neurons")], ...]
    dropped: tuple[Annotated[Any, _COUNTS], ...]
    # An array or `SparseSpikes` of each layer; None unless recorded
    spikes: tuple[
        Annotated[Any, arrays("floats", "steps", "batch", "slots", given="optional", form="spikes")], ...
    ]
    last: tuple[LayerState, ...]
    last_readout: Annotated[Any, arrays("sums", "batch", "neurons", given="with readout")]


class LayerRecord(NamedTuple):
    """What the backward pass needs from the forward pass of a layer; masks have one bit per neuron (`packed`)."""

    # The membranes after each step (`recorded_membranes`); None where `listed_v` replaces them, or where given currents
    # are all that they follow from (`reads_currents`): then they are computed again
    v: Annotated[Any, arrays("membranes", "steps_or_0", "batch", "neurons", given="optional")]
    # Those of the listed neurons, ascending by id and then 0, if `with_records` requires them
    listed_v: Annotated[Any, arrays("membranes", "steps_or_0", "batch", "capacity", given="optional")]
    current: Annotated[Any, _TIMED_SUMS]  # if `with_records` requires it
    spikes: Annotated[Any, arrays("bits", "steps", "batch", "neuron_bytes")]  # the listed spikes
    # The same for all listed neurons; None without capacity
    listed: Annotated[Any, arrays("bits", "steps", "batch", "neuron_bytes", given="with capacity")]


class Record(NamedTuple):
    """What the backward pass needs from the forward pass; dense inputs are recorded as bits, read by a kernel."""

    # The inputs that are not 0, and whether all are 0 or 1; None for lists and for currents
    input_bits: Annotated[Any, arrays("bits", "steps", "batch", "input_bytes", given="optional")]
    input_is_binary: Annotated[Any, arrays("flags", "steps", "batch", given="with record.input_bits")]
    layers: tuple[LayerRecord, ...]


class ForwardResults(NamedTuple):
    """What the forward pass yields: the record if the switches require it."""

    results: Results
    record: Record | None


class Kept(NamedTuple):
    """The results that the backward pass needs."""

    output: Annotated[Any, arrays("floats", "steps", "batch", "neurons", given="with readout")]
    spikes: tuple[
        Annotated[Any, arrays("ids", "steps", "batch", "capacity", given="optional", form="ids")], ...
    ]


class Cotangents(NamedTuple):
    """The cotangents of the results; of `SparseSpikes` those of their values."""

    output: Annotated[Any, arrays("floats", "steps", "batch", "neurons", given="with readout")]
    counts: tuple[Annotated[Any, arrays("sums", "batch", "neurons", given="optional")], ...]
    spikes: tuple[Annotated[Any, arrays("floats", "steps", "batch", "slots", given="optional")], ...]
    last: tuple[LayerState, ...]
    last_readout: Annotated[Any, arrays("sums", "batch", "neurons", given="with readout")]


class BackwardArguments(NamedTuple):
    """The arguments of the backward pass."""

    operands: Operands
    results: Kept
    record: Record
    g: Cotangents


class BackwardResults(NamedTuple):
    """What the kernel of the backward pass yields."""

    operands: Operands  # their cotangents
    # Those of the membranes of some layers, which may lie in the memory of the recorded ones
    g_v: tuple[Annotated[Any, _TIMED_SUMS], ...]


class LayerOnTiles(NamedTuple):
    """What an IPU keeps of the forward pass of a layer, and its backward pass reads."""

    v: Annotated[Any, arrays("sums", "steps", "batch", "neurons")]  # the membranes after each step
    w: Annotated[Any, _TIMED_SUMS]  # the second states, if the backward pass needs them
    # A header (`LIST_HEADER`) and ids; None where nothing reads what the layer fires
    lists: Annotated[Any, arrays("ids", "steps", "batch", "list_entries", given="optional")]


class RecordOnTiles(NamedTuple):
    """What an IPU keeps of the forward pass; its inputs are read again."""

    layers: tuple[LayerOnTiles, ...]


class ForwardOnTiles(NamedTuple):
    """What the forward pass yields on an IPU."""

    results: Results
    record: RecordOnTiles | None


class BackwardOnTiles(NamedTuple):
    """The arguments of the backward pass on an IPU."""

    operands: Operands
    # The membranes of the readout, for the cotangents of its constants
    output: Annotated[Any, arrays("floats", "steps", "batch", "neurons", given="optional")]
    record: RecordOnTiles
    g: Cotangents


class LayerNumbers(NamedTuple):
    """The static values of a layer; presence of arrays says the rest."""

    reset: Annotated[int, "Reset"]
    detach_reset: bool
    surrogate: Annotated[int, "Surrogate"]
    slope: float
    reach: float  # the distance from the threshold at which the surrogate ends; 0: it does not end
    capacity: int  # -1: every neuron is listed
    needs_w: bool  # whether the backward pass needs the second states
    rounds_cotangents: bool  # to bfloat16, before they are multiplied with the weights
    exact_within: float  # but not those of neurons below that are nearer than this to their threshold
    recurrent_delay_rows: int  # the longest delay of recurrent spikes plus 1; 0 without delays


class ConnectionNumbers(NamedTuple):
    """The static values of what precedes a layer or the readout; 0 where a part is absent."""

    delay_rows: int = 0  # the longest delay plus 1
    pooling_height: int = 0
    pooling_width: int = 0
    pooling_channels: int = 0
    window_height: int = 0
    window_width: int = 0
    is_mean: bool = False
    height: int = 0
    width: int = 0
    channels: int = 0
    kernel_height: int = 0
    kernel_width: int = 0
    stride_y: int = 0
    stride_x: int = 0
    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0
    groups: int = 0
    channels_out: int = 0
    dilation_y: int = 0
    dilation_x: int = 0
    input_dilation_y: int = 0
    input_dilation_x: int = 0


# The roots of the tables: what the two targets take and yield.
ROOTS = (Operands, ForwardResults, BackwardArguments, BackwardResults, ForwardOnTiles, BackwardOnTiles)
STATIC = (LayerNumbers, ConnectionNumbers)
# The state whose sums of each neuron are what the equation of neurons steps: `NeuronState` in C++
CARRIED = LayerState
