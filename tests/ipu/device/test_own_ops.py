"""The library's own ops on the device: their codelets yield what the references yield, and gradients likewise.

Arguments are dyadic (tests/cases.py), so that sums are exact in any order and results are held equal bit for bit;
gradients go through divisions and cosines, which differ in their last bits.
"""

import dataclasses
import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

import snnjax
from snnjax import SparseSpikes
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax.ipu import lowering, read_profile
from snnjax.ipu.device import network_cost
from snnjax.ops._connection import Connection
from snnjax.quantisation import quantise_network
from tests import cases
from tests.ops.simulation.test_simulate import STEPS, random_network

CASES = {case.name: case for case in cases.OPS}
OF_CODELETS = {
    "select_spikes",
    "spike_matmul",
    "lif_network",
}  # the others run on their references
# Of sums of some dozen products: a few units in the last place of float32, of float16 where weights are.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def on_device(device: jax.Device, function, *arguments):
    """What the jitted function yields there, as NumPy arrays."""
    there = jax.tree.map(lambda leaf: jax.device_put(leaf, device), arguments)
    return cases.as_numpy(jax.jit(function)(*there))


def reference(function, *arguments):
    return on_device(jax.devices("cpu")[0], function, *arguments)


def is_floating(tree) -> bool:
    return all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(tree))


def wavy_sum(results) -> jax.Array:
    """A number that depends on every floating result, each in its own way."""
    leaves = [leaf for leaf in jax.tree.leaves(results) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.sum(
        jnp.stack([jnp.sum(jnp.cos(leaf.astype(jnp.float32) + n)) for n, leaf in enumerate(leaves)])
    )


def targets_of(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Fills with the plans that are made."""
    plans: list[bytes] = []
    lower = lowering.lower

    def recording(program: bytes, options: bytes, attempt: int) -> bytes:
        plans.append(lower(program, options, attempt))
        return plans[-1]

    monkeypatch.setattr(lowering, "lower", recording)
    return plans


@pytest.mark.parametrize("name", CASES)
def test_results_equal_the_reference(ipus, monkeypatch, name):
    plans = targets_of(monkeypatch)
    case = CASES[name]
    arguments = case.arguments(np.random.default_rng(3))
    actual, expected = on_device(ipus[0], case.function, *arguments), reference(case.function, *arguments)
    chex.assert_trees_all_equal(actual, expected, strict=True)
    assert (f"snnjax_{name}".encode() in plans[-1]) == (name in OF_CODELETS)


def test_simulation_equals_the_reference(ipus):
    """Neurons, synapses with delays, random and given input."""
    given, options = random_network(2, 33, 2, shared=False)

    def run(*given):
        return snnjax.simulate(*given, **options, steps=STEPS, capacity=3)

    actual, expected = on_device(ipus[0], run, *given), reference(run, *given)
    chex.assert_trees_all_equal(actual, expected, strict=True)


def without_recorded_spikes(*arguments, **options):
    inputs, layers, readout, state, lengths, second_threshold = arguments
    options = {"capacity": cases.CAPACITY, "second_threshold": second_threshold, **options}
    out, state = snnjax.lif_network(inputs, layers, readout, state, lengths=lengths, **options)
    return out.output, out.activity, out.dropped, tuple(state)


@pytest.mark.parametrize("name", CASES)
def test_gradients_equal_the_reference(ipus, monkeypatch, name):
    plans = targets_of(monkeypatch)
    case = CASES[name]
    function = without_recorded_spikes if name == "lif_network" else case.function
    arguments = case.arguments(np.random.default_rng(4))
    floating = tuple(i for i, argument in enumerate(arguments) if is_floating(argument))
    gradient = jax.grad(lambda *a: wavy_sum(function(*a)), argnums=floating)
    chex.assert_trees_all_close(
        on_device(ipus[0], gradient, *arguments), reference(gradient, *arguments), **CLOSE, strict=True
    )
    for text in (f"snnjax_{name}", "_backward"):
        assert (text.encode() in plans[-1]) == (name in OF_CODELETS)


def network(
    rng: np.random.Generator,
    dtype: DTypeLike = jnp.float32,
    widths: tuple[int, ...] = (7, 6),
    recurrent: bool = False,
) -> tuple[Any, ...]:
    """Layers and a readout."""
    pairs = zip((5, *widths), widths, strict=False)
    layers = tuple(cases.network_layer(rng, *pair, recurrent=recurrent) for pair in pairs)
    readout = snnjax.LIFReadout(
        cases.dyadic(rng, -16, 16, widths[-1], 3), cases.halves(rng), cases.halves(rng)
    )
    return jax.tree.map(lambda leaf: leaf.astype(dtype), (layers, readout))


def events(rng: np.random.Generator, steps: int = 4, batch: int = 3) -> SparseSpikes:
    lists = cases.spike_lists(rng, steps * batch, 6, 5)
    return jax.tree.map(lambda leaf: leaf.reshape(steps, batch, *leaf.shape[1:]), lists)


def outputs(inputs, layers, readout, **options):
    out, state = snnjax.lif_network(inputs, layers, readout, **options)
    return out.output, out.activity, tuple(state)


def test_gradient_of_each_example(ipus):
    """`vmap` of a gradient has one group of weights for each example."""
    rng = np.random.default_rng(8)
    layers, readout = network(rng)
    lists = events(rng)

    def one(lists, layers, readout):
        each = jax.tree.map(lambda leaf: jnp.expand_dims(leaf, 1), lists)
        return wavy_sum(outputs(each, layers, readout, capacity=3))

    gradients = jax.vmap(jax.grad(one, argnums=(1, 2)), in_axes=(1, None, None))
    arguments = (lists, layers, readout)
    chex.assert_trees_all_close(
        on_device(ipus[0], gradients, *arguments), reference(gradients, *arguments), **CLOSE, strict=True
    )


@pytest.mark.parametrize("inputs, capacity", [("lists", (3, 4)), ("rows", (None, 30)), ("two calls", (3, 4))])
def test_networks_with_delays_equal_the_reference(ipus, monkeypatch, capacity, inputs):
    """In pieces that read delayed lists, or rows; spikes are the output, as lists, and those under way the state."""
    monkeypatch.setattr(network_cost, "pays", lambda *_: True)
    rng = np.random.default_rng(13)
    weights = tuple(cases.dyadic(rng, -8, 16, *shape) for shape in ((24, 20), (20, 9)))
    delays = (np.append(rng.uniform(0, 3, 22), [1, 2]).astype(np.float32), cases.dyadic(rng, 0, 48, 20))
    ids, lengths = rng.integers(0, 30, (6, 3, 2)), np.array([6, 2, 5], np.int32)
    values = cases.dyadic(rng, 8, 32, 6, 3, 2)

    def run(weights, delays, values):
        layers = [
            snnjax.LIFLayer(own, 0.75, 0.5, 1.0, connection=Connection(max_delay=3), delays=delay)
            for own, delay in zip(weights, delays, strict=True)
        ]
        lists = SparseSpikes.from_ids(jnp.asarray(ids), 24)
        x = lists if inputs == "two calls" else dataclasses.replace(lists, values=values)
        x = x.to_dense() if inputs == "rows" else x
        found, state = [], None
        for steps in (slice(4), slice(4, None)) if inputs == "two calls" else (slice(None),):
            given = None if inputs == "two calls" else lengths
            out, state = snnjax.lif_network(
                x[steps], layers, None, state, capacity=capacity, second_threshold=0.25, lengths=given
            )
            found.append((out.output.values, out.activity, out.dropped))
        return found, tuple(state)

    def both(given):
        results = run(*given)
        return wavy_sum(results), results

    gradient, plans = jax.grad(both, has_aux=True), targets_of(monkeypatch)
    actual = on_device(ipus[0], gradient, (weights, delays, values))
    assert plans[-1].count(b"snnjax_lif_network_backward") >= 2
    expected = reference(gradient, (weights, delays, values))
    chex.assert_trees_all_close(actual, expected, **CLOSE, strict=True)


def test_what_is_no_number_arrives_as_in_the_reference(ipus, monkeypatch):
    """Behind whole delays and others: a share of 0 sends nothing, and any other one all of an infinite weight."""
    monkeypatch.setattr(network_cost, "pays", lambda *_: True)
    weights = np.ones((24, 4), np.float32)
    weights[[3, 4, 5, 6], [0, 1, 2, 3]] = np.inf, np.inf, np.nan, np.nan
    delays = np.tile(np.array([1, 1.25], np.float32), 12)
    ids = np.full((6, 2, 2), 24)
    ids[0] = [[3, 4], [5, 6]]

    def run(weights, delays):
        layer = snnjax.LIFLayer(weights, 0.75, 5.0, connection=Connection(max_delay=3), delays=delays)
        output, state = snnjax.lif_network(SparseSpikes.from_ids(jnp.asarray(ids), 24), [layer], capacity=2)
        return output.activity, state.layers[0].v

    plans = targets_of(monkeypatch)
    actual = on_device(ipus[0], run, weights, delays)
    assert b"snnjax_lif_network" in plans[-1]
    chex.assert_trees_all_close(actual, reference(run, weights, delays), **CLOSE, strict=True)


def test_backward_pass_without_its_forward_pass(ipus):
    """In another program it reads the record."""
    rng = np.random.default_rng(9)
    layers, readout = network(rng)
    lists = events(rng)

    def run(device: jax.Device):
        there = jax.tree.map(lambda leaf: jax.device_put(leaf, device), (lists, layers, readout))
        out, pull = jax.vjp(lambda *a: outputs(there[0], *a, capacity=3), *there[1:])
        return cases.as_numpy(jax.jit(pull)(jax.tree.map(jnp.ones_like, out)))

    chex.assert_trees_all_close(run(ipus[0]), run(jax.devices("cpu")[0]), **CLOSE, strict=True)


@pytest.mark.parametrize("num_ipus", [2, 4])
def test_network_over_several_ipus(ipus, num_ipus):
    """`ipu_ipus` gives a program so many IPUs: layers are split over them, and a step of one meets the next's."""
    rng = np.random.default_rng(11)
    arguments = (*network(rng, widths=(40, 36)), events(rng))
    gradient = jax.grad(lambda *a: wavy_sum(outputs(a[2], *a[:2], capacity=6)), argnums=(0, 1))
    there = jax.tree.map(lambda leaf: jax.device_put(leaf, ipus[0]), arguments)
    compiled = jax.jit(gradient, compiler_options={"ipu_ipus": str(num_ipus)}).lower(*there).compile()
    chex.assert_trees_all_close(
        cases.as_numpy(compiled(*there)), reference(gradient, *arguments), **CLOSE, strict=True
    )
    profile = read_profile(compiled)
    assert profile.tile_memory.size == num_ipus * 8  # as many tiles each as tests/conftest.py says
    assert profile.exchange.link_bytes > 0


def test_a_loop_of_single_steps(ipus):
    """The network as a scan of its ops: lists, products and steps inside a loop of the device."""
    rng = np.random.default_rng(10)
    weights, inputs = cases.dyadic(rng, -16, 16, 5, 6), cases.dyadic(rng, 0, 24, 4, 3, 6)

    def run(inputs, weights):
        def step(v, current):
            lists = snnjax.select_spikes(v[:, :5], 0.75, 0.5, capacity=2)
            v, spikes = snnjax.lif_step(v, current + snnjax.spike_matmul(lists, weights), 0.5, 1.0)
            return v, spikes

        return jax.lax.scan(step, jnp.zeros((3, 6)), inputs)

    chex.assert_trees_all_equal(
        on_device(ipus[0], run, inputs, weights), reference(run, inputs, weights), strict=True
    )
    gradient = jax.grad(lambda *a: wavy_sum(run(*a)), argnums=(0, 1))
    chex.assert_trees_all_close(
        on_device(ipus[0], gradient, inputs, weights),
        reference(gradient, inputs, weights),
        **CLOSE,
        strict=True,
    )


def steps_of_descent(loss, params):
    def step(params, _):
        value, gradient = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradient), value

    return jax.lax.scan(step, params, None, length=3)


def two_cotangents(function, params):
    out, pull = jax.vjp(function, params)
    return pull(out), pull(jnp.cos(out))


# The backward pass finds its forward pass on the tiles, once or several times, or has to run it again.
COMPOSED = {
    "jacobian": lambda function, loss: jax.jacrev(function),
    "checkpoint": lambda function, loss: jax.grad(lambda p: jnp.sum(jnp.sin(jax.checkpoint(function)(p)))),
    "two cotangents": lambda function, loss: functools.partial(two_cotangents, function),
    "training in a loop": lambda function, loss: functools.partial(steps_of_descent, loss),
    "branch": lambda function, loss: jax.grad(
        lambda p: jax.lax.cond(jnp.sum(p[1].weights) > 0, loss, lambda p: 2 * loss(p), p)
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_networks_inside_transformations(ipus, name):
    rng = np.random.default_rng(12)
    params, lists = network(rng), events(rng)

    def function(params) -> jax.Array:
        return outputs(lists, *params, capacity=3)[0][-1]

    run = COMPOSED[name](function, lambda params: wavy_sum(function(params)))
    chex.assert_trees_all_close(on_device(ipus[0], run, params), reference(run, params), **CLOSE, strict=True)


def test_op_that_the_ipu_does_not_know_runs_on_its_reference(ipus):
    """Whatever its kernel on the CPU is called."""
    kernel = Kernel(lambda *_: jax.ffi.ffi_call("snnjax_made_up", ())(), lambda *_: None)
    target = Target("snnjax_made_up", "made_up", lambda x, _: 2 * x, {"cpu": kernel})

    def double(x: jax.Array) -> jax.Array:
        return evaluate(target, x, 0, 0)

    assert on_device(ipus[0], double, jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "recurrent", [True, snnjax.sparse(9, fan_out=3, bias=False)], ids=["dense", "sparse"]
)
def test_weights_of_8_bits_run_on_the_references(ipus, recurrent):
    """The codelets do not take int8: the products convert it; nor recurrent weights of few synapses."""
    net = snnjax.network(12, [snnjax.layer(9, recurrent=recurrent)], snnjax.leaky_readout(3))
    inputs = jnp.asarray(np.random.default_rng(0).random((4, 2, 12)) < 0.4, jnp.float32)
    stats = net.initial_stats(jax.random.key(1))
    params = net.init(jax.random.key(0), inputs, stats=stats, target_activity=0.2)
    params = quantise_network(params, stats=stats)
    run = jax.jit(lambda params, stats, inputs: net.apply(params, None, inputs, stats=stats)[0].output)
    there = run(*jax.device_put((params, stats, inputs), ipus[0]))
    np.testing.assert_allclose(there, run(params, stats, inputs), rtol=1e-5, atol=1e-6)


def test_paths_say_which_weights_have_codelets(ipus):
    net = snnjax.network(12, [snnjax.layer(9, recurrent=True)], snnjax.leaky_readout(3))
    with jax.default_device(ipus[0]):
        *plan, said = net.paths.splitlines()
    assert plan == net.paths.splitlines()  # on a CPU
    assert said == (
        "on ipu: codelets take weights of float32 and float16; others, such as bfloat16 and int8, "
        "run on the references, which multiply densely"
    )

    def has_codelets(params) -> bool:
        def run(params) -> jax.Array:
            return net.apply(params, None, jnp.zeros((4, 2, 12)))[0].output

        return (
            "custom_call @snnjax_lif_network"
            in jax.jit(run).trace(params).lower(lowering_platforms=("ipu",)).as_text()
        )

    each = {dtype: net.init(jax.random.key(0), dtype=dtype) for dtype in ("float32", "float16", "bfloat16")}
    each["int8"] = quantise_network(each["float32"])
    assert [name for name, params in each.items() if has_codelets(params)] == ["float32", "float16"]


@pytest.mark.parametrize("capacity", [None, 1, 7], ids=["uncapped", "overfull", "room"])
@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
def test_dense_form_equals_the_reference(ipus, recurrent, capacity):
    """Lists are made by codelets where one overflows; no loop is left of feed-forward layers, nor a bit of a record."""
    rng = np.random.default_rng(14)
    arguments = (events(rng), *network(rng, recurrent=recurrent))
    options = {"capacity": capacity, "second_threshold": 0.25, "implementation": "reference"}

    def both(inputs, layers, readout):
        results = outputs(inputs, layers, readout, **options)
        return wavy_sum(results), results

    gradient = jax.jit(jax.grad(both, argnums=(1, 2), has_aux=True))
    there = jax.device_put(arguments, ipus[0])
    (actual, found), (wanted, expected) = gradient(*there), reference(gradient, *arguments)
    chex.assert_trees_all_equal(cases.as_numpy(found), expected, strict=True)
    chex.assert_trees_all_close(cases.as_numpy(actual), wanted, **CLOSE, strict=True)
    if not recurrent:
        text = gradient.lower(*there).as_text()
        assert "stablehlo.while" not in text
        assert ("snnjax_select_spikes" in text) == (capacity is not None and capacity < 7)


@pytest.mark.parametrize(
    "recurrent, capacity",
    [(False, None), (False, 6), (True, None)],
    ids=["all listed", "few listed", "recurrent"],
)
def test_networks_are_never_slower_than_their_reference(ipus, monkeypatch, recurrent, capacity):
    """Where the reference is faster it runs, and the profile says so."""
    rng = np.random.default_rng(3)
    layers, readout = network(rng, widths=(96,), recurrent=recurrent)
    arguments = jax.device_put((layers, readout), ipus[0])
    lists = jax.device_put(events(rng, steps=8, batch=8), ipus[0])

    def profile_of(implementation: str | None):
        def loss(layers, readout) -> jax.Array:
            out, _ = snnjax.lif_network(
                lists, layers, readout, capacity=capacity, implementation=implementation
            )
            return jnp.sum(out.output)

        lowered = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(*arguments)
        compiled = lowered.compile({"ipu_version": "bow", "ipu_tiles": "1472"})
        jax.block_until_ready(compiled(*arguments))
        return read_profile(compiled)

    def cycles(profile) -> int:
        return profile.cycles - profile.phases.host

    chosen, reference = profile_of(None), profile_of("reference")
    monkeypatch.setattr(network_cost, "pays", lambda *_: True)
    codelets = profile_of(None)
    assert cycles(chosen) == min(cycles(reference), cycles(codelets))
    runs_reference = cycles(reference) < cycles(codelets)
    assert [note.split(" runs")[0] for note in chosen.notes] == ["lif_network"] * runs_reference
    assert ("runs on its reference" in str(chosen)) == runs_reference
