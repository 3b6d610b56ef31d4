"""`coba_lif`: constants by hand, and a refusal. Its equations are tested with `simulate`."""

import numpy as np
import pytest

from snnjax import neurons


def make(reversals) -> neurons.SynapticLIF:
    return neurons.coba_lif(
        tau=20.0,
        synaptic_taus=(5.0, 10.0),
        reversals=reversals,
        rest=-60.0,
        threshold=-50.0,
        reset=-60.0,
        refractory=0.26,
        dt=0.1,
    )


def test_constants_are_those_of_a_step() -> None:
    cells = make((0.0, -80.0))
    np.testing.assert_allclose(cells.leak, [-0.005])
    np.testing.assert_allclose(cells.synaptic_decay[:, 0], [np.exp(-0.02), np.exp(-0.01)])
    assert (cells.effect[:, 0].tolist(), cells.gain.tolist()) == ([0.0, -80.0], [1.0])
    assert (cells.refractory.tolist(), cells.has_conductances) == ([3], True)


def test_number_of_reversal_potentials_is_that_of_receptors() -> None:
    with pytest.raises(ValueError) as refused:
        make((0.0,))
    assert str(refused.value) == (
        "coba_lif: `reversals` must have as many entries as `synaptic_taus`, 2, got 1. Pass one for each time constant."
    )
