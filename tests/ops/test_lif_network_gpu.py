"""`lif_network` on a GPU: unrolled scans, and `implementation="gpu"`, whose kernels are interpreted here."""

import functools
import subprocess
import sys
from dataclasses import replace
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

from snnjax import LeakyReadout, LIFLayer, lif_network
from snnjax._types import RESETS, SURROGATES
from snnjax.ops._lif_network import chain, primitive
from snnjax.ops._time_scan import PLAIN, UNROLLED, Scans, kernel_scan, time_scan
from tests.numbers import assert_close
from tests.ops.common import jit
from tests.ops.kernel_checks import TOLERANCE, everything
from tests.ops.random_networks import ADAPTIVE, ADLIF, ALL, RESONANCE, SYNAPSE, Form, arguments

INTERPRETED = Scans(functools.partial(kernel_scan, interpret=True), time_scan)
# Each reset, surrogate and kind of second state somewhere; blocks of neurons that are full, ragged, narrow; steps that
# fill a group of 8, or not; sequences that end; lists; every dtype.
FORMS = (
    Form(9, 2, 7, (130, 5), surrogate="superspike"),
    Form(3, 3, 7, (65,), None, capacity=9, surrogate="triangle", reset="zero", cutoff=0.75),
    Form(2, 2, 5, (17,), None, given="bool", surrogate="gaussian", detach_reset=False, second_states=(ALL,)),
    Form(2, 2, 7, (6,), 1, capacity=4, given="uint16 lists", surrogate="sigmoid", second_states=(SYNAPSE,)),
    Form(2, 2, 5, (16,), None, reset="none", surrogate="boxcar", lengths=False, per_neuron=False),
    Form(
        2, 2, 5, (4,), None, surrogate="arctan", reset="zero", detach_reset=False, second_states=(RESONANCE,)
    ),
    Form(2, 2, 5, (4,), None, second_states=(ADAPTIVE,), capacity=2),
    Form(2, 2, 5, (6,), recurrent=True, surrogate="straight_through", second_states=(ADLIF,)),
    Form(3, 2, 5, (9,), None, surrogate="superspike", dtype="bfloat16", capacity=3),
    Form(2, 0, 5, (6, 0), capacity=3),
    Form(0, 2, 5, (6,), second_states=(ALL,)),
)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes the references scan in another way."""

    def by(scans: Scans) -> None:
        for name, function in (("FORWARD", chain.forward), ("BACKWARD", chain.backward)):
            target = replace(getattr(primitive, name), reference=functools.partial(function, scans=scans))
            monkeypatch.setattr(primitive, name, target)

    return by


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_kernel_equals_reference(scanned: Any, form: Form) -> None:
    """Results bit for bit, since arguments are dyadic, and gradients within the tolerance."""
    given, of = arguments(form, np.random.default_rng(0)), {}
    for name, scans in (("ours", INTERPRETED), ("theirs", PLAIN)):
        scanned(scans)
        of[name] = jit(everything(form, "reference"))(*given)
    chex.assert_trees_all_equal(of["ours"][0], of["theirs"][0], strict=True)
    assert_close(of["ours"][1], of["theirs"][1], of_largest=TOLERANCE[form.dtype])


def test_forms_reach_all_sides_of_the_kernel() -> None:
    assert {form.surrogate for form in FORMS} == set(SURROGATES)
    assert {form.reset for form in FORMS} == set(RESETS)
    states = {state for form in FORMS for state in form.second_states}
    assert states >= {ADLIF, ADAPTIVE, SYNAPSE, RESONANCE, ALL}


def test_unrolled_scans_change_nothing(scanned: Any) -> None:
    """Also not where 8 does not divide the steps."""
    form = Form(10, 2, 5, (6,), recurrent=True, second_states=(ALL,), capacity=3)
    given, of = arguments(form, np.random.default_rng(1)), []
    for scans in (UNROLLED, PLAIN):
        scanned(scans)
        of.append(jit(everything(form, "reference"))(*given))
    chex.assert_trees_all_equal(of[0][0], of[1][0], strict=True)
    assert_close(of[0][1], of[1][1], of_largest=TOLERANCE["float32"])


X, W, READOUT = jnp.ones((16, 4, 3)), jnp.full((3, 5), 0.25), jnp.full((5, 2), 0.5)


def output(x: Any, weights: Any, implementation: str | None = "reference") -> Any:
    layers, readout = [LIFLayer(weights, 0.9, 1.0, 1.0)], LeakyReadout(READOUT, 0.9, 1.0)
    return lif_network(x, layers, readout, implementation=implementation)[0].output


def loss(x: Any, weights: Any) -> Any:
    return jnp.sum(output(x, weights) ** 2)


def test_kernel_inside_vmap_over_weights(scanned: Any) -> None:
    scanned(INTERPRETED)
    weights = jnp.stack([W, 2 * W])
    ours = jit(jax.vmap(jax.value_and_grad(loss, 1), (None, 0)))(X, weights)
    scanned(PLAIN)
    theirs = [jit(jax.value_and_grad(loss, 1))(X, each) for each in weights]
    chex.assert_trees_all_close(ours, jax.tree.map(lambda *each: jnp.stack(each), *theirs), rtol=1e-6)


@pytest.mark.parametrize("scans", [UNROLLED, INTERPRETED], ids=["unrolled", "kernel"])
def test_inside_shard_map(scanned: Any, scans: Scans) -> None:
    mesh = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Auto,))
    by_batch = PartitionSpec(None, "batch")
    specs = {"in_specs": (by_batch, PartitionSpec()), "out_specs": by_batch}
    x = X * jnp.arange(1.0, 5.0)[None, :, None]
    expected = jit(jax.grad(lambda x: jnp.sum(output(x, W) ** 2)))(x)
    scanned(scans)
    sharded = jax.shard_map(output, mesh=mesh, **specs)
    chex.assert_trees_all_close(jit(jax.grad(lambda x: jnp.sum(sharded(x, W) ** 2)))(x), expected, rtol=1e-6)


def lowered(implementation: str | None, *platforms: str) -> str:
    by = functools.partial(output, implementation=implementation)
    gradient = jax.grad(lambda weights: jnp.sum(by(X, weights) ** 2))
    return jax.jit(gradient).trace(W).lower(lowering_platforms=platforms).as_text()


@pytest.mark.parametrize("implementation", [None, "reference"])
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
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
    # Two of the layer and two of the read-out, forward and backward.
    assert text.count("stablehlo.custom_call") == 4
    assert "stablehlo.while" not in text


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
