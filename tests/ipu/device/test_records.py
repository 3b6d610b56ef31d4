"""What a forward pass leaves for its backward pass: where gradients may be pulled back, and what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from snnjax import LeakyReadout, LIFLayer, _dispatch, _targets, lif_network
from tests.ipu.device.placing import cpu, ipu, put

pytestmark = pytest.mark.usefixtures("ipus")

X = np.random.default_rng(0).integers(0, 2, (5, 3, 12)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).integers(-8, 9, (12, 6)).astype(np.float32) / 8
REFUSED = (
    r"lif_network: `pull-back` must be called where the forward pass ran, got one of an IPU, which keeps the record on "
    r"its tiles\. Call it there, or take the gradient inside one jax\.jit\."
)


def network(weights, x, **options):
    out, _ = lif_network(x, [LIFLayer(weights, 0.9)], **options)
    return out.activity[0].sum() + (out.output @ jnp.arange(6.0)).sum()


def expected():
    return np.asarray(jax.jit(jax.grad(network))(put(WEIGHTS, cpu()), put(X, cpu())))


def pull_back_of(function):
    """That of a forward pass on an IPU."""
    value, pull_back = jax.vjp(function, put(WEIGHTS), put(X))
    assert value.devices() == {ipu()}
    return pull_back


@pytest.mark.parametrize("function", [jax.jit(network), network], ids=["one program", "op by op"])
def test_gradient_is_pulled_back_on_the_ipu(function):
    gradient, _ = pull_back_of(function)(put(np.float32(1)))
    assert gradient.devices() == {ipu()}
    np.testing.assert_allclose(gradient, expected(), rtol=1e-5, atol=1e-5)
    gradient, _ = jax.jit(lambda pull_back, g: pull_back(g))(pull_back_of(function), put(np.float32(1)))
    np.testing.assert_allclose(gradient, expected(), rtol=1e-5, atol=1e-5)


def test_gradient_is_pulled_back_on_another_ipu():
    moved = put(pull_back_of(jax.jit(network)), ipu(1))
    gradient, _ = moved(put(np.float32(1), ipu(1)))
    assert gradient.devices() == {ipu(1)}
    np.testing.assert_allclose(gradient, expected(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [jax.jit(network), network], ids=["one program", "op by op"])
def test_pull_back_on_another_platform_is_refused(function):
    with pytest.raises(jax.errors.JaxRuntimeError, match=REFUSED):
        jax.block_until_ready(put(pull_back_of(function), cpu())(put(np.float32(1), cpu())))


@pytest.mark.parametrize("surrogate", ["superspike", "boxcar", "straight_through"])
def test_reference_on_another_platform_gives_no_number(surrogate, monkeypatch):
    """A program of plain JAX has no errors, and NaN is none of its gradients."""
    monkeypatch.setattr(_targets, "missing", lambda: "There are no kernels")
    monkeypatch.setattr(_dispatch, "_warn_once", lambda _: None)

    def loss(weights, capacity):  # in another shape than elsewhere: nothing is compiled yet
        network = put(X[:, :2]), [LIFLayer(weights, 0.9)], LeakyReadout(jnp.ones((6, 2)), 0.9)
        out, _ = lif_network(*network, surrogate=surrogate, capacity=capacity)
        return out.output.sum()

    for capacity in (None, 4):
        _, pull_back = jax.vjp(functools.partial(loss, capacity=capacity), put(WEIGHTS))
        (gradient,) = put(pull_back, cpu())(put(np.float32(1), cpu()))
        assert np.isnan(gradient).any()


def test_records_that_a_loop_stacks_are_refused_as_well():

    def loss(weights, xs):
        return lax.scan(lambda total, x: (total + network(weights, x), None), 0.0, xs)[0]

    xs = np.stack([X, X[::-1]])
    step = jax.jit(jax.value_and_grad(loss))
    for actual, wanted in zip(
        step(put(WEIGHTS), put(xs)), step(put(WEIGHTS, cpu()), put(xs, cpu())), strict=True
    ):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)
    _, pull_back = jax.vjp(jax.jit(loss), put(WEIGHTS), put(xs))
    with pytest.raises(jax.errors.JaxRuntimeError, match=REFUSED):
        jax.block_until_ready(put(pull_back, cpu())(put(np.float32(1), cpu())))
    gradient, _ = pull_back(put(np.float32(1)))
    np.testing.assert_allclose(gradient, step(put(WEIGHTS, cpu()), put(xs, cpu()))[1], rtol=1e-5, atol=1e-5)
