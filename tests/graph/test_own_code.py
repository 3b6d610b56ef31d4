"""A user's own parts of neurons and surrogates are what `apply` computes with, on whatever path."""

import dataclasses
import functools
import importlib.util
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import (
    LIFLayer,
    axonal,
    blocks,
    conv1d,
    dense,
    layer,
    leaky_readout,
    lif_network,
    metrics,
    network,
    neurons,
    online,
    parallel,
    residual,
    select_spikes,
    sparse,
    spike,
    synaptic,
)
from snnjax._types import Params, Signal, State, Stats
from snnjax.blocks._dense import Dense
from snnjax.neurobench import to_neurobench
from snnjax.quantisation import quantise_network
from snnjax.surrogates import Surrogate, boxcar, superspike
from tests.graph.helpers import (
    BATCH,
    INPUTS,
    CarriedSums,
    Sums,
    Totals,
    initial,
    random_spikes,
    with_gradients,
)
from tests.numbers import assert_close
from tests.ops.common import jit


class Ramp(Surrogate):
    """A derivative of one's own under the name of another."""

    def derivative(self, x):
        return jnp.maximum(1 - jnp.abs(x), 0)


RAMP = Ramp("superspike", 10.0)
FIRST, NEURON = "layer_0/connection", "layer_0/neuron"


def net_of(neuron: neurons.Neuron, readout=None):
    return network(INPUTS, [layer(8, neuron, capacity=8)], leaky_readout(3) if readout is None else readout)


PARAMS = initial(net_of(neurons.lif()))


def run(neuron: neurons.Neuron, readout=None):
    net = net_of(neuron, readout)
    return jit(with_gradients(net.apply))(PARAMS, net.initial_state(PARAMS, BATCH), random_spikes(0.5))


def test_replaced_surrogate_is_that_of_the_fused_op() -> None:
    built = run(neurons.lif(surrogate=boxcar(0.5)))
    chex.assert_trees_all_equal(
        run(dataclasses.replace(neurons.lif(), surrogate=boxcar(0.5))), built, strict=True
    )
    assert np.any(built[1][1][0][FIRST].weights != run(neurons.lif())[1][1][0][FIRST].weights)


def test_own_integrate_and_fire_are_called() -> None:
    plain = neurons.lif()

    def integrate(params: Params, state: State, inputs: jax.Array):
        return plain.advance(params, state, inputs + 100)

    def fire(state: State, spikes: jax.Array):
        return state._replace(v=jnp.full_like(spikes, -1e6))

    always = run(dataclasses.replace(plain, integrate=integrate))[0][0]
    np.testing.assert_array_equal(always.activity[NEURON], 1)
    once, state = run(dataclasses.replace(plain, integrate=integrate, fire=fire))[0]
    np.testing.assert_array_equal(np.round(once.activity[NEURON] * 20), 1)
    np.testing.assert_array_equal(state[NEURON].v, -1e6)


def test_own_readout_is_called() -> None:
    given = leaky_readout(3, normalize=False)
    doubled = dataclasses.replace(
        given.neuron, integrate=lambda params, state, inputs: given.neuron.advance(params, state, 2 * inputs)
    )
    twice = run(neurons.lif(), dataclasses.replace(given, neuron=doubled))[0][0].output
    np.testing.assert_allclose(twice, 2 * run(neurons.lif(), given)[0][0].output, rtol=1e-5, atol=1e-6)
    assert np.any(twice)


@pytest.mark.parametrize("neuron", [neurons.lif, neurons.adaptive_lif])
def test_own_derivative_is_that_of_the_kernels_too(neuron) -> None:
    net = net_of(neuron(surrogate=RAMP))
    params = initial(net)
    gradients = [
        jit(with_gradients(functools.partial(net.apply, implementation=name)))(
            params, None, random_spikes(0.5)
        )[1]
        for name in (None, "reference")
    ]
    assert_close(*gradients, of_largest=1e-5)  # scanned, the products of one of them in the kernels
    other = net_of(neuron(surrogate=superspike()))
    assert np.any(
        jit(with_gradients(other.apply))(params, None, random_spikes(0.5))[1][1][0][FIRST].weights
        != gradients[0][1][0][FIRST].weights
    )


FORCED = {
    "lif_network": lambda x: lif_network(
        x[:, None], [LIFLayer(jnp.ones((3, 2)), decay=0.5)], surrogate=RAMP, implementation="cpu"
    ),
    "select_spikes": lambda x: select_spikes(x, 1.0, 0.9, capacity=1, surrogate=RAMP, implementation="cpu"),
}


@pytest.mark.parametrize("op", FORCED)
def test_kernels_by_name_refuse_a_derivative_that_they_do_not_know(op: str) -> None:
    with pytest.raises(ValueError) as error:
        FORCED[op](jnp.ones((2, 3)))
    assert str(error.value) == (
        f"{op}: `implementation` must be None or 'reference' for a surrogate with a custom derivative, got 'cpu'. "
        "Leave it None for an automatic choice."
    )


def test_own_pieces_of_another_form_are_refused() -> None:
    plain = neurons.lif()

    def coarse(state: State, spikes: Signal):
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float16), state)

    def summed(*given):
        membrane, threshold, state = plain.advance(*given)
        return membrane.sum(axis=-1), threshold, state

    def without_threshold(*given):
        return plain.advance(*given)[0]

    def without_state(*given):
        return plain.advance(*given)[:2]

    three = "Neuron: `integrate` must return membrane, threshold and state, got "
    hint = ". Return all three, such as (v, params.threshold, state._replace(v=v))."
    cases = (
        ({"integrate": without_threshold}, f"{three}float32[{BATCH}, 8]{hint}"),
        ({"integrate": without_state}, f"{three}2 values{hint}"),
        (
            {"fire": coarse},
            f"lif.fire: `state` must stay LIFState(v='float32[{BATCH}, 8]'), got LIFState(v='float16[{BATCH}, 8]'). "
            "Compute in the dtype of the state; inputs have the accumulation dtype, at least float32.",
        ),
        (
            {"integrate": summed},
            f"lif.integrate: `membrane` must have shape [batch, neurons] = [{BATCH}, 8], got [{BATCH}]. "
            "Give the membrane the shape of the inputs.",
        ),
    )
    for pieces, expected in cases:
        with pytest.raises(ValueError) as error:
            run(dataclasses.replace(plain, **pieces))
        assert str(error.value) == expected


@dataclasses.dataclass(frozen=True)
class Difference(blocks.Block):
    """The first signal less the second."""

    kind, num_signals = "difference", 2

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        first, second = signals
        return blocks.BlockResult(first - second)


@dataclasses.dataclass(frozen=True)
class Double(blocks.Block):
    """Twice its signal."""

    kind = "double"

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return blocks.BlockResult(2 * signals[0])


@pytest.mark.parametrize(
    "container, factor",
    [(parallel(a=[], b=Double(), join=Difference()), -1), (residual(Double(), join=Difference()), 1)],
    ids=["parallel", "residual"],
)
def test_own_block_joins_branches(container, factor: int) -> None:
    inputs = random_spikes(0.5)
    output, _ = network(INPUTS, [container]).apply({}, None, inputs)
    np.testing.assert_array_equal(output.output, factor * inputs)


def test_own_block_that_joins_states_its_number_of_signals() -> None:
    branches = parallel(x=Double(), y=Double(), z=Double(), join=Difference())
    with pytest.raises(ValueError, match="`parallel_0/join` must receive 2 signals, got "):
        network(INPUTS, [branches])


@dataclasses.dataclass(frozen=True)
class Scale(blocks.Linear):
    """One weight for each neuron."""

    kind = "scale"

    def weights_shape(self, shape):
        return 1, shape[0]

    def product(self, weights, x, shape, implementation):
        return x * weights[None]


def test_own_connection_takes_weights_of_8_bits() -> None:
    net, inputs = network(INPUTS, [Scale()]), random_spikes(0.5)
    weights = (
        jnp.arange(-INPUTS, INPUTS, 2.0)[None] * 127
    )  # exact in 8 bits: each column has a scale of its own
    params = {"scale_0": blocks.LinearParams(weights, jnp.ones(INPUTS))}
    expected, _ = net.apply(params, None, inputs)
    output, _ = net.apply(quantise_network(params), None, inputs)
    np.testing.assert_array_equal(output.output, expected.output)


@dataclasses.dataclass(frozen=True)
class Threshold(blocks.Block):
    """Neurons without a memory, and without a word about their activity."""

    kind, is_spiking = "threshold", True

    def drive(self) -> float:
        return 1.0

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return blocks.BlockResult(spike(signals[0] - 1, superspike()))


def test_own_neurons_are_counted_listed_and_scaled_without_a_word_of_theirs() -> None:
    net = network(INPUTS, [dense(8), Threshold()], leaky_readout(3))
    inputs, lengths = random_spikes(0.5), np.array([20, 4, 0])
    params = net.init(jax.random.key(0), inputs, target_activity=0.25)

    def run(params: Params):
        output, _ = net.apply(params, None, inputs, lengths=lengths, record="spikes")
        return jnp.sum(output.activity["threshold_0"]), output

    (_, output), gradients = jit(jax.value_and_grad(run, has_aux=True))(params)
    spikes = np.asarray(output.recorded["threshold_0"])
    valid = (np.arange(len(spikes))[:, None] < lengths[None])[..., None]
    expected = (spikes * valid).sum(0) / np.maximum(lengths, 1)[:, None]
    np.testing.assert_allclose(output.activity["threshold_0"], expected, rtol=1e-6)
    np.testing.assert_array_equal(output.dropped["threshold_0"], 0)
    assert np.all(gradients["dense_0"].bias > 0)  # more of it, more spikes, by the surrogate of all neurons
    everything, _ = net.apply(params, None, inputs)
    assert abs(jnp.mean(everything.activity["threshold_0"]) - 0.25) < 0.02


@dataclasses.dataclass(frozen=True)
class OwnDense(Dense):
    """Dense weights with a product of one's own."""

    def op(self, shape):
        return None


@dataclasses.dataclass(frozen=True)
class Gain(Double):
    """A number for each neuron."""

    kind = "gain"

    def init(self, key, *shapes, dtype: DTypeLike):
        return jnp.ones(shapes[0], dtype)


def loss(output, *targets, lengths=None):
    return jnp.sum(output)


@dataclasses.dataclass(frozen=True)
class Returns(blocks.Block):
    """What a function makes of its signal, in place of a result; it states a shape, and a state if it has one."""

    kind = "returns"
    make: Any
    shape: Any = (3, 8)
    is_counting: bool = True

    def out_shape(self, *shapes):
        return self.shape

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes):
        return {"count": jnp.zeros(batch)} if self.is_counting else None

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return self.make(signals[0].reshape(-1, 2, 3, 8), state)


Result = blocks.BlockResult
STATE = "Return the new one in the BlockResult, in the form of initial_state."
SHAPE = "State it in out_shape; it says [3, 8]."
OTHER_SHAPE = "network: `returns_0.signal` must have shape [time, batch, *shape] = [4, 2, 3, 8], got "
RETURNED = {
    "no result": (
        lambda x, state: x,
        "network: `returns_0.apply` must return a BlockResult, got an array. Write blocks.BlockResult(signal).",
    ),
    "a list": (
        lambda x, state: Result([x], state),
        "network: `returns_0.signal` must be an array, got a list. Pass a JAX or NumPy array.",
    ),
    "heads apart": (
        lambda x, state: Result(x.reshape(4, 2, 3, 2, 4), state),
        f"{OTHER_SHAPE}[4, 2, 3, 2, 4]. {SHAPE}",
    ),
    "channels first": (
        lambda x, state: Result(x.swapaxes(2, 3), state),
        f"{OTHER_SHAPE}[4, 2, 8, 3]. {SHAPE}",
    ),
    "fewer steps": (lambda x, state: Result(x[1:], state), f"{OTHER_SHAPE}[3, 2, 3, 8]. {SHAPE}"),
    "fewer neurons": (
        lambda x, state: Result(x.reshape(4, 2, 24)[..., 1:], state),
        f"network: `returns_0.signal` must have shape [time, batch, neurons] = [4, 2, 24], got [4, 2, 23]. {SHAPE}",
    ),
    "complex numbers": (
        lambda x, state: Result(x.astype(jnp.complex64), state),
        "network: `returns_0.signal` must hold real numbers, got complex64. Pass its real part or absolute value.",
    ),
    "no state": (lambda x, state: Result(x), f"network: `returns_0.state` must be a dict, got None. {STATE}"),
    "a list as state": (
        lambda x, state: Result(x, {"count": [0, 0]}),
        f"network: `returns_0.state['count']` must be float32[2], got a list. {STATE}",
    ),
    "a state of another dtype": (
        lambda x, state: Result(x, {"count": state["count"].astype(jnp.float16)}),
        f"network: `returns_0.state['count']` must be float32[2], got float16[2]. {STATE}",
    ),
    "stats from nowhere": (
        lambda x, state: Result(x, state, jnp.zeros(3)),
        "network: `returns_0.stats` must be None, got an array. "
        "Give the block initial ones, by initial_stats.",
    ),
    "other counts": (
        lambda x, state: Result(x, state, counts=jnp.zeros(2)),
        "network: `returns_0.counts` must have shape [batch, neurons] = [2, 24], got [2]. "
        "Leave it out: the network counts spikes itself.",
    ),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_an_own_block_returns_is_checked_under_its_name(name: str) -> None:
    make, text = RETURNED[name]
    net, x = network(24, [Returns(make)]), jnp.zeros((4, 2, 24))
    for run in (lambda x: net.apply({}, None, x), lambda x: net.init(jax.random.key(0), x)):
        with pytest.raises(ValueError) as error:
            jax.eval_shape(run, x)
        assert str(error.value) == text


def test_an_own_block_in_a_recurrent_connection_is_checked_too() -> None:
    wrong = Returns(lambda x, state: Result(x[..., 1:], state))
    net = network(24, [layer(24, neurons.izhikevich(), recurrent=[wrong, dense(24)])])
    with pytest.raises(ValueError, match=r"network: `layer_0/recurrent/returns_0\.signal` must have shape "):
        jax.eval_shape(lambda x: net.apply(net.init(jax.random.key(0)), None, x), jnp.zeros((4, 2, 24)))


def test_the_neurons_of_an_own_block_may_be_on_one_axis() -> None:
    flat = Returns(lambda x, state: Result(x.reshape(4, 2, 24), state))
    output, _ = network(24, [flat]).apply({}, None, jnp.zeros((4, 2, 24)))
    assert output.output.shape == (4, 2, 3, 8)


@dataclasses.dataclass(frozen=True)
class Averages(Sums):
    """A running average of the means of calls."""

    def initial_stats(self, key, *shapes):
        return jnp.float32(0)

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return Result(signals[0], state, 0.9 * stats + 0.1 * jnp.mean(signals[0]))


@dataclasses.dataclass(frozen=True)
class CarriedAverages(Averages):
    """The same, whose state could be cut."""

    initial_state = CarriedSums.initial_state


@pytest.mark.parametrize(
    "block, end, stats, loops",
    [
        (Sums(), 6, None, 0),
        (CarriedSums(), 6, None, 1),
        (Averages(), 1, 0.1, 0),
        (CarriedAverages(), 1, 0.1, 0),
        (Totals(), 1, 12, 1),
    ],
    ids=lambda own: type(own).__name__,
)
def test_chunks_change_nothing_about_own_blocks(block, end, stats: Stats, loops: int) -> None:
    net = network(1, [block])
    given = net.initial_stats(jax.random.key(0))
    run = lambda x, chunk: net.apply({}, None, x, stats=given, chunk=chunk)  # noqa: E731
    for chunk in (None, 3, 4):
        output, _ = run(jnp.ones((6, 2, 1)), chunk)
        np.testing.assert_array_equal(output.output[-1, :, 0], end)
        np.testing.assert_allclose(output.stats.get("sums_0", 0), stats or 0, rtol=1e-6)
        jaxpr = str(jax.make_jaxpr(lambda x, chunk=chunk: run(x, chunk))(jnp.ones((6, 2, 1))))
        assert jaxpr.count("scan[") == (0 if chunk is None else loops)


OWN_NEURONS = network(INPUTS, [dense(8), Threshold()], leaky_readout(3))
OWN_GAIN = network(INPUTS, [Gain()], leaky_readout(3))
REFUSED = {
    "online": (
        lambda: online.eprop(OWN_NEURONS, loss),
        "online.eprop: `network` must be a chain of layers, each a connection and neurons of snnjax.neurons, "
        "got threshold in `threshold_0`. Write it as a Neuron.",
    ),
    "online, connection": (
        lambda: online.ottt(network(INPUTS, [layer(OwnDense(8))], leaky_readout(3)), loss),
        "online.ottt: `layer_0/connection` must be dense, without delays, pools and norms, "
        "got a connection of one's own. Use online.truncated for this network.",
    ),
    "gradient share": (
        lambda: metrics.gradient_share(
            OWN_NEURONS, initial(OWN_NEURONS), random_spikes(0.5), jnp.zeros(BATCH, jnp.int32), loss=loss
        ),
        "gradient_share: `network` must have neurons of snnjax.neurons, got threshold in 'threshold_0'. "
        "Write it as a Neuron.",
    ),
    "neurobench": (
        lambda: to_neurobench(OWN_GAIN, OWN_GAIN.init(jax.random.key(0))),
        "to_neurobench: `network` must have only dense weights, got gain in 'gain_0'. "
        "Count its operations with metrics.synaptic_operations.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_look_into_own_blocks_refuses_them_by_name(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)  # NeuroBench comes after the check
    call, text = REFUSED[case]
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == text


@pytest.mark.parametrize(
    "block",
    [
        dense(6),
        conv1d(6, 3),
        sparse(6, fan_in=2),
        axonal(5),
        axonal(5, initial=(1, 4), learn=False),
        synaptic(dense(6), 5),
        synaptic(dense(6), 5, initial=(1, 4), learn=False),
        blocks.spiking(neurons.lif(learn_decay=True)),
        blocks.spiking(neurons.lif(decay=(0.8, 0.9))),
        blocks.batch_norm(),
        blocks.layer_norm(),
    ],
    ids=lambda block: block.kind,
)
def test_a_block_alone_refuses_to_run_without_what_it_learns_or_draws(block) -> None:
    shape = (4, 2)
    held = {
        "params": block.init(jax.random.key(0), shape, dtype=jnp.float32),
        "stats": block.initial_stats(jax.random.key(1), shape),
    }
    state, x = block.initial_state(*held.values(), 3, shape), jnp.ones((5, 3, *shape))
    run = functools.partial(block.apply, shapes=(shape,), context=blocks.Context())
    assert run(held["params"], state, held["stats"], x).signal.shape[:2] == (5, 3)
    for what in (name for name, own in held.items() if jax.tree.leaves(own)):
        lacking = held | {what: None}
        with pytest.raises(ValueError, match=r"must hold .*, got None\. (Make|Use)"):
            run(lacking["params"], state, lacking["stats"], x)
