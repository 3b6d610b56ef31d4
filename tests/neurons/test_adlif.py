"""adLIF neurons: numbers to check by head."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import neurons
from snnjax.neurons import AdLIFState
from tests.neurons.models import unroll

KEY = jax.random.key(0)
HALVES = {"decay": 0.5, "adaptation_decay": 0.5}


def test_step_of_known_numbers() -> None:
    neuron = neurons.adlif(**HALVES, membrane_coupling=0.5, spike_coupling=1.0, normalize=False)
    params = neuron.init(KEY, 1)
    state = AdLIFState(v=jnp.array([[2.0]]), adaptation=jnp.array([[4.0]]))
    state, spikes = neuron.step(params, state, jnp.array([[6.0]]))
    assert float(state.adaptation[0, 0]) == 4.0  # 0.5 * 4 + 0.5 * 2 + 1 * 1
    assert float(state.v[0, 0]) == 2.5  # 0.5 * (2 - 1) + 6 - 4
    assert float(spikes[0, 0]) == 1.0


def test_without_couplings_it_is_lif() -> None:
    switches = {"decay": (0.6, 0.9), "reset": "zero", "learn_decay": True}
    adaptive = neurons.adlif(**switches, membrane_coupling=0.0, spike_coupling=0.0)
    params = adaptive.init(KEY, 3)
    inputs = 2 * jax.random.normal(KEY, (20, 2, 3))
    lif = neurons.lif(**switches)
    lif_params = neurons.LIFParams(params.raw_decay)
    _, spikes = unroll(adaptive, params, adaptive.initial_state(params, 2, 3), inputs)
    _, wanted = unroll(lif, lif_params, lif.initial_state(lif_params, 2, 3), inputs)
    assert np.sum(wanted) > 5
    np.testing.assert_array_equal(spikes, wanted)


def test_positive_membrane_coupling_resonates() -> None:
    neuron = neurons.adlif(
        0.9, adaptation_decay=0.9, membrane_coupling=1.0, spike_coupling=0.0, threshold=9.0
    )
    params = neuron.init(KEY, 1)
    state, membranes = neuron.initial_state(params, 1, 1), []
    for t in range(20):
        state, _ = neuron.step(params, state, jnp.full((1, 1), 5.0 * (t == 0)))
        membranes.append(float(state.v[0, 0]))
    # After the kick the membrane swings below zero and back above it.
    signs = np.sign(membranes)
    assert signs[0] == 1
    assert np.sum(np.diff(signs) != 0) >= 2


def test_constants_are_drawn_from_the_ranges_of_the_paper() -> None:
    params = neurons.adlif().init(KEY, 200)
    time_constants = -1 / np.log(neurons.raw_to_decay(params.raw_adaptation_decay))
    assert np.all((time_constants > 29.9) & (time_constants < 120.5))
    assert np.all(np.abs(params.membrane_coupling) <= 1)
    assert np.all((params.spike_coupling >= 0) & (params.spike_coupling <= 2))


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("decay, adaptation_decay", [(0.5, 0.5), (0.75, 0.875)])
def test_membranes_grow_without_bound_where_the_documentation_says_so(
    decay: float, adaptation_decay: float, normalize: bool
) -> None:
    gain = 1 - decay if normalize else 1.0
    edge = -(1 - decay) * (1 - adaptation_decay) / gain
    after = {}
    for coupling in (edge - 0.1, edge + 0.1):
        neuron = neurons.adlif(
            decay,
            adaptation_decay=adaptation_decay,
            membrane_coupling=coupling,
            spike_coupling=0.0,
            normalize=normalize,
        )
        params = neuron.init(KEY, 1)
        state = AdLIFState(v=jnp.array([[-1.0]]), adaptation=jnp.zeros((1, 1)))
        after[coupling], _ = unroll(neuron, params, state, jnp.zeros((200, 1, 1)))
    growing, fading = (float(abs(state.v[0, 0])) for state in after.values())
    assert growing > 10
    assert fading < 0.1


@pytest.mark.parametrize("coupling, normalize", [(-1.0, True), (57.0, True), (-0.1, False), (5.7, False)])
def test_unstable_number_is_refused_not_replaced(coupling: float, normalize: bool) -> None:
    with pytest.raises(ValueError, match="`membrane_coupling` must be within 99% of the bounds of stability"):
        neurons.se_adlif(0.9, adaptation_decay=0.5, membrane_coupling=coupling, normalize=normalize)
