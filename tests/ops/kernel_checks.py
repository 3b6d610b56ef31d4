"""Code shared by the tests of the kernels of `lif_network`: all results and gradients, in either implementation."""

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import numpy as np
import pytest

from snnjax import _targets
from tests.numbers import assert_close
from tests.ops.common import is_float, jit, weighted_sum
from tests.ops.lif_network.random_networks import Form, arguments, runner

needs_kernels = pytest.mark.skipif(_targets.missing() is not None, reason=str(_targets.missing()))

# Relative to the largest entry of a gradient. Both sides sum up to 600 products in another order, and the exponential
# function of the kernels is good to 1e-7; the reference rounds cotangents to the dtype of the weights on their way,
# the kernels in the end.
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.06}


def everything(
    form: Form,
    implementation: str,
    seen: Callable[[Any], Any] = lambda results: results,
    by: Callable[[Any], Any] = lambda given: given,
) -> Callable[..., Any]:
    """All results, and gradients of the `weighted_sum` of those `seen` with respect to the float leaves `by`."""

    def of(*given):
        leaves, tree = jax.tree.flatten(given)
        numbered = jax.tree.unflatten(tree, list(range(len(leaves))))
        places = [place for place in jax.tree.leaves(by(numbered)) if is_float(leaves[place])]

        def loss(floats: list[Any]):
            filled = list(leaves)
            for place, value in zip(places, floats, strict=True):
                filled[place] = value
            results = runner(form, implementation)(*jax.tree.unflatten(tree, filled))
            return weighted_sum(seen(results)), results

        gradients, results = jax.grad(loss, has_aux=True)([leaves[place] for place in places])
        return results, dict(zip(places, gradients, strict=True))

    return of


@functools.cache
def compiled(form: Form, implementation: str):
    return jit(everything(form, implementation))


def is_narrow(form: Form) -> bool:
    """Whether a gradient is in half precision: inputs have one in their own dtype, whatever the weights are."""
    return "bfloat16" in form or form.given == "float16"


def check_kernel(form: Form, seed: int) -> None:
    """The kernel on random arrays equals the reference: results bit for bit, gradients within the tolerance."""
    given = arguments(form, np.random.default_rng(seed))
    ours, theirs = (compiled(form, implementation)(*given) for implementation in ("cpu", "reference"))
    chex.assert_trees_all_equal_shapes_and_dtypes(ours, theirs)
    chex.assert_trees_all_equal(ours[0], theirs[0], strict=True)
    assert_close(ours[1], theirs[1], of_largest=TOLERANCE["bfloat16" if is_narrow(form) else "float32"])
