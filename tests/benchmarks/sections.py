"""The sections of the benchmark, each of which yields its tables."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tests.benchmarks import (
    cameras,
    convolutions,
    delayed,
    fresh,
    gradients,
    mixed,
    networks,
    neurons,
    peer_process,
    products,
    stored,
    timing,
)
from tests.benchmarks.networks import DONATED, FORWARD, GRADIENT, INFERENCE, TRAINING
from tests.benchmarks.plan import Plan
from tests.benchmarks.timing import Timer, announce
from tests.benchmarks.workloads import Product, Workload

SECONDS, MEGABYTES = "seconds", "MB"
# The pictures that a table can be part of.
SPEED, DENSITY, PRODUCTS, SCALING = "speed", "density", "products", "scaling"
# By column and alternative, the value of every round.
Cells = dict[tuple[str, str], list[float]]


class Table(NamedTuple):
    """A column, or all of them, is one interleaved run."""

    title: str
    cells: Cells  # in seconds or MB
    across: str = ""  # what the numbers are that the columns begin with
    unit: str = SECONDS
    picture: str = ""
    section: str = ""  # which yielded it


def measure(plan: Plan, timers: Mapping[tuple[str, str], Timer], rounds: int) -> Cells:
    return timing.measure(timers, rounds, plan.min_seconds)


def percent(share: float) -> str:
    return f"{100 * share:g} %"


def single(plan: Plan) -> Iterator[Table]:
    """W1."""
    for workloads in plan.single:
        title = workloads[0].name
        announce(title)
        cells: Cells = {}
        for workload in workloads:
            timers = networks.timers(workload, plan.exact, (FORWARD, GRADIENT))
            for (task, name), values in measure(plan, timers, plan.rounds).items():
                cells[f"{percent(workload.rate)}, {task}", name] = values
        yield Table(title, cells, picture=SPEED)


def network(plan: Plan, workload: Workload) -> Table:
    """Inference and training, which with a capacity computes another gradient."""
    announce(workload.name)
    timers = networks.timers(workload, plan.exact, (INFERENCE, TRAINING, DONATED))
    timers |= networks.timers(workload, plan.capped, (TRAINING, DONATED))
    with peer_process.timers(workload, plan.peers) as of_peers:
        cells = measure(plan, {**timers, **of_peers}, plan.rounds)
    return Table(workload.name, cells, picture=SPEED)


def recurrent(plan: Plan) -> Iterator[Table]:
    """W2."""
    for workload in plan.recurrent:
        yield network(plan, workload)


def deep(plan: Plan) -> Iterator[Table]:
    """W3."""
    yield network(plan, plan.deep)


def models(plan: Plan) -> Iterator[Table]:
    """W5."""
    for shape in plan.models:
        announce(f"W5, {shape.name}")
        cells: Cells = {}
        for model in neurons.MODELS:
            for (task, name), values in measure(
                plan, dict(neurons.timers(shape, model)), plan.rounds
            ).items():
                cells[task, name] = values
        yield Table(f"W5, {shape.name}", cells)


def mixtures(plan: Plan) -> Iterator[Table]:
    """W6."""
    title = "W6, one Izhikevich layer behind LIF layers"
    announce(title)
    yield Table(title, measure(plan, dict(mixed.timers(plan.mixed)), plan.rounds))


def camera(plan: Plan) -> Iterator[Table]:
    """W7."""
    for each in plan.cameras:
        announce(each.name)
        timers, memory = cameras.timers(each)
        yield Table(each.name, measure(plan, timers, min(plan.rounds, plan.sweep_rounds)))
        cells = {key: [value] for key, value in memory.items()}
        yield Table(f"{each.name}, temporary memory of the program", cells, unit=MEGABYTES)


def delays(plan: Plan) -> Iterator[Table]:
    """W8."""
    title = f"W8, axonal delays, {plan.delayed.name}"
    announce(title)
    yield Table(title, measure(plan, dict(delayed.timers(plan.delayed, plan.max_delay)), plan.rounds))


def storage(plan: Plan) -> Iterator[Table]:
    """W9."""
    for workload in (plan.deep, plan.recurrent[0]):
        title = f"W9, weights as they are stored, inference, {workload.name}"
        announce(title)
        yield Table(title, measure(plan, dict(stored.timers(workload)), plan.rounds))


def of_gradients(plan: Plan) -> Iterator[Table]:
    """W10."""
    title = f"W10, training step with other gradients, {plan.deep.name}"
    announce(title)
    yield Table(title, measure(plan, dict(gradients.timers(plan.deep)), plan.rounds))


def product(plan: Plan) -> Iterator[Table]:
    """W4."""
    for shape in plan.products:
        for table in by_density(plan, shape, plan.product_densities, products.ALTERNATIVES):
            yield table._replace(picture=PRODUCTS)


def forms(plan: Plan) -> Iterator[Table]:
    """Both forms of the reference of `spike_matmul`: gathered rows and a dense product."""
    for shape in plan.forms:
        for table in by_density(plan, shape, plan.form_densities, [*products.FORMS]):
            yield table._replace(title=f"{table.title}, forms of the reference")


def by_density(
    plan: Plan, shape: tuple[int, int], densities: Sequence[float], names: Sequence[str]
) -> Iterator[Table]:
    """The product and its backward passes, a table each."""
    title = Product(*shape, 0).name
    announce(title)
    cells: dict[str, Cells] = {task: {} for task in products.TASKS}
    for density in densities:
        timers = products.timers(Product(*shape, density), names, products.TASKS)
        for (task, name), values in measure(plan, timers, plan.sweep_rounds).items():
            cells[task][percent(density), name] = values
    for task in products.TASKS:
        yield Table(f"{title}, {task}", cells[task], "density of the spikes, %")


def convolution(plan: Plan) -> Iterator[Table]:
    """`spike_conv` and its backward passes, a table each."""
    for of in plan.convolutions:
        announce(of.name)
        cells: dict[str, Cells] = {task: {} for task in products.TASKS}
        for density in plan.convolved_densities:
            timers = convolutions.timers(of, density)
            for (task, name), values in measure(plan, timers, plan.sweep_rounds).items():
                cells[task][percent(density), name] = values
        for task in products.TASKS:
            yield Table(f"{of.name}, {task}", cells[task], "density of the spikes, %")


def density(plan: Plan) -> Iterator[Table]:
    """W1 to W3 with inputs and all layers at one density, from silence to all spiking at every step."""
    swept = [(workloads[0], (FORWARD, GRADIENT), ()) for workloads in plan.single]
    swept += [(workload, (INFERENCE, TRAINING), ()) for workload in plan.recurrent]
    swept += [(plan.deep, (INFERENCE, TRAINING), plan.capped)]
    for workload, tasks, capped in swept:
        announce(f"{workload.name}, by density")
        cells: dict[str, Cells] = {task: {} for task in tasks}
        for share in plan.densities:
            at_share = workload.at_density(share)
            timers = networks.timers(at_share, plan.swept, tasks)
            timers |= networks.timers(at_share, capped, (TRAINING,))
            for (task, name), values in measure(plan, timers, plan.sweep_rounds).items():
                cells[task][percent(share), name] = values
        for task in tasks:
            title = f"{workload.name}, {task}, by density"
            yield Table(title, cells[task], "density of inputs and spikes, %", picture=DENSITY)


def scaling(plan: Plan) -> Iterator[Table]:
    """Time against neurons, batch and steps."""
    deep = plan.deep
    swept = {
        "neurons": (GRADIENT, {each.widths[0]: each for each in plan.neurons}),
        "batch": (TRAINING, {batch: replace(deep, batch=batch) for batch in plan.batches}),
        "steps": (TRAINING, {steps: replace(deep, steps=steps) for steps in plan.steps}),
    }
    for across, (task, sizes) in swept.items():
        first = next(iter(sizes.values()))
        what = f"W1, {first.steps} steps" if across == "neurons" else deep.name
        announce(f"{what}, by {across}")
        cells: Cells = {}
        for size, workload in sizes.items():
            timers = networks.timers(workload, plan.swept, (task,))
            for (_, name), values in measure(plan, timers, plan.sweep_rounds).items():
                cells[f"{size}", name] = values
        yield Table(f"{what}, {task}, by {across}", cells, across, picture=SCALING)


def cores(plan: Plan) -> Iterator[Table]:
    """A training step on one core and on more."""
    announce(f"{plan.deep.name}, by cores")
    cells: Cells = {}
    for count in plan.cores:
        times = fresh.ask("on_cores", plan.deep, count, plan.rounds, *plan.swept)
        cells |= {(f"{count}", name): values for name, values in times}
    yield Table(f"{plan.deep.name}, {TRAINING}, by cores", cells, "cores", picture=SCALING)


def processes(plan: Plan) -> Iterator[Table]:
    """A data-parallel training step of several processes, the cores divided among them, by their number."""
    for workload in (plan.deep, plan.recurrent[0]):
        title = f"{workload.name}, {TRAINING}, by processes"
        announce(title)
        cells: Cells = {(f"{count}", name): [] for name in networks.KERNELS for count in plan.processes}
        turns = [*cells] * plan.fresh_rounds
        random.Random(timing.SEED).shuffle(turns)
        for count, name in turns:
            answer = fresh.ask("in_processes", workload, count, plan.rounds, name)
            cells[count, name].extend(answer["seconds"])
        yield Table(title, cells, "processes")


def start(plan: Plan) -> Iterator[Table]:
    """What new processes take to import, to make their first training step, and how far their memory grows."""
    announce("new processes")
    programs = {name: f"import {name}" for name in ("jax", "jax, jaxtyping", "snnjax")}
    imports = {
        ("import", name): lambda _, p=program: fresh.seconds_of(p) for name, program in programs.items()
    }
    yield Table("Import, in a new process", measure(plan, imports, plan.fresh_rounds))
    keys = [(task, name) for name in (*plan.swept, *plan.capped) for task in (TRAINING, DONATED)]
    first: Cells = {key: [] for key in keys}
    growth: Cells = {key: [] for key in keys}
    turns = keys * plan.fresh_rounds
    random.Random(timing.SEED).shuffle(turns)
    for task, name in turns:
        answer = fresh.ask("first_steps", plan.deep, name, task)
        first[task, name].append(answer["seconds"])
        if answer["growth"] is not None:  # if the system lets a process reset its peak
            growth[task, name].append(answer["growth"])
    yield Table(f"{plan.deep.name}, first {TRAINING} with its compilation", first)
    if all(growth.values()):
        yield Table(f"{plan.deep.name}, growth of memory in three training steps", growth, unit=MEGABYTES)


def on_ipus(plan: Plan) -> Iterator[Table]:
    """The IPU Model: a network of the published comparison, dense and sparse, by activity; then over several IPUs."""
    from tests.benchmarks import ipus

    announce(f"{plan.on_ipu.name} on the IPU Model")
    measured: dict[str, Cells] = {what: {} for what in ipus.UNITS}
    for rate in plan.activities:
        for name in (*ipus.DENSE, ipus.SPARSE):
            answer = fresh.ask("on_ipus", plan.on_ipu.at_activity(rate), name, 1, plan.tiles)
            for what, value in answer.items():
                measured[what][percent(rate), name] = [value]
    for what, unit in ipus.UNITS.items():
        yield Table(f"{plan.on_ipu.name}, IPU Model ({fresh.IPU_VERSION}), {what}", measured[what], unit=unit)
    cells: Cells = {}
    for count in plan.ipus:
        workload = plan.on_ipu.at_activity(plan.activities[0])
        of_all = replace(workload, batch=count * workload.batch)
        answer = fresh.ask("on_ipus", of_all, ipus.SPARSE, count, plan.tiles)
        cells[f"{count}", ipus.SPARSE] = [answer[ipus.MODELLED]]
    yield Table(
        f"{plan.on_ipu.name}, {ipus.MODELLED}, a batch an IPU", cells, "IPUs", unit=ipus.UNITS[ipus.MODELLED]
    )


def beside(plan: Plan) -> Iterator[Table]:
    """The IPU Model: sparse networks beside dense ones on the matrix unit, by width and batch."""
    from tests.benchmarks import beside_dense

    for kind in ("feed-forward", "recurrent"):
        cells: Cells = {}
        for width, batch in plan.beside:
            announce(f"sparse beside dense, {kind}, {width}, batch {batch}, on the IPU Model")
            workload = beside_dense.of_size(width, batch, kind == "recurrent", plan.beside_steps)
            answer = fresh.ask("beside_dense", workload, plan.tiles, *plan.beside_activities)
            cells.update({(workload.name, name): [value] for name, value in answer.items()})
        title = f"Sparse beside dense, {kind}, IPU Model ({fresh.IPU_VERSION}), forward and backward"
        yield Table(title, cells, "width, batch", unit="cycles of a time step")


def pipelines(plan: Plan) -> Iterator[Table]:
    """The IPU Model: a training step as a pipeline."""
    for workload, ipus, pieces, rounds in plan.pipelines:
        announce(f"{workload.name}, pipeline over {ipus} IPUs, {pieces} pieces, on the IPU Model")
        answer = fresh.ask("pipelined", workload, plan.tiles, ipus, pieces, rounds)
        column = f"{ipus} IPUs, {pieces} pieces, {rounds} rounds"
        for what, values in answer.items():
            cells: Cells = {(column, name): [value] for name, value in values.items()}
            title = f"{workload.name}, pipeline, IPU Model ({fresh.IPU_VERSION}), {what}"
            yield Table(title, cells, unit=what)


SECTIONS: dict[str, Callable[[Plan], Iterator[Table]]] = {
    "W1": single,
    "W2": recurrent,
    "W3": deep,
    "W4": product,
    "W5": models,
    "W6": mixtures,
    "W7": camera,
    "W8": delays,
    "W9": storage,
    "W10": of_gradients,
    "convolution": convolution,
    "density": density,
    "scaling": scaling,
    "cores": cores,
    "processes": processes,
    "start": start,
    "forms": forms,
    "ipu": on_ipus,
    "beside": beside,
    "pipeline": pipelines,
}
