"""`lif_network` on a GPU: unrolled loops, and `implementation="gpu"`, whose kernels are interpreted here."""

import functools
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import chex
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params
from jax.sharding import AxisType, PartitionSpec

from snnjax import LIFLayer, LIFReadout, lif_network
from snnjax._neuron_table import RESETS
from snnjax.ops import _gpu_scan
from snnjax.ops._lif_network import chain, primitive
from snnjax.ops._time_scan import PLAIN, UNROLLED, WITHOUT_LOOP, Loops, kernel_scan, time_scan
from tests.numbers import assert_close
from tests.ops.common import jit
from tests.ops.kernel_checks import TOLERANCE, everything
from tests.ops.lif_network.random_networks import ALL, RESONANCE, Form, arguments, runner

INTERPRETED = Loops(functools.partial(kernel_scan, interpret=True), time_scan)
# Rounds of 2 steps, and one that is left over, compile faster than those of 8.
STEPS, AT_ONCE = 5, 2
_pairs = functools.partial(time_scan, unroll=AT_ONCE)
IN_PAIRS = UNROLLED._replace(apart=_pairs, mixed=_pairs)
# Each reset somewhere; all second states, some, none; blocks of neurons that are full, ragged, narrow; steps left over
# or not; sequences that end; lists; narrow numbers; no steps. Surrogates are the reference's own code.
FORMS = (
    Form(STEPS, 2, 7, (130,)),
    Form(STEPS, 3, 7, (65,), None, capacity=9, surrogate="triangle", reset="zero", second_states=(ALL,)),
    Form(2, 2, 5, (4,), None, given="uint16 lists", reset="none", lengths=False)._replace(
        per_neuron=False, second_states=(RESONANCE,), detach_reset=False
    ),
    Form(2, 2, 5, (6,), dtype="bfloat16", capacity=3, refractory=(True,)),
    Form(0, 2, 5, (6, 0), capacity=3),
)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch):
    """A function that makes the references scan in another way."""

    def by(loops: Loops) -> None:
        for name, function in (("FORWARD", chain.forward), ("BACKWARD", chain.backward)):
            target = replace(getattr(primitive, name), reference=functools.partial(function, loops=loops))
            monkeypatch.setattr(primitive, name, target)

    return by


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_kernel_equals_reference(scanned, monkeypatch: pytest.MonkeyPatch, form: Form) -> None:
    """Results bit for bit, since arguments are dyadic, and gradients within the tolerance."""
    monkeypatch.setattr(_gpu_scan, "_AHEAD", AT_ONCE)
    given, of = arguments(form, np.random.default_rng(0)), {}
    for name, loops in (("ours", INTERPRETED), ("theirs", PLAIN)):
        scanned(loops)
        of[name] = jit(everything(form, "reference"))(*given)
    chex.assert_trees_all_equal(of["ours"][0], of["theirs"][0], strict=True)
    assert_close(of["ours"][1], of["theirs"][1], of_largest=TOLERANCE[form.dtype])


def test_forms_reach_each_reset() -> None:
    assert {form.reset for form in FORMS} == set(RESETS)


RECURRENT = Form(STEPS, 2, 5, (6,), recurrent=True, second_states=(ALL,), capacity=3)


@pytest.mark.parametrize("loops", [IN_PAIRS, WITHOUT_LOOP], ids=["pairs", "no loop"])
@pytest.mark.parametrize("capacity", [3, 6], ids=["overflow", "room"])
def test_unrolled_scans_change_nothing(scanned, loops: Loops, capacity: int) -> None:
    """Also not where steps are left over, lists overflow, and weights are not finite, unless that is hoped against."""
    form = RECURRENT._replace(capacity=capacity)
    finite, of = arguments(RECURRENT, np.random.default_rng(1)), []
    (layer,) = finite[1]
    recurrent = layer.recurrent.at[0, 1].set(jnp.inf).at[2, :2].set(jnp.nan)
    wild = layer._replace(weights=layer.weights.at[1, 3].set(-jnp.inf), recurrent=recurrent)
    for each in (loops, PLAIN):
        scanned(each)
        run = jit(everything(form, "reference"))
        of.append((run(*finite), run(finite[0], (wild,), *finite[2:])))
    if loops.hopes:
        of = [results[:1] for results in of]
    for ours, theirs in zip(*of, strict=True):
        chex.assert_trees_all_equal(ours[0], theirs[0], strict=True)
        assert_close(ours[1], theirs[1], of_largest=TOLERANCE["float32"])
    finite, *wild = (jax.tree.leaves(results) for results, _ in of[0])
    assert all(np.all(np.isfinite(leaf)) for leaf in finite)
    assert all(any(np.any(np.isnan(leaf)) for leaf in each) for each in wild)


def conditionals(jaxpr, *, in_scan: bool = False) -> int:
    """The number of conditionals in scans, where all numbers are finite."""
    found = 0
    for equation in jaxpr.eqns:
        is_branch = equation.primitive.name == "cond"
        found += is_branch and in_scan
        inside = equation.params["branches"][:1] if is_branch else jaxprs_in_params(equation.params)
        within = in_scan or equation.primitive.name == "scan"
        found += sum(conditionals(getattr(own, "jaxpr", own), in_scan=within) for own in inside)
    return found


def test_steps_have_no_conditionals_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host would wait for each. Elsewhere a recurrent step has one for its product and one for its lists."""
    given, found = arguments(RECURRENT, np.random.default_rng(1)), []
    for loops in (UNROLLED, PLAIN):
        monkeypatch.setattr(primitive, "forward", functools.partial(chain.forward, loops=loops))
        found.append(conditionals(jax.make_jaxpr(runner(RECURRENT, "composed"))(*given).jaxpr))
    assert found == [0, 2]


X, W, READOUT = jnp.ones((16, 4, 3)), jnp.full((3, 5), 0.25), jnp.full((5, 2), 0.5)


def output(x, weights, implementation: str | None = "reference"):
    layers, readout = [LIFLayer(weights, 0.9, 1.0, 1.0)], LIFReadout(READOUT, 0.9, 1.0)
    return lif_network(x, layers, readout, implementation=implementation)[0].output


def loss(x, weights):
    return jnp.sum(output(x, weights) ** 2)


def test_kernel_inside_vmap_over_weights(scanned) -> None:
    scanned(INTERPRETED)
    weights = jnp.stack([W, 2 * W])
    ours = jit(jax.vmap(jax.value_and_grad(loss, 1), (None, 0)))(X, weights)
    scanned(PLAIN)
    theirs = [jit(jax.value_and_grad(loss, 1))(X, each) for each in weights]
    chex.assert_trees_all_close(ours, jax.tree.map(lambda *each: jnp.stack(each), *theirs), rtol=1e-6)


def test_kernel_inside_shard_map(scanned) -> None:
    mesh = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Auto,))
    by_batch = PartitionSpec(None, "batch")
    specs = {"in_specs": (by_batch, PartitionSpec()), "out_specs": by_batch}
    x = X * jnp.arange(1.0, 5.0)[None, :, None]
    expected = jit(jax.grad(lambda x: jnp.sum(output(x, W) ** 2)))(x)
    scanned(INTERPRETED)
    sharded = jax.shard_map(output, mesh=mesh, **specs)
    chex.assert_trees_all_close(jit(jax.grad(lambda x: jnp.sum(sharded(x, W) ** 2)))(x), expected, rtol=1e-6)


def lowered(implementation: str | None, *platforms: str) -> str:
    by = functools.partial(output, implementation=implementation)
    gradient = jax.grad(lambda weights: jnp.sum(by(X, weights) ** 2))
    return jax.jit(gradient).trace(W).lower(lowering_platforms=platforms).as_text()


@pytest.mark.parametrize("implementation, platform", [(None, "cuda"), ("reference", "rocm")])
def test_scans_are_unrolled_on_gpus_only(implementation: str | None, platform: str) -> None:
    """Sixteen steps: two rounds of eight."""
    on_gpu, elsewhere = lowered(implementation, platform), lowered("reference", "cpu")
    loops = elsewhere.count("stablehlo.while")
    assert on_gpu.count("stablehlo.while") == loops > 0
    assert on_gpu.count("dense<2> : tensor<i32>") >= loops
    assert elsewhere.count("dense<16> : tensor<i32>") >= loops
    assert "triton" not in on_gpu


def test_asked_for_the_scans_are_kernels() -> None:
    text = lowered("gpu", "cuda")
    # Two of the layer and two of the readout, forward and backward.
    assert text.count("stablehlo.custom_call") == 4
    assert "stablehlo.while" not in text


@pytest.mark.parametrize(
    "capabilities, platforms, is_kernel",
    [
        (["9.0", "9.0"], ["cuda"], True),
        (["9.0", "8.0"], ["cuda"], False),
        (["9.0"], ["rocm"], False),
        (["9.0"], ["cuda", "tpu"], False),
        (None, ["cuda"], False),
    ],
)
def test_kernel_is_chosen_where_it_was_measured(
    monkeypatch: pytest.MonkeyPatch, capabilities, platforms: list[str], is_kernel: bool
) -> None:
    _with_gpus(monkeypatch, capabilities)
    assert lowered(None, *platforms).count("xla.gpu.triton") == (4 if is_kernel else 0)


def _with_gpus(monkeypatch: pytest.MonkeyPatch, capabilities) -> None:
    """A machine with GPUs of these compute capabilities, or without a plug-in for them."""
    devices = jax.devices

    def as_if(platform: str | None = None):
        if platform != "cuda":
            return devices(platform)
        if capabilities is None:
            raise RuntimeError("Unknown backend cuda")
        return [SimpleNamespace(compute_capability=each) for each in capabilities]

    monkeypatch.setattr(jax, "devices", as_if)


def test_kernel_needs_known_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is exported for any number of sequences has none."""
    _with_gpus(monkeypatch, ["9.0"])
    (batch,) = jax.export.symbolic_shape("batch")
    x = jax.ShapeDtypeStruct((16, batch, 3), jnp.float32)
    program = functools.partial(output, weights=W, implementation=None)
    text = str(jax.export.export(jax.jit(program), platforms=["cuda"])(x).mlir_module())
    assert "stablehlo.while" in text
    with pytest.raises(ValueError, match="for sizes that are not known, got 'gpu'"):
        jax.export.export(jax.jit(functools.partial(program, implementation="gpu")), platforms=["cuda"])(x)


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu",), ("cuda", "tpu")], ids="/".join)
def test_platforms_without_the_kernel_are_named(platforms: tuple[str, ...]) -> None:
    with pytest.raises(ValueError) as error:
        lowered("gpu", *platforms)
    assert str(error.value) == (
        f"lif_network: `implementation` must be None or 'reference' on platform {'/'.join(platforms)}, got 'gpu'. "
        "Leave it None, or run the program under jax.default_device of a GPU."
    )


def test_float64_has_no_kernel() -> None:
    with jax.enable_x64(True):
        layers = [LIFLayer(W.astype(jnp.float64), 0.9, 1.0, 1.0)]
        with pytest.raises(ValueError) as error:
            lif_network(X.astype(jnp.float64), layers, implementation="gpu")
    assert str(error.value) == (
        "lif_network: `implementation` must be None or 'reference' for float64 weights, got 'gpu'. "
        "Leave it None for an automatic choice."
    )


def test_import_leaves_pallas_alone() -> None:
    program = "import snnjax, sys; sys.exit('jax.experimental.pallas' in sys.modules)"
    assert subprocess.run((sys.executable, "-c", program), check=False).returncode == 0
