"""`lif_network` on the modelled IPU beside the best plain JAX: cycles of a time step, forward and backward.

A network has inputs and one hidden layer of one width, both equally active, and a readout of ten classes; 32 time
steps, no optimiser. Plain JAX, the rival, has one product a layer for all time steps and neurons without a loop; a
recurrent layer runs eight steps a round or without a loop, whichever is faster, and the gradient of its recurrent
weights is one product behind the loop. It comes in two kinds: all float32; and with products of halves, either float16
throughout or with sums, neurons and weights of float32, whichever is faster. Halves round weights, and some neurons
spike differently. Rivals do not depend on activity, nor on snnjax.

Ours has lists with room for three times the spikes that are expected, in weights of float32 or float16. It is measured
in both of its forms: `lists`, on codelets, and `dense`, on its reference. Its estimate (`network_cost`) takes one.

``python -m tests.benchmarks.devices.beside_dense rivals lists dense`` measures all cells anew and stores them in
``beside_dense.json``, ``fit`` prints the constants of the estimate that fit best, and ``tables`` those for the
documents. Nothing of this is measured on hardware.
"""

import argparse
import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from scipy import optimize

from snnjax import Connection, LIFLayer, LIFReadout, lif_network
from snnjax._types import Signal
from snnjax.ipu import read_profile
from snnjax.ipu.device import network_cost
from snnjax.neurons import SecondState
from tests.benchmarks import workloads
from tests.benchmarks.programs import fresh, networks
from tests.benchmarks.programs.networks import GRADIENT
from tests.benchmarks.workloads import DECAY, SLOPE, THRESHOLD, Layer, Workload

STORED = Path(__file__).with_suffix(".json")
STEPS, TILES = 32, 1472
STEPS_A_ROUND = 8  # of an unrolled loop over recurrent layers
ROOM = 3  # slots of a list for each spike that is expected
KINDS = ("feed-forward", "recurrent")
# Of other networks one size, at two activities: with two hidden layers, adLIF neurons, and fixed delays of the inputs.
OTHERS, OF_OTHERS, ACTIVITIES_OF_OTHERS = ("two hidden layers", "adLIF", "delays"), (1024, 16), (0.01, 0.05)
MAX_DELAY = 10
ADLIF = SecondState(w_decay=0.95, w_membrane=0.05, w_jump=0.1, v_coupling=-1.0)
SIZES = tuple(itertools.product((256, 512, 1024, 2048), (4, 16, 64)))
ACTIVITIES = (0.005, 0.01, 0.02, 0.05, 0.1)
DTYPES = ("float32", "float16")
RIVALS = ("float32", "halves")
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"

Product = Callable[[jax.Array, jax.Array], jax.Array]


class Cell(NamedTuple):
    """What is measured: a network, and in which form it runs."""

    kind: str  # of `KINDS` or `OTHERS`
    width: int
    batch: int
    dtype: str  # of the weights
    form: str  # "rivals", "lists" or "dense"
    activity: float  # of the inputs and the layer; 0 for rivals

    @property
    def key(self) -> str:
        return " ".join(map(str, self))

    @property
    def workload(self) -> Workload:
        return of_size(self.kind, self.width, self.batch).at_density(self.activity or 0.01)


def grid(forms: Iterable[str]) -> list[Cell]:
    """All cells of these forms."""
    each = itertools.product(forms, KINDS, SIZES, DTYPES)
    return [
        Cell(kind, *size, dtype, form, activity)
        for form, kind, size, dtype in each
        for activity in ((0.0,) if form == "rivals" else ACTIVITIES)
    ]


def others(forms: Iterable[str]) -> list[Cell]:
    """The cells of the other networks; bfloat16 has no codelets."""
    each = itertools.product(forms, OTHERS, DTYPES)
    found = [
        Cell(kind, *OF_OTHERS, dtype, form, activity)
        for form, kind, dtype in each
        for activity in ((0.0,) if form == "rivals" else ACTIVITIES_OF_OTHERS)
    ]
    narrow = [Cell(KINDS[0], *OF_OTHERS, "bfloat16", "dense", activity) for activity in ACTIVITIES_OF_OTHERS]
    return [*found, *(narrow if "dense" in forms else [])]


def of_size(kind: str, width: int, batch: int, steps: int = STEPS) -> Workload:
    """Inputs and a layer, or two, of one width, and a readout of ten classes."""
    hidden = 2 if kind == "two hidden layers" else 1
    widths, rates = (*(width,) * (hidden + 1), 10), (0.01,) * hidden
    return Workload(kind, widths, steps, batch, 0.01, rates, recurrent=kind == "recurrent", readout=True)


def unrolled(
    layers: list[Layer],
    inputs: jax.Array,
    readout: bool,
    product: Product = jnp.matmul,
    steps_a_round: int = STEPS_A_ROUND,
    kind: str = KINDS[0],
) -> jax.Array:
    """One product a layer for all steps; neurons without a loop, or some steps a round where they are recurrent."""
    inputs = delayed(inputs) if kind == "delays" else inputs
    for index, layer in enumerate(layers):
        currents, is_readout = product(inputs, layer.weights), readout and index == len(layers) - 1
        if layer.recurrent is not None:
            inputs = recurrent_spikes(product, steps_a_round, currents, layer.recurrent)
        elif kind == "adLIF" and not is_readout:
            inputs = adaptive_spikes(currents)
        else:
            inputs = networks.scan_neurons(currents, None, is_readout, networks.spike, len(currents))
    return inputs


def delays(width: int) -> np.ndarray:
    """That of each input, in steps."""
    return np.arange(width) % (MAX_DELAY + 1)


def delayed(inputs: jax.Array) -> jax.Array:
    """Those of all inputs with the same delay at once."""
    own, steps = delays(inputs.shape[-1]), len(inputs)
    padded = jnp.pad(inputs, ((MAX_DELAY, 0), (0, 0), (0, 0)))
    shifted = [padded[MAX_DELAY - delay :][:steps] for delay in range(MAX_DELAY + 1)]
    each = [jnp.where(own == delay, rows, 0) for delay, rows in enumerate(shifted)]
    return functools.reduce(jnp.add, each)


def adaptive_spikes(currents: jax.Array) -> jax.Array:
    """adLIF neurons: ``w = 0.95 w + 0.05 v + 0.1 s``, ``v = 0.9 (v - s) + I - w`` with s detached in v."""

    def step(carry: PyTree, current: jax.Array) -> tuple[PyTree, jax.Array]:
        v, w, spikes = carry
        w = ADLIF.w_decay * w + ADLIF.w_membrane * v + ADLIF.w_jump * spikes
        v = DECAY * (v - jax.lax.stop_gradient(spikes)) + current + ADLIF.v_coupling * w
        spikes = networks.spike(v - THRESHOLD)
        return (v, w, spikes), spikes

    zeros = jnp.zeros_like(currents[0])
    return jax.lax.scan(step, (zeros, zeros, zeros), currents, unroll=len(currents))[1]


@jax.custom_vjp
def of_halves(inputs: jax.Array, weights: jax.Array) -> jax.Array:
    """A product of float32 whose operands are rounded to halves, also backward; sums are of float32."""
    return halves(jnp.matmul, inputs, weights)


def halves(multiply: Callable[..., jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    return multiply(x.astype(jnp.float16), y.astype(jnp.float16), preferred_element_type=jnp.float32)


def _of_halves_backward(kept: tuple[jax.Array, jax.Array], g: jax.Array) -> tuple[jax.Array, jax.Array]:
    inputs, weights = kept
    axes = tuple(range(g.ndim - 1))
    over_rows = functools.partial(jnp.tensordot, axes=(axes, axes))
    return halves(jnp.matmul, g, weights.T), halves(over_rows, inputs, g)


of_halves.defvjp(lambda *given: (of_halves(*given), given), _of_halves_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def recurrent_spikes(
    product: Product, steps_a_round: int, currents: jax.Array, recurrent: jax.Array
) -> jax.Array:
    """The same as a scan of its neurons, but the gradient of the weights is one product after the loop."""
    return _recurrent_forward(product, steps_a_round, currents, recurrent)[0]


def _recurrent_forward(
    product: Product, steps_a_round: int, currents: jax.Array, recurrent: jax.Array
) -> tuple[jax.Array, PyTree]:
    def step(carry: PyTree, current: jax.Array) -> tuple[PyTree, PyTree]:
        v, spikes = carry
        v = DECAY * (v - spikes) + current + product(spikes, recurrent)
        return (v, networks.spike(v - THRESHOLD)), (v, networks.spike(v - THRESHOLD))

    zeros = jnp.zeros_like(currents[0])
    v, spikes = jax.lax.scan(step, (zeros, zeros), currents, unroll=steps_a_round)[1]
    return spikes, (v, spikes, recurrent)


def _recurrent_backward(
    product: Product, steps_a_round: int, kept: PyTree, g: jax.Array
) -> tuple[jax.Array, jax.Array]:
    v, spikes, recurrent = kept
    slopes, back = 1 / (1 + SLOPE * jnp.abs(v - THRESHOLD)) ** 2, recurrent.T

    def step(later: jax.Array, given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        own, slope = given
        cotangent = DECAY * later + (own + product(later, back)) * slope
        return cotangent, cotangent

    zeros = jnp.zeros_like(g[0])
    of_currents = jax.lax.scan(step, zeros, (g, slopes), reverse=True, unroll=steps_a_round)[1]
    transposed = jnp.moveaxis(spikes[:-1].reshape(-1, spikes.shape[-1]), 0, 1)
    return of_currents, product(transposed, of_currents[1:].reshape(-1, g.shape[-1]))


recurrent_spikes.defvjp(_recurrent_forward, _recurrent_backward)


class Rival(NamedTuple):
    """A form of plain JAX, of which the fastest counts."""

    forward: networks.Forward
    dtype: str  # of the arguments


def rivals(cell: Cell) -> list[Rival]:
    """Those with products in the dtype of a cell."""
    rounds = (STEPS_A_ROUND, STEPS) if cell.kind == "recurrent" else (STEPS,)
    products = [(jnp.matmul, cell.dtype)] + ([(of_halves, "float32")] if cell.dtype == "float16" else [])
    return [
        Rival(functools.partial(unrolled, product=product, steps_a_round=steps, kind=cell.kind), dtype)
        for steps, (product, dtype) in itertools.product(rounds, products)
    ]


def ours(
    layers: list[Layer], inputs: Signal, readout: bool, cell: Cell, implementation: str | None = None
) -> jax.Array:
    """The same network, with lists that have room."""
    del readout
    *hidden, last = layers
    others: dict[str, Any] = {"second_state": ADLIF if cell.kind == "adLIF" else None}
    own = [
        LIFLayer(each.weights, DECAY, THRESHOLD, 1.0, recurrent=each.recurrent, **others) for each in hidden
    ]
    if cell.kind == "delays":
        delay = delays(cell.width).astype(np.float32)
        own[0] = own[0]._replace(connection=Connection(max_delay=MAX_DELAY), delays=delay)
    out, _ = lif_network(
        inputs,
        own,
        LIFReadout(last.weights, DECAY, 1.0),
        capacity=capacity_of(cell),
        second_threshold=workloads.SECOND_THRESHOLD,
        surrogate=networks.SUPERSPIKE,
        implementation=implementation,
    )
    return out.output


def capacity_of(cell: Cell) -> int:
    return max(1, round(min(1.0, ROOM * cell.activity) * cell.width))


def forwards(cell: Cell) -> tuple[list[Rival], str]:
    """The networks of which the fastest counts, and the form of their inputs."""
    if cell.form == "rivals":
        return rivals(cell), "dense"
    implementation = "reference" if cell.form == "dense" else None
    return [Rival(functools.partial(ours, cell=cell, implementation=implementation), cell.dtype)], "events"


def measured(cell: Cell) -> float | None:
    """The modelled cycles of a time step; None if no program fits in the chip's memory."""
    of_cell, form = forwards(cell)
    layers, forms = networks.data(cell.workload)
    given = jax.tree.map(np.asarray, (layers, forms[form], networks.output_weights(cell.workload)))

    def cast(dtype: str) -> PyTree:
        return jax.tree.map(lambda leaf: leaf.astype(dtype) if leaf.dtype == np.float32 else leaf, given)

    with mock.patch.object(network_cost, "pays", return_value=True):  # unless the reference is asked for
        found = [cycles(forward, cell.workload, cast(dtype)) for forward, dtype in of_cell]
    return min((each for each in found if each is not None), default=None)


def cycles(forward: networks.Forward, workload: Workload, arguments: PyTree) -> float | None:
    """Compute, exchange and sync of a time step; None if the program does not fit."""
    step = jax.jit(networks.task_of(forward, GRADIENT, workload.readout))
    placed = jax.device_put(arguments, jax.devices("ipu")[0])
    try:
        compiled = step.lower(*placed).compile()
        jax.block_until_ready(compiled(*placed))
    except jax.errors.JaxRuntimeError as error:
        if OUT_OF_MEMORY not in str(error):
            raise
        return None
    finally:
        jax.clear_caches()
    profile = read_profile(compiled)
    return (profile.cycles - profile.phases.host) / workload.steps


def measure(cells: Sequence[Cell], path: Path) -> None:
    """Measure cells, and store each as it is known."""
    fresh.use_ipus(1, TILES)
    jax.config.update("jax_platforms", "cpu,ipu")
    stored = read(path)
    for cell in cells:
        found = measured(cell)
        stored[cell.key] = None if found is None else round(found)
        print(cell.key, stored[cell.key], flush=True)
        path.write_text(json.dumps(stored, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def read(path: Path = STORED) -> dict[str, int | None]:
    """The stored cycles by the key of their cell."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@functools.cache
def sizes(cell: Cell) -> network_cost.Sizes:
    """What the estimate sees of a cell."""
    width, batch, activity = cell.width, cell.batch, cell.activity
    events = workloads.bernoulli((STEPS, batch, width), activity).sum(axis=-1).max()
    layer = network_cost.Layer(width, max(1, int(events)), width, capacity_of(cell), cell.kind == "recurrent")
    return network_cost.Sizes(STEPS, batch, TILES, cell.dtype, (layer,))


# What a form does not have.
WITHOUT = {
    "LISTS": {"runs", "loop_runs", "loop_rounds", "loop_products", "loop_weights", "products"},
    "DENSE": {"runs", "loop_runs", "loop_rounds", "rows", "lists", "listed", "loop_rows", "loop_lists"},
}


def fitted(stored: Mapping[str, int | None], dtype: str) -> dict[str, network_cost.Terms]:
    """The costs of both forms that fit the stored cells best, by the squares of relative errors."""
    lists, dense = (
        [cell for cell in grid([form]) if cell.dtype == dtype and stored.get(cell.key)]
        for form in ("lists", "dense")
    )
    # Where few are active, lists with room for few overflow, and the dense form is far from being chosen.
    dense = [cell for cell in dense if cell.activity >= 0.05]
    # A product of the matrix unit costs as much as one of so many listed rows for each of its inputs.
    shares = np.geomspace(0.005, 0.5, 60)
    of_lists = min((_least(stored, lists, "LISTS", share) for share in shares), key=lambda each: each[1])
    return {"LISTS": of_lists[0], "DENSE": _least(stored, dense, "DENSE", 0.0)[0]}


def _least(
    stored: Mapping[str, Any], cells: Sequence[Cell], form: str, share: float
) -> tuple[network_cost.Terms, float]:
    """Costs of 0 and more with the least squares of relative errors, and how large these are."""
    if not cells:
        return network_cost.Terms(), 0.0
    names = [name for name in network_cost.Terms._fields if name not in WITHOUT[form]]
    each = [network_cost.terms_of(sizes(cell)) for cell in cells]
    if share > 0:
        each = [own._replace(rows=min(own.rows, share * own.products)) for own in each]
    # All cells have as many steps, which do not tell what a run takes in any case.
    known = getattr(network_cost, form)["float32"]
    runs = {"runs": known.runs, "loop_runs": known.loop_runs, "loop_rounds": known.loop_rounds}
    of_runs = network_cost.Terms(**runs)
    cycles = np.array([stored[cell.key] - network_cost.cost(of_runs, sizes(cell)) for cell in cells], float)
    terms = np.array([[getattr(own, name) for name in names] for own in each], float)
    scale = np.maximum(terms.max(0), 1e-9)
    costs, error = optimize.nnls(terms / scale / cycles[:, None], np.ones(len(cells)))
    found = {name: float(f"{own:.3g}") for name, own in zip(names, costs / scale, strict=True)}
    if share > 0:
        found["products"] = float(f"{share * found['rows']:.3g}")
    return network_cost.Terms(**found, **runs), error


def losses(stored: Mapping[str, int | None]) -> Iterator[tuple[Cell, float]]:
    """How much longer the form that the estimate takes is than the other one, 1 where it is the faster one."""
    for lists in grid(["lists"]):
        dense = lists._replace(form="dense")
        known = [stored.get(each.key) or math.inf for each in (lists, dense)]
        if max(known) < math.inf:
            yield lists, known[0 if takes_lists(lists) else 1] / min(known)


def print_fit(stored: Mapping[str, int | None]) -> None:
    """The constants for `network_cost`, and how far its estimates are off."""
    for dtype in {cell.dtype for cell in grid(["lists"]) if cell.key in stored}:
        for name, costs in fitted(stored, dtype).items():
            if any(costs):  # else nothing is stored
                getattr(network_cost, name)[dtype] = costs
    for name in WITHOUT:
        print(f"{name} = {{")
        for dtype, costs in getattr(network_cost, name).items():
            given = ", ".join(f"{key}={value:g}" for key, value in costs._asdict().items() if value)
            print(f'    "{dtype}": Terms({given}),')
        print("}")
    for cell in grid(["lists", "dense"]):
        if known := stored.get(cell.key):
            estimate = network_cost.on_codelets if cell.form == "lists" else network_cost.as_reference
            print(f"{cell.key}: {estimate(sizes(cell)) / known - 1:+.0%}")
    for cell, loss in sorted(losses(stored), key=lambda each: -each[1])[:20]:
        print(f"{cell.key}: {loss:.3f} of the faster form")


def print_tables(stored: Mapping[str, int | None]) -> None:
    """Tables in Markdown: thousand cycles of both rivals and of ours, *slanted* where the dense form is chosen."""
    for kind, dtype in itertools.product(KINDS, DTYPES):
        if not any(
            cell.key in stored for cell in grid(["lists"]) if (cell.kind, cell.dtype) == (kind, dtype)
        ):
            continue
        columns = [*RIVALS, *(f"{100 * activity:g} %" for activity in ACTIVITIES)]
        print(f"\n| {kind}, ours in {dtype}: width, batch | {' | '.join(columns)} |")
        print(f"| --- |{' ---: |' * len(columns)}")
        for size in SIZES:
            plain = [_thousands(stored.get(Cell(kind, *size, each, "rivals", 0.0).key)) for each in DTYPES]
            ours = [_in_table(stored, Cell(kind, *size, dtype, "lists", activity)) for activity in ACTIVITIES]
            print(f"| {size[0]}, {size[1]} | {' | '.join([*plain, *ours])} |")
    _print_ratios(stored)
    _print_others(stored)


def _print_ratios(stored: Mapping[str, int | None]) -> None:
    """How many times as fast as both rivals ours is in float32, over the widths that are stored."""
    shares = [f"beside {name}, {100 * activity:g} %" for name in RIVALS for activity in (0.01, 0.05)]
    print(f"\n| times as fast, batch | {' | '.join(shares)} |\n| --- |{' ---: |' * len(shares)}")
    for kind, batch in itertools.product(KINDS, dict.fromkeys(batch for _, batch in SIZES)):
        row = []
        for dtype, activity in itertools.product(DTYPES, (0.01, 0.05)):
            own = [Cell(kind, width, batch, DTYPES[0], "lists", activity) for width, b in SIZES if b == batch]
            pairs = [
                (
                    stored.get(cell._replace(dtype=dtype, form="rivals", activity=0.0).key),
                    chosen(stored, cell),
                )
                for cell in own
            ]
            ratios = [rival / ours for rival, ours in pairs if rival and ours]
            row.append(f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "-")
        print(f"| {kind}, {batch} | {' | '.join(row)} |")


def _print_others(stored: Mapping[str, int | None]) -> None:
    """The other networks."""
    own = list(itertools.product(DTYPES, ACTIVITIES_OF_OTHERS))
    columns = [*RIVALS, *(f"ours in {dtype}, {100 * activity:g} %" for dtype, activity in own)]
    print(f"\n| thousand cycles | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    for kind in OTHERS:
        cells = [Cell(kind, *OF_OTHERS, dtype, "rivals", 0.0) for dtype in DTYPES]
        cells += [Cell(kind, *OF_OTHERS, dtype, "lists", activity) for dtype, activity in own]
        print(f"| {kind} | {' | '.join(_thousands(stored.get(cell.key)) for cell in cells)} |")
    narrow = [Cell(KINDS[0], *OF_OTHERS, "bfloat16", "dense", each) for each in ACTIVITIES_OF_OTHERS]
    print(
        f"| bfloat16, dense form | | | {' | '.join(_thousands(stored.get(cell.key)) for cell in narrow)} | | |"
    )


def _thousands(cycles: float | None) -> str:
    return "-" if cycles is None else f"{cycles / 1e3:.1f}"


def takes_lists(cell: Cell) -> bool:
    """Which form the estimate takes."""
    return network_cost.on_codelets(sizes(cell)) <= network_cost.as_reference(sizes(cell))


def chosen(stored: Mapping[str, int | None], cell: Cell) -> int | None:
    """The cycles of the form that the estimate takes."""
    return stored.get(cell._replace(form="lists" if takes_lists(cell) else "dense").key)


def _in_table(stored: Mapping[str, int | None], cell: Cell) -> str:
    text = _thousands(chosen(stored, cell))
    return text if takes_lists(cell) or text == "-" else f"*{text}*"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="+", choices=("rivals", "lists", "dense", "fit", "tables"))
    parser.add_argument("--stored", type=Path, default=STORED)
    parser.add_argument(
        "--only", nargs="+", default=[], help="measure only cells whose keys contain all of these"
    )
    parser.add_argument("--missing", action="store_true", help="measure only cells that are not stored")
    options = parser.parse_args(argv)
    forms = [what for what in options.what if what in ("rivals", "lists", "dense")]
    known = read(options.stored) if options.missing else {}
    cells = [
        cell
        for cell in (*grid(forms), *others(forms))
        if all(part in cell.key for part in options.only) and cell.key not in known
    ]
    measure(cells, options.stored)
    stored = read(options.stored)
    if "fit" in options.what:
        print_fit(stored)
    if "tables" in options.what:
        print_tables(stored)


if __name__ == "__main__":
    main()
