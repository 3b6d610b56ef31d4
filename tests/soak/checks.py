"""Random checks of gradients and values, for any length of time: `python -m tests.soak --checks 100000`.

A check compares all results or all gradients of one op or network for one set of random arrays. A form is compiled once
for many checks. Every miss is written at once, with the command that repeats it. Entries of gradients that float32
cannot hold are not compared, but counted.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import chex
import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from snnjax import _targets, lif_network
from snnjax.surrogates import as_surrogate
from tests.cases import CASES, as_numpy
from tests.graph import random_networks
from tests.learning import random_online
from tests.numbers import assert_close
from tests.ops.common import float_leaves, generic, is_float, jit, stack
from tests.ops.kernel_checks import TOLERANCE as TOLERANCE_OF
from tests.ops.kernel_checks import check_kernel, compiled, everything, is_narrow
from tests.ops.lif_network.random_networks import Form, arguments, random_form
from tests.ops.simulation import random_simulations
from tests.soak import integers

INTEGERS = ("int32", "uint8", "int8", "int16", "uint16")  # which hold all numbers of `CASES`
# Central differences in float64 along one random direction. Their error is about STEP^2 times a third derivative, or
# 1e-16 / STEP times the sum; relative to the sizes of what is added up.
STEP, TOLERANCE = 1e-5, 1e-5
# If a kink (a surrogate's edge) is within the step, differences are not a derivative: a thousandth of the step decides.
FINER, FINER_TOLERANCE = 1e-8, 1e-4
# Where terms cancel, a sum's error is a random number whose size is that of the terms, and a single one may be lucky.
# Gradients are linear in the loss, so its multiples round the same terms in other ways. The factors are exact in
# bfloat16. Root mean squares of as many errors of one size are MORE times one another once in 10^8.
SCALES = tuple(1 + number / 32 for number in range(32))
MORE = 3
# The kernels also round terms that cancel where the reference, JAX's derivative of the forward pass, never has them.
# Such errors are random, too: their mean over the `SCALES` is 0 within so many standard errors (by Student's t with 31
# degrees of freedom, otherwise once in 50,000), where that of a mistake is the same share of all. And they are small:
# at most this share of the largest entry, 2^14 roundings.
STANDARD_ERRORS, NOISE = 5, 2.0**-10
# This multiple of the loss overflows in float64, which ends at 2^1024, where the loss itself does in float32, which
# ends at 2^128: in an entry, or in a sum on the way to it. Twice for the `SCALES`, twice for sums in another order.
TO_THE_END = 2.0 ** (1024 - 128 + 2)


class Checked(NamedTuple):
    """The result of a check: empty or the reason why it failed, and the number of entries that it could not compare."""

    draw: int
    why: str
    beyond: int = 0


def check_values(form: int, draws: range) -> Iterator[Checked]:
    """Each op equals its definition, which is written in NumPy loops, bit for bit, for integers of any dtype."""
    case, dtype = CASES[form % len(CASES)], INTEGERS[form // len(CASES) % len(INTEGERS)]
    function = jit(case.function)
    for draw in draws:
        given = case.arguments(np.random.default_rng((form, draw)))
        given = jax.tree.map(lambda leaf: leaf if is_float(leaf) else leaf.astype(dtype), given)
        expected = case.reference(*as_numpy(given))
        yield Checked(draw, *outcome(assert_close, function(*given), expected, of_largest=case.tolerance))


def check_kernels(form: int, draws: range) -> Iterator[Checked]:
    """The kernels of a random network give the reference's results bit for bit, and its gradients of all arguments.

    Where gradients differ by more than the tolerance, which is relative to the largest entry, sums may have cancelled
    or an unstable state may have amplified rounding. Then `check_as_exact` tells whether that is all.
    """
    drawn = random_form(np.random.default_rng(form))
    for draw in draws:
        seed = form * 1_000_000 + draw
        found = outcome(check_kernel, drawn, seed)
        yield Checked(draw, *(outcome(check_as_exact, drawn, seed) if found[0] else found))


def check_as_exact(form: Form, seed: int) -> int:
    """The same results, and each entry of a gradient has a rounding error at most.

    It is at most `MORE` times the reference's, or random and small (`NOISE`).

    Where the exact value, or a sum on the way to it, is beyond float32, infinity and NaN are as right as any number:
    such entries are counted instead.
    """
    given = arguments(form, np.random.default_rng(seed))
    ours, theirs = (compiled(form, implementation)(*given) for implementation in ("cpu", "reference"))
    chex.assert_trees_all_equal(ours[0], theirs[0], strict=True)
    with jax.enable_x64(True):
        drawn = arguments(form._replace(dtype="float64"), np.random.default_rng(seed))
        in_full = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if is_float(leaf) else leaf, drawn)
        exact = compiled(form._replace(dtype="float64"), "reference")(*in_full)[1]
        most = largest_of(given)
        at_the_end = scaled_gradients(form._replace(dtype="float64"), "reference")(
            jnp.float64(TO_THE_END), *in_full
        )
    errors, theirs = (errors_of(form, each, given, exact) for each in ("cpu", "reference"))
    beyond = 0
    for place, gradient in exact.items():
        inside = np.isfinite(at_the_end[place]) & (abs(np.asarray(gradient)) < most[place] / MORE)
        beyond += int(np.count_nonzero(~inside))
        largest = np.max(abs(np.asarray(gradient)), initial=1, where=inside)
        floor = TOLERANCE_OF["bfloat16" if is_narrow(form) else "float32"] * largest
        error, allowed = root_mean_square(errors[place]), root_mean_square(theirs[place])
        # Of numbers that are not finite inside, none is right: no comparison holds for a NaN.
        good = (error <= MORE * allowed + floor) & (allowed < np.inf)
        good |= is_random(errors[place]) & (error <= NOISE * largest)
        wrong = np.flatnonzero(inside & ~good)
        assert not wrong.size, (
            f"argument {place}: off by {error.flat[wrong[0]]}, the reference by {allowed.flat[wrong[0]]}"
        )
    return beyond


def largest_of(given: tuple[Any, ...]) -> list[float]:
    """The largest number of the dtype of each argument: float16 ends at 65504."""
    return [float(jnp.finfo(leaf.dtype).max) if is_float(leaf) else 0.0 for leaf in jax.tree.leaves(given)]


def errors_of(
    form: Form, implementation: str, given: tuple[Any, ...], exact: dict[int, Any]
) -> dict[int, np.ndarray]:
    """The errors of each gradient, by argument, for each of the `SCALES`."""
    run = scaled_gradients(form, implementation)
    samples = [(scale, run(jnp.float32(scale), *given)) for scale in SCALES]

    def errors(place: int) -> np.ndarray:
        true = np.asarray(exact[place])
        return np.stack([np.asarray(each[place], np.float64) / scale - true for scale, each in samples])

    return {place: errors(place) for place in exact}


def root_mean_square(errors: np.ndarray) -> np.ndarray:
    """That of each entry over the `SCALES`."""
    return np.sqrt(np.mean(np.square(errors), axis=0))


def is_random(errors: np.ndarray) -> np.ndarray:
    """Whether each entry's errors have a mean of 0, as far as so few can tell."""
    with np.errstate(invalid="ignore"):  # of infinite ones nothing can be told
        spread = np.std(errors, axis=0, ddof=1) / np.sqrt(len(errors))
        return abs(np.mean(errors, axis=0)) <= STANDARD_ERRORS * spread


@functools.cache
def scaled_gradients(form: Form, implementation: str):
    """The gradients of a multiple of the loss, compiled: a function of the factor and the arguments."""

    def of(scale: jax.Array, *given):
        times = lambda leaf: scale.astype(leaf.dtype) * leaf if is_float(leaf) else leaf  # noqa: E731
        return everything(form, implementation, lambda results: jax.tree.map(times, results))(*given)[1]

    return jit(of)


def check_differences(form: int, draws: range) -> Iterator[Checked]:
    """The gradient of a small random network with smooth spikes equals central differences, in float64."""
    with jax.enable_x64(True):
        drawn = small(random_form(np.random.default_rng(form)))
        both = jit(jax.vmap(functools.partial(derivatives, drawn)))
        given = [generic(arguments(drawn, np.random.default_rng((form, draw))), draw) for draw in draws]
        ours, coarse, fine, size = (
            np.asarray(each) for each in both(stack(given), jnp.arange(draws.start, draws.stop))
        )
    for draw, error, finer, scale in zip(draws, abs(ours - coarse), abs(ours - fine), size, strict=True):
        good = error <= TOLERANCE * scale or finer <= FINER_TOLERANCE * scale
        yield Checked(draw, "" if good else f"differs by {error} and {finer} of {scale}")


def check_networks(form: int, draws: range) -> Iterator[Checked]:
    """Every path of a network in low precision equals single steps in float64, in values and gradients."""
    drawn = random_networks.random_form(np.random.default_rng(form))
    for draw in draws:
        yield Checked(draw, *outcome(random_networks.check_paths, drawn, form * 1_000_000 + draw))


def check_integers(form: int, draws: range) -> Iterator[Checked]:
    """Ids, targets, delays, labels and lengths of small dtypes give the results of int32."""
    drawn = integers.random_form(np.random.default_rng(form))
    for draw in draws:
        yield Checked(draw, *outcome(integers.check, drawn, form * 1_000_000 + draw))


def check_int8(form: int, draws: range) -> Iterator[Checked]:
    """Every path of a network with weights of 8 bits equals single steps in float64."""
    drawn = random_networks.random_form(np.random.default_rng(form))
    for draw in draws:
        yield Checked(draw, *outcome(random_networks.check_int8, drawn, form * 1_000_000 + draw))


def check_online(form: int, draws: range) -> Iterator[Checked]:
    """An online rule, and a batch of padded sequences, equal back-propagation where they do in theory."""
    drawn = random_online.random_form(np.random.default_rng(form))
    for draw in draws:
        yield Checked(draw, *outcome(random_online.check_online, drawn, form * 1_000_000 + draw))


def check_simulations(form: int, draws: range) -> Iterator[Checked]:
    """A simulation is that of a program in float64, in every membrane and spike, and what is left."""
    drawn = random_simulations.random_form(np.random.default_rng(form))
    for draw in draws:
        yield Checked(draw, *outcome(random_simulations.check_simulation, drawn, form * 1_000_000 + draw))


KINDS: dict[str, Callable[[int, range], Iterator[Checked]]] = {
    "values": check_values,
    "kernels": check_kernels,
    "differences": check_differences,
    "networks": check_networks,
    "integers": check_integers,
    "int8": check_int8,
    "online": check_online,
    "simulations": check_simulations,
}


def outcome(check: Callable[..., int | None], *given, **options) -> tuple[str, int]:
    """Why a check fails, in one line, empty if it does not; and what it counted."""
    try:
        return "", check(*given, **options) or 0
    except Exception as error:  # of any kind: an error is a miss, too
        return " ".join(str(error).split())[:200] or "differs", 0


def small(form: Form) -> Form:
    """The switches of a form at sizes at which differences stay exact: few steps, few neurons, none capped."""
    least = lambda number, most: min(max(number, 1), most)  # noqa: E731
    return form._replace(
        steps=least(form.steps, 6),
        batch=least(form.batch, 2),
        inputs=least(form.inputs, 5 if form.currents else 7),  # currents are those of the first layer
        widths=tuple(least(width, 5) for width in form.widths),
        outputs=None if form.outputs is None else least(form.outputs, 3),
        slots=least(form.slots, 8),
        capacity=None,
        cutoff=0.0,
        dtype="float64",
    )


def smooth(form: Form, floats: list[jax.Array], rest: list[Any], tree) -> jax.Array:
    """A loss that sees every result of the network run with smooth spikes, from the float leaves of its arguments."""
    left, right = iter(floats), iter(rest)
    leaves = [next(left) if is_float_leaf else next(right) for is_float_leaf in tree[1]]
    inputs, layers, readout, state, lengths, _ = jax.tree.unflatten(tree[0], leaves)
    out, last = lif_network(
        inputs,
        layers,
        readout,
        state,
        lengths=lengths,
        second_threshold=-np.inf,
        surrogate=dataclasses.replace(as_surrogate("lif_network", form.surrogate), smooth=True),
        reset=form.reset,
        detach_reset=False,
        implementation="reference",
    )
    seen = float_leaves((out.output, out.activity, tuple(last)))
    return sum(
        (jnp.sum(jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape) * leaf) for leaf in seen), jnp.zeros(())
    )


def derivatives(form: Form, given: tuple[Any, ...], seed: jax.Array) -> tuple[jax.Array, ...]:
    """Along a random direction: by the gradient, by coarse and by fine differences; and the size of the terms."""
    leaves, structure = jax.tree.flatten(given)
    kinds = [is_float(leaf) for leaf in leaves]
    floats = [leaf for leaf, kind in zip(leaves, kinds, strict=True) if kind]
    rest = [leaf for leaf, kind in zip(leaves, kinds, strict=True) if not kind]
    of = lambda floats: smooth(form, floats, rest, (structure, kinds))  # noqa: E731
    keys = jax.random.split(jax.random.key(seed), len(floats))
    direction = [
        jax.random.normal(key, leaf.shape, leaf.dtype) for key, leaf in zip(keys, floats, strict=True)
    ]
    value, gradient = jax.value_and_grad(of)(floats)
    terms = [jnp.sum(g * d) for g, d in zip(gradient, direction, strict=True)]

    moved = lambda step: of([f + step * d for f, d in zip(floats, direction, strict=True)])  # noqa: E731
    ahead, behind, finely_ahead, finely_behind = jax.vmap(moved)(jnp.array([STEP, -STEP, FINER, -FINER]))
    differences = (ahead - behind) / (2 * STEP), (finely_ahead - finely_behind) / (2 * FINER)
    sizes = [jnp.sum(abs(g * d)) for g, d in zip(gradient, direction, strict=True)]
    return sum(terms, jnp.zeros(())), *differences, sum(sizes, 1 + abs(value))


def check_form(kind: str, form: int, draws: range) -> tuple[int, int, int]:
    """The numbers of checks of a form, of those that failed, which are written, and of entries not compared."""
    checks, misses, beyond = 0, 0, 0
    for each in KINDS[kind](form, draws):
        checks, beyond = checks + 1, beyond + each.beyond
        if each.why:
            misses += 1
            command = f"python -m tests.soak --kinds {kind} --only {form} {each.draw}"
            sys.stdout.write(f"{command}: {each.why}\n")
            sys.stdout.flush()
    jax.clear_caches()
    return checks, misses, beyond


def run(kind: str, forms: range, draws: range, workers: int) -> tuple[int, int, int]:
    """All checks of a kind, divided over processes by form: the sums of what `check_form` counts."""
    counts = 0, 0, 0
    # Compiled programs stay in a process until it ends, so each process only runs a few forms.
    shares = [forms[start : start + 20 * workers] for start in range(0, len(forms), 20 * workers)]
    with tqdm(desc=kind, total=len(forms)) as progress:
        for share in shares:
            with concurrent.futures.ProcessPoolExecutor(
                workers, multiprocessing.get_context("spawn")
            ) as pool:
                jobs = [pool.submit(check_form, kind, form, draws) for form in share]
                for job in concurrent.futures.as_completed(jobs):
                    checks, misses, beyond = map(sum, zip(counts, job.result(), strict=True))
                    counts = checks, misses, beyond
                    progress.update()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--checks", type=int, default=100_000, help="in all, about")
    parser.add_argument("--draws", type=int, default=500, help="checks of each form")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--first-form", type=int, default=0, help="another number gives other checks")
    parser.add_argument("--only", nargs=2, type=int, metavar=("FORM", "DRAW"), help="repeat one check")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    sentence = _targets.missing()
    if sentence is not None:
        parser.error(sentence)
    number = -(-given.checks // (given.draws * max(len(given.kinds), 1)))
    forms, draws = range(given.first_form, given.first_form + number), range(given.draws)
    if given.only is not None:
        forms, draws = (range(start, start + 1) for start in given.only)
    sys.stdout.write("| property | forms | checks | misses | entries beyond float32 | seconds |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- | --- |\n")
    missed = 0
    for kind in given.kinds:
        started = time.monotonic()
        checks, misses, beyond = run(kind, forms, draws, given.workers)
        missed += misses
        seconds = time.monotonic() - started
        counts = f"{len(forms)} | {checks:,} | {misses:,} | {beyond:,}"
        sys.stdout.write(f"| {kind} | {counts} | {seconds:.0f} |\n")
    sys.exit(bool(missed))
