"""Sessions: options and their errors, training in each precision beside plain JAX, micro-batches, memory.

The arithmetic of a step is that of any device: it is tested on the CPU, and on modelled IPUs where they are.
"""

import itertools
import re
import threading
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.typing import DTypeLike
from jaxtyping import Array

import snnjax
from snnjax import losses
from snnjax.ipu import OutOfTileMemory, Session, _training, get_session, read_profile

BATCH = 8


@pytest.fixture(params=["cpu", "ipu"])
def platform(request: pytest.FixtureRequest) -> str:
    """Each platform that there is."""
    if request.param == "ipu":
        request.getfixturevalue("ipus")
    return request.param


def loss(params, batch) -> Array:
    """A small regression; the batch is its inputs and targets."""
    inputs, targets = batch
    hidden = jnp.tanh(inputs @ params["in"])
    return jnp.mean((hidden @ params["out"] - targets) ** 2)


def example(rows: int = BATCH) -> tuple[Any, Any]:
    keys = jax.random.split(jax.random.key(0), 4)
    params = {"in": jax.random.normal(keys[0], (3, 5)), "out": jax.random.normal(keys[1], (5, 2))}
    return params, (jax.random.normal(keys[2], (rows, 3)), jax.random.normal(keys[3], (rows, 2)))


def split(batch, parts: int):
    """The rows as micro-batches."""
    return jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), batch) if parts > 1 else batch


def trained(steps: int, rows: int = BATCH, **options) -> tuple[Any, list[float]]:
    """Parameters and losses of a session's training."""
    params, batch = example(rows)
    with Session(**options) as session:
        state, step = session.optimize(loss, optax.adam(0.05), params)
        parts = session.num_ipus * session.gradient_accumulation
        values = []
        for _ in range(steps):
            state, value = step(state, split(batch, parts))
            values.append(float(value))
        return jax.tree.map(np.asarray, state.params), values


def plain(steps: int) -> tuple[Any, list[float]]:
    """The same training without a session."""
    params, batch = example()
    optimiser = optax.adam(0.05)
    state, values = optimiser.init(params), []
    with jax.numpy_dtype_promotion("standard"):
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(params, batch)
            updates, state = optimiser.update(gradients, state, params)
            params = optax.apply_updates(params, updates)
            values.append(float(value))
    return params, values


@pytest.mark.parametrize("recompute", [False, True])
def test_float32_equals_plain_jax(platform: str, recompute: bool) -> None:
    params, found = trained(4, platform=platform, recompute=recompute)
    expected_params, expected = plain(4)
    np.testing.assert_allclose(found, expected, rtol=2e-5)
    chex.assert_trees_all_close(params, expected_params, rtol=2e-4, atol=2e-5, strict=True)


@pytest.mark.parametrize("num_ipus, accumulation", [(1, 4), (2, 1), (2, 2), (4, 2)])
def test_micro_batches_on_several_devices_equal_one_batch(
    num_ipus: int, accumulation: int, platform: str
) -> None:
    options = {"num_ipus": num_ipus, "gradient_accumulation": accumulation}
    params, found = trained(4, platform=platform, **options)
    expected_params, expected = plain(4)
    np.testing.assert_allclose(found, expected, rtol=2e-5)
    chex.assert_trees_all_close(params, expected_params, rtol=2e-4, atol=2e-5, strict=True)


@pytest.mark.parametrize("num_ipus, given", [(1, 12), (2, 6)])
def test_batch_without_the_axis_of_micro_batches_is_refused(num_ipus: int, given: int) -> None:
    """Each sample, or each step of sequences, would be a micro-batch."""
    params, batch = example(12)
    text = f"must have leaves with a leading axis of 2 (micro-batches) for each IPU, got [{given}, 3]. Stack"
    with Session(num_ipus=num_ipus, gradient_accumulation=2, platform="cpu") as session:
        state, step = session.optimize(loss, optax.sgd(0.1), params)
        with pytest.raises(ValueError, match=f"^{re.escape(f'Session.optimize: `batch` {text}')}"):
            step(state, batch)


@pytest.mark.parametrize("precision, dtype", [("mixed", np.float32), ("float16", np.float16)])
def test_half_precision_learns_like_float32(platform: str, precision: str, dtype: DTypeLike) -> None:
    params, found = trained(12, platform=platform, precision=precision)
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype(dtype)}
    # A step with an overflow leaves the loss as it is.
    taken = [value for value, _ in itertools.groupby(found)]
    assert len(taken) >= 10
    np.testing.assert_allclose(taken, plain(12)[1][: len(taken)], rtol=0.03)
    assert found[-1] < found[0] / 2


def spiking(rows: int) -> tuple[Any, Any, Any]:
    """A small spiking network's loss, parameters and a batch of events."""
    net = snnjax.network(10, [snnjax.layer(12, capacity=8), snnjax.layer(6)], snnjax.leaky_readout(3))
    events = jax.random.bernoulli(jax.random.key(2), 0.3, (rows, 5, 10)).astype(jnp.float32)
    labels = jnp.arange(rows) % 3

    def spiking_loss(params, batch) -> Array:
        events, labels = batch
        inputs = jnp.swapaxes(events, 0, 1)
        output, _ = net.apply(params, net.initial_state(params, labels.shape[0]), inputs)
        return losses.cross_entropy_sum(output.output.astype(jnp.float32), labels)

    return spiking_loss, net.init(jax.random.key(3)), (events, labels)


@pytest.mark.parametrize(
    "options",
    [{}, {"num_ipus": 2, "gradient_accumulation": 2}, {"precision": "mixed"}],
    ids=["one", "two", "mixed"],
)
def test_spiking_network_trains_on_ipus_as_on_the_cpu(
    options: dict[str, Any], ipus: list[jax.Device]
) -> None:
    spiking_loss, params, batch = spiking(8)
    found = {}
    for platform in ("cpu", "ipu"):
        with Session(platform=platform, **options) as session:
            state, step = session.optimize(spiking_loss, optax.adam(0.01), params)
            parts = split(batch, session.num_ipus * session.gradient_accumulation)
            values = []
            for _ in range(3):
                state, value = step(state, parts)
                values.append(float(value))
            found[platform] = values
    assert found["ipu"][-1] < found["ipu"][0]
    np.testing.assert_allclose(found["ipu"], found["cpu"], rtol=0.01 if "precision" in options else 1e-4)


@pytest.mark.usefixtures("ipus")
def test_half_partials_are_faster_and_less_exact() -> None:
    a, b = jnp.ones((32, 2048), jnp.float16), jnp.full((2048, 64), 0.05, jnp.float16)
    cycles, errors = [], []
    for half in (False, True):
        with Session(enable_half_partials=half) as session:
            product = session.compile(jnp.matmul, a, b)
            out = np.asarray(session.execute(product, a, b), np.float64)
            cycles.append(read_profile(product).phases.compute)
        errors.append(np.abs(out - 2048 * np.float64(np.float16(0.05))).max())
    assert cycles[1] < cycles[0]
    assert errors[0] < errors[1] < 0.5


def test_mixed_precision_computes_in_float16() -> None:
    seen: list[Any] = []

    def watching(params, batch) -> Array:
        seen.extend(leaf.dtype for leaf in jax.tree.leaves((params, batch)))
        return loss(params, batch)

    params, (inputs, targets) = example()
    with Session(platform="cpu", precision="mixed") as session:
        state, step = session.optimize(watching, optax.sgd(0.1), params)
        step(state, (inputs, targets))
    assert set(seen) == {jnp.dtype(jnp.float16)}


def test_scaling_saves_gradients_that_float16_would_lose() -> None:
    """``d loss / d w = 1e-9``, below the least of float16; the scale is a power of two, and so is exact."""

    def small(w: Array, x: Array) -> Array:
        return jnp.sum(w * x).astype(jnp.float32) * 1e-3

    precision = _training.PRECISIONS["mixed"]
    gradient = _training.gradient_of(small, precision)
    inputs = jnp.full(1, 1e-5)
    scaled = gradient(jnp.ones(1), jnp.float32(2.0**15), inputs)[1]
    lost = gradient(jnp.ones(1), jnp.float32(1.0), inputs)[1]
    assert float(lost[0]) == 0.0
    assert float(scaled[0]) == pytest.approx(1e-8, rel=0.02)


def test_step_with_an_overflow_changes_the_scale_alone() -> None:
    def steep(w: Array, x: Array) -> Array:
        return jnp.sum(w * x).astype(jnp.float32)

    with Session(platform="cpu", precision="mixed") as session:
        state, step = session.optimize(steep, optax.adam(0.1), jnp.ones(2))
        first = jax.tree.map(np.asarray, state)
        state, _ = step(state, jnp.full(2, 4.0))  # 4 * 2^15 is more than float16 holds
        np.testing.assert_array_equal(state.params, first.params)
        chex.assert_trees_all_equal(state.optimiser, first.optimiser, strict=True)
        assert float(state.loss_scale) == first.loss_scale / 2
        for _ in range(3):
            state, _ = step(state, jnp.full(2, 4.0))
        assert float(state.loss_scale) < 2.0**14
        assert np.all(np.asarray(state.params) < 1)


@pytest.mark.parametrize(
    "scale, good, finite, expected",
    [
        (8.0, 5, True, (8.0, 6)),
        (8.0, _training.GROWTH_STEPS - 1, True, (16.0, 0)),
        (_training.LARGEST_SCALE, _training.GROWTH_STEPS - 1, True, (_training.LARGEST_SCALE, 0)),
        (8.0, 5, False, (4.0, 0)),
        (1.0, 5, False, (1.0, 0)),
    ],
)
def test_next_scale(scale: float, good: int, finite: bool, expected: tuple[float, int]) -> None:
    found = _training.next_scale(jnp.float32(scale), jnp.int32(good), jnp.bool_(finite))
    assert tuple(map(float, found)) == expected


def test_session_is_the_current_one_inside_alone() -> None:
    with pytest.raises(ValueError, match=r"get_session: `session` must be open in this thread, got none\."):
        get_session()
    with Session(platform="cpu") as outer:
        assert get_session() is outer
        with Session(platform="cpu") as inner:
            assert get_session() is inner
        assert get_session() is outer
        with pytest.raises(ValueError, match=r"Session\.info: `session` must be initialized"):
            inner.info()
    with pytest.raises(ValueError, match=r"Session\.compile: `session` must be initialized"):
        outer.compile(jnp.sin, 1.0)


def test_threads_have_sessions_of_their_own() -> None:
    seen: dict[str, Any] = {}

    def work() -> None:
        try:
            get_session()
        except ValueError as error:
            seen["message"] = str(error)
        with Session(platform="cpu") as own:
            seen["own"] = get_session() is own
        seen["shared"] = session.execute(session.compile(jnp.sin, 0.0), 0.0)

    with Session(platform="cpu") as session:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert get_session() is session
    sentence = (
        "get_session: `session` must be open in this thread, got none. Call it inside `with Session(...)`."
    )
    assert seen == {"message": sentence, "own": True, "shared": 0.0}


def test_session_ended_in_another_thread_is_not_current() -> None:
    session = Session(platform="cpu").initialize()
    thread = threading.Thread(target=session.finalize)
    thread.start()
    thread.join()
    with pytest.raises(ValueError, match=r"get_session: `session` must be open in this thread, got none"):
        get_session()


def test_session_is_initialized_once() -> None:
    sentence = (
        r"Session\.initialize: `session` must not be initialized, got one that is\. Call finalize first"
    )
    with Session(platform="cpu") as session:
        with pytest.raises(ValueError, match=sentence):
            session.initialize()
        assert get_session() is session
    session.initialize().finalize()
    with pytest.raises(ValueError, match=r"Session\.finalize: `session` must be initialized"):
        session.finalize()


def test_compile_and_execute() -> None:
    with Session(platform="cpu") as session:
        twice = session.compile(lambda x, n: n * x, np.arange(3.0, dtype=np.float32), 2.0)
        assert session.execute(twice, jnp.arange(3.0), 2.0).tolist() == [0.0, 2.0, 4.0]
        shapes = session.compile(jax.jit(jnp.sin), jax.ShapeDtypeStruct((4,), jnp.float32))
        assert session.execute(shapes, jnp.zeros(4)).shape == (4,)


def test_compile_only_runs_nothing() -> None:
    with Session(platform="cpu", compile_only=True) as session:
        compiled = session.compile(jnp.sin, 1.0)
        with pytest.raises(
            ValueError, match=r"Session\.execute: `compile_only` must be False to run, got True\."
        ):
            session.execute(compiled, 1.0)


def test_step_of_a_session_that_only_compiles_does_not_run() -> None:
    params, batch = example()
    with Session(platform="cpu", compile_only=True) as session:
        state, step = session.optimize(loss, optax.sgd(0.1), params)
        assert session.compile(step, state, batch).cost_analysis()
        with pytest.raises(
            ValueError, match=r"Session\.optimize: `compile_only` must be False to run, got True\."
        ):
            step(state, batch)


@pytest.mark.usefixtures("ipus")
def test_step_may_take_its_share_of_a_tile() -> None:
    params, batch = example()
    with Session(memory_proportion=0.001) as session:
        state, step = session.optimize(loss, optax.sgd(0.1), params)
        for _ in range(2):
            with pytest.raises(
                OutOfTileMemory, match=r"Session\.optimize: `memory_proportion` must be at least 0\."
            ):
                step(state, batch)
        assert not state.params["in"].is_deleted()
    with Session(memory_proportion=0.9) as session:
        state, step = session.optimize(loss, optax.sgd(0.1), params)
        state, first = step(state, batch)
        _, second = step(state, batch)
        assert float(second) < float(first)


@pytest.mark.usefixtures("ipus")
def test_adam_in_float16_needs_an_eps_that_float16_has() -> None:
    """1e-8 is 0 in float16, and an entry without gradient becomes 0 / 0."""
    params, batch = example()
    params["in"] = params["in"].at[0].set(0.0)
    batch = (batch[0].at[:, 0].set(0.0), batch[1])  # so that one row of the weights has no gradient
    finite = {}
    for eps in (1e-8, 1e-4):
        with Session(precision="float16") as session:
            state, step = session.optimize(loss, optax.adam(0.05, eps=eps), params)
            for _ in range(3):
                state, _ = step(state, batch)
            finite[eps] = bool(jnp.isfinite(jax.device_get(state.params["in"])).all())
    assert finite == {1e-8: False, 1e-4: True}


def test_several_devices_share_a_mesh() -> None:
    with Session(platform="cpu", num_ipus=4) as session:
        assert session.mesh.shape == {"replicas": 4}
        everywhere = session.compile(lambda x: x + 1, jnp.zeros(2))
        assert len(session.execute(everywhere, jnp.zeros(2)).devices()) == 4


def test_info_tells_devices_and_precision() -> None:
    with Session(platform="cpu", num_ipus=2, precision="mixed") as session:
        info = session.info()
    assert len(info["devices"]) == len(info["bytes_in_use"]) == 2
    assert info["precision"] == "mixed"


@pytest.mark.usefixtures("ipus")
def test_info_of_ipus_tells_the_chip() -> None:
    with Session() as session:
        sine = session.compile(jnp.sin, jnp.ones(100))
        held = jax.block_until_ready(session.execute(sine, jnp.ones(100)))
        info = session.info()
    assert (info["chip"], info["num_tiles"], info["memory_per_tile"]) == ("mk2", 8, 624 * 1024)
    assert info["clock_hz"] == 1_330_000_000
    assert info["bytes_in_use"][0] >= held.nbytes


@pytest.mark.usefixtures("ipus")
def test_program_may_take_its_share_of_a_tile() -> None:
    def square(x: Array) -> Array:
        return x @ x

    shape = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    with Session(memory_proportion=0.9) as session:
        session.compile(square, shape)
    with Session(memory_proportion=0.1) as session, pytest.raises(OutOfTileMemory) as error:
        session.compile(square, shape)
    pattern = (
        r"Session\.compile: `memory_proportion` must be at least 0\.\d{3} for this program, got 0\.1 "
        r"\(\d+ of 638976 bytes on tile \d\)\. Pass a larger one, or a smaller batch\."
    )
    assert re.fullmatch(pattern, str(error.value))


@pytest.mark.usefixtures("ipus")
@pytest.mark.parametrize("proportion", [1.0, 0.25])
def test_batch_size_found_is_the_largest_power_of_two_that_fits(proportion: float) -> None:
    def outer(x: Array) -> Array:
        return jnp.sin(x) @ jnp.ones((1024, 512))

    def args(size: int) -> tuple[Any, ...]:
        return (jax.ShapeDtypeStruct((size, 1024), jnp.float32),)

    with Session(memory_proportion=proportion, compile_only=True) as session:
        best = session.find_batch_size(outer, args)
        assert best >= 2 and best & (best - 1) == 0
        session.compile(outer, *args(best))
        with pytest.raises((OutOfTileMemory, jax.errors.JaxRuntimeError)):
            session.compile(outer, *args(2 * best))
        assert session.find_batch_size(outer, args, largest=2) == 2
        with pytest.raises(ValueError, match="`largest` must be an integer of at least 1, got 0"):
            session.find_batch_size(outer, args, largest=0)


@pytest.mark.usefixtures("ipus")
def test_batch_of_one_that_does_not_fit() -> None:
    shape = jax.ShapeDtypeStruct((3000, 3000), jnp.float32)
    with (
        Session() as session,
        pytest.raises(OutOfTileMemory, match=r"find_batch_size: one sample does not fit\."),
    ):
        session.find_batch_size(lambda x: x @ x, lambda size: (shape,))


def long_network(steps: int) -> tuple[Any, Any]:
    """A network's gradient, and its arguments for a batch size: the membranes of all steps fill the tiles."""
    layers = [snnjax.layer(64, capacity=8), snnjax.layer(64, capacity=8)]
    net = snnjax.network(10, layers, snnjax.leaky_readout(3))
    params = net.init(jax.random.key(0))

    def gradient(params, inputs: Array):
        return jax.grad(lambda params: net.apply(params, None, inputs)[0].output.sum())(params)

    return gradient, lambda size: (params, jax.ShapeDtypeStruct((steps, size, 10), jnp.float32))


@pytest.mark.usefixtures("ipus")
def test_batch_size_of_a_network_is_the_largest_that_fits() -> None:
    gradient, args = long_network(2000)
    with Session(compile_only=True) as session:
        best = session.find_batch_size(gradient, args)
        with pytest.raises(
            jax.errors.JaxRuntimeError,
            match="RESOURCE_EXHAUSTED: lif_network: `layers` must fit into 549519 of the 638976 bytes of each tile",
        ):
            session.compile(gradient, *args(2 * best))


@pytest.mark.usefixtures("ipus")
def test_network_of_which_no_sample_fits() -> None:
    gradient, args = long_network(20_000)
    with (
        Session() as session,
        pytest.raises(
            OutOfTileMemory, match=r"one sample does not fit\. RESOURCE_EXHAUSTED: lif_network: `layers` must"
        ),
    ):
        session.find_batch_size(gradient, args)


def test_other_errors_of_compilation_are_not_about_memory() -> None:
    def wrong(x: Array) -> Array:
        raise LookupError("no such thing")

    with Session(platform="cpu") as session, pytest.raises(LookupError):
        session.find_batch_size(wrong, lambda size: (jnp.ones(size),))


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"num_ipus": 0},
            "Session: `num_ipus` must be an integer of at least 1, got 0. Pass 1 or more.",
        ),
        (
            {"num_ipus": 1.5},
            "Session: `num_ipus` must be an integer of at least 1, got 1.5. Pass an int, such as 1.",
        ),
        (
            {"gradient_accumulation": 0},
            "Session: `gradient_accumulation` must be an integer of at least 1, got 0. ",
        ),
        (
            {"gradient_accumulation": "2"},
            "Session: `gradient_accumulation` must be an integer of at least 1, got '2'. Pass an int, such as 1.",
        ),
        (
            {"precision": "bf16"},
            "Session: `precision` must be 'float32', 'float16' or 'mixed', got 'bf16'. ",
        ),
        (
            {"memory_proportion": "half"},
            "Session: `memory_proportion` must be above 0 and at most 1, got 'half'. ",
        ),
        (
            {"compile_only": "no"},
            "Session: `compile_only` must be True or False, got 'no'. Choose one of these.",
        ),
        ({"recompute": 1}, "Session: `recompute` must be True or False, got 1. Choose one of these."),
        (
            {"enable_half_partials": None},
            "Session: `enable_half_partials` must be True or False, got None. Choose one of these.",
        ),
        (
            {"memory_proportion": 0.0},
            "Session: `memory_proportion` must be above 0 and at most 1, got 0.0. ",
        ),
        (
            {"memory_proportion": 1.5},
            "Session: `memory_proportion` must be above 0 and at most 1, got 1.5. ",
        ),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        Session(**options)
    assert str(error.value).startswith(message)


def test_more_devices_than_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"Session: `num_ipus` must be at most 4, got 5\. Set SNNJAX_IPU_DEVICES"
    ):
        Session(platform="cpu", num_ipus=5).initialize()
