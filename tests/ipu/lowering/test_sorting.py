"""Sorts: by one key and several, up and down, with payloads; and the largest of a row."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ipu.lowering.arrays import edges, numbers, pairs
from tests.ipu.lowering.checks import check, plan_of


def test_sorts_of_complex_numbers_equal_cpu():
    """By the real part, then by the imaginary one; also of edges, and with other arrays and keys."""
    x, y = (each[np.random.default_rng(0).permutation(each.size)] for each in pairs(np.float32))
    shape = (13, 13)

    def parts(z):
        return jnp.real(z), jnp.imag(z)

    def sorts(x, y):
        z = lax.complex(x, y)
        by_two = lax.sort((jnp.round(x[:9]), z[:9], y[:9]), num_keys=2)
        rows = jnp.sort(z.reshape(shape), 0, descending=True)
        return parts(jnp.sort(z)), jnp.argsort(z), parts(rows), parts(by_two[1]), by_two[2]

    check(sorts, x, y, rtol=0, atol=0)


def test_keys_come_before_what_they_sort():
    def sorted_(x, y):
        return lax.sort((x, y), num_keys=2)

    plan = plan_of(sorted_, numbers(np.int32, (5,)), numbers(np.float32, (5,)))
    (sort,) = (instruction for instruction in plan.main.instructions if instruction.op == "sort")
    assert sort.texts == ("ascending", "ascending")
    assert sort.ints == ((0, 1),)


def test_the_largest_are_one_instruction():
    plan = plan_of(lambda x: lax.top_k(x, 2), edges(np.float32))
    assert [instruction.op for instruction in plan.main.instructions] == ["top_k"]


def test_functions_that_sort_equal_cpu():
    x = numbers(np.float32, (3, 10))
    check(lambda x: (jnp.median(x, 1), jnp.quantile(x, 0.3), jnp.lexsort((x[0], x[1]))), x)
    check(lambda x: (jnp.searchsorted(jnp.sort(x[0]), x[1]), jnp.unique(x, size=9)), x)
