"""Gathers, scatters, slices and padding on the modelled IPU against the CPU, in all their generality."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax import lax

from tests.ipu.device.on_device import ANY, check, examples, numbers, seeds, shapes, tolerance

HOSTILE = (-(2**31), -1, 2**31 - 1)


@st.composite
def indexings(draw):
    """An operand's shape, indices, and the dimension numbers of a gather; a third of the starts lie outside."""
    shape = draw(shapes(max_side=6))
    dims = draw(st.permutations(range(len(shape))))
    num_batching = draw(st.integers(0, min(1, len(dims) - 1)))
    num_indexed = draw(st.integers(1, len(dims) - num_batching))
    batching, indexed = (
        tuple(sorted(dims[:num_batching])),
        tuple(dims[num_batching : num_batching + num_indexed]),
    )
    sizes = [1 if d in batching else draw(st.integers(1, size)) for d, size in enumerate(shape)]
    collapsed = tuple(
        d for d in range(len(shape)) if d not in batching and sizes[d] == 1 and draw(st.booleans())
    )
    batch = [shape[d] for d in batching] + draw(st.lists(st.integers(1, 4), max_size=2))
    generator = np.random.default_rng(draw(seeds))
    starts = generator.integers(-2, max(shape) + 2, (*batch, num_indexed)).astype(np.int32)
    outside = generator.random(starts.shape) < 0.1
    starts = np.where(outside, generator.choice(HOSTILE, starts.shape), starts).astype(np.int32)
    windows = [size for d, size in enumerate(sizes) if d not in batching and d not in collapsed]
    offset_dims = tuple(range(len(batch), len(batch) + len(windows)))
    dnums = lax.GatherDimensionNumbers(offset_dims, collapsed, indexed, batching, tuple(range(len(batching))))
    return shape, starts, dnums, tuple(sizes), (*batch, *windows)


@examples(30)
@hypothesis.given(dtype=st.sampled_from(ANY), indexing=indexings(), seed=seeds)
def test_gathers(ipus, dtype, indexing, seed):
    shape, starts, dnums, sizes, _ = indexing

    def gather(x, starts):
        return lax.gather(x, starts, dnums, sizes, mode="promise_in_bounds")

    check(ipus[0], gather, numbers(shape, dtype, seed, edges=True), jnp.asarray(starts))


SCATTERS = {
    "set": lax.scatter,
    "add": lax.scatter_add,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


@pytest.mark.parametrize("kind", SCATTERS)
@examples(10)
@hypothesis.given(dtype=st.sampled_from(ANY), indexing=indexings(), seed=seeds)
def test_scatters_drop_what_lies_outside(ipus, kind, dtype, indexing, seed):
    shape, starts, of_gather, _, updates = indexing
    hypothesis.assume(kind == "set" or dtype != "bool")
    dnums = lax.ScatterDimensionNumbers(
        of_gather.offset_dims,
        of_gather.collapsed_slice_dims,
        of_gather.start_index_map,
        of_gather.operand_batching_dims,
        of_gather.start_indices_batching_dims,
    )

    def scatter(x, starts, updates):
        return SCATTERS[kind](x, starts, updates, dnums, mode="promise_in_bounds")

    operands = numbers(shape, dtype, seed), jnp.asarray(starts), numbers(updates, dtype, seed + 1)
    check(ipus[0], scatter, *operands, **tolerance(dtype))


@pytest.mark.parametrize("rows", [7, 300])
@pytest.mark.parametrize("width", [1, 40])
def test_tables_over_many_tiles(ipus, rows, width):
    table, ids = numbers((rows, width), "float32", 1), numbers((200,), "int32", 2) * 31 % (rows + 3)
    updates = numbers((200, width), "float32", 3)

    def both(table, ids, updates):
        return table[ids], table.at[ids].add(updates), table.at[ids].set(updates)

    check(ipus[0], both, table, ids, updates)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint32"])
def test_many_updates_of_few_rows_are_joined(ipus, dtype):
    table, ids = numbers((6, 3), dtype, 1), numbers((700,), "int32", 2) * 31 % 8 - 1
    updates = numbers((700, 3), dtype, 3) % 2

    def all_kinds(table, ids, updates):
        at = table.at[ids]
        return at.add(updates), at.multiply(updates), at.min(updates), at.max(updates), at.set(updates)

    check(ipus[0], all_kinds, table, ids, updates, **tolerance(dtype))
    if dtype == "int32":
        check(ipus[0], lambda t, i, u: t.at[i].max(u), table != 0, ids, updates != 0)


@pytest.mark.parametrize("kind", ["set", "add", "max"])
def test_scatter_of_a_computed_table_into_itself(ipus, kind):
    """The updates are those before the scatter, wherever the table is written."""

    def scatter(x, i):
        table, order = 2 * x, 11 - i
        return getattr(table.at[i], kind)(table), getattr(order.at[order], kind)(order)

    check(ipus[0], scatter, numbers((12, 3), "float32", 1), jnp.arange(12, dtype=jnp.int32)[::-1])


def test_gradient_of_a_gather_adds_what_repeats(ipus):
    def loss(table, ids):
        return jnp.sum(jnp.sin(table[ids]) * jnp.arange(12.0)[:, None])

    check(ipus[0], jax.grad(loss), numbers((9, 5), "float32", 1), jnp.arange(12, dtype=jnp.int32) % 4)


def test_unsigned_starts_beyond_the_end_are_moved_to_it(ipus):
    x, far = numbers((9, 3), "float32", 1), jnp.uint32(2**32 - 1)
    check(ipus[0], lambda x, far: lax.dynamic_slice(x, (far, far), (2, 2)), x, far)


@pytest.mark.parametrize("shape", [(6, 4, 33), (6, 300), (6,), (1, 6, 1, 17), (6, 5, 1)])
def test_loops_cut_from_and_write_to_histories(ipus, shape):
    def through_time(xs):
        step = lambda carry, x: (carry * 0.5 + x, carry + x[::-1] if x.ndim else carry)  # noqa: E731
        return lax.scan(step, jnp.zeros(xs.shape[1:]), xs)

    x = numbers(shape, "float32", 2)
    check(ipus[0], lambda x: (through_time(x), jax.grad(lambda x: jnp.sum(through_time(x)[1] ** 2))(x)), x)


@pytest.mark.parametrize("shape", [(5, 7, 40), (5, 7)])
def test_what_is_cut_along_time_is_reduced_over_any_dimension(ipus, shape):
    def f(x):
        total, _ = lax.scan(lambda carry, row: (carry + row, None), jnp.zeros(shape[1:]), x)
        axes = [0, 1, (0, 1), tuple(range(1, len(shape))), tuple(range(len(shape)))]
        return total, [jnp.sum(jnp.sin(x), axis) for axis in axes], jnp.any(x > 1.5, 0), jnp.any(x > 1.5, 1)

    check(ipus[0], f, numbers(shape, "float32", 4))


def test_windows_at_the_beginning_need_no_index(ipus):
    x, y = jnp.arange(12.0).reshape(3, 4), jnp.full((3, 4), 7.0)
    numbers = lax.GatherDimensionNumbers((1, 2), (), ())

    def each(x, y):
        windows = lax.gather(x, jnp.zeros((2, 0), jnp.int32), numbers, (2, 3))
        return x.at[:].set(y), x.at[...].add(y), x[0, 0].at[()].set(y[0, 0]), windows

    check(ipus[0], each, x, y)
