"""The table of `simulate`: neurons with synaptic currents or conductances, their synapses, and Poisson input."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_CONSTANT = arrays("sums", "neurons_or_1")
_OF_RECEPTORS = arrays("sums", "receptors", "neurons_or_1")
_NEURONS = arrays("sums", "neurons")
_RECEIVED = arrays("sums", "receptors", "neurons")
_REMAINING = arrays("counts", "neurons")
_SENT = arrays("bits", "arrivals", "neuron_bytes")  # of the last steps, the earliest first; so are others
_HISTORY = arrays("sums", "arrivals", "neurons")
_PAIR = arrays("sums", "pair")


class Poisson(NamedTuple):
    """One source of random input."""

    limits: Annotated[Any, arrays("counts", "steps_or_1", "levels", "neurons_or_1")]
    weights: Annotated[Any, _CONSTANT]
    receptor: Annotated[Any, arrays("counts")]


class Given(NamedTuple):
    """Spikes that are given, by step."""

    steps: Annotated[Any, arrays("counts", "events")]  # ascending, as those of the state count
    ids: Annotated[Any, arrays("counts", "events")]


class Recorded(NamedTuple):
    """What is recorded: columns that each are a sum of neurons."""

    ids: Annotated[Any, arrays("counts", "recorded")]  # of neurons
    columns: Annotated[Any, arrays("counts", "recorded")]  # ascending
    shares: Annotated[Any, arrays("sums", "recorded")]
    synapses: Annotated[Any, arrays("counts", "watched", given="optional")]  # whose weights are


class Stdp(NamedTuple):
    """Spike-timing-dependent plasticity: its rule and traces."""

    decay: Annotated[Any, _PAIR]  # of the traces, like their order
    rates: Annotated[Any, _PAIR]
    bounds: Annotated[Any, _PAIR]
    before: Annotated[Any, _HISTORY]  # what a spike of each step found
    after: Annotated[Any, _NEURONS]
    plastic: Annotated[Any, arrays("flags", "synapses", given="optional")]  # which change; None: all
    modulation: Annotated[Any, arrays("sums", "steps_or_1", given="optional")]  # the third factor
    keep: Annotated[Any, arrays("sums", given="optional")]  # the decay of eligibility in a step
    eligibility: Annotated[Any, arrays("sums", "synapses", given="with stdp.keep")]


class ShortTerm(NamedTuple):
    """Short-term plasticity: its rule and state."""

    use: Annotated[Any, _CONSTANT]
    recovery: Annotated[Any, _CONSTANT]  # decay of what is not available
    facilitation: Annotated[Any, _CONSTANT]  # decay of what is in use
    used: Annotated[Any, _NEURONS]
    available: Annotated[Any, _NEURONS]
    released: Annotated[Any, _HISTORY]  # by the spikes of each step, 0 elsewhere


class Operands(NamedTuple):
    """The operands of ``snnjax_simulate``."""

    v: Annotated[Any, _NEURONS]
    received: Annotated[Any, _RECEIVED]
    remaining: Annotated[Any, _REMAINING]
    sent: Annotated[Any, _SENT]
    step: Annotated[Any, arrays("counts")]
    leak: Annotated[Any, _CONSTANT]  # the decay of a step, or with conductances its logarithm
    threshold: Annotated[Any, _CONSTANT]
    reset: Annotated[Any, _CONSTANT]
    refractory: Annotated[Any, arrays("counts", "neurons_or_1")]
    synaptic_decay: Annotated[Any, _OF_RECEPTORS]
    effect: Annotated[Any, _OF_RECEPTORS]
    # Of `DelayedSynapses`: places of 16 bits with weights, an array or `Quantised`, or words of 32 bits without.
    words: Annotated[Any, arrays("given_ids", "synapses")]
    weights: Annotated[Any, arrays("floats", "synapses", form="sparse", given="optional")]
    segments: Annotated[Any, arrays("given_ids", "segments", "pair")]
    ends: Annotated[Any, arrays("counts", "blocks", "neurons", "pair")]
    currents: Annotated[
        Any, arrays("sums", "steps_or_0", "courses")
    ]  # of each neuron, or of all, without shares
    shares: Annotated[Any, arrays("sums", "courses", "neurons_or_1", given="optional")]  # of each course
    noise: Annotated[Any, arrays("sums", "neurons_or_1", given="optional")]  # a bit of a random word
    key: Annotated[Any, arrays("counts", "pair")]
    poisson: tuple[Poisson, ...]
    given: Given | None
    recorded: Recorded | None
    stdp: Stdp | None
    short_term: ShortTerm | None


class StdpResults(NamedTuple):
    """What plasticity leaves."""

    weights: Annotated[Any, arrays("sums", "synapses")]
    before: Annotated[Any, _HISTORY]  # what a spike of each step found
    after: Annotated[Any, _NEURONS]
    eligibility: Annotated[Any, arrays("sums", "synapses", given="optional")]


class Seen(NamedTuple):
    """What is recorded, of which the blocks of neurons each have a part of the sum."""

    v: Annotated[Any, arrays("sums", "samples", "blocks", "seen")]
    received: Annotated[Any, arrays("sums", "samples", "blocks", "receptors", "seen", given="optional")]
    weights: Annotated[Any, arrays("sums", "samples", "watched", given="optional")]


class ShortTermResults(NamedTuple):
    """What short-term plasticity leaves."""

    used: Annotated[Any, _NEURONS]
    available: Annotated[Any, _NEURONS]
    released: Annotated[Any, _HISTORY]  # by the spikes of each step, 0 elsewhere


class Results(NamedTuple):
    """Its results."""

    ids: Annotated[Any, arrays("ids", "steps", "capacity")]
    num_spikes: Annotated[Any, arrays("counts", "steps")]
    counts: Annotated[Any, arrays("counts", "neurons")]
    v: Annotated[Any, _NEURONS]
    received: Annotated[Any, _RECEIVED]
    remaining: Annotated[Any, _REMAINING]
    sent: Annotated[Any, _SENT]
    recorded: Seen | None
    stdp: StdpResults | None  # with that of the operands, and so on
    short_term: ShortTermResults | None


class SimulationNumbers(NamedTuple):
    """The static values."""

    has_conductances: bool
    sources: int  # of random input
    every: int  # so many steps a sample is recorded


ROOTS = (Operands, Results)
STATIC = (SimulationNumbers,)
