"""The kernel of `lif_network` replaces recorded membranes by their cotangents: where, and that nobody sees it."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.ops.common import jit, pick, weighted_sum
from tests.ops.kernel_checks import everything, needs_kernels
from tests.ops.lif_network.random_networks import Form, arguments, runner

pytestmark = needs_kernels

# Rows of whole vectors, in several blocks of samples and tiles of neurons; the recurrent layer is overwritten, too.
FORMS = (
    Form(5, 20, 40, (48, 208, 64), 3),
    Form(9, 18, 20, (64, 96), recurrent=True, surrogate="triangle", reset="zero", detach_reset=False),
    Form(4, 17, 20, (32, 80), 3, capacity=(None, 70), second_states=((True,) * 5, None)),
)


def overwritten(form: Form) -> int:
    """How many operands of the backward pass may be overwritten."""
    given = arguments(form, np.random.default_rng(0))
    return jit(everything(form, "cpu")).lower(*given).as_text().count("output_operand_alias<")


@pytest.mark.parametrize(
    "form, expected",
    [
        (FORMS[0], 2),  # not the first layer, whose cotangents nothing below reads
        (FORMS[1], 2),
        (FORMS[2], 1),
        (FORMS[0]._replace(widths=(48, 200, 64)), 1),  # rows of 12 and a half vectors
        (FORMS[0]._replace(dtype="bfloat16"), 0),
        (FORMS[0]._replace(rounds_record=(False, True, False)), 1),
    ],
)
def test_which_membranes_are_overwritten(form: Form, expected: int) -> None:
    assert overwritten(form) == expected


@functools.cache
def pullback_of(form: Form):
    """The results, and what pulls their cotangents back to the layers."""
    given = arguments(form, np.random.default_rng(1))
    results, pull_back = jax.vjp(
        lambda layers: runner(form, "cpu")(given[0], layers, *given[2:])[0], given[1]
    )
    return results, pull_back


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_a_record_may_be_read_again(form: Form) -> None:
    results, pull_back = pullback_of(form)
    first, again = pull_back(results), pull_back(results)
    chex.assert_trees_all_equal(first, again, strict=True)
    twice = jit(lambda g: (pull_back(g), pull_back(2 * g)))(results)
    chex.assert_trees_all_equal(twice, (first, pull_back(2 * results)), strict=True)


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_a_record_serves_many_cotangents(form: Form) -> None:
    results, pull_back = pullback_of(form)
    stacked = jnp.stack([results, 3 * results, -results])
    mapped = jit(jax.vmap(pull_back))(stacked)
    for index, g in enumerate(stacked):
        chex.assert_trees_all_equal(pick(mapped, index), pull_back(g), strict=True)


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_a_recomputed_record_gives_the_same_gradient(form: Form) -> None:
    given = arguments(form, np.random.default_rng(2))

    def loss(layers):
        return weighted_sum([runner(form, "cpu")(given[0], layers, *given[2:])[0]])

    gradients = [jit(jax.grad(each))(given[1]) for each in (loss, jax.checkpoint(loss))]
    chex.assert_trees_all_equal(*gradients, strict=True)
