"""Branches and loops in functions of elements: each element goes its own way, bit for bit.

XLA's CPU backend aborts the process where such a function has a loop, and often where it has a branch: the oracle is
`jax.vmap` of the function.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from tests.ipu.lowering.checks import equal, on_ipu, plan_of

INTEGERS = np.random.default_rng(0).integers(1, 100, (6, 5)).astype(np.int32)


def greatest_divisor(a, b):
    """Associative and commutative; a loop of as many steps as the elements need."""
    return lax.while_loop(lambda xy: xy[1] != 0, lambda xy: (xy[1], xy[0] % xy[1]), (a, b))[0]


def last_even(a, b):
    """Associative, and does not commute."""
    return lax.cond(b % 2 == 0, lambda a, b: b, lambda a, b: a, a, b)


def saturated(a, b):
    return lax.switch(jnp.minimum((a + b) // 100, 1), [lambda c: c, lambda c: jnp.full_like(c, 100)], a + b)


def product(a, b):
    """By counted steps, one for each bit."""

    def step(bit, total):
        return total + jnp.where((b >> bit) & 1 == 1, a << bit, 0)

    return lax.fori_loop(0, 32, step, jnp.int32(0))


def ops(block):
    return {op for i in block.instructions for op in (i.op, *(o for inner in i.blocks for o in ops(inner)))}


FUNCTIONS = [(0, greatest_divisor), (-1, last_even), (1, product), (0, saturated)]


@given(st.sampled_from(FUNCTIONS), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**16))
def test_reductions_equal_the_function_of_one_row_after_the_other(pair, rows, columns, seed):
    start, function = pair
    x = np.random.default_rng(seed).integers(1, 60, (rows, columns)).astype(np.int32)
    results = on_ipu(lambda x: lax.reduce(x, np.int32(start), function, (0,)), x)
    expected = functools.reduce(jax.jit(jax.vmap(function)), x, jnp.full(columns, start))
    equal(results, [expected])


def test_windows_equal_the_function_of_one_element_after_the_other():
    for start, function in FUNCTIONS:
        results = on_ipu(
            lambda x: lax.reduce_window(x, np.int32(start), function, (3, 1), (2, 1), "VALID"),  # noqa: B023
            INTEGERS,
        )
        rows = (INTEGERS[0:3:2], INTEGERS[1:4:2], INTEGERS[2:5:2])
        expected = functools.reduce(jax.vmap(jax.vmap(function)), rows, jnp.full((2, 5), start))
        equal(results, [expected])


def test_reductions_of_several_arrays():
    """Also of what is close to the place of an extreme, but is none."""
    places = np.arange(30, dtype=np.int32).reshape(6, 5)

    def shorter(x, y):
        return lax.cond(x[0] % 7 <= y[0] % 7, lambda: x, lambda: y)

    results = on_ipu(lambda x: lax.reduce((x, places), (np.int32(13), np.int32(-1)), shorter, (0,)), INTEGERS)
    first, columns = np.argmin(INTEGERS % 7, 0), np.arange(5)
    assert ((INTEGERS % 7)[first, columns] < 6).all()
    equal(results, (INTEGERS[first, columns], places[first, columns]))

    def divided(x, y):
        return greatest_divisor(x[0], y[0]), x[1] + y[1]

    results = on_ipu(lambda x: lax.reduce((x, places), (np.int32(0), np.int32(0)), divided, (1,)), INTEGERS)
    equal(results, (np.gcd.reduce(INTEGERS, axis=1), places.sum(1, dtype=np.int32)))


def applied(x, at, function):
    """What ``x.at[at].apply(function)`` is: one index after the other."""
    x = x.copy()
    for index in at:
        x[index] = jax.vmap(function)(x[index].reshape(-1)).reshape(x[index].shape)
    return x


def test_scatters_apply_the_function_for_each_index():
    def halved(x):
        return lax.while_loop(lambda x: x > 3, lambda x: x * 0.5, x)

    def rooted(x):
        return lax.cond(x > 4, jnp.sqrt, lambda x: -x, x)

    x, at = INTEGERS.astype(np.float32), np.array([1, 3, 1, -1], np.int32)
    functions = (halved, rooted)
    results = on_ipu(lambda x, at: [x.at[at].apply(f) for f in functions], x, at)
    equal(results, [applied(x, at, f) for f in functions])
    results = on_ipu(lambda x: [x.at[1:3].apply(f) for f in functions], x)
    equal(results, [applied(x, (1, 2), f) for f in functions])


def test_complex_numbers_go_their_own_ways():
    def larger(a, b):
        return lax.cond(jnp.abs(a) >= jnp.abs(b), lambda: a, lambda: b)

    def turned(z):
        return lax.while_loop(lambda z: jnp.real(z) < 0, lambda z: z * np.complex64(1j), z)

    def ways(x, y):
        z = lax.complex(x, y)
        return [
            f(each)
            for each in (lax.reduce(z, np.complex64(0), larger, (0,)), z.at[1].apply(turned))
            for f in (jnp.real, jnp.imag)
        ]

    x, y = (INTEGERS - 50).astype(np.float32), INTEGERS[::-1].astype(np.float32)
    z = x + np.complex64(1j) * y
    largest = np.take_along_axis(z, np.argmax(np.abs(z), 0)[None], 0)[0]
    expected = (largest, applied(z, (1,), turned))
    equal(on_ipu(ways, x, y), [f(each) for each in expected for f in (np.real, np.imag)])


def test_loops_of_elements_that_do_not_take_their_branch_do_not_run():
    """They would never end: neither in a branch, nor in a loop that has ended."""

    def grown(x):
        return lax.while_loop(lambda y: y < 1000, lambda y: y * x, x)

    def counted(x):
        return lax.while_loop(lambda y: y > 1, lambda y: grown(y) - 1024, x)

    def in_branch(x):
        return lax.cond(x > 1, grown, lambda x: x, x)

    def in_last_branch(x):
        return lax.switch(x, [lambda x: x, lambda x: -x, grown], x)

    x = np.array([0, 1, 2, 4, 32], np.int32)
    results = on_ipu(lambda x: [x.at[:].apply(f) for f in (in_branch, in_last_branch, counted)], x)
    grown_up = [0, 1, 1024, 1024, 1024]
    equal(results[:2], [np.int32(grown_up), np.int32([0, -1, *grown_up[2:]])])
    np.testing.assert_array_equal(results[2], [0, 1, 0, 0, 0])


def test_counted_loops_of_elements_are_repeated():
    def names(function):
        return ops(plan_of(lambda x: lax.reduce(x, np.int32(0), function, (0,)), INTEGERS).main)

    assert {"repeat", "while"} & names(product) == {"repeat"}
    assert {"repeat", "while"} & names(greatest_divisor) == {"while"}


def test_a_branch_that_is_known_is_the_only_one():
    plan = plan_of(
        lambda x: x.at[:].apply(lambda x: lax.cond(True, jnp.sin, jnp.cos, x)), np.ones(9, np.float32)
    )
    assert "cosine.f32" not in {text for each in plan.main.instructions for text in each.texts}


def test_loops_that_run_never_or_for_some_elements_only():
    x = INTEGERS.astype(np.float32)
    results = on_ipu(
        lambda x: x.at[1:].apply(lambda x: lax.while_loop(lambda x: x > 9, lambda x: x - 9, x)), x
    )
    equal(results, np.concatenate([x[:1], np.where(x[1:] > 9, (x[1:] - 1) % 9 + 1, x[1:])]))
    none = lambda x: lax.fori_loop(0, 0, lambda _, x: x + 1, x)  # noqa: E731
    equal(on_ipu(lambda x: x.at[1].apply(none), x), x)
