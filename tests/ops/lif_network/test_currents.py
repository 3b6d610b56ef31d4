"""A first layer without weights, whose inputs are its currents."""

import functools
import itertools

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import Connection, LIFLayer, LIFReadout, SparseSpikes, _targets, lif_network, lif_network_state
from snnjax._types import Signal
from tests.errors.refusals import refusals
from tests.numbers import assert_close
from tests.ops.common import jit, with_gradient
from tests.ops.kernel_checks import TOLERANCE, needs_kernels
from tests.ops.lif_network.random_networks import ADAPTIVE, SYNAPSE, Form, arguments, runner
from tests.project.sampling import sampled

IMPLEMENTATIONS = ("cpu", "reference") if _targets.missing() is None else ("reference",)
FORMS = (
    Form(6, 17, 130, (130, 20), capacity=(9, None), second_states=(SYNAPSE, None)),
    Form(3, 3, 20, (20,), None, recurrent=True, reset="zero", detach_reset=False, per_neuron=False),
    Form(4, 5, 65, (65, 7), recurrent=True, given="bfloat16", dtype="bfloat16", bias=False),
    Form(9, 2, 64, (64,), second_states=(ADAPTIVE,), reset="none", lengths=False),
)
# Each form in one implementation: test_kernel.py compares both, of currents too.
each_form = pytest.mark.parametrize(
    "form, implementation",
    sampled(
        list(itertools.product(FORMS, IMPLEMENTATIONS)),
        lambda row: {"form": row[0]},
        lambda row: {"implementation": row[1]},
    ),
    ids=lambda each: each if isinstance(each, str) else str(FORMS.index(each)),
)


@functools.cache
def compiled(form: Form, implementation: str):
    """Results and gradients, of a first layer without weights and of one with an identity matrix."""
    identity = jnp.eye(form.widths[0], dtype=form.dtype)

    def both(*given):
        def run(has_weights: bool):
            def of(inputs: Signal, layers, *rest):
                first = layers[0]._replace(weights=identity if has_weights else None)
                return runner(form, implementation)(inputs, (first, *layers[1:]), *rest)

            return with_gradient(of)(*given)

        return run(False), run(True)

    return jit(both)


@each_form
@hypothesis.settings(max_examples=3)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_currents_equal_a_first_layer_with_an_identity_matrix(
    form: Form, implementation: str, seed: int
) -> None:
    """Results bit for bit; gradients of all arguments, but of the matrix, to rounding."""
    inputs, (first, *others), *rest = arguments(form, np.random.default_rng(seed))
    given = inputs, (first._replace(weights=None), *others), *rest
    (ours, gradients), (theirs, expected) = compiled(form, implementation)(*given)
    chex.assert_trees_all_equal(ours, theirs, strict=True)
    assert_close(gradients, expected, of_largest=TOLERANCE[form.dtype])


@functools.cache
def compiled_with_factor(form: Form, implementation: str):
    """Results and gradients, of currents with a factor and of currents that were multiplied with it before."""

    def both(factor, *given):
        def run(is_before: bool):
            def of(factor, inputs: Signal, layers, *rest):
                if is_before:
                    inputs = inputs * factor.astype(inputs.dtype)[None, None, :]
                first = layers[0]._replace(weights=None, factor=None if is_before else factor)
                return runner(form, implementation)(inputs, (first, *layers[1:]), *rest)

            return with_gradient(of)(factor, *given)

        return run(False), run(True)

    return jit(both)


@each_form
@hypothesis.settings(max_examples=2)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_a_factor_is_that_of_the_currents(form: Form, implementation: str, seed: int) -> None:
    """Results bit for bit, since factors are powers of two, also 0; gradients to rounding."""
    draw = np.random.default_rng(seed)
    inputs, (first, *others), *rest = arguments(form, draw)
    given = inputs, (first._replace(weights=None), *others), *rest
    factor = jnp.asarray(draw.choice([0.0, 0.5, 1.0, 2.0], form.widths[0]), jnp.float32)
    (ours, gradients), (theirs, expected) = compiled_with_factor(form, implementation)(factor, *given)
    chex.assert_trees_all_equal(ours, theirs, strict=True)
    assert_close(gradients, expected, of_largest=TOLERANCE[form.dtype])


def test_state_of_currents_is_that_of_their_shape_and_dtype() -> None:
    recurrent = jnp.zeros((3, 3), jnp.bfloat16)
    currents = jax.ShapeDtypeStruct((5, 2, 3), jnp.bfloat16)
    state = lif_network_state(2, [LIFLayer(None, 0.5, recurrent=recurrent)], currents=currents)
    (layer,) = state.layers
    assert layer.v.shape == layer.spikes.shape == (2, 3)
    assert (layer.v.dtype, layer.spikes.dtype) == (jnp.float32, jnp.bfloat16)


def test_currents_drive_their_own_neurons_alone() -> None:
    currents = jnp.array([[[0.5, 2.0, 0.75]]])
    out, state = lif_network(currents, [LIFLayer(None, 0.5, gain=1.0, bias=jnp.array([0.0, 0.0, 0.5]))])
    chex.assert_trees_all_equal(out.output, jnp.array([[[0.0, 1.0, 1.0]]]))
    chex.assert_trees_all_equal(state.layers[0].v, jnp.array([[0.5, 2.0, 1.25]]))


GIVEN, CURRENTS = LIFLayer(None, decay=0.5), jnp.zeros((5, 2, 3))
LAYER, READOUT = LIFLayer(jnp.zeros((3, 3)), decay=0.5), LIFReadout(jnp.zeros((3, 2)), decay=0.5)
CURRENTS_WANTED = (
    "lif_network: `inputs` must be a floating-point array of currents for a first layer without weights"
)
PLAIN_WANTED = "lif_network: `layers[0]` must have neither a connection nor delays without weights"


REFUSED = {
    f"{CURRENTS_WANTED}, got int32. Give the layer weights, or cast the currents.": lambda: lif_network(
        CURRENTS.astype(int), [GIVEN]
    ),
    f"{CURRENTS_WANTED}, got SparseSpikes. Give the layer weights, or cast the currents.": lambda: (
        lif_network(SparseSpikes.from_dense(CURRENTS, 2), [GIVEN])
    ),
    f"{PLAIN_WANTED}, got delays. Give it weights, or leave them out.": lambda: lif_network(
        CURRENTS, [GIVEN._replace(delays=0.5)]
    ),
    f"{PLAIN_WANTED}, got Connection(pooling=None, convolution=None, rounds_cotangents.... "
    "Give it weights, or leave them out.": lambda: lif_network(
        CURRENTS, [GIVEN._replace(connection=Connection(max_delay=2))]
    ),
    "lif_network: `layers[0].factor` must be None with weights, got an array. "
    "Multiply the weights with it.": lambda: lif_network(CURRENTS, [LAYER._replace(factor=jnp.ones(3))]),
    "lif_network: `layers[0].factor` must have shape [neurons] = [3], got [2]. Match its shape to the "
    "layer below and to its neurons.": lambda: lif_network(CURRENTS, [GIVEN._replace(factor=jnp.ones(2))]),
    "lif_network: `layers[1].weights` must be an array after the first layer, got None. "
    "Give it weights.": lambda: lif_network(CURRENTS, [LAYER, GIVEN]),
    "lif_network: `readout.weights` must be an array after the first layer, got None. "
    "Give it weights.": lambda: lif_network(CURRENTS, [LAYER], READOUT._replace(weights=None)),
    "lif_network_state: `currents` must be given for a first layer without weights, got None. "
    "Pass the inputs of lif_network.": lambda: lif_network_state(2, [GIVEN]),
}
test_what_is_no_current_is_refused = refusals(REFUSED)


@needs_kernels
def test_gradient_of_the_gain_alone_reads_the_currents_of_all_neurons() -> None:
    """Where the membranes of the listed neurons are all that is recorded."""
    draw = lambda key, *shape: jax.random.normal(jax.random.key(key), shape, jnp.float32)  # noqa: E731
    given, recurrent = draw(0, 5, 3, 64), draw(1, 64, 64)

    def run(gain, implementation: str):
        layer = LIFLayer(None, 0.5, gain=gain, recurrent=recurrent)
        return jnp.sum(lif_network(given, [layer], capacity=8, implementation=implementation)[1].layers[0].v)

    ours, expected = (
        jit(jax.grad(lambda gain, path=path: run(gain, path)))(jnp.ones(64)) for path in ("cpu", "reference")
    )
    chex.assert_trees_all_close(ours, expected, rtol=1e-5, atol=1e-5)
