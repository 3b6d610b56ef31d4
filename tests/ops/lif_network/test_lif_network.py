"""`lif_network`: numbers by hand, two layers against loops, forms of input, lists, edges."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import LIFLayer, LIFReadout, SparseSpikes, lif_network, lif_network_state
from snnjax._types import Signal, State
from snnjax.neurons import SecondState
from tests.cases import as_numpy, network_arguments, run_network
from tests.ops import references
from tests.ops.common import jit
from tests.ops.lif_network.networks import BATCH, INPUTS, ONE_LAYER, OUTPUTS, STEPS, make_network
from tests.project.sampling import each_meeting

X = jnp.array([2.0, 0.0, 3.0])[:, None, None]
LAYER = LIFLayer(jnp.array([[1.0, 0.5]]), decay=0.5, threshold=1.0, gain=1.0)


def test_run_by_hand() -> None:
    """Neuron 0 sees 2, 0, 3 and neuron 1 half of it: v = 2 | 0.5 (2 - 1) = 0.5 | 0.25 + 3, and 1 | 0.5 | 0.25 + 1.5."""
    readout = LIFReadout(jnp.array([[1.0], [10.0]]), decay=0.5, gain=1.0, bias=jnp.array([0.25]))
    out, state = lif_network(X, [LAYER], readout, record_spikes=True)
    assert out.spikes[0].tolist() == [[[1, 0]], [[0, 0]], [[1, 1]]]
    assert out.output[:, 0, 0].tolist() == [1.25, 0.875, 11.6875]
    assert state.layers[0].v.tolist() == [[3.25, 1.75]]
    assert state.readout.tolist() == [[11.6875]]
    np.testing.assert_allclose(out.activity[0], [[2 / 3, 1 / 3]], rtol=1e-6)
    assert out.dropped[0].tolist() == [0]


def test_reset_zero_and_none_by_hand() -> None:
    for reset, v in (("zero", [[3.0, 1.75]]), ("none", [[3.5, 1.75]])):
        assert lif_network(X, [LAYER], reset=reset)[1].layers[0].v.tolist() == v


def test_recurrent_spikes_come_from_the_step_before() -> None:
    """Neuron 0's first spike inhibits neuron 1 in the second step and not before: v1 = 1 | 0.5 - 4 | -1.75 + 1.5."""
    layer = LAYER._replace(recurrent=jnp.array([[0.0, -4.0], [0.0, 0.0]]))
    out, state = lif_network(X, [layer], record_spikes=True)
    assert out.output.tolist() == [[[1, 0]], [[0, 0]], [[1, 0]]]
    assert state.layers[0].v.tolist() == [[3.25, -0.25]]
    assert state.layers[0].spikes.tolist() == [[1, 0]]


def test_dropped_spikes_reset_but_reach_nobody() -> None:
    """A list of one slot takes the larger membrane; the other one's spike is counted, and still resets."""
    layer = LIFLayer(jnp.array([[2.0, 4.0]]), decay=0.5, threshold=1.0, gain=1.0)
    readout = LIFReadout(jnp.array([[1.0], [10.0]]), decay=0.0, gain=1.0)
    out, state = lif_network(jnp.ones((2, 1, 1)), [layer], readout, capacity=1, record_spikes=True)
    assert out.output[:, 0, 0].tolist() == [10, 10]
    assert out.spikes[0].ids.tolist() == [[[1]], [[1]]]
    assert out.spikes[0].num_dropped.tolist() == [[1], [1]]
    assert out.dropped[0].tolist() == [2]
    assert out.activity[0].tolist() == [[1, 1]]
    assert state.layers[0].v.tolist() == [[2.5, 5.5]]


@functools.cache
def two_layers(capacity, reset: str):
    return jit(functools.partial(run_network, capacity=capacity, reset=reset))


@pytest.mark.parametrize("capacity, reset", [((3, 2), "subtract"), ((2, 9), "zero")])
def test_two_layers_equal_loops(capacity: tuple[int, int], reset: str) -> None:
    """Bit for bit, because sums are exact, including lists, dropped counts and activity."""
    dropped = 0
    for seed in range(5):
        arguments = network_arguments(np.random.default_rng(seed), widths=(6, 4))
        expected = references.lif_network(*as_numpy(arguments), capacity=capacity, reset=reset)
        chex.assert_trees_all_equal(two_layers(capacity, reset)(*arguments), expected, strict=True)
        dropped += sum(int(np.sum(each)) for each in expected[2])
    assert dropped > 0


def test_full_lists_have_the_spikes_of_the_dense_run() -> None:
    """Bit for bit, on dyadic weights: capacity above the width, lists of all spikes, and no lists."""
    arguments = network_arguments(np.random.default_rng(0), widths=(6, 4))
    runs = [two_layers(capacity, "subtract")(*arguments) for capacity in (None, (6, 9))]
    dense = runs[0]
    for output, activity, dropped, spikes, state in runs[1:]:
        chex.assert_trees_all_equal(
            (output, activity, dropped, state), (dense[0], dense[1], dense[2], dense[4]), strict=True
        )
        rows = jit(lambda lists: tuple(each.to_dense() for each in lists))(spikes)
        chex.assert_trees_all_equal(rows, dense[3], strict=True)
    assert np.any(dense[3][1])


@pytest.mark.parametrize("capacity", [None, 2])
def test_events_in_equal_dense_in(capacity: int | None) -> None:
    """Lists with padding, unsorted, with an id twice; and the gradient by their values."""
    _, *network = make_network(ONE_LAYER)
    ids = jnp.asarray(np.random.default_rng(0).integers(0, INPUTS + 1, (STEPS, BATCH, 3)))
    events = SparseSpikes.from_ids(ids, INPUTS).with_values()

    def loss(given):
        out, _ = lif_network(
            given, *network, capacity=capacity, second_threshold=0.2, lengths=jnp.array([STEPS, 3])
        )
        return jnp.sum(out.output), out

    run = jit(jax.grad(loss, has_aux=True, allow_int=True))
    d_events, ours = run(events)
    d_dense, expected = run(events.to_dense())
    rounding = {"rtol": 1e-5, "atol": 1e-6}  # an id twice adds w + w on one side, 2 w on the other
    chex.assert_trees_all_close(ours, expected, **rounding, strict=True)
    at = jnp.minimum(ids, INPUTS - 1)
    gathered = jnp.where(ids < INPUTS, jnp.take_along_axis(d_dense, at, axis=-1), 0)
    chex.assert_trees_all_close(d_events.values, gathered, **rounding, strict=True)
    assert np.any(gathered)


@pytest.mark.parametrize("capacity", [None, 1])
def test_spiking_output_is_that_of_the_last_layer(capacity: int | None) -> None:
    """As lists if it has a capacity; and it is among the spikes that are returned if these are asked for."""
    inputs, layers, _, state = make_network()
    state = state._replace(readout=None)
    results = [
        jit(functools.partial(lif_network, capacity=(3, capacity), record_spikes=asked))(
            inputs, layers, None, state
        )[0]
        for asked in (False, True)
    ]
    chex.assert_trees_all_equal(results[0].output, results[1].output, results[1].spikes[1], strict=True)
    assert results[0].spikes is None
    assert isinstance(results[0].output, SparseSpikes) == (capacity is not None)
    assert np.any(results[0].output.values if capacity else results[0].output)
    assert np.any(results[0].dropped[1]) == (capacity is not None)


def test_second_threshold_moves_without_a_second_trace() -> None:
    """One value, or an array of one per layer, traced: a schedule. More neurons are listed as it falls; none spikes."""
    chex.clear_trace_counter()
    network = make_network()

    @jit
    @chex.assert_max_traces(n=2)  # of arrays and of numbers
    def listed(second_threshold):
        out, _ = lif_network(*network, capacity=4, second_threshold=second_threshold, record_spikes=True)
        return [jnp.sum(s.num_listed) for s in out.spikes], out.output

    counts = [listed(jnp.array([second, 0.5])) for second in (0.9, 0.3, -0.5)]
    first, second = zip(*(count for count, _ in counts), strict=True)
    assert first[0] < first[1] < first[2]
    assert len({int(n) for n in second}) == 1
    chex.assert_trees_all_equal(counts[0][1], counts[2][1], strict=True)
    listed(jnp.float32(0.9))
    listed(jnp.float32(0.1))


def test_second_threshold_may_differ_by_layer_and_neuron() -> None:
    inputs, layers, readout, state = make_network()
    second = (jnp.full(5, -jnp.inf).at[2].set(jnp.inf), 5.0)
    apply = jit(functools.partial(lif_network, capacity=5, second_threshold=second, record_spikes=True))
    out, _ = apply(inputs, layers, readout, state)
    first, last = out.spikes
    firing = first.to_dense()[..., 2] > 0
    np.testing.assert_array_equal(first.num_listed, 4 + np.asarray(firing))
    np.testing.assert_array_equal(last.num_listed, last.num_spikes)


@pytest.mark.parametrize("capacity", [None, 3])
def test_no_steps_return_the_state(capacity: int | None) -> None:
    inputs, layers, readout, state = make_network()

    def loss(state: State):
        out, last = lif_network(
            inputs[:0], layers, readout, state, capacity=capacity, record_spikes=True, chunk=2
        )
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(last)), (out, last)

    gradient, (out, last) = jit(jax.grad(loss, has_aux=True))(state)
    chex.assert_trees_all_equal(last, state, strict=True)
    assert all((g == 1).all() for g in jax.tree.leaves(gradient))
    assert out.output.shape == (0, BATCH, OUTPUTS)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves((out.activity, out.dropped)))
    assert [s.shape for s in out.spikes] == [(0, BATCH, 5), (0, BATCH, 3)]


def test_state_in_the_beginning_is_silence() -> None:
    _, layers, readout, _ = make_network()
    state = lif_network_state(3, layers, readout)
    shapes = [leaf.shape for leaf in jax.tree.leaves(state)]
    assert shapes == [(3, 5), (3, 5), (3, 3), (3, 2)]
    assert state.layers[1].spikes is None
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(state))
    chex.assert_trees_all_equal(
        lif_network(X, [LAYER]), lif_network(X, [LAYER], state=lif_network_state(1, [LAYER])), strict=True
    )


def test_spikes_are_recorded_on_request_only() -> None:
    network = make_network(ONE_LAYER)
    silent, last = jit(functools.partial(lif_network, capacity=2))(*network)
    recorded, again = jit(functools.partial(lif_network, capacity=2, record_spikes=True))(*network)
    assert silent.spikes is None
    chex.assert_trees_all_equal((silent.output, last), (recorded.output, again), strict=True)


def test_inputs_that_are_not_finite_meet_weights_of_zero() -> None:
    """Nothing leaks from one sequence of a batch into another."""
    inputs = X.repeat(2, axis=1).at[1, 0, 0].set(jnp.nan)
    out, _ = lif_network(inputs, [LAYER])
    clean, _ = lif_network(X, [LAYER])
    np.testing.assert_array_equal(out.output[:, 1:], clean.output)
    assert not np.any(out.output[1:, 0])


@each_meeting(recurrent=[False, True], capacity=[None, 1], implementation=["cpu", "reference", "composed"])
def test_a_membrane_that_is_not_a_number_spoils_no_other_gradient(
    recurrent: bool, capacity: int | None, implementation: str
) -> None:
    """The weights behind neuron 1 are 0: its cotangents are 0, whatever the slope at its membrane."""
    network = (jnp.array([[1.0, jnp.nan], [0.5, 0.1]]), jnp.array([[0.7], [0.0]]))
    within = jnp.array([[0.25, 0.0], [0.0, 0.0]]) if recurrent else None

    def loss(weights, inputs: Signal):
        layers = [LIFLayer(weights[0], 0.9, recurrent=within), LIFLayer(weights[1], 0.9)]
        options = {"second_threshold": -jnp.inf} if capacity else {}
        out, _ = lif_network(
            inputs, layers, capacity=(capacity, None), implementation=implementation, **options
        )
        return jnp.sum(out.output)

    g_weights, g_inputs = jit(jax.grad(loss, (0, 1)))(network, jnp.ones((4, 2, 2)))
    chex.assert_tree_all_finite(g_weights)
    assert np.all(g_weights[0][:, 0] != 0) and not np.any(g_weights[0][:, 1])
    assert np.all(np.isfinite(g_inputs[..., 1]) & (g_inputs[..., 1] != 0))


@pytest.mark.parametrize("switch", ["detach_reset", "record_spikes"])
def test_a_switch_that_is_no_switch_is_refused(switch: str) -> None:
    for value in ("no", [0]):
        with pytest.raises(ValueError) as error:
            lif_network(X, [LAYER], **{switch: value})
        given = repr(value if isinstance(value, str) else 0)
        assert str(error.value) == (
            f"lif_network: `{switch}` must be True or False, got {given}. Choose one of these."
        )


@pytest.mark.parametrize("decay", [20.0, -0.5, np.nan, jnp.array([0.5, 20.0])])
def test_a_decay_that_keeps_more_than_all_is_refused(decay) -> None:
    """A time constant in its place would let membranes grow without bound."""
    second = SecondState(w_decay=decay)
    calls: dict[str, Any] = {
        "layers[0].decay": lambda: lif_network(X, [LAYER._replace(decay=decay)]),
        "layers[0].second_state.w_decay": lambda: lif_network(X, [LAYER._replace(second_state=second)]),
        "readout.decay": lambda: lif_network(X, [LAYER], LIFReadout(jnp.ones((2, 2)), decay)),
    }
    found = decay if isinstance(decay, float) else 20.0
    for argument, call in calls.items():
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == (
            f"lif_network: `{argument}` must be between 0 and 1, got {found:g}. "
            "From a time constant it is exp(-dt / time_constant)."
        )
    jax.eval_shape(lambda own: lif_network(X, [LAYER._replace(decay=own)]), jnp.asarray(decay))  # not known


@pytest.mark.parametrize(
    "steps, message",
    [
        (-1, "be between 0 and 16777216, got -1. Count it in steps."),
        (jnp.array([2, 1 << 25], jnp.int32), "be between 0 and 16777216, got 33554432. Count it in steps."),
        (jnp.full(2, 1.5), "hold integers, got float32. Cast it with layers[0].refractory.astype(int)."),
    ],
)
def test_refractory_periods_are_whole_steps(steps, message: str) -> None:
    with pytest.raises(ValueError) as error:
        lif_network(X, [LAYER._replace(refractory=steps)])
    assert str(error.value) == f"lif_network: `layers[0].refractory` must {message}"
