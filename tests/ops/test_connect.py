"""`circuits`: what is drawn, by the kernel and the reference; and what is refused."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import DelayedSynapses, _targets, circuits
from tests.errors.refusals import refusals

KEY = jax.random.key(0)
NORMAL, LATE = circuits.Normal(2.0, 0.5, 0.0), circuits.Normal(1.5, 0.75, 0.05)
PEOPLE = circuits.Populations({"E": 70, "I": 30}, dt=0.1, receptors=2)
WIRING = [
    circuits.Projection("E", "E", weight=NORMAL, delay=LATE, probability=0.3, autapses=False),
    circuits.Projection("E", "I", weight=NORMAL, delay=0.5, number=500),
    circuits.Projection("I", "E", weight=circuits.Uniform(-1, 0), delay=LATE, in_degree=7, receptor=1),
    circuits.Projection("I", "I", weight=-1.0, delay=circuits.Uniform(1, 3), out_degree=11, autapses=False),
    circuits.Projection("I", "I", weight=-9.0, delay=2.0, one_to_one=True, receptor=1),
    circuits.Projection("I", "E", weight=3.0, delay=2.0, number=90, autapses=False),
    circuits.Projection("E", "I", weight=1.0, delay=2.0, probability=1.0, receptor=1),
]


def drawn(wiring: list[circuits.Projection], blocks: int, **options: Any) -> DelayedSynapses:
    return PEOPLE.connect(KEY, wiring, blocks=blocks, **options)


@jax.jit
def ends_of(synapses: DelayedSynapses) -> tuple[jax.Array, jax.Array]:
    return synapses.sources(), synapses.targets()


@pytest.mark.skipif(_targets.missing() is not None, reason="without the compiled kernels")
@pytest.mark.parametrize("blocks, dtype", [(1, "bfloat16"), (3, "float32")])
def test_kernel_draws_as_the_reference(blocks: int, dtype: str) -> None:
    """To the bit, of all rules."""
    found = (drawn(WIRING, blocks, dtype=dtype, implementation=which) for which in ("cpu", "reference"))
    chex.assert_trees_all_equal(*found, strict=True)


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_each_rule_draws_what_it_says(blocks: int) -> None:
    for which, each in enumerate(WIRING):
        synapses = drawn([each], blocks, dtype="float32")
        sources, targets = map(np.asarray, ends_of(synapses))
        own, others = PEOPLE[each.source], PEOPLE[each.target]
        assert np.all((sources >= own.start) & (sources < own.stop)), which
        receptor, targets = np.divmod(targets, 100)
        assert np.all(receptor == each.receptor) and np.all(
            (targets >= others.start) & (targets < others.stop)
        )
        pairs = sources * 100 + targets
        if not each.autapses:
            assert np.all(sources != targets)
        if each.probability is not None or each.out_degree is not None or each.one_to_one:
            assert len(np.unique(pairs)) == len(pairs)
        if each.probability is not None:
            count = 70 * 69 if each.source == each.target else 70 * 30
            expected, spread = (
                count * each.probability,
                (count * each.probability * (1 - each.probability)) ** 0.5,
            )
            assert abs(len(pairs) - expected) <= 5 * spread
        if each.number is not None:
            assert len(pairs) == each.number
        if each.in_degree is not None:
            assert np.all(np.bincount(targets, minlength=100)[others] == each.in_degree)
            assert np.bincount(sources, minlength=100)[own].min() > 0
        if each.out_degree is not None:
            assert np.all(np.bincount(sources, minlength=100)[own] == each.out_degree)
        if each.one_to_one:
            assert np.all(sources - own.start == targets - others.start) and len(pairs) == 30


def test_targets_weights_and_delays_follow_their_distributions() -> None:
    """Of 200,000 synapses: moments within five standard deviations, and no correlation of what is drawn."""
    people, count = circuits.Populations({"all": 500}, dt=0.1), 200_000
    for rule in ({"number": count}, {"in_degree": 400}, {"probability": 0.8}, {"out_degree": 400}):
        each = circuits.Projection("all", "all", weight=NORMAL, delay=LATE, **rule)
        synapses = people.connect(KEY, [each], dtype="float32")
        columns = synapses.sources(), synapses.targets(), synapses.weights(), synapses.delays()
        source, target, weight, delay = (np.asarray(column, float) for column in columns)
        n = len(weight)
        assert abs(n - count) < 5 * (count * 0.2) ** 0.5
        assert abs(weight.mean() - 2.0) < 5 * 0.5 / n**0.5 and abs(weight.std() - 0.5) < 0.005
        # A normal distribution from 0.05 ms on, in steps and one more: its mean is 1.5 + 0.75 * 0.0617 / 0.973 ms.
        assert abs(delay.mean() - 16.476) < 0.1 and delay.min() == 2
        assert abs(target.mean() - 249.5) < 5 * 144.3 / n**0.5
        apart = np.abs(np.corrcoef([source, target, weight, delay]) - np.eye(4))
        assert apart.max() < 5 / n**0.5, (rule, apart)
        cells = np.histogram2d(target, weight, bins=(50, np.quantile(weight, np.linspace(0, 1, 21))))[0]
        assert np.sum((cells - n / 1000) ** 2 / (n / 1000)) < 1000 + 5 * 2000**0.5


def test_populations_are_numbers_in_a_row() -> None:
    assert (PEOPLE["I"], PEOPLE.num_neurons) == (slice(70, 100), 100)
    values = PEOPLE.each({"I": np.arange(30), "E": 5})
    assert (values[69], values[70], values[99]) == (5, 0, 29)
    parts = PEOPLE.split(values[None])
    assert (parts["E"].shape, parts["I"][0, 1]) == ((1, 70), 1)


def one(**changed: Any) -> circuits.Projection:
    return circuits.Projection(
        **({"source": "E", "target": "I", "weight": 1.0, "delay": 1.0, "number": 3} | changed)
    )


def call(*wiring: Any, **changed: Any) -> DelayedSynapses:
    return PEOPLE.connect(**({"key": KEY, "projections": wiring or [one()]} | changed))


REFUSED = {
    "Populations: `sizes` must be a mapping of names, got []. Pass {'E': 80, 'I': 20}.": lambda: (
        circuits.Populations([], dt=0.1)
    ),
    "Populations.each: `values` must have a value for each population, got E. Name E, I.": lambda: (
        PEOPLE.each({"E": 1})
    ),
    "Populations.connect: `projections[0].source` must be a population, got 'X'. Choose one of E, I.": lambda: (
        call(one(source="X"))
    ),
    "Populations.connect: `projections[0]` must be a Projection, got None. "
    "Make it with circuits.Projection.": lambda: call(None),
    "Populations.connect: `projections[0]` must have one rule, got number and in_degree. "
    "Pass one of probability, number, in_degree, out_degree, one_to_one.": lambda: call(one(in_degree=2)),
    "Populations.connect: `projections[0].delay` must be 0 to 65534 steps, got -0.1 ms. "
    "Limit its distribution.": lambda: call(one(delay=-0.1)),
    "Populations.connect: `projections[0].delay` must be 0 to 65534 steps, got -0.04 ms. "
    "Limit its distribution.": lambda: call(one(delay=-0.04)),  # not rounded to 0 first
    "Normal: `std` must be above 0, got 0. Pass a number in place of the distribution.": lambda: call(
        one(weight=circuits.Normal(1.0, 0.0))
    ),
    "Normal: `least` must be below `most`, 2, got 3. Pass the smallest value first.": lambda: call(
        one(weight=circuits.Normal(1.0, 0.5, 3.0, 2.0))
    ),
    "Uniform: `low` must be below `high`, 1, got 2. Pass the smallest value first.": lambda: call(
        one(weight=circuits.Uniform(2.0, 1.0))
    ),
    "Populations.connect: `projections[0].one_to_one` must be True or left out, got False. "
    "Pass another rule.": lambda: call(one(number=None, one_to_one=False)),
    "Populations.connect: `autapses` must be True or False, got 'no'. Choose one of these.": lambda: call(
        one(autapses="no")
    ),
    "Populations.connect: `projections[0].weight` must be a finite number or a distribution, got nan. "
    "Pass circuits.Normal.": lambda: call(one(weight=float("nan"))),
    "Populations.connect: `probability` must be between 0 and 1, got 1.5. "
    "Pass the share of pairs that are connected.": lambda: call(one(number=None, probability=1.5)),
    "Populations.connect: `projections[0].autapses` must be True with in_degree, got False. "
    "Choose another rule.": lambda: call(one(number=None, in_degree=1, autapses=False)),
    "Populations.connect: `projections[0].one_to_one` must be of equal sizes, got 70 and 30. "
    "Use another rule.": lambda: call(one(number=None, one_to_one=True)),
    "Populations.connect: `projections[0].out_degree` must be at most 30, the neurons to choose from, got 31. "
    "Choose fewer.": lambda: call(one(number=None, out_degree=31)),
    "Populations.connect: `number` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: call(
        one(number=-1)
    ),
    "Populations.connect: `receptor` must be below 2, the receptors, got 2. Choose one of them.": lambda: (
        call(one(receptor=2))
    ),
    "Populations.connect: `dtype` must be 'bfloat16' or 'float32', got 'int8'. Choose one of these.": lambda: (
        call(dtype=jnp.int8)
    ),
    "Populations.connect: `key` must be known, got a tracer. Draw outside of jit: the number of synapses is "
    "random.": lambda: jax.jit(lambda key: call(key=key))(KEY),
    "Populations.connect: `blocks` must leave at most 65535 synapses of a neuron to each, got 100000. "
    "Pass more blocks.": lambda: circuits.Populations({"E": 1}, dt=0.1).connect(
        KEY, [one(target="E", number=100_000)]
    ),
    "Populations: `name` must be 'E' or 'I', got 'X'. Choose one of these.": lambda: PEOPLE["X"],
}
test_wrong_argument_says_so = refusals(REFUSED)
