"""`FixedPoint`: the arithmetic of a chip with integer state, as a value; `XYLO`, `LAVA_LOIHI` and `SPECK` are three."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from snnjax._check import check_choice, check_integer, check_switches, check_within, fail

DECAYS = ("shift", "multiply")
ROUNDINGS = ("floor", "to_zero")
OVERFLOWS = ("saturate", "wrap", "none")
RESETS = ("subtract", "zero")
NEURONS = ("lif", "current_lif", "integrate_and_fire", "leaky_integrator")
LATE = ("none", "hidden", "all")
RECURRENT = ("none", "hidden", "all")
_SWITCHES = ("at_least_one", "symmetric", "each_source", "input_first", "change_first", "inclusive")
_SWITCHES = (*_SWITCHES, "one_scale", "bounded_last")
_EXACT_BITS = 24  # of integers that float32 holds
# The most bits of a decay: an int32 is shifted by 31 at most, and a state times 12 bits is int32 in two parts.
_DECAY_BITS = {"shift": 5, "multiply": 12}
# The least and the largest number of each: a sum of weights within 24 bits, shifted by 6, is int32 beside a state.
_RANGES = {
    "weight_bits": (2, 8),
    "state_bits": (8, _EXACT_BITS),
    "threshold_bits": (1, _EXACT_BITS),
    "bias_bits": (2, _EXACT_BITS),
    "input_shift": (0, 6),
    "weight_shift": (0, _EXACT_BITS),
    **dict.fromkeys(("max_spikes", "max_output", "max_input"), (1, 2**_EXACT_BITS)),
}


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    r"""How a chip with integer state computes a step, and what its memory holds.

    With `sat` the saturation at the bounds of a state, `over` the `overflow` of a current, `D(x, d)` what a decay by
    the integer `d` takes away, and `a` the sum of the weights of the spikes that arrive at a synapse, in each step

    .. math::

        i &= \mathrm{over}(i' + 2^k a) - D(\cdot, d_s) \text{ (input\_first)} \quad \text{or} \quad
            \mathrm{over}(i' - D(i', d_s) + 2^k a) \\
        v &= \mathrm{sat}(v' + \mathrm{sat}(\mathrm{sat}(\textstyle\sum i - D(v', d)) + b)) \text{ (change\_first)}
            \quad \text{or} \quad \mathrm{sat}(v' - D(v', d) + \textstyle\sum i + b) \\
        n &= \min(\lfloor v / \theta \rfloor, \text{max\_spikes}) \text{ if } v \ge \theta
            \text{ (inclusive, else } v > \theta \text{)}

    after which ``v`` loses ``n threshold`` (reset "subtract") or is 0 after a spike ("zero"). With `bounded_last`,
    `sat` comes after that.

    Args:
        name: the name in messages.
        weight_bits: of a signed weight.
        state_bits: of a membrane and a synaptic current, signed, at most 24: float32 holds such states exactly.
        decay: "shift", ``D(x, d) = x >> d``, or "multiply", ``D(x, d) = x - x (2^decay_bits - d) / 2^decay_bits``.
        decay_bits: of `d`, at most 5 of a shift and 12 of a product; with "multiply" and 0 bits, membranes keep
            everything and currents nothing.
        rounding: of the bits that are shifted out, "floor" or "to_zero".
        at_least_one: a positive state that decays by a shift loses 1 or more.
        overflow: of a current: "saturate", "wrap", or "none" where currents are not stored. Membranes saturate.
        symmetric: states lie in ``[-top + 1, top - 1]`` with ``top = 2^(state_bits - 1)``, and wrapped ones in ``(-top,
            top]``; else in ``[-top, top - 1]``.
        each_source: a current saturates after each source, in their order: inputs, then the neurons themselves. Only
            with overflow "saturate", `input_first` and dense connections, and without `input_shift`.
        input_first: inputs are added to a current before it decays.
        bounded_last: membranes saturate after the reset, not before.
        change_first: the change of a membrane is computed, and saturates, before it is added.
        reset: "subtract" or "zero".
        inclusive: whether a membrane at the threshold spikes.
        max_spikes: of a hidden neuron in a step.
        max_output: of a readout.
        max_input: the largest number of spikes of an input in a step.
        input_shift: `k`, at most 6.
        weight_shift: weights are stored without this many lowest bits: they are multiplied by 2 to this power.
        threshold_bits: of an unsigned threshold.
        threshold_shift: thresholds are multiples of 2 to this power.
        bias_bits: of a signed bias, which may be shifted to the left by up to `bias_shift` bits.
        one_scale: weights, bias and threshold of a layer share one scale, and the threshold is rounded to the nearest
            integer; else each neuron has its own scale, and its threshold is set so that it spikes where it did.
        late: spikes arrive one step later in "all" connections, in all but those of the inputs ("hidden"), or "none".
        least_synapse_decay: the smallest decay of a synapse that lets anything through.
        synapse_offset: the chip adds this to the decay of a synapse that it stores; here decays include it.
        neurons: the neurons that it has, by their names in `snnjax.neurons`.
        connections: its connections. One with "conv2d" also has pools: sums, and means by smaller weights.
        recurrent: which layers may be recurrent: "all", all but the readout ("hidden"), or "none".
        max_inputs: how many inputs there are, None for any number; likewise `max_hidden` and `max_outputs` neurons.
            ``dataclasses.replace(XYLO, max_inputs=None)`` has the arithmetic of Xylo and any number of inputs.
        cores: the numbers of weights and neurons that each core has room for; a core holds one layer. Empty for any
            number.

    Raises:
        ValueError: if a switch is unknown, a number is out of range, or switches exclude each other.

    Example:
        >>> from snnjax import fixed_point
        >>> fixed_point.XYLO.state_bits, fixed_point.LAVA_LOIHI.reset
        (16, 'zero')
    """

    name: str
    weight_bits: int
    state_bits: int
    decay: str
    decay_bits: int
    rounding: str
    neurons: tuple[str, ...] = NEURONS
    connections: tuple[str, ...] = ("dense",)
    at_least_one: bool = False
    overflow: str = "saturate"
    symmetric: bool = False
    each_source: bool = False
    input_first: bool = False
    change_first: bool = False
    bounded_last: bool = False
    reset: str = "subtract"
    inclusive: bool = True
    max_spikes: int = 1
    max_output: int = 1
    max_input: int = 1
    input_shift: int = 0
    weight_shift: int = 0
    threshold_bits: int
    threshold_shift: int = 0
    bias_bits: int
    bias_shift: int = 0
    one_scale: bool = False
    late: str = "hidden"
    least_synapse_decay: int = 0
    synapse_offset: int = 0
    recurrent: str = "all"
    max_inputs: int | None = None
    max_hidden: int | None = None
    max_outputs: int | None = None
    cores: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Check the switches."""
        choices = {
            "decay": DECAYS,
            "rounding": ROUNDINGS,
            "overflow": OVERFLOWS,
            "reset": RESETS,
            "late": LATE,
            "recurrent": RECURRENT,
        }
        for name, known in choices.items():
            check_choice("FixedPoint", name, getattr(self, name), known)
        check_switches("FixedPoint", **{name: getattr(self, name) for name in _SWITCHES})
        for name, (least, most) in _RANGES.items():
            self._check_range(name, least, most)
        self._check_decays()
        for name in ("threshold", "bias"):
            self._check_range(f"{name}_shift", 0, _EXACT_BITS - getattr(self, f"{name}_bits"))
        saturates = self.overflow == "saturate" and self.input_first and self.input_shift == 0
        if self.each_source and not (saturates and self.connections == ("dense",)):
            fail(
                "FixedPoint: `each_source` must be False unless overflow='saturate', input_first=True, "
                "input_shift=0 and connections=('dense',), got True. Leave it out."
            )

    def _check_decays(self) -> None:
        """Check that no decay takes away more than there is."""
        bits = _DECAY_BITS[self.decay]
        self._check_range("decay_bits", 0, bits)
        stored = 2**self.decay_bits - 1
        self._check_range("synapse_offset", 0, 2**bits - 1 - stored if self.decay == "shift" else 1)
        self._check_range("least_synapse_decay", 0, stored + self.synapse_offset)

    def _check_range(self, name: str, least: int, most: int) -> None:
        number, hint = getattr(self, name), "Float32 and int32 hold no more exactly"
        number = check_integer("FixedPoint", name, number, least)
        check_within("FixedPoint", name, np.array(number), most, hint, least)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest state."""
        top = 2 ** (self.state_bits - 1)
        return (-top + 1 if self.symmetric else -top), top - 1

    @property
    def most_weight(self) -> int:
        """The largest stored weight."""
        return 2 ** (self.weight_bits - 1) - 1

    @property
    def least_weight(self) -> int:
        """The least stored weight, the negative of the largest one where neurons have their own scales."""
        return -self.most_weight - (1 if self.one_scale else 0)

    @property
    def readout(self) -> "FixedPoint":
        """The arithmetic of readouts."""
        return dataclasses.replace(self, max_spikes=self.max_output)


XYLO = FixedPoint(
    name="Xylo",
    weight_bits=8,
    state_bits=16,
    decay="shift",
    decay_bits=4,
    rounding="floor",
    at_least_one=True,
    each_source=True,
    input_first=True,
    change_first=True,
    max_spikes=31,
    max_input=15,
    threshold_bits=15,
    bias_bits=16,
    least_synapse_decay=1,
    neurons=("current_lif", "leaky_integrator"),
    recurrent="hidden",
    max_inputs=16,
    max_hidden=1000,
    max_outputs=8,
)
r"""Xylo's digital core v2 (SynSense), as its simulator XyloSim 0.1.3 computes it, bit for bit.

For each source in order :math:`i = \mathrm{sat}(i + n w 2^k)`, then :math:`i = i - D(i, d_s)` with
:math:`D(x, d) = x \gg d`, but 1 where x is positive and that is 0: a current of 3 decays to 0 in the end, and so does
-1. Then :math:`v = \mathrm{sat}(v + \mathrm{sat}(\mathrm{sat}(\sum i - D(v, d)) + b))`, where the negative of -32768 is
-32768, and :math:`n = \min(\lfloor v / \theta \rfloor, 31)` spikes (a readout: 1) if :math:`v \ge \theta`, each of
which subtracts the threshold. Spikes of hidden neurons arrive one step later, in readouts too. Source: measured on the
package `xylosim` 0.1.3; sizes from the mapper of rockpool 3.1.
"""

LAVA_LOIHI = FixedPoint(
    name="lava",
    weight_bits=8,
    state_bits=24,
    decay="multiply",
    decay_bits=12,
    rounding="to_zero",
    overflow="wrap",
    symmetric=True,
    reset="zero",
    inclusive=False,
    input_shift=6,
    weight_shift=1,
    threshold_bits=17,
    threshold_shift=6,
    bias_bits=13,
    bias_shift=7,
    least_synapse_decay=1,
    synapse_offset=1,
    late="all",
)
r"""The equations that lava 0.10 calls bit-accurate for Loihi; they have not been compared with a chip here.

:math:`u = \mathrm{wrap}(\mathrm{tz}(u' (4096 - d_u - 1) / 4096) + 2^6 a)`,
:math:`v = \mathrm{sat}(\mathrm{tz}(v' (4096 - d_v) / 4096) + u + b)` within :math:`\pm (2^{23} - 1)`, a spike where
:math:`v > 2^6 \theta`, and then :math:`v = 0`. `tz` rounds towards 0, and `wrap` keeps :math:`(-2^{23}, 2^{23}]`.
Weights of mixed sign are even, from -256 to 254, and every `Dense` delivers one step later. Here `d_u` includes the 1.
Source: `PyLifModelBitAcc` of lava, whose functions give the same states.
"""

_KI = 1024
SPECK = FixedPoint(
    name="Speck",
    weight_bits=8,
    state_bits=16,
    decay="multiply",
    decay_bits=0,
    rounding="floor",
    overflow="none",
    bounded_last=True,
    max_spikes=15,
    max_output=15,
    max_input=15,
    threshold_bits=15,
    bias_bits=8,
    one_scale=True,
    late="none",
    least_synapse_decay=1,
    synapse_offset=1,
    neurons=("integrate_and_fire",),
    connections=("dense", "conv2d"),
    recurrent="none",
    cores=(
        *[(16 * _KI, 64 * _KI)] * 3,
        *[(32 * _KI, 32 * _KI)] * 2,
        *[(64 * _KI, 16 * _KI)] * 2,
        *[(16 * _KI, 16 * _KI)] * 2,
    ),
)
r"""Layers for Speck (SynSense) as sinabs 3.1 quantises and computes them; they have not been compared with a chip here.

With one scale for a layer, :math:`s = \min` of what fits weights and biases into 8 bits and the threshold into 16,
everything is rounded to the nearest integer: :math:`w = [s\, w']`, :math:`\theta = [s\, \theta']`. A step is
:math:`v = v' + \sum n w + b`, :math:`n = \min(\lfloor v / \theta \rfloor, 15)` if :math:`v \ge \theta`,
:math:`v = \max(v - n \theta, -2^{15})`, in all layers within one step. A pool is a sum of spikes; a mean makes the
weights after it smaller. The chip itself has no time steps: a neuron spikes as soon as an event brings it to its
threshold, so it may spike before a negative weight of the same step. Source: `DynapcnnLayer` of sinabs 3.1.3 with
``MaxSpike(15)`` and a `min_v_mem` of ``-2^15 / s``, which gives the same integers, spikes and membranes; it has no
upper bound, which here is 2^15 - 1. Memory of the nine cores: sinabs's.
"""
