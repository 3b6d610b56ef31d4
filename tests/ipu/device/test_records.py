"""What a forward pass leaves for its backward pass are values: gradients are pulled back in any program, anywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from snnjax import LIFLayer, LIFReadout, lif_network
from snnjax.ipu import read_profile
from snnjax.neurons import SecondState
from snnjax.ops._connection import Connection
from tests.ipu.device import by_name, cases
from tests.ipu.device.on_device import cpu, ipu, put

pytestmark = pytest.mark.usefixtures("ipus")

# Sums of some dozen terms with surrogates, in another order.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def floats(tree):
    return {name: leaf for name, leaf in tree.items() if jnp.issubdtype(leaf.dtype, jnp.floating)}


def network(sizes, **options):
    """A function of floating-point arrays, and these."""
    arrays = cases.lif_network(np.random.default_rng(3), **sizes)
    given = {name: array for name, array in floats(arrays).items() if not name.startswith("g_")}
    rest = {name: array for name, array in arrays.items() if name not in given}

    def function(given):
        return floats(by_name.network_results({**given, **rest}, options))

    return function, given


def adaptive(constants, **options):
    """Neurons with a second state, of learned constants, behind delays, and what they get."""
    rng = np.random.default_rng(5)
    given = {
        "inputs": rng.integers(0, 2, (5, 3, 12)).astype(np.float32),
        "weights": rng.integers(-8, 9, (12, 9)).astype(np.float32) / 8,
        "decay": np.float32(0.75),
        "delays": (np.arange(12) / 5).astype(np.float32),
        "readout": rng.integers(-8, 9, (9, 2)).astype(np.float32) / 8,
        **{name: np.float32(value) for name, value in constants.items()},
    }

    def function(given):
        second = SecondState(**{name: given[name] for name in constants})
        layer = LIFLayer(
            given["weights"],
            given["decay"],
            gain=given["decay"],
            second_state=second,
            connection=Connection(max_delay=2),
            delays=given["delays"],
        )
        readout = LIFReadout(given["readout"], given["decay"])
        out, last = lif_network(given["inputs"], [layer], readout, **options)
        return {
            "output": out.output,
            "activity": out.activity[0],
            "v": last.layers[0].v,
            "w": last.layers[0].w,
        }

    return function, given


NETWORKS = {
    "capped": network({"lengths": True}, capacity=2),
    "dense inputs": network({"dense": True}, capacity=(4, None), detach_reset=False),
    "spiking output": network({"readout": False, "lengths": True}, capacity=(3, None), reset="zero"),
    "recurrent": network({"recurrent": (0, 1), "first_spikes": True, "any_values": True}, capacity=(3, None)),
    "adaptive": adaptive({"w_decay": 0.5, "w_gain": 0.5, "threshold_coupling": 0.25}, capacity=3),
    "coupled": adaptive({"w_decay": 0.5, "w_jump": 0.25, "v_coupling": -0.5}),
}


def pulled_back(function, given, device, to, by=lambda pull_back: pull_back):
    """The gradient of a function on one device, pulled back on another one."""
    results, pull_back = jax.vjp(function, put(given, device))
    assert all(result.devices() == {device} for result in results.values())
    cotangents = {
        name: np.linspace(-1, 1, leaf.size, dtype=leaf.dtype).reshape(leaf.shape)
        for name, leaf in results.items()
    }
    (gradient,) = by(put(pull_back, to))(put(cotangents, to))
    computed = [array for name, array in gradient.items() if not name.startswith("second_threshold")]
    assert all(array.devices() == {to} for array in computed)
    return gradient


def expect_close(actual, expected):
    for name, array in expected.items():
        np.testing.assert_allclose(actual[name], array, **CLOSE, err_msg=name)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradient_is_pulled_back_where_one_likes(name):
    """By the kernels of a CPU, on this IPU and on another one; and the other way round."""
    function, given = NETWORKS[name]
    function = jax.jit(function)
    expected = pulled_back(function, given, cpu(), cpu())
    assert any(array.any() for array in expected.values())
    for device, to in ((ipu(), cpu()), (ipu(), ipu()), (ipu(), ipu(1)), (cpu(), ipu())):
        expect_close(pulled_back(function, given, device, to), expected)


def test_gradient_is_pulled_back_op_by_op():
    function, given = NETWORKS["capped"]
    expected = pulled_back(jax.jit(function), given, cpu(), cpu())
    for to in (cpu(), ipu()):
        expect_close(pulled_back(function, given, ipu(), to), expected)


def codelets_of(compiled, *arguments):
    jax.block_until_ready(compiled(*arguments))
    return set(read_profile(compiled).codelets)


def test_no_forward_pass_runs_again():
    function, given = NETWORKS["recurrent"]
    given = put(given)
    forward = jax.jit(function).lower(given).compile()
    of_neurons = {name for name in codelets_of(forward, given) if "Candidates" in name or "Neurons" in name}
    assert of_neurons

    def pull_back_alone(pull_back):
        def call(cotangents):
            compiled = jax.jit(lambda pull, g: pull(g)).lower(pull_back, cotangents).compile()
            assert codelets_of(compiled, pull_back, cotangents).isdisjoint(of_neurons)
            return compiled(pull_back, cotangents)

        return call

    pulled_back(jax.jit(function), given, ipu(), ipu(), pull_back_alone)


def test_loops_stack_records():
    weights = np.random.default_rng(1).integers(-8, 9, (12, 6)).astype(np.float32) / 8
    xs = np.random.default_rng(0).integers(0, 2, (2, 5, 3, 12)).astype(np.float32)

    def loss(weights, xs):
        def add(total, x):
            out, _ = lif_network(x, [LIFLayer(weights, 0.9)])
            return total + out.activity[0].sum() + (out.output @ jnp.arange(6.0)).sum(), None

        return lax.scan(add, 0.0, xs)[0]

    expected = jax.jit(jax.grad(loss))(put(weights, cpu()), put(xs, cpu()))
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(put(weights), put(xs)), expected, **CLOSE)
    _, pull_back = jax.vjp(jax.jit(loss), put(weights), put(xs))
    for to in (cpu(), ipu()):
        gradient, _ = put(pull_back, to)(put(np.float32(1), to))
        np.testing.assert_allclose(gradient, expected, **CLOSE)


@pytest.mark.parametrize("capacity", [None, 3])
def test_gradient_by_values_of_events_that_are_all_1(capacity):
    """A forward pass lists such spikes without values, and without the slots that their gradients go to."""
    arrays = cases.lif_network(np.random.default_rng(4), recurrent=(0,))
    rest = {name: array for name, array in arrays.items() if not name.startswith("g_")}

    def loss(values, rest):
        results = by_name.network_results({**rest, "values": values}, {"capacity": capacity})
        return (results["output"] ** 2).sum()

    def gradient(rest):
        return jax.grad(loss)(jnp.ones(arrays["ids"].shape), rest)

    expected = jax.jit(gradient)(put(rest, cpu()))
    assert expected.any()
    np.testing.assert_allclose(jax.jit(gradient)(put(rest)), expected, **CLOSE)
