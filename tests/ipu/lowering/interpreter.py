"""A plan run in NumPy: the oracle for the lowering and for the executor. One partition after the other, in step."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from snnjax.ipu.lowering.plan import Block, Instruction, Plan
from snnjax.ipu.lowering.types import numpy_dtype
from tests.ipu.lowering import registers
from tests.ipu.lowering.indexing import dynamic_slice, dynamic_update_slice, gather, scatter

Arrays = list[np.ndarray]
COMBINE: dict[str, Any] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
OPS: dict[str, Callable[..., Any]] = {}


def op(function: Callable[..., Any]) -> Callable[..., Any]:
    """Registers the meaning of the operation that the function is named for."""
    OPS[function.__name__.strip("_")] = function
    return function


@op
def elementwise(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    shape = max((types[value].shape for value in instruction.outputs), key=lambda s: np.prod(s, dtype=int))
    slots: dict[int, np.ndarray] = {}
    outputs: dict[int, np.ndarray] = {}
    for text, ints in zip(instruction.texts, instruction.ints, strict=True):
        name, _, dtype = text.partition(".")
        if name == "load":
            array = inputs[ints[1]]
            assert array.shape == shape or array.size == 1, (array.shape, shape)
            slots[ints[0]] = np.broadcast_to(
                registers.load(array.reshape(-1)[0] if array.size == 1 else array, dtype), shape
            )
        elif name == "constant":
            slots[ints[0]] = np.full(shape, np.int32(ints[1])).view(np.uint32)
        elif name == "store":
            outputs[ints[0]] = registers.store(slots[ints[1]], dtype)
        else:
            with np.errstate(all="ignore"):
                slots[ints[0]] = registers.apply(text, *(np.ascontiguousarray(slots[i]) for i in ints[1:]))
    assert max(slots) < 24
    return [outputs[k].reshape(types[v].shape) for k, v in enumerate(instruction.outputs)]


@op
def broadcast_in_dim(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    (x,), (dimensions,) = inputs, instruction.ints
    shape = types[instruction.outputs[0]].shape
    places = [1] * len(shape)
    for length, dimension in zip(x.shape, dimensions, strict=True):
        places[dimension] = length
    order = np.argsort(dimensions)
    return [np.broadcast_to(np.transpose(x, order).reshape(places), shape)]


@op
def reshape(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    return [inputs[0].reshape(types[instruction.outputs[0]].shape)]


@op
def identity(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    return inputs


@op
def transpose(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    return [np.transpose(inputs[0], instruction.ints[0])]


@op
def _slice(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    return [inputs[0][tuple(slice(*each) for each in zip(*instruction.ints, strict=True))]]


@op
def reverse(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    return [np.flip(inputs[0], instruction.ints[0])]


@op
def concatenate(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    return [np.concatenate(inputs, instruction.ints[0][0])]


@op
def pad(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    x, filler = inputs
    low, _, interior = instruction.ints
    assert all(n >= 0 for numbers in instruction.ints for n in numbers) and filler.shape == ()
    result = np.full(types[instruction.outputs[0]].shape, filler)
    places = zip(low, x.shape, interior, strict=True)
    result[tuple(slice(start, start + n + max(n - 1, 0) * gap, gap + 1) for start, n, gap in places)] = x
    return [result]


@op
def iota(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    type_ = types[instruction.outputs[0]]
    assert type_.dtype in ("s32", "u32")
    (dimension,) = instruction.ints[0]
    counted = np.arange(type_.shape[dimension], dtype=numpy_dtype(type_.dtype))
    places = [1] * len(type_.shape)
    places[dimension] = -1
    return [np.broadcast_to(counted.reshape(places), type_.shape)]


@op
def bitcast(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    return [np.asarray(inputs[0], order="C").view(numpy_dtype(types[instruction.outputs[0]].dtype))]


def _native(array: np.ndarray) -> np.ndarray:
    """What arithmetic takes: float32, float16, int32, uint32 and bool."""
    assert array.dtype in (np.float32, np.float16, np.int32, np.uint32, np.bool_), array.dtype
    return array


def combine(kind: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return COMBINE[kind](x, y)


@op
def reduce(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    x, kind = _native(inputs[0]), instruction.texts[0]
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    with np.errstate(all="ignore"):
        reduced = COMBINE[kind].reduce(wide, axis=tuple(instruction.ints[0]))
    return [np.asarray(reduced).astype(x.dtype)]


@op
def arg_reduce(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    x, (axis,) = _native(inputs[0]), instruction.ints[0]
    choose = np.argmax if instruction.texts[0] == "maximum" else np.argmin
    place = np.asarray(choose(x, axis=axis))
    return [np.take_along_axis(x, np.expand_dims(place, axis), axis).squeeze(axis), place.astype(np.int32)]


@op
def cumulative(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    x, (axis, reverse) = _native(inputs[0]), instruction.ints[0]
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    wide = np.flip(wide, axis) if reverse else wide
    with np.errstate(all="ignore"):
        scanned = COMBINE[instruction.texts[0]].accumulate(wide, axis=axis)
    return [(np.flip(scanned, axis) if reverse else scanned).astype(x.dtype)]


@op
def dot(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    a, b = inputs
    assert a.dtype == b.dtype and a.dtype in (np.float16, np.float32)
    lhs_batching, rhs_batching, lhs_contracting, rhs_contracting = instruction.ints
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    names_a = [next(letters) for _ in a.shape]
    names_b = [next(letters) for _ in b.shape]
    pairs = [
        *zip(lhs_batching, rhs_batching, strict=True),
        *zip(lhs_contracting, rhs_contracting, strict=True),
    ]
    for i, j in pairs:
        names_b[j] = names_a[i]
    own_a = [names_a[d] for d in range(a.ndim) if d not in (*lhs_batching, *lhs_contracting)]
    own_b = [names_b[d] for d in range(b.ndim) if d not in (*rhs_batching, *rhs_contracting)]
    batch = [names_a[d] for d in lhs_batching]
    text = f"{''.join(names_a)},{''.join(names_b)}->{''.join(batch + own_a + own_b)}"
    product = np.einsum(text, a.astype(np.float64), b.astype(np.float64))
    out = types[instruction.outputs[0]].dtype
    assert out in (("f16", "f32") if a.dtype == np.float16 else ("f32",))
    with np.errstate(all="ignore"):
        return [np.asarray(product).astype(numpy_dtype(out))]


OPS |= {
    "gather": gather,
    "scatter": scatter,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
}


def _key(array: np.ndarray) -> np.ndarray:
    """Integers in the order of `sort`: -0 equals 0, and a NaN comes behind all."""
    if array.dtype.kind not in "fV":
        return array.astype(np.int64)
    x = array.astype(np.float32)
    x = np.where(x == 0, np.float32(0), np.where(np.isnan(x), np.float32(np.nan), x)).astype(np.float32)
    return registers.total_order(x).astype(np.int64)


@op
def sort(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    (axis, _) = instruction.ints[0]
    keys = [
        _key(_native(x)) * (1 if order == "ascending" else -1)
        for x, order in zip(inputs, instruction.texts, strict=False)
    ]
    order = np.lexsort(keys[::-1], axis=axis)
    return [np.take_along_axis(x, order, axis) for x in inputs]


@op
def top_k(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    (x,), (k,) = inputs, instruction.ints[0]
    order = np.argsort(-_key(_native(x)), axis=-1, stable=True)[..., :k]
    return [np.take_along_axis(x, order, -1), order.astype(np.int32)]


ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@op
def threefry(instruction: Instruction, inputs: Arrays, types: Any) -> Arrays:
    key0, key1, x0, x1 = inputs
    assert all(x.dtype == np.uint32 for x in inputs)
    shape = x0.shape
    key0, key1 = (key.reshape(()) if key.size == 1 else key for key in (key0, key1))
    keys = (key0, key1, key0 ^ key1 ^ np.uint32(0x1BD11BDA))
    with np.errstate(over="ignore"):
        x0, x1 = x0 + keys[0], x1 + keys[1]
        for turn in range(5):
            for rotation in ROTATIONS[turn % 2]:
                x0 = x0 + x1
                x1 = (x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))
                x1 = x0 ^ x1
            x0 = x0 + keys[(turn + 1) % 3]
            x1 = x1 + keys[(turn + 2) % 3] + np.uint32(turn + 1)
    return [np.broadcast_to(x, shape) for x in (x0, x1)]


COLLECTIVES = frozenset(
    {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "partition_id"}
)


def _groups(instruction: Instruction) -> list[tuple[int, ...]]:
    flat, (_, size) = instruction.ints[:2]
    return (
        list(itertools.batched(flat, size))
        if hasattr(itertools, "batched")
        else [tuple(flat[i : i + size]) for i in range(0, len(flat), size)]
    )


def collective(instruction: Instruction, inputs: list[Arrays], types: Any) -> list[Arrays]:
    """The results on each partition, from the inputs on each."""
    shape = types[instruction.outputs[0]].shape
    count = len(inputs)
    if instruction.op == "partition_id":
        return [[np.uint32(p).reshape(shape)] for p in range(count)]
    xs = [each[0] for each in inputs]
    if instruction.op == "collective_permute":
        (flat,) = instruction.ints
        sources = {target: source for source, target in zip(flat[::2], flat[1::2], strict=True)}
        return [[xs[sources[p]] if p in sources else np.zeros(shape, xs[0].dtype)] for p in range(count)]
    results: list[Arrays] = [[] for _ in range(count)]
    for group in _groups(instruction):
        pieces = _in_group(instruction, [xs[p] for p in group])
        for p, piece in zip(group, pieces, strict=True):
            results[p] = [piece]
    return results


def _in_group(instruction: Instruction, xs: Arrays) -> Arrays:
    size = len(xs)
    if instruction.op == "all_gather":
        return [np.concatenate(xs, instruction.ints[2][0])] * size
    if instruction.op == "all_to_all":
        split, join = instruction.ints[2]
        pieces = [np.split(x, size, split) for x in xs]
        return [np.concatenate([piece[p] for piece in pieces], join) for p in range(size)]
    total = xs[0]
    for x in xs[1:]:
        total = combine(instruction.texts[0], total, x)
    if instruction.op == "all_reduce":
        return [total] * size
    return np.split(total, size, instruction.ints[2][0])


class Interpreter:
    """A run of a plan; `calls` are the callbacks it made: (number, arrays)."""

    def __init__(self, plan: Plan, custom_calls: dict[str, Callable[..., Arrays]] | None = None) -> None:
        self.plan = plan
        self.calls: list[tuple[int, Arrays]] = []
        self.custom_calls = custom_calls or {}
        self.values: list[dict[int, np.ndarray]] = [dict(plan.constants) for _ in range(plan.num_partitions)]

    def run(self, arguments: Sequence[Sequence[np.ndarray]]) -> list[Arrays]:
        """arguments[partition][parameter] -> results[partition][result]"""
        return self.block(self.plan.main, [list(map(np.asarray, each)) for each in arguments])

    def read(self, values: Sequence[int]) -> list[Arrays]:
        return [[known[value] for value in values] for known in self.values]

    def block(self, block: Block, arguments: list[Arrays]) -> list[Arrays]:
        self._write(block.parameters, arguments)
        for instruction in block.instructions:
            self._write(instruction.outputs, self._results(instruction))
        return self.read(block.results)

    def _write(self, values: Sequence[int], arrays: list[Arrays]) -> None:
        for known, each in zip(self.values, arrays, strict=True):
            for value, array in zip(values, each, strict=True):
                type_ = self.plan.types[value]
                array = np.asarray(array)
                assert (array.dtype, array.shape) == (numpy_dtype(type_.dtype), type_.shape), (
                    type_,
                    array.dtype,
                    array.shape,
                )
                known[value] = array

    def _results(self, instruction: Instruction) -> list[Arrays]:
        inputs, blocks = self.read(instruction.inputs), instruction.blocks
        match instruction.op:
            case "while":
                while self._alike(self.block(blocks[0], inputs)):
                    inputs = self.block(blocks[1], inputs)
                return inputs
            case "repeat":
                for _ in range(instruction.ints[0][0]):
                    inputs = self.block(blocks[0], inputs)
                return inputs
            case "case":
                index = int(self._alike(inputs))
                inside = 0 <= index < len(blocks)
                return self.block(blocks[index if inside else -1], [[] for _ in inputs])
            case "callback":
                self.calls.extend((instruction.ints[0][0], each) for each in inputs)
                return [[] for _ in inputs]
            case "custom_call":
                target, *attributes = instruction.texts
                types = [self.plan.types[value] for value in instruction.outputs]
                return [self.custom_calls[target](each, types, attributes) for each in inputs]
            case name if name in COLLECTIVES:
                return collective(instruction, inputs, self.plan.types)
            case name:
                return [
                    list(map(np.asarray, OPS[name](instruction, each, self.plan.types))) for each in inputs
                ]

    def _alike(self, arrays: list[Arrays]) -> Any:
        """A scalar that says where all partitions go."""
        values = {each[0].item() for each in arrays}
        assert len(values) == 1, "the interpreter keeps partitions in step"
        return values.pop()


def run(plan: Plan, *arguments: Any) -> Arrays:
    """The results of a plan of one partition."""
    return Interpreter(plan).run([arguments])[0]
