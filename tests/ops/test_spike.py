"""`spike`: a step, with the surrogate as its derivative."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import spike, surrogates
from snnjax.surrogates import Surrogate

X = jnp.array([-jnp.inf, -0.5, 0.0, 0.25, jnp.inf, jnp.nan])


def test_spike_is_a_step() -> None:
    assert spike(X).tolist() == [0, 0, 0, 1, 1, 0]
    assert spike(X, inclusive=True).tolist() == [0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("name", ["superspike", "arctan", "triangle", "gaussian", "sigmoid", "boxcar"])
def test_gradient_is_the_surrogate_times_the_cotangent(name: str, inclusive: bool) -> None:
    surrogate = getattr(surrogates, name)(3.0)
    _, pull_back = jax.vjp(lambda x: spike(x, surrogate, inclusive=inclusive), X[:5])
    cotangent = jnp.arange(1.0, 6.0)
    np.testing.assert_array_equal(pull_back(cotangent)[0], cotangent * surrogate.derivative(X[:5]))


def test_surrogate_by_name_has_its_default_slope() -> None:
    """Superspike with slope 10: 1 / (1 + 10 * 0.1)^2."""
    np.testing.assert_allclose(jax.grad(spike)(0.1), 0.25, rtol=1e-6)
    assert jax.grad(lambda x: spike(x, "straight_through"))(-3.0) == 1.0


def test_smooth_surrogate_returns_its_relaxed_form() -> None:
    smooth = Surrogate("superspike", 1.0, smooth=True)
    assert spike(jnp.array([-1.0, 0.0, 1.0]), smooth).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 2, 3)])
def test_any_shape_is_kept(shape: tuple[int, ...]) -> None:
    assert spike(jnp.ones(shape)).shape == shape
    assert jax.grad(lambda x: jnp.sum(spike(x)))(jnp.ones(shape)).shape == shape


def test_a_switch_that_is_no_switch_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        spike(X, inclusive="no")  # type: ignore[arg-type]
    assert str(error.value) == "spike: `inclusive` must be True or False, got 'no'. Choose one of these."
