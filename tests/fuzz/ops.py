"""The ops on hostile numbers: ids and lengths that name nothing, infinities and NaNs, absurd capacities."""

import functools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

from snnjax import (
    SparseSpikes,
    Synapses,
    delay_spikes,
    delayed_spike_matmul,
    pool_spikes,
    select_spikes,
    spike_conv,
    spike_matmul,
    spike_sparse_matmul,
)
from tests.fuzz import values
from tests.numbers import array
from tests.ops.common import jit, with_gradient
from tests.ops.lif_network.random_networks import LIST_INPUTS, Form, arguments, random_form, runner

ROUNDING = {"rtol": 1e-5, "atol": 1e-5}  # sums of up to 200 numbers of order 1 in another order
ABSURD = 2**31 - 1  # a capacity
ID_DTYPES = ("uint16", "int32", "uint32", "int8")


class Subject(NamedTuple):
    """An op with all but arrays bound."""

    name: str
    function: Callable[..., Any]  # (implementation, *arrays)
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]  # harmless ones
    incomparable: tuple[int, ...] = ()  # arguments whose infinities the reference may meet in another way


def subjects(num_networks: int) -> list[Subject]:
    return [
        *(_network(number) for number in range(num_networks)),
        *_products(),
        *_sparse_products(),
        *_convolutions(),
        *_pools(),
        *_selections(),
        *_delays(),
        *_delayed_products(),
    ]


def _network(number: int) -> Subject:
    rng = np.random.default_rng(number)
    form: Form = random_form(rng)._replace(lengths=True)
    if number % 3 == 0:
        outputs = 2 if form.outputs is None else form.outputs  # no lists of so many slots
        form = form._replace(capacity=ABSURD, record_spikes=False, outputs=outputs)
    # The reference resets to v * 0, which is NaN for an infinite v, and adds up duplicate ids before it multiplies.
    incomparable = (0, 1, 3) if form.reset == "zero" else (1,) if form.given in LIST_INPUTS else ()
    run = lambda implementation, *given: runner(form, implementation)(*given)  # noqa: E731
    return Subject(f"lif_network {form}", run, functools.partial(arguments, form), incomparable)


def _lists(
    dtype: str, neurons: int, slots: int, rng: np.random.Generator, axes: tuple[int, ...] = (3,)
) -> SparseSpikes:
    """Lists of ids, most of which name nothing."""
    ids = values.array(rng, "hostile", (*axes, slots), dtype)
    if dtype != "int8":  # some of which name neurons
        named = rng.integers(0, neurons + 1, ids.shape)
        ids = np.where(rng.random(ids.shape) < 0.5, named, ids).astype(dtype)
    counts = jnp.zeros(axes, jnp.int32)
    ones = array(rng.integers(0, 2, ids.shape), jnp.float32)
    return SparseSpikes(jnp.asarray(ids), ones, counts, counts, 0 * counts, neurons)


def _products() -> list[Subject]:
    def make(dtype: str, neurons: int, slots: int, rng: np.random.Generator) -> tuple[Any, ...]:
        return _lists(dtype, neurons, slots, rng), jnp.asarray(
            values.array(rng, "plain", (neurons, 5), "float32")
        )

    run = lambda implementation, *given: spike_matmul(*given, implementation=implementation)  # noqa: E731
    forms = [(dtype, *size) for dtype in ID_DTYPES for size in ((0, 4), (300, 40), (65535, 9), (70000, 9))]
    return [Subject(f"spike_matmul {form}", run, functools.partial(make, *form)) for form in forms]


def _sparse_products() -> list[Subject]:
    def make(dtype: str, neurons: int, each: int, rng: np.random.Generator) -> tuple[Any, ...]:
        spikes, synapses = _lists(dtype, neurons, 9, rng), _synapses(dtype, neurons, each, rng)
        weights = values.array(rng, "plain", synapses.targets.shape, "float32")
        return spikes, jnp.asarray(weights), synapses

    run = lambda implementation, *given: spike_sparse_matmul(*given, implementation=implementation)  # noqa: E731
    forms = [(dtype, *size) for dtype in ("uint16", "int32") for size in ((0, 4), (300, 3), (40, 30))]
    return [
        Subject(f"spike_sparse_matmul {form}", run, functools.partial(make, *form), (0, 2)) for form in forms
    ]


def _synapses(dtype: str, neurons: int, each: int, rng: np.random.Generator) -> Synapses:
    """Some lead to nobody. Ends ascend: those of the reference are others where they do not."""
    targets = values.array(rng, "hostile", (each * neurons,), dtype)
    targets = np.where(rng.random(targets.shape) < 0.5, rng.integers(0, 6, targets.shape), targets)
    ends = array(each * np.arange(1, neurons + 1), jnp.int32)
    return Synapses(ends, jnp.asarray(targets.astype(dtype)), 5)


def _convolutions() -> list[Subject]:
    def make(dtype: str, shape: tuple[int, ...], kernel: tuple[int, ...], rng: np.random.Generator):
        spikes = _lists(dtype, math.prod(shape), 40, rng)
        return spikes, jnp.asarray(values.array(rng, "plain", kernel, "float32"))

    def run(implementation: str, *given, **options):
        return spike_conv(*given, implementation=implementation, **options)

    # Lists longer than most images: rows are dense and have duplicates.
    return [
        Subject(
            f"spike_conv {dtype} {kernel} {options}",
            functools.partial(run, **options),
            functools.partial(make, dtype, options["shape"], kernel),
            (0,),  # duplicates of both signs add up to 0 before the reference multiplies
        )
        for dtype, kernel, options in (
            ("int32", (3, 3, 2, 9), {"shape": (5, 6, 2)}),
            ("uint16", (2, 3, 3, 5), {"shape": (9, 4, 3), "strides": 2}),
            ("uint32", (3, 1, 2), {"shape": (70000, 1), "strides": 3}),
            ("int8", (2, 2, 1, 4), {"shape": (6, 5, 2), "groups": 2, "dilation": 2}),
            ("int32", (3, 2, 2, 3), {"shape": (4, 5, 2), "input_dilation": 2}),  # a transposed one
        )
    ]


def _pools() -> list[Subject]:
    """Pools have no kernel: lists are compared with dense rows."""

    def make(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, ...]:
        return (_lists(dtype, math.prod(shape), 40, rng),)

    def run(implementation: str, spikes: SparseSpikes, **options) -> jax.Array:
        if implementation == "reference":
            return pool_spikes(spikes.to_dense(), **options)
        pooled = pool_spikes(spikes, **options)
        assert isinstance(pooled, SparseSpikes)
        return pooled.to_dense()

    return [
        Subject(
            f"pool_spikes {dtype} {options}",
            functools.partial(run, **options),
            functools.partial(make, dtype, options["shape"]),
            (0,) if options["how"] == "max" else (),  # a list has no maximum where no pixel is listed
        )
        for dtype, options in (
            ("int32", {"shape": (5, 6, 2), "window": 2, "how": "sum"}),
            ("uint32", {"shape": (70000, 1), "window": 3, "how": "mean"}),
            ("uint16", {"shape": (9, 8, 3), "window": 3, "strides": 2, "how": "mean"}),
            ("int8", {"shape": (6, 7, 2), "window": 3, "strides": 1, "how": "max"}),
        )
    ]


def _selections() -> list[Subject]:
    def make(rng: np.random.Generator, neurons: int) -> tuple[Any, ...]:
        return tuple(
            jnp.asarray(values.array(rng, "plain", shape, "float32"))
            for shape in ((3, neurons), (neurons,), ())
        )

    def run(implementation: str, *given, capacity: int):
        return select_spikes(*given, capacity=capacity, implementation=implementation)

    return [
        Subject(
            f"select_spikes {capacity}",
            functools.partial(run, capacity=capacity),
            functools.partial(make, neurons=neurons),
        )
        for capacity, neurons in ((0, 65), (7, 130), (1000, 20), (5, 0))
    ]


def _delays() -> list[Subject]:
    def make(rng: np.random.Generator, steps: int, neurons: int, max_delay: int) -> tuple[Any, ...]:
        shapes = (steps, 3, neurons), (neurons,), (max_delay + 1, 3, neurons)
        plain = (jnp.asarray(values.array(rng, "plain", shape, "float32")) for shape in shapes)
        return *plain, array(rng.integers(0, steps + 1, 3), jnp.int32)

    def run(implementation: str, *given, max_delay: int):
        return delay_spikes(
            *given[:-1], lengths=given[-1], max_delay=max_delay, implementation=implementation
        )

    return [
        Subject(
            f"delay_spikes {form}",
            functools.partial(run, max_delay=form[-1]),
            functools.partial(make, steps=form[0], neurons=form[1], max_delay=form[2]),
        )
        for form in ((6, 130, 3), (0, 5, 2), (9, 1, 0), (3, 200, 17))
    ]


def _delayed_products() -> list[Subject]:
    """Spikes of lists and of arrays, along all pairs and along synapses, some of which lead to nobody."""

    def make(dtype: str, neurons: int, each: int, rng: np.random.Generator) -> tuple[Any, ...]:
        spikes = _lists(dtype, neurons, 6, rng, (4, 3))
        synapses = _synapses(dtype, neurons, each, rng) if each else None
        shape = (neurons, 5) if synapses is None else synapses.targets.shape
        weights, delays = (jnp.asarray(values.array(rng, "plain", shape, "float32")) for _ in range(2))
        return spikes, weights, delays, *(() if synapses is None else (synapses,))

    def run(implementation: str, *given):
        return delayed_spike_matmul(*given, max_delay=2, implementation=implementation)

    forms = (("int32", 40, 0), ("int8", 300, 0), ("uint16", 300, 3), ("uint32", 40, 20), ("int32", 0, 2))
    # The reference multiplies dense rows, in which duplicates have met, and dense weights.
    return [
        Subject(f"delayed_spike_matmul {form}", run, functools.partial(make, *form), (0, 1, 3))
        for form in forms
    ]


def spoil(rng: np.random.Generator, kind: str, leaf):
    """An array some of whose entries are replaced by those of a kind, or as it is."""
    if rng.random() < 0.5:
        return leaf
    return jnp.where(rng.random(leaf.shape) < 0.3, values.array(rng, kind, leaf.shape, leaf.dtype), leaf)


class Fuzz:
    """Examples are an op, a seed for its arrays, which of its arguments is spoilt, and what with."""

    def __init__(self, num_networks: int, rounds: int) -> None:
        self.rounds = rounds  # of an example, each with other numbers
        self.subjects = {subject.name: subject for subject in subjects(num_networks)}
        self.strategy = st.tuples(
            st.sampled_from(list(self.subjects)),
            st.integers(0, 2**32 - 1),
            st.integers(0, 5),
            st.sampled_from(values.KINDS),
        )

    @functools.cache  # noqa: B019  (there is one of these in a process)
    def _compiled(self, name: str, what: str):
        function = self.subjects[name].function
        if what == "gradient":
            return jit(with_gradient(functools.partial(function, "cpu")))
        return jit(functools.partial(function, what))

    def check(self, example, counted: Counter[str]) -> None:
        """Kernel and reference agree, but where it depends on the order of sums; the gradient comes to an end."""
        name, seed, place, kind = example
        rng = np.random.default_rng(seed)
        for _ in range(self.rounds):
            self._round(self.subjects[name], rng, place, kind, counted)

    def _round(
        self, subject: Subject, rng: np.random.Generator, place: int, kind: str, counted: Counter[str]
    ) -> None:
        name, given = subject.name, list(subject.arguments(rng))
        place %= len(given)
        given[place] = jax.tree.map(functools.partial(spoil, rng, kind), given[place])
        counted["calls of ops"] += 1
        ours = self._compiled(name, "cpu")(*given)
        if kind != "extreme" and place not in subject.incomparable:
            chex.assert_trees_all_close(
                ours, self._compiled(name, "reference")(*given), **ROUNDING, strict=True
            )
            counted["compared"] += 1
        counted["calls of gradients"] += 1
        jax.block_until_ready(self._compiled(name, "gradient")(*given))
