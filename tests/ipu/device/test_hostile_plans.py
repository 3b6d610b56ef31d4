"""Saved programs that somebody changed: refused in words, and none ends the process."""

import re
from collections import Counter

import pytest

from snnjax.ipu.lowering.plan import Instruction, Plan, serialise
from tests.fuzz import plans
from tests.fuzz.plan_mutations import instructions

pytestmark = pytest.mark.usefixtures("model")


@pytest.fixture(scope="module")
def fuzz():
    made = plans.Fuzz(num_networks=1, rounds=1)
    yield made
    made.client.close()


def test_unchanged_plans_are_taken(fuzz):
    counted: Counter[str] = Counter()
    for plan in fuzz.plans:
        fuzz.load(serialise(plan), counted)
    assert counted == {"plans": len(fuzz.plans)}


def test_changed_plans_are_taken_or_refused(fuzz):
    """`make fuzz` tries a hundred thousand of them under the sanitizers."""
    counted: Counter[str] = Counter()
    for seed in range(150):
        fuzz.check(seed, counted)
    assert 0 < counted["refused"] < counted["plans"] == 150


def changed(plan: Plan, own: Instruction, **fields) -> bytes:
    """The plan with other fields of one of its instructions, which is then as it was."""
    before = {name: getattr(own, name) for name in fields}
    try:
        for name, value in fields.items():
            setattr(own, name, value)
        return serialise(plan)
    finally:
        for name, value in before.items():
            setattr(own, name, value)


def test_gathers_drop_no_window_of_nothing(fuzz):
    """Unless the result is empty, too: there would be nothing to fill it with."""
    tried = 0
    for plan in fuzz.plans:
        for own in instructions(plan.main):
            if own.op != "gather":
                continue
            for dropped in own.ints[1]:
                sizes = tuple(0 if d == dropped else size for d, size in enumerate(own.ints[6]))
                with pytest.raises(fuzz.errors.InvalidArgument, match="drop dimensions of one element only"):
                    fuzz.read(changed(plan, own, ints=(*own.ints[:6], sizes, *own.ints[7:])))
                tried += 1
    assert tried > 0


def own_calls(fuzz):
    for plan in fuzz.plans:
        yield from ((plan, each) for each in instructions(plan.main) if each.op == "custom_call")


def test_own_ops_trust_no_number_of_arrays_and_no_shape(fuzz):
    """One array too few or too many, or another in its place, whatever the op."""
    tried = 0
    for plan, own in own_calls(fuzz):
        for field in ("inputs", "outputs"):
            values = getattr(own, field)
            others = [value for value in range(len(plan.types)) if plan.types[value].shape[:1] != (1,)]
            for wrong in (values[:-1], (*values, values[-1]), (others[0], *values[1:])):
                with pytest.raises(
                    fuzz.errors.InvalidArgument, match=r"^(compile|lif_network): `.*` .*must "
                ):
                    fuzz.read(changed(plan, own, **{field: wrong}))
                tried += 1
    assert tried > 50


NUMBERS = ("-1", "99", "99999999999999999999")
# What these may be.
ANY_NUMBER = {"slope": NUMBERS, "capacity": NUMBERS[:2]}
NAMES = frozenset(("reset", "reset_time", "surrogate", "slope", "capacity", "schema"))


@pytest.mark.parametrize("value", ["", "x", *NUMBERS, "1.5e999", "1;2"])
def test_own_ops_trust_no_attribute(fuzz, value):
    """Numbers of enumerations, and lists of them."""
    tried = set()
    for plan, own in own_calls(fuzz):
        for place, text in enumerate(own.texts):
            name = text.partition(":")[0]
            if name not in NAMES or (value in ANY_NUMBER.get(name, ())):
                continue
            texts = (*own.texts[:place], f"{text.partition('=')[0]}={value}", *own.texts[place + 1 :])
            with pytest.raises(fuzz.errors.InvalidArgument, match=r"^compile: `.*` .*must "):
                fuzz.read(changed(plan, own, texts=texts))
            tried.add(name)
    assert tried >= {"surrogate", "reset", "schema"}


def test_a_version_of_no_chip_is_refused(fuzz):
    plan = fuzz.plans[0]
    plan.options.append(("version", "mk9"))
    expected = 'compile: `ipu_version` must be mk1, mk2, bow or c600, got "mk9". Leave it out'
    with pytest.raises(fuzz.errors.InvalidArgument, match=re.escape(expected)):
        fuzz.read(serialise(plan))
    plan.options.pop()


def test_sorts_of_what_has_no_order_on_tiles_are_refused(fuzz):
    (plan,) = (each for each in fuzz.plans if any(own.op == "top_k" for own in instructions(each.main)))
    types = list(plan.types)
    plan.types = [each._replace(dtype="s16") if each.dtype == "f32" else each for each in types]
    with pytest.raises(fuzz.errors.InvalidArgument, match=r"`sort` .* must work on float32, float16, int32"):
        fuzz.read(serialise(plan))
    plan.types = types
