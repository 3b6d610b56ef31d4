"""LIF neurons: numbers to check by head, and the op they stand on."""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import neurons
from snnjax.neurons import LIFParams, LIFState
from snnjax.neurons._neuron import drawn
from snnjax.surrogates import boxcar

KEY = jax.random.key(0)
HALF = LIFParams(jnp.zeros(1), jnp.ones(1))  # decay 0.5, threshold 1


def one_step(v: float, x: float, **switches) -> tuple[float, int]:
    neuron = neurons.lif(**({"normalize": False} | switches))
    state, spikes = neuron.step(HALF, LIFState(jnp.array([[v]])), jnp.array([[x]]))
    return float(state.v[0, 0]), int(spikes[0, 0])


@pytest.mark.parametrize(
    "v, x, switches, wanted",
    [
        (0.5, 0.5, {}, (0.75, 0)),  # 0.5 * 0.5 + 0.5
        (0.5, 1.0, {"normalize": True}, (0.75, 0)),  # 0.5 * 0.5 + 0.5 * 1
        (1.5, 1.0, {}, (1.25, 1)),  # 0.5 * (1.5 - 1) + 1
        (1.5, 0.5, {"reset": "zero"}, (0.5, 0)),
        (1.5, 0.5, {"reset": "none"}, (1.25, 1)),
        (1.5, 0.5, {"reset_time": "after_decay"}, (0.25, 0)),  # 0.5 * 1.5 + 0.5 - 1
        (0.5, 1.0, {"reset_time": "immediate"}, (0.25, 1)),  # 0.25 + 1 - 1
        (1.5, 0.25, {"spike_from": "old"}, (0.5, 1)),  # spikes from 1.5
        (0.0, 1.0, {}, (1.0, 0)),  # at the threshold
        (0.0, 1.0, {"inclusive": True}, (1.0, 1)),
    ],
)
def test_step_of_known_numbers(
    v: float, x: float, switches: dict[str, Any], wanted: tuple[float, int]
) -> None:
    assert one_step(v, x, **switches) == wanted


@pytest.mark.parametrize(
    "reset, normalize", list(itertools.product(["subtract", "zero", "none"], [True, False]))
)
def test_step_equals_op_to_the_bit(reset: str, normalize: bool) -> None:
    neuron = neurons.lif(decay=(0.5, 0.95), threshold=(0.5, 1.5), reset=reset, normalize=normalize)
    params = drawn(neuron, KEY, 5)
    v, x = jax.random.normal(KEY, (2, 3, 5)) * 2
    assert neuron.glif is not None
    decay, threshold, gain = neuron.glif.constants(params)[:3]
    wanted = snnjax.lif_step(v, x, decay, threshold, gain, reset=reset)
    state, spikes = neuron.step(params, LIFState(v), x)
    np.testing.assert_array_equal(state.v, wanted[0])
    np.testing.assert_array_equal(spikes, wanted[1])


def test_constants_are_physical() -> None:
    neuron, plain = (neurons.lif(0.75, 2.0, normalize=normalize) for normalize in (True, False))
    params = neuron.init(KEY, 2)
    assert neuron.glif is not None and plain.glif is not None
    constants = neuron.glif.constants(params)
    assert jax.tree.leaves(params) == []
    np.testing.assert_array_equal(constants[:3], [0.75, 2.0, 0.25])
    assert float(plain.glif.constants(params).gain) == 1.0


def test_decay_that_bfloat16_would_round_to_one_stays_below() -> None:
    neuron = neurons.lif(0.999, learn_decay=True)
    assert neuron.glif is not None
    decay, _, gain = neuron.glif.constants(neuron.init(KEY, 1, jnp.bfloat16))[:3]
    assert float(decay[0].astype(jnp.bfloat16)) == 1.0
    assert float(decay[0]) + float(gain[0]) == 1.0
    np.testing.assert_allclose(float(gain[0]), 1e-3, rtol=0.02)  # the raw value is rounded to 2^-6


def test_learned_decay_moves_at_extreme_values() -> None:
    neuron = neurons.lif(learn_decay=True, normalize=False)
    for raw in (-20.0, 20.0):
        params = LIFParams(jnp.full(1, raw), jnp.ones(1))
        state = LIFState(jnp.full((1, 1), 0.5))
        gradient = jax.grad(lambda p, s=state: jnp.sum(neuron.step(p, s, jnp.zeros((1, 1)))[0].v))(params)
        np.testing.assert_allclose(gradient.raw_decay, [0.5 * np.exp(-20.0)], rtol=1e-5)


def test_only_neurons_of_this_form_are_fused() -> None:
    plain = neurons.lif()
    form = neurons.lif(reset="zero", detach_reset=False, normalize=False).fused
    assert form is not None
    assert (form.reset, form.detach_reset) == ("zero", False)
    for other in ({"reset_time": "after_decay"}, {"spike_from": "old"}, {"inclusive": True}):
        neuron = neurons.lif(**other)
        assert neuron.fused is None
        assert neuron.glif is not None and neuron.glif.conventions == other
    for neuron in (neurons.refractory(plain, 1), neurons.izhikevich()):
        assert neuron.fused is None
    for parts in ({"integrate": plain.advance}, {"fire": lambda state, _: state}):
        assert dataclasses.replace(plain, **parts).fused is None
    assert dataclasses.replace(plain, surrogate=boxcar(), name="mine").fused == plain.glif


def test_unknown_conventions_are_refused() -> None:
    with pytest.raises(ValueError) as error:
        neurons.lif(reset_time="later")
    assert str(error.value) == (
        "lif: `reset_time` must be 'before_decay', 'after_decay' or 'immediate', got 'later'. "
        "Choose one of these."
    )
    with pytest.raises(ValueError) as error:
        neurons.lif(spike_from="both")
    assert str(error.value) == ("lif: `spike_from` must be 'new' or 'old', got 'both'. Choose one of these.")


@pytest.mark.parametrize("make", [neurons.lif, neurons.current_lif, neurons.integrate_and_fire])
def test_an_immediate_reset_leaves_no_old_membrane_to_spike_from(make) -> None:
    with pytest.raises(ValueError) as error:
        make(reset_time="immediate", spike_from="old")
    assert str(error.value) == (
        f"{make.__name__}: `spike_from` must be 'new' if reset_time is 'immediate', got 'old'. "
        "Use reset_time='after_decay' with the old membrane's spikes."
    )
