"""`lif_step`: its conventions by hand and against loops, its exact and its surrogate derivatives."""

import functools
import itertools
from typing import Any

import chex
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import lif_step
from snnjax.surrogates import Surrogate
from tests.cases import SMOOTH
from tests.ops import references
from tests.ops.common import check_gradient, jit

RESETS, TIMES = ("subtract", "zero", "none"), ("before_decay", "after_decay", "immediate")
# Every combination that there is; "immediate" has no old membrane to spike from.
CONVENTIONS = [
    {"reset": reset, "reset_time": time, "spike_from": source, "inclusive": inclusive}
    for reset, time, source, inclusive in itertools.product(RESETS, TIMES, ("new", "old"), (False, True))
    if (time, source) != ("immediate", "old")
]
quarters = hnp.arrays(np.float32, (2, 4), elements=st.integers(-4, 12).map(lambda n: n / 4))
DECAY, THRESHOLD, GAIN = np.float32([0.5, 0.25, 1.0, 0.0]), np.float32([1.0, 0.5, 1.0, 0.75]), np.float32(0.5)


@jit
def every_convention(v, current):
    return [lif_step(v, current, DECAY, THRESHOLD, GAIN, **convention) for convention in CONVENTIONS]


@hypothesis.given(v=quarters, current=quarters)
def test_every_convention_equals_its_equations(v: np.ndarray, current: np.ndarray) -> None:
    """To the bit: quarters and powers of 1/2 have exact sums, and membranes meet thresholds."""
    for convention, ours in zip(CONVENTIONS, every_convention(v, current), strict=True):
        expected = references.lif_step(v, current, DECAY, THRESHOLD, GAIN, **convention)
        chex.assert_trees_all_equal(ours, expected, strict=True)


@pytest.mark.parametrize(
    "switches, v_new, spikes",
    [
        ({}, [1.0, 1.25], [0, 1]),
        ({"reset": "zero"}, [1.0, 0.5], [0, 0]),
        ({"reset": "none"}, [1.0, 1.75], [0, 1]),
        ({"inclusive": True}, [0.5, 1.25], [0, 1]),
        ({"spike_from": "old"}, [1.0, 1.25], [0, 1]),
        ({"reset_time": "after_decay"}, [1.0, 0.75], [0, 0]),
        ({"reset_time": "after_decay", "reset": "zero"}, [1.0, 0.0], [0, 0]),
        ({"reset_time": "immediate"}, [1.0, 0.75], [0, 1]),
        ({"reset_time": "immediate", "reset": "zero"}, [1.0, 0.0], [0, 1]),
    ],
)
def test_step_by_hand(switches: dict[str, Any], v_new: list[float], spikes: list[float]) -> None:
    """Membranes 1 and 2.5, current 1 and 1, decay 1/2, gain 1/2, threshold 1."""
    result = lif_step(jnp.array([1.0, 2.5]), jnp.ones(2), 0.5, 1.0, **switches)
    assert [each.tolist() for each in result] == [v_new, spikes]


def test_gain_is_one_minus_decay_unless_given() -> None:
    decay = jnp.array([0.25, 0.5])
    v_new, _ = lif_step(jnp.zeros(2), jnp.ones(2), decay, 1.0)
    assert v_new.tolist() == [0.75, 0.5]
    d_decay = jax.grad(lambda d: jnp.sum(lif_step(jnp.full(2, 0.5), jnp.ones(2), d, 1.0)[0]))(decay)
    assert d_decay.tolist() == [-0.5, -0.5]


def gradients_by_hand(**switches) -> list[float]:
    """Of the new membrane by v = 2, current = 1, decay = 1/2, threshold = 1 and gain = 1/4."""

    def v_new(*numbers: jax.Array) -> jax.Array:
        v, current, decay, threshold, gain = numbers
        return lif_step(v[None], current[None], decay, threshold, gain, **switches)[0][0]

    return [float(g) for g in jax.grad(v_new, tuple(range(5)))(*map(jnp.float32, (2, 1, 0.5, 1, 0.25)))]


@pytest.mark.parametrize(
    "switches, expected",
    [
        # v_new = decay (v - threshold) + gain current: the reset's spike is detached, its threshold is not.
        ({}, [0.5, 0.25, 1.0, -0.5, 1.0]),
        ({"reset": "zero"}, [0.0, 0.25, 0.0, 0.0, 1.0]),
        ({"reset": "none"}, [0.5, 0.25, 2.0, 0.0, 1.0]),
        ({"reset_time": "after_decay"}, [0.5, 0.25, 2.0, -1.0, 1.0]),
        ({"reset_time": "immediate"}, [0.5, 0.25, 2.0, -1.0, 1.0]),
        # Attached, straight through: the reset loses threshold * ds, and ds/dv = 1 = -ds/dthreshold.
        ({"detach_reset": False}, [0.0, 0.25, 1.0, 0.0, 1.0]),
        ({"detach_reset": False, "reset": "zero"}, [-1.0, 0.25, 0.0, 1.0, 1.0]),
    ],
)
def test_gradient_by_hand(switches: dict[str, Any], expected: list[float]) -> None:
    assert gradients_by_hand(surrogate="straight_through", **switches) == expected


@pytest.mark.parametrize("reset", RESETS)
def test_gradient_equals_finite_differences_in_every_convention(reset: str) -> None:
    """Smooth spikes and an attached reset make the surrogate gradient the true one."""
    rng = np.random.default_rng(0)
    switches = [c for c in CONVENTIONS if c["reset"] == reset and not c["inclusive"]]

    def steps(*arguments):
        return [lif_step(*arguments, surrogate=SMOOTH, detach_reset=False, **each) for each in switches]

    with jax.enable_x64(True):
        v, current = (jnp.asarray(rng.normal(0.7, 0.7, (3, 4))) for _ in range(2))
        constants = (jnp.asarray(rng.uniform(0.4, 0.9, shape)) for shape in ((4,), (), (4,)))
        check_gradient(steps, (v, current, *constants))


def test_gradient_of_the_detached_reset_freezes_its_spikes() -> None:
    """Finite differences of the step written out, with the reset's spikes as given numbers."""
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        v, current, decay, threshold = (jnp.asarray(rng.uniform(0.2, 1.5, 6)) for _ in range(4))
        frozen = SMOOTH.relaxed(v - threshold)

        def written_out(v, current, decay, threshold):
            v_new = decay * (v - threshold * frozen) + (1 - decay) * current
            return v_new, SMOOTH.relaxed(v_new - threshold)

        check_gradient(written_out, (v, current, decay, threshold))
        op = functools.partial(lif_step, surrogate=SMOOTH)
        both = [jax.vjp(f, v, current, decay, threshold)[1]((v, current)) for f in (op, written_out)]
    chex.assert_trees_all_close(both[0], both[1], rtol=1e-14, strict=True)  # a few ulp of float64


def test_spike_without_cotangent_costs_no_gradient() -> None:
    """The membrane's gradient alone: a steep surrogate does not show."""
    steep = Surrogate("superspike", 1e6)
    gradient = jax.grad(lambda v: jnp.sum(lif_step(v, v, 0.5, 1.0, surrogate=steep)[0]))(jnp.ones(2))
    assert gradient.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 0), (2, 2, 3)])
def test_any_leading_axes_are_kept(shape: tuple[int, ...]) -> None:
    v_new, spikes = lif_step(jnp.ones(shape), jnp.ones(shape), jnp.full(shape[-1], 0.5), 2.0)
    assert v_new.shape == spikes.shape == shape
    assert np.all(v_new == 1)


def test_membrane_that_is_not_finite_stays_alone() -> None:
    v_new, spikes = lif_step(jnp.array([jnp.nan, jnp.inf, -jnp.inf, 0.0]), jnp.zeros(4), 0.5, 1.0)
    np.testing.assert_array_equal(v_new, [jnp.nan, jnp.inf, -jnp.inf, 0.0])
    assert spikes.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("decay", [20.0, -0.5, np.nan, jnp.array([0.5, 20.0])])
def test_a_decay_that_keeps_more_than_all_is_refused(decay) -> None:
    with pytest.raises(ValueError) as error:
        lif_step(jnp.zeros(2), jnp.ones(2), decay, 1.0)
    found = decay if isinstance(decay, float) else 20.0
    assert str(error.value) == (
        f"lif_step: `decay` must be between 0 and 1, got {found:g}. "
        "From a time constant it is exp(-dt / time_constant)."
    )
