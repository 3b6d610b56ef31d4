"""Conversion to the integers of a chip: scales and decays by hand, bits of `run` and `apply`, gradients, refusals."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import blocks, fixed_point, losses, neurons, train
from snnjax.data import Batch
from snnjax.fixed_point import LAVA_LOIHI, SPECK, XYLO, Membranes
from snnjax.fixed_point._derivative import train_layer
from snnjax.fixed_point._network import LayerState
from snnjax.fixed_point._quantise import quantised_layer
from snnjax.graph.layers import layers_of

CHIPS = {"xylo": XYLO, "lava": LAVA_LOIHI}
TIME, BATCH, INPUTS = 20, 3, 6


def make_net(chip, recurrent=False, **options):
    """A network that the chip has."""
    neuron = neurons.current_lif(0.9, 1.0, 0.7, reset=chip.reset, **options)
    layers = [snnjax.layer(8, neuron, recurrent=recurrent).named("a"), snnjax.layer(5, neuron).named("b")]
    return snnjax.network(INPUTS, layers, snnjax.leaky_readout(4))


def make_params(net, size=2.0):
    """Parameters with larger weights and biases that are not 0."""
    params = net.init(jax.random.key(0))
    return jax.tree.map(lambda own: size * own if own.ndim > 1 else own + 0.1, params)


def make_spikes(chip, rate=0.4):
    counts = np.random.default_rng(1).poisson(rate, (TIME, BATCH, INPUTS))
    return counts.clip(0, chip.max_input).astype(np.uint8)


def test_numbers_by_hand_on_xylo():
    neuron = neurons.current_lif(0.75, 1.0, 0.5)
    net = snnjax.network(2, [snnjax.layer(1, neuron)], snnjax.leaky_readout(1, decay=0.75))
    params = jax.tree.map(jnp.zeros_like, net.init(jax.random.key(0)))
    weights = jnp.array([[1.0], [-0.5]])
    params["layer_0/connection"] = params["layer_0/connection"]._replace(
        weights=weights, bias=jnp.array([0.25])
    )
    whole, report = fixed_point.convert(net, params, XYLO)
    hidden = whole.layers[0]
    assert hidden.weights[0].tolist() == [[127], [-64]]  # 127 is a weight of 1
    # A constant input x becomes the current x 127 b / (1 - b) = 127 x, and the membrane 127 x / (1 - a) = 508 x.
    assert hidden.unit.tolist() == [508.0]
    assert hidden.neurons.threshold.tolist() == [509]  # v > 508
    assert hidden.neurons.bias.tolist() == [32]  # 0.25 * 127
    assert (hidden.neurons.decay.tolist(), hidden.neurons.synapse_decay.tolist()) == ([2], [[1]])
    assert whole.layers[1].neurons.synapse_decay.tolist() == [[1]]  # the fastest one there is
    assert str(report).splitlines()[0] == (
        "layer_0/neuron: decay 0.75 -> 0.75, synapse 0.5 -> 0.5, 1 weight = 127"
    )


@pytest.mark.parametrize("chip", CHIPS.values(), ids=CHIPS)
@pytest.mark.parametrize("recurrent", [False, True])
def test_run_is_apply_to_the_bit(chip, recurrent):
    net, lengths = make_net(chip, recurrent), jnp.array([TIME, 11, 0])
    params, spikes = make_params(net), make_spikes(chip)
    whole, _ = fixed_point.convert(net, params, chip)
    ran, state = fixed_point.run(whole, spikes, lengths=lengths, record=("spikes", "membranes"))
    ours, after = fixed_point.apply(
        net, params, chip, spikes, lengths=lengths, record=("spikes", "membranes")
    )
    assert all(np.array_equal(ours.membranes[name], own) for name, own in ran.membranes.items())
    assert all(np.array_equal(own, ran.spikes[name]) for name, own in ours.recorded.items())
    assert all(own.sum() > 0 for own in ours.recorded.values())
    jax.tree.map(np.testing.assert_array_equal, state, after)
    real = np.float32(ran.output) / np.asarray(whole.layers[-1].unit)
    np.testing.assert_allclose(ours.output, real, rtol=1e-6)
    assert not np.diff(np.asarray(ran.membranes["a/neuron"])[10:, 1], axis=0).any()  # after the end
    # In two parts that carry their state.
    first, middle = fixed_point.run(whole, spikes[:10])
    second, _ = fixed_point.run(whole, spikes[10:], middle)
    assert np.array_equal(jnp.concatenate([first.output, second.output])[:, 0], ran.output[:, 0])


@pytest.mark.parametrize("rate", [0.5, 15.0])
def test_order_of_sources_is_that_of_the_chip(rate):
    """All sources of a step at once are the chip's unless a current comes to its bounds; then they are not."""
    rng = np.random.default_rng(0)
    neurons_ = fixed_point.Neurons(
        *(jnp.full(shape, own) for shape, own in (((9,), 500), ((9,), 3), ((1, 9), 6), ((9,), 0)))
    )
    weights = {
        "weights": rng.integers(-127, 128, (1, 40, 9)),
        "recurrent": rng.integers(-127, 128, (1, 9, 9)),
    }
    held = {name: jnp.asarray(own, jnp.int8) for name, own in weights.items()}
    layer = fixed_point.IntegerLayer(**held, neurons=neurons_, unit=jnp.ones(9), name="a")
    spikes = rng.poisson(rate, (TIME, 2, 40)).clip(0, 15)
    ends = []
    for each_source in (True, False):
        chip = dataclasses.replace(XYLO, each_source=each_source)
        net = fixed_point.IntegerNetwork(layers=(layer, layer), chip=chip, spiking_output=False)
        net = dataclasses.replace(net, layers=(layer,))
        ends.append(fixed_point.run(net, spikes, record=("currents",))[0].currents["a"])
    assert np.array_equal(*ends) == (rate < 1)
    by_hand = np.zeros((2, 9), int)
    for source in range(40):
        by_hand = np.clip(by_hand + spikes[0, :, source, None] * weights["weights"][0, source], -32768, 32767)
    lost = by_hand >> 6
    by_hand -= np.where((by_hand > 0) & (lost == 0), 1, lost)
    assert np.array_equal(ends[0][0, 0], by_hand)


def straight(value, smooth):
    return jax.lax.stop_gradient(value - smooth) + smooth


def stepped(chip, rule, real, spikes, found):
    """The spikes and membranes that a layer `found`, with the derivative of the real step by JAX."""
    seen, state, fired = [], jnp.zeros(found.current[0].shape), jnp.zeros_like(found.spikes[0])
    v, power, unit = fired, 2.0 ** (chip.input_shift + chip.weight_shift), real.unit[None]
    for t, row in enumerate(spikes):
        x = power * (row @ real.weights[0] + fired @ real.recurrent[0])[None]
        kept = real.synapse_decay[:, None]
        smooth = kept * (state + x) if chip.input_first else kept * state + x
        state = straight(found.current[t].astype(jnp.float32), smooth)
        membrane = real.decay[None] * v + state[0] + real.bias[None]
        fired = straight(
            found.spikes[t], snnjax.spike(membrane / unit - real.threshold[None], rule.surrogate)
        )
        lost = jax.lax.stop_gradient(fired) if rule.detach_reset else fired
        after = membrane - lost * unit * real.threshold[None] if chip is XYLO else membrane * (1 - lost)
        v = straight(found.v[t], after)
        seen.append((fired, v))
    return seen


@pytest.mark.parametrize("chip", CHIPS.values(), ids=CHIPS)
@pytest.mark.parametrize("detach_reset", [True, False])
def test_gradients_are_those_of_the_real_step(chip, detach_reset):
    net = make_net(chip, recurrent=True, detach_reset=detach_reset)
    own = quantised_layer(chip, layers_of("test", net)[0], make_params(net), {})
    spikes = jnp.asarray(make_spikes(chip)[:6], jnp.float32)
    size = (BATCH, 8)
    rest = Membranes(jnp.zeros(size, jnp.int32), jnp.zeros((1, *size), jnp.int32))
    start = LayerState(rest, None, jnp.zeros(size))
    weights = jax.random.normal(jax.random.key(3), (2, 6, *size))

    def ours(real):
        found, _ = train_layer((chip, own.rule), real, spikes, (own.layer, start, None))
        return jnp.sum(weights[0] * found.spikes + weights[1] * found.v / 100), found

    def theirs(real, found):
        seen = stepped(chip, own.rule, real, spikes, found)
        return sum(jnp.sum(weights[0, t] * s + weights[1, t] * v / 100) for t, (s, v) in enumerate(seen))

    gradients, found = jax.jit(jax.grad(ours, has_aux=True))(own.real)
    expected = jax.jit(jax.grad(theirs))(own.real, found)
    assert found.spikes.sum() > 0
    for name in ("weights", "recurrent", "threshold", "bias"):
        ideal = np.asarray(getattr(expected, name))
        np.testing.assert_allclose(getattr(gradients, name), ideal, rtol=1e-3, atol=1e-4 * abs(ideal).max())


def test_a_network_on_a_chip_trains():
    net = chain(snnjax.layer(8, neurons.current_lif(0.9, 1.0, 0.7)))
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 48)
    inputs = (rng.random((TIME, 48, INPUTS)) < np.eye(6)[labels] * 0.5 + 0.05).astype(np.uint8)

    class Samples:
        def __len__(self):
            return 48

        def take(self, indices):
            return Batch(jnp.asarray(inputs[:, indices]), jnp.asarray(labels[indices]), None)

    config = train.TrainConfig(
        epochs=6, batch_size=24, learning_rate=2e-2, selection="last", activity_bound=0.3
    )
    whole = fixed_point.on_chip(net, XYLO)
    params = net.init(jax.random.key(0))
    result = train.fit(whole, params, Samples(), None, loss=losses.cross_entropy_sum, config=config)
    found = [
        train.evaluate(whole, own, Samples(), loss=losses.cross_entropy_sum)
        for own in (params, result.params)
    ]
    assert found[1]["loss"] < 0.75 * found[0]["loss"]


def test_norms_become_weights():
    neuron = neurons.current_lif(0.9, 1.0, 0.7)
    net = snnjax.network(INPUTS, [snnjax.layer(8, neuron, norm=blocks.batch_norm())], snnjax.leaky_readout(4))
    params, stats = net.init(jax.random.key(0)), net.initial_stats(jax.random.key(0))
    whole, _ = fixed_point.convert(net, params, XYLO, stats=stats)
    folded, own, _ = net.fold(params, stats)
    assert np.array_equal(
        whole.layers[0].weights, fixed_point.convert(folded, own, XYLO)[0].layers[0].weights
    )


def test_headroom_tells_of_saturation():
    net = make_net(XYLO)
    whole, _ = fixed_point.convert(net, make_params(net), XYLO)
    quiet, loud = (
        fixed_point.headroom(whole, own) for own in (np.full((TIME, BATCH, 6), count) for count in (0, 15))
    )
    assert quiet["a/neuron"].current == 0
    assert max(own.current for own in loud.values()) > quiet["a/neuron"].current


CURRENT, ZERO = neurons.current_lif(), neurons.current_lif(reset="zero")


def chain(*layers, inputs=INPUTS, readout=None):
    return snnjax.network(inputs, list(layers), readout or snnjax.leaky_readout(4))


# A network, the chip, and what the message says of it.
REFUSED = {
    "delays": (
        chain(snnjax.layer([snnjax.axonal(3), snnjax.dense(8)], CURRENT)),
        XYLO,
        "have blocks of Xylo, got axonal",
    ),
    "synaptic delays": (
        chain(snnjax.layer(snnjax.synaptic(snnjax.dense(8), 3), CURRENT)),
        XYLO,
        "be a chain of layers, each a connection and neurons, got 0 connections",
    ),
    "sparse": (
        chain(snnjax.layer(snnjax.sparse(8, fan_out=2), CURRENT)),
        XYLO,
        "be a chain of layers, each a connection and neurons, got 0 connections",
    ),
    "convolutions": (
        chain(snnjax.layer([snnjax.conv2d(2, 3), snnjax.flatten()], CURRENT), inputs=(4, 4, 1)),
        XYLO,
        "have blocks of Xylo, got",
    ),
    "pools": (
        chain(
            snnjax.layer([snnjax.sum_pool(2), snnjax.flatten(), snnjax.dense(3)], CURRENT), inputs=(4, 4, 1)
        ),
        XYLO,
        "have blocks of Xylo, got sum_pool",
    ),
    "other neurons": (
        chain(snnjax.layer(8, neurons.adaptive_lif())),
        XYLO,
        "have neurons of Xylo, got adaptive_lif",
    ),
    "graded spikes": (
        chain(snnjax.layer(8, neurons.integer_lif())),
        XYLO,
        "have neurons of Xylo, got integer_lif",
    ),
    "parallel neurons": (chain(snnjax.layer(8, neurons.psn(20))), XYLO, "have neurons of Xylo, got psn"),
    "no synapse": (
        chain(snnjax.layer(8, neurons.lif())),
        XYLO,
        "have neurons of Xylo, got lif in `layer_0/neuron`. Use current_lif or leaky_integrator.",
    ),
    "no leak": (
        chain(snnjax.layer(8, neurons.integrate_and_fire())),
        XYLO,
        "have neurons of Xylo, got integrate_and_fire",
    ),
    "reset to zero": (
        chain(snnjax.layer(8, ZERO)),
        XYLO,
        "have neurons with reset='subtract' on Xylo, got 'zero'",
    ),
    "reset by subtraction": (
        chain(snnjax.layer(8, CURRENT)),
        LAVA_LOIHI,
        "have neurons with reset='zero' on lava, got 'subtract'",
    ),
    "a charge at the start": (
        chain(snnjax.layer(8, neurons.integrate_and_fire(reset="zero", initial=0.5))),
        LAVA_LOIHI,
        "have neurons that start at 0, got initial=0.5 in `layer_0/neuron`. Leave it out.",
    ),
    "no reset": (
        chain(snnjax.layer(8, neurons.current_lif(reset="none"))),
        XYLO,
        "have neurons with reset='subtract' on Xylo, got 'none'",
    ),
    "late reset": (
        chain(snnjax.layer(8, neurons.current_lif(reset_time="after_decay"))),
        XYLO,
        "reset neurons before they decay, by their new spikes, got reset_time='after_decay'",
    ),
    "old spikes": (
        chain(snnjax.layer(8, neurons.current_lif(reset_time="after_decay", spike_from="old"))),
        XYLO,
        "reset neurons before they decay, by their new spikes, got reset_time='after_decay', spike_from='old'",
    ),
    "late recurrence": (
        chain(snnjax.layer(8, CURRENT, recurrent=[snnjax.axonal(3), snnjax.dense(8, bias=False)])),
        XYLO,
        "have blocks of Xylo, got axonal",
    ),
    "bias of recurrence": (
        chain(snnjax.layer(8, CURRENT, recurrent=snnjax.dense(8))),
        XYLO,
        "have blocks of Xylo, got dense",
    ),
    "recurrent readout": (
        chain(snnjax.layer(8, CURRENT), readout=snnjax.spiking_readout(4, CURRENT, recurrent=True)),
        XYLO,
        "have a readout without recurrence on Xylo, got recurrent",
    ),
    "inputs": (chain(snnjax.layer(8, CURRENT), inputs=17), XYLO, "have at most 16 inputs on Xylo, got 17"),
    "hidden neurons": (
        chain(snnjax.layer(900, CURRENT), snnjax.layer(101, CURRENT)),
        XYLO,
        "have at most 1000 hidden neurons on Xylo, got 1001",
    ),
    "outputs": (
        chain(snnjax.layer(8, CURRENT), readout=snnjax.leaky_readout(9)),
        XYLO,
        "have at most 8 outputs on Xylo, got 9",
    ),
    "one layer": (
        chain(readout=snnjax.leaky_readout(4)),
        XYLO,
        "have a hidden layer and a readout on Xylo, got one layer",
    ),
    "fan-in": (
        chain(snnjax.layer(1, ZERO), inputs=2**16),
        LAVA_LOIHI,
        "sum fewer than 65536 spikes a step in `layer_0/neuron`, got up to 65536",
    ),
    "fan-in of a convolution": (  # of 8 bits, up to 15 spikes an input: 182 channels are the most
        snnjax.network((4, 4, 183), [snnjax.layer(snnjax.conv2d(2, 3), neurons.integrate_and_fire())]),
        SPECK,
        "sum fewer than 24576 spikes a step in `layer_0/neuron`, got up to 24705",
    ),
    "branches": (
        chain(snnjax.layer(INPUTS, CURRENT), snnjax.residual([snnjax.layer(INPUTS, CURRENT)])),
        XYLO,
        "be a chain of layers",
    ),
}
# What training refuses besides.
UNTRAINABLE = {
    "norms": (
        chain(snnjax.layer(8, CURRENT, norm=blocks.batch_norm())),
        "have blocks of Xylo, got batch_norm",
    ),
    "dropout": (
        chain(snnjax.layer(8, CURRENT, dropout=blocks.dropout(0.5))),
        "have blocks of Xylo, got dropout",
    ),
    "decays": (
        chain(snnjax.layer(8, neurons.current_lif(learn_decay=True))),
        "have neurons whose decays are not learned, got current_lif",
    ),
    "spike times": (
        chain(snnjax.layer(8, neurons.current_lif(gradient="spike_times", detach_reset=False))),
        "have neurons with a surrogate, got gradient='spike_times'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_chip_cannot_do_is_refused_by_name(name):
    net, chip, words = REFUSED[name]
    params = jax.tree.map(
        lambda own: np.zeros(own.shape, own.dtype), jax.eval_shape(net.init, jax.random.key(0))
    )
    stats = net.initial_stats(jax.random.key(0))
    with pytest.raises(ValueError) as error:
        fixed_point.convert(net, params, chip, stats=stats)
    assert str(error.value).startswith(f"fixed_point.convert: `network` must {words}")


@pytest.mark.parametrize("name", UNTRAINABLE)
def test_what_cannot_be_trained_on_a_chip_is_refused_by_name(name):
    net, words = UNTRAINABLE[name]
    params, stats = net.init(jax.random.key(0)), net.initial_stats(jax.random.key(0))
    with pytest.raises(ValueError) as error:
        fixed_point.apply(net, params, XYLO, make_spikes(XYLO), stats=stats)
    assert str(error.value).startswith(f"fixed_point.apply: `network` must {words}")


@pytest.mark.parametrize("field, wrong", [("weights", np.nan), ("bias", np.inf)])
def test_params_that_diverged_do_not_become_integers(field, wrong):
    """The integer of NaN is 0: a chip would run, and training would go on with a finite loss."""
    net = make_net(XYLO)
    params = make_params(net)
    held = getattr(params["a/connection"], field)
    held = held.at[(0,) * held.ndim].set(wrong)
    params["a/connection"] = params["a/connection"]._replace(**{field: held})
    with pytest.raises(ValueError) as error:
        fixed_point.convert(net, params, XYLO)
    expected = (
        "fixed_point.convert: `params` must be finite in `a/neuron`, got NaN or infinity. Train it again."
    )
    assert str(error.value) == expected
    output = fixed_point.apply(net, params, XYLO, make_spikes(XYLO))[0].output
    assert jnp.isnan(output).all()


def test_arguments_of_conversion_are_checked():
    net = make_net(XYLO)
    params = net.init(jax.random.key(0))
    whole, _ = fixed_point.convert(net, params, XYLO)
    specification = fixed_point.to_xylo(whole)
    specification["threshold"][0] = 0
    lava = dataclasses.replace(whole, chip=LAVA_LOIHI)
    made = "Make it with snnjax.network(...)."
    cases = {
        f"fixed_point.convert: `network` must be a network, got an IntegerNetwork. {made}": (
            whole,
            params,
            XYLO,
        ),
        "fixed_point.convert: `chip` must be a FixedPoint, got 'xylo'. Pass fixed_point.XYLO, for instance.": (
            *(net, params, "xylo"),
        ),
    }
    for expected, given in cases.items():
        with pytest.raises(ValueError) as error:
            fixed_point.convert(*given)
        assert str(error.value) == expected
    with pytest.raises(ValueError) as error:
        fixed_point.to_xylo(lava)
    expected = "to_xylo: `network` must be one of Xylo, got one of lava. Convert it with XYLO."
    assert str(error.value) == expected
    with pytest.raises(ValueError) as error:
        fixed_point.from_xylo(specification)
    expected = "from_xylo: `threshold` must be at least 1, got 0. Neurons would never be reset."
    assert str(error.value) == expected


def test_arguments_of_runs_are_checked():
    net, spikes = make_net(XYLO), np.ones((TIME, BATCH, INPUTS))
    params = net.init(jax.random.key(0))
    whole, _ = fixed_point.convert(net, params, XYLO)
    for factor in (0.5, 16, -1):
        with pytest.raises(ValueError) as error:
            fixed_point.run(whole, factor * spikes)
        assert str(error.value) == (
            "fixed_point.run: `inputs` must be whole numbers of spikes from 0 to 15 on Xylo, "
            f"got {factor:g}. Encode them as spikes with snnjax.encoding."
        )
    with pytest.raises(ValueError) as error:
        fixed_point.on_chip(net, XYLO).apply(params, None, jnp.asarray(spikes), chunk=5)
    assert str(error.value) == "network.apply: `chunk` must be None on Xylo, got 5. Leave it out on a chip."
