"""Make the golden files of NIR: graphs of other libraries with their outputs, and their outputs for our graphs.

    PYTHONPATH=../.. python make_nir.py          # where snnTorch, Norse, Spyx, Sinabs and JAX are installed

Made with snntorch 1.0.0, norse 1.1.0, sinabs 2.0.3, nirtorch 2.6, torch 2.14.1, spyx 1.0.0, jax 0.10.2 and nir 1.0.8,
on a CPU. In `nir.zip`, as HDF5 of small arrays is mostly empty, `<library>_<case>.nir` is a graph, and `.npz` holds its
``inputs`` and ``outputs``, ``[time, batch, neurons]``, images channels first. Those of a case "ours" are written by
snnjax and computed by the library. `published_lif.nir` is `paper/01_lif/lif_norse.nir` of neuromorphs/NIR (BSD-3).
"""

import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nir
import numpy as np

from snnjax._types import Signal

ARCHIVE = Path(__file__).parent / "nir.zip"
FOLDER = Path(tempfile.mkdtemp())
STEPS, BATCH = 40, 2
# Wide enough that rounding decides no spike: the tests compare spikes alone.
RATE, GAIN = 0.4, 2.0


def inputs_of(*shape: int) -> np.ndarray:
    """Random spikes ``[time, batch, *shape]``."""
    return (np.random.default_rng(7).random((STEPS, BATCH, *shape)) < RATE).astype(np.float32)


def save(name: str, inputs: Signal, outputs, graph=None) -> None:
    """Write a case; graphs of ours are there already."""
    if graph is not None:
        nir.write(FOLDER / f"{name}.nir", graph)
    outputs = np.asarray(outputs, np.float32)
    print(name, outputs.shape, "sum", outputs.sum())
    np.savez_compressed(FOLDER / f"{name}.npz", inputs=np.asarray(inputs, np.uint8), outputs=outputs)


def unroll(step: Callable[[Any, Any], tuple[Any, Any]], inputs: np.ndarray) -> np.ndarray:
    """The outputs of ``step(input, state) -> (output, state)`` in PyTorch."""
    import torch

    state, outputs = None, []
    with torch.no_grad():
        for x in torch.from_numpy(inputs):
            out, state = step(x, state)
            outputs.append(out.numpy())
    return np.stack(outputs)


def linear(inputs: int, outputs: int, bias: bool = True):
    """Weights that let neurons spike now and then."""
    import torch

    layer = torch.nn.Linear(inputs, outputs, bias=bias)
    layer.weight.data *= GAIN
    return layer


def make_snntorch() -> None:
    """Its own graphs: `Leaky` with both resets, `Synaptic`, a convolution, a recurrent layer."""
    import snntorch as snn
    import torch
    from snntorch import utils
    from snntorch.export_nir import export_to_nir

    torch.manual_seed(0)

    def leaky(n: tuple[int, ...], **options):
        return snn.Leaky(beta=torch.full(n, 0.9), threshold=torch.full(n, 0.5), init_hidden=True, **options)

    def write(name: str, net, shape: tuple[int, ...]) -> None:
        inputs = inputs_of(*shape)
        graph = export_to_nir(net, torch.zeros(1, *shape), ignore_dims=[0])
        utils.reset(net)
        save(f"snntorch_{name}", inputs, unroll(lambda x, _: (net(x), None), inputs), graph)

    zero = {"reset_mechanism": "zero", "reset_delay": False}
    write("leaky", torch.nn.Sequential(linear(3, 5), leaky((5,)), linear(5, 4), leaky((4,))), (3,))
    write("zero", torch.nn.Sequential(linear(3, 5, False), leaky((5,), **zero)), (3,))
    alpha, beta = torch.full((5,), 0.6), torch.full((5,), 0.8)
    synaptic = snn.Synaptic(alpha, beta, threshold=torch.full((5,), 0.5), init_hidden=True)
    write("synaptic", torch.nn.Sequential(linear(3, 5), synaptic), (3,))
    images = (torch.nn.Conv2d(2, 3, 3, padding=1, bias=False), leaky((3, 4, 6)), torch.nn.AvgPool2d(2))
    write("image", torch.nn.Sequential(*images, torch.nn.Flatten(), linear(18, 4), leaky((4,))), (2, 4, 6))

    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = linear(3, 5)
            self.rec = snn.RLeaky(torch.full((5,), 0.9), threshold=0.5, linear_features=5, init_hidden=True)

        def forward(self, x):
            return self.rec(self.fc(x))

    write("recurrent", Recurrent(), (3,))


def make_norse() -> None:
    """Its own graphs, in seconds: `LIFBoxCell`, `IAFCell`, `LIBoxCell`."""
    import norse.torch as norse
    import torch
    from norse.torch.module.leaky_integrator_box import LIBoxCell, LIBoxParameters

    torch.manual_seed(2)

    def full(n: int, value: float):
        return torch.full((n,), value)

    zeros = {"v_leak": full(5, 0.0), "v_reset": full(5, 0.0)}
    lif = norse.LIFBoxParameters(tau_mem_inv=full(5, 100.0), v_th=full(5, 0.1), **zeros)
    iaf = norse.IAFParameters(v_th=full(4, 0.1), v_reset=full(4, 0.0))
    integrator = LIBoxParameters(tau_mem_inv=full(2, 200.0), v_leak=full(2, 0.0))
    cells = (linear(3, 5), norse.LIFBoxCell(lif), linear(5, 4), norse.IAFCell(iaf))
    for name, layers in (("spikes", cells), ("readout", (*cells[:2], linear(5, 2), LIBoxCell(integrator)))):
        net, inputs = norse.SequentialState(*layers), inputs_of(3)
        graph = norse.to_nir(net, torch.zeros(1, 3), dt=1.0)
        save(f"norse_{name}", inputs, unroll(net, inputs), graph)


def make_sinabs() -> None:
    """Its own graph, in steps: `LIF` and `IAF`, of one spike a step at most."""
    import sinabs.layers as sl
    import torch
    from sinabs.activation import SingleSpike
    from sinabs.nir import to_nir

    torch.manual_seed(0)
    inputs = inputs_of(3)
    x = torch.from_numpy(np.moveaxis(inputs, 0, 1).copy())
    lif = sl.LIF(tau_mem=torch.full((5,), 5.0), spike_threshold=torch.full((5,), 0.1), spike_fn=SingleSpike)
    iaf = sl.IAF(spike_threshold=torch.tensor(0.15), spike_fn=SingleSpike)
    net = torch.nn.Sequential(linear(3, 5), lif, linear(5, 4), iaf)
    net(x)
    graph = to_nir(net, x)
    lif.reset_states()
    iaf.reset_states()
    with torch.no_grad():
        save("sinabs_spikes", inputs, np.moveaxis(net(x).numpy(), 1, 0), graph)


def make_spyx() -> None:
    """Its own graphs, in steps: `LIF` and `IF`, `CuBaLIF`, a convolution."""
    import jax.numpy as jnp
    import spyx
    from flax import nnx
    from spyx.nir import to_nir

    rngs = nnx.Rngs(0)

    def dense(inputs: int, outputs: int):
        layer = nnx.Linear(inputs, outputs, rngs=rngs)
        layer.kernel[...] = layer.kernel[...] * GAIN
        return layer

    def write(name: str, shape: tuple[int, ...], width: int, *layers) -> None:
        net, inputs = spyx.nn.Sequential(*layers), inputs_of(*shape)
        there = jnp.asarray(np.moveaxis(inputs, 2, -1) if len(shape) == 3 else inputs)
        ends = {"input": np.array(shape)}, {"output": np.array([width])}
        save(f"spyx_{name}", inputs, spyx.nn.run(net, there)[0], to_nir(net, *ends, dt=1))

    lif = spyx.nn.LIF((5,), beta=0.8, rngs=rngs)
    write("spikes", (3,), 4, dense(3, 5), lif, dense(5, 4), spyx.nn.IF((4,)))
    write("current", (3,), 5, dense(3, 5), spyx.nn.CuBaLIF((5,), alpha=0.6, beta=0.8, rngs=rngs))
    convolution = nnx.Conv(2, 3, (3, 3), padding="SAME", rngs=rngs)
    lif = spyx.nn.LIF((4, 4, 3), beta=0.8, threshold=0.2, rngs=rngs)
    # Its Flatten follows its own order of channels, which its graph does not say: one pixel is left.
    pool = spyx.nn.SumPool((4, 4), (4, 4), "VALID", channel_axis=-1)
    write(
        "image",
        (2, 4, 4),
        4,
        convolution,
        lif,
        pool,
        spyx.nn.Flatten(),
        dense(3, 4),
        spyx.nn.IF((4,), threshold=0.2),
    )


def ours(name: str, neuron, dt: float, method: str = "euler", case: str = "dense") -> tuple[np.ndarray, Any]:
    """Inputs, and a graph of ours of two or three layers, written and read from its file."""
    import jax

    import snnjax
    from snnjax.nir import to_nir

    shape, layers = {
        "dense": ((3,), lambda: [snnjax.layer(5, neuron)]),
        "recurrent": ((3,), lambda: [snnjax.layer(5, neuron, recurrent=True)]),
        "residual": ((3,), lambda: [snnjax.layer(5, neuron), snnjax.residual(snnjax.layer(5, neuron))]),
        "sum": ((4, 6, 2), lambda: [image(neuron), snnjax.sum_pool(2)]),
        "mean": ((4, 6, 2), lambda: [image(neuron), snnjax.mean_pool(2)]),
        "pixel": ((4, 4, 2), lambda: [image(neuron), snnjax.sum_pool(4)]),
    }[case]
    net = snnjax.network(shape if len(shape) > 1 else 3, layers(), snnjax.spiking_readout(4, neuron))
    params = net.init(jax.random.key(0))
    params = jax.tree.map(lambda a: a * GAIN if a.ndim >= 2 else a, params)
    nir.write(FOLDER / f"{name}.nir", to_nir(net, params, dt=dt, method=method))
    return inputs_of(shape[-1], *shape[:-1]), nir.read(FOLDER / f"{name}.nir")


def image(neuron):
    """A convolution with neurons of their own at every pixel, as the libraries want them."""
    import snnjax

    return snnjax.layer(snnjax.conv2d(3, 3), neuron, per_channel=False)


def one_by_one(run: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """The outputs of one sample at a time: a NIR Flatten counts no batch axis, and its readers add none."""
    if inputs.ndim == 3:
        return run(inputs)
    return np.stack([run(inputs[:, sample]) for sample in range(BATCH)], axis=1)


def load_ours_in_snntorch() -> None:
    """It refuses IF with an r other than 1 and delays, and computes no recurrence, its own included."""
    from snntorch import utils
    from snntorch.import_nir import import_from_nir

    from snnjax import neurons

    options = {"reset": "zero", "normalize": False}
    lif = neurons.lif(0.8, 0.5, **options)
    current = neurons.current_lif(0.8, 0.5, 0.6, **options, normalize_synapse=False)
    for name, neuron, case in (
        ("ours", lif, "dense"),
        ("ours_current", current, "dense"),
        ("ours_residual", lif, "residual"),
        ("ours_image", lif, "mean"),
    ):
        inputs, graph = ours(f"snntorch_{name}", neuron, 1e-4, case=case)

        def run(x: np.ndarray, graph=graph) -> np.ndarray:
            net = import_from_nir(graph)
            utils.reset(net)
            return unroll(lambda at, state: net(at) if state is None else net(at, state), x)

        save(f"snntorch_{name}", inputs, one_by_one(run, inputs))


def load_ours_in_norse() -> None:
    """It leaves delays out and knows no AvgPool2d."""
    import norse.torch as norse

    from snnjax import neurons

    lif = neurons.lif(0.8, 0.1, reset="zero")
    current = neurons.current_lif(0.8, 0.1, 0.6, reset="zero")
    for name, neuron, case in (
        ("ours", lif, "dense"),
        ("ours_if", neurons.integrate_and_fire(0.5, reset="zero"), "dense"),
        ("ours_recurrent", current, "recurrent"),
        ("ours_residual", lif, "residual"),
        ("ours_image", lif, "sum"),
    ):
        inputs, graph = ours(f"norse_{name}", neuron, 1e-3, case=case)

        def run(x: np.ndarray, graph=graph) -> np.ndarray:
            return unroll(norse.from_nir(graph, dt=1e-3), x)

        save(f"norse_{name}", inputs, one_by_one(run, inputs))


def load_ours_in_sinabs() -> None:
    """It leaves r, recurrence and delays out, decays exactly, subtracts, and spikes at the threshold.

    Several times, unless it is told; its IF also stops at the negative threshold, and its LIF reads no images.
    """
    import sinabs.activation
    import sinabs.layers
    import sinabs.nir
    import torch

    from snnjax import neurons

    lif = neurons.lif(0.8, 1.5, normalize=False, inclusive=True)
    fire = neurons.integrate_and_fire(3.0, inclusive=True)
    cases = (("ours", lif, "dense"), ("ours_residual", lif, "residual"), ("ours_image", fire, "sum"))
    for name, neuron, case in cases:
        inputs, graph = ours(f"sinabs_{name}", neuron, 1.0, "exact", case)
        net = sinabs.nir.from_nir(graph, batch_size=BATCH)
        for module in net.modules():
            if isinstance(module, (sinabs.layers.LIF, sinabs.layers.IAF)):
                module.spike_fn, module.min_v_mem = sinabs.activation.SingleSpike, None
        x = torch.from_numpy(np.moveaxis(inputs, 0, 1).reshape(-1, *inputs.shape[2:]).copy())
        with torch.no_grad():
            outputs = net(x)
        outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        save(f"sinabs_{name}", inputs, np.moveaxis(outputs.numpy().reshape(BATCH, STEPS, -1), 0, 1))


def load_ours_in_spyx() -> None:
    """It leaves delays out, runs branches one after the other, and flattens channels last: one pixel is left.

    Its recurrent neurons feed the spikes of a step back within that step, and let them out a step late: a layer of ours
    whose spikes show at once does the same a step earlier.
    """
    import spyx.nir

    from snnjax import neurons

    late = {"spike_from": "old"}
    unscaled = {"normalize": False, "reset_time": "after_decay"}
    current = neurons.current_lif(0.8, 0.5, 0.6, normalize=False, normalize_synapse=False, **late)
    for name, neuron, case in (
        ("ours", neurons.lif(0.8, 0.5, **unscaled, **late), "dense"),
        ("ours_if", neurons.integrate_and_fire(0.5, reset_time="after_decay", **late), "dense"),
        ("ours_current", current, "dense"),
        ("ours_recurrent", neurons.lif(0.8, 0.5, **unscaled), "recurrent"),
        ("ours_image", neurons.lif(0.8, 0.5, **unscaled, **late), "pixel"),
    ):
        inputs, graph = ours(f"spyx_{name}", neuron, 1.0, case=case)
        there = np.moveaxis(inputs, 2, -1) if inputs.ndim == 5 else inputs
        save(f"spyx_{name}", inputs, spyx.nir.from_nir(graph, there, dt=1)[1])


if __name__ == "__main__":
    with zipfile.ZipFile(ARCHIVE) as old:
        old.extract("published_lif.nir", FOLDER)
    load = (load_ours_in_snntorch, load_ours_in_norse, load_ours_in_sinabs, load_ours_in_spyx)
    for make in (make_snntorch, make_norse, make_sinabs, make_spyx, *load):
        make()
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(FOLDER.iterdir()):
            archive.write(path, path.name)
