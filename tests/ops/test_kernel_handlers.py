"""The handlers called directly: an array that does not fit is refused, before anything is written."""

import functools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import _targets, select_spikes
from snnjax._neuron_table import RESETS, SURROGATES
from snnjax._schema import PRODUCTS, TABLES
from snnjax._targets import TARGETS
from tests.fuzz import values
from tests.fuzz.calls import Array, Call, calls_of
from tests.fuzz.handlers import OF_RANDOM_VALUES, integer_layers, pools_and_norms, simulations, single_ops
from tests.ops.common import with_gradient
from tests.ops.kernel_checks import needs_kernels
from tests.ops.lif_network.random_networks import Form, arguments, runner

pytestmark = needs_kernels

NETWORKS = (
    Form(3, 2, 5, (6,), 3, recurrent=True, capacity=2, recurrent_delay=2),
    Form(2, 3, 7, (5,), None, given="uint16 lists", slots=4),
    Form(2, 3, 7, (5, 16), None, recurrent=True, connected=0.5),
    Form(2, 3, 7, (5,), None, recurrent=True, connected=0.5, recurrent_delay=2, synaptic=True),
)
# Lists do not say how many neurons there are, the weights do: (target, array, axis).
FREE_OF_LISTS = {
    ("snnjax_lif_network", "linears.weights[0]", 1),
    *(
        (f"snnjax_{op}{which}", f"{result}{name}", 1 + own.axes.index("neurons"))
        for op, arrays in PRODUCTS.items()
        for name, own in arrays.items()
        for which, result in (
            ("", ""),
            ("_spikes_backward", ""),
            ("_weights_backward", ""),
            ("_weights_backward", "g_"),
        )
        if "neurons" in own.axes
    ),
    *(
        (f"snnjax_delayed_spike_matmul{which}", "ends", 1)
        for which in ("", "_spikes_backward", "_weights_backward")
    ),
}
FREE = {
    # Nor do synapses say to how many they may lead, or how long the longest delay is.
    ("snnjax_spike_sparse_matmul", "out", 2),
    ("snnjax_spike_sparse_matmul_spikes_backward", "g", 2),
    ("snnjax_spike_sparse_matmul_weights_backward", "g", 2),
    ("snnjax_delayed_spike_matmul", "received.left", 1),
    ("snnjax_delayed_spike_matmul_spikes_backward", "g.left", 1),
    ("snnjax_delayed_spike_matmul_weights_backward", "g.left", 1),
    # How many rows there are, if all count.
    *(("snnjax_moments", "x", axis) for axis in (1, 2)),
    # How many levels a table has, how many slots a list, and how many blocks, segments and words synapses have, no
    # other array says.
    ("snnjax_simulate", "ends", 1),
    ("snnjax_simulate", "segments", 1),
    ("snnjax_simulate", "words", 1),
    ("snnjax_simulate", "poisson_limits", 1),
    ("snnjax_simulate", "ids", 2),
    # Projections say where they are in tables, which may be longer.
    *(("snnjax_connect", name, 1) for name in ("projections", "firsts", "quantiles", "late")),
}


CALLS_OF_PROGRAM = 32


@functools.cache
def valid_calls() -> dict[str, list[Call]]:
    """Calls of every handler, as the ops make them, by target: of networks, and the largest of single ops."""
    found: dict[str, list[Call]] = {target: [] for target in TARGETS}
    for form in NETWORKS:
        given = arguments(form, np.random.default_rng(0))
        for call in calls_of(with_gradient(runner(form, "cpu")), *given):
            found[call.target].append(call)
    largest: dict[tuple[str, str], Call] = {}
    for function, given in (*single_ops(17, 65), *pools_and_norms(17, 65)):
        for call in calls_of(with_gradient(function), *given):
            form = call.target, form_of(call)
            largest[form] = max(call, largest.get(form, call), key=_size)
    for (target, _), call in largest.items():
        found[target].append(call)
    for function, given in (*integer_layers(17, 65), *simulations(33)):
        for call in calls_of(function, *given):
            found[call.target].append(call)
    return found


def _size(call: Call) -> int:
    return sum(math.prod(shape) for shape, _ in call.operands)


def misshapen(kind: str, shape: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Shapes with one mistake, and the axis in which it is: an axis more, a longer operand, or a shorter result."""
    yield len(shape), (*shape, 2)
    for axis in range(1, len(shape)):
        length = shape[axis] + (1 if kind == "operands" else -1)
        yield axis, (*shape[:axis], length, *shape[axis + 1 :])


def with_shape(call: Call, kind: str, place: int, shape: tuple[int, ...]) -> Call:
    arrays: list[Array] = list(getattr(call, kind))
    arrays[place] = (shape, arrays[place][1])
    return call._replace(**{kind: tuple(arrays)})


def mistakes(target: str, kind: str) -> Iterator[tuple[str, Call]]:
    """For each array of a target, by name, a valid call with another shape of it, and what is wrong with it."""
    tried: set[tuple[str, str]] = set()
    for number, call in enumerate(valid_calls()[target]):
        for place, (shape, _) in enumerate(getattr(call, kind)):
            name = names_of(call, kind)[place]
            if (form := (form_of(call), name)) in tried:
                continue
            tried.add(form)
            free = FREE | FREE_OF_LISTS if form_of(call).endswith("ids") else FREE
            for axis, wrong in misshapen(kind, shape):
                if (target, name, axis) not in free:
                    yield f"call {number}, {name}: {wrong}", with_shape(call, kind, place, wrong)


def form_of(call: Call) -> str:
    """The name of its first array, which says whether spikes are given as lists."""
    return names_of(call, "operands")[0]


def names_of(call: Call, kind: str) -> list[str]:
    """The names of its arrays, which say what the table has about them."""
    return str(call.attributes[f"{kind[:-1]}_names"]).split(" ")


def refusals(calls: Sequence[Call]) -> list[str]:
    """The error of each call's handler; empty if it accepts it."""
    groups = (calls[first : first + CALLS_OF_PROGRAM] for first in range(0, len(calls), CALLS_OF_PROGRAM))
    return [said for group in groups for said in _refusals(group)]


def refusal(call: Call) -> str:
    (said,) = refusals([call])
    return said


def _refusals(calls: Sequence[Call]) -> list[str]:
    """As branches of one program, of which one runs: compiling a program for each takes three times as long.

    Handlers read static values when a program is compiled, so calls with wrong ones are compiled alone.
    """
    rng = np.random.default_rng(0)
    forms = {operand for call in calls for operand in call.operands}
    given = {form: jax.device_put(values.piece(rng, "plain", *form)) for form in sorted(forms)}

    def branch(call: Call, given: dict[Array, jax.Array]) -> int:
        results = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in call.results)
        handler = jax.ffi.ffi_call(call.target, results, has_side_effect=True)
        handler(*(given[form] for form in call.operands), **call.attributes)
        return 0

    branches = [functools.partial(branch, call) for call in calls]
    lowered = jax.jit(lambda which, given: jax.lax.switch(which, branches, given)).lower(0, given)
    try:
        run = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        return [_first_line(error)] if len(calls) == 1 else list(map(refusal, calls))
    said = []
    for which in range(len(calls)):
        try:
            jax.block_until_ready(run(which, given))
            said.append("")
        except jax.errors.JaxRuntimeError as error:
            said.append(_first_line(error))
    return said


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def taken(wrong: dict[Any, Call]) -> dict[Any, str]:
    """What is said of those of these calls that are not refused in the house form."""
    said = zip(wrong, refusals(list(wrong.values())), strict=True)
    return {what: text for what, text in said if not is_house_form(text)}


def is_house_form(text: str) -> bool:
    return text.startswith("INVALID_ARGUMENT: ") and ": `" in text and "` must " in text and ", got " in text


@pytest.mark.parametrize("kind", ["operands", "results"])
@pytest.mark.parametrize("target", TARGETS)
def test_array_of_another_shape_is_refused(target: str, kind: str) -> None:
    wrong = dict(mistakes(target, kind))
    assert wrong
    assert taken(wrong) == {}


def test_result_that_groups_share_is_refused() -> None:
    """Each group must write its own result: writing one result from all groups would be undefined."""
    form = NETWORKS[0]
    given = arguments(form, np.random.default_rng(0))
    stacked = (given[0], *jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), given[1:3]), *given[3:])
    grouped = jax.vmap(runner(form, "cpu"), (None, 0, 0, None, None, None))
    (call,) = calls_of(grouped, *stacked)
    assert refusal(call) == ""
    shapes = [shape for shape, _ in call.results]
    assert all(shape[0] == 2 for shape in shapes)
    shared = [with_shape(call, "results", place, (1, *shape[1:])) for place, shape in enumerate(shapes)]
    assert all(map(is_house_form, refusals(shared)))


def all_calls() -> list[Call]:
    return [call for calls in valid_calls().values() for call in calls]


def with_attributes(call: Call, **attributes: object) -> Call:
    return call._replace(attributes={**call.attributes, **attributes})


def test_program_of_another_table_is_refused() -> None:
    """Such as one that was exported by another version of snnjax."""
    calls = [with_attributes(call, schema="0123456789abcdef") for call, *_ in valid_calls().values()]
    for target, said in zip(valid_calls(), refusals(calls), strict=True):
        op = next(op for op in TABLES if target.startswith(f"snnjax_{op}"))
        expected = f"{op}: `schema` must be {_targets.schema()}, that of the kernels, got 0123456789abcdef."
        assert said.startswith(f"INVALID_ARGUMENT: {expected} ")
        assert "`make kernels`" in said


def test_static_value_is_not_left_out() -> None:
    """It would be taken for 0: for another surrogate, say."""
    tried: dict[tuple[str, str], Call] = {}
    for call in all_calls():
        for name in call.attributes:
            less = {own: value for own, value in call.attributes.items() if own != name}
            tried.setdefault((call.target, name), call._replace(attributes=less))
    assert len(tried) > 100
    assert taken(tried) == {}


@pytest.mark.parametrize("name, known", [("reset", RESETS), ("surrogate", SURROGATES)])
def test_number_of_no_switch_is_refused(name: str, known: tuple[str, ...]) -> None:
    calls = [call for call, *_ in valid_calls().values() if name in call.attributes]
    assert len(calls) >= 2
    for wrong in (-1, len(known)):
        set_wrong = [
            with_attributes(call, **{name: np.full_like(call.attributes[name], wrong)}) for call in calls
        ]
        expected = f": `{name}` must hold numbers below {len(known)}, got {wrong}. "
        assert all(expected in said for said in refusals(set_wrong))


def test_arrays_are_found_by_name() -> None:
    """Whatever their order."""
    turned, misnamed = [], {}
    for number, call in enumerate(all_calls()):
        names = names_of(call, "operands")
        reversed_names = " ".join(names[::-1])
        turned.append(
            with_attributes(call._replace(operands=call.operands[::-1]), operand_names=reversed_names)
        )
        for wrong in (names[:-1], [*names, "lengths"], ["outputs", *names[1:]], [names[1], *names[1:]]):
            called = " ".join(wrong)
            misnamed[call.target, number, called] = with_attributes(call, operand_names=called)
    assert all(said == "" or said.startswith(OF_RANDOM_VALUES) for said in refusals(turned))
    assert taken(misnamed) == {}


# What a call may do without; gradients of all but what spikes carry from call to call as well.
OPTIONAL = re.compile(
    r".*(linears?\.bias|lengths|is_inside|stdp\.plastic|g\.(counts|spikes)"
    r"|results (results\.spikes|record\.layers\.(v|current)))(\[\d\])?|operands before"
)
CARRIED = re.compile(r"first(_readout|\.(?![vw]\b))")


@pytest.mark.parametrize("kind", ["operands", "results"])
def test_array_that_the_table_asks_for_is_not_left_out(kind: str) -> None:
    tried: dict[tuple[str, str], Call] = {}
    for call in all_calls():
        names, arrays = names_of(call, kind), getattr(call, kind)
        are_gradients = call.target == "snnjax_lif_network_backward" and kind == "results"
        for place, name in enumerate(names):
            if OPTIONAL.fullmatch(f"{kind} {name}") or (are_gradients and not CARRIED.search(name)):
                continue
            if kind == "results" and len(names) == 1:  # XLA leaves out a call without results
                continue
            less = call._replace(**{kind: (*arrays[:place], *arrays[place + 1 :])})
            rest = " ".join((*names[:place], *names[place + 1 :]))
            tried.setdefault((call.target, name), with_attributes(less, **{f"{kind[:-1]}_names": rest}))
    assert len(tried) > 30
    assert taken(tried) == {}


@pytest.mark.parametrize("threshold", [(), (5,), (3, 5)], ids=["one", "neurons", "rows"])
def test_gradient_of_a_threshold_has_the_form_of_the_threshold(threshold: tuple[int, ...]) -> None:
    """A result of another form would be left unwritten in part."""
    select = functools.partial(select_spikes, capacity=2, implementation="cpu")
    given = jnp.ones((3, 5)), jnp.ones(threshold), 0.5
    (call,) = (each for each in calls_of(with_gradient(select), *given) if "backward" in each.target)
    others = [shape for shape in ((1, 3, 5), (1, 1), (1, 5)) if shape != call.results[1][0]]
    for said in refusals([with_shape(call, "results", 1, shape) for shape in others]):
        assert said.startswith("INVALID_ARGUMENT: select_spikes: `g_threshold"), said
