"""Connections: shapes, what is shared by a channel, masks, and delays whose spikes are in transit between pieces."""

import dataclasses
import functools
import math

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    axonal,
    blocks,
    conv1d,
    conv2d,
    delay_spikes,
    dense,
    flatten,
    layer,
    leaky_readout,
    network,
    neurons,
    sum_pool,
)
from snnjax._types import Params, State, Stats
from snnjax.blocks.delay import DelayParams
from snnjax.blocks.linear import LinearParams
from snnjax.neurons import decay_to_raw
from tests.errors.refusals import refusals
from tests.graph.helpers import initial, random_spikes
from tests.ops.common import jit
from tests.ops.kernel_checks import needs_kernels

READOUT = leaky_readout(3)
MASK = np.random.default_rng(0).random((6, 5)) < 0.4


def test_shapes_flow_from_the_inputs_to_the_readout() -> None:
    items = [
        layer(conv2d(12, 5)),
        sum_pool(2),
        layer(conv2d(32, 5, strides=2)),
        sum_pool(2),
        flatten(),
        layer(7),
    ]
    net = network((34, 34, 2), items, READOUT)
    neurons_of = [node.name for node in net.nodes if node.block.is_spiking]
    assert [net.shapes[name] for name in neurons_of] == [(34, 34, 12), (9, 9, 32), (7,)]
    params = jax.eval_shape(net.init, jax.random.key(0))
    shapes = [params[f"layer_{index}/connection"].weights.shape for index in range(3)]
    assert shapes == [(5, 5, 2, 12), (5, 5, 12, 32), (4 * 4 * 32, 7)]
    assert net.num_inputs == 2312
    assert len(net.paths.splitlines()) == 1 and net.paths.startswith("fused: ")


def test_a_convolution_owns_biases_and_constants_one_per_channel() -> None:
    learned = {"decay": (0.5, 0.9), "threshold": (0.5, 1.0), "learn_decay": True}
    shared, own = (layer(conv1d(4, 3), neurons.lif(**learned, per=per)) for per in ("channel", "neuron"))
    params = initial(network((6, 2), [shared, own], READOUT))
    assert params["layer_0/connection"].bias.shape == params["layer_1/connection"].bias.shape == (4,)
    assert params["layer_0/neuron"].raw_decay.shape == (4,)
    assert params["layer_1/neuron"].raw_decay.shape == (24,)


def test_a_share_of_capacity_is_one_of_all_neurons_behind_a_convolution() -> None:
    net = network((6, 2), [layer(conv1d(4, 3), capacity=0.3)], READOUT)
    run = functools.partial(net.apply, state=None, inputs=jnp.ones((2, 1, 12)), record="spikes")
    out, _ = jax.eval_shape(run, jax.eval_shape(net.init, jax.random.key(0)))
    assert out.recorded["layer_0/neuron"].capacity == 8


def test_masked_weights_stay_zero_whatever_the_optimiser_writes() -> None:
    net, name = network(6, [layer(dense(5, mask=MASK))], READOUT), "layer_0/connection"
    params = initial(net)
    inputs = random_spikes(0.5, inputs=6)

    def loss(params: Params, where):
        own = params[name]
        changed = params | {name: own._replace(weights=own.weights + where)}
        return jnp.sum(net.apply(changed, None, inputs)[0].output ** 2)

    run = jit(jax.value_and_grad(loss, (0, 1)))
    value, (gradient, free) = run(params, jnp.zeros((6, 5)))
    assert bool(jnp.all((gradient[name].weights != 0) <= MASK)) and bool(jnp.any(gradient[name].weights != 0))
    changed, _ = run(params, jnp.where(MASK, 0.0, 7.0))
    chex.assert_trees_all_equal(changed, value, strict=True)
    assert bool(jnp.all(free == gradient[name].weights))


def test_masks_of_the_same_entries_are_one_and_compile_once() -> None:
    specs = [layer(dense(5, mask=MASK.copy())) for _ in range(2)]
    assert specs[0] == specs[1] and hash(specs[0]) == hash(specs[1])
    assert specs[0] != layer(dense(5, mask=~MASK))


DELAYED = network(
    6,
    [layer([axonal(4), dense(5)], neurons.lif(0.5, 0.4), recurrent=[axonal(4), dense(5)]), layer(4)],
    leaky_readout(2),
)


@pytest.mark.parametrize("lengths", [None, jnp.array([9, 4, 0], jnp.int32)])
def test_pieces_of_a_sequence_equal_the_whole_with_spikes_under_way(lengths) -> None:
    params, inputs = initial(DELAYED), random_spikes(0.4, steps=9, inputs=6)
    run = jit(lambda state, inputs, lengths: DELAYED.apply(params, state, inputs, lengths=lengths))
    state = DELAYED.initial_state(params, 3)
    whole, end = run(state, inputs, lengths)
    outputs = []
    for first in (0, 3, 6):
        own = None if lengths is None else jnp.clip(lengths - first, 0, 3)
        piece, state = run(state, inputs[first : first + 3], own)
        outputs.append(piece.output)
    chex.assert_trees_all_close(jnp.concatenate(outputs), whole.output, rtol=1e-6, atol=1e-6, strict=True)
    chex.assert_trees_all_close(state, end, rtol=1e-6, atol=1e-6, strict=True)


def test_a_spike_of_the_layer_comes_back_after_its_own_delay() -> None:
    late = axonal(4, initial=2.0, learn=False)
    connection = [late, dense(1, bias=False)]
    net = network(1, [layer(connection, neurons.lif(0.5, normalize=False), recurrent=connection)], READOUT)
    params, name = initial(net), "layer_0/neuron"
    params["layer_0/connection/dense_0"] = LinearParams(jnp.full((1, 1), 2.0))
    params["layer_0/recurrent/dense_0"] = LinearParams(jnp.full((1, 1), 3.0))
    inputs = jnp.zeros((12, 1, 1)).at[0].set(1.0)
    run = jit(functools.partial(net.apply, record="spikes"))
    spikes = run(params, None, inputs)[0].recorded[name]
    # The input arrives at 2; what it sets off comes back 1 + 2 steps later.
    assert jnp.flatnonzero(spikes.ravel())[:2].tolist() == [2, 5]


def test_the_gradient_of_delays_is_that_of_the_linear_split() -> None:
    """Of a network that is smooth in its delays: nothing spikes, so membranes are linear in what arrives."""
    quiet = neurons.lif(0.5, 1e6)
    net = network(3, [axonal(5, initial=(0.6, 4.4)), layer(3, quiet)], READOUT)
    params, inputs = initial(net), random_spikes(0.5, steps=12, inputs=3)
    with jax.enable_x64(True):
        params, inputs = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), (params, inputs))

        def loss(raw):
            changed = params | {"axonal_0": DelayParams(raw)}
            out, _ = net.apply(changed, None, inputs, record="membranes")
            return jnp.sum(out.membranes["layer_0/neuron"] ** 2)

        raw = params["axonal_0"].raw_delay
        gradient, loss = jit(jax.grad(loss))(raw), jit(loss)
        step = 1e-6
        for index in range(3):
            shift = jnp.zeros(3).at[index].set(step)
            difference = (loss(raw + shift) - loss(raw - shift)) / (2 * step)
            chex.assert_trees_all_close(gradient[index], difference, rtol=1e-5, strict=True)


def test_learnt_delays_run_rounded_as_stats_of_a_network_that_does_not_learn_them() -> None:
    learnt, fixed = (network(6, [axonal(7, learn=learn), layer(4)], READOUT) for learn in (True, False))
    params, inputs = initial(learnt), random_spikes(0.5, steps=12, inputs=6)
    held = params["axonal_0"]
    delays = [axonal(7, learn=learn).delays(held, (6,)) for learn in (True, False)]
    chex.assert_trees_all_equal(delays[1], jnp.round(delays[0]), strict=True)
    arrived, _ = delay_spikes(inputs, delays[1], max_delay=7)
    plain = network(6, [layer(4)], READOUT)
    bare = {name: own for name, own in params.items() if name != "axonal_0"}
    chex.assert_trees_all_equal(
        jit(fixed.apply)(bare, None, inputs, stats={"axonal_0": held})[0].output,
        jit(plain.apply)(bare, None, arrived)[0].output,
        strict=True,
    )


def test_delays_can_be_shared_and_fixed() -> None:
    """They are stats, which start where learned ones do."""
    key, shape = jax.random.key(0), (6, 2)
    for per, count in (("neuron", 12), ("channel", 2), ("layer", 1)):
        block, learned = axonal(7, per=per, learn=False), axonal(7, per=per)
        assert block.init(key, shape, dtype=jnp.float32) is None
        assert learned.initial_stats(key, shape) is None
        stats = block.initial_stats(key, shape)
        chex.assert_trees_all_equal(stats, learned.init(key, shape, dtype=jnp.float32), strict=True)
        assert stats is not None and stats.raw_delay.shape == (count,)
        delays = block.delays(stats, shape)
        assert delays.shape == (12,)
        chex.assert_trees_all_equal(delays, jnp.round(delays), strict=True)


def test_fixed_delays_of_a_recurrent_connection_are_stats() -> None:
    """They equal learned ones of the same numbers, whose parameters are whole delays; weight decay finds none."""
    back = ([axonal(5, learn=learn), dense(4, bias=False)] for learn in (True, False))
    learned, fixed = (network(4, [layer(4, recurrent=own)], READOUT) for own in back)
    params, stats, name = initial(fixed), fixed.initial_stats(jax.random.key(0)), "layer_0/recurrent/axonal_0"
    assert stats.keys() == {name} and name not in params
    block = next(node.block for node in fixed.nodes if node.name == name)
    steps = block.delays(stats[name], (4,))
    raw = DelayParams(decay_to_raw(jnp.clip(steps / 5, 1e-6, 1 - 1e-6)))
    full = params | {name: raw}
    inputs = random_spikes(0.5, steps=12, inputs=4)
    out, state = jit(fixed.apply)(params, None, inputs, stats=stats)
    # A learned delay is never whole: its spikes are split, 5e-6 of them a step later.
    chex.assert_trees_all_close(
        out.output, jit(learned.apply)(full, None, inputs)[0].output, rtol=1e-3, atol=1e-4, strict=True
    )
    chex.assert_trees_all_equal(out.stats, stats, strict=True)
    again, _ = jit(fixed.apply)(params, state, inputs, stats=out.stats)
    assert bool(jnp.any(again.output != out.output))


@dataclasses.dataclass(frozen=True)
class Counting(blocks.Block):
    """A block of one's own that counts its calls."""

    kind = "counting"

    def needs_all_steps(self, train: bool) -> bool:
        return False

    def initial_stats(self, key, *shapes):
        return jnp.zeros(())

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return blocks.BlockResult(signals[0], stats=stats + 1)


def test_stats_that_change_in_every_step_are_refused_in_a_recurrent_connection() -> None:
    net = network(4, [layer(4, recurrent=[Counting(), dense(4, bias=False)])], READOUT)
    params, stats = initial(net), net.initial_stats(jax.random.key(0))
    with pytest.raises(ValueError) as error:
        jax.eval_shape(lambda x: net.apply(params, None, x, stats=stats), jnp.ones((2, 1, 4)))
    assert str(error.value) == (
        "network: `layer_0/recurrent/counting_0` must keep its stats as they are, as a signal returns to it, "
        "got counting. Put it before or behind the loop."
    )


@hypothesis.given(share=st.floats(0, 1), most=st.integers(1, 2**22) | st.integers(1, 3000))
@hypothesis.example(share=0.5, most=1000)
@hypothesis.example(share=0.9, most=2**22)
def test_fixed_delays_are_those_asked_for(share: float, most: int) -> None:
    """Any integer up to the longest, in every dtype; learned ones start within a third of a step of them."""
    for steps in {0, 1, round(share * most), most - 1, most}:
        for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
            for learn in (False, True):
                spec = axonal(most, initial=float(steps), learn=learn, per="layer")
                raw = spec.init(jax.random.key(0), (2,), dtype=dtype)
                assert (raw is None) != learn and spec.initial_stats(jax.random.key(0), (2,)) is None
                found, expected = spec.delays(raw, (2,)), np.full(2, steps, np.float32)
                np.testing.assert_allclose(found, expected, rtol=0, atol=0.3 if learn else 0, strict=True)
                chex.assert_trees_all_equal(jnp.round(found), expected, strict=True)


def test_a_network_in_half_precision_keeps_long_delays() -> None:
    """A spike sent at 0 arrives after 1,999 steps of at most 2,000."""
    late = axonal(2000, initial=1999.0, learn=False)
    net = network(1, [late, layer(1, neurons.lif(0.5, 1e6))], READOUT)
    params = initial(net, dtype=jnp.bfloat16)
    inputs = jnp.zeros((2001, 1, 1), jnp.bfloat16).at[0].set(1)
    run = jit(functools.partial(net.apply, record="membranes"))
    membranes = run(params, None, inputs)[0].membranes["layer_0/neuron"]
    assert jnp.flatnonzero(membranes)[0] == 1999


SHAPE = "Pass the shape of the inputs to network, and no flatten() before."
REFUSED = {
    "conv2d: `shape` must be (height, width, channels), got (12,). " + SHAPE: lambda: network(
        12, [conv2d(4, 3)], READOUT
    ),
    "conv1d: `shape` must be (length, channels), got (12,). " + SHAPE: lambda: network(
        (4, 3, 1), [flatten(), layer(conv1d(4, 3))], READOUT
    ),
    "sum_pool: `shape` must be (height, width, channels) or (length, channels), got (12,). "
    "Pass the axes of the image, channels last.": lambda: network(12, [sum_pool(2), dense(4)], READOUT),
    "sum_pool: `window` must fit into the image, [4, 4, 1], got [5, 5]. Choose a smaller one.": lambda: (
        network((4, 4, 1), [sum_pool(5), dense(4)], READOUT)
    ),
    "conv2d: `groups` must divide the number of channels of `shape`, 3, got 2. Choose "
    "a divisor of both numbers of channels.": lambda: network((4, 4, 3), [conv2d(4, 3, groups=2)], READOUT),
    "conv2d: `channels` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: conv2d(0, 3),
    "dense: `mask` must be bool [inputs, neurons] = [any, 5], got float64[6, 5]. "
    "Compare the weights with 0, or cast it.": lambda: dense(5, mask=np.ones((6, 5))),
    "dense: `cotangent_dtype` must be bfloat16 or None, got float16. Omit it for float32.": lambda: dense(
        5, cotangent_dtype=jnp.float16
    ),
    "dense: `exact_within` must come with a `cotangent_dtype`, got 0.5. "
    "Pass cotangent_dtype=jnp.bfloat16 as well.": lambda: dense(5, exact_within=0.5),
    **{
        f"dense: `exact_within` must be a finite float32 above 0, got {wrong}. "
        "Omit it to round all cotangents.": functools.partial(
            dense, 5, cotangent_dtype=jnp.bfloat16, exact_within=wrong
        )
        for wrong in (0.0, -1.0, 1e-60, math.nan, math.inf, True)
    },
    "layer: `record_dtype` must be bfloat16 or None, got float16. Omit it for float32.": lambda: layer(
        5, record_dtype=jnp.float16
    ),
    "dense: `mask` must have 7 rows, one per input, got 6. Make it for the block before.": lambda: network(
        7, [dense(5, mask=MASK)], READOUT
    ),
    "axonal: `initial` must be a number or a range (low, high) from 0 to 3, got (2, 5). "
    "Pass delays in steps, or a longer max_delay.": lambda: axonal(3, initial=(2, 5)),
    "axonal: `initial` must be a number or a range (low, high) from 0 to 3, got [0, 2]. "
    "Pass delays in steps, or a longer max_delay.": lambda: axonal(3, initial=[0, 2]),
    "axonal: `max_delay` must be at most 4194304, up to which float32 is exact, got 4194305. "
    "Use longer steps.": lambda: axonal(2**22 + 1),
}
test_errors_say_what_is_wrong_and_a_hint = refusals(REFUSED)


@functools.cache
def gradient_of_rounded(implementation: str, **options):
    """The gradients of the weights of three layers: the second, which sends lists, and the third, which is recurrent,
    send back cotangents with these options."""
    inputs = random_spikes(0.3, batch=17, inputs=40)
    layers = [
        layer(dense(130)),
        layer(dense(100, **options), capacity=50),
        layer(dense(65, **options), recurrent=True),
    ]
    net = network(40, layers, leaky_readout(3))
    params = initial(net)

    def loss(params: Params):
        output, _ = net.apply(params, None, inputs, implementation=implementation)
        return jnp.sum(jnp.square(output.output))

    gradients = jit(jax.grad(loss))(params)
    return [gradients[f"layer_{index}/connection"].weights for index in range(3)]


def distance(gradient, exact) -> float:
    return float(jnp.linalg.norm(gradient - exact) / jnp.linalg.norm(exact))


@pytest.mark.parametrize("implementation", ["reference", pytest.param("cpu", marks=needs_kernels)])
def test_cotangents_in_bfloat16_change_the_gradient_below_by_as_much(implementation: str) -> None:
    """Terms are rounded by 2^-8 twice; so is the sum, at most, and in the norm over many numbers it is less."""
    exact = gradient_of_rounded(implementation)
    rounded = gradient_of_rounded(implementation, cotangent_dtype=jnp.bfloat16)
    chex.assert_trees_all_equal(rounded[2], exact[2], strict=True)
    for layer_below in range(2):
        assert 1e-5 < distance(rounded[layer_below], exact[layer_below]) < 2**-7


@pytest.mark.parametrize("implementation", ["reference", pytest.param("cpu", marks=needs_kernels)])
def test_cotangents_near_the_threshold_are_exact(implementation: str) -> None:
    """The nearer neurons are left exact, the more of the error goes; with all of them, what remains is float32's."""
    exact = gradient_of_rounded(implementation)

    def errors(**options) -> np.ndarray:
        found = gradient_of_rounded(implementation, cotangent_dtype=jnp.bfloat16, **options)
        return np.array([distance(*each) for each in zip(found[:2], exact[:2], strict=True)])

    rounded, near, all_of_them = errors(), errors(exact_within=0.5), errors(exact_within=1e9)
    assert np.all(all_of_them < 1e-6)
    assert np.all(near < rounded / 5)


def test_dense_weights_feed_an_image_back_as_a_flat_one() -> None:
    """What the message about ``recurrent=True`` after a convolution suggests."""
    items = conv2d(2, 3), [conv2d(2, 3), flatten()]
    nets = [network((3, 3, 1), [layer(own, recurrent=dense(18))], READOUT) for own in items]
    inputs = random_spikes(0.5, inputs=9)
    params = initial(nets[0], inputs, target_activity=0.2)
    changed = {**params, "layer_0/connection/conv2d_0": params["layer_0/connection"]}
    del changed["layer_0/connection"]
    outputs = [jit(net.apply)(own, None, inputs)[0] for net, own in zip(nets, (params, changed), strict=True)]
    assert float(outputs[0].activity["layer_0/neuron"].mean()) > 0.1
    chex.assert_trees_all_equal(outputs[0].output, outputs[1].output, strict=True)
