"""The type checker that compares every annotation of snnjax with the values in a running test.

`jaxtyping.install_import_hook("snnjax", "tests.project.type_checker.check")` decorates each function with it. Two
things differ from plain beartype:

- Arguments are checked after the body has run, together with the result, so that the library's own message about
  a wrong argument comes first (tests assert it word for word). What no message caught is caught here.
- Constructors of dataclasses are not checked: JAX rebuilds them around anything (None, axis numbers, float0).

jaxtyping binds the arguments of each call with `inspect`, which goes through all parameters; here a function that is
written for the signature binds them.
"""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import jaxtyping._decorator
from beartype import BeartypeConf, FrozenDict, beartype
from jax import export


class _Bound(NamedTuple):
    """What jaxtyping takes of an `inspect.BoundArguments`."""

    arguments: dict[str, object]  # with the defaults

    def apply_defaults(self) -> None:
        """They are applied already."""


class _Default(NamedTuple):
    """A default as it is written in a signature."""

    name: str

    def __repr__(self) -> str:
        return f"defaults[{self.name!r}]"


class _Signature(inspect.Signature):
    """A signature that binds in the time of a call."""

    def bind(self, /, *args: object, **kwargs: object) -> _Bound:
        return _Bound(self._arguments(*args, **kwargs))

    @functools.cached_property
    def _arguments(self) -> Callable[..., dict[str, object]]:
        """A function with this signature, from arguments to these by their names."""
        defaults = {
            name: each.default for name, each in self.parameters.items() if each.default is not each.empty
        }
        parameters = [
            each.replace(annotation=each.empty, default=_Default(name) if name in defaults else each.empty)
            for name, each in self.parameters.items()
        ]
        written = str(inspect.Signature(parameters)).removeprefix("(").removesuffix(")")
        names = ", ".join(f"{name!r}: {name}" for name in self.parameters)
        return eval(f"lambda {written}: {{{names}}}", {"defaults": defaults})


# As jaxtyping asks for them; it makes all others from these with `replace`.
_names = {**vars(inspect), "signature": _Signature.from_callable}
jaxtyping._decorator.inspect = types.SimpleNamespace(**_names)  # type: ignore[assignment]

# An int is also a length that `jax.export` leaves open.
_lengths = FrozenDict({int: int | type(export.symbolic_shape("a")[0])})
# The numeric tower lets an int stand where a float is annotated, as Python itself does.
_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True, hint_overrides=_lengths))
_checked: dict[tuple[str, str, tuple[Any, ...]], Callable[..., Any]] = {}


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its annotations checked, or unchanged if they must not be."""
    # jaxtyping calls this twice: for the arguments only, recognised by the result Any, and for everything after the
    # call.
    arguments_only = function.__annotations__.get("return") is Any
    constructor = function.__name__ == "__init__"
    if arguments_only or constructor:
        return function
    # What jaxtyping passes has annotations and no body. An inner function is defined at each call of the outer one, and
    # writing its checks again takes about a millisecond.
    key = (function.__module__, function.__qualname__, tuple(function.__annotations__.items()))
    try:
        return _checked[key]
    except KeyError:
        return _checked.setdefault(key, _beartype(function))
    except TypeError:  # an annotation that has no hash
        return _beartype(function)
