"""Second thresholds: relative to the neurons' thresholds by default, and checked if they are given."""

import functools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import LIFLayer, layer, leaky_readout, lif_network, network, neurons, select_spikes
from snnjax._check import short_repr
from snnjax._types import Params
from snnjax.blocks import spiking
from snnjax.ops.select_spikes import usual_second_threshold
from tests.graph.helpers import INPUTS, initial, random_spikes
from tests.ops.common import jit

MODELS = {
    "lif": functools.partial(neurons.lif, 0.8, normalize=False),
    "adlif": functools.partial(neurons.adlif, 0.8, normalize=False),
}


def test_the_usual_one_is_nine_tenths_of_the_way_from_rest() -> None:
    thresholds = jnp.array([1.0, 0.5, 0.0, -2.0])
    np.testing.assert_allclose(usual_second_threshold(thresholds), [0.9, 0.45, 0.0, -2.2], rtol=1e-6)
    assert usual_second_threshold(jnp.ones(1)) == jnp.float32(0.9)
    np.testing.assert_allclose(usual_second_threshold(jnp.array([30.0]), -65.0), [20.5], rtol=1e-6)
    assert jax.grad(usual_second_threshold)(jnp.float32(0.5)) == 0


@pytest.mark.parametrize("threshold", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("name", MODELS)
def test_neurons_near_any_threshold_are_listed(name: str, threshold: float) -> None:
    """By default, those above nine tenths of it: as with the second threshold in numbers, and more than the spikes."""
    params, listed = None, {}
    for second in (None, 0.9 * threshold, -np.inf):
        net = network(
            INPUTS,
            [layer(8, MODELS[name](threshold=threshold), capacity=8, second_threshold=second)],
            leaky_readout(3),
        )
        params = initial(net) if params is None else params
        output, _ = jit(functools.partial(net.apply, record="spikes"))(params, None, random_spikes(0.3))
        listed[second] = np.asarray(output.recorded["layer_0/neuron"].num_listed)
        spikes = np.sum(output.recorded["layer_0/neuron"].num_spikes)
    np.testing.assert_array_equal(listed[None], listed[0.9 * threshold])
    assert spikes < np.sum(listed[None]) < np.sum(listed[-np.inf])


def test_the_op_has_the_same_default() -> None:
    weights, inputs = jnp.eye(3), jnp.array([[[0.44, 0.46, 0.6]]])
    own = LIFLayer(weights, decay=0.5, threshold=0.5, gain=1.0)
    run = functools.partial(lif_network, inputs, [own, own], capacity=3, record_spikes=True)
    ids = np.asarray(run()[0].spikes[0].ids)
    np.testing.assert_array_equal(ids, [[[2, 1, 3]]])
    np.testing.assert_array_equal(ids, run(second_threshold=[0.45, None])[0].spikes[0].ids)


def test_izhikevich_neurons_near_their_peak_receive_gradient() -> None:
    net = network(INPUTS, [layer(8, neurons.izhikevich(), capacity=8)], leaky_readout(3))
    params = initial(net)
    output, _ = jit(functools.partial(net.apply, record=("spikes", "membranes")))(
        params, None, 8 * random_spikes(0.6, steps=60)
    )
    name = "layer_0/neuron"
    v, spikes = np.asarray(output.membranes[name]), output.recorded[name]
    np.testing.assert_array_equal(spikes.num_listed, np.sum(v > 20.5, axis=-1))
    assert np.any((v > 20.5) & (v <= 30))


TEXT = (
    "{}: `second_threshold` must be below the threshold, 0.5, got 0.9. "
    "Leave it None for nine tenths of the way from rest to the threshold."
)


def warned(call) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught]


def test_one_that_is_not_below_the_threshold_gives_a_warning() -> None:
    low = neurons.lif(threshold=0.5, learn_threshold=True)
    assert warned(lambda: layer(8, low, capacity=4, second_threshold=0.9)) == [TEXT.format("layer")]
    assert warned(lambda: layer(8, low, capacity=4, second_threshold=0.45)) == []
    assert warned(lambda: layer(8, low, second_threshold=0.9)) == []  # without effect
    net = network(INPUTS, [layer(8, low, capacity=4), layer(8, low)], leaky_readout(3))
    params, inputs = initial(net), random_spikes(0.3)

    def apply(params: Params, second):
        return jax.eval_shape(lambda x: net.apply(params, None, x, second_threshold=second), inputs)

    traced = functools.partial(jax.eval_shape, apply)
    assert warned(lambda: apply(params, 0.9)) == [TEXT.format("network.apply")]
    assert warned(lambda: jax.eval_shape(lambda params: apply(params, 0.9), params)) == [
        TEXT.format("network.apply")
    ]
    assert warned(lambda: traced(params, 0.9)) == []  # a traced one cannot be known
    name = "layer_0/neuron"
    raised = params | {name: params[name]._replace(threshold=jnp.ones(8))}
    assert warned(lambda: apply(raised, 0.9)) == []  # the thresholds that were learned count


@pytest.mark.parametrize("second", ["0.5", True, jnp.float32(0.5), np.full(8, 0.5)])
def test_one_of_a_layer_is_a_number(second) -> None:
    """Others are no part of a network that is compared and hashed; they may be passed on to its runs."""
    with pytest.raises(ValueError) as error:
        spiking(capacity=4, second_threshold=second)
    assert str(error.value) == (
        f"spiking: `second_threshold` must be a number or None, got {short_repr(second)}. "
        "Pass arrays to network.apply."
    )


def test_nan_is_refused() -> None:
    """Nothing is above it: neurons that do not spike would have no gradient."""
    net = network(INPUTS, [layer(8, capacity=4)], leaky_readout(3))
    params, inputs, per_neuron = initial(net), random_spikes(0.3), jnp.full(8, 0.9).at[3].set(jnp.nan)
    usual = "Leave it None for nine tenths of the way from rest to the threshold."
    for op, hint, call in (
        ("spiking", usual, lambda: spiking(capacity=4, second_threshold=math.nan)),
        ("network.apply", usual, lambda: net.apply(params, None, inputs, second_threshold=math.nan)),
        ("network.apply", usual, lambda: net.apply(params, None, inputs, second_threshold=per_neuron)),
        (
            "select_spikes",
            "Pass -inf to list all that fit.",
            lambda: select_spikes(jnp.ones((2, 8)), 1.0, per_neuron, capacity=4),
        ),
        (
            "lif_network",
            "Pass -inf to list all neurons that fit.",
            lambda: lif_network(
                inputs, [LIFLayer(jnp.ones((INPUTS, 8)), 0.9)], capacity=4, second_threshold=math.nan
            ),
        ),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == f"{op}: `second_threshold` must hold numbers, got NaN. {hint}"


def test_a_threshold_at_rest_has_no_second_one_by_default() -> None:
    at_rest = neurons.lif(threshold=0.0)
    text = (
        "layer: `second_threshold` must be given for neurons whose threshold is the membrane at rest, 0, got None. "
        "Pass one below it, or neurons that do not spike have no gradient."
    )
    assert warned(lambda: layer(8, at_rest, capacity=4)) == [text]
    assert warned(lambda: layer(8, at_rest, capacity=4, second_threshold=-0.1)) == []
    assert warned(lambda: layer(8, at_rest)) == []
    assert warned(lambda: layer(8, neurons.lif(threshold=-0.5), capacity=4)) == []
