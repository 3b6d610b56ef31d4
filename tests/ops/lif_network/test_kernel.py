"""The kernels of `lif_network` equal the reference: all results, and the gradients of all arguments.

Arrays are dyadic (`tests/ops/lif_network/random_networks.py`), so results are the same bit for bit, whatever the order
of sums.
"""

import dataclasses
from collections.abc import Callable

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import Connection, LIFLayer, SparseSpikes, lif_network
from snnjax._types import Signal
from tests.numbers import array, assert_close
from tests.ops.common import jit
from tests.ops.kernel_checks import TOLERANCE, check_kernel, compiled, everything, needs_kernels
from tests.ops.lif_network.random_networks import (
    ADAPTIVE,
    ADLIF,
    ALL,
    LIST_INPUTS,
    RESONANCE,
    SURROGATES,
    SYNAPSE,
    Form,
    arguments,
    run,
    runner,
)
from tests.project.sampling import Values, sampled

pytestmark = needs_kernels

# Each of the sizes, switches and forms of input somewhere; lists are full and overflow.
FORMS = (
    Form(6, 17, 65, (130, 64), capacity=(9, None)),
    Form(3, 33, 200, (200,), recurrent=True, given="uint8", surrogate="triangle", reset="zero"),
    Form(7, 33, 20, (65, 5), None, True, reset="zero", detach_reset=False, connected=0.3, recurrent_delay=3),
    Form(10, 17, 20, (130,), recurrent=True, capacity=20, surrogate="arctan", cutoff=0.5, connected=0.1),
    Form(
        4, 9, 20, (64,), recurrent=True, given="uint8", dtype="bfloat16", second_states=(ALL,), connected=0.9
    ),
    Form(6, 16, 40, (63, 5), 3, capacity=(20, 2), given="bool", surrogate="gaussian", detach_reset=False),
    Form(3, 15, 7, (65, 6), None, True, capacity=4, given="uint16 lists", surrogate="sigmoid"),
    Form(
        6, 20, 40, (100, 17), recurrent=True, capacity=12, reset="zero", detach_reset=False, recurrent_delay=2
    ),
    Form(6, 1, 1, (1,), 1, given="int32", surrogate="boxcar", reset="none", per_neuron=False, lengths=False),
    Form(3, 2, 200, (64, 1, 130), capacity=(0, 3, 200), given="int32 lists", slots=90, surrogate="arctan"),
    Form(6, 33, 65, (5, 130), None, True, capacity=(2, None), given="bfloat16", surrogate="straight_through"),
    Form(
        6,
        17,
        40,
        (65, 20),
        2,
        True,
        dtype="bfloat16",
        capacity=(None, 30),
        per_neuron=False,
        recurrent_delay=9,
    ),
    Form(3, 16, 130, (200,), 2, False, False, 40, "bfloat16", dtype="bfloat16", record_spikes=False),
    Form(3, 5, 65, (63,), 20, given="uint16 lists", dtype="bfloat16", reset="none", lengths=False),
    Form(0, 17, 5, (6,), capacity=3, recurrent=True),
    Form(3, 0, 5, (6, 4), capacity=(3, None), given="int32 lists", slots=0),
    Form(3, 4, 0, (0, 5), 0, capacity=(3, 0)),
    Form(3, 17, 65, (130, 64), capacity=(9, None), second_states=(ADLIF, ADAPTIVE)),
    Form(3, 33, 40, (200,), recurrent=True, capacity=20, second_states=(ADLIF,), reset="zero"),
    Form(4, 20, 40, (65, 17), None, True, capacity=(12, None), second_states=(ADAPTIVE, SYNAPSE)),
    Form(3, 16, 40, (64, 5), 3, given="uint16 lists", second_states=(None, RESONANCE), detach_reset=False),
    Form(3, 18, 7, (65, 66), recurrent=True, second_states=(ALL, ALL), detach_reset=False, per_neuron=False),
    Form(3, 5, 20, (63,), capacity=9, second_states=(ALL,), reset="none", lengths=False, dtype="bfloat16"),
    Form(0, 3, 5, (6,), recurrent=True, second_states=(ALL,), recurrent_delay=0),
    # A delay of each synapse, the second time with blocks of several vectors of samples.
    Form(7, 9, 20, (65, 5), None, True, reset="zero", detach_reset=False, recurrent_delay=3, synaptic=True),
    Form(5, 71, 20, (20, 64), 2, True, capacity=(8, None), recurrent_delay=2, synaptic=True, connected=0.3),
    Form(9, 3, 7, (17,), recurrent=True, dtype="bfloat16", recurrent_delay=12, synaptic=True, connected=0.7),
    # Surrogates of bounded support, over several groups of steps.
    Form(10, 33, 20, (64, 20), None, True, capacity=(20, None), surrogate="arctan", cutoff=0.5),
    Form(17, 3, 20, (65, 64), 3, second_states=(ALL, ADAPTIVE), surrogate="sigmoid", cutoff=0.75),
    Form(9, 2, 20, (64, 20), surrogate="boxcar", second_states=(None, SYNAPSE), per_neuron=False),
    # Currents as inputs, also with such surrogates.
    Form(19, 17, 130, (130, 64), capacity=(None, 9), surrogate="triangle", cutoff=0.75, currents=True),
    Form(
        18, 20, 65, (65, 5), None, True, False, cutoff=0.25, reset="zero", detach_reset=False, currents=True
    ),
    Form(
        9, 18, 130, (130,), 2, True, given="bfloat16", surrogate="gaussian", cutoff=0.5, dtype="bfloat16"
    )._replace(currents=True),
    Form(3, 20, 65, (65, 5), recurrent=True, capacity=12, currents=True, second_states=(RESONANCE, None)),
    Form(9, 18, 65, (65, 5), None, True, currents=True, second_states=(ALL, None), recurrent_delay=4),
    Form(6, 4, 9, (9,), None, True, currents=True, second_states=(ALL,), recurrent_delay=0, synaptic=True),
    Form(3, 0, 5, (5,), 0, True, currents=True, second_states=(ALL,), recurrent_delay=2, synaptic=True),
    Form(5, 33, 200, (200,), None, second_states=(ALL,), given="bfloat16", dtype="bfloat16", currents=True),
    # Refractory periods: with all of the above.
    Form(12, 17, 20, (65, 64), detach_reset=False, refractory=(True, True)),
    Form(9, 20, 40, (130, 17), None, True, capacity=(9, None), surrogate="triangle", refractory=(True, True)),
    Form(9, 18, 40, (65, 64), 3, True, second_states=(ALL, ALL), detach_reset=False, refractory=(True, True)),
    Form(
        9,
        16,
        20,
        (66, 63),
        capacity=(12, 40),
        second_states=(ADLIF, None),
        reset="zero",
        refractory=(True, True),
    ),
    Form(
        12,
        5,
        20,
        (100, 5),
        2,
        True,
        capacity=20,
        dtype="bfloat16",
        recurrent_delay=3,
        refractory=(True, True),
    ),
    Form(12, 17, 65, (65,), None, second_states=(SYNAPSE,), currents=True, refractory=(True,)),
    Form(
        7, 9, 65, (65, 20), reset="none", currents=True, synaptic=True, recurrent=True, recurrent_delay=2
    )._replace(refractory=(True, False), rounds_record=(True, True)),
    Form(0, 3, 5, (6,), recurrent=True, second_states=(ALL,), refractory=(True,)),
)


def switches(form: Form) -> Values:
    """What kernels and reference branch on: every two meet in a form of the sample, if they meet in any."""
    return {
        "recurrent": form.recurrent,
        "capped": form.capacity is not None,
        "dtype": form.dtype,
        "second state": bool(form.second_states),
        "currents": form.currents,
        "delays": form.recurrent_delay is not None and ("of neurons", "of synapses")[form.synaptic],
        "few synapses": form.connected is not None,
        "refractory": any(form.refractory),
        "layers": min(len(form.widths), 2),
    }


# And what need not meet.
ALONE: tuple[Callable[[Form], Values], ...] = (
    lambda form: {"given": form.given},
    lambda form: {"surrogate": form.surrogate},
    lambda form: {"cut off": form.cutoff > 0},
    lambda form: {"reset": (form.reset, form.detach_reset)},
    lambda form: {"batch": form.batch},
    lambda form: {"nothing": (form.steps == 0, form.inputs == 0, 0 in form.widths)},
    lambda form: {"spiking output": form.outputs is None},
    lambda form: {"lengths": form.lengths, "bias": form.bias, "per neuron": form.per_neuron},
    lambda form: {"record": (form.record_spikes, form.rounds_record)},
    *(
        lambda form, kind=kind: {"second state": kind in form.second_states}
        for kind in (ADLIF, ADAPTIVE, SYNAPSE, RESONANCE, ALL)
    ),
)
SAMPLE = sampled(FORMS, switches, *ALONE)


@pytest.mark.parametrize("form", SAMPLE, ids=[FORMS.index(form) for form in SAMPLE])
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_kernel_equals_reference(form: Form, seed: int) -> None:
    check_kernel(form, seed)


def test_forms_reach_all_sides_of_the_kernels() -> None:
    """Also those of the sample."""
    for field, expected in (
        ("given", {"float32", "uint8", "bool", "int32", "bfloat16", *LIST_INPUTS}),
        ("surrogate", set(SURROGATES)),
        ("reset", {"subtract", "zero", "none"}),
        ("dtype", {"float32", "bfloat16"}),
        ("batch", {0, 1, 15, 16, 17, 20, 33}),
    ):
        assert expected <= {getattr(form, field) for form in SAMPLE}
    assert {0, 1, 63, 64, 65, 130, 200} <= {width for form in SAMPLE for width in form.widths}


def test_arrays_reach_all_sides_of_the_kernels() -> None:
    """Layers are silent, sparse and busy (dense products), and lists overflow and fit."""
    form = FORMS[0]
    drawn = [compiled(form, "cpu")(*arguments(form, np.random.default_rng(seed)))[0] for seed in range(20)]
    for layer in range(2):
        shares = [float(jnp.mean(activity[layer])) for _, activity, *_ in drawn]
        assert min(shares) < 0.05
        assert max(shares) > 0.4
    spiking = np.concatenate([np.sum(activity[0], axis=1) > 0 for _, activity, *_ in drawn])
    dropped = np.concatenate([counts[0] for _, _, counts, *_ in drawn])
    assert np.any(dropped > 0)
    assert np.any(spiking & (dropped == 0))


PARTIAL = Form(3, 17, 40, (65, 20), 3, recurrent=True, capacity=(12, None), surrogate="triangle")


def test_gradient_of_results_apart_adds_up() -> None:
    """The backward pass skips results without a cotangent: here the output, the activity, or spikes and state."""
    given = arguments(PARTIAL, np.random.default_rng(0))
    apart = [
        jit(everything(PARTIAL, "cpu", seen=lambda results, part=part: [results[i] for i in part]))(*given)[1]
        for part in ((0,), (1, 2), (3, 4))
    ]
    assert_close(
        jax.tree.map(lambda *terms: sum(terms), *apart),
        compiled(PARTIAL, "cpu")(*given)[1],
        of_largest=TOLERANCE["float32"],
    )


SOME = {
    "inputs": lambda given: given[0],
    "weights": lambda given: [layer.weights for layer in given[1]],
    "recurrent weights": lambda given: given[1][0].recurrent,
    "decay": lambda given: [layer.decay for layer in given[1]],
    "threshold": lambda given: given[1][1].threshold,
    "gain": lambda given: [given[1][0].gain, given[2].gain],
    "bias": lambda given: [given[1][1].bias, given[2].bias],
    "state": lambda given: given[3],
}


@pytest.mark.parametrize("by", SOME.values(), ids=SOME)
def test_gradient_by_some_arguments_is_that_by_all(by) -> None:
    """Bit for bit: the backward pass computes only what is needed."""
    given = arguments(PARTIAL, np.random.default_rng(0))
    _, every = compiled(PARTIAL, "cpu")(*given)
    _, some = jit(everything(PARTIAL, "cpu", by=by))(*given)
    assert some
    chex.assert_trees_all_equal(some, {place: every[place] for place in some}, strict=True)


@pytest.mark.parametrize("capacity", [7, 2**31 - 1])
def test_capacity_beyond_all_numbers_lists_all(capacity: int) -> None:
    form = Form(3, 4, 5, (6,), 2, capacity=None, record_spikes=False, lengths=False)
    given = arguments(form, np.random.default_rng(0))
    expected, found = (jit(runner(own, "cpu"))(*given) for own in (form, form._replace(capacity=capacity)))
    chex.assert_trees_all_equal(found, expected, strict=True)


def test_one_sequence_that_is_not_finite_stays_alone() -> None:
    """NaNs and infinities in one sample of a block leave all others as they are, gradients included."""
    form = Form(3, 17, 40, (65,), 3, capacity=9, given="float32", record_spikes=False, lengths=False)
    given = arguments(form, np.random.default_rng(1))
    spoilt = given[0].at[1, 4].set(jnp.nan).at[0, 4, 3].set(jnp.inf)

    @jit
    def run(inputs: Signal):
        def loss(inputs: Signal):
            output = runner(form, "cpu")(inputs, *given[1:])[0]
            return jnp.sum(output), output

        return jax.grad(loss, has_aux=True)(inputs)

    others = np.arange(17) != 4
    for clean, dirty in zip(run(given[0]), run(spoilt), strict=True):
        chex.assert_trees_all_equal(dirty[:, others], clean[:, others], strict=True)
        assert np.all(np.isfinite(dirty[:, others]))


@pytest.mark.parametrize("twice", [False, True], ids=["distinct ids", "an id twice"])
def test_long_lists_of_ones_equal_dense_inputs(twice: bool) -> None:
    """Above the dense share rows of distinct ids of value 1 are kept as bits; an id that stands twice counts twice."""
    steps, batch, inputs, neurons = 4, 9, 130, 200  # two tiles of columns
    generator = np.random.default_rng(0)
    ids = np.array([generator.permutation(inputs)[:100] for _ in range(steps * batch)], np.int32)
    ids[:, 0] = inputs  # an unused slot: contributes nothing
    if twice:
        ids[:, 7] = ids[:, 3]
    dense = np.zeros((steps * batch, inputs), np.float32)
    np.add.at(dense, (np.arange(steps * batch)[:, None], ids[:, 1:]), 1)
    assert dense.max() == 1 + twice
    events = SparseSpikes.from_ids(ids.reshape(steps, batch, -1), inputs)
    weights = array(generator.integers(-8, 9, (inputs, neurons)) / 64, jnp.float32)  # dyadic: sums are exact

    @jit
    def run(given):
        def loss(weights: jax.Array):
            output = lif_network(given, [LIFLayer(weights, decay=0.5)], implementation="cpu")[0].output
            return jnp.sum(output), output

        return jax.grad(loss, has_aux=True)(weights)

    gradient, output = run(events)
    expected_gradient, expected = run(jnp.asarray(dense.reshape(steps, batch, inputs)))
    chex.assert_trees_all_equal(output, expected, strict=True)
    assert 0 < float(jnp.mean(output)) < 1
    assert_close(gradient, expected_gradient, of_largest=TOLERANCE["float32"])


def test_weights_of_float64_are_refused() -> None:
    with jax.enable_x64(True):
        layer = LIFLayer(jnp.ones((1, 1), jnp.float64), decay=0.5)
        with pytest.raises(ValueError, match="for float64 weights, got 'cpu'"):
            lif_network(jnp.ones((1, 1, 1)), [layer], implementation="cpu")


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Upsampling:
    """A geometry that the kernels do not support."""

    words: str = "upsampling by 2"


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Upsampled(Connection):
    """A connection of a kind that is added later."""

    upsampling: Upsampling = Upsampling()


def test_a_connection_of_a_new_kind_is_not_taken_for_dense_weights() -> None:
    form = Form(2, 3, 5, (6,), record_spikes=False, lengths=False)
    inputs, (first,), *others = arguments(form, np.random.default_rng(0))
    layers = (first._replace(connection=Upsampled()),)
    with pytest.raises(ValueError, match="upsampling by 2"):
        jax.eval_shape(lambda: run(form, "cpu", inputs, layers, *others))
