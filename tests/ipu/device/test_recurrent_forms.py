"""Recurrent networks on the device in each form of a step: which lists neurons read, and which sums of dot products.

The plan chooses the form by its estimate: each row has sizes for which it takes one, and the profile must show that it
did. Some samples have more spikes than a list takes, others do not.
"""

import itertools
from typing import Any
from unittest import mock

import jax
import numpy as np
import pytest

from snnjax.ipu import Profile, read_profile
from snnjax.ipu.device import network_cost
from tests.ipu.random_programs import networks
from tests.ops.lif_network.random_networks import ADAPTIVE, ADLIF, Form, arguments, runner
from tests.project.sampling import sampled

LISTS = {
    "ListBlock": {"ListBlock"},
    "RankSpikes": {"ListSpikes", "JoinSpikes", "RankSpikes"},
    "MergeSpikes": {"ListSpikes", "JoinSpikes", "RankSpikes", "MergeSpikes"},
}
FORM = Form(steps=6, batch=5, inputs=7, widths=(33,), recurrent=True, record_spikes=False)
LONG = FORM._replace(widths=(160,), capacity=40)
# The form of the sizes, the tiles, the codelet that its lists end with, and whether dot products are summed on the way.
SIZES: dict[str, tuple[Form, int, str, bool]] = {
    "lists of blocks": (FORM._replace(capacity=3), 24, "ListBlock", False),
    "ranked": (FORM._replace(capacity=8), 24, "RankSpikes", False),
    "ranked, sums": (LONG._replace(batch=2), 100, "RankSpikes", True),
    "ranked, sums of an odd number": (LONG._replace(batch=2, capacity=41), 100, "RankSpikes", True),
    "merged, sums": (LONG._replace(batch=3), 7, "MergeSpikes", True),
}
NEURONS: dict[str, dict[str, Any]] = {
    "lif": {"reset": "subtract"},
    "adlif": {"second_states": (ADLIF,), "reset": "zero"},
    "adaptive": {"second_states": (ADAPTIVE,), "detach_reset": False},
}


def overflowing_arguments(form: Form) -> tuple[Any, ...]:
    """Those of the first seed with which lists of some samples overflow."""
    forward = jax.jit(runner(form, None))
    for seed in itertools.count():
        given = arguments(form, np.random.default_rng(seed))
        if 0 < np.mean(np.asarray(forward(*given)[2][0]) > 0) < 1:
            return given
    raise AssertionError


def codelets_of(profile: Profile) -> set[str]:
    return {name.removeprefix("snnjax::").split("<")[0] for name in profile.codelets}


@pytest.mark.parametrize(
    "size, neurons",
    sampled(
        list(itertools.product(SIZES, NEURONS)),
        lambda row: {"size": row[0]},
        lambda row: {"neurons": row[1]},
    ),
)
def test_each_form_of_a_step_equals_the_cpu(ipus, size, neurons):
    form, tiles, last, is_summed = SIZES[size]
    form = form._replace(**NEURONS[neurons])
    rng = np.random.default_rng(len(size))
    program = networks.check_form(form, overflowing_arguments(form), tiles, ipus[0], rng)
    profile = read_profile(program)
    assert codelets_of(profile) & set().union(*LISTS.values()) == LISTS[last]
    assert any("own_sums" in each["name"] for each in profile.data["compute_sets"]) == is_summed


@pytest.mark.parametrize("neurons", NEURONS)
def test_dense_form_transposes_recurrent_weights_once_and_equals_the_cpu(ipus, neurons):
    form, rng = LONG._replace(**NEURONS[neurons]), np.random.default_rng(2)
    with mock.patch.object(network_cost, "pays", return_value=False):
        program = networks.check_form(form, overflowing_arguments(form), 100, ipus[0], rng, is_forced=False)
    transposed = [step for step in read_profile(program).steps if "transposed" in step.name]
    assert [step.executions for step in transposed] == [1]


@pytest.mark.parametrize("tiles", [8, 24])
@pytest.mark.parametrize("width, capacity", [(12, 0), (1, 0), (1, 1), (1, None)])
def test_lists_without_slots_and_of_one_neuron_equal_the_cpu(ipus, width, capacity, tiles):
    form = FORM._replace(widths=(width,), capacity=capacity)
    rng = np.random.default_rng(1)
    program = networks.check_form(form, arguments(form, rng), tiles, ipus[0], rng)
    assert {"LifRecurrentStep", "LifRecurrentGradient"} <= codelets_of(read_profile(program))
