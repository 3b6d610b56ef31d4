"""Calls whose arguments do not fit the function: an unknown name is answered with the closest known one."""

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, TypeVar

from snnjax._check import alternatives, fail, short_repr

_F = TypeVar("_F", bound=Callable[..., Any])
# Arguments by the names that other libraries have for them: snnTorch, SpikingJelly, Norse, PyTorch, Keras, flax.
_ELSEWHERE = {
    "alpha": "synapse_decay",
    "beta": "decay",
    "eps": "epsilon",
    "filters": "channels",
    "kernel_size": "kernel",
    "lr": "learning_rate",
    "num_epochs": "epochs",
    "out_channels": "channels",
    "out_features": "num_neurons",
    "reset_mechanism": "reset",
    "spike_grad": "surrogate",
    "stride": "strides",
    "surrogate_function": "surrogate",
    "use_bias": "bias",
    "v_reset": "reset",
    "v_th": "threshold",
    "v_threshold": "threshold",
}
# What is no argument of functions that make something with this attribute, and where it is instead.
_INSTEAD = {
    "gradient": ("glif", "Use neurons.current_lif: without a synaptic current, spikes fall on inputs"),
    "name": ("named", "Call .named(...) of what it returns"),
    "source": ("receiving", "Call .receiving(...) of what it returns"),
}
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_ANY_NUMBER = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def explained(function: _F, *, op: str | None = None, missing: str | None = None) -> _F:
    """The function or class, which answers arguments that do not fit in the words of `fail`.

    Args:
        function: what users call; nothing is added to a call that fits.
        op: its name in errors.
        missing: the hint where an argument is missing.
    """
    target: Any = function
    if isinstance(target, type):
        made = "__new__" if issubclass(target, tuple) else "__init__"
        setattr(target, made, explained(getattr(target, made), op=op or target.__name__, missing=missing))
        return function

    @functools.wraps(target)
    def answering(*args: object, **options: object) -> object:
        try:
            return target(*args, **options)
        except TypeError:
            _explain(op or target.__qualname__, inspect.signature(target), args, options, missing)
            raise

    answered: Any = answering
    return answered


def _explain(
    op: str,
    signature: inspect.Signature,
    args: Sequence[Any],
    options: Mapping[str, Any],
    missing: str | None,
) -> None:
    """Fail with what is wrong about the arguments; return if they fit: then the function itself has failed."""
    taken = signature.parameters
    names = [
        name
        for name, each in taken.items()
        if each.kind not in _ANY_NUMBER and name not in ("self", "cls", "_cls")
    ]
    kinds = [each.kind for each in taken.values()]
    unknown = [] if Parameter.VAR_KEYWORD in kinds else [name for name in options if name not in taken]
    if unknown:
        name, actual = unknown[0], short_repr(options[unknown[0]])
        fail(
            f"{op}: `{name}` must be one of its arguments, got {actual}. {_closest(name, names, signature)}."
        )
    given = dict(zip((name for name in taken if taken[name].kind in _BY_POSITION), args, strict=False))
    for name in given:
        if name in options:
            fail(f"{op}: `{name}` must be given once, got it by position and by name. Leave one of them out.")
    if len(given) < len(args) and Parameter.VAR_POSITIONAL not in kinds:
        actual = short_repr(args[len(given)])
        named = [name for name in names if taken[name].kind is Parameter.KEYWORD_ONLY]
        if named:
            hint = "Pass options by name"
            fail(f"{op}: `{named[0]}` must be given by name, got {actual} by position. {hint}.")
        what = f"at most {len(given)}" if given else "none"
        fail(f"{op}: `arguments` must be {what}, got one more, {actual}. Leave it out.")
    needed = [name for name in names if taken[name].default is Parameter.empty]
    for name in needed:
        if name not in given and name not in options:
            each = ", ".join(own if taken[own].kind in _BY_POSITION else f"{own}=..." for own in needed)
            hint = missing or f"Write {op}({each})"
            fail(f"{op}: `{name}` must be given, got none. {hint}.")


def _closest(name: str, names: Sequence[str], signature: inspect.Signature) -> str:
    """A hint at what may be meant, or else at all arguments."""
    attribute, instead = _INSTEAD.get(name, ("", ""))
    if hasattr(signature.return_annotation, attribute):
        return instead
    elsewhere = _ELSEWHERE.get(name)
    known = [elsewhere] if elsewhere in names else difflib.get_close_matches(name, names, 1)
    if known:
        return f"Call it `{known[0]}`"
    return f"Choose {alternatives(names)}" if names else "Leave it out"
