"""W2, W3 and W7 through other libraries, each as its own documentation writes such a network.

Their processes may have an interpreter of their own: this file and `workloads` need numpy alone. SpikingJelly and Norse
compute the workload's equations; snnTorch and Spyx subtract the threshold after the decay, and spike a little less for
it.
"""

import functools
import os
import subprocess
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tests.benchmarks import timing, workloads
from tests.benchmarks.timing import Program, Timer, say
from tests.benchmarks.workloads import DECAY, LEARNING_RATE, SLOPE, Layer, Workload

INFERENCE, TRAINING = "inference", "training step"
# Each runs its task once, to the end; the inference returns the outputs summed over time.
Tasks = dict[str, Callable[[], Any]]


def torch_tasks(workload: Workload, modules: Sequence[Any], forward: Callable[[Any], Any]) -> Tasks:
    """The tasks of ``forward(inputs) -> outputs summed over time``, whose parameters are those of the modules."""
    inputs = workloads.bernoulli(workload.input_shape, workload.rate)
    return tasks_in_torch(inputs, workloads.labels(workload), modules, forward)


def tasks_in_torch(spikes, classes, modules: Sequence[Any], forward: Callable[[Any], Any]) -> Tasks:
    """The tasks of ``forward(inputs) -> logits``."""
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    inputs, labels = torch.from_numpy(spikes), torch.from_numpy(classes).long()
    parameters = [parameter for module in modules for parameter in module.parameters()]
    optimiser = torch.optim.Adam(parameters, LEARNING_RATE)

    def infer():
        with torch.inference_mode():
            return forward(inputs)

    def train() -> None:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(forward(inputs), labels).backward()
        optimiser.step()

    return {INFERENCE: infer, TRAINING: train}


def with_weights(linear, weights):
    """`linear` without a bias, whose weights are these [inputs, outputs]."""
    import torch

    linear.bias = None
    linear.weight = torch.nn.Parameter(torch.from_numpy(weights.T.copy()))
    return linear


def snntorch(workload: Workload, layers: list[Layer]) -> Tasks:
    import snntorch as snn
    from torch import nn

    surrogate = snn.surrogate.fast_sigmoid(slope=SLOPE)
    linears = [with_weights(nn.Linear(*layer.weights.shape), layer.weights) for layer in layers]
    neurons: list[Any] = []
    for layer in layers:
        if layer.recurrent is None:
            neurons.append(snn.Leaky(DECAY, spike_grad=surrogate))
        else:
            neurons.append(snn.RLeaky(DECAY, linear_features=len(layer.recurrent), spike_grad=surrogate))
            with_weights(neurons[-1].recurrent, layer.recurrent)
    if workload.readout:
        neurons[-1] = snn.Leaky(DECAY, reset_mechanism="none")

    def forward(inputs):
        states = [
            each.init_rleaky() if isinstance(each, snn.RLeaky) else (each.init_leaky(),) for each in neurons
        ]
        total = 0
        for x in inputs:
            for index, (linear, neuron) in enumerate(zip(linears, neurons, strict=True)):
                x, *state = neuron(linear(x), *states[index])
                states[index] = (x, *state) if isinstance(neuron, snn.RLeaky) else state
            total = total + (states[-1][-1] if workload.readout else x)
        return total

    return torch_tasks(workload, [*linears, *neurons], forward)


def superspike(slope: float) -> Callable[[Any], Any]:
    """``[x >= 0]`` with the derivative ``1 / (1 + slope |x|)^2``; that of SuperSpike is ``slope / (1 + |x|)^2``."""
    import torch

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            ctx.save_for_backward(*given)
            return (given[0] >= 0).to(given[0])

        @staticmethod
        def backward(ctx, *gradients):
            (x,) = ctx.saved_tensors
            return gradients[0] / (1 + slope * x.abs()).square()

    return Spike.apply


def spikingjelly(workload: Workload, layers: list[Layer]) -> Tasks:
    from spikingjelly.activation_based import functional, layer, neuron
    from torch import nn

    time_constant = 1 / (1 - DECAY)

    def lif(step_mode: str):
        switches = {"decay_input": False, "v_reset": None, "detach_reset": True}
        return neuron.LIFNode(
            time_constant, surrogate_function=superspike(SLOPE), step_mode=step_mode, **switches
        )

    modules: list[Any] = []
    for each in layers:
        modules.append(with_weights(layer.Linear(*each.weights.shape, step_mode="m"), each.weights))
        if each.recurrent is None:
            modules.append(lif("m"))
        else:
            feedback = with_weights(nn.Linear(*each.recurrent.shape), each.recurrent)
            node = layer.ElementWiseRecurrentContainer(
                lif("s"), lambda y, x, f=feedback: x + f(y), step_mode="m"
            )
            node.feedback = feedback  # so that its weights are parameters
            modules.append(node)
    if workload.readout:
        modules[-1] = neuron.NonSpikingLIFNode(time_constant, decode="mean-mem")
    network = nn.Sequential(*modules)
    # Its readout is a mean over time of membranes to which inputs count only in part.
    scale = workload.steps * time_constant

    def forward(inputs):
        functional.reset_net(network)
        return scale * network(inputs) if workload.readout else network(inputs).sum(0)

    return torch_tasks(workload, [network], forward)


class Images(NamedTuple):
    """W7: images over time, their labels, and a network of convolutions with sum pools after them."""

    inputs: Any  # [time, batch, height, width, channels]
    labels: Any
    convolutions: tuple[Any, ...]  # weights [height, width, inputs, outputs] and bias of each
    readout: Any  # weights [inputs, outputs] and bias
    pool: int
    slope: float  # of the surrogate
    readout_decay: float


def spikingjelly_images(images: Images) -> Tasks:
    """Images lie with their channels last, which takes less time here than the default order."""
    import torch
    from spikingjelly.activation_based import functional, layer, neuron

    def given(module, weights, bias):
        module.weight.data = torch.from_numpy(weights.copy())
        module.bias.data = torch.from_numpy(bias.copy())
        return module

    modules: list[Any] = []
    for weights, bias in images.convolutions:
        size, _, inputs, outputs = weights.shape
        conv = layer.Conv2d(inputs, outputs, size, padding=size // 2, step_mode="m")
        switches = {"v_reset": None, "detach_reset": True, "step_mode": "m"}
        modules += [
            given(conv, weights.transpose(3, 2, 0, 1), bias),
            neuron.LIFNode(1 / (1 - DECAY), surrogate_function=superspike(images.slope), **switches),
            layer.AvgPool2d(images.pool, divisor_override=1, step_mode="m"),  # a sum
        ]
    network = torch.nn.Sequential(*modules).to(memory_format=torch.channels_last)
    weights, bias = images.readout
    linear = given(layer.Linear(*weights.shape, step_mode="m"), weights.T, bias)
    membrane = neuron.NonSpikingLIFNode(1 / (1 - images.readout_decay), decode="mean-mem")

    def forward(inputs):
        functional.reset_net(network)
        functional.reset_net(membrane)
        pooled = network(inputs.permute(0, 1, 4, 2, 3))
        return membrane(linear(pooled.permute(0, 1, 3, 4, 2).flatten(2)))

    return tasks_in_torch(images.inputs, images.labels, [network, linear], forward)


class Deep(NamedTuple):
    """W14: a network of `snnjax.models` by the name of its function, images over time and labels."""

    model: str
    stages: tuple[tuple[int, ...], ...]  # of a VGG
    width: int  # of a Spikformer
    inputs: Any  # [time, batch, height, width, channels]
    labels: Any


GRADIENT, CHANNELS_LAST = "loss and gradient", ", channels last"
CLASSES = 10


def spikingjelly_model(deep: Deep):
    """A model of the same layers; `LIFNode` with a time constant of 2 steps is their neuron."""
    from spikingjelly.activation_based import layer, neuron
    from spikingjelly.activation_based.model import sew_resnet, spikformer
    from torch import nn

    node = functools.partial(neuron.LIFNode, detach_reset=True)
    height, width, channels = deep.inputs.shape[2:]
    if deep.model == "sew_resnet":
        network = sew_resnet.sew_resnet18(num_classes=CLASSES, cnf="ADD", spiking_neuron=node)
        network.conv1 = layer.Conv2d(channels, 64, 3, padding=1, bias=False)  # for small images
        network.maxpool = nn.Identity()
        return network
    if deep.model == "spikformer":
        sizes = {"img_size_h": height, "img_size_w": width, "patch_size": 4, "embed_dims": deep.width}
        return spikformer.Spikformer(T=len(deep.inputs), num_classes=CLASSES, num_heads=8, depths=4, **sizes)
    modules: list[Any] = []
    for stage in deep.stages:
        for out in stage:
            conv = layer.Conv2d(channels, out, 3, padding=1, bias=False)
            modules, channels = [*modules, conv, layer.BatchNorm2d(out), node()], out
        modules.append(layer.MaxPool2d(2))
    pixels = (height >> len(deep.stages)) * (width >> len(deep.stages))
    return nn.Sequential(*modules, layer.Flatten(), layer.Linear(channels * pixels, CLASSES))


def spikingjelly_deep(deep: Deep, channels_last: bool) -> Tasks:
    """In multi-step mode."""
    import torch
    from spikingjelly.activation_based import functional

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    network = spikingjelly_model(deep)
    functional.set_step_mode(network, "m")
    network = network.to(memory_format=torch.channels_last) if channels_last else network
    inputs = torch.from_numpy(deep.inputs).permute(0, 1, 4, 2, 3)
    # A Spikformer repeats the images in all steps itself.
    inputs = inputs[0].contiguous() if deep.model == "spikformer" else inputs.contiguous()
    labels = torch.from_numpy(deep.labels).long()

    def forward():
        functional.reset_net(network)
        out = network(inputs)
        return out.mean(0) if out.ndim > 2 else out

    def infer():
        network.eval()
        with torch.inference_mode():
            return forward()

    def train() -> None:
        network.zero_grad()
        torch.nn.functional.cross_entropy(forward(), labels).backward()

    return {INFERENCE: infer, GRADIENT: train}


def norse(workload: Workload, layers: list[Layer]) -> Tasks:
    import torch
    from norse.torch import LIBoxCell, LIBoxParameters, LIFBoxCell, LIFBoxParameters
    from norse.torch.functional.reset import reset_subtract
    from torch import nn

    step = 1e-3  # seconds, the default
    rate = torch.tensor((1 - DECAY) / step)
    constants = LIFBoxParameters(tau_mem_inv=rate, alpha=torch.tensor(SLOPE), reset_method=reset_subtract)
    gain = 1 / (1 - DECAY)  # its inputs count only in part: the rest of the decay
    cells: list[Any] = [LIFBoxCell(constants, dt=step) for _ in layers]
    if workload.readout:
        cells[-1] = LIBoxCell(LIBoxParameters(tau_mem_inv=rate), dt=step)
    linears = [with_weights(nn.Linear(*each.weights.shape), gain * each.weights) for each in layers]
    recurrent = [
        each.recurrent is not None and with_weights(nn.Linear(*each.recurrent.shape), gain * each.recurrent)
        for each in layers
    ]

    def forward(inputs):
        states: list[Any] = [None] * len(layers)
        before: list[Any] = [None] * len(layers)
        total = 0
        for x in inputs:
            for index, (linear, feedback, cell) in enumerate(zip(linears, recurrent, cells, strict=True)):
                current = linear(x)
                if feedback and before[index] is not None:
                    current = current + feedback(before[index])
                x, states[index] = cell(current, states[index])
                before[index] = x
            total = total + x
        return total

    return torch_tasks(workload, [*linears, *filter(None, recurrent)], forward)


def spyx(workload: Workload, layers: list[Layer]) -> Tasks:
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx
    from spyx import axn, nn

    rngs, surrogate, modules = nnx.Rngs(0), axn.superspike(SLOPE), []
    for (inputs, neurons), layer in zip(pairwise(workload.widths), layers, strict=True):
        linear = nnx.Linear(inputs, neurons, use_bias=False, rngs=rngs)
        linear.kernel[...] = jnp.asarray(layer.weights)
        kind = nn.LIF if layer.recurrent is None else nn.RLIF
        neuron = kind((neurons,), beta=DECAY, activation=surrogate, rngs=rngs)
        if layer.recurrent is not None:
            neuron.recurrent_w[...] = jnp.asarray(layer.recurrent)
        modules += [linear, neuron]
    if workload.readout:
        modules[-1] = nn.LI((workload.widths[-1],), beta=DECAY, rngs=rngs)
    graph, parameters = nnx.split(nn.Sequential(*modules))
    optimiser = optax.adam(LEARNING_RATE)
    spikes = jnp.asarray(workloads.bernoulli(workload.input_shape, workload.rate))
    classes = jnp.asarray(workloads.labels(workload))

    def logits(parameters, spikes):
        return nn.run(nnx.merge(graph, parameters), spikes)[0].sum(0)

    def loss(parameters, spikes, classes):
        each = optax.softmax_cross_entropy_with_integer_labels(logits(parameters, spikes), classes)
        return each.mean()

    @jax.jit
    def step(parameters, state, spikes, classes):
        updates, state = optimiser.update(jax.grad(loss)(parameters, spikes, classes), state)
        return optax.apply_updates(parameters, updates), state

    infer, state = jax.jit(logits), optimiser.init(parameters)
    return {
        INFERENCE: lambda: jax.block_until_ready(infer(parameters, spikes)),
        TRAINING: lambda: jax.block_until_ready(step(parameters, state, spikes, classes)),
    }


class Peer(NamedTuple):
    """A library."""

    package: str
    tasks: Callable[[Workload, list[Layer]], Tasks]


# Of W7.
IMAGE_PEERS = {"SpikingJelly": spikingjelly_images}
PEERS = {
    "snnTorch": Peer("snntorch", snntorch),
    "SpikingJelly": Peer("spikingjelly", spikingjelly),
    "Norse": Peer("norse", norse),
    "Spyx": Peer("spyx", spyx),
}


def timed(name: str, workload: Workload, task: str) -> Timer:
    warnings.simplefilter("ignore")
    run = PEERS[name].tasks(workload, workloads.layers(workload))[task]
    return lambda calls: timing.turn([run] * (calls + 1))


def timed_images(name: str, images: Images, task: str) -> Timer:
    warnings.simplefilter("ignore")
    run = IMAGE_PEERS[name](images)[task]
    return lambda calls: timing.turn([run] * (calls + 1))


def timed_deep(deep: Deep, channels_last: bool, task: str) -> Timer:
    warnings.simplefilter("ignore")
    run = spikingjelly_deep(deep, channels_last)[task]
    return lambda calls: timing.turn([run] * (calls + 1))


@functools.cache
def installed(package: str, interpreters: tuple[str, ...]) -> tuple[str, str] | None:
    """The first interpreter in which a package is installed, and its version."""
    program = f"from importlib.metadata import version; print(version({package!r}))"
    for python in interpreters:
        done = subprocess.run([python, "-c", program], check=False, capture_output=True, text=True)
        if done.returncode == 0:
            return python, done.stdout.strip()
    return None


def labelled(interpreters: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The peers that are installed, with their versions, and the interpreter of each."""
    for name, peer in PEERS.items() if interpreters else ():
        found = installed(peer.package, tuple(interpreters))
        if found is None:
            say(f"skipped {name}: {peer.package} is not installed in {' or '.join(interpreters)}")
        else:
            python, version = found
            yield f"{name} {version}", python


def programs(workload: Workload, labels: Iterable[str]) -> dict[tuple[str, str], Program]:
    """By task and peer."""
    return {
        (task, label): functools.partial(timed, label.split()[0], workload, task)
        for task in (INFERENCE, TRAINING)
        for label in labels
    }


def image_programs(images: Images, labels: Iterable[str]) -> dict[tuple[str, str], Program]:
    """By task and peer."""
    return {
        (task, label): functools.partial(timed_images, label.split()[0], images, task)
        for task in (INFERENCE, TRAINING)
        for label in labels
        if label.split()[0] in IMAGE_PEERS
    }


def in_both_orders(interpreters: Mapping[str, str]) -> dict[str, str]:
    """SpikingJelly with either order of the axes, and its interpreter: which one is faster depends on the network."""
    own = {label: python for label, python in interpreters.items() if label.startswith("SpikingJelly")}
    return {f"{label}{order}": python for label, python in own.items() for order in ("", CHANNELS_LAST)}


def deep_programs(deep: Deep, labels: Iterable[str]) -> dict[tuple[str, str], Program]:
    """By task and peer."""
    return {
        (task, label): functools.partial(timed_deep, deep, label.endswith(CHANNELS_LAST), task)
        for task in (GRADIENT, INFERENCE)
        for label in labels
    }
