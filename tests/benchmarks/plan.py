"""At which sizes the sections run, how often, and which alternatives take part."""

from dataclasses import dataclass, replace

from tests.benchmarks import timing
from tests.benchmarks.programs import networks, neurons
from tests.benchmarks.programs.cameras import Camera
from tests.benchmarks.programs.convolutions import Convolved
from tests.benchmarks.programs.deep import QUARTER, Deep
from tests.benchmarks.programs.residuals import MS, Residual
from tests.benchmarks.workloads import N_MNIST, W3, Workload, stacked, w1, w2

DELAYED = neurons.Shape(recurrent=False)
FEW = neurons.Shape(128, (4096,), 10, batch=16)
MIXED = neurons.Shape(700, (256, 256, 256), 256, recurrent=False)


@dataclass(frozen=True)
class Plan:
    """The whole benchmark."""

    rounds: int = 15
    sweep_rounds: int = 7
    fresh_rounds: int = 3  # new processes
    min_seconds: float = timing.MIN_SECONDS

    # W1 by size and rate, W2 by batch, W3, W4 by (neurons, batch) and density.
    single: tuple[tuple[Workload, ...], ...] = tuple(
        tuple(w1(neurons, rate) for rate in (0.01, 0.05, 0.2)) for neurons in (512, 2048)
    )
    recurrent: tuple[Workload, ...] = (w2(64), w2(128))
    deep: Workload = W3
    products: tuple[tuple[int, int], ...] = tuple((n, b) for n in (1024, 4096) for b in (1, 32, 128))
    # W5: networks of each neuron model, as for spoken digits and as for a camera.
    models: tuple[neurons.Shape, ...] = (
        neurons.Shape(),
        neurons.Shape(2312, (1024, 512, 256), 10, batch=48, recurrent=False),
    )
    # W6: layers of LIF neurons in front of one that is scanned.
    mixed: neurons.Shape = MIXED
    # W7: convolutions after a camera, and W8: delays.
    cameras: tuple[Camera, ...] = (Camera(steps=20), Camera(steps=100))
    delayed: neurons.Shape = DELAYED
    max_delays: tuple[int, int] = (30, 10)  # axonal, synaptic
    # W11: a few time steps a call.
    streamed: tuple[Workload, ...] = tuple(
        replace(W3, batch=batch, steps=steps) for batch, steps in ((1, 1), (4, 1), (16, 1), (48, 1), (1, 10))
    )
    # W12: residual networks.
    residuals: tuple[Residual, ...] = (Residual(), Residual(MS, stages=1))
    # W14: whole networks of images; the first in inference one by one, too.
    images: tuple[Deep, ...] = (
        Deep(),
        Deep(batch=1),
        Deep(stages=QUARTER),
        Deep("sew_resnet"),
        Deep("spikformer"),
    )
    # W13: a recurrent layer, and the synapses of each neuron, 1 %.
    few_synapses: tuple[neurons.Shape, int] = (FEW, 41)
    product_densities: tuple[float, ...] = (0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1)

    # Convolutions of the network for a camera.
    convolutions: tuple[Convolved, ...] = (Convolved((34, 34, 2), 5, 12), Convolved((17, 17, 12), 5, 32))
    convolved_densities: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1)

    # Sweeps. The forms of the reference are of interest where one begins to beat the other.
    densities: tuple[float, ...] = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1)
    neurons: tuple[Workload, ...] = tuple(w1(n, 0.02, steps=100) for n in (256, 512, 1024, 2048, 4096))
    batches: tuple[int, ...] = (1, 4, 16, 48, 128, 256)
    steps: tuple[int, ...] = (10, 50, 100, 200, 500)
    cores: tuple[int, ...] = (1, 2)
    processes: tuple[int, ...] = (1, 2)
    forms: tuple[tuple[int, int], ...] = tuple(
        (n, b) for n in (1024, 4096) for b in (1, 2, 4, 8, 16, 48, 128)
    )
    form_densities: tuple[float, ...] = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)

    # On the IPU Model: activities of hidden layers, IPUs with a batch each, tiles of each.
    on_ipu: Workload = N_MNIST
    activities: tuple[float, ...] = (0.01, 0.05, 0.1)
    ipus: tuple[int, ...] = (1, 4, 16)
    tiles: int = 1472
    # Pipelines there: IPUs, pieces of the batch, stages on an IPU.
    pipelines: tuple[tuple[Workload, int, int, int], ...] = (
        (stacked(8, 1024, batch=1024), 4, 8, 1),
        (stacked(8, 1024, batch=1024), 4, 8, 2),
        (stacked(16, 1024, batch=512), 4, 8, 2),
        *((stacked(8, 512, batch=64 * pieces), 4, pieces, 1) for pieces in (8, 16, 32)),
    )

    exact: tuple[str, ...] = tuple(networks.EXACT)
    swept: tuple[str, ...] = (*networks.PLAIN, *networks.KERNELS)
    capped: tuple[str, ...] = tuple(networks.CAPPED)
    peers: tuple[str, ...] = ()  # interpreters in which to look for other libraries


_QUICK = ("plain JAX, lax.scan", "snnjax, events")


def quick(peers: tuple[str, ...] = ()) -> Plan:
    """Everything once, as small as can be and in few shapes, which are what compiles: shows that it runs, no more."""
    single, deep = w1(32, 0.1, steps=8, batch=4), Workload("W3, small", (40, 24, 10), 8, 4, 0.1, (0.1, 0.1))
    once = Plan(rounds=1, sweep_rounds=1, fresh_rounds=1, min_seconds=0.0, peers=peers)
    return replace(
        once,
        single=((single,),),
        models=(neurons.Shape(12, (8,), 3, steps=4, batch=2),),
        mixed=neurons.Shape(12, (8, 8, 8), 8, steps=4, batch=2, recurrent=False),
        cameras=(Camera(steps=6, batch=2, channels=(3, 4), kernel=3, pixels=7, margin=1, rate=0.1),),
        residuals=(Residual(channels=3, stages=2, edge=6, steps=6, batch=2, outputs=3, rate=0.1),),
        images=(Deep(stages=((3,), (4,)), edge=4, batch=2),),
        few_synapses=(neurons.Shape(12, (24,), 3, steps=6, batch=2, rate=0.2), 6),
        delayed=neurons.Shape(12, (8,), 3, steps=4, batch=2, recurrent=False),
        max_delays=(2, 2),
        streamed=(replace(deep, batch=1, steps=1), replace(deep, batch=1, steps=2)),
        recurrent=(replace(w2(2), widths=(40, 24, 10), steps=8),),
        deep=deep,
        products=((64, 2),),
        product_densities=(0.1,),
        convolutions=(Convolved((4, 5, 2), 3, 3, rows=2),),
        convolved_densities=(0.3,),
        densities=(0.1,),
        neurons=(single,),
        batches=(deep.batch,),
        steps=(deep.steps,),
        forms=((64, 2),),
        form_densities=(0.1,),
        on_ipu=deep,
        activities=(0.1,),
        ipus=(1, 2),
        tiles=16,
        pipelines=((stacked(2, 16, batch=8, steps=3, rate=0.25), 2, 4, 1),),
        exact=_QUICK,
        swept=_QUICK,
        capped=("snnjax, events, capacity 10 %",),
    )
