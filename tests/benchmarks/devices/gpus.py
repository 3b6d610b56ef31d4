"""Measure networks on a GPU beside plain JAX: as they run there by default, and with `implementation="reference"`.

    python -m tests.benchmarks.devices.gpus --out out/bench-gpu [--quick]

Everything is timed in one process, since processes would share the memory of the GPU. Compiling takes most of the time,
some minutes. Without a GPU the default device is measured.
"""

import argparse
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax

from snnjax._types import Params, Signal
from tests.benchmarks import report
from tests.benchmarks.plan import Plan, quick
from tests.benchmarks.programs import cameras, networks, neurons
from tests.benchmarks.programs.networks import INFERENCE, TRAINING
from tests.benchmarks.tables import Table, table_of
from tests.benchmarks.timing import Timer, announce, measure, say, timer
from tests.benchmarks.workloads import LEARNING_RATE, Workload

DEFAULT, REFERENCE, CAPPED = "snnjax", "snnjax, implementation='reference'", "snnjax, lists of 10 %"
LAYERS = "plain JAX, layer by layer"
TASKS = (TRAINING, INFERENCE)
ADLIF = "adLIF"

Timers = dict[tuple[str, str], Timer]
# Those of a network, and the `difference` of its inference.
Measured = tuple[Timers, float]


def difference(function: Callable[..., Any], given: tuple[Any, ...]) -> float:
    """The largest difference of results to those of a CPU, as a share of the largest, with products of full precision.

    With others it would be that of the products: a spike more or less is a large difference.
    """
    (cpu, *_) = jax.devices("cpu")
    with jax.default_matmul_precision("highest"):
        ours, theirs = (np.asarray(jax.jit(function)(*each)) for each in (given, jax.device_put(given, cpu)))
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


def of_workload(workload: Workload) -> Measured:
    """W2 or W3, through `lif_network`."""
    alternatives: dict[str, Callable[..., Any]] = {
        **{name: plain.forward for name, plain in networks.PLAIN.items()},
        DEFAULT: networks.through_snnjax,
        REFERENCE: networks.reference,
        CAPPED: networks.capped,
    }
    layers, forms = networks.data(workload)
    given = {
        INFERENCE: (layers, forms["dense"]),
        TRAINING: networks.arguments(workload, "snnjax, dense input", TRAINING)(),
    }
    timers = {
        (task, name): timed(networks.task_of(forward, task, workload.readout), given[task])
        for task in TASKS
        for name, forward in alternatives.items()
    }
    inference = networks.task_of(alternatives[DEFAULT], INFERENCE, workload.readout)
    return timers, difference(inference, given[INFERENCE])


def of_network(net, capped, plain, params: Params, inputs: Signal, labels) -> Measured:
    """A network of another kind, through `Network.apply`."""
    alternatives = {
        LAYERS: plain,
        DEFAULT: applied(net),
        REFERENCE: applied(net, implementation="reference"),
        CAPPED: applied(capped),
    }
    optimiser = optax.adam(LEARNING_RATE)
    given = {INFERENCE: (params, inputs), TRAINING: (params, optimiser.init(params), inputs, labels)}
    timers = {
        (task, name): timed(neurons.tasks(forward, optimiser)[task], given[task])
        for task in TASKS
        for name, forward in alternatives.items()
    }
    return timers, difference(neurons.tasks(alternatives[DEFAULT], optimiser)[INFERENCE], given[INFERENCE])


def applied(net, **options) -> Callable[[Any, Any], Any]:
    return lambda params, inputs: net.apply(params, None, inputs, **options)[0].output


def timed(function: Callable[..., Any], given: tuple[Any, ...]) -> Timer:
    return timer(jax.jit(function), lambda: given)


def of_neurons(shape: neurons.Shape) -> Measured:
    """Recurrent layers of adaptive neurons."""
    net, *given = neurons.made(shape, ADLIF, capped=False)
    capped, *_ = neurons.made(shape, ADLIF, capped=True)
    return of_network(net, capped, functools.partial(neurons.by_hand, net), *given)


def of_camera(camera: cameras.Camera) -> Measured:
    """Convolutions."""
    net = cameras.made(camera)
    params, inputs, _, labels = cameras.data(camera)
    plain = functools.partial(cameras.by_hand, net, camera.pool)
    return of_network(net, cameras.made(camera, capped=True), plain, params, inputs, labels)


def tables(plan: Plan) -> Iterator[Table]:
    """One for each network."""
    (device, *_) = jax.devices()
    networks_of = [
        *((each.name, functools.partial(of_workload, each)) for each in (plan.deep, plan.recurrent[-1])),
        (f"{ADLIF} {plan.models[0].name}", functools.partial(of_neurons, plan.models[0])),
        (plan.cameras[0].name, functools.partial(of_camera, plan.cameras[0])),
    ]
    for name, made in networks_of:
        announce(name)
        timers, apart = made()
        title = f"{name}, on {device.device_kind}; with products of full precision {apart:.0e} from the CPU"
        yield table_of(title, measure(timers, plan.rounds, plan.min_seconds))


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and write after each table, so that an interrupted run keeps what it has."""
    summary = str(__doc__).splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.devices.gpus", description=summary)
    parser.add_argument("--out", type=Path, default=Path("out/bench-gpu"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only shows that it runs")
    given, found = parser.parse_args(words), list[Table]()
    for table in tables(quick() if given.quick else Plan()):
        say(report.as_markdown(table))
        found.append(table)
        report.write(given.out, found)


if __name__ == "__main__":
    main()
