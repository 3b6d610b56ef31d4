"""The table of a layer of neurons in the integers of a chip (`snnjax.fixed_point`)."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_STATE = arrays("counts", "batch", "neurons")
_CURRENTS = arrays("counts", "receptors", "batch", "neurons")
_CONSTANT = arrays("counts", "neurons")
_LAST = arrays("sums", "batch", "neurons", given="with recurrent")
_SEEN = arrays("sums", "steps_or_0", "batch", "neurons")  # no rows if nobody reads them


class Operands(NamedTuple):
    """The operands of ``snnjax_integer_layer``; receptors are the synaptic currents of a neuron."""

    spikes: Annotated[Any, arrays("inputs", "steps", "batch", "width", given="optional")]  # whole numbers
    # Those of the step before, if all arrive one step later
    before: Annotated[Any, arrays("sums", "batch", "width", given="optional")]
    weights: Annotated[Any, arrays("int8", "receptors", "width", "neurons", given="with spikes")]
    # The sums that arrive, in place of spikes; float32 that holds integers
    drive: Annotated[Any, arrays("sums", "steps", "receptors", "batch", "neurons", given="without spikes")]
    recurrent: Annotated[Any, arrays("int8", "receptors", "neurons", "neurons", given="optional")]
    shift: Annotated[Any, arrays("counts")]  # of the weights, to the left
    recurrent_shift: Annotated[Any, arrays("counts")]
    threshold: Annotated[Any, _CONSTANT]
    decay: Annotated[Any, _CONSTANT]
    synapse_decay: Annotated[Any, arrays("counts", "receptors", "neurons")]
    bias: Annotated[Any, _CONSTANT]
    v: Annotated[Any, _STATE]
    current: Annotated[Any, _CURRENTS]
    fired: Annotated[Any, _LAST]  # the last spikes
    lengths: Annotated[Any, arrays("counts", "batch", given="optional")]


class Results(NamedTuple):
    """Its results; of each step, float32 that holds integers."""

    spikes: Annotated[Any, _SEEN]
    membranes: Annotated[Any, _SEEN]
    currents: Annotated[Any, arrays("sums", "steps_or_0", "receptors", "batch", "neurons")]
    counts: Annotated[Any, _STATE]  # of spikes in all steps
    v: Annotated[Any, _STATE]
    current: Annotated[Any, _CURRENTS]


class ChipNumbers(NamedTuple):
    """The static values: fields of `FixedPoint`, and what its choices mean."""

    state_bits: int
    decay_bits: int
    input_shift: int
    max_spikes: int
    shifts: bool  # decays
    to_zero: bool
    at_least_one: bool
    saturates: bool  # currents
    wraps: bool
    symmetric: bool
    each_source: bool
    input_first: bool
    change_first: bool
    bounded_last: bool
    subtracts: bool
    inclusive: bool


ROOTS = (Operands, Results)
STATIC = (ChipNumbers,)
