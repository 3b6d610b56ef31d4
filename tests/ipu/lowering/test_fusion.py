"""Elementwise chains become one instruction each, and still compute the same."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snnjax.ipu.lowering.passes.fusion import MAX_ARRAYS, MAX_SLOTS
from tests.ipu.lowering.arrays import edges, numbers
from tests.ipu.lowering.checks import check, plan_of

X, Y = numbers(np.float32, (4, 3)), numbers(np.float32, (4, 3), 1)


def instructions(function, *arguments):
    return plan_of(function, *arguments).main.instructions


def names(function, *arguments):
    return [instruction.op for instruction in instructions(function, *arguments)]


def test_chain_is_one_instruction():
    assert names(lambda x, y: jnp.where(x > 0, jnp.tanh(x) * y, 0.5) + 1.0, X, Y) == ["elementwise"]


def test_optimiser_of_an_array_is_one_instruction():
    def adam(p, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return p - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v

    (chain,) = instructions(adam, X, Y, abs(X), Y)
    assert len(chain.outputs) == 3
    check(adam, X, Y, abs(X), Y)


def test_chains_around_a_product_are_two():
    assert names(lambda x, y: jnp.tanh((jnp.tanh(x) + 1.0) @ y.T) * 2.0, X, Y) == [
        "elementwise",
        "dot",
        "elementwise",
    ]


def test_instruction_that_waits_for_a_product_is_not_put_before_it():
    def function(x, y):
        first = jnp.tanh(x)
        return first * (first @ y.T @ y)  # first is read before the product and after it

    check(function, X, Y, rtol=1e-5)
    assert names(function, X, Y) == ["elementwise", "dot", "dot", "elementwise"]


def test_what_a_chain_alone_reads_is_not_written():
    (chain,) = instructions(lambda x: (x + 1.0) * (x + 1.0), X)
    assert sum(text.startswith("store") for text in chain.texts) == 1
    assert sum(text.startswith("load") for text in chain.texts) == 1


def test_scalars_stay_one_element():
    chain = instructions(lambda x, s: x * s + jnp.exp(s), X, np.float32(2))
    assert [len(instruction.inputs) for instruction in chain] == [1, 3]


def test_chains_that_read_one_array_are_one_instruction():
    (chain,) = instructions(lambda x: (jnp.tanh(x), jnp.exp(x)), X)
    assert len(chain.inputs) == 1


def test_long_chain_fits_into_the_slots():
    def function(x):
        powers = [x * float(k) for k in range(60)]
        return sum(jnp.tanh(power) for power in powers[::-1])

    for instruction in instructions(function, X):
        assert max(numbers_[0] for numbers_ in instruction.ints) < MAX_SLOTS
    check(function, X, rtol=1e-4, atol=1e-4)


def test_many_arrays_are_read_by_several_instructions():
    def function(*arrays):
        return sum(arrays)

    arrays = [numbers(np.float32, (3,), seed) for seed in range(40)]
    for instruction in instructions(function, *arrays):
        assert len(instruction.inputs) + len(instruction.outputs) <= MAX_ARRAYS
    check(function, *arrays)


OPERATIONS = (jnp.add, jnp.multiply, jnp.maximum, jnp.subtract)


@given(st.lists(st.tuples(st.integers(0, 5), *[st.integers(0, 40)] * 2), min_size=1, max_size=40), st.data())
def test_any_graph_computes_the_same(steps, data):
    kept = data.draw(st.sets(st.integers(0, len(steps) - 1), min_size=1, max_size=5))

    def graph(x, y):
        values = [x, y]
        for operation, a, b in steps:
            a, b = values[a % len(values)], values[b % len(values)]
            if operation == 4:
                values.append(jnp.clip(a @ b, -2.0, 2.0))
            elif operation == 5:
                values.append(jnp.broadcast_to(jnp.max(a) * 0.1, a.shape))
            else:
                values.append(jnp.clip(OPERATIONS[operation](a, b), -4.0, 4.0))
        return [values[2 + k] for k in sorted(kept)]

    x = numbers(np.float32, (3, 3))
    check(graph, x, x.T.copy(), rtol=1e-4, atol=1e-4)


def test_gradients_keep_the_order_of_prints():
    def function(x):
        jax.debug.print("a {}", x[0])
        y = jnp.tanh(x)
        jax.debug.print("b {}", y[0])
        return y * 2.0

    ops = names(function, X[0])
    assert ops.count("callback") == 2


def test_cheaper_operations_compute_the_same():
    x = edges(np.float32)
    check(lambda x: (x / 4.0, x / -0.125, x / 2.0**60, x * x), x, rtol=0.0, atol=0.0)
    texts = [text for i in instructions(lambda x: x / 4.0 + x * x, x) for text in i.texts]
    assert "divide.f32" not in texts
    assert "square.f32" in texts
