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
``expected/ipu.json``, ``fit`` prints the constants of the estimate that fit best, and ``tables`` those for the
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
from scipy import optimize

from snnjax import Connection, LIFLayer, LIFReadout, lif_network
from snnjax.ipu import read_profile
from snnjax.ipu.device import network_cost
from snnjax.neurons import SecondState
from tests.benchmarks import workloads
from tests.benchmarks.programs import fresh, networks
from tests.benchmarks.programs.networks import GRADIENT
from tests.benchmarks.workloads import DECAY, SLOPE, THRESHOLD, Layer, Workload

STORED = Path(__file__).parents[1] / "expected" / "ipu.json"
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

    def step(carry: tuple[jax.Array, ...], current: jax.Array) -> tuple[Any, jax.Array]:
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
) -> tuple[jax.Array, Any]:
    def step(carry: tuple[jax.Array, jax.Array], current: jax.Array) -> tuple[Any, Any]:
        v, spikes = carry
        v = DECAY * (v - spikes) + current + product(spikes, recurrent)
        return (v, networks.spike(v - THRESHOLD)), (v, networks.spike(v - THRESHOLD))

    zeros = jnp.zeros_like(currents[0])
    v, spikes = jax.lax.scan(step, (zeros, zeros), currents, unroll=steps_a_round)[1]
    return spikes, (v, spikes, recurrent)


def _recurrent_backward(
    product: Product, steps_a_round: int, kept: Any, g: jax.Array
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
    layers: list[Layer], inputs: Any, readout: bool, cell: Cell, implementation: str | None = None
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

    def cast(dtype: str) -> Any:
        return jax.tree.map(lambda leaf: leaf.astype(dtype) if leaf.dtype == np.float32 else leaf, given)

    with mock.patch.object(network_cost, "pays", return_value=True):  # unless the reference is asked for
        found = [cycles(forward, cell.workload, cast(dtype)) for forward, dtype in of_cell]
    return min((each for each in found if each is not None), default=None)


def cycles(forward: networks.Forward, workload: Workload, arguments: Any) -> float | None:
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
        path.write_text(json.dumps(stored, indent=0, sort_keys=True) + "\n")


def read(path: Path = STORED) -> dict[str, int | None]:
    """The stored cycles by the key of their cell."""
    return json.loads(path.read_text()) if path.exists() else {}


@functools.cache
def sizes(cell: Cell) -> network_cost.Sizes:
    """What the estimate sees of a cell."""
    width, batch, activity = cell.width, cell.batch, cell.activity
    events = workloads.bernoulli((STEPS, batch, width), activity).sum(axis=-1).max()
    layer = network_cost.Layer(width, max(1, int(events)), width, capacity_of(cell), cell.kind == "recurrent")
    return network_cost.Sizes(STEPS, batch, TILES, cell.dtype, (layer,))


# What a form does not have.
WITHOUT = {
    "LISTS": {"products", "loop_products"},
    "LISTS_AND_PRODUCTS": {"rows", "loop_products"},
    "DENSE": {"rows", "lists", "listed", "loop_rows", "loop_lists"},
}


def fitted(stored: Mapping[str, int | None], dtype: str) -> dict[str, network_cost.Terms]:
    """The costs of each form that fit the stored cells best, by the squares of relative errors."""
    cells = {
        form: [cell for cell in grid([form]) if cell.dtype == dtype and stored.get(cell.key)]
        for form in ("lists", "dense")
    }
    # Where few are active, lists with room for few overflow, and the dense form is far from being chosen.
    dense = [cell for cell in cells["dense"] if cell.activity >= 0.05]
    found = {"DENSE": _least(stored, dense, "DENSE")}
    # Each cell belongs to the plan that is expected to be cheaper there, which depends on the fit.
    lists, is_listed = cells["lists"], [cell.activity < 0.05 for cell in cells["lists"]]
    for _ in range(20):
        for form, kind in (("LISTS", True), ("LISTS_AND_PRODUCTS", False)):
            own = [cell for cell, listed in zip(lists, is_listed, strict=True) if listed == kind]
            found[form] = _least(stored, own, form)
        is_listed = [
            network_cost.cost(found["LISTS"], sizes(cell))
            <= network_cost.cost(found["LISTS_AND_PRODUCTS"], sizes(cell))
            for cell in lists
        ]
    return found


def _least(stored: Mapping[str, Any], cells: Sequence[Cell], form: str) -> network_cost.Terms:
    """Costs of 0 and more with the least squares of relative errors."""
    cycles = np.array([stored[cell.key] for cell in cells], float)
    terms = np.array([network_cost.terms_of(sizes(cell)) for cell in cells], float)
    terms *= [name not in WITHOUT[form] for name in network_cost.Terms._fields]
    scale = np.maximum(terms.max(0), 1e-9)
    costs, _ = optimize.nnls(terms / scale / cycles[:, None], np.ones(len(cells)))
    return network_cost.Terms(*(float(f"{each:.3g}") for each in costs / scale))


def losses(stored: Mapping[str, int | None]) -> Iterator[tuple[Cell, float]]:
    """How much longer the form that the estimate takes is than the other one, 1 where it is the faster one."""
    for lists in grid(["lists"]):
        dense = lists._replace(form="dense")
        known = [stored.get(each.key) or math.inf for each in (lists, dense)]
        own = sizes(lists)
        takes_lists = network_cost.on_codelets(own) <= network_cost.as_reference(own)
        if min(known) < math.inf:
            yield lists, known[0 if takes_lists else 1] / min(known)


def print_fit(stored: Mapping[str, int | None]) -> None:
    """The constants for `network_cost`, and how far its estimates are off."""
    for dtype in DTYPES:
        for name, costs in fitted(stored, dtype).items():
            getattr(network_cost, name)[dtype] = costs
    for name in WITHOUT:
        print(f"{name} = {{")
        for dtype, costs in getattr(network_cost, name).items():
            given = ", ".join(f"{key}={value:g}" for key, value in costs._asdict().items() if value)
            print(f'    "{dtype}": Terms({given}),')
        print("}")
    for cell in grid(["lists", "dense"]):
        if stored.get(cell.key):
            estimate = network_cost.on_codelets if cell.form == "lists" else network_cost.as_reference
            print(f"{cell.key}: {estimate(sizes(cell)) / stored[cell.key] - 1:+.0%}")
    for cell, loss in sorted(losses(stored), key=lambda each: -each[1])[:20]:
        print(f"{cell.key}: {loss:.3f} of the faster form")


def print_tables(stored: Mapping[str, int | None]) -> None:
    """Tables in Markdown: thousand cycles of both rivals and of ours, *slanted* where the dense form is chosen."""
    for kind, dtype in itertools.product(KINDS, DTYPES):
        columns = ["float32", "halves", *(f"{100 * activity:g} %" for activity in ACTIVITIES)]
        print(f"\n| {kind}, ours in {dtype}: width, batch | {' | '.join(columns)} |")
        print(f"| --- |{' ---: |' * len(columns)}")
        for size in SIZES:
            plain = [_thousands(stored, Cell(kind, *size, each, "rivals", 0.0)) for each in DTYPES]
            ours = [_chosen(stored, Cell(kind, *size, dtype, "lists", activity)) for activity in ACTIVITIES]
            print(f"| {size[0]}, {size[1]} | {' | '.join([*plain, *ours])} |")

    columns = [
        "float32",
        "halves",
        *(f"{dtype}, {100 * each:g} %" for dtype in DTYPES for each in ACTIVITIES_OF_OTHERS),
    ]
    print(f"\n| 1024, 16 | {' | '.join(columns)} |")
    print(f"| --- |{' ---: |' * len(columns)}")
    for kind in OTHERS:
        plain = [_thousands(stored, Cell(kind, *OF_OTHERS, each, "rivals", 0.0)) for each in DTYPES]
        cells = [
            Cell(kind, *OF_OTHERS, dtype, "lists", each) for dtype in DTYPES for each in ACTIVITIES_OF_OTHERS
        ]
        print(f"| {kind} | {' | '.join([*plain, *(_thousands(stored, cell) for cell in cells)])} |")


def _thousands(stored: Mapping[str, int | None], cell: Cell) -> str:
    known = stored.get(cell.key)
    return "-" if known is None else f"{known / 1e3:.1f}"


def _chosen(stored: Mapping[str, int | None], cell: Cell) -> str:
    if network_cost.on_codelets(sizes(cell)) <= network_cost.as_reference(sizes(cell)):
        return _thousands(stored, cell)
    return f"*{_thousands(stored, cell._replace(form='dense'))}*"


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
