"""Which switches reproduce which library, held against numbers that the libraries themselves produced.

The numbers were made by `tests/golden/make_golden.py`, which states the versions. Each row of `CASES` is a class of
a library, the neuron here that equals it, and what to compare: libraries store the membrane before or after a reset,
and some report a spike one step late.
"""

import dataclasses
import functools
import json
import runpy
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import neurons
from snnjax.surrogates import sigmoid, superspike

GOLDEN = Path(__file__).parent / "golden"

# Both sides round every sum of numbers of order 1 to float32 (6e-8) in their own order, and the files round to 5e-8;
# over 12 steps with decays below 1 that stays below 2e-6. Gradients pass through a surrogate of slope 25.
MEMBRANE_TOLERANCE = 2e-6
GRADIENT_TOLERANCE = 2e-5


@dataclasses.dataclass(frozen=True)
class Case:
    """A class of a library and the neuron that reproduces it."""

    library: str
    name: str
    neuron: neurons.Neuron
    late: bool = False  # the library reports the spikes one step after ours
    graded: bool = False  # the library's output is the membrane


# The surrogates are fast_sigmoid(slope=25) of snnTorch, Sigmoid(4) of SpikingJelly, "super" of Norse (which in 1.1
# ignores its `alpha`: the slope is 1) and superspike(k=25) of Spyx.
SNNTORCH = {"normalize": False, "surrogate": superspike(25)}
JELLY = {"inclusive": True, "reset_time": "immediate", "surrogate": sigmoid(4)}
NORSE = {"reset_time": "immediate", "surrogate": superspike(1), "detach_reset": False}
SPYX = {"surrogate": superspike(25), "detach_reset": False}

# With tau = 2.5, SpikingJelly's decay is 1 - 1 / tau.
JELLY_DECAY = 0.6
jelly_lif = functools.partial(neurons.lif, JELLY_DECAY, **JELLY)
jelly_if = functools.partial(neurons.integrate_and_fire, **JELLY)

CASES = (
    # snnTorch leaves the input unscaled. `Leaky` subtracts after the decay but zeroes before it; `reset_delay=False`
    # resets at once, without detaching the spike. `Synaptic` zeroes after the decay, too.
    Case("snntorch", "leaky subtract", neurons.lif(0.9, reset_time="after_decay", **SNNTORCH)),
    Case("snntorch", "leaky zero", neurons.lif(0.9, reset="zero", **SNNTORCH)),
    Case("snntorch", "leaky none", neurons.lif(0.9, reset="none", **SNNTORCH)),
    Case(
        "snntorch",
        "leaky subtract at once",
        neurons.lif(0.9, reset_time="immediate", detach_reset=False, **SNNTORCH),
    ),
    Case(
        "snntorch",
        "leaky zero at once",
        neurons.lif(0.9, reset="zero", reset_time="immediate", detach_reset=False, **SNNTORCH),
    ),
    Case(
        "snntorch",
        "synaptic subtract",
        neurons.current_lif(0.9, 0.8, reset_time="after_decay", normalize_synapse=False, **SNNTORCH),
    ),
    Case(
        "snntorch",
        "synaptic zero",
        neurons.current_lif(
            0.9, 0.8, reset="zero", reset_time="after_decay", normalize_synapse=False, **SNNTORCH
        ),
    ),
    # SpikingJelly spikes at the threshold too and resets at once: hard to zero, soft by subtraction. `decay_input` is
    # our `normalize`.
    Case("spikingjelly", "if hard", jelly_if(reset="zero")),
    Case("spikingjelly", "if soft", jelly_if(reset="subtract")),
    Case("spikingjelly", "lif hard", jelly_lif(reset="zero")),
    Case("spikingjelly", "lif soft", jelly_lif(reset="subtract")),
    Case("spikingjelly", "lif hard full input", jelly_lif(reset="zero", normalize=False)),
    Case("spikingjelly", "lif soft full input", jelly_lif(reset="subtract", normalize=False)),
    Case("spikingjelly", "lif hard attached", jelly_lif(reset="zero", detach_reset=False)),
    Case("spikingjelly", "lif soft attached", jelly_lif(reset="subtract", detach_reset=False)),
    Case("spikingjelly", "parametric lif hard", jelly_lif(reset="zero")),
    # Norse resets at once and attached. The synapse of its LIF is not normalised; "box" is LIF without a synapse.
    Case("norse", "lif", neurons.current_lif(0.75, 0.5, reset="zero", normalize_synapse=False, **NORSE)),
    Case("norse", "lif box", neurons.lif(0.75, reset="zero", **NORSE)),
    Case("norse", "lif box soft", neurons.lif(0.75, reset="subtract", **NORSE)),
    Case(
        "norse",
        "leaky integrator",
        neurons.current_lif(0.75, 0.5, reset="none", normalize_synapse=False),
        graded=True,
    ),
    # Spyx takes spikes from the old membrane; all but CuBaLIF reset after the decay. ALIF has no switch for the old
    # membrane: ours spikes one step earlier.
    Case("spyx", "if", neurons.integrate_and_fire(spike_from="old", **SPYX)),
    Case(
        "spyx", "lif", neurons.lif(0.9, normalize=False, spike_from="old", reset_time="after_decay", **SPYX)
    ),
    Case(
        "spyx",
        "current lif",
        neurons.current_lif(0.9, 0.8, normalize=False, normalize_synapse=False, spike_from="old", **SPYX),
    ),
    Case(
        "spyx",
        "adaptive lif",
        neurons.adaptive_lif(
            0.9,
            adaptation_decay=0.95,
            adaptation_strength=1.0,
            normalize=False,
            reset_time="after_decay",
            **SPYX,
        ),
        late=True,
    ),
    Case("spyx", "leaky integrator", neurons.leaky_integrator(0.9, normalize=False), graded=True),
)


@functools.cache
def golden(library: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{library}.json").read_text())["cases"]


@functools.cache
def sequences(scale: float) -> tuple[jax.Array, jax.Array]:
    """The inputs and the weights of the loss, from the script itself."""
    script = runpy.run_path(str(GOLDEN / "make_golden.py"))
    inputs, weights = script["sequences"](scale)
    return jnp.asarray(inputs), jnp.asarray(weights)


def run(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Spikes, membranes and the gradient of the loss, all [time, batch, neurons]."""
    inputs, weights = sequences(golden(case.library)[case.name]["scale"])
    params = case.neuron.init(jax.random.key(0), inputs.shape[-1])
    state = case.neuron.initial_state(params, inputs.shape[1])

    def step(state: Any, x: jax.Array) -> tuple[Any, Any]:
        state, spikes = case.neuron.step(params, state, x)
        return state, (spikes, state.v)

    @jax.jit
    def loss(inputs: jax.Array) -> tuple[jax.Array, Any]:
        spikes, membrane = jax.lax.scan(step, state, inputs)[1]
        if case.late:
            # At the first step a late library reports the spikes of the empty initial state.
            spikes = jnp.concatenate([jnp.zeros_like(spikes[:1]), spikes[:-1]])
        output = membrane if case.graded else spikes
        return jnp.sum(output * weights), (spikes, membrane)

    gradient, (spikes, membrane) = jax.grad(loss, has_aux=True)(inputs)
    return np.asarray(spikes), np.asarray(membrane), np.asarray(gradient)


def test_every_golden_case_has_a_neuron() -> None:
    libraries = {path.stem for path in GOLDEN.glob("*.json")}
    expected = {(library, name) for library in libraries for name in golden(library)}
    assert {(case.library, case.name) for case in CASES} == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.library} {case.name}")
def test_neuron_equals_library(case: Case) -> None:
    wanted = golden(case.library)[case.name]
    spikes, membrane, gradient = run(case)
    np.testing.assert_allclose(membrane, wanted["membrane"], rtol=0, atol=MEMBRANE_TOLERANCE)
    np.testing.assert_allclose(gradient, wanted["gradient"], rtol=0, atol=GRADIENT_TOLERANCE)
    if not case.graded:
        assert np.sum(wanted["spikes"]) > 5, "silence would prove nothing"
        np.testing.assert_array_equal(spikes, wanted["spikes"])
