"""What random programs compute with: operations on numbers that every device must compute exactly.

Floating-point numbers are eighths from -64 to 64: sums and products of a few are exact in any order, and `tidy` brings
them back. So whatever is compared, branched on or looped over, two devices must give the same bits.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

BOUND = 64  # of floating-point numbers
MOST_TERMS = 64  # of an exact sum: 64^2 times 64 eighths of eighths are 2^24
DTYPES = ("float32", "float16", "int32", "uint32", "int8", "bool")


class Type(NamedTuple):
    """The type of a value."""

    dtype: str
    shape: tuple[int, ...]


Accepts = Callable[..., bool]  # of the type of an argument and those of all before it


class Operation(NamedTuple):
    """An operation: what arguments it takes, and its result from a number below 100 and arrays."""

    takes: tuple[Accepts, ...]
    function: Callable[..., jax.Array]


def tidy(x: jax.Array) -> jax.Array:
    """Floating-point numbers as eighths between the bounds; others as they are."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    return jnp.clip(jnp.round(x * 8) / 8, -BOUND, BOUND)


def drawn_numbers(rng: np.random.Generator, type_: Type) -> np.ndarray:
    """Eighths, small integers as indices are, or bits of every kind."""
    dtype = np.dtype(type_.dtype)
    if dtype.kind == "f":
        return np.asarray(rng.integers(-8 * BOUND, 8 * BOUND + 1, type_.shape) / 8, dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, type_.shape), dtype)
    low, high = (-3, 9) if rng.random() < 0.7 else (-(2**31), 2**31)
    return np.asarray(rng.integers(low, high, type_.shape)).astype(dtype)


# ---- What an operation takes ----


def anything(_: Type, *__: Type) -> bool:
    return True


def of(*dtypes: str, rank: int | None = None, least: int = 0) -> Accepts:
    """Arrays of these dtypes and this rank, or at least `least`."""

    def accepts(type_: Type, *_: Type) -> bool:
        good = len(type_.shape) >= least if rank is None else len(type_.shape) == rank
        return good and type_.dtype in dtypes

    return accepts


def same(type_: Type, first: Type, *_: Type) -> bool:
    return type_ == first


def same_dtype(type_: Type, first: Type, *_: Type) -> bool:
    return type_.dtype == first.dtype and len(type_.shape) == len(first.shape)


def mask(type_: Type, first: Type, *_: Type) -> bool:
    return type_ == Type("bool", first.shape)


def row(type_: Type, first: Type, *_: Type) -> bool:
    return type_ == Type(first.dtype, first.shape[1:])


def factor(type_: Type, first: Type, *_: Type) -> bool:
    """What a matrix can be multiplied by."""
    return type_.dtype == first.dtype and 1 <= len(type_.shape) <= 2 and type_.shape[0] == first.shape[1]


def few_terms(type_: Type, *_: Type) -> bool:
    """Arrays whose sums along any dimension are exact."""
    exact = type_.dtype in WHOLE or (type_.dtype == "float32" and max(type_.shape, default=0) <= MOST_TERMS)
    return exact and len(type_.shape) > 0


def matrix(type_: Type, *_: Type) -> bool:
    return type_.dtype == "float32" and len(type_.shape) == 2 and type_.shape[1] <= MOST_TERMS


def index_for_each(type_: Type, first: Type) -> bool:
    return type_ == Type("int32", first.shape[:1])


def updates(type_: Type, first: Type, indices: Type) -> bool:
    return type_ == Type(first.dtype, indices.shape + first.shape[1:])


WHOLE = ("int32", "uint32", "int8")
NUMBERS = ("float32", "float16", *WHOLE)
EXACT_PRODUCTS = ("float32", *WHOLE)
array, number = of(*DTYPES, least=1), of(*NUMBERS)
INDEX, INDICES = of("int32", rank=0), of("int32", rank=1)


# ---- What it computes ----


def axis_of(k: int, x: jax.Array) -> int:
    return k % x.ndim


def cut(x: jax.Array, shape: tuple[int, ...], k: int) -> jax.Array:
    """A part of `x` that is in no dimension longer than `shape`, and a bit shorter in one."""
    limits = [min(pair) for pair in zip(x.shape, shape, strict=True)]
    axis = k % len(limits)
    limits[axis] = max(1, limits[axis] - k % 3)
    return lax.slice(x, [0] * x.ndim, limits)


def update(k: int, x: jax.Array, values: jax.Array, start: jax.Array) -> jax.Array:
    zero = jnp.zeros((), jnp.int32)
    starts = [start if axis == k % x.ndim else zero for axis in range(x.ndim)]
    return lax.dynamic_update_slice(x, cut(values, x.shape, k), starts)


def window(k: int, x: jax.Array, start: jax.Array) -> jax.Array:
    axis = axis_of(k, x)
    return lax.dynamic_slice_in_dim(x, start, 1 + k % x.shape[axis], axis)


def joined(k: int, x: jax.Array, y: jax.Array) -> jax.Array:
    """Some of the first, then the rest of the second, along a dimension."""
    axis = axis_of(k, x)
    at = k % (x.shape[axis] + 1)
    return jnp.concatenate([jnp.split(x, [at], axis)[0], jnp.split(y, [at], axis)[1]], axis)


def scatter(k: int, x: jax.Array, indices: jax.Array, values: jax.Array) -> jax.Array:
    at = x.at[indices]
    if x.dtype == jnp.bool_ or k % 4 == 0:
        return at.set(values)
    if x.dtype == jnp.float16:  # holds sums of two eighths, not of many
        return at.max(values)
    return (at.max, at.min, lambda y: tidy(at.add(y)))[k % 4 - 1](values)


def as_float(k: int, x: jax.Array) -> jax.Array:
    return (x & (BOUND - 1)).astype(("float32", "float16")[k % 2])


def constant(k: int, x: jax.Array) -> jax.Array:
    """Known numbers of this type: equal ones, or an array of others."""
    if k % 2:
        return jnp.full(x.shape, k % 5, x.dtype)
    return jnp.asarray(drawn_numbers(np.random.default_rng(k), Type(str(x.dtype), x.shape)))


def compared(k: int, x: jax.Array, y: jax.Array) -> jax.Array:
    return (x < y, x == y, x != y, x >= y)[k % 4]


def shifted(k: int, x: jax.Array) -> jax.Array:
    by = jnp.asarray(k % 8, x.dtype)
    return x << by if k % 2 else x >> by


def summed(k: int, x: jax.Array) -> jax.Array:
    return tidy(jnp.sum(x, axis_of(k, x), dtype=x.dtype))


OPERATIONS: dict[str, Operation] = {
    "constant": Operation((anything,), constant),
    "negative": Operation((number,), lambda _, x: -x),
    "absolute": Operation((of("float32", "float16", "int32", "int8"),), lambda _, x: abs(x)),
    "inverse": Operation((of(*WHOLE, "bool"),), lambda _, x: ~x),
    "half": Operation((of("float32", "float16"),), lambda _, x: tidy(x / 2)),
    "shift": Operation((of(*WHOLE),), shifted),
    "remainder": Operation((of("int32"),), lambda k, x: x % (1 + k)),
    "reverse": Operation((array,), lambda k, x: jnp.flip(x, axis_of(k, x))),
    "roll": Operation((array,), lambda k, x: jnp.roll(x, k, axis_of(k, x))),
    "transpose": Operation((array,), lambda _, x: x.T),
    "flatten": Operation((array,), lambda _, x: x.reshape(-1)),
    "expand": Operation((anything,), lambda k, x: jnp.expand_dims(x, k % (x.ndim + 1))),
    "element": Operation((anything,), lambda k, x: x.reshape(-1)[k % x.size]),
    "row": Operation((array,), lambda k, x: x[k % len(x)]),
    "tail": Operation((array,), lambda k, x: x[k % len(x) :]),
    "every second": Operation((array,), lambda _, x: x[::2]),
    "pad": Operation((array,), lambda k, x: jnp.pad(x[k % 2 :], [(k % 3, 1), *[(0, 0)] * (x.ndim - 1)])),
    "copies": Operation((anything,), lambda k, x: jnp.broadcast_to(x, (1 + k % 5, *x.shape))),
    "sort": Operation((of(*NUMBERS, least=1),), lambda k, x: jnp.sort(x, axis_of(k, x))),
    "running sum": Operation((few_terms,), lambda k, x: tidy(jnp.cumsum(x, axis_of(k, x), dtype=x.dtype))),
    "running maximum": Operation(
        (of("float32", "int32", least=1),), lambda k, x: lax.cummax(x, axis_of(k, x))
    ),
    "sum": Operation((few_terms,), summed),
    "largest": Operation((of(*NUMBERS, least=1),), lambda k, x: jnp.max(x, axis_of(k, x))),
    "place of largest": Operation(
        (of(*NUMBERS, least=1),), lambda k, x: jnp.argmax(x, axis_of(k, x)).astype(jnp.int32)
    ),
    "any": Operation((of("bool", least=1),), lambda k, x: jnp.any(x, axis_of(k, x))),
    "as float": Operation((of(*WHOLE),), as_float),
    "floor": Operation((of("float32", "float16"),), lambda _, x: jnp.floor(x).astype(jnp.int32)),
    "convert": Operation((of("bool", "int8", "float16"),), lambda _, x: x.astype(jnp.float32)),
    "narrow": Operation((of("int32"),), lambda k, x: x.astype(("int8", "uint32")[k % 2])),
    "as bits": Operation((of("int32"),), lambda _, x: lax.bitcast_convert_type(x, jnp.uint32)),
    "add": Operation((number, same), lambda _, x, y: tidy(x + y)),
    "subtract": Operation((number, same), lambda _, x, y: tidy(x - y)),
    "multiply": Operation((of(*EXACT_PRODUCTS), same), lambda _, x, y: tidy(x * y)),
    "maximum": Operation((number, same), lambda _, x, y: jnp.maximum(x, y)),
    "and": Operation((of(*WHOLE, "bool"), same), lambda _, x, y: x & y),
    "exclusive or": Operation((of(*WHOLE, "bool"), same), lambda _, x, y: x ^ y),
    "compare": Operation((number, same), compared),
    "select": Operation((anything, same, mask), lambda _, x, y, m: jnp.where(m, x, y)),
    "add to rows": Operation((of(*NUMBERS, least=1), row), lambda _, x, y: tidy(x + y[None])),
    "join": Operation((array, same), joined),
    "both": Operation((array, same), lambda k, x, y: jnp.concatenate([x, y], axis_of(k, x))),
    "product": Operation((matrix, factor), lambda _, x, y: tidy(x @ y)),
    "rows at": Operation((array, INDICES), lambda _, x, i: x.at[i].get(mode="fill", fill_value=0)),
    "row at": Operation((array, INDEX), lambda _, x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False)),
    "window": Operation((array, INDEX), window),
    "update": Operation((array, same_dtype, INDEX), update),
    "update itself": Operation((array, INDEX), lambda k, x, i: update(k, x, jnp.flip(x, axis_of(k, x)), i)),
    "put": Operation((array, INDEX, lambda t, x, _: row(t, x)), lambda _, x, i, y: x.at[i].set(y)),
    "scatter": Operation((array, INDICES, updates), scatter),
    "scatter itself": Operation((array, index_for_each), lambda k, x, i: scatter(k, x, i, x)),
}


@functools.cache
def result_type(name: str, k: int, *types: Type) -> Type:
    """The type of an operation's result."""
    shapes: list[Any] = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in types]
    found = jax.eval_shape(lambda *arrays: OPERATIONS[name].function(k, *arrays), *shapes)
    return Type(str(found.dtype), found.shape)
