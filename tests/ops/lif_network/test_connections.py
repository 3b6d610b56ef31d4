"""`lif_network` with delays, convolutions and pooling: the kernels against the reference, forward and backward."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    Connection,
    LIFLayer,
    Network,
    SparseSpikes,
    Synapses,
    axonal,
    blocks,
    conv1d,
    conv2d,
    dense,
    layer,
    leaky_readout,
    lif_network,
    mean_pool,
    network,
    neurons,
    spiking_readout,
    sum_pool,
)
from snnjax._quantised import Quantised
from snnjax._types import Params, Signal, State
from snnjax.blocks.delay import DelayState
from snnjax.ops.pool_spikes import Pooling
from tests.graph.helpers import initial, with_gradients
from tests.numbers import array, assert_close
from tests.ops.common import jit
from tests.ops.kernel_checks import needs_kernels

STEPS, BATCH = 8, 3
LENGTHS = jnp.array([8, 3, 0], jnp.int32)
LEARNED = neurons.lif((0.5, 0.9), learn_decay=True, learn_threshold=True)
EAGER = neurons.lif(0.5, 0.2)
ZERO = neurons.lif(0.8, reset="zero", detach_reset=False, surrogate="arctan")


class Given(NamedTuple):
    """A network, and its arguments."""

    net: Network
    rate: float = 0.2
    options: Mapping[str, Any] = MappingProxyType({})
    lists: bool = False
    dtype: Any = jnp.float32


CASES = {
    "one convolution, values that are no spikes": Given(
        network((8, 8, 2), [layer(conv2d(4, 3), LEARNED)], leaky_readout(3)), rate=0.9
    ),
    "strides and pools, down to the readout": Given(
        network(
            (8, 8, 2),
            [
                layer(conv2d(4, 3), ZERO),
                sum_pool(2),
                layer(conv2d(6, 3, strides=2), neurons.adlif(learn_decay=True)),
                mean_pool(2),
            ],
            leaky_readout(3, learn_decay=True),
        )
    ),
    "events, lists and dense recurrent layers": Given(
        network(
            (8, 8, 2),
            [sum_pool(2), layer(conv2d(4, 3), LEARNED, capacity=0.3), layer(16, LEARNED, recurrent=True)],
            leaky_readout(3),
        ),
        options={"lengths": LENGTHS},
        lists=True,
    ),
    "groups, odd sizes, pools that leave edges": Given(
        network(
            (9, 7, 2),
            [
                layer(conv2d(4, 3, groups=2, padding="valid"), LEARNED, capacity=0.5),
                sum_pool(2),
                layer(conv2d(4, 3, groups=2, strides=(2, 1)), LEARNED, capacity=0.3),
            ],
            spiking_readout(3),
        ),
        options={"record": "spikes"},
        lists=True,
    ),
    "one dimension, constants one per neuron": Given(
        network(
            (40, 3),
            [
                layer(conv1d(24, 5, strides=2), LEARNED),
                mean_pool(3),
                layer(conv1d(5, 2), neurons.lif(per="neuron", learn_decay=True)),
            ],
            leaky_readout(3),
        ),
        options={"lengths": LENGTHS, "chunk": 4},
    ),
    "several tiles of columns, full rows": Given(
        network(
            (20, 20, 2), [layer(conv2d(8, 3), capacity=500), layer(conv2d(4, 2), LEARNED)], leaky_readout(3)
        ),
        rate=0.7,
    ),
    "dilated and transposed, of lists and of many spikes": Given(
        network(
            (9, 7, 2),
            [
                layer(conv2d(4, 3, dilation=(2, 1)), LEARNED, capacity=0.5),
                layer(conv2d(6, 3, strides=2, dilation=2), LEARNED),
                layer(blocks.conv2d_transpose(4, (3, 2), strides=2), LEARNED, capacity=0.3),
                sum_pool(2),
            ],
            leaky_readout(3),
        ),
        rate=0.4,
        lists=True,
    ),
    "delays of values, of lists and of spikes, shared and fixed": Given(
        network(
            70,
            [
                layer([axonal(4), dense(70)], LEARNED),
                layer([axonal(3, per="layer"), dense(20)], EAGER, capacity=0.5),
                layer([axonal(12, initial=(0, 2), learn=False), dense(9)], EAGER),
            ],
            leaky_readout(3),
        ),
        rate=0.5,
        options={"lengths": LENGTHS, "record": "spikes"},
    ),
    "delays in front of pools, convolutions and many spikes": Given(
        network(
            (8, 8, 2),
            [
                layer([axonal(3, per="channel"), conv2d(4, 3)], LEARNED),
                sum_pool(2),
                layer([axonal(2), conv2d(4, 3)]),
                layer([axonal(2), dense(8)], LEARNED),
            ],
            leaky_readout(3),
        ),
        rate=0.5,
        lists=True,
    ),
    "delays in bfloat16": Given(
        network(30, [layer([axonal(3), dense(40)], LEARNED), layer([axonal(2), dense(8)])], leaky_readout(3)),
        options={"lengths": LENGTHS, "chunk": 4},
        dtype=jnp.bfloat16,
    ),
    "bfloat16": Given(
        network(
            (9, 9, 2), [layer(conv2d(9, 3), LEARNED), sum_pool(2), layer(conv2d(6, 3))], leaky_readout(3)
        ),
        dtype=jnp.bfloat16,
    ),
}


def inputs_of(given: Given):
    rng = np.random.default_rng(0)
    shape = (STEPS, BATCH, given.net.num_inputs)
    rows = jnp.asarray((rng.random(shape) < given.rate) * rng.integers(1, 3, shape), given.dtype)
    return SparseSpikes.from_dense((rows > 0).astype(given.dtype), 50) if given.lists else rows


def under_way(state: State):
    """A state in which something was sent to the layers behind delays."""
    rng = np.random.default_rng(1)
    return {
        name: DelayState(array(rng.random(own.pending.shape) < 0.3, own.pending.dtype))
        if isinstance(own, DelayState)
        else own
        for name, own in state.items()
    }


@needs_kernels
@pytest.mark.parametrize("name", CASES)
def test_kernels_equal_the_reference(name: str) -> None:
    given = CASES[name]
    params, inputs = initial(given.net, dtype=given.dtype), inputs_of(given)
    stats = given.net.initial_stats(jax.random.key(0))

    def run(implementation: str):
        def apply(params: Params, state: State, inputs: Signal):
            options = {"stats": stats, "implementation": implementation, **given.options}
            return given.net.apply(params, state, inputs, **options)

        state = under_way(given.net.initial_state(params, BATCH, stats))
        return jit(with_gradients(apply))(params, state, inputs)

    (ours, ours_gradients), (theirs, theirs_gradients) = run("cpu"), run("reference")
    assert all(float(jnp.sum(each)) > 0 for each in ours[0].activity.values())
    # Sums in another order. In bfloat16 results are rounded at last, and the reference rounds cotangents layer by
    # layer, to 8 bits each.
    is_rounded = given.dtype == jnp.bfloat16
    assert_close(ours, theirs, of_largest=2e-2 if is_rounded else 1e-5)
    assert_close(ours_gradients, theirs_gradients, of_largest=8e-2 if is_rounded else 1e-5)


@needs_kernels
def test_inputs_that_are_not_finite_reach_the_patches_of_their_own_alone() -> None:
    net = network((6, 6, 1), [layer(conv2d(2, 3))], leaky_readout(3))
    params = initial(net)
    name, neuron = "layer_0/connection", "layer_0/neuron"
    params |= {name: params[name]._replace(weights=params[name].weights.at[0, 0].set(jnp.inf))}
    spikes = jnp.zeros((1, 1, 36)).at[0, 0, 35].set(1.0)  # the last pixel, whose patch has this tap outside
    for implementation in ("cpu", "reference"):
        out, state = net.apply(params, None, spikes, implementation=implementation)
        finite = jnp.isfinite(state[neuron].v).reshape(6, 6, 2)
        assert bool(jnp.all(finite)) and bool(jnp.all(out.activity[neuron] <= 1))
        middle = jnp.zeros((1, 1, 36)).at[0, 0, 14].set(1.0)
        _, state = net.apply(params, None, middle, implementation=implementation)
        reached = ~jnp.isfinite(state[neuron].v).reshape(6, 6, 2)
        assert np.argwhere(np.asarray(reached[..., 0])).tolist() == [[3, 3]]


@needs_kernels
def test_the_kernels_say_what_they_cannot_take() -> None:
    product = conv2d(2, 3).op((4, 4, 1))
    own = LIFLayer(jnp.zeros((3, 3, 1, 2)), 0.5, recurrent=jnp.zeros((32, 32)), connection=product.connection)
    with pytest.raises(ValueError, match="got 'cpu'") as caught:
        lif_network(jnp.zeros((2, 1, 16)), [own], implementation="cpu")
    expected = "be None or 'reference' for recurrent layers after a convolution"
    assert expected in str(caught.value)


def test_only_sums_and_means_of_adjacent_windows_are_pooled() -> None:
    refused = ((1, 1), "sum", "sums over 2x2 every 1x1"), ((2, 2), "max", "maxima over 2x2")
    for strides, how, words in refused:
        pooling = Pooling((4, 4, 1), (2, 2), strides, how, ((0, 0), (0, 0)))
        connection = Connection(pooling)
        own = LIFLayer(jnp.zeros((pooling.num_outputs, 3)), 0.5, connection=connection)
        text = (
            "lif_network: `layers[0].connection` must pool adjacent windows by sum or mean, "
            f"got {words}. Call pool_spikes before."
        )
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            lif_network(jnp.zeros((2, 1, 16)), [own])


@pytest.mark.parametrize(
    "field, value, expected",
    [
        ("max_delay", -3, "be an integer of at least 0, got -3. Pass 0 or more."),
        ("pooling", 2, "be a Pooling or None, got 2. Leave it out."),
        ("convolution", 3, "be a Convolution or None, got 3. Leave it out."),
        ("rounds_cotangents", 1, "be True or False, got 1. Choose one of these."),
        ("exact_within", float("nan"), "be a finite number of at least 0, got nan. Leave it out."),
    ],
)
def test_a_wrong_field_of_a_connection_is_refused(field: str, value: object, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        Connection(**{field: value})
    assert str(caught.value) == f"Connection: `{field}` must {expected}"


SYNAPSES = Synapses.from_mask(np.ones((3, 3), bool))


@pytest.mark.parametrize(
    "field, weights, synapses, message",
    [
        (
            "recurrent",
            jnp.zeros(2),
            SYNAPSES,
            "have shape [synapses] = [9], got [2]. Match its shape to the layer below and to its neurons.",
        ),
        (
            "recurrent_synapses",
            None,
            SYNAPSES,
            "be given with `recurrent` weights, got Synapses alone. Give both or neither.",
        ),
        (
            "recurrent_synapses",
            jnp.zeros(9),
            jnp.zeros(9),
            "be Synapses, got float32[9]. Make them with Synapses.from_mask, for instance.",
        ),
        (
            "recurrent_synapses",
            jnp.zeros(2),
            Synapses.from_mask(np.ones((2, 4), bool)),
            "lead from 3 neurons to as many, got 2 and 4. Make them for this layer.",
        ),
    ],
)
def test_wrong_recurrent_synapses_are_refused(field: str, weights, synapses, message: str) -> None:
    layer = LIFLayer(jnp.zeros((4, 3)), decay=0.5, recurrent=weights, recurrent_synapses=synapses)
    with pytest.raises(ValueError) as caught:
        lif_network(jnp.zeros((5, 2, 4)), [layer])
    assert str(caught.value) == f"lif_network: `layers[0].{field}` must {message}"


GIVEN = "be given with `recurrent` weights and a `max_delay` of `recurrent_connection`, or be None, got"


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"recurrent": None}, f"{GIVEN} delays alone. Give delays of neurons or of synapses."),
        (
            {"recurrent_delays": 0.5},
            f"{GIVEN} `recurrent_delays` too. Give delays of neurons or of synapses.",
        ),
        (
            {"synaptic_delays": jnp.zeros(3)},
            "have shape [neurons, neurons] = [3, 3], got [3]. Pass one for each weight.",
        ),
        (
            {"recurrent": Quantised(jnp.zeros((3, 3), jnp.int8), jnp.ones(3))},
            "be None with weights of 8 bits, got delays. Pass quantisation.dequantise(weights).",
        ),
    ],
)
def test_wrong_delays_of_recurrent_synapses_are_refused(changed: dict[str, Any], message: str) -> None:
    square = jnp.zeros((3, 3))
    connection = Connection(max_delay=2)
    layer = LIFLayer(
        jnp.zeros((4, 3)), 0.5, recurrent=square, recurrent_connection=connection, synaptic_delays=square
    )
    with pytest.raises(ValueError) as caught:
        lif_network(jnp.zeros((5, 2, 4)), [layer._replace(**changed)])
    assert str(caught.value) == f"lif_network: `layers[0].synaptic_delays` must {message}"
