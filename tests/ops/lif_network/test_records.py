"""What the forward pass of `lif_network` records: membranes of the listed neurons alone, where they are enough."""

import functools
from typing import Any

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from tests.numbers import assert_close
from tests.ops.common import jit, weighted_sum
from tests.ops.kernel_checks import TOLERANCE, everything, needs_kernels
from tests.ops.lif_network.random_networks import Form, arguments, runner

# Lists are full and overflow; patches begin inside words and rows; some samples end early.
FORMS = (
    Form(5, 17, 40, (200, 65), 3, capacity=(30, 7), record_spikes=False),
    Form(4, 18, 20, (130,), recurrent=True, capacity=20, surrogate="triangle"),
    Form(20, 3, 40, (65, 64), 3, capacity=(32, 1), given="uint16 lists", surrogate="triangle", reset="none"),
    Form(3, 33, 40, (1000,), 3, capacity=200, dtype="bfloat16", detach_reset=True, lengths=False),
    Form(4, 16, 20, (130, 64), capacity=(0, 9), reset="none", detach_reset=False, dtype="bfloat16"),
)


def weights_of(given):
    return [(layer.weights, layer.recurrent) for layer in given[1]]


# Decays depend on all membranes, and so do counts where they have a cotangent: neither is asked for here.
@functools.cache
def listed_only(form: Form, implementation: str):
    return jit(everything(form, implementation, lambda results: [results[0], results[4]], weights_of))


@functools.cache
def all_membranes(form: Form, implementation: str):
    def with_counts(results):
        zeros = jax.tree.map(
            lambda leaf: leaf * 0, results[1]
        )  # a cotangent of 0 that JAX does not know to be 0
        return [results[0], results[4], zeros]

    return jit(everything(form, implementation, with_counts, weights_of))


def widths_of_records(form: Form, of) -> set[int]:
    """The last axes of the float arrays ``[groups, time, batch, ...]`` with rows that the forward pass yields."""
    given = arguments(form, np.random.default_rng(0))
    text = of.lower(*given).as_text()
    kind = {"float32": "f32", "bfloat16": "bf16"}[form.dtype]
    prefix = f"tensor<1x{form.steps}x{form.batch}x"
    parts = (part.split(">")[0] for part in text.split(prefix)[1:])
    return {int(part.split("x")[0]) for part in parts if part.endswith(f"x{kind}")}


@needs_kernels
@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_listed_membranes_give_the_same_gradient(form: Form, seed: int) -> None:
    """To the bit in the kernels, and the reference agrees."""
    given = arguments(form, np.random.default_rng(seed))
    ours, theirs, reference = (
        run(*given)
        for run in (listed_only(form, "cpu"), all_membranes(form, "cpu"), listed_only(form, "reference"))
    )
    chex.assert_trees_all_equal(ours, theirs, strict=True)
    chex.assert_trees_all_equal(ours[0], reference[0], strict=True)
    assert_close(ours[1], reference[1], of_largest=TOLERANCE[form.dtype])


@needs_kernels
def test_programs_hold_only_the_membranes_that_they_read() -> None:
    form = FORMS[0]
    assert widths_of_records(form, listed_only(form, "cpu")) == {3, 30, 7, 40}
    assert widths_of_records(form, all_membranes(form, "cpu")) == {3, 200, 65, 40}


@needs_kernels
@pytest.mark.parametrize(
    "changed",
    [
        {"reset": "zero"},
        {"detach_reset": False},
        {"capacity": (101, 33)},
        {"second_states": ((True,) * 5,) * 2},
    ],
)
def test_all_membranes_are_recorded_where_they_matter(changed: dict[str, Any]) -> None:
    form = FORMS[0]._replace(**changed)
    assert {200, 65} <= widths_of_records(form, listed_only(form, "cpu"))


@needs_kernels
def test_gradients_without_jit_are_those_with_it() -> None:
    """Without it nothing is dropped: both are recorded."""
    form = FORMS[0]
    given = arguments(form, np.random.default_rng(1))

    def loss(layers):
        results = runner(form, "cpu")(given[0], layers, *given[2:])
        return weighted_sum([results[0]])

    chex.assert_trees_all_equal(jax.grad(loss)(given[1]), jit(jax.grad(loss))(given[1]), strict=True)


@needs_kernels
@pytest.mark.parametrize("reads", [False, True])
def test_programs_compute_only_the_counts_and_last_states_that_they_read(reads: bool) -> None:
    """Of what nobody reads, no row comes out of the kernel; and the gradient stays the same to the bit."""
    form = FORMS[0]
    given, both = arguments(form, np.random.default_rng(0)), listed_only(form, "cpu")
    alone = jit(
        lambda *given: everything(form, "cpu", lambda results: [results[0], results[4]], weights_of)(*given)[
            1
        ]
    )
    run = both if reads else alone
    text = run.lower(*given).as_text()
    assert all((f"tensor<1x0x{width}xf32>" in text) is not reads for width in form.widths)
    chex.assert_trees_all_equal(alone(*given), both(*given)[1], strict=True)
