"""Plans with mistakes: single numbers and texts changed where the reader trusts nothing, and bytes cut and flipped."""

import copy
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from snnjax.ipu.lowering.plan import Block, Instruction, Plan, serialise
from snnjax.ipu.lowering.types import _NAMES, ArrayType, numpy_dtype

# What counts, sizes and positions are replaced by: around 0, and around what 8, 16, 31, 32, 40 and 63 bits hold.
_EDGES = tuple(
    sign * (2**bits + off) for bits in (0, 1, 8, 16, 31, 32, 40, 62) for off in (-1, 0, 1) for sign in (1, -1)
)
HOSTILE = (*_EDGES, 2**63 - 1, -(2**63))
_SIZES = (0, 1, 2, 3, 5, 7, 64, 65, 2**16, 2**20, 2**31, 2**32, 2**40)
_TEXTS = (
    "",
    "-1",
    "0",
    "1",
    "2",
    "7",
    "99999999999999999999",
    "nan",
    "inf",
    "-inf",
    "1e-320",
    "x",
    "1,",
    ",",
    "1,2",
    "true",
    "\0",
)
_OPTIONS = ("tiles", "ipus", "version", "half_partials", "other")


def mutated(plan: Plan, rng: random.Random) -> bytes:
    """The bytes of a plan with one to three mistakes."""
    changed = copy.deepcopy(plan)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(_MUTATIONS)(changed, rng)
    try:
        data = serialise(changed)
    except struct.error:  # a number of more than 64 bits
        data = serialise(plan)
    return damaged(data, rng) if rng.random() < 0.2 else data


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes that are no longer those of a plan, or of another one."""
    at = rng.randrange(len(data))
    match rng.randrange(5):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        case 2:
            end = rng.randrange(at, len(data))
            return data[:at] + data[end:]
        case 3:
            return data[:at] + rng.randbytes(rng.choice((1, 8))) + data[at:]
        case _:
            at -= at % 8
            return data[:at] + struct.pack("<q", rng.choice(HOSTILE)) + data[at + 8 :]


def instructions(block: Block) -> list[Instruction]:
    """Those of a block and of all blocks in it."""
    return [
        each
        for own in block.instructions
        for each in (own, *(deeper for inner in own.blocks for deeper in instructions(inner)))
    ]


def _blocks(block: Block) -> list[Block]:
    return [block, *(each for own in block.instructions for inner in own.blocks for each in _blocks(inner))]


def _with(items, rng: random.Random, change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """A tuple with one item changed, dropped, repeated, or with two exchanged."""
    items = list(items)
    if not items:
        return (change(0),) if rng.random() < 0.5 else ()
    at, other = rng.randrange(len(items)), rng.randrange(len(items))
    match rng.randrange(7):
        case 0:
            del items[at]
        case 1:
            items.insert(at, items[other])
        case 2:
            items[at], items[other] = items[other], items[at]
        case _:
            items[at] = change(items[at])
    return tuple(items)


def _number(old: int, rng: random.Random) -> int:
    return rng.choice((rng.choice(HOSTILE), old + 1, old - 1, -old, 2 * old, rng.randrange(8)))


def _change_inputs(plan: Plan, rng: random.Random) -> None:
    if own := _any(plan, rng):
        own.inputs = _with(own.inputs, rng, lambda _: rng.randrange(len(plan.types)))


def _change_outputs(plan: Plan, rng: random.Random) -> None:
    if own := _any(plan, rng):
        own.outputs = _with(own.outputs, rng, lambda _: _value(plan, rng))


def _change_ints(plan: Plan, rng: random.Random) -> None:
    own = _any(plan, rng, lambda each: bool(each.ints))
    if own:
        own.ints = _with(
            own.ints, rng, lambda old: _with(old or (), rng, lambda number: _number(number, rng))
        )
        own.ints = tuple(numbers if isinstance(numbers, tuple) else (numbers,) for numbers in own.ints)


def _change_texts(plan: Plan, rng: random.Random) -> None:
    own = _any(plan, rng, lambda each: bool(each.texts))
    if own:
        others = [text for each in instructions(plan.main) for text in each.texts]
        own.texts = _with(
            own.texts,
            rng,
            lambda old: rng.choice((rng.choice(_TEXTS), rng.choice(others), _text(str(old), rng))),
        )


def _text(old: str, rng: random.Random) -> str:
    """An attribute ``name:type=value`` with another value, or another text with a letter changed."""
    name, equals, value = old.partition("=")
    if not equals:
        at = rng.randrange(len(old) + 1)
        return old[:at] + rng.choice("x.:=9") + old[at + rng.randrange(2) :]
    parts = value.split(",")
    number = rng.choice((*_TEXTS, str(rng.choice(HOSTILE)), str(rng.randrange(-2, 12))))
    return name + "=" + ",".join(map(str, _with(parts, rng, lambda _: number)))


def _change_op(plan: Plan, rng: random.Random) -> None:
    own, other = _any(plan, rng), _any(plan, rng)
    if own and other:
        own.op = rng.choice((other.op, "x", "repeat", "while", "custom_call", "callback", "reshape", "sort"))


def _change_blocks(plan: Plan, rng: random.Random) -> None:
    own = _any(plan, rng, lambda each: bool(each.blocks))
    if own:
        empty = Block([], [], [])
        own.blocks = tuple(
            each or empty for each in _with(own.blocks, rng, lambda _: rng.choice((empty, plan.main)))
        )
        if any(each is plan.main for each in own.blocks):
            own.blocks = tuple(copy.deepcopy(empty) if each is plan.main else each for each in own.blocks)


def _change_block(plan: Plan, rng: random.Random) -> None:
    block = rng.choice(_blocks(plan.main))
    if rng.random() < 0.5:
        block.results = list(_with(block.results, rng, lambda _: _value(plan, rng)))
    else:
        block.parameters = list(_with(block.parameters, rng, lambda _: _value(plan, rng)))


def _move_instruction(plan: Plan, rng: random.Random) -> None:
    block = rng.choice(_blocks(plan.main))
    block.instructions = list(_with(block.instructions, rng, copy.deepcopy)) if block.instructions else []


def _value(plan: Plan, rng: random.Random) -> int:
    return rng.choice((rng.randrange(len(plan.types)), rng.choice(HOSTILE), len(plan.types)))


def _change_type(plan: Plan, rng: random.Random) -> None:
    at = rng.randrange(len(plan.types))
    dtype, shape = plan.types[at]
    if rng.random() < 0.3:
        dtype = rng.choice(_NAMES)
    else:
        shape = _with(shape, rng, lambda old: rng.choice((rng.choice(_SIZES), old + 1, max(old - 1, 0))))
    plan.types[at] = ArrayType(dtype, shape)


def _change_size(plan: Plan, rng: random.Random) -> None:
    """One size wherever it occurs, so that shapes still fit operations."""
    sizes = sorted({size for type_ in plan.types for size in type_.shape})
    if sizes:
        old, new = rng.choice(sizes), rng.choice(_SIZES)
        plan.types = [ArrayType(t.dtype, tuple(new if n == old else n for n in t.shape)) for t in plan.types]


def _change_dtype(plan: Plan, rng: random.Random) -> None:
    """One dtype wherever it occurs."""
    old, new = rng.choice(plan.types).dtype, rng.choice(_NAMES)
    plan.types = [ArrayType(new if t.dtype == old else t.dtype, t.shape) for t in plan.types]
    plan.constants = {
        value: _as(array, plan.types[value]) if 0 <= value < len(plan.types) else array
        for value, array in plan.constants.items()
    }


def _as(array: np.ndarray, type_: ArrayType) -> np.ndarray:
    with np.errstate(all="ignore"):
        return array.astype(numpy_dtype(type_.dtype))


def _change_constant(plan: Plan, rng: random.Random) -> None:
    if not plan.constants:
        return
    value = rng.choice(sorted(plan.constants))
    match rng.randrange(3):
        case 0:
            del plan.constants[value]
        case 1:
            plan.constants[_value(plan, rng)] = plan.constants[value]
        case _:
            size = min(plan.constants[value].nbytes, 400)
            plan.constants[value] = np.frombuffer(rng.randbytes(size), np.uint8)


def _change_rest(plan: Plan, rng: random.Random) -> None:
    position = lambda _: rng.choice((rng.randrange(4), rng.choice(HOSTILE)))  # noqa: E731
    match rng.randrange(7):
        case 0:
            plan.aliases = list(_with(plan.aliases, rng, lambda _: (position(0), position(0))))
        case 1:
            plan.donated = list(_with(plan.donated, rng, position))
        case 2:
            plan.devices = list(_with(plan.devices, rng, position))
        case 3:
            plan.num_partitions = position(0)
        case 4:
            plan.options.append((rng.choice(_OPTIONS), rng.choice((*_TEXTS, "1472", "mk1", "64"))))
        case 5:
            plan.complex_parameters = list(_with(plan.complex_parameters, rng, position))
        case _:
            plan.complex_results = list(_with(plan.complex_results, rng, position))


def _any(
    plan: Plan, rng: random.Random, fits: Callable[[Instruction], bool] = lambda _: True
) -> Instruction | None:
    found = [each for each in instructions(plan.main) if fits(each)]
    return rng.choice(found) if found else None


_MUTATIONS: tuple[Callable[[Plan, random.Random], None], ...] = (
    *(_change_inputs, _change_outputs, _change_ints, _change_ints, _change_texts, _change_texts, _change_op),
    *(
        _change_blocks,
        _change_block,
        _move_instruction,
        _change_type,
        _change_type,
        _change_size,
        _change_size,
    ),
    *(_change_dtype, _change_constant, _change_rest),
)
