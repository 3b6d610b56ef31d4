"""Random programs on the modelled IPU beside the CPU: a few of them, and those of which one would be wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.ipu.random_programs import networks, programs, search
from tests.ipu.random_programs.operations import OPERATIONS, Type, drawn_numbers, tidy
from tests.ipu.random_programs.programs import STRUCTURES, Block, Program, Statement, drawn_program

PROGRAMS = 24


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_program_gives_what_the_cpu_gives(ipus, seed):
    search.check_program(seed, ipus[0])


def test_network_gives_what_the_cpu_gives(ipus, monkeypatch):
    """One of several layers on codelets; and the same with another output on the IPU does not."""
    networks.check_network(3, ipus[0])
    runner = networks.runner

    def wrong_runner(form, implementation):
        def function(*given):
            output, *others = runner(form, implementation)(*given)
            return output + jax.lax.platform_dependent(ipu=lambda: 1.0, default=lambda: 0.0), *others

        return function

    monkeypatch.setattr(networks, "runner", wrong_runner)
    assert "Not equal to tolerance" in search.outcome("networks", 3, ipus[0])


def kinds_in(block: Block) -> set[str]:
    """The operations and structures of a block and those inside it."""
    inside = [kinds_in(inner) for each in block.statements for inner in each.blocks]
    return {each.kind for each in block.statements}.union(*inside)


def test_programs_are_repeatable_and_use_everything():
    drawn = [drawn_program(seed) for seed in range(100)]
    assert drawn == [drawn_program(seed) for seed in range(100)]
    assert set().union(*(kinds_in(each.block) for each in drawn)) == {*OPERATIONS, *STRUCTURES}
    assert any(each.donated for each in drawn)
    assert any(place is not None for each in drawn for place in each.fed)


def test_numbers_are_exact():
    rng = np.random.default_rng(0)
    x = jnp.asarray(drawn_numbers(rng, Type("float32", (64,))))
    exact = [float(a) * float(b) for a, b in zip(x, x[::-1], strict=True)]
    assert float(jnp.sum(x * x[::-1])) == sum(exact)
    np.testing.assert_array_equal(tidy(tidy(x * x)), tidy(x * x))


def test_misses_are_named(ipus, monkeypatch):
    """A program that counts how often it was traced differs from device to device."""
    traced = []
    monkeypatch.setattr(programs, "OPERATIONS", OPERATIONS | {"negative": counting(traced)})
    block = Block((Statement("negative", (0,), 0),), (1,))
    program = Program((Type("float32", (3,)),), block, (), 1, (None,))
    monkeypatch.setattr(search, "drawn_program", lambda _: program)
    assert "round 0, result 0" in search.outcome("programs", 5, ipus[0])


def counting(traced: list[int]):
    def function(_: int, x: jax.Array) -> jax.Array:
        traced.append(1)
        return x + len(traced)

    return OPERATIONS["negative"]._replace(function=function)
