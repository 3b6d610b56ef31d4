"""The kernels of `lif_network` equal the reference: all results, and the gradients of all arguments.

Arrays are dyadic (`tests/ops/random_networks.py`), so results are the same to the bit, whatever the order of sums.
"""

import functools
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from snnjax import _targets
from tests.ops.common import assert_same, is_float, jit, weighted_sum
from tests.ops.random_networks import LIST_INPUTS, SURROGATES, Form, arguments, runner

pytestmark = pytest.mark.skipif(_targets.missing() is not None, reason=str(_targets.missing()))

# Relative to the largest entry of a gradient. Both sides sum up to 600 products in another order, and the exponential
# function of the kernels is good to 1e-7; the reference rounds cotangents to the dtype of the weights on their way,
# the kernels in the end.
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.06}

# Each of the sizes, switches and forms of input somewhere; lists are full and overflow.
FORMS = (
    Form(6, 17, 65, (130, 64), capacity=(9, None)),
    Form(3, 33, 200, (200,), recurrent=True, given="uint8", surrogate="triangle", reset="zero"),
    Form(6, 16, 40, (63, 5), 3, capacity=(20, 2), given="bool", surrogate="gaussian", detach_reset=False),
    Form(3, 15, 7, (65,), None, recurrent=True, capacity=4, given="uint16 lists", surrogate="sigmoid"),
    Form(6, 20, 40, (100, 17), recurrent=True, capacity=12, reset="zero", detach_reset=False, bias=False),
    Form(6, 1, 1, (1,), 1, given="int32", surrogate="boxcar", reset="none", per_neuron=False, lengths=False),
    Form(3, 2, 200, (64, 1, 130), capacity=(0, 3, 200), given="int32 lists", slots=90, surrogate="arctan"),
    Form(1, 33, 65, (17,), None, given="bfloat16", surrogate="straight_through", record_spikes=False),
    Form(6, 17, 40, (65, 20), recurrent=True, dtype="bfloat16", surrogate="arctan", capacity=(None, 30)),
    Form(
        3, 16, 130, (200,), given="bfloat16", dtype="bfloat16", capacity=40, record_spikes=False, bias=False
    ),
    Form(3, 5, 65, (63,), 20, given="uint16 lists", dtype="bfloat16", surrogate="triangle", lengths=False),
    Form(6, 33, 7, (5, 130), None, recurrent=True, capacity=(2, None), per_neuron=False, surrogate="sigmoid"),
    Form(0, 17, 5, (6,), capacity=3, recurrent=True),
    Form(3, 0, 5, (6, 4), capacity=(3, None)),
    Form(3, 4, 0, (0, 5), 0, capacity=(3, 0)),
    Form(2, 3, 5, (4, 0), 2, recurrent=True, given="int32 lists", slots=0, capacity=(None, 2)),
)


@functools.cache
def compiled(form: Form, implementation: str) -> Any:
    """All results, and the gradients of `weighted_sum` of them by the float leaves of the arguments."""

    def of(*given: Any) -> Any:
        def loss(floats: list[Any]) -> Any:
            results = runner(form, implementation)(*filled(floats))
            return weighted_sum(results), results

        filled, floats = filler(given)
        gradients, results = jax.grad(loss, has_aux=True)(floats)
        return results, gradients

    return jit(of)


def filler(given: Any) -> tuple[Any, list[Any]]:
    """A function that puts float leaves into their places among the arguments, and the leaves that are there."""
    leaves, tree = jax.tree.flatten(given)

    def fill(floats: list[Any]) -> Any:
        remaining = iter(floats)
        return jax.tree.unflatten(tree, [next(remaining) if is_float(leaf) else leaf for leaf in leaves])

    return fill, [leaf for leaf in leaves if is_float(leaf)]


def assert_close(actual: list[Any], expected: list[Any], tolerance: float) -> None:
    """Within `tolerance` times the largest entry of each array, or times 1."""
    for ours, theirs in zip(actual, expected, strict=True):
        largest = np.max(np.abs(np.asarray(theirs, np.float64)), initial=1.0)
        assert_same(ours, theirs, atol=tolerance * largest)


def check(form: Form, seed: int) -> None:
    """Same structure, shapes and dtypes; results to the bit, gradients within the tolerance."""
    given = arguments(form, np.random.default_rng(seed))
    (ours, gradients), (theirs, expected) = (compiled(form, name)(*given) for name in ("cpu", "reference"))
    kinds = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(each)] for each in (ours, theirs)]
    assert kinds[0] == kinds[1]
    assert_same(ours, theirs)
    assert_close(gradients, expected, TOLERANCE[form.dtype])


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_kernel_equals_reference(form: Form, seed: int) -> None:
    check(form, seed)


def test_forms_reach_all_sides_of_the_kernels() -> None:
    for field, expected in (
        ("given", {"float32", "uint8", "bool", "int32", "bfloat16", *LIST_INPUTS}),
        ("surrogate", set(SURROGATES)),
        ("reset", {"subtract", "zero", "none"}),
        ("dtype", {"float32", "bfloat16"}),
        ("batch", {0, 1, 15, 16, 17, 20, 33}),
    ):
        assert expected <= {getattr(form, field) for form in FORMS}
    assert {0, 1, 63, 64, 65, 130, 200} <= {width for form in FORMS for width in form.widths}
