"""Networks in bfloat16 and float16 against float64: nothing but a result is rounded, whatever the path."""

from typing import Any

import pytest

from snnjax import axonal, dense, layer, leaky_readout, network, neurons
from tests.graph.random_networks import Form, check_paths

LEARNED: Any = axonal(
    7, initial=3.5
)  # halves of steps: shares that have more digits than what they are shares of
LIF = neurons.lif(0.5, 1.0, surrogate="triangle")
FORMS = {
    "membranes": Form(
        network(9, [LEARNED, layer(17, LIF)], leaky_readout(3, decay=0.5)),
        "bfloat16",
        "bfloat16",
        6,
        3,
        True,
        None,
        ("membranes", "spikes"),
    ),
    "delayed recurrence, lists and refractory neurons": Form(
        network(
            9,
            [
                LEARNED,
                layer(17, neurons.refractory(LIF, steps=1), recurrent=[LEARNED, dense(17)], capacity=9),
            ],
            leaky_readout(3, decay=0.5),
        ),
        "float16",
        "float32",
        6,
        3,
        True,
        None,
        (),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_path_is_that_of_float64_with_rounded_results(name: str) -> None:
    for seed in range(3):
        assert check_paths(FORMS[name], seed) == 0
