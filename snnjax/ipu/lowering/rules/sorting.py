"""Rules for sorts: evaluating the comparator shows which arrays are keys, and the direction of each.

The real and the imaginary part of complex numbers are two arrays.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.pairs import join, real_types, split
from snnjax.ipu.lowering.rules import elementwise, reductions, rule
from snnjax.ipu.lowering.rules.regions import ask, samples
from snnjax.ipu.lowering.types import ArrayType, is_floating, numpy_dtype


class _Key(NamedTuple):
    array: int  # position among the arrays
    order: str  # ascending or descending
    is_total: bool  # in the total order of IEEE 754; else -0 equals 0, and all NaNs are equal


def _asked(operation: Operation, pairs: Sequence[tuple[Any, Any]]) -> np.ndarray | None:
    """The comparator's results for pairs of tuples, each with an element of every array."""
    columns, place = [], 0
    for type_ in operation.types:
        parts = list(enumerate(real_types([type_]), place))
        for side, (part, of_part) in itertools.product((0, 1), parts):
            elements = [pair[side][part] for pair in pairs]
            columns.append(np.array(elements, numpy_dtype(of_part.dtype)))
        place += len(parts)
    answers = ask(operation.walk, operation.regions[0], columns)
    return None if answers is None else answers[0]


def _keys(operation: Operation) -> list[_Key] | None:
    """The keys of a comparator, most significant first, or None if it does not order by keys."""
    types = real_types(operation.types)
    low, high = ([samples(type_.dtype)[end] for type_ in types] for end in (0, -1))

    def with_(place: int, tuple_: Sequence[Any], element: object) -> list[Any]:
        return [element if k == place else each for k, each in enumerate(tuple_)]

    places = range(len(types))
    pairs = [pair for k in places for pair in ((low, with_(k, low, high[k])), (with_(k, low, high[k]), low))]
    answers = _asked(operation, pairs)
    if answers is None:
        return None
    up, down = answers[::2], answers[1::2]
    found = [k for k in places if up[k] != down[k]]
    # the more significant of two keys decides if they disagree

    def beats(k: int, other: int) -> tuple[Any, Any]:
        x, y = list(low), list(low)
        x[k], y[k] = (low[k], high[k]) if up[k] else (high[k], low[k])
        x[other], y[other] = (high[other], low[other]) if up[other] else (low[other], high[other])
        return x, y

    disputes = list(itertools.permutations(found, 2))
    won = _asked(operation, [beats(*pair) for pair in disputes]) if disputes else np.array([])
    if won is None or not found:
        return None
    ranks = {k: sum(bool(w) for w, pair in zip(won, disputes, strict=True) if pair[0] == k) for k in found}
    order = sorted(found, key=lambda k: -ranks[k])
    keys = [_Key(k, "ascending" if up[k] else "descending", _is_total(operation, k, low)) for k in order]
    return keys if _agrees(operation, keys) else None


def _is_total(operation: Operation, place: int, rest: Sequence[Any]) -> bool:
    """Whether a comparator distinguishes -0 from 0."""
    if not is_floating(real_types(operation.types)[place].dtype):
        return False
    x, y = list(rest), list(rest)
    x[place], y[place] = -0.0, 0.0
    answers = _asked(operation, [(x, y), (y, x)])
    return answers is not None and bool(answers[0] != answers[1])


def _agrees(operation: Operation, keys: Sequence[_Key]) -> bool:
    """Whether the comparator agrees with the keys on many pairs."""
    rng = np.random.default_rng(0)
    choices = [samples(type_.dtype) for type_ in real_types(operation.types)]
    tuples = [[each[rng.integers(len(each))] for each in choices] for _ in range(64)]
    pairs = list(zip(tuples[::2], tuples[1::2], strict=True))
    answers = _asked(operation, pairs)

    def before(x: Sequence[Any], y: Sequence[Any]) -> bool:
        for key in keys:
            if x[key.array] != y[key.array]:
                return (x[key.array] < y[key.array]) == (key.order == "ascending")
        return False

    return answers is not None and [before(*pair) for pair in pairs] == answers.tolist()


@rule("stablehlo.sort")
def _lower_sort(operation: Operation) -> Sequence[int]:
    builder, dimension = operation.builder, operation.integer("dimension")
    if operation.types[0].shape[dimension] <= 1:
        return operation.inputs
    keys = _keys(operation)
    if keys is None:
        raise operation.refuse(
            "the IPU sorts by ascending or descending keys, not by a function",
            "Use jnp.sort, jnp.argsort, jnp.lexsort or lax.sort with num_keys",
        )
    parts = split(builder, operation.inputs)
    by = [_as_key(builder, parts[key.array], key.is_total) for key in keys]
    # a key that is an unchanged array comes out sorted; the other arrays are sorted along with the keys
    others = [value for value in parts if value not in by]
    arrays = [*by, *dict.fromkeys(others)]
    types = [builder.types[value] for value in arrays]
    ints = ((dimension, int(operation.flag("is_stable"))),)
    results = builder.add("sort", arrays, types, ints, [key.order for key in keys])
    sorted_ = dict(zip(arrays, results, strict=True))
    return join(builder, operation.types, [sorted_[value] for value in parts])


def _as_key(builder: Builder, x: int, is_total: bool) -> int:
    """An array whose order gives the order of the sort."""
    type_ = builder.types[x]
    if not is_total:
        dtype = "u32" if type_.dtype == "bool" else reductions.native(type_.dtype)
        return elementwise.convert(builder, x, dtype)
    integers = ArrayType("s32", type_.shape)
    bits = elementwise.bitcast(builder, elementwise.convert(builder, x, "f32"), integers)
    flipped = elementwise.binary(builder, "xor", bits, builder.splat(0x7FFFFFFF, integers))
    negative = elementwise.compare(builder, "LT", bits, builder.splat(0, integers))
    return elementwise.select(builder, negative, flipped, bits)


def top_k(builder: Builder, x: int, k: int) -> list[int]:
    """The `k` largest elements along the last dimension, and their indices."""
    type_ = builder.types[x]
    shape = (*type_.shape[:-1], k)
    if 0 in shape:
        return [builder.splat(0, ArrayType(dtype, shape)) for dtype in (type_.dtype, "s32")]
    dtype = "u32" if type_.dtype == "bool" else reductions.native(type_.dtype)
    types = (ArrayType(dtype, shape), ArrayType("s32", shape))
    values, places = builder.add("top_k", (elementwise.convert(builder, x, dtype),), types, ((k,),))
    return [elementwise.convert(builder, values, type_.dtype), places]
