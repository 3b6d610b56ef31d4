"""What a forward pass leaves for its backward pass: where gradients may be pulled back, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from snnjax import LIFLayer, lif_network
from tests.ipu.device.placing import cpu, ipu, put

pytestmark = pytest.mark.usefixtures("ipus")

X = np.random.default_rng(0).integers(0, 2, (5, 3, 12)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).integers(-8, 9, (12, 6)).astype(np.float32) / 8
REFUSED = (
    r"UNIMPLEMENTED: array: `buffer` must hold elements, got .* of the record of a forward pass, which stays on its "
    r"tiles\. Pull the gradient back on the IPU, or take it inside one jax\.jit\."
)


def network(weights, x):
    out, _ = lif_network(x, [LIFLayer(weights, 0.9)], capacity=4)
    return out.activity[0].sum() + (out.output @ jnp.arange(6.0)).sum()


def expected():
    return np.asarray(jax.jit(jax.grad(network))(put(WEIGHTS, cpu()), put(X, cpu())))


def pull_back_of(function):
    """That of a forward pass on an IPU."""
    value, pull_back = jax.vjp(function, put(WEIGHTS), put(X))
    assert value.devices() == {ipu()}
    return pull_back


def is_record(leaf):
    try:
        np.asarray(leaf)
    except jax.errors.JaxRuntimeError:
        return True
    return False


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


@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        lambda record: np.asarray(record + 1),
        lambda record: np.asarray(jax.jit(lambda r: lax.fori_loop(0, 2, lambda _, r: r * 2, r))(record)),
        lambda record: np.asarray(jax.jit(lambda r: jnp.where(jnp.any(r > 0), 1, 2))(record)),
        lambda record: jax.block_until_ready(
            jax.jit(lambda r: jax.pure_callback(np.sum, r[0, 0, 0], r))(record)
        ),
    ],
    ids=["itself", "a sum", "in a loop", "by a condition", "in a callback"],
)
def test_what_is_computed_from_a_record_is_refused(use):
    leaves = jax.tree.leaves(pull_back_of(jax.jit(network)))
    records = [leaf for leaf in leaves if is_record(leaf) and leaf.dtype == jnp.float32]
    assert records
    with pytest.raises(jax.errors.JaxRuntimeError, match="the record of a forward pass"):
        use(records[0])


def test_record_within_a_program_is_no_result_of_it():
    """Loops stack records, and slices of them reach the backward pass; only gradients come out."""

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


def test_callback_within_the_program_of_a_record_is_refused():
    @jax.jit
    def f(weights, x):
        value, pull_back = jax.vjp(network, weights, x)
        jax.debug.callback(lambda *_: None, *jax.tree.leaves(pull_back))
        return value

    with pytest.raises(
        jax.errors.JaxRuntimeError, match=r"`callback` of .*: the record of a forward pass stays on the"
    ):
        f(put(WEIGHTS), put(X))
