"""Which switches reproduce which library, compared with numbers that the libraries themselves produced.

The numbers were made by `tests/golden/make_golden.py`, which states the versions. The cases are the rows of the table
that users read, in `snnjax/neurons/README.md`: a class of a library, the neuron here that equals it, and what to
compare. Libraries store the membrane before or after a reset, and some report a spike one step late.
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
from snnjax._types import State
from snnjax.surrogates import sigmoid, superspike
from tests.project.architecture import ROOT

GOLDEN = Path(__file__).parents[1] / "golden"

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


TABLE = ROOT / "snnjax" / "neurons" / "README.md"
# What the table's column "note" may say, and the fields of a case that it sets.
NOTES = {"": {}, "spikes one step later": {"late": True}, "output is the membrane": {"graded": True}}
NAMES = {"neurons": neurons, "superspike": superspike, "sigmoid": sigmoid}


def cases_in(text: str) -> list[Case]:
    """The rows of the table of other libraries' neurons."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"
    ]
    assert rows[0] == ["library", "model", "there", "note", "here"]
    return [
        Case(library, name, eval(here.strip("`"), dict(NAMES)), **NOTES[note])
        for library, name, _, note, here in rows[2:]
    ]


CASES = cases_in(TABLE.read_text())


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
    state = case.neuron.initial_state(params, *inputs.shape[1:])

    def step(state: State, x: jax.Array) -> tuple[Any, Any]:
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
