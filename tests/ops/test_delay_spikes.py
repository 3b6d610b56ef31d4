"""`delay_spikes`: where spikes arrive, pieces equal the whole, and the kernel against the reference bit for bit."""

import functools
from typing import Any, NamedTuple

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import SparseSpikes, _targets, delay_spikes
from snnjax._types import Signal
from tests.numbers import array, assert_same_bits, dyadic
from tests.ops import references
from tests.ops.common import jit, weighted_sum
from tests.ops.kernel_checks import needs_kernels

IMPLEMENTATIONS = ("reference", "cpu") if _targets.missing() is None else ("reference",)
each_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)


@functools.cache
def compiled_op(implementation: str, max_delay: int):
    return jax.jit(functools.partial(delay_spikes, max_delay=max_delay, implementation=implementation))


def one_spike(steps: int, at: int = 0, value: float = 1.0) -> jax.Array:
    return jnp.zeros((steps, 1, 1)).at[at].set(value)


@each_implementation
def test_bounds_are_exact_in_bfloat16(implementation: str) -> None:
    """In which 1003, the longest delay, would be 1004: a spike in transit for 1003 steps arrives now."""
    pending = jnp.zeros((1004, 1, 1)).at[1].set(1.0)
    arrived, _ = delay_spikes(
        jnp.zeros((3, 1, 1)),
        jnp.full(1, 1004, jnp.bfloat16),
        pending,
        max_delay=1003,
        implementation=implementation,
    )
    assert arrived.ravel().tolist() == [1.0, 0.0, 0.0]


@each_implementation
@pytest.mark.parametrize(
    "delay, expected",
    [
        (0.0, [1, 0, 0, 0, 0]),
        (1.0, [0, 1, 0, 0, 0]),
        (1.25, [0, 0.75, 0.25, 0, 0]),
        (2.5, [0, 0, 0.5, 0.5, 0]),
        (3.0, [0, 0, 0, 1, 0]),
        (7.0, [0, 0, 0, 1, 0]),
        (-1.0, [1, 0, 0, 0, 0]),
        (np.nan, [1, 0, 0, 0, 0]),
        (np.inf, [0, 0, 0, 1, 0]),
    ],
)
def test_spike_arrives_at_two_steps(implementation: str, delay: float, expected: list[float]) -> None:
    """One at step 0; delays are clipped to 0 and 3."""
    out, _ = compiled_op(implementation, 3)(one_spike(5), jnp.float32(delay))
    assert out.ravel().tolist() == expected


@each_implementation
def test_spikes_of_two_steps_meet(implementation: str) -> None:
    """2 and 4 on their way for 1.25 steps: 1.5, then 0.5 + 3, then 1; and what comes later is pending."""
    spikes = jnp.array([2.0, 4.0, 0.0, 8.0]).reshape(4, 1, 1)
    run = compiled_op(implementation, 2)
    out, pending = run(spikes, 1.25)
    assert out.ravel().tolist() == [0, 1.5, 3.5, 1]
    assert pending.ravel().tolist() == [4, 0, 8]
    more, pending = run(jnp.zeros((3, 1, 1)), 1.25, pending)
    assert more.ravel().tolist() == [6, 2, 0]
    assert pending.ravel().tolist() == [0, 0, 0]


@each_implementation
def test_whole_delays_move_bits(implementation: str) -> None:
    """Odd numbers, infinities and NaN arrive as they are and once, also at the longest delay."""
    rng = np.random.default_rng(0)
    spikes = rng.normal(size=(9, 3, 5)).astype(np.float32)
    spikes[0, 0, :3] = np.inf, -np.inf, np.nan
    delays = jnp.round(jnp.array([0.3, 1.0, 1.8, 3.7, 4.0]))
    out, _ = compiled_op(implementation, 4)(jnp.asarray(spikes), delays)
    expected = np.zeros_like(spikes)
    for neuron, delay in enumerate([0, 1, 2, 4, 4]):
        expected[delay:, :, neuron] = spikes[: 9 - delay, :, neuron]
    assert_same_bits(out, jnp.asarray(expected))


@each_implementation
def test_spikes_that_are_not_finite_reach_their_own_neuron_alone(implementation: str) -> None:
    spikes = jnp.zeros((4, 2, 3)).at[0, 0, 1].set(jnp.nan).at[1, 1, 2].set(jnp.inf)

    def loss(spikes: Signal, delays):
        out, _ = compiled_op(implementation, 2)(spikes, delays)
        return weighted_sum(out), out

    pull_back = jit(jax.grad(loss, (0, 1), has_aux=True))
    (d_spikes, d_delays), out = pull_back(spikes, jnp.array([0.5, 0.5, 1.0]))
    assert np.argwhere(np.isnan(out)).tolist() == [[0, 0, 1], [1, 0, 1]]
    assert np.argwhere(np.isinf(out)).tolist() == [[2, 1, 2]]
    chex.assert_tree_all_finite(d_spikes)
    assert d_delays[0] == 0


@each_implementation
def test_derivative_of_a_delay_is_that_of_the_split(implementation: str) -> None:
    """A spike of 2 at step 0 moves from g[k] to g[k + 1] of g = 1, 2, 4, 8; no derivative beyond the bounds 0 and 2."""
    delays = jnp.array([0.0, 1.0, 1.25, 2.0, -0.5, 2.5, jnp.nan])
    spikes = jnp.zeros((5, 1, 7)).at[0].set(2.0)
    g = jnp.broadcast_to(jnp.exp2(jnp.arange(5.0))[:, None, None], spikes.shape)
    run = compiled_op(implementation, 2)
    gradient = jax.grad(lambda delays: jnp.sum(run(spikes, delays)[0] * g))
    assert gradient(delays).tolist() == [2, 4, 4, 8, 0, 0, 0]


def test_lists_arrive_as_arrays() -> None:
    spikes = SparseSpikes.from_ids(jnp.array([[[0, 2]], [[2, 3]], [[3, 3]]]), 3)
    delays = jnp.array([1.0, 0.0, 0.5])
    run = jit(functools.partial(delay_spikes, max_delay=1))
    assert_same_bits(run(spikes, delays), run(spikes.to_dense(), delays))
    first = lambda spikes: jnp.sum(delay_spikes(spikes, delays, max_delay=1)[0][1])  # noqa: E731
    values = jit(jax.grad(first, allow_int=True))(spikes.with_values()).values
    assert values.tolist() == [[[1, 0.5]], [[0.5, 0]], [[0, 0]]]


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint8], ids=lambda dtype: jnp.dtype(dtype).name)
def test_whole_numbers_take_the_dtype_of_the_delays(dtype: DTypeLike) -> None:
    out, pending = delay_spikes(one_spike(3).astype(dtype), jnp.bfloat16(0.5), max_delay=1)
    assert (out.dtype, pending.dtype) == (jnp.bfloat16, jnp.bfloat16)
    assert out.ravel().tolist() == [0.5, 0.5, 0]


@each_implementation
@pytest.mark.parametrize("shape", [(0, 2, 3), (4, 0, 3), (4, 2, 0)])
def test_nothing_in_nothing_out(implementation: str, shape: tuple[int, ...]) -> None:
    """Without a step, pending spikes stay pending."""
    pending = jnp.ones((3, *shape[1:]))
    for given in (pending, None):
        out, left = compiled_op(implementation, 2)(jnp.ones(shape), 1.5, given)
        assert (out.shape, left.shape) == (shape, pending.shape)
        if shape[0] == 0:
            assert_same_bits(left, pending if given is not None else jnp.zeros_like(pending))


class Form(NamedTuple):
    """The sizes of a call."""

    steps: int
    batch: int
    neurons: int
    max_delay: int
    pending: bool = True
    lengths: bool = True
    dtype: str = "float32"


# Fewer and more columns than a block, samples across blocks, delays longer than the sequence.
FORMS = (
    Form(7, 2, 5, 3),
    Form(12, 3, 100, 6, pending=False, dtype="bfloat16"),
    Form(3, 70, 9, 10, lengths=False),
    Form(5, 1, 600, 0),
    Form(4, 2, 200, 15, pending=False, lengths=False),
)
each_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form)))


def draw(form: Form, rng: np.random.Generator, density: float) -> tuple[Any, ...]:
    """Spikes, delays, pending and lengths, all multiples of 1/16; lengths may lie outside of the sequence."""
    rows = dyadic(rng, -8, 8, form.max_delay + 1 + form.steps, form.batch, form.neurons)
    rows = np.where(rng.random(rows.shape) < density, rows, 0)
    delays = dyadic(rng, -8, 16 * form.max_delay + 8, form.neurons)
    lengths = array(rng.integers(-1, form.steps + 2, form.batch), jnp.int32)
    pending, spikes = (array(part, form.dtype) for part in np.split(rows, [form.max_delay + 1]))
    return spikes, delays, pending if form.pending else None, lengths if form.lengths else None


@functools.cache
def compiled(form: Form, implementation: str):
    """Both results, and the gradients of a sum of them with dyadic weights."""

    def of(spikes: Signal, delays, pending, lengths):
        def run(*given):
            options = {"max_delay": form.max_delay, "lengths": lengths, "implementation": implementation}
            return delay_spikes(*given, **options)

        results, pull_back = jax.vjp(run, spikes, delays, pending)
        g = [(jnp.arange(r.size).reshape(r.shape) % 7 - 3).astype(r.dtype) for r in results]
        return results, pull_back(tuple(g))

    return jit(of)


@needs_kernels
@each_form
@hypothesis.given(seed=st.integers(0, 2**32 - 1), density=st.sampled_from([0.0, 0.05, 1.0]))
@hypothesis.settings(max_examples=5)
def test_kernel_equals_the_reference(form: Form, seed: int, density: float) -> None:
    given = draw(form, np.random.default_rng(seed), density)
    ours, theirs = (compiled(form, implementation)(*given) for implementation in ("cpu", "reference"))
    chex.assert_trees_all_equal(ours, theirs, strict=True)
    chex.assert_trees_all_equal_dtypes(ours, theirs)  # `strict` takes bfloat16 for float32


@each_implementation
@each_form
def test_results_equal_loops(implementation: str, form: Form) -> None:
    """Sizes specific to the kernel, which are not in the table."""
    spikes, delays, pending, lengths = draw(form, np.random.default_rng(1), 0.3)
    results, _ = compiled(form, implementation)(spikes, delays, pending, lengths)
    if pending is None:
        pending = np.zeros((form.max_delay + 1, *spikes.shape[1:]), spikes.dtype)
    lengths = np.full(form.batch, form.steps) if lengths is None else np.clip(lengths, 0, form.steps)
    bounded = np.clip(np.asarray(delays), 0, form.max_delay)
    expected = references.delay_spikes(np.asarray(spikes), bounded, np.asarray(pending), lengths)
    chex.assert_trees_all_equal(results, expected, strict=True)


@each_implementation
@pytest.mark.parametrize("max_delay", [0, 5])
def test_pieces_equal_the_whole(implementation: str, max_delay: int) -> None:
    """Results bit for bit, and gradients, for sequences that end in each of the pieces, one before it begins."""
    rng = np.random.default_rng(0)
    spikes, delays = dyadic(rng, -8, 8, 9, 6, 4), dyadic(rng, 0, 16 * max_delay, 4)
    lengths = jnp.array([9, 7, 4, 3, 1, 0])
    g = dyadic(rng, -8, 8, 9, 6, 4)
    run = functools.partial(delay_spikes, max_delay=max_delay, implementation=implementation)

    def whole(spikes: Signal, delays):
        out, pending = run(spikes, delays, lengths=lengths)
        return jnp.sum(out * g) + weighted_sum(pending), (out, pending)

    def pieces(spikes: Signal, delays):
        outs, pending = [], None
        for first, behind in ((0, 2), (2, 3), (3, 9)):
            own = lengths - first  # not clipped: a sequence that ended long ago has a length below 0
            out, pending = run(spikes[first:behind], delays, pending, lengths=own)
            outs.append(out)
        return jnp.sum(jnp.concatenate(outs) * g) + weighted_sum(pending), (jnp.concatenate(outs), pending)

    ours, theirs = (jit(jax.value_and_grad(f, (0, 1), has_aux=True))(spikes, delays) for f in (pieces, whole))
    assert_same_bits(ours[0][1], theirs[0][1])
    # weights of `weighted_sum` are not dyadic
    chex.assert_trees_all_close(ours[1], theirs[1], rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize("implementation", (*IMPLEMENTATIONS, "composed"))
def test_behind_the_end_nothing_counts(implementation: str) -> None:
    """Neither spikes after the end, nor cotangents of results there, in any gradient."""
    spikes = jnp.ones((4, 1, 1)).at[2:].set(jnp.nan)

    def loss(spikes: Signal, delay):
        out, left = delay_spikes(
            spikes, delay, max_delay=1, lengths=jnp.array([2]), implementation=implementation
        )
        return jnp.sum(out * jnp.exp2(jnp.arange(4.0))[:, None, None]), (out, left)

    (gradient, slope), (out, left) = jit(jax.grad(loss, (0, 1), has_aux=True))(spikes, jnp.float32(1.0))
    assert out.ravel().tolist() == [0, 1, 0, 0]
    assert left.ravel().tolist() == [1, 1]
    assert gradient.ravel().tolist() == [2, 0, 0, 0]
    assert slope == -2


def test_steps_of_a_scan_equal_the_whole() -> None:
    rng = np.random.default_rng(0)
    spikes, delays = dyadic(rng, -8, 8, 8, 2, 5), dyadic(rng, 0, 48, 5)

    def step(pending, row):
        out, pending = delay_spikes(row[None], delays, pending, max_delay=3)
        return pending, out[0]

    pending, out = jax.lax.scan(step, jnp.zeros((4, 2, 5)), spikes)
    assert_same_bits((out, pending), delay_spikes(spikes, delays, max_delay=3))


@needs_kernels
def test_float64_spikes_are_refused() -> None:
    with jax.enable_x64(True), pytest.raises(ValueError, match="'reference' for float64 spikes, got 'cpu'"):
        delay_spikes(jnp.ones((1, 1, 1), jnp.float64), 0.5, max_delay=1, implementation="cpu")
