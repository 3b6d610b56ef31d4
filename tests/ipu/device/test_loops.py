"""Loops on the modelled IPU against the CPU: whatever a body does with the values it carries, the loop ends."""

import itertools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

from tests.ipu.device.on_device import check, examples


def test_loop_that_cuts_and_joins_what_it_carries(ipus):
    """Each of the three places waits for another one, and two for the same."""

    def loop(a, b, both):
        def turn(_, s):
            return s[2][:2], s[2][2:], jnp.concatenate([s[0], s[1]])

        return lax.fori_loop(0, 3, turn, (a, b, both))

    check(ipus[0], loop, jnp.zeros(2), jnp.ones(2), jnp.arange(4.0))


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
