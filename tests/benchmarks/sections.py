"""The sections of the benchmark, each of which yields its tables."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tests.benchmarks import peers, process
from tests.benchmarks.plan import Plan
from tests.benchmarks.programs import (
    cameras,
    convolutions,
    deep,
    delayed,
    few_synapses,
    fresh,
    gradients,
    mixed,
    networks,
    neurons,
    products,
    residuals,
    stored,
    streaming,
)
from tests.benchmarks.programs.networks import DONATED, FORWARD, GRADIENT, INFERENCE, TRAINING
from tests.benchmarks.tables import (
    DENSITY,
    MEGABYTES,
    PRODUCTS,
    SCALING,
    SPEED,
    Cells,
    Programs,
    Table,
    measure,
    sweep,
    table_of,
)
from tests.benchmarks.timing import Program, announce, shuffled
from tests.benchmarks.workloads import Product, Workload


def percent(share: float) -> str:
    return f"{100 * share:g} %"


def single(plan: Plan) -> Iterator[Table]:
    """W1."""
    for workloads in plan.single:
        title = workloads[0].name
        announce(title)
        programs = {
            (f"{percent(workload.rate)}, {task}", name): program
            for workload in workloads
            for (task, name), program in networks.programs(workload, plan.exact, (FORWARD, GRADIENT)).items()
        }
        yield table_of(title, measure(plan, programs, plan.rounds), picture=SPEED)


def network(plan: Plan, workload: Workload) -> Table:
    """Inference and training, which with a capacity computes another gradient."""
    announce(workload.name)
    interpreters = dict(peers.labelled(plan.peers))
    programs = {
        **networks.programs(workload, plan.exact, (INFERENCE, TRAINING, DONATED)),
        **networks.programs(workload, plan.capped, (TRAINING, DONATED)),
        **peers.programs(workload, interpreters),
    }
    turns = measure(plan, programs, plan.rounds, interpreters)
    return table_of(workload.name, turns, picture=SPEED)


def recurrent(plan: Plan) -> Iterator[Table]:
    """W2."""
    for workload in plan.recurrent:
        yield network(plan, workload)


def dense(plan: Plan) -> Iterator[Table]:
    """W3."""
    yield network(plan, plan.deep)


def run(plan: Plan, title: str, programs: Iterable[tuple[tuple[str, str], Program]]) -> Iterator[Table]:
    """One table."""
    announce(title)
    yield table_of(title, measure(plan, dict(programs), plan.rounds))


def models(plan: Plan) -> Iterator[Table]:
    """W5."""
    for shape in plan.models:
        yield from run(plan, f"W5, {shape.name}", neurons.programs(shape))


def mixtures(plan: Plan) -> Iterator[Table]:
    """W6."""
    yield from run(plan, "W6, one Izhikevich layer behind LIF layers", mixed.programs(plan.mixed))


def camera(plan: Plan) -> Iterator[Table]:
    """W7."""
    interpreters = dict(peers.labelled(plan.peers))
    for each in plan.cameras:
        announce(each.name)
        programs = cameras.programs(each)
        if interpreters:
            images = process.ask(functools.partial(cameras.images, each))
            programs |= peers.image_programs(images, interpreters)
        turns = measure(plan, programs, min(plan.rounds, plan.sweep_rounds), interpreters)
        yield table_of(each.name, turns)
        memory = process.ask(functools.partial(cameras.memory, each))
        yield Table(f"{each.name}, temporary memory of the program", memory, unit=MEGABYTES)


def residual(plan: Plan) -> Iterator[Table]:
    """W12."""
    for each in plan.residuals:
        announce(each.name)
        yield table_of(
            each.name, measure(plan, residuals.programs(each), min(plan.rounds, plan.sweep_rounds))
        )


def delays(plan: Plan) -> Iterator[Table]:
    """W8."""
    programs = delayed.programs(plan.delayed, *plan.max_delays)
    yield from run(plan, f"W8, delays, {plan.delayed.name}", programs)


def few(plan: Plan) -> Iterator[Table]:
    """W13."""
    shape, fan_out = plan.few_synapses
    title = f"W13, {fan_out} synapses of each recurrent neuron, {shape.name}"
    announce(title)
    yield table_of(title, measure(plan, dict(few_synapses.programs(shape, fan_out)), plan.sweep_rounds))


def whole(plan: Plan) -> Iterator[Table]:
    """W14."""
    interpreters = peers.in_both_orders(dict(peers.labelled(plan.peers)))
    for each in plan.images:
        announce(each.name)
        rounds = min(plan.rounds, plan.sweep_rounds)
        yield table_of(each.name, measure(plan, deep.programs(each, interpreters), rounds, interpreters))
    first, plain = plan.images[0], deep.PLAIN
    names = (plain, deep.FULL, deep.CAPPED)
    peak = {
        (deep.GRADIENT, name): [process.ask(functools.partial(deep.memory, first, name))] for name in names
    }
    yield Table(f"{first.name}, peak memory of the process", peak, unit=MEGABYTES)


def storage(plan: Plan) -> Iterator[Table]:
    """W9."""
    for workload in (plan.deep, plan.recurrent[0]):
        title = f"W9, weights as they are stored, inference, {workload.name}"
        yield from run(plan, title, stored.programs(workload))


def of_gradients(plan: Plan) -> Iterator[Table]:
    """W10."""
    title = f"W10, training step with other gradients, {plan.deep.name}"
    yield from run(plan, title, gradients.programs(plan.deep))


def streams(plan: Plan) -> Iterator[Table]:
    """W11."""
    widths = "-".join(map(str, plan.streamed[0].widths))
    yield from run(plan, f"W11, a few time steps a call, {widths}", streaming.programs(plan.streamed))


def product(plan: Plan) -> Iterator[Table]:
    """W4."""
    for shape in plan.products:
        for table in products_by_density(plan, shape, plan.product_densities, products.ALTERNATIVES):
            yield table._replace(picture=PRODUCTS)


def forms(plan: Plan) -> Iterator[Table]:
    """Both forms of the reference of `spike_matmul`: gathered rows and a dense product."""
    for shape in plan.forms:
        for table in products_by_density(plan, shape, plan.form_densities, [*products.FORMS]):
            yield table._replace(title=f"{table.title}, forms of the reference")


def products_by_density(
    plan: Plan, shape: tuple[int, int], densities: Sequence[float], names: Sequence[str]
) -> Iterator[Table]:
    """The product and its backward passes, a table each."""
    programs = {each: products.programs(Product(*shape, each), names) for each in densities}
    yield from by_density(plan, Product(*shape, 0).name, products.TASKS, programs)


def convolution(plan: Plan) -> Iterator[Table]:
    """`spike_conv` and its backward passes, a table each."""
    for of in plan.convolutions:
        programs = {each: convolutions.programs(of, each) for each in plan.convolved_densities}
        yield from by_density(plan, of.name, products.TASKS, programs)


def by_density(
    plan: Plan, title: str, tasks: Sequence[str], programs: Mapping[float, Programs], **rest
) -> Iterator[Table]:
    """A sweep for each task, of programs by task and alternative at each density."""
    announce(f"{title}, by density")
    across = rest.pop("across", "density of the spikes, %")
    for task in tasks:
        swept = {
            (percent(density), name): program
            for density, own in programs.items()
            for (of_task, name), program in own.items()
            if of_task == task
        }
        yield table_of(f"{title}, {task}", sweep(plan, swept, plan.sweep_rounds), across=across, **rest)


def density(plan: Plan) -> Iterator[Table]:
    """W1 to W3 with inputs and all layers at one density, from silence to all spiking at every step."""
    swept = [(workloads[0], (FORWARD, GRADIENT), ()) for workloads in plan.single]
    swept += [(workload, (INFERENCE, TRAINING), ()) for workload in plan.recurrent]
    swept += [(plan.deep, (INFERENCE, TRAINING), plan.capped)]
    across = "density of inputs and spikes, %"
    for workload, tasks, capped in swept:
        programs = {
            share: {
                **networks.programs(workload.at_density(share), plan.swept, tasks),
                **networks.programs(workload.at_density(share), capped, (TRAINING,)),
            }
            for share in plan.densities
        }
        for table in by_density(plan, workload.name, tasks, programs, across=across, picture=DENSITY):
            yield table._replace(title=f"{table.title}, by density")


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
        programs = {
            (f"{size}", name): program
            for size, workload in sizes.items()
            for (_, name), program in networks.programs(workload, plan.swept, (task,)).items()
        }
        turns = sweep(plan, programs, plan.sweep_rounds)
        yield table_of(f"{what}, {task}, by {across}", turns, across=across, picture=SCALING)


def cores(plan: Plan) -> Iterator[Table]:
    """A training step on one core and on more."""
    announce(f"{plan.deep.name}, by cores")
    programs = {
        (f"{count}", name): functools.partial(fresh.on_cores, plan.deep, count, name)
        for count in plan.cores
        for name in plan.swept
    }
    turns = measure(plan, programs, plan.rounds)
    yield table_of(f"{plan.deep.name}, {TRAINING}, by cores", turns, across="cores", picture=SCALING)


def processes(plan: Plan) -> Iterator[Table]:
    """A data-parallel training step of several processes, the cores divided among them, by their number."""
    for workload in (plan.deep, plan.recurrent[0]):
        title = f"{workload.name}, {TRAINING}, by processes"
        announce(title)
        cells: Cells = {(f"{count}", name): [] for name in networks.KERNELS for count in plan.processes}
        for count, name in shuffled([*cells], plan.fresh_rounds):
            answer = process.ask(
                functools.partial(fresh.in_processes, workload, int(count), plan.rounds, name)
            )
            cells[count, name].extend(answer["seconds"])
        yield Table(title, cells, "processes")


def start(plan: Plan) -> Iterator[Table]:
    """What new processes take to import, to make their first training step, and how far their memory grows."""
    announce("new processes")
    programs = {name: f"import {name}" for name in ("jax", "jax, jaxtyping", "snnjax")}
    for program in programs.values():  # reads the files from the disk
        fresh.seconds_of(program)
    imports: Cells = {("import", name): [] for name in programs}
    for column, name in shuffled([*imports], plan.fresh_rounds):
        imports[column, name].append(fresh.seconds_of(programs[name]))
    yield Table("Import, in a new process", imports)
    keys = [(task, name) for name in (*plan.swept, *plan.capped) for task in (TRAINING, DONATED)]
    first: Cells = {key: [] for key in keys}
    growth: Cells = {key: [] for key in keys}
    for task, name in shuffled(keys, plan.fresh_rounds):
        answer = process.ask(functools.partial(fresh.first_steps, plan.deep, name, task))
        first[task, name].append(answer["seconds"])
        if answer["growth"] is not None:  # if the system lets a process reset its peak
            growth[task, name].append(answer["growth"])
    yield Table(f"{plan.deep.name}, first {TRAINING} with its compilation", first)
    if all(growth.values()):
        yield Table(f"{plan.deep.name}, growth of memory in three training steps", growth, unit=MEGABYTES)


def on_ipus(plan: Plan) -> Iterator[Table]:
    """The IPU Model: a network of the published comparison, dense and sparse, by activity; then over several IPUs."""
    from tests.benchmarks.devices import ipus

    announce(f"{plan.on_ipu.name} on the IPU Model")
    measured: dict[str, Cells] = {what: {} for what in ipus.UNITS}
    for rate in plan.activities:
        for name in (*ipus.DENSE, ipus.SPARSE):
            answer = process.ask(
                functools.partial(fresh.on_ipus, plan.on_ipu.at_activity(rate), name, 1, plan.tiles)
            )
            for what, value in answer.items():
                measured[what][percent(rate), name] = [value]
    for what, unit in ipus.UNITS.items():
        yield Table(f"{plan.on_ipu.name}, IPU Model ({fresh.IPU_VERSION}), {what}", measured[what], unit=unit)
    cells: Cells = {}
    for count in plan.ipus:
        workload = plan.on_ipu.at_activity(plan.activities[0])
        of_all = replace(workload, batch=count * workload.batch)
        answer = process.ask(functools.partial(fresh.on_ipus, of_all, ipus.SPARSE, count, plan.tiles))
        cells[f"{count}", ipus.SPARSE] = [answer[ipus.MODELLED]]
    yield Table(
        f"{plan.on_ipu.name}, {ipus.MODELLED}, a batch an IPU", cells, "IPUs", unit=ipus.UNITS[ipus.MODELLED]
    )


def pipelines(plan: Plan) -> Iterator[Table]:
    """The IPU Model: a training step as a pipeline."""
    for workload, ipus, pieces, rounds in plan.pipelines:
        announce(f"{workload.name}, pipeline over {ipus} IPUs, {pieces} pieces, on the IPU Model")
        answer = process.ask(functools.partial(fresh.pipelined, workload, plan.tiles, ipus, pieces, rounds))
        column = f"{ipus} IPUs, {pieces} pieces, {rounds} rounds"
        for what, values in answer.items():
            cells: Cells = {(column, name): [value] for name, value in values.items()}
            title = f"{workload.name}, pipeline, IPU Model ({fresh.IPU_VERSION}), {what}"
            yield Table(title, cells, unit=what)


SECTIONS: dict[str, Callable[[Plan], Iterator[Table]]] = {
    "W1": single,
    "W2": recurrent,
    "W3": dense,
    "W4": product,
    "W5": models,
    "W6": mixtures,
    "W7": camera,
    "W8": delays,
    "W9": storage,
    "W10": of_gradients,
    "W11": streams,
    "W12": residual,
    "W13": few,
    "W14": whole,
    "convolution": convolution,
    "density": density,
    "scaling": scaling,
    "cores": cores,
    "processes": processes,
    "start": start,
    "forms": forms,
    "ipu": on_ipus,
    "pipeline": pipelines,
}
