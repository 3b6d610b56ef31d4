"""Loops on the modelled IPU against the CPU: whatever a body does with the values it carries, the loop ends."""

import itertools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st
from jax import lax

from snnjax.ipu import read_profile
from tests.ipu.device.on_device import check, examples


def test_loop_that_cuts_and_joins_what_it_carries(ipus):
    """Each of the three places waits for another one, and two for the same."""

    def loop(a, b, both):
        def turn(_, s):
            return s[2][:2], s[2][2:], jnp.concatenate([s[0], s[1]])

        return lax.fori_loop(0, 3, turn, (a, b, both))

    check(ipus[0], loop, jnp.zeros(2), jnp.ones(2), jnp.arange(4.0))


def kept_beside(y):
    return lax.fori_loop(0, 5, lambda _, s: (s[0] / 2 + s[1], s[1]), (y, y))


def product_of_what_it_starts_from(y):
    m = jnp.outer(y, y) / 8
    return lax.fori_loop(0, 3, lambda _, s: s @ m, m)


def scan_over_what_it_starts_from(y):
    return lax.scan(lambda s, row: (s / 2 + y, s * row), y, y)


def while_less_than_what_it_starts_from(y):
    n = jnp.floor(y[0]).astype(jnp.int32) - 4
    return lax.while_loop(lambda s: s < 3 - 2 * n, lambda s: s - n, n), y


def nested(y):
    def turn(_, s):
        s = s / 2
        return lax.fori_loop(0, 2, lambda _, t: t / 2 + s, s)

    return lax.fori_loop(0, 3, turn, y)


def in_a_branch_of_the_body(y):
    def turn(i, s):
        return lax.cond(i % 2 == 0, lambda: s / 2 + y, lambda: y)

    return lax.fori_loop(0, 3, turn, y)


def loop_in_a_branch(y):
    return lax.cond(y[0] > 0, lambda: lax.fori_loop(0, 3, lambda _, s: s / 2 + y, y), lambda: y)


STARTS = {
    "fori": lambda y: lax.fori_loop(0, 5, lambda _, s: s / 2 + y, y),
    "while": lambda y: lax.while_loop(lambda s: s[0] < 9 * y[0], lambda s: s / 2 + y * 6, y),
    "view": lambda y: lax.fori_loop(0, 5, lambda _, s: s / 2 + y[::-1], y),
    "two": lambda y: lax.fori_loop(0, 5, lambda _, s: (s[0] / 2 + y, s[0] - s[1]), (y, y)),
} | {
    each.__name__: each
    for each in (
        kept_beside,
        product_of_what_it_starts_from,
        scan_over_what_it_starts_from,
        while_less_than_what_it_starts_from,
        nested,
        in_a_branch_of_the_body,
        loop_in_a_branch,
    )
}


@pytest.mark.parametrize("name", STARTS)
def test_body_reads_the_computed_value_that_its_loop_starts_from(ipus, name):
    check(ipus[0], lambda x: STARTS[name](2 * x), jnp.arange(1.0, 5.0), rtol=0, atol=0)


def test_loop_in_place_of_the_computed_value_that_it_starts_from(ipus):
    """Nothing else reads it: a body that changes one row copies no more than if it started from an argument."""

    def rows(x):
        return lax.fori_loop(0, 50, lambda i, s: lax.dynamic_update_index_in_dim(s, s[0] + 1, i, 0), x)

    x = jax.device_put(jnp.ones((50, 40)), ipus[0])
    compiled = [jax.jit(each).lower(x).compile() for each in (lambda x: rows(2 * x), rows)]
    for each in compiled:
        each(x)
    computed, given = (read_profile(each).phases.exchange for each in compiled)
    assert computed <= given


def test_search_along_a_line_takes_the_steps_of_the_cpu(ipus):
    def step(x):
        solver = optax.lbfgs(linesearch=optax.scale_by_backtracking_linesearch(10))
        loss = lambda x: jnp.sum((x - 1) ** 2 * jnp.array([1.0, 8.0]))  # noqa: E731
        value, gradient = jax.value_and_grad(loss)(x)
        update, _ = solver.update(gradient, solver.init(x), x, value=value, grad=gradient, value_fn=loss)
        return update

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        check(ipus[0], step, jnp.array([3.0, -2.0]))


@st.composite
def pieces(draw, lengths):
    """For each carried value what its next one is joined from: (value, start, limit, whether in reverse)."""
    joined = []
    for length in lengths:
        parts = []
        while (left := length - sum(stop - start for _, start, stop, _ in parts)) > 0:
            value = draw(st.integers(0, len(lengths) - 1))
            size = draw(st.integers(1, min(left, lengths[value])))
            start = draw(st.integers(0, lengths[value] - size))
            parts.append((value, start, start + size, draw(st.booleans())))
        joined.append(parts)
    return joined


@examples(15)
@hypothesis.given(
    body=st.lists(st.integers(1, 5), min_size=2, max_size=4).flatmap(
        lambda lengths: st.tuples(st.just(lengths), pieces(lengths))
    ),
    counted=st.booleans(),
)
def test_loops_that_permute_cut_and_join(ipus, body, counted):
    lengths, joined = body

    def turn(carried):
        return [
            jnp.concatenate([carried[v][start:stop][:: -1 if back else 1] for v, start, stop, back in parts])
            for parts in joined
        ]

    def loop(turns, *carried):
        if counted:
            return lax.fori_loop(0, 3, lambda _, s: turn(s), list(carried))
        return lax.while_loop(lambda s: s[0] < turns, lambda s: (s[0] + 1, turn(s[1])), (0, list(carried)))

    starts = np.cumsum([0, *lengths])
    values = [jnp.arange(a, b, dtype=jnp.int32) for a, b in itertools.pairwise(starts)]
    check(ipus[0], loop, jnp.int32(3), *values)


def test_loops_and_branches_with_values_of_no_elements(ipus):
    none = jnp.zeros((0, 3))

    def loop(x, none):
        def turn(_, s):
            return s[0] + 1, jnp.concatenate([s[1], s[1] * 2]), s[2]

        looped = lax.fori_loop(0, 3, turn, (x, none, none.T))
        return looped, lax.cond(x[0] > 0, lambda: (x, none * 2), lambda: (2 * x, none))

    check(ipus[0], loop, jnp.arange(4.0), none)


def test_loop_that_carries_nothing_with_elements_still_has_its_effects(ipus):
    seen = []

    def loop(none):
        def turn(i, none):
            jax.debug.callback(lambda i: seen.append(int(i)), i)
            return none * 2

        return lax.fori_loop(0, 3, turn, none)

    assert jax.jit(loop)(jax.device_put(jnp.zeros((0,)), ipus[0])).shape == (0,)
    jax.effects_barrier()
    assert seen == [0, 1, 2]
