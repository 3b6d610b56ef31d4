"""The contents of specifications, and every error message of networks."""

import dataclasses
import functools
import pickle
import re
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    Network,
    axonal,
    conv2d,
    dense,
    flatten,
    layer,
    leaky_readout,
    network,
    neurons,
    parallel,
    residual,
    sequential,
    spiking_readout,
    surrogates,
)
from snnjax._types import Signal
from snnjax.blocks import Block, join, spiking
from tests.errors.refusals import refusals
from tests.graph.helpers import initial

NET = network(4, [layer(3, neurons.lif(), recurrent=True)], leaky_readout(2))
PARAMS = initial(NET)
X = jnp.zeros((5, 2, 4))
STATE = NET.initial_state(PARAMS, 2)
SLOTS = "Pass a whole number of slots, or None for the full gradient."
AXES = "Time comes first; add a missing batch axis with inputs[:, None]."
MADE = "Make them with snnjax.layer(...), snnjax.blocks or snnjax.neurons."
CALLED = "Call one of snnjax.neurons, as in neurons.lif()."
ATTACHED = dataclasses.replace(
    neurons.refractory(neurons.lif(detach_reset=False), 1), surrogate=surrogates.boxcar()
)
RECORD = "Print [node.name for node in network.nodes]."
ONE_OF = "must be True or False, got 'yes'. Choose one of these."
FIRST = "Is the batch axis first? Time comes first: swap the two with jnp.swapaxes(x, 0, 1)."
LEARN = "Try 0.05, one spike per neuron in 20 steps."

NAMED = layer(8).named("a")


class Counted(Block):
    """A block of one's own that says how many neurons it has, not in what shape."""

    kind = "counted"

    def out_shape(self, *shapes):
        return shapes[0][0]


REFUSED = {
    "network.apply: `state` must be a dict by block or None, got an array. "
    "Write network.apply(params, None, inputs) to start from rest.": lambda: NET.apply(PARAMS, X, X),
    f"network.apply: `record` must hold 'spikes', 'membranes' or names of blocks, got 3. {RECORD}": lambda: (
        NET.apply(PARAMS, STATE, X, record=3)
    ),
    "network.apply: `inputs` must hold real numbers, got complex64. "
    "Pass its real part or absolute value.": lambda: NET.apply(PARAMS, STATE, X.astype(jnp.complex64)),
    "network.init: `key` must be a PRNG key, got 0. Make one with jax.random.key(0).": lambda: NET.init(0),
    "network.init: `dtype` must be floating-point, got int32. Pass jnp.float32 or jnp.bfloat16.": lambda: (
        NET.init(jax.random.key(0), dtype=jnp.int32)
    ),
    "layer: `connection` must be a number of neurons, or weights such as dense(...) and conv2d(...), got '64'. "
    "Pass an int.": lambda: layer("64"),
    "layer: `connection` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: layer(0),
    **{
        f"layer: `capacity` must be an integer of at least 1, got {capacity}. "
        "Pass 1 or more.": functools.partial(layer, 3, capacity=capacity)
        for capacity in (-1, 0)
    },
    f"network.apply: `record` must hold 'spikes', 'membranes' or names of blocks, got 'both'. {RECORD}": lambda: (
        NET.apply(PARAMS, STATE, X, record="both")
    ),
    "network: `network` must be run by its function `apply`, got a call of itself. "
    "Write network.apply(params, state, inputs).": lambda: NET(PARAMS, STATE, X),
    f"dense: `bias` {ONE_OF}": lambda: dense(3, bias="yes"),
    f"axonal: `learn` {ONE_OF}": lambda: axonal(3, learn="yes"),
    "layer: `recurrent` must be a connection for neurons of the shape (6, 6, 4), got True. Write "
    "recurrent=conv2d(4, "
    "3), or dense(144) for all pairs.": lambda: network((6, 6, 1), [layer(conv2d(4, 3), recurrent=True)]),
    "layer: `recurrent` must lead back to the [6, 6, 4] neurons, got [6, 6, 3]. Feed "
    "back as many channels, 4.": lambda: network((6, 6, 1), [layer(conv2d(4, 3), recurrent=conv2d(3, 3))]),
    "layer: `recurrent` must be a connection, or True for dense weights, got 'conv'. "
    "Write recurrent=dense(...) or conv2d(...).": lambda: layer(4, recurrent="conv"),
    "network.apply: `lengths` must be between 0 and 5, got 6. "
    "Pass the number of steps of each sequence.": lambda: NET.apply(PARAMS, STATE, X, lengths=[5, 6]),
    "network.init: `lengths` must be between 0 and 5, got -1. "
    "Pass the number of steps of each sequence.": lambda: NET.init(jax.random.key(0), X, lengths=[-1, 5]),
    f"network.apply: `lengths` must have shape [batch] = [2], got [5]. {FIRST}": lambda: NET.apply(
        PARAMS, None, X, lengths=[5, 5, 5, 5, 5]
    ),
    "network.apply: `state['layer_0/late'].sent` must be float32[1, 2, 3], got float32[1, 5, 3]. "
    "Make it with initial_state of this network.": lambda: NET.apply(PARAMS, NET.initial_state(PARAMS, 5), X),
    f"layer: `capacity` must be a fraction between 0 and 1 or an integer, got 1.0. {SLOTS}": lambda: layer(
        3, capacity=1.0
    ),
    "leaky_readout: `connection` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: (
        leaky_readout(0)
    ),
    "spiking_readout: `connection` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: (
        spiking_readout(0)
    ),
    "network: `inputs` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: network(
        -1, [layer(3)], leaky_readout(2)
    ),
    f"network: `blocks` must hold blocks, neurons and layers, got 8. {MADE}": lambda: network(
        4, [8], leaky_readout(2)
    ),
    "network: `blocks` must be a sequence of blocks, got 8. Write [snnjax.layer(...)].": lambda: network(
        4, 8, leaky_readout(2)
    ),
    f"network: `readout` must hold blocks, neurons and layers, got 2. {MADE}": lambda: network(
        4, [layer(3)], 2
    ),
    f"residual: `body` must hold blocks, neurons and layers, got 8. {MADE}": lambda: residual(8),
    f"residual: `shortcut` must hold blocks, neurons and layers, got 8. {MADE}": lambda: residual(
        [layer(4)], 8
    ),
    f"parallel: `slow` must hold blocks, neurons and layers, got 8. {MADE}": lambda: parallel(
        fast=layer(8), slow=[layer(8), 8]
    ),
    f"sequential: `items` must hold blocks, neurons and layers, got the function lif. {MADE}": lambda: (
        sequential(layer(8), neurons.lif)
    ),
    f"leaky_readout: `connection` must hold blocks, neurons and layers, got 3. {MADE}": lambda: leaky_readout(
        [3]
    ),
    "layer: `dropout` must be a block or None, got 0.5. Write dropout=blocks.dropout(0.5).": lambda: layer(
        4, dropout=0.5
    ),
    "layer: `norm` must be a block or None, got 'batch'. Write norm=blocks.batch_norm().": lambda: layer(
        4, norm="batch"
    ),
    "spiking: `capacity` must be at most 3, the number of neurons, got 4. "
    "Pass a fraction such as 0.1, or None for the full gradient.": lambda: network(4, [layer(3, capacity=4)]),
    "network: `readout` must be one readout, or several by name, got one behind another. "
    "Pass a dict of them.": lambda: network(8, [layer(6)], [leaky_readout(3), leaky_readout(2)]),
    "network: `readout` must hold one or more by name, got an empty dict. Name them.": lambda: network(
        8, [layer(6)], {}
    ),
    "network: `inputs` must hold one or more by name, got an empty dict. Name them.": lambda: network({}, []),
    **{
        f"network: `{name}` must receive two or more different signals, got {got}. "
        "Put blocks into its branches, or name its sources.": lambda item=item: network(
            8, [layer(8).named("a"), item]
        )
        for item, name, got in (
            (residual([]), "residual_0/join", "'a/neuron' and 'a/neuron'"),
            (parallel(a=None, b=[[]], join="add"), "parallel_0/join", "'a/neuron' and 'a/neuron'"),
            (join("add"), "add_0", "'a/neuron'"),
            (join("multiply").receiving("a"), "multiply_0", "'a/neuron'"),
            (join("concatenate").receiving("a", "a"), "concatenate_0", "'a/neuron' and 'a/neuron'"),
            (join("add").receiving(), "add_0", "none"),
        )
    },
    **{
        f"{make.__name__}: `connection` must be a number of neurons, or weights such as dense(...) and "
        f"conv2d(...), got {got}. Pass an int.": lambda make=make, connection=connection: make(connection)
        for make, connection, got in (
            (layer, [], "[]"),
            (leaky_readout, (), "()"),
            (layer, NAMED, "Layer(name='a', source=None, connection=Dense(name=None, sou..."),
            (spiking_readout, [NAMED], "[Layer(name='a', source=None, connection=Dense(name=None, so..."),
            (layer, sequential(), "Sequential(name=None, source=None, items=())"),
        )
    },
    "layer: `recurrent` must be a connection, or True for dense weights, got []. "
    "Write recurrent=dense(...) or conv2d(...).": lambda: layer(4, recurrent=[]),
    "network: `counted_0.out_shape` must return a tuple of integers, got 8. "
    "Write (8,) for 8 neurons.": lambda: network(8, [Counted()]),
    f"layer: `neuron` must be a Neuron, got the function lif. {CALLED}": lambda: layer(4, neurons.lif),
    f"layer: `neuron` must be a Neuron, got a Network. {CALLED}": lambda: layer(4, network(4, [NAMED])),
    f"spiking_readout: `neuron` must be a Neuron, got 'lif'. {CALLED}": lambda: spiking_readout(4, "lif"),
    "layer: `neuron` must be a spiking neuron, got leaky_integrator. Use it "
    "as the readout, snnjax.leaky_readout, or choose another.": lambda: layer(4, neurons.leaky_integrator()),
    f"layer: `neuron.surrogate` must equal that of its reset or adaptation, {surrogates.superspike()}, "
    f"got {surrogates.boxcar()}. Pass surrogate=... to the function that makes the neuron.": lambda: layer(
        4, ATTACHED
    ),
    "network.init: `lengths` must have shape [batch] = [2], got [3]. Pass the number "
    "of steps of each sequence.": lambda: NET.init(jax.random.key(0), X, lengths=jnp.zeros(3, jnp.int32)),
    "network.apply: `record` must hold 'spikes', 'membranes' or names of blocks, got 'voltage'. "
    f"{RECORD}": lambda: NET.apply(PARAMS, STATE, X, record=("spikes", "voltage")),
    "network.apply: `implementation` must be None or 'reference' where membranes are recorded, got 'cpu'. "
    "Leave it None.": lambda: NET.apply(PARAMS, STATE, X, record="membranes", implementation="cpu"),
    "network.init: `inputs` must have shape [time, batch, inputs] = [any, any, 4], got [5, 2, 3]. "
    f"{AXES}": lambda: NET.init(jax.random.key(0), X[..., :3]),
    f"network.init: `target_activity` must be between 0 and 1, got 1.5. {LEARN}": lambda: NET.init(
        jax.random.key(0), X, target_activity=1.5
    ),
    "network.init: `inputs` must be given with target_activity, got None. Pass a batch of samples.": lambda: (
        NET.init(jax.random.key(0), target_activity=0.2)
    ),
    "network.init: `inputs` must be given with lengths, got None. Pass a batch of samples.": lambda: NET.init(
        jax.random.key(0), lengths=jnp.full(2, 5)
    ),
    "network.initial_state: `batch` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: (
        NET.initial_state(PARAMS, -1)
    ),
    f"network.apply: `inputs` must have shape [time, batch, inputs] = [any, any, 4], got [5, 4]. {AXES}": lambda: (
        NET.apply(PARAMS, STATE, X[:, 0])
    ),
    "network.apply: `state['layer_0/late'].sent` must be float32[1, 1, 3], got float32[1, 2, 3]. "
    "Make it with initial_state of this network.": lambda: NET.apply(PARAMS, STATE, X[:, :1]),
    "network.apply: `chunk` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: NET.apply(
        PARAMS, STATE, X, chunk=0
    ),
    "network.apply: `second_threshold` must be for layers with a capacity, got one for 'layer_0'. Choose "
    "a capacity for a layer first.": lambda: NET.apply(PARAMS, STATE, X, second_threshold={"layer_0": 0.5}),
    "network: `name` must be given once, got 'a' twice. Choose another one.": lambda: network(
        4, [layer(3).named("a"), layer(3).named("a")]
    ),
    "network: `name` must be a word without a slash, got 'a/b'. Choose another.": lambda: network(
        4, [layer(3).named("a/b")]
    ),
    "network: `source` must be the name of an input or an earlier block, got 'nowhere'. "
    "Choose input.": lambda: network(4, [layer(3).receiving("nowhere")]),
    "network.apply: `lengths` must have shape [batch] = [2], got [3]. Pass the "
    "number of steps of each sequence.": lambda: NET.apply(PARAMS, STATE, X, lengths=jnp.zeros(3, jnp.int32)),
}
REFUSED_TOO = {
    "network: `readout` must be one readout, or several by name, got one behind another. "
    "Pass a dict of them.": lambda: network(8, [leaky_readout(3)], {"a": leaky_readout(2)}),
    "network: `residual_0/join` must receive two or more different signals, got 'a/neuron' and 'a/neuron'. "
    "Put blocks into its branches, or name its sources.": lambda: network(
        8, [layer(8).named("a"), residual(network(8, []), join="either")]
    ),
}
test_errors_say_what_is_wrong_and_a_hint = refusals(REFUSED, REFUSED_TOO)


def test_a_share_of_the_width_is_rounded_up_to_slots() -> None:
    assert [spiking(capacity=c).slots((512,)) for c in (0.1, 0.001, 7, None)] == [52, 1, 7, None]


def test_a_share_is_a_float_of_numpy_too() -> None:
    for width, slots in ((10, 1), (30, 3), (1000, 100)):
        assert spiking(capacity=np.float32(0.1)).slots((width,)) == slots
    for hundredths in range(1, 100):
        assert spiking(capacity=hundredths / 100).slots((100,)) == hundredths
    assert spiking(capacity=1e-7).slots((100,)) == 1
    assert layer(30, capacity=np.int64(3)) == layer(30, capacity=3)


def test_lengths_beyond_the_steps_are_all_steps_inside_jit() -> None:
    def apply(lengths):
        return NET.apply(PARAMS, STATE, X + 1, lengths=lengths)

    beyond, within = (jax.jit(apply)(jnp.array([n, 2])) for n in (9, 5))
    chex.assert_trees_all_equal(beyond, within, strict=True)


@pytest.mark.parametrize("inputs", [np.full((5, 2, 4), 255, np.uint8), jnp.full((5, 2, 4), 255.0)])
def test_init_warns_of_the_bytes_of_images(inputs: Signal) -> None:
    text = (
        "network.init: `inputs` must be spikes or currents of at most 64, got values up to 255. "
        "Divide the bytes of images by 255, and clip counts of events."
    )
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(text)}$"):
        NET.init(jax.random.key(0), inputs)


def test_a_spiking_readout_is_the_last_layer_and_fully_listed() -> None:
    net = network(4, [layer(3, capacity=1)], spiking_readout(2))
    assert [node.block.slots((3,)) for node in net.nodes if node.block.is_spiking] == [1, None]
    assert net.num_outputs == 2


def convolutional() -> Network:
    mask = np.eye(18, 3, dtype=bool)
    layers = [
        layer(conv2d(2, 2), neurons.adlif(decay=(0.6, 0.9))),
        flatten(),
        layer(dense(3, mask=mask)),
    ]
    return network((3, 3, 1), layers, leaky_readout(2))


@pytest.mark.parametrize(
    "make",
    [lambda: network(4, [axonal(5), layer(3, capacity=2)], spiking_readout(2)), convolutional],
)
def test_equal_calls_make_equal_networks(make: Callable[[], Network]) -> None:
    """So that a function with a network as static argument is compiled once, in another process too."""
    net, again = make(), pickle.loads(pickle.dumps(make()))
    assert net == again
    compiled = jax.jit(lambda network, params: network.initial_state(params, 2), static_argnums=0)
    for each in (net, again):
        compiled(each, initial(net))
    assert compiled._cache_size() == 1
    assert net != dataclasses.replace(net, nodes=net.nodes[1:])
