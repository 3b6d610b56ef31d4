"""Surrogates: their formulas by hand, each the derivative of its relaxed form, finite everywhere."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import surrogates
from snnjax.surrogates import Surrogate, as_surrogate

NAMES = ("superspike", "arctan", "triangle", "gaussian", "sigmoid", "boxcar", "straight_through")
each_name = pytest.mark.parametrize("name", NAMES)

# name, slope, x, derivative, relaxed
BY_HAND = [
    ("superspike", 10.0, 0.0, 1.0, 0.5),
    ("superspike", 1.0, -1.0, 0.25, 0.0),
    ("superspike", 2.0, 0.5, 0.25, 0.75),
    ("arctan", 2.0, 1 / np.pi, 0.5, 0.75),
    ("triangle", 1.0, 0.5, 0.5, 0.875),
    ("triangle", 2.0, -0.75, 0.0, 0.25),
    ("gaussian", 2.0, 0.5, np.exp(-1.0), 0.5 + 0.8427008 * np.sqrt(np.pi) / 4),
    ("sigmoid", 4.0, 0.0, 1.0, 0.5),
    ("sigmoid", 1.0, np.log(3.0), 3 / 16, 0.75),
    ("boxcar", 2.0, 0.2, 2.0, 0.9),
    ("boxcar", 2.0, 0.3, 0.0, 1.0),
    ("straight_through", 1.0, -7.0, 1.0, -7.0),
]


@pytest.mark.parametrize("name, slope, x, derivative, relaxed", BY_HAND)
def test_value_by_hand(name: str, slope: float, x: float, derivative: float, relaxed: float) -> None:
    surrogate = Surrogate(name, slope)
    # A few ulp of float32.
    np.testing.assert_allclose(surrogate.derivative(jnp.float32(x)), derivative, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(surrogate.relaxed(jnp.float32(x)), relaxed, rtol=1e-6, atol=1e-6)


@each_name
@pytest.mark.parametrize("slope", [0.3, 1.0, 25.0])
def test_derivative_is_that_of_the_relaxed_form(name: str, slope: float) -> None:
    """Central differences at many points, except next to a kink of the relaxed form."""
    surrogate, step = Surrogate(name, slope), 1e-6
    x = np.random.default_rng(0).uniform(-3, 3, 400)
    kink = {"boxcar": 0.5 / slope, "triangle": 1 / slope}.get(name, 10.0)
    x = x[np.abs(np.abs(x) - kink) > 10 * step]
    with jax.enable_x64(True):
        low, high = np.asarray(surrogate.relaxed(jnp.stack([x - step, x + step])))
        derivative = np.asarray(surrogate.derivative(jnp.asarray(x)))
    # The second derivative jumps by at most 2 slope = 50 (superspike and triangle in 0), times step, and 1e-16 / step.
    np.testing.assert_allclose((high - low) / (2 * step), derivative, atol=1e-4)
    assert np.ptp(derivative) > 0 or name == "straight_through"


@each_name
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16], ids=lambda d: jnp.dtype(d).name)
def test_derivative_keeps_shape_and_dtype_and_is_finite(name: str, dtype: DTypeLike) -> None:
    x = jnp.array([[-jnp.inf, -1e4, -0.1], [0.0, 0.1, jnp.inf]], dtype)
    derivative = as_surrogate("test", name).derivative(x)
    assert (derivative.shape, derivative.dtype) == (x.shape, dtype)
    chex.assert_tree_all_finite(derivative)
    assert (derivative >= 0).all()
    assert as_surrogate("test", name).relaxed(x).dtype == dtype
    far = derivative[:, 0] if name == "straight_through" else 1 - derivative[0, :1]
    assert (far == 1).all()


@each_name
def test_derivative_is_even_and_largest_at_the_threshold(name: str) -> None:
    x = jnp.linspace(0.0, 2.0, 21)
    surrogate = as_surrogate("test", name)
    right, left = surrogate.derivative(x), surrogate.derivative(-x)
    np.testing.assert_array_equal(right, left)
    assert (jnp.diff(right) <= 0).all()


@each_name
@pytest.mark.parametrize("slope", [0.5, 4.0])
@pytest.mark.parametrize("cutoff", [0.01, 0.5])
def test_cutoff_ends_the_derivative_where_it_is_that_share_of_its_peak(
    name: str, slope: float, cutoff: float
) -> None:
    whole, cut = Surrogate(name, slope), Surrogate(name, slope, cutoff=cutoff)
    x = jnp.linspace(-20.0, 20.0, 4001)
    peak = whole.derivative(jnp.float32(0.0))
    tail = whole.derivative(x) < cutoff * peak
    inside = np.abs(np.abs(x) - cut.reach) > 0.01  # a step of x off the end, which rounding may move
    expected = jnp.where(tail, 0, whole.derivative(x))
    np.testing.assert_array_equal(cut.derivative(x)[inside], expected[inside])
    assert jnp.max(jnp.abs(whole.derivative(x) - cut.derivative(x))) <= cutoff * peak
    # The relaxed form is that of the cut derivative: flat beyond the end, and unchanged up to it.
    ends = jnp.clip(x, -cut.reach, cut.reach)
    np.testing.assert_array_equal(cut.relaxed(x), whole.relaxed(ends))


def test_without_cutoff_the_derivative_has_no_end() -> None:
    assert surrogates.superspike().reach == np.inf
    assert surrogates.superspike(10.0, cutoff=0.25).reach == pytest.approx(0.1)


@pytest.mark.parametrize("cutoff", [-0.1, 1.0, float("nan"), "small"])
def test_cutoff_that_is_no_share_is_refused(cutoff) -> None:
    with pytest.raises(
        ValueError, match=r"^superspike: `cutoff` must be a number in \[0, 1\), got .*\. Try cutoff=0.01\.$"
    ):
        Surrogate("superspike", 1.0, cutoff=cutoff)


def test_slope_and_smoothness_that_are_none_are_refused() -> None:
    """An infinite slope is not a number at the threshold, and any word would count as True."""
    for slope in (0.0, -1.0, float("inf"), float("nan"), "steep"):
        with pytest.raises(
            ValueError, match=r"^arctan: `slope` must be a positive number, got .*\. Try slope"
        ):
            surrogates.arctan(slope)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^arctan: `smooth` must be True or False, got 'no'\. Choose one"):
        Surrogate("arctan", 1.0, smooth="no")  # type: ignore[arg-type]


def test_fire_is_a_step_and_relaxed_where_smooth() -> None:
    x = jnp.array([-1.0, 0.0, 1.0, jnp.nan])
    assert Surrogate("superspike", 1.0).fire(x).tolist() == [0.0, 0.0, 1.0, 0.0]
    assert Surrogate("superspike", 1.0).fire(x, inclusive=True).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert Surrogate("superspike", 1.0, smooth=True).fire(x)[:3].tolist() == [0.0, 0.5, 1.0]


@each_name
def test_name_and_factory_and_surrogate_are_the_same(name: str) -> None:
    surrogate = getattr(surrogates, name)()
    assert as_surrogate("test", name) == surrogate
    assert as_surrogate("test", surrogate) is surrogate
    assert surrogate.name == name
    assert hash(surrogate) == hash(getattr(surrogates, name)())


def test_slope_sets_the_steepness() -> None:
    assert surrogates.superspike(3.0).slope == 3.0
    assert surrogates.superspike(3.0) != surrogates.superspike(4.0)
    widths = [surrogates.triangle(slope).derivative(jnp.float32(0.1)) for slope in (1.0, 5.0)]
    np.testing.assert_allclose(widths, [0.9, 0.5], rtol=1e-6)


def test_infinitely_far_below_the_threshold_no_spike_is_left() -> None:
    for name in NAMES:
        smooth = dataclasses.replace(as_surrogate("test", name), smooth=True)
        assert smooth.fire(jnp.array([-jnp.inf, 0.0])).tolist()[0] == 0


def test_kernels_know_the_built_in_ones_alone() -> None:
    class Own(Surrogate):
        pass

    assert surrogates.boxcar().obstacle is None
    assert dataclasses.replace(surrogates.boxcar(), smooth=True).obstacle == "a smooth surrogate"
    assert Own("boxcar", 1.0).obstacle == "a surrogate with a custom derivative"


def test_spikes_of_ones_own_are_refused() -> None:
    with pytest.raises(ValueError) as error:

        class Late(Surrogate):
            def fire(self, x, inclusive: bool = False):
                return (x > 1).astype(x.dtype)

    assert str(error.value) == (
        "surrogates.Surrogate: `fire` must not be overridden, got one of Late. Define `derivative`, and "
        "`relaxed` for smooth spikes."
    )


def bump(x):
    return jnp.exp(-jnp.square(x))


def sloped_bump(x):
    return 0.5 * jnp.sqrt(jnp.pi).astype(x.dtype) * jax.scipy.special.erf(x)


def test_custom_surrogate_is_the_derivative_of_its_relaxed_form() -> None:
    own = surrogates.custom(bump, sloped_bump, name="bump")
    assert own == surrogates.custom(bump, sloped_bump, name="bump")
    assert own.obstacle == "a surrogate with a custom derivative"
    x = jnp.linspace(-2.0, 2.0, 9)
    gradients = jax.grad(lambda x: dataclasses.replace(own, smooth=True).fire(x).sum())(x)
    np.testing.assert_allclose(gradients, own.derivative(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        ((3,), "`derivative` must be a function, got 3."),
        ((jnp.sum,), "`derivative` must return float32[2, 3] for float32[2, 3], got ShapeDtypeStruct"),
        (
            (bump, lambda x: 2 * sloped_bump(x)),
            "`antiderivative` must grow by the integral of `derivative`, got",
        ),
        (
            (bump, lambda x: -sloped_bump(x)),
            "`antiderivative` must grow by the integral of `derivative`, got",
        ),
    ],
)
def test_custom_surrogate_that_cannot_be_is_refused(functions, expected: str) -> None:
    with pytest.raises(ValueError, match=r"^surrogates\.custom: ") as error:
        surrogates.custom(*functions)
    assert expected in str(error.value)


@pytest.mark.parametrize(("argument", "value", "usual"), [("slope", 2.0, 1), ("cutoff", 0.1, 0)])
def test_custom_surrogate_has_its_slope_and_end_in_its_functions(
    argument: str, value: float, usual: int
) -> None:
    with pytest.raises(ValueError) as error:
        dataclasses.replace(surrogates.custom(jnp.ones_like), **{argument: value})  # type: ignore[arg-type]
    assert str(error.value) == (
        f"surrogates.custom: `{argument}` must be left at {usual}, got {value}. Write it into the functions."
    )
    assert dataclasses.replace(surrogates.custom(jnp.ones_like), smooth=True).smooth


def test_custom_surrogate_without_antiderivative_has_no_smooth_spikes() -> None:
    smooth = dataclasses.replace(surrogates.custom(bump), smooth=True)
    with pytest.raises(
        ValueError, match="custom: `antiderivative` must be given for smooth spikes, got None"
    ):
        smooth.fire(jnp.zeros(2))
