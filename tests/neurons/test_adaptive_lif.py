"""Adaptive LIF neurons: numbers to check by head."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import neurons
from tests.neurons.models import unroll

KEY = jax.random.key(0)


def trace(inputs: list[float], **config) -> list[tuple[float, float, float]]:
    """(membrane, adaptation, spike) a step; both decays 0.5, strength 2, threshold 1, gain 1."""
    neuron = neurons.adaptive_lif(
        0.5, adaptation_decay=0.5, adaptation_strength=2.0, normalize=False, **config
    )
    params = neuron.init(KEY, 1)
    state, steps = neuron.initial_state(params, 1, 1), []
    for x in inputs:
        state, _ = neuron.step(params, state, jnp.array([[x]]))
        steps.append(tuple(float(leaf[0, 0]) for leaf in state))
    return steps


def test_spike_raises_the_threshold() -> None:
    assert trace([2.0, 2.0, 2.0]) == [
        (2.0, 0.0),
        (2.5, 0.5),  # 0.5 * (2 - 1) + 2, above 1 + 2 * 0.5
        (2.25, 0.75),  # 0.5 * (2.5 - 2) + 2, not above 1 + 2 * 0.75
    ]


@pytest.mark.parametrize(
    "config, wanted",
    [
        ({"reset": "zero"}, 2.0),  # 0.5 * 0 + 2
        ({"reset": "none"}, 3.0),  # 0.5 * 2 + 2
        ({"reset_time": "after_decay"}, 2.0),  # 0.5 * 2 + 2 - 1
    ],
)
def test_resets_of_known_numbers(config: dict[str, Any], wanted: float) -> None:
    assert trace([2.0, 2.0], **config)[1][0] == wanted


def test_adaptation_slows_constant_firing() -> None:
    neuron = neurons.adaptive_lif(0.5, adaptation_decay=0.9, adaptation_strength=3.0)
    params = neuron.init(KEY, 1)
    _, spikes = unroll(neuron, params, neuron.initial_state(params, 1, 1), jnp.full((60, 1, 1), 3.0))
    times = np.flatnonzero(spikes[:, 0, 0])
    intervals = np.diff(times)
    assert intervals[0] < intervals[-1]


def test_reset_at_once_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        neurons.adaptive_lif(reset_time="immediate")
    assert str(error.value) == (
        "adaptive_lif: `reset_time` must be 'before_decay' or 'after_decay', got 'immediate'. "
        "Choose one of these."
    )
