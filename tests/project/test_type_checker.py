"""The conditions that `conftest.py` sets are in force: annotations are checked, promotion raises."""

import importlib
import inspect

import jax
import jax.numpy as jnp
import jaxtyping._decorator
import pytest

import snnjax

MODULE = """
from dataclasses import dataclass
from jaxtyping import Array, Float

def double(x: Float[Array, "time neurons"], transpose: bool = False) -> Float[Array, "time neurons"]:
    if x.shape[0] == 0:
        raise ValueError("double: `x` must have a time step, got none. Pass one.")
    return 2 * (x.T if transpose else x)

def scale(factor: float) -> float:
    return 2.0 * factor

@dataclass(frozen=True)
class Leaf:
    values: Float[Array, "neurons"]

    def doubled(self) -> Float[Array, "neurons"]:
        return 2 * self.values
"""


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typed")
    (folder / "typed_module.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with jaxtyping.install_import_hook("typed_module", "tests.project.type_checker.check"):
            yield importlib.import_module("typed_module")


def test_right_values_pass(typed):
    assert typed.double(jnp.ones((2, 3))).shape == (2, 3)
    assert jax.jit(jax.vmap(typed.double))(jnp.ones((4, 2, 3))).shape == (4, 2, 3)
    assert typed.scale(2) == 4.0  # an int may stand for a float
    assert typed.Leaf(jnp.ones(3)).doubled().shape == (3,)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda typed: typed.double(jnp.ones(3)),
        lambda typed: typed.double(jnp.ones((2, 3), jnp.int32)),
        lambda typed: typed.double(jnp.ones((2, 3)), transpose=True),
        lambda typed: typed.Leaf(jnp.ones((2, 3))).doubled(),
    ],
    ids=["rank", "dtype", "result", "method"],
)
def test_wrong_values_raise(typed, wrong):
    with pytest.raises(jaxtyping.TypeCheckError):
        wrong(typed)


def test_own_message_comes_first(typed):
    with pytest.raises(ValueError, match="must have a time step, got none"):
        typed.double(jnp.zeros((0, 3), jnp.int32))


def test_dataclass_holds_anything_when_jax_rebuilds_it(typed):
    assert typed.Leaf(None).values is None


FUNCTIONS = [
    lambda: None,
    lambda a, b=2: None,
    lambda a, /, b=(), *c, d, e=None, **f: None,
    lambda *, self=1, args=2: None,
]
CALLS = [
    ((), {}),
    ((1,), {}),
    ((1, 2), {}),
    ((1, 2, 3), {"d": 4}),
    ((1,), {"b": 2, "d": 3, "z": 4}),
    ((), {"args": 3, "self": 4}),
    ((1,), {"a": 2}),
]


@pytest.mark.parametrize("args, kwargs", CALLS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=inspect.signature)
def test_arguments_are_bound_as_inspect_binds_them(function, args, kwargs):
    signature = jaxtyping._decorator.inspect.signature(function)
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        with pytest.raises(TypeError):
            signature.bind(*args, **kwargs)
        return
    bound.apply_defaults()
    assert signature.replace(return_annotation=int).bind(*args, **kwargs).arguments == bound.arguments


def test_snnjax_is_checked():
    with pytest.raises(jaxtyping.TypeCheckError):
        snnjax.surrogates.Surrogate("straight_through", 1.0).derivative(jnp.arange(3))


@pytest.mark.parametrize(
    "left, right",
    [
        (jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.float32)),
        (jnp.zeros(2), jnp.zeros((3, 2))),
    ],
    ids=["dtype", "rank"],
)
def test_promotion_raises(left, right):
    with pytest.raises(ValueError, match=r"jax_numpy_(dtype|rank)_promotion"):
        left + right
