"""Properties of every neuron model, whatever its equations."""

import copy
import dataclasses
import functools
import inspect
import pickle
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads
from jax.typing import DTypeLike

from snnjax import lif_step, neurons, select_spikes
from snnjax._types import Params
from snnjax.neurons._neuron import drawn
from snnjax.surrogates import boxcar
from tests.neurons.models import FACTORIES, MODELS, SPIKING, VARIANTS, smooth, unroll

KEY = jax.random.key(0)
every_model = pytest.mark.parametrize("name", MODELS)
every_variant = pytest.mark.parametrize("name", VARIANTS)


def tiny(name: str, dtype: DTypeLike = jnp.float32, **config) -> tuple[neurons.Neuron, Any, Any, jax.Array]:
    """A model of 3 neurons on a batch of 2 for 6 steps: neuron, params, state, inputs."""
    neuron = VARIANTS[name].build(**config)
    params = drawn(neuron, KEY, 3, dtype)
    return (
        neuron,
        params,
        neuron.initial_state(params, 2, 3, dtype),
        VARIANTS[name].inputs(6, 2, 3, dtype=dtype),
    )


@every_model
def test_scan_under_jit_equals_loop_of_steps(name: str) -> None:
    neuron, params, state, inputs = tiny(name)
    last, spikes = jax.jit(functools.partial(unroll, neuron))(params, state, inputs)
    one_by_one = []
    step = jax.jit(neuron.step)
    for x in inputs:
        state, s = step(params, state, x)
        one_by_one.append(s)
    if name in SPIKING:
        assert 0 < np.sum(spikes) < spikes.size, "inputs should make it spike now and then"
        np.testing.assert_array_equal(spikes, jnp.stack(one_by_one))
    # Fused sums round otherwise (1e-7 a step); Izhikevich's spikes multiply a difference by up to 1e2.
    tolerance = 1e-4 if name == "izhikevich" else 1e-5
    chex.assert_trees_all_close(last, state, rtol=tolerance, atol=tolerance, strict=True)


@every_variant
def test_equal_calls_make_equal_neurons(name: str) -> None:
    """Also in another process: a neuron may be a static argument of `jax.jit`, and be pickled."""
    neuron, again = VARIANTS[name].build(), VARIANTS[name].build()
    for other in (again, pickle.loads(pickle.dumps(neuron)), copy.deepcopy(neuron)):
        assert other == neuron
        assert hash(other) == hash(neuron)
    others = [model.build() for key, model in VARIANTS.items() if key != name]
    assert neuron not in others


@every_variant
def test_params_and_state_can_be_donated(name: str) -> None:
    """No two arrays share a buffer, which JAX refuses to donate twice."""
    _, params, state, _ = tiny(name)
    kept = copy.deepcopy((params, state))
    chex.assert_trees_all_equal(
        jax.jit(lambda *given: given, donate_argnums=(0, 1))(params, state), kept, strict=True
    )


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "refractory lif"])
def test_spikes_are_where_the_membrane_of_the_pieces_is_above_the_threshold(name: str) -> None:
    neuron, params, state, inputs = tiny(name)
    advance, step = jax.jit(neuron.advance), jax.jit(neuron.step)
    for x in inputs:
        membrane, threshold, _ = advance(params, state, x)
        above = membrane > threshold.reshape((1,) * (2 - threshold.ndim) + threshold.shape)
        state, spikes = step(params, state, x)
        if name in SPIKING:
            np.testing.assert_array_equal(spikes, above)
        else:
            assert not np.any(above)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name.split()[0] == "lif"])
def test_step_out_of_the_pieces_equals_the_op(name: str) -> None:
    neuron, params, state, inputs = tiny(name)
    form = neuron.glif
    assert form is not None
    switches = {name: getattr(form, name) for name in form._fields if name != "constants"}

    def of_the_op(v, x):
        constants = form.constants(params)[:3]
        return lif_step(v, x, *constants, **switches, implementation="composed")

    step, op = jax.jit(neuron.step), jax.jit(of_the_op)
    for x in inputs:
        v, wanted = op(state.v, x)
        state, spikes = step(params, state, x)
        np.testing.assert_array_equal(spikes, wanted)
        chex.assert_trees_all_close(state.v, v, rtol=1e-5, atol=1e-5, strict=True)


@every_variant
def test_threshold_is_that_of_rest(name: str) -> None:
    neuron, params, state, inputs = tiny(name)
    raised = neuron.advance(params, state, inputs[0])[1]
    resting = jnp.broadcast_to(neuron.threshold(params), (2, 3))
    # One float below, where spikes include the threshold itself.
    np.testing.assert_allclose(jnp.broadcast_to(raised, (2, 3)), resting, rtol=2e-7)


@every_model
def test_vmap_equals_one_by_one(name: str) -> None:
    neuron, _, _, inputs = tiny(name)
    keys = jax.random.split(KEY, 2)
    params = jax.vmap(lambda key: drawn(neuron, key, 3))(keys)
    state = jax.vmap(lambda key: neuron.initial_state(drawn(neuron, key, 3), 2, 3))(keys)
    run = jax.jit(functools.partial(unroll, neuron))
    together = jax.vmap(run, in_axes=(0, 0, None))(params, state, inputs)
    apart = [run(*jax.tree.map(lambda leaf, i=i: leaf[i], (params, state)), inputs) for i in range(2)]
    chex.assert_trees_all_close(
        together, jax.tree.map(lambda *leaves: jnp.stack(leaves), *apart), rtol=1e-4, atol=1e-4, strict=True
    )


@pytest.mark.parametrize("name", [*MODELS, "lif zero", "adaptive_lif after decay"])
def test_gradient_equals_finite_differences_of_smooth_spikes(name: str) -> None:
    with jax.enable_x64():
        neuron, params, state, inputs = tiny(name, jnp.float64, **smooth(name))
        weights = jax.random.normal(jax.random.key(2), inputs.shape, jnp.float64)

        @jax.jit
        def loss(params: Params, inputs: jax.Array) -> jax.Array:
            last, spikes = unroll(neuron, params, state, inputs)
            floats = [leaf for leaf in jax.tree.leaves(last) if jnp.issubdtype(leaf.dtype, jnp.floating)]
            return jnp.sum(weights * spikes) + sum(jnp.mean(leaf) for leaf in floats)

        # float64 differences over 1e-5 leave an error of 1e-5 ** 2 of the third derivative, large for Izhikevich.
        check_grads(loss, (params, inputs), order=1, modes=["rev"], eps=1e-5, rtol=1e-5, atol=1e-5)


@every_model
def test_params_are_what_is_learned_and_nothing_else(name: str) -> None:
    """Each has a gradient, by default and if everything is learned; without anything to learn there are none."""
    model, inputs = VARIANTS[name], VARIANTS[name].inputs(20, 2, 3)

    def gradients(**config) -> list[float]:
        neuron = model.build(**config)
        params, stats = neuron.init(KEY, 3), neuron.initial_stats(KEY, 3)
        state = neuron.initial_state(neuron.merged(params, stats), 2, 3)

        def loss(params: Params) -> jax.Array:  # of squares, so that the sum over spikes does not cancel
            return jnp.sum(unroll(neuron, neuron.merged(params, stats), state, inputs)[1] ** 2)

        return [float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(jax.jit(jax.grad(loss))(params))]

    assert not gradients(**dict.fromkeys(model.learn, False), **model.fix)
    assert all(gradients())
    assert all(gradients(**model.learn))


@every_model
@given(st.integers(0, 3), st.integers(1, 4), st.sampled_from(["bfloat16", "float16", "float32", "float64"]))
def test_shapes_and_dtypes_are_kept(name: str, batch: int, width: int, dtype: str) -> None:
    neuron = VARIANTS[name].build()
    with jax.enable_x64(dtype == "float64"):
        params = jax.eval_shape(lambda: neuron.init(KEY, width, jnp.dtype(dtype)))
        assert {leaf.dtype.name for leaf in jax.tree.leaves(params)} <= {dtype}
        own = jax.eval_shape(lambda: drawn(neuron, KEY, width, jnp.dtype(dtype)))
        state = jax.eval_shape(lambda p: neuron.initial_state(p, batch, width, jnp.dtype(dtype)), own)
        after, spikes = jax.eval_shape(neuron.step, own, state, jax.ShapeDtypeStruct((batch, width), dtype))
    assert (spikes.shape, spikes.dtype.name) == ((batch, width), dtype)
    chex.assert_trees_all_equal_shapes_and_dtypes(state, after)
    wide = "float64" if dtype == "float64" else "float32"
    assert {leaf.dtype.name for leaf in jax.tree.leaves(after)} <= {wide, "int32"}


# Of two programs XLA may multiply and add at once in one alone.
ULP = {"rtol": 1e-5, "atol": 1e-6}


@pytest.mark.parametrize("name", ["lif", "adaptive_lif", "adlif", "current_lif"])
def test_bfloat16_rounds_spikes_alone(name: str) -> None:
    """States are those of the same parameters and inputs in float32; inputs may come in float32."""
    neuron, params, state, inputs = tiny(name, jnp.bfloat16)
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), (params, state, inputs))
    run = jax.jit(functools.partial(unroll, neuron))
    expected, spikes = run(*wide)
    for currents in (inputs, wide[2]):
        after, narrow = run(params, state, currents)
        chex.assert_trees_all_close(after, expected, **ULP, strict=True)
        assert narrow.dtype == currents.dtype
        chex.assert_trees_all_equal(narrow, spikes, strict=True)


@pytest.mark.parametrize("name", ["lif", "lif inclusive", "current_lif", "adaptive_lif", "refractory lif"])
def test_slow_membranes_rise_in_bfloat16(name: str) -> None:
    """With a decay of 0.998 a constant input of 1.5 lets a neuron fire three times in 2,000 steps, as in float32."""
    neuron = VARIANTS[name].build(decay=0.998)
    params = drawn(neuron, KEY, 1, jnp.bfloat16)
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    inputs = jnp.full((2000, 1, 1), 1.5)
    run = jax.jit(lambda params, inputs: unroll(neuron, params, neuron.initial_state(params, 1, 1), inputs))
    expected, spikes = run(wide, inputs)
    assert int(jnp.sum(spikes)) in (2, 3)
    chex.assert_trees_all_close(
        run(params, inputs.astype(jnp.bfloat16)), (expected, spikes), **ULP, strict=True
    )


@pytest.mark.parametrize("name", ["lif", "adaptive_lif", "izhikevich"])
def test_recurrent_weights_need_only_the_returned_spikes(name: str) -> None:
    neuron, params, state, inputs = tiny(name)
    recurrent = jnp.full((3, 3), -0.25)

    def total(recurrent: jax.Array) -> jax.Array:
        def step(carry, x: jax.Array):
            state, spikes = carry
            carry = neuron.step(params, state, x + spikes @ recurrent)
            return carry, carry[1]

        return jnp.sum(jax.lax.scan(step, (state, jnp.zeros((2, 3))), inputs)[1])

    inhibited, gradient = jax.jit(jax.value_and_grad(total))(recurrent)
    assert inhibited <= jnp.sum(unroll(neuron, params, state, inputs)[1])
    chex.assert_tree_all_finite(gradient)
    assert np.any(gradient)


@pytest.mark.parametrize("name", [*(name for name in MODELS if name in SPIKING), "lif inclusive"])
def test_full_list_between_the_pieces_equals_step(name: str) -> None:
    neuron, params, state, inputs = tiny(name)
    weights = jax.random.normal(KEY, (2, 3))
    # A state in which neurons adapt, spike and rest.
    state = unroll(neuron, params, state, inputs[:4])[0]

    def dense(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        spikes = neuron.step(params, state, x)[1]
        return jnp.sum(spikes * weights), spikes

    def listed(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        membrane, threshold, _ = neuron.advance(params, state, x)
        second = jnp.full_like(jax.lax.stop_gradient(threshold), -jnp.inf)
        spikes = select_spikes(membrane, threshold, second, capacity=3, surrogate=neuron.surrogate).to_dense()
        return jnp.sum(spikes * weights), spikes

    (gradient, spikes), (wanted, steps) = (
        jax.jit(jax.grad(f, has_aux=True))(inputs[4]) for f in (listed, dense)
    )
    np.testing.assert_array_equal(spikes, steps)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-6)  # float32, a few roundings


@pytest.mark.parametrize(
    "name, config",
    [
        ("lif", {}),
        ("lif", {"detach_reset": False}),
        ("lif old", {"detach_reset": False}),
        ("current_lif", {}),
        ("adlif", {}),
        ("izhikevich", {}),
        ("refractory lif", {}),
    ],
)
def test_replaced_surrogate_is_the_one_of_the_gradient(name: str, config: dict[str, bool]) -> None:
    """Also of the spikes in the reset and in an adaptation."""
    neuron, params, state, inputs = tiny(name, **config)

    def gradient(neuron: neurons.Neuron):
        return jax.jit(jax.grad(lambda x: jnp.sum(unroll(neuron, params, state, x)[1] ** 2)))(inputs)

    built = gradient(VARIANTS[name].build(surrogate=boxcar(0.5), **config))
    np.testing.assert_array_equal(gradient(dataclasses.replace(neuron, surrogate=boxcar(0.5))), built)
    assert np.any(built != gradient(neuron))


@pytest.mark.parametrize(
    "wrapped",
    [neurons.lif(detach_reset=False), neurons.adlif()],
    ids=["attached reset", "adaptation by spikes"],
)
def test_replaced_surrogate_that_a_wrapped_neuron_does_not_see_is_refused(wrapped: neurons.Neuron) -> None:
    neuron = neurons.refractory(wrapped, 2)
    params = neuron.init(KEY, 1)
    state = neuron.initial_state(params, 1, 1)
    with pytest.raises(ValueError) as error:
        dataclasses.replace(neuron, surrogate=boxcar()).step(params, state, jnp.ones((1, 1)))
    assert str(error.value) == (
        f"Neuron.step: `neuron.surrogate` must equal that of its reset or adaptation, {neuron.surrogate}, "
        f"got {boxcar()}. Pass surrogate=... to the function that makes the neuron."
    )


def test_neuron_without_an_equation_is_refused() -> None:
    neuron, params, state, inputs = tiny("lif")
    with pytest.raises(ValueError) as error:
        dataclasses.replace(neuron, glif=None).step(params, state, inputs[0])
    assert str(error.value) == (
        "Neuron: `integrate` must be a function unless `glif` is given, got None. "
        "Pass integrate=... or glif=... to Neuron."
    )


@pytest.mark.parametrize("name", ["lif", "lif immediate", "lif old", "adaptive_lif after decay", "adlif"])
def test_step_computes_its_constants_once(name: str) -> None:
    neuron, params, state, inputs = tiny(name)
    form, calls = neuron.glif, []
    assert form is not None

    def constants(params: Params) -> neurons.GLIFConstants:
        calls.append(params)
        return form.constants(params)

    dataclasses.replace(neuron, glif=form._replace(constants=constants)).step(params, state, inputs[0])
    assert len(calls) == 1


@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 1)])
@pytest.mark.parametrize("name", ["decay", "threshold", "w_jump"])
def test_constants_of_another_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    """Those that would broadcast along the batch are, too: the fused op takes none of them."""
    half = jnp.array(0.5)
    constants = neurons.GLIFConstants(
        half, half, half, second_state=neurons.SecondState(half, half, half, half)
    )
    where = constants if name in constants._fields else constants.second_state
    assert where is not None
    wrong = where._replace(**{name: jnp.zeros(shape)})
    constants = wrong if where is constants else constants._replace(second_state=wrong)
    neuron = dataclasses.replace(neurons.adlif(), glif=neurons.GLIF(lambda params: constants))
    state, inputs = neuron.initial_state(None, 2, 3), jnp.zeros((2, 3))
    with pytest.raises(ValueError) as error:
        neuron.step(None, state, inputs)
    assert str(error.value) == (
        f"adlif.step: `{name}` must be a scalar or have shape [neurons] = [3], got {list(shape)}. "
        "Pass one value, or one per neuron."
    )


def test_names_are_those_of_the_factories() -> None:
    for name in FACTORIES:
        assert getattr(neurons, name)().name == name


@pytest.mark.parametrize("name", FACTORIES)
def test_inputs_that_do_not_fit_are_refused(name: str) -> None:
    neuron, params, state, _ = tiny(name)
    with pytest.raises(ValueError) as error:
        neuron.step(params, state, jnp.ones((2, 4)))
    assert str(error.value) == (
        f"{name}.step: `inputs` must have shape [batch, neurons] = [2, 3], got [2, 4]. Give them the shape of the "
        "state."
    )
    with jax.enable_x64(True), pytest.raises(ValueError) as error:
        neuron.step(params, state, jnp.ones((2, 3), jnp.float64))
    assert str(error.value) == (
        f"{name}.step: `inputs` must have dtype float32, got float64. "
        "Cast them, or call initial_state with their dtype."
    )
    with pytest.raises(ValueError) as error:
        neuron.step(params, state, jnp.ones((2, 3), jnp.int32))
    assert str(error.value) == (
        f"{name}.step: `inputs` must have a floating-point dtype, got int32. "
        "Cast it with inputs.astype(jnp.float32)."
    )


@pytest.mark.parametrize("name", [name for name in FACTORIES if "decay" in FACTORIES[name]])
def test_decay_outside_its_range_is_refused(name: str) -> None:
    factory = getattr(neurons, name)
    fixed, learned = {"learn_decay": False}, {"learn_decay": True}
    for decay, switch in ((0.0, learned), (1.0, learned), ((0.5, 1.0), fixed), (-0.5, fixed), (1.5, fixed)):
        with pytest.raises(ValueError) as error:
            factory(decay=decay, **switch)
        strictly = "" if switch is fixed and not isinstance(decay, tuple) else "strictly "
        assert str(error.value) == (
            f"{name}: `decay` must be {strictly}between 0 and 1, got {decay}. "
            "From a time constant it is exp(-dt / time_constant)."
        )


def test_decay_of_one_is_for_inputs_that_are_not_normalized() -> None:
    assert neurons.leaky_integrator(1.0, normalize=False).glif is not None
    with pytest.raises(ValueError) as error:
        neurons.current_lif(0.5, synapse_decay=1.0)
    assert str(error.value) == (
        "current_lif: `synapse_decay` must be below 1 for a gain of 1 - synapse_decay, got 1. "
        "Pass normalize_synapse=False."
    )


@pytest.mark.parametrize("name", FACTORIES)
def test_owners_of_constants_that_are_numbers_are_refused(name: str) -> None:
    factory = getattr(neurons, name)
    fixed = dict.fromkeys((own for own in FACTORIES[name] if own.startswith("learn")), False)
    numbers = {own: 0.5 for own in FACTORIES[name] if own.endswith(("decay", "coupling", "frequency"))}
    first = next(own for own in fixed)
    numbers = {own: 0.5 for own in numbers if not own.startswith("learn")}
    with pytest.raises(ValueError) as error:
        factory(**numbers, **fixed, per="neuron")
    switch = "learn_threshold" if name == "integrate_and_fire" else first
    assert str(error.value) == (
        f"{name}: `per` must be left out if no constant is learned or drawn, got 'neuron'. "
        f"Pass {switch}=True, or a range (low, high)."
    )
    with pytest.raises(ValueError) as error:
        factory(per="pixel")
    assert str(error.value) == (
        f"{name}: `per` must be 'channel', 'neuron' or 'layer', got 'pixel'. Choose one of these."
    )


def test_step_without_drawn_constants_is_refused() -> None:
    neuron = neurons.lif((0.8, 0.9))
    with pytest.raises(ValueError) as error:
        neuron.step(neuron.init(KEY, 3), neuron.initial_state(None, 1, 3), jnp.ones((1, 3)))
    assert str(error.value) == (
        "lif: `params` must hold the decay of each neuron, got None. "
        "Use neuron.init, and neuron.merged(params, stats) with what neuron.initial_stats draws."
    )


@pytest.mark.parametrize("name", FACTORIES)
def test_switches_that_are_not_true_or_false_are_refused(name: str) -> None:
    factory = getattr(neurons, name)
    given = inspect.signature(factory).parameters.values()
    for switch in (each.name for each in given if isinstance(each.default, bool)):
        with pytest.raises(ValueError) as error:
            factory(**{switch: "no"})
        assert str(error.value) == f"{name}: `{switch}` must be True or False, got 'no'. Choose one of these."


@pytest.mark.parametrize("name", [name for name in FACTORIES if "reset" in FACTORIES[name]])
def test_unknown_switches_are_refused(name: str) -> None:
    factory = getattr(neurons, name)
    # Some cannot reset to zero.
    choices = (
        rf"^{name}: `reset` must be 'subtract'(, 'zero')? or 'none', got 'hard'\. Choose one of these\.$"
    )
    with pytest.raises(ValueError, match=choices):
        factory(reset="hard")
    with pytest.raises(
        ValueError, match=rf"^{name}: `surrogate` must be 'superspike', .* or .*, got 'step'\."
    ):
        factory(surrogate="step")
    with pytest.raises(ValueError) as error:
        factory(threshold=(2.0, 1.0))
    assert str(error.value) == (
        f"{name}: `threshold` must be a number or a range (low, high), got (2.0, 1.0). Try threshold=(0.5, 0.9)."
    )


@pytest.mark.parametrize("wrong", [float("inf"), -float("inf"), (0.5, float("inf")), 1e39, 10**39])
@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_constants_that_are_not_finite_are_refused(name: str, wrong) -> None:
    """Of every argument that takes a number or a range; 1e39 is infinite in float32."""
    takes_constants = {
        argument
        for argument, parameter in inspect.signature(getattr(neurons, name)).parameters.items()
        if "float" in str(parameter.annotation) and argument not in ("min_rise", "initial")
    }
    for argument in takes_constants:
        with pytest.raises(
            ValueError, match=rf"^{name}: `{argument}` must be (finite|between|strictly|positive)"
        ):
            getattr(neurons, name)(**{argument: wrong})


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    "make", [neurons.se_adlif, functools.partial(neurons.adlif, membrane_coupling=(0.0, 1.0))]
)
def test_no_step_of_training_makes_a_neuron_unstable(make, normalize: bool) -> None:
    """Under the threshold: the eigenvalues of the transition of membrane and adaptation."""
    count = 5000
    neuron = make(normalize=normalize)
    params = neuron.init(KEY, count)
    keys = iter(jax.random.split(jax.random.key(1), 2 * len(params)))
    # Steps from 1e-3 to 1e30, up or down.
    moved = jax.tree.map(
        lambda leaf: (
            leaf
            + 10 ** jax.random.uniform(next(keys), (count,), minval=-3, maxval=30)
            * jax.random.rademacher(next(keys), (count,), jnp.float32)
        ),
        params,
    )
    assert neuron.glif is not None
    constants = neuron.glif.constants(moved)
    second = jax.tree.map(lambda leaf: np.asarray(leaf, float), constants.second_state)
    decay, coupling = np.asarray(constants.decay, float), second.v_coupling
    rows = (
        [decay + coupling * second.w_membrane, coupling * second.w_decay],
        [second.w_membrane, second.w_decay],
    )
    radius = np.abs(np.linalg.eigvals(np.moveaxis(np.array(rows), -1, 0))).max(axis=-1)
    # Decays that round to 1 make both eigenvalues 1, of which half the digits of float64 are found.
    assert radius.max() <= 1 + 1e-7
    assert np.mean(radius < 1) > 0.2


def test_learned_coupling_of_adlif_stays_in_the_range_it_was_given() -> None:
    """Where that is wider than what is stable."""
    neuron = neurons.adlif()
    params = neuron.init(KEY, 5)._replace(membrane_coupling=jnp.array([-1e9, -1.0, -0.5, 2.0, 1e9]))
    assert neuron.glif is not None
    second = neuron.glif.constants(params).second_state
    assert second is not None
    coupling = np.asarray(second.w_membrane)
    np.testing.assert_array_equal(coupling[:4], [-1.0, -1.0, -0.5, 2.0])
    assert coupling[4] < 4 / (1 - np.exp(-1 / 25))
