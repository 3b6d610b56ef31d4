"""What a program compiled for a GPU does: launches, loops, conditionals, products, and an estimated time."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Assumptions of the estimate, in nanoseconds. With them it is within 10 % of what was measured on an H200, of training
# steps in loops of one step (`docs/explanation/gpu.md`): 9.7 ms of W3, 5.6 of W2, 11.4 of adLIF.
LAUNCH = 4_000  # of a kernel on its own
GRAPH, NODE = 4_800, 1_600  # of a CUDA graph, and of a kernel in it
GRAPH_FROM = 5  # launches of a loop's body, from which on XLA makes it a graph
BRANCH = 3_000  # of a conditional
BYTES = 2_500  # of memory a nanosecond, three quarters of what an H100 has at most

# What is nothing at run time.
_FREE = {"parameter", "tuple", "get-tuple-element", "bitcast", "constant", "after-all"}
_SIZES = {"f32": 4, "s32": 4, "u32": 4, "bf16": 2, "u16": 2, "u8": 1, "s8": 1, "pred": 1}
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_OPERATION = re.compile(r"\s*(?:ROOT )?%([\w.\-]+) = (\((?:[^()]|\([^()]*\))*\)|\S+) ([\w\-]+)\((.*?)\)(.*)")
_ARRAY = re.compile(rf"\b({'|'.join(_SIZES)})\[([\d,]*)\]")


class Operation(NamedTuple):
    """A line of a compiled program."""

    name: str
    shape: str
    kind: str
    operands: str
    attributes: str

    def called(self, *attributes: str) -> list[str]:
        """The computations under these attributes."""
        found = re.findall(rf"(?:{'|'.join(attributes)})=(?:%([\w.\-]+)|\{{([^}}]*)\}})", self.attributes)
        return [name.strip().lstrip("%") for one, many in found for name in (one or many).split(",")]

    @property
    def rounds(self) -> int:
        """Of a loop; 1 if XLA does not know them."""
        known = re.search(r'known_trip_count":\{"n":"(\d+)"', self.attributes)
        return int(known[1]) if known else 1

    @property
    def is_product(self) -> bool:
        """Whether it is a product or a convolution, by a library or a fusion of Triton."""
        of_library = self.kind == "custom-call" and re.search("cublas|cudnn", self.attributes) is not None
        return of_library or "gemm" in self.name or self.kind in ("dot", "convolution")


class Counts(NamedTuple):
    """What one call does; what is in a loop counts as often as it runs, and both sides of a conditional count."""

    launches: int = 0
    loops: int = 0
    conditionals: int = 0
    in_loops: int = 0  # conditionals
    products: int = 0
    nanoseconds: int = 0  # estimated, of launches
    num_bytes: int = 0  # read and written outside of loops, but by products

    def plus(self, other: "Counts", times: int = 1) -> "Counts":
        """Both, the other one a number of times."""
        return Counts(*(own + times * more for own, more in zip(self, other, strict=True)))

    @property
    def milliseconds(self) -> float:
        """An estimate: launches or bytes, whatever takes longer; the products' own time is not in it."""
        return max(self.nanoseconds, self.num_bytes / BYTES) / 1e6


def computations(text: str) -> dict[str, list[Operation]]:
    """The operations of each computation of an HLO module; that of the program is ``ENTRY``."""
    found, inside = dict[str, list[Operation]](), None
    for line in text.splitlines():
        if begins := _COMPUTATION.match(line):
            inside = found.setdefault("ENTRY" if begins[1] else begins[2], [])
        elif line.startswith("}"):
            inside = None
        elif inside is not None and (operation := _OPERATION.match(line)):
            inside.append(Operation(*operation.groups()))
    return found


def size_of(shapes: str) -> int:
    """The bytes of all arrays in a text."""
    total = 0
    for dtype, axes in _ARRAY.findall(shapes):
        size = _SIZES[dtype]
        for axis in filter(None, axes.split(",")):
            size *= int(axis)
        total += size
    return total


def counts_of(text: str) -> Counts:
    """Those of an optimised HLO module."""
    by_name = computations(text)
    return _counts_in(by_name, "ENTRY", in_loop=False)


def _counts_in(by_name: dict[str, list[Operation]], name: str, *, in_loop: bool) -> Counts:
    total, shapes = Counts(), {each.name: each.shape for each in by_name[name]}
    for each in _executed(by_name[name]):
        if each.kind == "while":
            (body,) = each.called("body")
            total = total.plus(_of_loop(_counts_in(by_name, body, in_loop=True), each.rounds))
        elif each.kind == "conditional":
            total = total.plus(Counts(conditionals=1, in_loops=int(in_loop), nanoseconds=BRANCH))
            branches = each.called("branch_computations", "true_computation", "false_computation")
            # The cheapest side is the usual one: nothing overflowed, all numbers were finite.
            sides = [_counts_in(by_name, side, in_loop=in_loop) for side in branches]
            total = total.plus(min(sides, key=lambda side: side.launches, default=Counts()))
        elif each.kind in ("call", "async-start"):
            for callee in each.called("to_apply", "calls"):
                total = total.plus(_counts_in(by_name, callee, in_loop=in_loop))
        else:
            read = "".join(shapes.get(operand, "") for operand in re.findall(r"%([\w.\-]+)", each.operands))
            num_bytes = 0 if in_loop or each.is_product else size_of(each.shape + read)
            cost = LAUNCH if in_loop else NODE  # outside of loops one launch waits for no other
            total = total.plus(Counts(1, 0, 0, 0, int(each.is_product), cost, num_bytes))
    return total


def _executed(operations: list[Operation]) -> Iterator[Operation]:
    return (each for each in operations if each.kind not in _FREE and not each.kind.endswith("-done"))


def _of_loop(body: Counts, rounds: int) -> Counts:
    """All rounds of a loop, whose body is a CUDA graph if it has enough launches."""
    if body.launches >= GRAPH_FROM and body.loops == 0:
        waits = body.conditionals * BRANCH
        body = body._replace(nanoseconds=GRAPH + NODE * body.launches + waits)
    return Counts(loops=1).plus(body, rounds)
