"""Make the golden files: the results of snnTorch, SpikingJelly, Norse and Spyx for one small input.

    python make_golden.py snntorch spikingjelly norse    # where PyTorch and these are installed
    python make_golden.py spyx                           # where Spyx is installed

The files here were made with the versions that each of them states under ``versions``: snntorch 1.0.0,
spikingjelly 2.0.0 and norse 1.1.0 with torch 2.15.0 on a CPU; spyx 1.0.0 with jax 0.10.2. Each case holds, over
[time, batch, neurons], the spikes, the membrane that the library stores, and the gradient of the loss
``sum(spikes * weights)`` with respect to the inputs. A leaky integrator's output is its membrane.
Inputs are scaled by ``scale``, so that each neuron spikes now and then.
"""

import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from snnjax._types import Signal, State

FOLDER = Path(__file__).parent
SHAPE = (12, 2, 3)  # time, batch, neurons
DECIMALS = 7  # a rounding of 5e-8, less than float32 keeps of numbers of order 1


def sequences(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Inputs around the threshold, some negative, times `scale`, and the weights of the loss."""
    rng = np.random.default_rng(2026)
    inputs = (scale * rng.normal(0.7, 0.8, SHAPE)).astype(np.float32)
    weights = rng.normal(0.0, 1.0, SHAPE).astype(np.float32)
    return inputs, weights


def record(trace: list[tuple[Any, ...]], gradient, scale: float) -> dict[str, Any]:
    """The case of a list of (spikes, membrane) per step."""
    spikes, membrane = (np.stack([np.asarray(step[i], np.float64) for step in trace]) for i in (0, 1))
    case: dict[str, Any] = {"scale": scale, "membrane": membrane.round(DECIMALS).tolist()}
    if np.isin(spikes, (0, 1)).all():  # not the membrane of a leaky integrator
        case["spikes"] = spikes.astype(int).tolist()
    case["gradient"] = np.asarray(gradient, np.float64).round(DECIMALS).tolist()
    return case


def run_torch(step: Callable[[Any, Any], tuple[Any, Any, Any]], scale: float = 1.0) -> dict[str, Any]:
    """Unroll ``step(inputs, state) -> (spikes, membrane, state)`` in PyTorch, with the gradient of the loss."""
    import torch

    inputs, weights = (torch.from_numpy(array) for array in sequences(scale))
    inputs.requires_grad_()
    state, trace, loss = None, [], torch.zeros(())
    for x, w in zip(inputs, weights, strict=True):
        spikes, membrane, state = step(x, state)
        loss = loss + (spikes * w).sum()
        trace.append((spikes.detach().numpy(), membrane.detach().numpy()))
    loss.backward()
    return record(trace, inputs.grad, scale)


def make_snntorch() -> dict[str, Any]:
    """`Leaky` and `Synaptic` with both resets, now and with delay; surrogate fast_sigmoid(25)."""
    import snntorch

    def leaky(reset: str, delay: bool) -> dict[str, Any]:
        surrogate = snntorch.surrogate.fast_sigmoid(slope=25)
        neuron = snntorch.Leaky(0.9, spike_grad=surrogate, reset_mechanism=reset, reset_delay=delay)

        def step(x, mem) -> tuple[Any, Any, Any]:
            spikes, mem = neuron(x, neuron.init_leaky() if mem is None else mem)
            return spikes, mem, mem

        # With `reset_delay=False`, a membrane still above the threshold after its reset would make snnTorch skip
        # the next one, which no switch here does: these inputs are too weak for that.
        return run_torch(step, scale=1.0 if delay else 0.3)

    def synaptic(reset: str) -> dict[str, Any]:
        surrogate = snntorch.surrogate.fast_sigmoid(slope=25)
        neuron = snntorch.Synaptic(0.8, 0.9, spike_grad=surrogate, reset_mechanism=reset)

        def step(x, state: State) -> tuple[Any, Any, Any]:
            spikes, syn, mem = neuron(x, *(neuron.init_synaptic() if state is None else state))
            return spikes, mem, (syn, mem)

        return run_torch(step, scale=0.25)

    return {
        "leaky subtract": leaky("subtract", True),
        "leaky zero": leaky("zero", True),
        "leaky none": leaky("none", True),
        "leaky subtract at once": leaky("subtract", False),
        "leaky zero at once": leaky("zero", False),
        "synaptic subtract": synaptic("subtract"),
        "synaptic zero": synaptic("zero"),
    }


def make_spikingjelly() -> dict[str, Any]:
    """`IFNode`, `LIFNode` and `ParametricLIFNode` with hard and soft reset; surrogate Sigmoid(4)."""
    from spikingjelly.activation_based import neuron, surrogate

    def run(node, scale: float = 1.0) -> dict[str, Any]:
        def step(x, _) -> tuple[Any, Any, Any]:
            spikes = node(x)
            return spikes, node.v, None

        return run_torch(step, scale)

    def switches(v_reset: float | None, detach: bool = True) -> dict[str, Any]:
        return {
            "v_reset": v_reset,
            "detach_reset": detach,
            "surrogate_function": surrogate.Sigmoid(alpha=4.0),
        }

    return {
        "if hard": run(neuron.IFNode(**switches(0.0))),
        "if soft": run(neuron.IFNode(**switches(None))),
        "lif hard": run(neuron.LIFNode(tau=2.5, decay_input=True, **switches(0.0)), 2.0),
        "lif soft": run(neuron.LIFNode(tau=2.5, decay_input=True, **switches(None)), 2.0),
        "lif hard full input": run(neuron.LIFNode(tau=2.5, decay_input=False, **switches(0.0))),
        "lif soft full input": run(neuron.LIFNode(tau=2.5, decay_input=False, **switches(None))),
        "lif hard attached": run(
            neuron.LIFNode(tau=2.5, decay_input=True, **switches(0.0, detach=False)), 2.0
        ),
        "lif soft attached": run(
            neuron.LIFNode(tau=2.5, decay_input=True, **switches(None, detach=False)), 2.0
        ),
        "parametric lif hard": run(neuron.ParametricLIFNode(init_tau=2.5, **switches(0.0)), 2.0),
    }


def make_norse() -> dict[str, Any]:
    """The feed-forward LIF steps: current-based, box, and leaky integrator; surrogate "super", whose slope is 1."""
    import torch
    from norse.torch.functional import leaky_integrator, lif, lif_box, reset

    # Time constants in 1/s; with the step of 1 ms these are decays of 0.75 (membrane) and 0.5 (synapse).
    membrane, synapse = torch.tensor(250.0), torch.tensor(500.0)
    zeros = torch.zeros(SHAPE[1:])

    def run(function, parameters, initial, scale: float) -> dict[str, Any]:
        def step(x, state: State) -> tuple[Any, Any, Any]:
            spikes, state = function(x, initial if state is None else state, parameters)
            return spikes, state.v, state

        return run_torch(step, scale)

    def integrate(x, state: State, parameters) -> tuple[Any, Any]:
        # Has no spikes: the output is the membrane, which the loss then weighs.
        return leaky_integrator.li_feed_forward_step(x, state, parameters)

    current = lif.LIFParameters(tau_mem_inv=membrane, tau_syn_inv=synapse)
    box = lif_box.LIFBoxParameters(tau_mem_inv=membrane)
    soft = lif_box.LIFBoxParameters(tau_mem_inv=membrane, reset_method=reset.reset_subtract)
    integrator = leaky_integrator.LIParameters(tau_mem_inv=membrane, tau_syn_inv=synapse)
    return {
        "lif": run(lif.lif_feed_forward_step, current, lif.LIFFeedForwardState(v=zeros, i=zeros), 1.5),
        "lif box": run(lif_box.lif_box_feed_forward_step, box, lif_box.LIFBoxFeedForwardState(v=zeros), 2.0),
        "lif box soft": run(
            lif_box.lif_box_feed_forward_step, soft, lif_box.LIFBoxFeedForwardState(v=zeros), 2.0
        ),
        "leaky integrator": run(integrate, integrator, leaky_integrator.LIState(v=zeros, i=zeros), 1.0),
    }


def make_spyx() -> dict[str, Any]:
    """`IF`, `LIF`, `CuBaLIF`, `ALIF` and `LI`; surrogate superspike(25)."""
    import jax
    import jax.numpy as jnp
    import spyx
    from flax import nnx

    rngs, neurons = nnx.Rngs(0), (SHAPE[-1],)
    spike = {"activation": spyx.axn.superspike(k=25)}

    def run(model, scale: float = 1.0) -> dict[str, Any]:
        inputs, weights = (jnp.asarray(array) for array in sequences(scale))

        def unroll(inputs: Signal) -> tuple[Any, Any]:
            state, trace = model.initial_state(SHAPE[1]), []
            for x in inputs:
                spikes, state = model(x, state)
                # Two-variable models put membrane and second variable side by side.
                trace.append((spikes, state[:, : SHAPE[-1]]))
            return sum((s * w).sum() for (s, _), w in zip(trace, weights, strict=True)), trace

        (_, trace), gradient = jax.value_and_grad(unroll, has_aux=True)(inputs)
        return record(trace, gradient, scale)

    return {
        "if": run(spyx.nn.IF(neurons, **spike)),
        "lif": run(spyx.nn.LIF(neurons, beta=0.9, rngs=rngs, **spike)),
        "current lif": run(spyx.nn.CuBaLIF(neurons, alpha=0.8, beta=0.9, rngs=rngs, **spike), 0.25),
        "adaptive lif": run(spyx.nn.ALIF(neurons, beta=0.9, gamma=0.95, rngs=rngs, **spike)),
        "leaky integrator": run(spyx.nn.LI(neurons, beta=0.9, rngs=rngs)),
    }


MAKERS = {
    "snntorch": (make_snntorch, ("snntorch", "torch")),
    "spikingjelly": (make_spikingjelly, ("spikingjelly", "torch")),
    "norse": (make_norse, ("norse", "torch")),
    "spyx": (make_spyx, ("spyx", "jax")),
}


def write(library: str) -> None:
    """Write the golden file of one library."""
    make, packages = MAKERS[library]
    versions = {package: importlib.metadata.version(package) for package in packages}
    content = {"versions": versions, "cases": make()}
    (FOLDER / f"{library}.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or list(MAKERS):
        write(name)
