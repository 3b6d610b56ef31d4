"""The kernels of `spike_conv` over random geometries: every form of a row, bit for bit, sums being exact."""

import functools
from typing import Any

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, spike_conv
from snnjax.ops._convolution import Convolution
from snnjax.ops._tables.products import Geometry
from tests.fuzz.calls import Call, calls_of
from tests.numbers import array, dyadic
from tests.ops.common import jit, with_gradient
from tests.ops.kernel_checks import needs_kernels
from tests.ops.test_kernel_handlers import refusal

pytestmark = needs_kernels

BOTH = ("cpu", "reference")
# Beside the kernels' own choices: channels that fill vectors of every length, or leave a rest; rows of outputs that
# are no multiple of what a product takes at once; strides, groups and cut-off edges that leave the sparse form alone.
GEOMETRIES = (
    Convolution.of("test", (9, 11, 2), (5, 5), 12),
    Convolution.of("test", (7, 6, 12), (3, 5), 32),
    Convolution.of("test", (8, 9, 5), (3, 3), 21, strides=(2, 3)),
    Convolution.of("test", (5, 7, 8), (4, 2), 1, padding=((5, 0), (0, 4))),
    Convolution.of("test", (6, 5, 6), (3, 3), 10, strides=2, groups=2),
    Convolution.of("test", (50, 9), (7,), 40, padding="valid"),
    Convolution.of("test", (1, 1, 20), (1, 1), 70),
    Convolution.of("test", (4, 1, 1), (2, 1), 3, strides=(3, 1), padding=((7, 2), (0, 6))),
    # Kernels narrower than a stride, whose gaps meet no weight, in groups of one channel; and one axis with all of it.
    Convolution.of("test", (7, 5, 2), (1, 2), 4, strides=(3, 3), padding=((0, 1), (2, 0)), groups=2),
    Convolution.of("test", (7, 4), (4,), 6, strides=2, padding=((3, 1),), groups=2),
    Convolution.of("test", (5, 8, 3), (1, 1), 18, strides=2),
    # Dilations that share a divisor with the strides, or none; and zeros between the pixels.
    Convolution.of("test", (9, 11, 3), (3, 3), 12, strides=(2, 3), dilation=(4, 2)),
    Convolution.of("test", (6, 8, 4), (3, 2), 6, dilation=(1, 3), groups=2),
    Convolution.transposed("test", (5, 4, 12), (4, 3), 9, strides=(2, 3)),
    Convolution.of("test", (9, 4), (3,), 6, strides=3, dilation=2, input_dilation=2, groups=2),
    # Images in bands of rows; and patches whose rows lie apart, between pixels that meet no weight.
    Convolution.of("test", (61, 14, 2), (4, 3), 17, padding=((3, 0), (1, 5))),
    Convolution.of("test", (9, 12, 3), (3, 2), 16, strides=(2, 1), dilation=(4, 1), input_dilation=(3, 1)),
)
ROWS = 35  # parts of the gradient of unequal lengths
each_geometry = pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)


def all_of(geometry: Convolution, implementation: str):
    """Results and gradients of lists and of rows."""
    c = geometry
    conv = functools.partial(spike_conv, **c.options, implementation=implementation)

    def of(ids, values, rows, weights, g):
        count = jnp.zeros(ids.shape[:-1], jnp.int32)

        def of_lists(values, weights):
            return conv(SparseSpikes(ids, values, count, count, 0 * count, c.num_inputs), weights)

        lists, lists_back = jax.vjp(of_lists, values, weights)
        dense, dense_back = jax.vjp(conv, rows, weights)
        return lists, *lists_back(g), dense, *dense_back(g)

    return of


def draw_arguments(rng: np.random.Generator, c: Convolution, rows: int, share: float) -> tuple[Any, ...]:
    """Lists with ids out of range and duplicates, an array with this fraction active, weights and cotangents."""
    ids = rng.integers(0, c.num_inputs, (rows, c.num_inputs + 3))
    strange = rng.choice([-1, -(2**31), c.num_inputs, 2**31 - 1], ids.shape)
    ids = array(np.where(rng.random(ids.shape) < share, ids, strange), jnp.int32)
    active = rng.random((rows, c.num_inputs)) < share
    values = dyadic(rng, -4, 4, *ids.shape) if rng.random() < 0.5 else array(np.ones(ids.shape), jnp.float32)
    dense = array(
        np.where(active, dyadic(rng, -4, 4, *active.shape) if rng.random() < 0.5 else 1.0, 0.0), jnp.float32
    )
    weights, g = dyadic(rng, -8, 8, *c.weights_shape), dyadic(rng, -8, 8, rows, c.num_outputs)
    return ids, values, dense, weights, g


@functools.cache
def compiled(geometry: Convolution, implementation: str):
    return jit(all_of(geometry, implementation))


@each_geometry
@hypothesis.given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.1, 0.45, 1.0]))
@hypothesis.settings(max_examples=5)
@hypothesis.example(seed=0, share=0.1)
@hypothesis.example(seed=1, share=1.0)
def test_kernel_equals_reference(geometry: Convolution, seed: int, share: float) -> None:
    given = draw_arguments(np.random.default_rng(seed), geometry, ROWS, share)
    chex.assert_trees_all_equal(
        *(compiled(geometry, implementation)(*given) for implementation in BOTH), strict=True
    )


@pytest.mark.parametrize(
    "geometry", [GEOMETRIES[0], GEOMETRIES[4]], ids=str
)  # dense and sparse, and sparse alone
def test_bfloat16_rounds_sums_of_float32_once(geometry: Convolution) -> None:
    ids, *given = draw_arguments(np.random.default_rng(1), geometry, ROWS, 0.45)
    given = [each.astype(jnp.bfloat16) for each in given]
    wide = compiled(geometry, "cpu")(ids, *(each.astype(jnp.float32) for each in given))
    ours = compiled(geometry, "cpu")(ids, *given)
    for narrow, exact in zip(ours, wide, strict=True):
        assert narrow.dtype == jnp.bfloat16
        chex.assert_trees_all_equal(narrow, exact.astype(jnp.bfloat16), strict=True)


def test_no_rows_in_none_out() -> None:
    c = GEOMETRIES[0]
    out, _, d_weights, *_ = compiled(c, "cpu")(*draw_arguments(np.random.default_rng(0), c, 0, 1.0))
    assert out.shape == (0, c.num_outputs)
    assert not jnp.any(d_weights)


@pytest.mark.parametrize("share", [0.1, 1.0])
@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_weights_that_are_not_finite_reach_their_spikes_alone(share: float, hole: float) -> None:
    """In the dense form too, whose zeros around the image meet all weights."""
    c = GEOMETRIES[0]
    rng = np.random.default_rng(0)
    rows = array(rng.random((5, c.num_inputs)) < share, jnp.float32)
    weights = dyadic(rng, -8, 8, *c.weights_shape).at[0, 0, 1, 3].set(hole)
    ours, theirs = (
        spike_conv(rows, weights, shape=c.shape, implementation=implementation) for implementation in BOTH
    )
    chex.assert_trees_all_equal(ours, theirs, strict=True)
    assert jnp.any(jnp.isfinite(ours)) and not jnp.all(jnp.isfinite(ours))


def test_cotangents_that_are_not_finite_reach_the_weights_of_spikes_alone() -> None:
    weights, g = jnp.ones((3, 1, 8)), jnp.zeros((1, 6 * 8)).at[0, 3].set(jnp.inf)  # of output 0
    spikes = jnp.array([[0.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    conv = functools.partial(spike_conv, shape=(6, 1), implementation="cpu")
    (d_weights,) = jax.vjp(lambda w: conv(spikes, w), weights)[1](g)
    assert jnp.all(d_weights.at[2, 0, 3].get() == jnp.inf)
    assert not jnp.any(d_weights.at[2, 0, 3].set(0.0))


def valid_call() -> Call:
    c = GEOMETRIES[4]
    ids, values, *_, weights, _ = draw_arguments(np.random.default_rng(0), c, 3, 0.1)
    count = jnp.zeros(3, jnp.int32)
    conv = functools.partial(spike_conv, **c.options, implementation="cpu")
    return calls_of(
        with_gradient(conv), SparseSpikes(ids, values, count, count, 0 * count, c.num_inputs), weights
    )[0]


@pytest.mark.parametrize("number", [0, -1, 5, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63)])
def test_geometry_that_does_not_fit_is_refused(number: int) -> None:
    """Before anything is read: a number of it that is wrong, or does not go with the arrays."""
    call = valid_call()
    assert refusal(call) == ""
    for name in Geometry._fields:
        # Zeros after the image may be fewer or more without a change of the outputs.
        if number == call.attributes[name][0] or (name in ("bottom", "right") and number in (0, 1)):
            continue
        wrong = {**call.attributes, name: np.array([number], np.int64)}
        said = refusal(call._replace(attributes=wrong))
        assert said.startswith("INVALID_ARGUMENT: spike_conv: `"), (name, said)
    said = refusal(call._replace(attributes={**call.attributes, "height": np.array([1 << 31], np.int64)}))
    assert said == (
        "INVALID_ARGUMENT: spike_conv: `geometry` must be that of a convolution, got another one. "
        "Call it through snnjax, with kernels of its version (`make kernels` builds them)."
    )
