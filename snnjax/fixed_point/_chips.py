"""`FixedPoint`: the arithmetic of a chip with integer state, as a value; `XYLO` and `LAVA_LOIHI` are two."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from snnjax._check import check_choice, check_integer, check_switches, check_within

DECAYS = ("shift", "multiply")
ROUNDINGS = ("floor", "to_zero")
OVERFLOWS = ("saturate", "wrap")
RESETS = ("subtract", "zero")
LATE = ("hidden", "all")
_SWITCHES = ("at_least_one", "symmetric", "each_source", "input_first", "change_first", "inclusive")
_SWITCHES = (*_SWITCHES, "needs_synapse", "recurrent_readouts")


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    r"""How a chip with integer state computes a step, and what its memory holds.

    With `sat` the bounds of a state, `D(x, d)` what a decay by the integer `d` takes away, and `a` the sum of the
    weights of the spikes that arrive at a synapse, in each step

    .. math::

        i &= \mathrm{over}(i' + 2^k a) - D(\cdot, d_s) \text{ (input\_first)} \quad \text{or} \quad
            \mathrm{over}(i' - D(i', d_s) + 2^k a) \\
        v &= \mathrm{sat}(v' + \mathrm{sat}(\mathrm{sat}(\textstyle\sum i - D(v', d)) + b)) \text{ (change\_first)}
            \quad \text{or} \quad \mathrm{sat}(v' - D(v', d) + \textstyle\sum i + b) \\
        n &= \min(\lfloor v / \theta \rfloor, \text{max\_spikes}) \text{ if } v \ge \theta
            \text{ (inclusive, else } v > \theta \text{)}

    after which ``v`` loses ``n threshold`` (reset "subtract") or is 0 ("zero").

    Args:
        name: in messages.
        weight_bits: of a signed weight.
        state_bits: of a membrane and a synaptic current, signed, at most 24: float32 holds such states exactly.
        decay: "shift", ``D(x, d) = x >> d``, or "multiply", ``D(x, d) = x - x (2^decay_bits - d) / 2^decay_bits``.
        decay_bits: of `d`.
        rounding: of what is shifted out, "floor" or "to_zero".
        at_least_one: a positive state that decays by a shift loses 1 or more.
        overflow: of a current: "saturate" or "wrap". Membranes saturate.
        symmetric: states lie in ``[-top + 1, top - 1]`` with ``top = 2^(state_bits - 1)``, and wrapped ones in ``(-top,
            top]``; else in ``[-top, top - 1]``.
        each_source: a current saturates after each source, in their order: inputs, then the neurons themselves.
        input_first: inputs are added to a current before it decays.
        change_first: the change of a membrane is computed, and saturates, before it is added.
        reset: "subtract" or "zero".
        inclusive: whether a membrane at the threshold spikes.
        max_spikes: of a hidden neuron in a step; readouts have at most one.
        max_input: the largest number of spikes of an input in a step.
        input_shift: `k`.
        weight_shift: stored weights are multiplied by 2 to this power, as they lack their lowest bits.
        threshold_bits: of a threshold without sign.
        threshold_shift: thresholds are multiples of 2 to this power.
        bias_bits: of a signed bias, which may be shifted to the left by up to `bias_shift` bits.
        late: spikes arrive one step later in "all" connections, or in all but those of the inputs ("hidden").
        least_synapse_decay: the smallest decay of a synapse that lets anything through.
        synapse_offset: the chip adds this to the decay of a synapse that it stores; here decays include it.
        needs_synapse: whether all neurons have synapses that decay.
        recurrent_readouts: whether readouts may be recurrent.
        max_inputs: how many inputs there are, None for any number; likewise `max_hidden` and `max_outputs` neurons.
            ``dataclasses.replace(XYLO, max_inputs=None)`` has the arithmetic of Xylo and any number of inputs.

    Raises:
        ValueError: if a switch is unknown, or a number of bits is out of range.

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
    at_least_one: bool = False
    overflow: str = "saturate"
    symmetric: bool = False
    each_source: bool = False
    input_first: bool = False
    change_first: bool = False
    reset: str = "subtract"
    inclusive: bool = True
    max_spikes: int = 1
    max_input: int = 1
    input_shift: int = 0
    weight_shift: int = 0
    threshold_bits: int
    threshold_shift: int = 0
    bias_bits: int
    bias_shift: int = 0
    late: str = "hidden"
    least_synapse_decay: int = 0
    synapse_offset: int = 0
    needs_synapse: bool = False
    recurrent_readouts: bool = True
    max_inputs: int | None = None
    max_hidden: int | None = None
    max_outputs: int | None = None

    def __post_init__(self) -> None:
        """Check the switches."""
        choices = {
            "decay": DECAYS,
            "rounding": ROUNDINGS,
            "overflow": OVERFLOWS,
            "reset": RESETS,
            "late": LATE,
        }
        for name, known in choices.items():
            check_choice("FixedPoint", name, getattr(self, name), known)
        check_switches("FixedPoint", **{name: getattr(self, name) for name in _SWITCHES})
        # 24 bits are those of float32, and a state times a decay of 12 bits is int32 in two parts.
        for name, least, most in (("weight_bits", 2, 8), ("state_bits", 8, 24), ("decay_bits", 1, 12)):
            bits = check_integer("FixedPoint", name, getattr(self, name), 0)
            check_within(
                "FixedPoint", name, np.array(bits), most, "Float32 and int32 hold no more exactly", least
            )

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest state."""
        top = 2 ** (self.state_bits - 1)
        return (-top + 1 if self.symmetric else -top), top - 1

    @property
    def most_weight(self) -> int:
        """The largest stored weight; the least one is its negative, so that weights are symmetric."""
        return 2 ** (self.weight_bits - 1) - 1

    @property
    def readout(self) -> "FixedPoint":
        """The arithmetic of readouts."""
        return dataclasses.replace(self, max_spikes=1)


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
    needs_synapse=True,
    recurrent_readouts=False,
    max_inputs=16,
    max_hidden=1000,
    max_outputs=8,
)
r"""Xylo's digital core v2 (SynSense), as its simulator XyloSim 0.1.3 computes it, bit for bit.

For each source in order :math:`i = \mathrm{sat}(i + n w 2^k)`, then :math:`i = i - D(i, d_s)` with
:math:`D(x, d) = x \gg d`, but 1 where x is positive and that is 0: a current of 3 decays to 0 in the end, and so does
-1. Then :math:`v = \mathrm{sat}(v + \mathrm{sat}(\mathrm{sat}(\sum i - D(v, d)) + b))`, where the negative of -32768 is
-32768, and :math:`n = \min(\lfloor v / \theta \rfloor, 31)` spikes (a readout: 1) if :math:`v \ge \theta`, each of
which takes the threshold. Spikes of hidden neurons arrive one step later, in readouts too. Source: measured on the
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
r"""The equations that lava 0.10 calls bit-accurate for Loihi; lava's, as nobody here compared them with a chip.

:math:`u = \mathrm{wrap}(\mathrm{tz}(u' (4096 - d_u - 1) / 4096) + 2^6 a)`,
:math:`v = \mathrm{sat}(\mathrm{tz}(v' (4096 - d_v) / 4096) + u + b)` within :math:`\pm (2^{23} - 1)`, a spike where
:math:`v > 2^6 \theta`, and then :math:`v = 0`. `tz` rounds to 0, and `wrap` keeps :math:`(-2^{23}, 2^{23}]`. Weights of
mixed sign are even, from -256 to 254, and every `Dense` delivers one step later. Here `d_u` includes the 1. Source:
`PyLifModelBitAcc` of lava, whose functions give the same states.
"""
