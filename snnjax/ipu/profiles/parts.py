"""The cycles of `lif_network` by layer and by purpose: lists, weights, neurons, histories.

Builders name what they do at a time (``forward/currents0``: the currents of layer 0); a set of vertices whose name says
no more (``forward/first``) works on several layers and purposes at once, and is divided as the cycles of its tiles are,
by the classes of its vertices. ``xla_ext/builders/README.md`` explains the steps.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from snnjax.ipu.profiles.steps import Phases, StepCost, join

OWN = ("lif_network", "lif_network_backward")
COPIES = "copies"  # to the places where the op reads its arrays, and back
LISTS, WEIGHTS, NEURONS, HISTORIES = "lists", "weights", "neurons", "histories"
BOTH = "weights and neurons"  # one vertex does both
OTHER = "other"
READOUT = "readout"

# Names of sets whose vertices do not say what they are for.
_BY_NAME = {
    **dict.fromkeys(("sum_of_groups", "transposed"), WEIGHTS),
    **dict.fromkeys(("sum_dropped", "sum_of_blocks", "too_many"), LISTS),
    **dict.fromkeys(
        ("zeros", "over_batch"), NEURONS
    ),  # cotangents of states; gradients of biases and constants
}
_BY_CODELET = {
    **dict.fromkeys(
        ("SelectCandidates", "PackMarks", "SelectMarked", "CutCandidates", "JoinCandidates", "SumDropped"),
        LISTS,
    ),
    **dict.fromkeys(
        ("ScatterList", "MaskLists", "CheckEvents", "SortEvents", "UnsortEvents", "ListInputs"),
        LISTS,
    ),
    **dict.fromkeys(("RowsDense", "MatrixProduct", "SumPartials"), WEIGHTS),  # on the matrix unit
    **dict.fromkeys(
        (
            "SumRows",
            "LastSpikes",
            "LastSpikesGradient",
            "ListSpikes",
            "ListBlock",
            "JoinSpikes",
            "RankSpikes",
            "MergeSpikes",
            "SlotsOfNeurons",
        ),
        LISTS,
    ),  # of the gradients of listed spikes
    **dict.fromkeys(("RowsCurrent", "RowsDots", "RowsGradient", "ReadoutGradient", "StepDots"), WEIGHTS),
    **dict.fromkeys(("MaskSpikes", "TurnMasks", "ListRows", "AnyWord"), WEIGHTS),
    **dict.fromkeys(("GatherGradient", "SumShared", "AddShared"), WEIGHTS),
    **dict.fromkeys(("LifScan", "LifGradientScan", "LifRecurrentGradient"), NEURONS),
    **dict.fromkeys(("LifFirstGradient", "LifLastGradient"), NEURONS),
    **dict.fromkeys(("LeakyScan", "LeakyGradientScan"), NEURONS),
    **dict.fromkeys(("LifRecurrentStep",), BOTH),
    **dict.fromkeys(("LoadBlock", "UpdateWindow", "Advance", "Fill", "Transpose"), HISTORIES),
}
_SET = re.compile(r"(?:.*/)?(?P<what>[a-z_]+?)(?P<layer>\d+)?")
# A step's own name is without the operation's line, and without what a library function adds.
_ADDED = re.compile(r" \([^()]*\)|/(map|reduce|products|sums)$")
_CLASS = re.compile(r"(?:snnjax::)?(?P<name>\w+)")


class PartCost(NamedTuple):
    """A share of an operation."""

    operation: str  # "lif_network" or "lif_network_backward"
    where: str
    layer: str  # "layer 0", "readout", or "" where several work at the same time
    purpose: str
    phases: Phases

    @property
    def cycles(self) -> int:
        """The sum over all phases."""
        return sum(self.phases)


def parts_of(steps: Iterable[StepCost]) -> tuple[PartCost, ...]:
    """The parts of each `lif_network`, in the order in which they begin; their cycles add up to those of the steps."""
    own = [step for step in steps if step.operation in OWN]
    readouts = {_layer(step) for step in own if any("Leaky" in name for name, _ in step.codelets)}
    sums: dict[tuple[str, str, str, str], Phases] = {}
    for step in own:
        layer = _layer(step)
        for (apart, purpose), phases in _divided(step):
            label = READOUT if apart or (layer and layer in readouts) else layer and f"layer {layer}"
            key = (step.operation, step.where, label, purpose)
            sums[key] = join(sums.get(key, Phases(0, 0, 0, 0)), phases)
    return tuple(PartCost(*key, phases) for key, phases in sums.items())


def _set(step: StepCost) -> re.Match[str] | None:
    return _SET.fullmatch(_ADDED.sub("", step.name)) if step.kind == "compute set" else None


def _layer(step: StepCost) -> str:
    found = _set(step)
    return (found and found["layer"]) or ""


def _divided(step: StepCost) -> list[tuple[tuple[bool, str], Phases]]:
    """Pairs (whether of a readout, purpose), and their phases, which add up to those of the step."""
    found = _set(step)
    if not step.codelets:
        return [((False, COPIES), step.phases)]
    if found and found["what"] in _BY_NAME:
        return [((False, _BY_NAME[found["what"]]), step.phases)]
    shares: dict[tuple[bool, str], int] = {}
    for name, cycles in step.codelets:
        match = _CLASS.match(name)
        codelet = match["name"] if match else name
        key = (codelet.startswith("Leaky"), _BY_CODELET.get(codelet, OTHER))
        shares[key] = shares.get(key, 0) + cycles
    return list(zip(shares, _split(step.phases, list(shares.values())), strict=True))


def _split(phases: Phases, shares: list[int]) -> list[Phases]:
    """Whole cycles in proportion; the last share takes what rounding leaves."""
    total = sum(shares)
    parts, rest = [], phases
    for share in shares[:-1]:
        part = Phases(*(cycles * share // total if total else 0 for cycles in phases))
        parts.append(part)
        rest = Phases(*(left - taken for left, taken in zip(rest, part, strict=True)))
    return [*parts, rest]
