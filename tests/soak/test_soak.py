"""The random checks of `tests/soak/checks.py`: right gradients and values pass, and wrong ones are reported."""

import functools
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.ops.common import generic
from tests.ops.kernel_checks import check_kernel, needs_kernels
from tests.ops.lif_network.random_networks import Form, arguments, of_currents, random_form
from tests.ops.simulation import random_simulations
from tests.project.architecture import ROOT
from tests.soak import checks as soak

# Two steps, so that a reset, whose gradient may be missing, affects a later step.
FORM = Form(3, 1, 2, (2,), None, dtype="float64", lengths=False, bias=False)


def error_of(form: Form) -> tuple[float, float]:
    """How far the gradient is from coarse and from fine differences, relative to the size of its terms."""
    with jax.enable_x64(True):
        given = generic(arguments(form, np.random.default_rng(1)))
        ours, coarse, fine, size = map(float, soak.derivatives(form, given, jnp.asarray(0)))
    return abs(ours - coarse) / size, abs(ours - fine) / size


def test_gradients_are_the_differences_and_wrong_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert error_of(FORM)[0] < soak.TOLERANCE
    original = soak.lif_network

    def detached(*given, **options):
        return original(*given, **{**options, "detach_reset": True})

    monkeypatch.setattr(soak, "lif_network", detached)
    coarse, fine = error_of(FORM)
    assert coarse > soak.TOLERANCE
    assert fine > soak.FINER_TOLERANCE


def test_currents_of_a_small_form_are_those_of_its_neurons() -> None:
    for width in (0, 3, 5, 6, 200):
        small = soak.small(of_currents(Form(3, 2, 40, (width, 9))))
        assert small.inputs == small.widths[0]


def test_simulations_are_those_of_the_program_and_wrong_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong one has an event too many in each step."""
    others = True, 3, True, True, "later", 2
    form = random_simulations.Form(
        7, 2, 20, 12, False, False, 3, 2, "uint8", "uint16", "float32", True, 3.0, True, True, 1.0, *others
    )
    for seed in range(3):
        random_simulations.check_simulation(form, seed)
    counts = random_simulations.poisson_counts
    monkeypatch.setattr(random_simulations, "poisson_counts", lambda *given: counts(*given) + 1)
    with pytest.raises(AssertionError):
        random_simulations.check_simulation(form, 0)


def test_misses_are_counted_and_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert soak.check_form("values", 0, range(3)) == (3, 0, 0)
    wrong = functools.partial(soak.assert_close, np.ones(1), of_largest=0.0)
    monkeypatch.setattr(soak, "assert_close", lambda *given, **options: wrong(np.zeros(1)))
    assert soak.check_form("values", 0, range(3)) == (3, 3, 0)
    written = capsys.readouterr().out.splitlines()
    for draw, line in enumerate(written):
        assert line.startswith(f"python -m tests.soak --kinds values --only 0 {draw}: ")
        assert "Not equal" in line
    assert len(written) == 3


# A neuron whose bias has no effect: its gradient is a sum of 40 terms of up to 900, whose cancelling leaves rounding of
# 1e-3. That of the reference is 8e-5 there, by luck.
CANCELLING, BIAS, NEURON = (30054, 364), 15, 2
# A network whose gradients pass two layers of huge weights, 2^100 each.
HUGE = Form(2, 3, 4, (5, 6), 2, bias=False, lengths=False, record_spikes=False)
SCALED_GRADIENTS = soak.scaled_gradients


def mistaken(change):
    """`soak.scaled_gradients` with a `change` of those of the kernels: by factor of the loss and gradients."""

    def of(form: Form, implementation: str):
        run = SCALED_GRADIENTS(form, implementation)
        return (
            run if implementation == "reference" else lambda scale, *given: change(scale, run(scale, *given))
        )

    return of


@needs_kernels
def test_kernels_may_round_terms_that_cancel_and_not_err(monkeypatch: pytest.MonkeyPatch) -> None:
    number, draw = CANCELLING
    form, seed = random_form(np.random.default_rng(number)), number * 1_000_000 + draw
    form = form._replace(max_delays=(), currents=False, inputs=1, connected=None)
    with pytest.raises(AssertionError):
        check_kernel(form, seed)
    soak.check_as_exact(form, seed)
    # A mistake ten times as large as this neuron's rounding; and one in 2000 of those that are only a sum of few terms.
    for change in (
        lambda scale, found: found | {BIAS: found[BIAS].at[NEURON].add(1e-2 * scale)},
        lambda _, found: found | {BIAS: found[BIAS].at[0].multiply(1.0005)},
    ):
        monkeypatch.setattr(soak, "scaled_gradients", mistaken(change))
        with pytest.raises(AssertionError, match=f"argument {BIAS}: off by"):
            soak.check_as_exact(form, seed)


def silent(form: Form, rng: np.random.Generator) -> tuple[Any, ...]:
    """Arguments of a network without a spike, whose last weights are huge."""
    inputs, (first, second), readout, state, *rest = arguments(form, rng)
    huge = lambda part: part._replace(weights=2.0**100 * part.weights)  # noqa: E731
    zero = jax.tree.map(jnp.zeros_like, (inputs, state))
    return zero[0], (first, huge(second)), huge(readout), zero[1], *rest


@needs_kernels
def test_gradients_beyond_float32_are_counted_and_all_others_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(soak, "arguments", silent)
    beyond = soak.check_as_exact(HUGE, 1)
    in_first_layer = 4 * 5 + 3 * 5  # the weights and constants
    assert beyond >= in_first_layer
    # Beyond, any number will do.
    zeroed = lambda _, found: jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), found)  # noqa: E731
    infinite = lambda _, found: jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), jnp.inf, g), found)  # noqa: E731
    inexact = lambda _, found: jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), 1.01 * g, g), found)  # noqa: E731
    monkeypatch.setattr(soak, "scaled_gradients", mistaken(zeroed))
    assert soak.check_as_exact(HUGE, 1) == beyond
    for change in (infinite, inexact):
        monkeypatch.setattr(soak, "scaled_gradients", mistaken(change))
        with pytest.raises(AssertionError, match="off by"):
            soak.check_as_exact(HUGE, 1)


def test_command_checks_in_processes_of_its_own() -> None:
    command = (sys.executable, "-m", "tests.soak", "--kinds", "integers", "--checks", "1", "--draws", "1")
    done = subprocess.run((*command, "--workers", "1"), cwd=ROOT, capture_output=True, text=True, check=True)
    assert "| integers | 1 | 1 | 0 | 0 |" in done.stdout
