"""Profiles of programs that JAX compiled for the IPU."""

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from snnjax._check import check_integer, fail, type_words
from snnjax.ipu.device import PLATFORM, library
from snnjax.ipu.profiles.profile import Profile


def profile(function: Callable[..., Any], *args: PyTree, runs: int = 1, **kwargs: PyTree) -> Profile:
    """Compile a function for the IPU, and report what a run of it would cost once it is warm; its results are dropped.

    It runs once before those that are counted, to bring its arguments to the tiles (`Profile.first_run` has what that
    took). JAX arrays stay there; NumPy arrays and numbers, such as the batches of training, come from the host in
    every run, as they do in a loop. None of the arguments is donated, but copies: where a function donates arguments,
    the next run takes its first results in their place, as in ``state, loss = step(state, batch)``, or else new
    copies, which the host brings. For the steps of a program of your own see `read_profile`.

    Args:
        function: anything that `jax.jit` accepts or returns.
        args: positional arguments of the function.
        runs: how many runs to count.
        kwargs: keyword arguments of the function.

    Raises:
        RuntimeError: if there is no IPU, or the program does not fit.
        ValueError: if `runs` is not positive, or `compiler_options` are not given to `jax.jit`.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from snnjax.ipu import profile
        >>> x = np.arange(8, dtype=np.float32)
        >>> warm, fed = profile(lambda x: 2 * x + 1, jnp.asarray(x)), profile(lambda x: 2 * x + 1, x)
        >>> warm.phases.compute > 0, warm.phases.host, fed.phases.host > 0
        (True, 0, True)
    """
    runs = check_integer("profile", "runs", runs, 1)
    if "compiler_options" in kwargs:
        hint = "Write profile(jax.jit(function, compiler_options=...), ...)"
        fail(
            f"profile: `compiler_options` must be those of jax.jit, got {kwargs['compiler_options']}. {hint}."
        )
    return measured(function, args, kwargs, runs, {})


def measured(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], runs: int, options: Any
) -> Profile:
    """`profile`, of a program compiled with these options."""
    jitted: Any = function if hasattr(function, "lower") else jax.jit(function)
    args, kwargs = jax.tree.map(_on_ipu, (args, kwargs))
    with jax.default_device(jax.devices(PLATFORM)[0]):
        lowered = jitted.lower(*args, **kwargs)
        compiled = lowered.compile(options)
    donated = jax.tree.map(lambda leaf: leaf.donated, lowered.args_info)
    read_profile(compiled, reset=True)  # it may have run before
    given, named = _fresh((args, kwargs), donated)
    results = jax.block_until_ready(compiled(*given, **named))
    first = read_profile(compiled, reset=True)
    for _ in range(runs):
        given, named = _next((args, kwargs), donated, results)
        results = jax.block_until_ready(compiled(*given, **named))
    data = {**read_profile(compiled).data}
    data["first_run"] = {"cycles": first.phases, "host_bytes": first.host_bytes}
    return Profile(json.dumps(data))


def read_profile(compiled: Any, *, reset: bool = False) -> Profile:
    """Report the cost of all runs (`Profile.runs`) of a compiled program since it was compiled or last reset.

    JAX compiles once for arguments of the same shapes and dtypes: after some calls of ``step = jax.jit(...)``,
    ``step.lower(...).compile()`` is the program that has run.

    Args:
        compiled: ``jax.jit(function).lower(...).compile()`` for the IPU.
        reset: restart the count from 0 afterwards.

    Raises:
        ValueError: if it is not a compiled program, or one for another platform.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax.ipu import read_profile
        >>> x = jax.device_put(jnp.arange(8.0), jax.devices("ipu")[0])
        >>> double = jax.jit(lambda x: 2 * x).lower(x).compile()
        >>> double(x).tolist()[:3]
        [0.0, 2.0, 4.0]
        >>> read_profile(double, reset=True).cycles > 0, read_profile(double).cycles
        (True, 0)
    """
    if not hasattr(compiled, "runtime_executable"):
        hint = "Pass jax.jit(function).lower(...).compile()"
        fail(f"read_profile: `compiled` must be a compiled program, got {type_words(compiled)}. {hint}.")
    executable = compiled.runtime_executable()
    platform = executable.local_devices()[0].platform
    if platform != PLATFORM:
        hint = 'Place its arguments on jax.devices("ipu")'
        fail(f"read_profile: `compiled` must be a program for the IPU, got one for {platform}. {hint}.")
    fingerprint = executable.fingerprint
    name = fingerprint.decode() if isinstance(fingerprint, bytes) else fingerprint
    return Profile(library.profile_of(name, reset=reset))


def _on_ipu(leaf: object) -> object:
    """A JAX array on an IPU; anything else comes from the host in every run."""
    if not isinstance(leaf, jax.Array) or all(device.platform == PLATFORM for device in leaf.devices()):
        return leaf
    return jax.device_put(leaf, jax.devices(PLATFORM)[0])


def _fresh(arguments: PyTree, donated: PyTree) -> PyTree:
    """The arguments, with copies of those that are donated."""

    def copied(leaf: object, is_donated: bool) -> object:
        return leaf.copy() if is_donated and isinstance(leaf, jax.Array) else leaf

    return jax.tree.map(copied, arguments, donated)


def _next(arguments: PyTree, donated: PyTree, results: PyTree) -> PyTree:
    """Those of the next run: the first results replace what was donated, in order, if they are like it."""
    positional, named = arguments
    places = [place for place, given in enumerate(donated[0]) if any(jax.tree.leaves(given))]
    first = results[: len(places)] if type(results) is tuple else (results,)
    if not places or not alike(first, tuple(positional[place] for place in places)):
        return _fresh(arguments, donated)
    replaced = list(positional)
    for place, result in zip(places, first, strict=True):
        replaced[place] = result
    return tuple(replaced), named


def alike(a: PyTree, b: PyTree) -> bool:
    """Whether two trees have the same structure, shapes and dtypes."""
    shapes = [jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), each) for each in (a, b)]
    return jax.tree.structure(a) == jax.tree.structure(b) and shapes[0] == shapes[1]
