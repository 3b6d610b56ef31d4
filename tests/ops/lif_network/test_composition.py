"""`lif_network` equals a scan of the single ops, values and gradients, whole, in chunks and in pieces."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, lif_network
from snnjax._types import Signal, State
from tests.ops.common import jit, pick, with_gradient
from tests.ops.lif_network.networks import ONE_LAYER, STEPS, TWO_LAYERS, compose, make_network

LENGTHS = jnp.array([STEPS, 2])
# Both run in float32 and add in another order, over five steps: tens of ulp.
TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


def run(inputs: Signal, layers, readout, state: State, **options):
    """What `compose` yields, by `lif_network`."""
    out, state = lif_network(inputs, layers, readout, state, record_spikes=True, **options)
    output, *listed = (s.to_dense() if isinstance(s, SparseSpikes) else s for s in (out.output, *out.spikes))
    return output, out.activity, listed, state


COMBINATIONS = [
    {"widths": ONE_LAYER},
    {"capacity": 2, "second_threshold": 0.3, "reset": "zero", "detach_reset": False, "lengths": LENGTHS},
    {"widths": ONE_LAYER, "capacity": 7, "second_threshold": 0.2, "reset": "none", "surrogate": "sigmoid"},
    {
        "widths": ONE_LAYER,
        "capacity": 0,
        "second_threshold": 0.4,
        "lengths": jnp.array([0, 3]),
        "recurrent": False,
    },
    {
        "capacity": (2, 1),
        "second_threshold": -0.5,
        "detach_reset": False,
        "recurrent": False,
        "readout": None,
    },
]


# The neuron models that the second state serves: adLIF, adaptive threshold, synaptic current, resonance, and all of it.
ADLIF = ("w_membrane", "w_jump", "v_coupling")
ADAPTIVE = ("w_jump", "threshold_coupling")
SYNAPSE = ("w_gain", "v_coupling")
RESONANCE = ("w_membrane", "w_gain", "v_coupling")
EVERYTHING = ("w_membrane", "w_gain", "w_jump", "v_coupling", "threshold_coupling")
COMBINATIONS += [
    {"second_states": (ADLIF, SYNAPSE), "capacity": 2, "second_threshold": 0.3, "lengths": LENGTHS},
    {"second_states": (ADAPTIVE, None), "capacity": (None, 2), "second_threshold": 0.2, "reset": "zero"},
    {"second_states": (RESONANCE, ADAPTIVE), "detach_reset": False, "capacity": 4, "second_threshold": 0.1},
    {
        "second_states": (EVERYTHING, EVERYTHING),
        "detach_reset": False,
        "lengths": LENGTHS,
        "recurrent": False,
    },
    {"second_states": (EVERYTHING, ()), "capacity": 3, "second_threshold": 0.2, "reset": "none"},
    {"currents": True, "capacity": 2, "second_threshold": 0.3, "detach_reset": False, "lengths": LENGTHS},
    {"currents": True, "recurrent": False, "second_states": (EVERYTHING, None), "lengths": LENGTHS},
]


def name(options: dict[str, Any]) -> str:
    return "-".join(f"{k}={'given' if k == 'lengths' else v}" for k, v in options.items()) or "plain"


@pytest.mark.parametrize("options", COMBINATIONS, ids=name)
def test_network_equals_a_scan_of_the_single_ops(options: dict[str, Any]) -> None:
    """Values, and gradients of inputs, weights, constants, state: through output, activity, spikes, state."""
    given = {"widths": TWO_LAYERS, "recurrent": True, "second_states": (), "currents": False, **options}
    made = {key: given.pop(key) for key in ("widths", "recurrent", "second_states", "currents")}
    inputs, layers, readout, state = make_network(**made)
    if given.pop("readout", ...) is None:
        readout, state = None, state._replace(readout=None)
    arguments = inputs, layers, readout, state
    ours = jit(with_gradient(functools.partial(run, **given)))(*arguments)
    expected = jit(with_gradient(functools.partial(compose, **given)))(*arguments)
    chex.assert_trees_all_close(ours, expected, **TOLERANCE, strict=True)
    assert any(np.any(g) for g in ours[1])


CAPPED = {"capacity": 2, "second_threshold": 0.3, "detach_reset": False}


@functools.cache
def in_one_run():
    return jit(with_gradient(functools.partial(run, lengths=LENGTHS, **CAPPED)))(*make_network(ONE_LAYER))


@pytest.mark.parametrize("chunk", [1, 3, STEPS, STEPS + 2])
def test_chunks_change_nothing(chunk: int) -> None:
    """Of one step, that divide the steps or do not, of all steps and of more."""
    chunked = functools.partial(run, lengths=LENGTHS, chunk=chunk, **CAPPED)
    chex.assert_trees_all_close(
        jit(with_gradient(chunked))(*make_network(ONE_LAYER)), in_one_run(), **TOLERANCE, strict=True
    )


def test_pieces_with_the_carried_state_equal_one_run() -> None:
    """Values and gradients, back through the state, with sequences that end in the first piece or the second."""

    def in_pieces(inputs: Signal, layers, readout, state: State):
        cut, lengths = 3, LENGTHS
        first = run(inputs[:cut], layers, readout, state, lengths=jnp.minimum(lengths, cut), **CAPPED)
        rest = jnp.maximum(lengths - cut, 0)
        second = run(inputs[cut:], layers, readout, first[3], lengths=rest, **CAPPED)
        output, listed = (
            jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first[i], second[i]) for i in (0, 2)
        )
        shares = [
            (jnp.clip(n, 1, STEPS) / jnp.maximum(lengths, 1))[:, None]
            for n in (jnp.minimum(lengths, cut), rest)
        ]
        pairs = zip(first[1], second[1], strict=True)
        return output, tuple(a * shares[0] + b * shares[1] for a, b in pairs), listed, second[3]

    chex.assert_trees_all_close(
        jit(with_gradient(in_pieces))(*make_network(ONE_LAYER)), in_one_run(), **TOLERANCE, strict=True
    )


def test_state_freezes_behind_the_end() -> None:
    """Padded steps count nowhere: their inputs may be anything, and a shorter run ends in the same state."""
    inputs, *network = make_network(ONE_LAYER, seed=1)
    padded = inputs.at[2:, 1].set(jnp.nan)
    apply = jit(functools.partial(lif_network, record_spikes=True, **CAPPED))
    out, last = apply(padded, *network, lengths=LENGTHS)
    short, expected = apply(inputs[:2], *network)
    second = (pick((end, results[1:3]), 1) for end, results in ((last, out), (expected, short)))
    chex.assert_trees_all_close(*second, **TOLERANCE, strict=True)
    assert np.all(np.asarray(out.output)[2:, 1] == np.asarray(last.readout)[1])
    assert all(not np.any(s.num_spikes[2:, 1]) and not np.any(s.num_listed[2:, 1]) for s in out.spikes)
    assert all((s.ids[2:, 1] == s.num_neurons).all() for s in out.spikes)
    assert any(np.any(s.num_spikes[:2, 1]) for s in out.spikes)
