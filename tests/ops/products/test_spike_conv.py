"""`spike_conv`: patches of spikes, every edge and geometry, and weights that must not leak."""

import dataclasses
import re
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, spike_conv
from snnjax._types import Signal
from snnjax.ops._convolution import Convolution
from tests.numbers import array, dyadic
from tests.ops import references
from tests.ops.common import check_gradient, jit

# (shape, kernel, channels_out, the rest): both kinds of padding and pairs of unequal lengths, strides beyond the
# kernel, kernels as large as the image, groups, one dimension, dilations of the kernel and of the image.
GEOMETRIES = (
    Convolution.of("test", (5, 4, 2), (3, 3), 3),
    Convolution.of("test", (5, 4, 2), (2, 4), 3, strides=2),
    Convolution.of("test", (4, 5, 1), (3, 2), 2, padding="valid"),
    Convolution.of("test", (3, 5, 2), (1, 2), 1, strides=(2, 3), padding=((0, 1), (3, 0))),
    Convolution.of("test", (2, 3, 4), (2, 3), 4, padding="valid", groups=2),
    Convolution.of("test", (3, 3, 4), (3, 3), 8, strides=(1, 2), groups=4),
    Convolution.of("test", (9, 3), (4,), 2),
    Convolution.of("test", (9, 2), (3,), 4, strides=2, padding=((0, 2),), groups=2),
    Convolution.of("test", (6, 7, 2), (3, 2), 3, dilation=(2, 3), strides=(1, 2)),
    Convolution.transposed("test", (3, 4, 2), (3, 2), 3, strides=2),
    Convolution.of("test", (7, 2), (3,), 4, strides=4, dilation=2, input_dilation=3, groups=2),
)
each_geometry = pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)


def conv(spikes: Signal, weights, c: Convolution, **options):
    return spike_conv(spikes, weights, **c.options, **options)


def as_lists(ids, values, num_neurons: int) -> SparseSpikes:
    count = jnp.zeros(np.shape(ids)[:-1], jnp.int32)
    return SparseSpikes(
        jnp.asarray(ids, jnp.int32), jnp.asarray(values, jnp.float32), count, count, 0 * count, num_neurons
    )


def test_spike_adds_its_patch() -> None:
    """In a cross-correlation the patch of a spike is the reversed kernel."""
    weights = jnp.arange(1.0, 10.0).reshape(3, 3, 1, 1)
    spikes = SparseSpikes.from_ids(jnp.array([[5], [0], [15]]), 16)  # (1, 1), (0, 0) and (3, 3)
    out = spike_conv(spikes, weights, shape=(4, 4, 1)).reshape(3, 4, 4)
    assert out[0].tolist() == [[9, 8, 7, 0], [6, 5, 4, 0], [3, 2, 1, 0], [0, 0, 0, 0]]
    assert out[1].tolist() == [[5, 4, 0, 0], [2, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert out[2].tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 9, 8], [0, 0, 6, 5]]


def test_strides_and_padding_by_hand() -> None:
    weights, spikes = jnp.array([1.0, 2.0, 4.0]).reshape(3, 1, 1), jnp.array([1.0, 10.0, 100.0, 1000.0])
    given: dict[str, Any] = {"spikes": spikes, "weights": weights, "shape": (4, 1)}
    assert spike_conv(**given).tolist() == [42, 421, 4210, 2100]
    assert spike_conv(**given, strides=2).tolist() == [421, 2100]  # the odd zero stands behind
    assert spike_conv(**given, strides=3).tolist() == [42, 2100]
    assert spike_conv(**given, padding="valid").tolist() == [421, 4210]
    assert spike_conv(**given, padding="VALID").tolist() == [421, 4210]  # as JAX writes it
    assert spike_conv(**given, padding=((2, 0),)).tolist() == [4, 42, 421, 4210]


def test_dilations_by_hand() -> None:
    weights, spikes = jnp.array([1.0, 2.0, 4.0]).reshape(3, 1, 1), jnp.array([1.0, 10.0, 100.0, 1000.0])
    given: dict[str, Any] = {"spikes": spikes, "weights": weights, "shape": (4, 1)}
    assert spike_conv(**given, dilation=2).tolist() == [402, 4020, 201, 2010]
    assert spike_conv(**given, dilation=2, strides=3).tolist() == [402, 2010]
    wide = spike_conv(**given, input_dilation=2, padding="valid")  # 1 0 10 0 100 0 1000
    assert wide.tolist() == [41, 20, 410, 200, 4100]


@pytest.mark.parametrize("padding", ["same", "valid", ((2, 1), (0, 3))])
@pytest.mark.parametrize("kernel, strides, dilation", [((3, 2), (2, 2), (1, 1)), ((2, 4), (3, 1), (2, 1))])
def test_transposed_convolution_is_that_of_jax(padding, kernel, strides, dilation) -> None:
    """`jax.lax.conv_transpose`, bit for bit: sums are exact; and its gradients."""
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"strides": strides, "padding": padding, "dilation": dilation}
    geometry = Convolution.transposed("test", (4, 3, 2), kernel, 3, **options)
    images = dyadic(rng, -8, 8, 2, 4, 3, 2)
    weights = dyadic(rng, -8, 8, *geometry.weights_shape)
    pads = padding.upper() if isinstance(padding, str) else padding

    def expected(images, weights):
        return jax.lax.conv_transpose(images, weights, strides, pads, rhs_dilation=dilation)

    def ours(images, weights):
        return conv(images.reshape(2, -1), weights, geometry).reshape(2, *geometry.out_shape)

    out = expected(images, weights)
    g = dyadic(rng, -8, 8, *out.shape)
    results = [
        jax.jit(lambda x, w, g, f=f: (f(x, w), jax.vjp(f, x, w)[1](g)))(images, weights, g)
        for f in (ours, expected)
    ]
    chex.assert_trees_all_equal(*results, strict=True)


@pytest.mark.parametrize(
    "options, text",
    [
        (
            {"dilation": (2, 2)},
            "`dilation` must be an integer or a tuple of one length, got (2, 2). Pass one integer per axis.",
        ),
        (
            {"input_dilation": 0},
            "`input_dilation` must be an integer of at least 1, got 0. Pass 1 or more.",
        ),
        (
            {"dilation": 2, "padding": "valid"},
            "`kernel` must fit into the padded image, [4], got [5]. Pad more, or choose a smaller kernel.",
        ),
    ],
)
def test_dilations_that_do_not_fit_are_refused(options, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'spike_conv: {text}')}$"):
        spike_conv(jnp.zeros(4), jnp.zeros((3, 1, 1)), shape=(4, 1), **options)


def test_groups_keep_to_their_channels() -> None:
    weights = jnp.array([[[1.0, 2.0, 4.0, 8.0]]])  # one pixel, one channel of each group, two outputs of each
    out = spike_conv(jnp.array([1.0, 10.0]), weights, shape=(1, 2), groups=2)
    assert out.tolist() == [1, 2, 40, 80]


@each_geometry
def test_equals_convolution_of_jax(geometry: Convolution) -> None:
    """Lists, rows, XLA's convolution of images and loops over the definition, bit for bit: sums are exact."""
    rng = np.random.default_rng(0)
    ids = array(rng.integers(-1, geometry.num_inputs + 1, (2, 9)), jnp.int32)
    spikes, weights = as_lists(ids, dyadic(rng, -16, 16, 2, 9), geometry.num_inputs), None
    weights = dyadic(rng, -16, 16, *geometry.weights_shape)
    dense = jit(SparseSpikes.to_dense)(spikes)
    expected = jit(Convolution.convolve)(geometry, dense, weights)
    for given in (spikes, dense):
        chex.assert_trees_all_equal(jit(conv)(given, weights, geometry), expected, strict=True)
    chex.assert_trees_all_equal(
        references.spike_conv(np.asarray(dense), np.asarray(weights), geometry), expected, strict=True
    )
    assert expected.shape == (2, geometry.num_outputs)


@each_geometry
@pytest.mark.parametrize("form", ["lists", "rows"])
def test_gradient_equals_finite_differences(geometry: Convolution, form: str) -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(-1, geometry.num_inputs + 1, (2, 4))
    with jax.enable_x64(True):
        weights = jnp.asarray(rng.normal(size=geometry.weights_shape))
        lists = as_lists(ids, np.zeros(ids.shape), geometry.num_inputs)
        values = jnp.asarray(rng.normal(size=ids.shape))
        lists = dataclasses.replace(lists, values=values)
        spikes = lists if form == "lists" else lists.to_dense()
        check_gradient(lambda spikes, weights: conv(spikes, weights, geometry), (spikes, weights))


def test_sums_run_in_float32() -> None:
    """One large and many small terms, which bfloat16 would swallow one by one."""
    weights = jnp.ones((257, 1, 1), jnp.bfloat16)
    spikes = jnp.full((257,), 2**-8).at[0].set(1.0)
    out = spike_conv(spikes, weights, shape=(257, 1), padding="valid")
    assert out.dtype == jnp.bfloat16 and out.tolist() == [2.0]


def test_geometry_knows_its_sizes() -> None:
    c = Convolution.of("test", (34, 34, 2), (5, 5), 12)
    assert (c.out_shape, c.num_inputs, c.num_outputs) == ((34, 34, 12), 2312, 13872)
    assert (c.weights_shape, c.fan_in) == ((5, 5, 2, 12), 50)
    c = Convolution.of("test", (17, 12), (4,), 6, strides=3, padding=((1, 0),), groups=3)
    assert (c.out_shape, c.weights_shape, c.fan_in) == ((5, 6), (4, 4, 6), 16)
    assert c == Convolution.of("test", [17, 12], [4], 6, strides=(3,), padding=[[1, 0]], groups=3)
    assert hash(c) == hash(c) and jax.tree.leaves(c) == []


def test_geometry_is_no_reason_to_trace_again() -> None:
    chex.clear_trace_counter()

    @jit
    @chex.assert_max_traces(n=1)
    def run(spikes: Signal, geometry):
        return conv(spikes, jnp.ones(geometry.weights_shape), geometry)

    for _ in range(2):
        run(jnp.zeros((2, 18)), Convolution.of("test", (9, 2), (3,), 4))
