"""What `apply` records on request: spikes, and the membranes that they are taken from."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    LIFLayer,
    SparseSpikes,
    axonal,
    dense,
    layer,
    leaky_readout,
    lif_network,
    metrics,
    network,
    neurons,
    spiking_readout,
)
from snnjax.blocks.late import LateState
from snnjax.blocks.linear import LinearParams
from snnjax.ops._connection import Connection
from tests.graph.helpers import BATCH, INPUTS, STEPS, initial, random_spikes
from tests.ops.common import jit

LENGTHS = jnp.array([STEPS, 7, 0], jnp.int32)
HALF = neurons.lif(0.5, normalize=False)
NEURON = "layer_0/neuron"
ONE = network(1, [layer(dense(1, bias=False), HALF)], leaky_readout(1))


def test_membranes_are_those_before_the_reset_of_the_next_step() -> None:
    params = initial(ONE)
    params["layer_0/connection"] = LinearParams(jnp.ones((1, 1)))
    inputs = jnp.array([0.75, 1.0, 0.5]).reshape(3, 1, 1)
    output, _ = ONE.apply(params, None, inputs, record=("spikes", "membranes"))
    # No spike at 0.75; half of it and 1; half of what the spike leaves of 1.375, and 0.5.
    assert output.membranes[NEURON].reshape(3).tolist() == [0.75, 1.375, 0.6875]
    assert output.recorded[NEURON].reshape(3).tolist() == [0.0, 1.0, 0.0]


def test_membranes_carry_a_gradient() -> None:
    params = initial(ONE)

    def last(inputs: jax.Array) -> jax.Array:
        return ONE.apply(params, None, inputs, record="membranes")[0].membranes[NEURON][-1, 0, 0]

    weight = float(params["layer_0/connection"].weights[0, 0])
    gradient = jax.grad(last)(jnp.full((3, 1, 1), 0.125))
    np.testing.assert_allclose(gradient[:, 0, 0], weight * np.array([0.25, 0.5, 1.0]), rtol=1e-6)


@pytest.mark.parametrize("chunk", [None, 6])
def test_recorded_spikes_are_membranes_above_the_threshold(chunk: int | None) -> None:
    hidden = layer(8, neurons.lif(threshold=(0.5, 1.5)), capacity=8, recurrent=True)
    net = network(INPUTS, [hidden], spiking_readout(3))
    params, stats, inputs = initial(net), net.initial_stats(jax.random.key(0)), random_spikes(0.3)
    run = functools.partial(net.apply, lengths=LENGTHS, chunk=chunk, stats=stats)
    output, state = jit(functools.partial(run, record=("membranes", "spikes")))(params, None, inputs)
    plain, _ = jit(functools.partial(run, record="spikes"))(params, None, inputs)
    inside = np.arange(STEPS)[:, None, None] < np.asarray(LENGTHS)[None, :, None]
    assert output.membranes.keys() == {NEURON, "readout/neuron"}
    assert output.recorded.keys() == {NEURON, "readout/neuron"}
    for name, v in output.membranes.items():
        threshold = stats[name].threshold if name in stats else 1.0
        spikes = output.recorded[name]
        assert v.shape[:2] == (STEPS, BATCH) and np.any(v)
        dense = spikes.to_dense() if isinstance(spikes, SparseSpikes) else spikes
        np.testing.assert_array_equal(dense, (np.asarray(v) > np.asarray(threshold)) & inside)
        assert not np.any(np.where(inside, 0, v))
    np.testing.assert_array_equal(output.membranes[NEURON][-1, 0], state[NEURON].v[0])
    # Layer by layer for the membranes, as one op without them.
    chex.assert_trees_all_close(output._replace(membranes={}), plain, rtol=2e-5, atol=2e-5, strict=True)


@pytest.mark.parametrize("record", [(), "spikes", "membranes", ("spikes", "membranes")])
def test_nothing_is_recorded_that_was_not_asked_for(record) -> None:
    params = initial(ONE)
    output, _ = jax.eval_shape(lambda: ONE.apply(params, None, jnp.ones((2, 1, 1)), record=record))
    assert (NEURON in output.recorded) == ("spikes" in record)
    assert (NEURON in output.membranes) == ("membranes" in record)


@pytest.mark.parametrize("neuron", [neurons.lif(), neurons.adlif()], ids=["fused", "layers"])
def test_a_diverged_run_shows_in_the_state_alone(neuron) -> None:
    net = network(INPUTS, [layer(8, neuron, capacity=4), layer(6, neuron)], leaky_readout(3))
    params, inputs = initial(net), random_spikes(0.3).at[4, 1, 0].set(jnp.nan)
    run = jax.jit(lambda params, x: net.apply(params, None, x))
    output, state = run(params, inputs)
    chex.assert_tree_all_finite(output)
    assert metrics.diverged(state).tolist() == [False, True, False]
    assert jax.jit(lambda x: metrics.diverged(run(params, x)[1]))(random_spikes(0.3)).tolist() == [False] * 3
    recorded, _ = jit(functools.partial(net.apply, record="membranes"))(params, None, inputs)
    assert np.argwhere(np.isnan(recorded.membranes[NEURON]).any(-1))[0].tolist() == [4, 1]
    with jax.debug_nans(True):
        jax.jit(lambda x: net.apply(params, None, x)[0])(inputs)
        with pytest.raises(FloatingPointError, match="nan"):
            jax.jit(lambda x: net.apply(params, None, x))(inputs)


def test_a_diverged_run_shows_where_spikes_are_in_transit() -> None:
    net = network(INPUTS, [axonal(4), layer(8)], leaky_readout(3))
    params, inputs = initial(net), random_spikes(0.3).at[2, 1, 0].set(jnp.nan)
    assert metrics.diverged(net.apply(params, None, inputs)[1]).tolist() == [False, True, False]


@pytest.mark.parametrize("min_delay", [0, 3])
def test_a_diverged_run_shows_where_recurrent_spikes_are_in_transit(min_delay: int) -> None:
    """Of the fused op and of a scanned layer, with as many rows of spikes as neither batch nor neurons."""
    delayed = [axonal(4, min_delay=min_delay), dense(8, bias=False)]
    net = network(INPUTS, [layer(8, recurrent=delayed)], leaky_readout(3))
    params, inputs = initial(net), random_spikes(0.3).at[2, 1, 0].set(jnp.nan)
    for record in ((), "membranes"):
        state = net.apply(params, None, inputs, record=record)[1]
        assert metrics.diverged(state).tolist() == [False, True, False]


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_diverged_run_shows_where_a_late_signal_is_in_transit(steps: int) -> None:
    """With as many steps as sequences too, whose axis is not theirs."""
    state = LateState(jnp.zeros((steps, 3, 8)).at[0, 1, 4].set(jnp.nan))
    assert metrics.diverged({"late": state}).tolist() == [False, True, False]


def test_a_diverged_run_of_the_op_shows_where_recurrent_spikes_are_in_transit() -> None:
    recurrent = {"recurrent": jnp.ones((8, 8)), "recurrent_connection": Connection(max_delay=4)}
    own = LIFLayer(jnp.ones((INPUTS, 8)), 0.5, recurrent_delays=1.0, **recurrent)
    state = lif_network(random_spikes(0.3).at[2, 1, 0].set(jnp.nan), [own])[1]
    assert metrics.diverged(state).tolist() == [False, True, False]


def test_a_state_without_arrays_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        metrics.diverged(())
    assert (
        str(error.value)
        == "diverged: `state` must hold arrays, got none. Pass the state that `apply` returned."
    )
