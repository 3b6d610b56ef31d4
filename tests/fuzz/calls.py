"""Direct calls of the handlers, past all checks, with mismatched shapes, dtypes, numbers or names."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from unittest import mock

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from snnjax import _targets
from tests.fuzz import values

# (shape, name of a dtype) of an operand or a result
Array = tuple[tuple[int, ...], str]
DTYPES = ("float32", "bfloat16", "float16", "uint8", "bool", "int32", "uint16", "uint32", "int8", "complex64")
LENGTHS = (0, 1, 2, 3, 5, 64, 65)
ABSURD = (-1, 0, 1, 2, 7, 1000, 2**31, 2**62, -(2**63), 2**63 - 1)


class Call(NamedTuple):
    """What a handler is called with, but for the numbers in the operands."""

    target: str
    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    attributes: Mapping[str, Any]


def calls_of(function: Callable[..., Any], *arguments) -> list[Call]:
    """All calls of handlers in a function."""
    found = []
    original = _targets.call

    def record(target: str, operands, results, aliases=None, **attributes):
        shapes = [
            tuple((tuple(a.shape), jnp.dtype(a.dtype).name) for a in each) for each in (operands, results)
        ]
        found.append(Call(target, *shapes, attributes))
        return original(target, operands, results, aliases, **attributes)

    with mock.patch.object(_targets, "call", record):
        jax.jit(function).lower(*arguments)
    return found


def compiled(call: Call) -> Callable[..., Any]:
    """A call as a function of its operands, compiled at its first use."""
    results = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in call.results)
    return jax.jit(lambda *operands: jax.ffi.ffi_call(call.target, results)(*operands, **call.attributes))


def results_of(
    run: Callable[..., Any], call: Call, rng: np.random.Generator, kinds: Callable[[], str]
) -> list[np.ndarray]:
    """The results of a compiled call."""
    operands = [values.piece(rng, kinds(), *operand) for operand in call.operands]
    return [np.asarray(output) for output in run(*operands)]


@st.composite
def mistaken(draw: st.DrawFn, calls: list[Call]) -> tuple[Call, int]:
    """One of the calls with some mistakes, and their number."""
    call = draw(st.sampled_from(calls))
    count = draw(st.sampled_from([0, 0, 1, 1, 2]))
    for _ in range(count):
        field = draw(st.sampled_from(["operands", "operands", "results", "groups", "attributes"]))
        if field == "groups":
            call = draw(_other_groups(call))
        elif field == "attributes":
            call = call._replace(attributes=draw(_mistaken_attributes(call.attributes)))
        else:
            call = call._replace(**{field: draw(_mistaken_arrays(getattr(call, field)))})
    return call, count


@st.composite
def _other_groups(draw: st.DrawFn, call: Call) -> Call:
    """Each array with a groups axis of its own."""
    lengths = draw(st.sampled_from([(1, 3), (2, 3), (0, 1), (1, 2, 4)]))

    def of(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(((draw(st.sampled_from(lengths)), *shape[1:]), dtype) for shape, dtype in arrays)

    return call._replace(operands=of(call.operands), results=of(call.results))


@st.composite
def _mistaken_arrays(draw: st.DrawFn, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """One array more, or less, or in another place, or of another shape or dtype."""
    if not arrays:
        return ()
    place = draw(st.integers(0, len(arrays) - 1))
    (shape, dtype), rest = arrays[place], (*arrays[:place], *arrays[place + 1 :])
    mistake = draw(st.sampled_from(["drop", "repeat", "move", "dtype", "length", "length", "axis"]))
    if mistake == "drop":
        return rest
    if mistake == "move":
        return (*rest, arrays[place])
    if mistake == "repeat":
        return (*arrays[:place], arrays[place], *arrays[place:])
    if mistake == "dtype":
        dtype = draw(st.sampled_from(DTYPES))
    elif mistake == "axis" or not shape:
        shape = draw(st.sampled_from([(), shape[:-1], (*shape, 1), (2, *shape), shape[::-1]]))
    else:
        axis, length = draw(st.integers(0, len(shape) - 1)), draw(st.sampled_from(LENGTHS))
        shape = (*shape[:axis], length, *shape[axis + 1 :])
    return (*arrays[:place], (shape, dtype), *arrays[place + 1 :])


@st.composite
def _mistaken_attributes(draw: st.DrawFn, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """One attribute less, or of another type or length, or with a number that nobody expects."""
    if not attributes:
        return {"surprise": np.int32(1)}
    name = draw(st.sampled_from(sorted(attributes)))
    value = attributes[name]
    mistake = draw(st.sampled_from(["drop", "type", "length", "number", "number", "number"]))
    if mistake == "drop":
        return {key: other for key, other in attributes.items() if key != name}
    if mistake == "type":
        return {**attributes, name: draw(st.sampled_from([np.float64(0.5), np.int8(7), "text", np.zeros(3)]))}
    if isinstance(value, np.ndarray) and value.size:
        if mistake == "length":
            return {**attributes, name: value[: draw(st.integers(0, value.size - 1))]}
        value = value.copy()
        value[draw(st.integers(0, value.size - 1))] = draw(_absurd(value.dtype))
        return {**attributes, name: value}
    if isinstance(value, bool | np.bool_):
        return {**attributes, name: not value}
    if isinstance(value, np.generic):
        return {**attributes, name: value.dtype.type(draw(_absurd(value.dtype)))}
    return attributes


def _absurd(dtype: DTypeLike) -> st.SearchStrategy[Any]:
    if jnp.issubdtype(dtype, jnp.floating):
        return st.sampled_from([0.0, -1.0, np.nan, np.inf, 1e-45, 3e38])
    limits = np.iinfo(dtype)
    return st.sampled_from([number for number in ABSURD if limits.min <= number <= limits.max])
