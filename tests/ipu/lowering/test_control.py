"""Loops and branches: counted loops are `repeat`, what a loop does not change stays outside, unused values go."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from tests.ipu.lowering.arrays import numbers
from tests.ipu.lowering.checks import check, on_ipu, plan_of

X = numbers(np.float32, (4, 3))


def ops(block):
    return [op for i in block.instructions for op in (i.op, *(o for inner in i.blocks for o in ops(inner)))]


@given(st.integers(-3, 8), st.integers(-3, 8))
def test_counted_loop_is_repeated(start, stop):
    def loop(x):
        return lax.fori_loop(start, stop, lambda i, x: x * 0.5 + i.astype(jnp.float32), x)

    check(loop, X)
    names = ops(plan_of(loop, X).main)
    assert ("repeat" in names) == (stop > start)
    assert "while" not in names


@pytest.mark.parametrize("step, limit", [(2, 7), (-1, -4), (-3, -10)])
def test_loop_in_steps_is_repeated(step, limit):
    def loop(x):
        def more(carry):
            return carry[0] < limit if step > 0 else carry[0] >= limit

        return lax.while_loop(more, lambda carry: (carry[0] + step, carry[1] * 0.5), (0, x))

    check(loop, X)
    assert "repeat" in ops(plan_of(loop, X).main)


def test_loop_that_never_ends_by_counting_is_no_repeat():
    plan = plan_of(lambda x: lax.while_loop(lambda i: i < 5, lambda i: i - 1, x * 0), np.int32(1))
    assert "while" in ops(plan.main)


@pytest.mark.parametrize(
    "start, limit, step, dtype",
    [
        (5, 10, 2**32 - 1, np.uint32),  # counts down to 0, and the largest number follows
        (4_000_000_000, 4_100_000_000, 1_500_000_000, np.uint32),
        (1_900_000_000, 1_950_000_000, 1_000_000_000, np.int32),
        (-1_900_000_000, -1_950_000_000, -1_000_000_000, np.int32),
    ],
)
def test_counter_that_wraps_around_goes_on(start, limit, step, dtype):
    """Compared with NumPy: XLA counts one round of the first on the CPU."""

    def more(carry):
        return carry[0] < dtype(limit) if step > 0 else carry[0] > dtype(limit)

    def loop(x):
        return lax.while_loop(more, lambda carry: (carry[0] + dtype(step), carry[1] + 1), (dtype(start), x))

    counter, rounds = np.array(start, dtype), 0
    while more((counter,)):
        counter, rounds = np.add(counter, np.array(step, dtype)), rounds + 1
    assert on_ipu(loop, np.int32(0)) == [counter, rounds]


def test_scans_equal_cpu():
    def step(carry, x):
        carry = {"v": carry["v"] * 0.9 + x, "n": carry["n"] + 1}
        return carry, (carry["v"] > 0, carry["n"])

    first = {"v": jnp.zeros(3), "n": jnp.int32(0)}
    check(lambda x: lax.scan(step, first, x), X)
    check(lambda x: lax.scan(step, first, x, reverse=True), X)
    check(lambda x: lax.scan(step, first, x, unroll=2), X)
    check(lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, length=3)[0], X)
    check(lambda x: lax.scan(lambda c, x: (c, x), 0.0, x[:0]), X)
    check(lambda x: jax.grad(lambda x: jnp.sum(lax.scan(step, first, x)[0]["v"] ** 2))(x), X)
    check(lambda x: jax.vmap(lambda x: lax.map(jnp.sin, x))(x), X)


def test_loops_on_conditions_equal_cpu():
    def collatz(n):
        return lax.while_loop(
            lambda c: c[0] != 1,
            lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1),
            (n, 0),
        )

    check(collatz, np.int32(27))
    check(jax.vmap(collatz), np.array([1, 6, 27], np.int32))
    check(lambda n, x: lax.fori_loop(0, n, lambda i, x: x * 0.5, x), np.int32(3), X)


@pytest.mark.parametrize("index", [-2, 0, 1, 2, 9])
def test_branches_equal_cpu(index):
    branches = [jnp.sin, lambda x: x @ jnp.ones((3, 3)), lambda x: x * 0]
    check(lambda i, x: lax.switch(i, branches, x), np.int32(index), X)
    check(lambda x: lax.switch(index, branches, x), X)
    check(lambda i, x: lax.cond(i > 0, lambda x: (x, x), lambda x: (x * 2, x), x), np.int32(index), X)
    check(
        lambda i, x: jax.grad(lambda x: jnp.sum(lax.cond(i > 0, jnp.sin, jnp.cos, x)))(x), np.int32(index), X
    )
    check(jax.vmap(lambda i, x: lax.switch(i, branches[::2], x)), np.array([0, 1, 2, 0], np.int32), X)


def test_branch_of_a_constant_is_inlined():
    assert ops(plan_of(lambda x: lax.switch(1, [jnp.sin, jnp.cos], x), X).main) == ["elementwise"]


def test_nested_loops_and_branches_equal_cpu():
    def inner(i, x):
        return lax.cond(
            i % 2 == 0, lambda x: lax.fori_loop(0, 3, lambda j, y: y * 0.5 + j, x), lambda x: x + 1.0, x
        )

    check(lambda x: lax.fori_loop(0, 4, inner, x), X)
    check(lambda x: jax.checkpoint(lambda x: lax.fori_loop(0, 4, inner, jnp.tanh(x)))(x), X)


def test_what_a_loop_does_not_change_stays_outside():
    w = numbers(np.float32, (3, 3))
    plan = plan_of(lambda x, w: lax.fori_loop(0, 5, lambda i, x: x + x @ jnp.tanh(w @ w), x), X, w)
    repeat = plan.main.instructions[-1]
    assert [i.op for i in plan.main.instructions] == ["dot", "elementwise", "repeat"]
    assert [i.op for i in repeat.blocks[0].instructions] == ["dot", "elementwise"]
    assert len(repeat.inputs) == 1  # neither the counter nor the weights are carried


def test_what_nothing_needs_is_not_carried():
    def step(carry, x):
        return (carry[0] + x, carry[1] * x, carry[2]), carry[0]

    plan = plan_of(lambda x: lax.scan(step, (x[0], x[0], x[0]), x)[0][0], X)
    assert len(plan.main.instructions[-1].inputs) == 2  # the sum and the counter


def test_a_constant_that_is_carried_is_a_constant_inside():
    def loop(x):
        return lax.while_loop(lambda c: c[0] < c[2], lambda c: (c[0] + 1, c[1] * 0.5, c[2]), (0, x, 5))[1]

    check(loop, X)
    assert ops(plan_of(loop, X).main) == ["repeat", "elementwise"]
