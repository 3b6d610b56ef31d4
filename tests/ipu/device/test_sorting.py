"""Sorts, the largest of each row and random numbers on the modelled IPU against the CPU."""

import hypothesis
import jax
import jax.numpy as jnp
import pytest
from hypothesis import strategies as st
from jax import lax

from tests.ipu.device.on_device import ANY, NUMBERS, check, examples, numbers, seeds, shapes


@examples(12)
@hypothesis.given(
    dtype=st.sampled_from(ANY), shape=shapes(max_rank=3, max_side=12), seed=seeds, data=st.data()
)
def test_sorts_with_infinities_both_zeros_and_nan(ipus, dtype, shape, seed, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = numbers(shape, dtype, seed, edges=True)

    def sorts(x):
        return [f(x, axis, descending=down) for f in (jnp.sort, jnp.argsort) for down in (False, True)]

    check(ipus[0], sorts, x)


@examples(6)
@hypothesis.given(shape=shapes(max_rank=2, max_side=30), seed=seeds, num_keys=st.integers(1, 3))
def test_sorts_by_several_keys_keep_the_order_of_equals(ipus, shape, seed, num_keys):
    dtypes = ("int32", "float32", "bool", "uint8", "float16")
    arrays = [numbers(shape, dtype, seed + i) for i, dtype in enumerate(dtypes)]
    check(ipus[0], lambda *arrays: lax.sort(arrays, dimension=-1, num_keys=num_keys), *arrays)


@pytest.mark.parametrize("length", [96, 97, 600])
def test_a_long_row_is_sorted_by_all_workers_of_its_tile(ipus, length):
    x = numbers((length,), "float32", 1) * 100
    check(ipus[0], lambda x: (jnp.sort(x), jnp.argsort(x), jnp.median(x)), x)


@examples(10)
@hypothesis.given(
    dtype=st.sampled_from(NUMBERS), shape=shapes(max_rank=3, max_side=12), seed=seeds, data=st.data()
)
def test_the_largest_of_each_row(ipus, dtype, shape, seed, data):
    k = data.draw(st.integers(1, shape[-1]))
    check(ipus[0], lambda x: lax.top_k(x, k), numbers(shape, dtype, seed, edges=True))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 50), (601,)])
def test_random_bits_are_those_of_the_cpu(ipus, shape):
    def draw(key):
        one, two = jax.random.split(key)
        return (
            jax.random.bits(one, shape),
            jax.random.uniform(two, shape),
            jax.random.bernoulli(one, 0.3, shape),
        )

    check(ipus[0], draw, jax.random.PRNGKey(7), rtol=0, atol=0)
