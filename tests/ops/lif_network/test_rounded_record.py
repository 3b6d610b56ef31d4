"""`record_dtype` of `lif_network`: membranes recorded in half the memory, and what that does to the gradient."""

import functools
from typing import Any

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import LIFLayer, LIFReadout, lif_network
from tests.numbers import array
from tests.ops.common import jit
from tests.ops.kernel_checks import check_kernel, everything, needs_kernels
from tests.ops.lif_network.random_networks import Form, arguments

# With lists and without, patches that begin inside rows, recurrent layers, samples that end early.
FORMS = (
    Form(5, 17, 40, (200, 65), 3, rounds_record=(True, True)),
    Form(4, 18, 20, (130,), recurrent=True, surrogate="triangle", reset="zero", rounds_record=(True,)),
    Form(6, 16, 20, (130, 64), 3, capacity=(30, 60), rounds_record=(True, True)),
    Form(5, 17, 40, (96, 64, 48), 3, detach_reset=False, rounds_record=(False, True, False)),
)
# The derivative of superspike in its distance x is at most twice its value over x: an error of 2^-9 of x is at most
# one of 2^-8 of the slope, in each of two layers.
SLOPES = 2**-7
IMPLEMENTATIONS = ["reference", pytest.param("cpu", marks=needs_kernels)]


@needs_kernels
@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_the_kernels_equal_the_reference(form: Form, seed: int) -> None:
    check_kernel(form, seed)


def program(form: Form, implementation: str) -> str:
    given = arguments(form, np.random.default_rng(0))
    return jit(everything(form, implementation)).lower(*given).as_text()


@needs_kernels
@pytest.mark.parametrize(
    "changed, kept",
    [
        ({}, {"bf16"}),
        ({"rounds_record": (False,)}, {"f32"}),
        ({"second_states": ((True,) * 5,)}, {"f32"}),  # it may move the threshold
    ],
)
def test_which_membranes_are_rounded(changed: dict[str, Any], kept: set[str]) -> None:
    form = FORMS[0]._replace(widths=(200,), rounds_record=(True,), record_spikes=False)
    text = program(form._replace(**changed), "cpu")
    shape = f"tensor<1x{FORMS[0].steps}x{FORMS[0].batch}x200x"
    assert {part.split(">")[0] for part in text.split(shape)[1:]} == kept


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("recurrent", [False, True])
def test_the_gradient_differs_by_the_rounding(recurrent: bool, implementation: str) -> None:
    """Of terms of both signs: relative to the norm of the gradient."""
    rng = np.random.default_rng(0)
    inputs = array(rng.random((30, 9, 40)) < 0.1, jnp.float32)
    scales = zip((40, 80), (80, 48), (0.5, 0.4), strict=True)
    weights = [jnp.asarray(scale * rng.normal(size=(n, m)), jnp.float32) for n, m, scale in scales]
    own = jnp.asarray(0.1 * rng.normal(size=(48, 48)), jnp.float32) if recurrent else None
    readout = LIFReadout(array(rng.normal(size=(48, 3)), jnp.float32), 0.9)

    def loss(weights, record_dtype):
        layers = [
            LIFLayer(each, 0.9, gain=1.0, recurrent=r) for each, r in zip(weights, (None, own), strict=True)
        ]
        options = {"record_dtype": record_dtype, "implementation": implementation}
        out, _ = lif_network(inputs, layers, readout, **options)
        return jnp.sum(jnp.square(out.output)), out.output

    step = functools.partial(jit, static_argnums=1)(jax.value_and_grad(loss, has_aux=True))
    (exact, ours), (rounded, theirs) = step(weights, None), step(weights, jnp.bfloat16)
    chex.assert_trees_all_equal(exact, rounded, strict=True)  # the forward pass rounds nothing
    for mine, other in zip(ours, theirs, strict=True):
        difference = jnp.linalg.norm(mine - other) / jnp.linalg.norm(mine)
        assert 1e-6 < difference < SLOPES


def test_float64_networks_round_nothing() -> None:
    layer = LIFLayer(jnp.ones((2, 3)), 0.9)
    with jax.enable_x64(True):
        layer64 = LIFLayer(jnp.ones((2, 3), jnp.float64), 0.9)

        def loss(weights, record_dtype):
            out, _ = lif_network(
                jnp.ones((4, 1, 2)), [layer64._replace(weights=weights)], record_dtype=record_dtype
            )
            return jnp.sum(out.output)

        chex.assert_trees_all_equal(
            *(jax.grad(loss)(layer64.weights, own) for own in (None, jnp.bfloat16)), strict=True
        )
    text = "lif_network: `record_dtype` must be bfloat16 or None, got 'float16'. Omit it for float32."
    with pytest.raises(ValueError) as caught:
        lif_network(jnp.ones((4, 1, 2)), [layer], record_dtype="float16")
    assert str(caught.value) == text
