"""Random programs: loops, branches and calls, nested, on values that are read once, often, late or never.

A program is drawn as data, so that it can be traced for several devices. All values are numbered in order of
definition; a block sees those of the blocks around it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ipu.random_programs.operations import OPERATIONS, Type, anything, drawn_numbers, result_type

MOST_ELEMENTS = 400  # of a value
DEPTH = 3  # of nested blocks
ROUNDS = 4  # of a loop, at most


class Statement(NamedTuple):
    """An operation, a loop, a branch or a call: its arguments by number, a number below 100, and its blocks."""

    kind: str
    arguments: tuple[int, ...]
    number: int
    blocks: "tuple[Block, ...]" = ()


class Block(NamedTuple):
    statements: tuple[Statement, ...]
    results: tuple[int, ...]


class Program(NamedTuple):
    """A program, and how it is called: which arguments are donated, and which result each is in the next round."""

    parameters: tuple[Type, ...]
    block: Block
    donated: tuple[int, ...]
    rounds: int
    fed: tuple[int | None, ...]  # for each parameter, the result of the round before, or None


# ---- What a program computes ----


def run(block: Block, values: Sequence[jax.Array]) -> list[jax.Array]:
    """The results of a block, of the values around it and its parameters."""
    known = list(values)
    for statement in block.statements:
        given = [known[place] for place in statement.arguments]
        if statement.kind in OPERATIONS:
            known.append(OPERATIONS[statement.kind].function(statement.number, *given))
        else:
            known += STRUCTURES[statement.kind](statement, known, given)
    return [known[place] for place in block.results]


def counter(number) -> jax.Array:
    return lax.convert_element_type(number, jnp.int32)


def counted_loop(
    statement: Statement, known: list[jax.Array], given: list[jax.Array], rounds
) -> list[jax.Array]:
    def body(i, carried: list[jax.Array]) -> list[jax.Array]:
        return run(statement.blocks[0], [*known, counter(i), *carried])

    return lax.fori_loop(0, rounds, body, given)


def repeat(statement: Statement, known: list[jax.Array], given: list[jax.Array]) -> list[jax.Array]:
    return counted_loop(statement, known, given, statement.number % (ROUNDS + 1))


def repeat_as_often_as(
    statement: Statement, known: list[jax.Array], given: list[jax.Array]
) -> list[jax.Array]:
    """A loop whose first argument says how many rounds it has."""
    return counted_loop(statement, known, given[1:], given[0] & (ROUNDS - 1))


def repeat_while(statement: Statement, known: list[jax.Array], given: list[jax.Array]) -> list[jax.Array]:
    condition, body = statement.blocks

    def holds(state: tuple[jax.Array, list[jax.Array]]) -> jax.Array:
        i, carried = state
        return (i < ROUNDS) & run(condition, [*known, i, *carried])[0]

    def turn(state: tuple[jax.Array, list[jax.Array]]) -> tuple[jax.Array, list[jax.Array]]:
        i, carried = state
        return i + 1, run(body, [*known, i, *carried])

    return lax.while_loop(holds, turn, (jnp.zeros((), jnp.int32), given))[1]


def scan(statement: Statement, known: list[jax.Array], given: list[jax.Array]) -> list[jax.Array]:
    """A loop over the rows of its first argument; what its body yields beyond the carried values is stacked."""
    rows, *carried = given

    def turn(carried: list[jax.Array], row: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
        results = run(statement.blocks[0], [*known, row, *carried])
        return results[: len(carried)], results[len(carried) :]

    last, stacked = lax.scan(turn, carried, rows, reverse=statement.number % 2 == 1)
    return [*last, *stacked]


def branch(statement: Statement, known: list[jax.Array], given: list[jax.Array]) -> list[jax.Array]:
    choices = [functools.partial(run, block, known) for block in statement.blocks]
    return lax.switch(given[0].astype(jnp.int32), choices)


def call(statement: Statement, known: list[jax.Array], given: list[jax.Array]) -> list[jax.Array]:
    return jax.jit(lambda *arrays: run(statement.blocks[0], [*known, *arrays]))(*given)


STRUCTURES: dict[str, Callable[[Statement, list[jax.Array], list[jax.Array]], list[jax.Array]]] = {
    "repeat": repeat,
    "repeat as often as": repeat_as_often_as,
    "repeat while": repeat_while,
    "scan": scan,
    "branch": branch,
    "call": call,
}

# ---- How it is drawn ----

INDEX, CONDITION = Type("int32", ()), Type("bool", ())


class Draw:
    """A program being drawn: the types of the values that are known at this point."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.types: list[Type] = []
        self.starts: list[int] = []  # what the innermost loop carries at first

    def below(self, limit: int) -> int:
        return int(self.rng.integers(limit))

    def one_of(self, items: Sequence[Any]):
        return items[self.below(len(items))]

    def places(self, accepts: Callable[[Type], bool]) -> list[int]:
        return [place for place, type_ in enumerate(self.types) if accepts(type_)]

    def place(self, accepts: Callable[[Type], bool]) -> int | None:
        """A value that is accepted: often a late one, or one that a loop starts from; None if there is none."""
        found = self.places(accepts)
        if not found:
            return None
        started = [place for place in found if place in self.starts]
        return self.one_of((found, found[-3:], found[-3:], started or found)[self.below(4)])

    def block(
        self, depth: int, parameters: Sequence[Type], results: Sequence[Type], starts: Sequence[int] = ()
    ) -> Block:
        """A block with results of these types, of each of which there is a value; `starts` as above."""
        outside, starts_outside = len(self.types), self.starts
        self.types += parameters
        self.starts = [*starts]
        statements = self.statements(depth)
        places = [self.result(type_, outside + len(parameters)) for type_ in results]
        del self.types[outside:]
        self.starts = starts_outside
        return Block(statements, tuple(places))

    def result(self, type_: Type, first: int) -> int:
        """A value of this type, more often one that the block computes, which come from the `first`, than another."""
        found = self.places(lambda each: each == type_)
        computed = [place for place in found if place >= first]
        return self.one_of(computed if computed and self.below(4) else found)

    def statements(self, depth: int) -> tuple[Statement, ...]:
        statements = []
        for _ in range(1 + self.below(7 if depth else 10)):
            structure = depth < DEPTH and self.below(4) == 0
            drawn = self.structure(depth) if structure else self.operation()
            if drawn is not None:
                statements.append(drawn[0])
                self.types += drawn[1]
        return tuple(statements)

    def operation(self) -> tuple[Statement, list[Type]] | None:
        name = self.one_of(list(OPERATIONS))
        places: list[int] = []
        for accepts in OPERATIONS[name].takes:
            before = [self.types[place] for place in places]
            place = self.place(lambda each, accepts=accepts, before=before: accepts(each, *before))
            if place is None:
                return None
            places.append(place)
        number = self.below(100)
        type_ = result_type(name, number, *(self.types[place] for place in places))
        if not 0 < np.prod(type_.shape) <= MOST_ELEMENTS or len(type_.shape) > 3:
            return None
        return Statement(name, tuple(places), number), [type_]

    def structure(self, depth: int) -> tuple[Statement, list[Type]] | None:
        kind = self.one_of(list(STRUCTURES))
        carried = [self.place(anything) or 0 for _ in range(1 + self.below(4))]
        carried += [self.one_of(carried)] * (self.below(4) == 0)
        types = [self.types[place] for place in carried]
        if kind == "branch":
            return self.branch(depth, types)
        if kind == "call":
            blocks: tuple[Block, ...] = (self.block(depth + 1, types, types),)
            return Statement(kind, tuple(carried), 0, blocks), types
        first: list[int] = []
        parameter, stacked = INDEX, []
        if kind == "scan":
            rows = self.place(lambda each: len(each.shape) > 0 and each.shape[0] <= ROUNDS + 3)
            if rows is None:
                return None
            first, parameter = [rows], self.types[rows]._replace(shape=self.types[rows].shape[1:])
            stacked = [parameter] * self.below(3)
            stacked += [INDEX] * (INDEX in self.types)
        if kind == "repeat as often as":
            first = [self.places(lambda each: each == INDEX)[0]]
        blocks = (self.block(depth + 1, [parameter, *types], [*types, *stacked], carried),)
        if kind == "repeat while":
            blocks = (self.block(depth + 1, [parameter, *types], [CONDITION]), *blocks)
        length = self.types[first[0]].shape[:1] if kind == "scan" else ()
        ends = [*types, *(each._replace(shape=length + each.shape) for each in stacked)]
        return Statement(kind, (*first, *carried), self.below(100), blocks), ends

    def branch(self, depth: int, types: list[Type]) -> tuple[Statement, list[Type]] | None:
        index = self.place(lambda each: each in (INDEX, CONDITION))
        assert index is not None
        count = 2 if self.types[index] == CONDITION else 1 + self.below(3)
        blocks = tuple(self.block(depth + 1, (), types) for _ in range(count))
        return Statement("branch", (index,), 0, blocks), types


def drawn_parameters(rng: np.random.Generator) -> tuple[Type, ...]:
    """An index, a condition and indices, and arrays of shapes that fit each other, in any order."""
    n, m = (int(rng.choice((1, 2, 3, 5, 8, 33, 64))), int(rng.choice((1, 2, 3, 5))))
    shapes = ((n,), (n,), (m,), (m, n), (n, m), (m, m), (m, n), ())
    dtypes = ("float32", "float32", "float32", "int32", "int32", "uint32", "float16", "int8", "bool")
    types = [INDEX, CONDITION, Type("int32", (int(rng.choice((n, m))),))]
    types += [
        Type(dtypes[int(rng.integers(len(dtypes)))], shapes[int(rng.integers(len(shapes)))])
        for _ in range(2 + int(rng.integers(4)))
    ]
    return tuple(types[place] for place in rng.permutation(len(types)))


def drawn_program(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    parameters = drawn_parameters(rng)
    draw = Draw(rng)
    draw.types += parameters
    statements = draw.statements(0)
    results = [draw.place(anything) or 0 for _ in range(1 + draw.below(6))]
    types = [draw.types[place] for place in results]
    donated = tuple(place for place in range(len(parameters)) if draw.below(3) == 0)
    fed: list[int | None] = []
    for type_ in parameters:
        found = [place for place, each in enumerate(types) if each == type_ and place not in fed]
        fed.append(draw.one_of(found) if found and draw.below(2) else None)
    block = Block(statements, tuple(results))
    return Program(parameters, block, donated, 1 + draw.below(3), tuple(fed))


def function_of(program: Program) -> Callable[..., list[jax.Array]]:
    """The program as a function of its arguments."""
    return lambda *arguments: run(program.block, arguments)


def arguments_of(program: Program, seed: int) -> list[np.ndarray]:
    """Arguments for a round."""
    rng = np.random.default_rng(seed)
    return [drawn_numbers(rng, type_) for type_ in program.parameters]
