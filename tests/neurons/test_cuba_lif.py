"""`cuba_lif`: constants by hand, and refusals. Its equations are tested with `simulate`."""

from typing import Any

import numpy as np

from snnjax import neurons
from tests.errors.refusals import refusals

GIVEN: dict[str, Any] = {
    "tau": 20.0,
    "synaptic_taus": (5.0, 10.0),
    "rest": -49.0,
    "threshold": -50.0,
    "reset": -60.0,
    "refractory": 5.0,
    "dt": 0.1,
}


def make(**changed) -> neurons.SynapticLIF:
    return neurons.cuba_lif(**(GIVEN | changed))


def test_constants_are_those_of_a_step() -> None:
    cells = make(synaptic_taus=(5.0, 20.0, 0.0))
    np.testing.assert_allclose(cells.leak, [np.exp(-0.005)])
    np.testing.assert_allclose(cells.gain, [1 - np.exp(-0.005)], rtol=1e-6)
    np.testing.assert_allclose(cells.synaptic_decay[:, 0], [np.exp(-0.02), np.exp(-0.005), 0.0])
    # (1/tau) times the integral of exp(-(dt - s) / tau) exp(-s / tau_r) over a step; a pulse adds itself.
    midpoints = (np.arange(1000) + 0.5) * 0.1 / 1000
    shares = [float(np.mean(np.exp(-(0.1 - midpoints) / 20 - midpoints / tau))) / 200 for tau in (5.0, 20.0)]
    np.testing.assert_allclose(cells.effect[:, 0], [*shares, 1.0], rtol=1e-6)
    assert (cells.refractory.tolist(), cells.num_receptors, cells.has_conductances) == ([50], 3, False)


def test_constants_may_be_of_each_neuron() -> None:
    cells = make(tau=np.array([10.0, 20.0]), threshold=np.array([-50.0, -40.0]))
    assert (cells.leak.shape, cells.effect.shape, cells.synaptic_decay.shape) == ((2,), (2, 2), (2, 1))
    assert cells.threshold.tolist() == [-50.0, -40.0]


REFUSED = {
    "cuba_lif: `dt` must be above 0, got 0. Pass a length in ms.": lambda: make(dt=0.0),
    "cuba_lif: `dt` must be one number, got float64[3]. All neurons have steps of one length.": lambda: make(
        dt=np.ones(3)
    ),
    "cuba_lif: `reset` must be at most the threshold, -50, got -40. Do not swap the two.": lambda: make(
        reset=(-60.0, -40.0)
    ),
    "cuba_lif: `tau` must be above 0, got -1. Pass a length in ms.": lambda: make(tau=-1.0),
    "cuba_lif: `synaptic_taus` must be at least 0, got -1. Pass a length in ms.": lambda: make(
        synaptic_taus=(-1.0,)
    ),
    "cuba_lif: `synaptic_taus` must be a tuple of at least one entry, got 5.0. "
    "Pass one for each receptor, such as (5.0, 10.0).": lambda: make(synaptic_taus=5.0),
    "cuba_lif: `synaptic_taus` must be of one number of neurons, got 2 and 3. "
    "Pass one number or one a neuron.": lambda: make(synaptic_taus=(np.ones(2), np.ones(3))),
    "cuba_lif: `rest` must be a finite number, or one for each neuron, that is known, got nan. "
    "Pass a float outside of jit.": lambda: make(rest=np.nan),
    "cuba_lif: `refractory` must be 0 or round to a step of 0.1 ms, got 0.05. "
    "Use a smaller dt, or 0 for none.": lambda: make(refractory=(5.0, 0.05)),
    "cuba_lif: `refractory` must be below 16777216 steps of dt, got 1e+10. Use a larger dt.": lambda: make(
        refractory=1e9
    ),
}
test_wrong_constant_is_refused = refusals(REFUSED)
