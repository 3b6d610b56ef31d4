"""A network as a model for the harness of NeuroBench, whose metrics then count what snnjax computes."""

import importlib.util
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax import metrics
from snnjax._check import check_shape, fail
from snnjax._sparse_spikes import SparseSpikes
from snnjax.blocks._dense import Dense
from snnjax.blocks.delay import Axonal
from snnjax.blocks.late import Late
from snnjax.blocks.linear import LinearParams
from snnjax.blocks.norm import BatchNorm, LayerNorm
from snnjax.blocks.pool import Flatten, Pool
from snnjax.blocks.readout import Integrator
from snnjax.blocks.spiking import Spiking
from snnjax.graph.check import check_params
from snnjax.graph.network import Network, NetworkOutput, Params, Stats, params_dtype

_OP = "to_neurobench"
# Blocks with parameters.
_KNOWN = Dense | Axonal | Spiking | Integrator | BatchNorm | LayerNorm


def to_neurobench(
    network: Network, params: Params, stats: Stats | None = None, *, decoder: str | None = "sum"
) -> Any:
    """Turn a network with dense weights into a model for NeuroBench's `Benchmark`.

    snnjax runs the network. NeuroBench counts with hooks on the modules of torch, so the model has one `Linear` for
    each matrix of weights and one `Identity` for each block of neurons, and passes to them what the network passed on
    in that batch: to weights the signals before them, and before their delays if they have any, to neurons their
    spikes. NeuroBench's own code then yields its metrics of accuracy, activation sparsity, synaptic operations,
    connection sparsity, parameters and footprint. `MembraneUpdates` and `NeuronOperations` only know the neurons of
    snnTorch: what they report has no meaning here.

    The model is called as ``model(batch)`` with ``batch[batch, time, inputs]``, the axes of NeuroBench, and returns the
    predicted classes ``[batch]``, with the decoder "steps" ``[batch, time]``. All steps count: pass sequences of one
    length.

    Args:
        network: one input and one output; dense weights and any neurons, feed-forward or recurrent, with or without
            delays, norms and branches.
        params: its parameters, float32 or float64; the model keeps a copy.
        stats: its statistics, if it has norms.
        decoder: the decoder of `snnjax.metrics.predictions` that matches the loss; None returns the outputs
            ``[batch, time, outputs]``.

    Raises:
        ValueError: if weights are not dense, there are pools, several inputs or several outputs, or parameters have
            another dtype.
        ImportError: if NeuroBench is not installed.

    Example:
        >>> import jax
        >>> import snnjax, torch
        >>> from snnjax.neurobench import to_neurobench
        >>> net = snnjax.network(4, [snnjax.layer(8)], snnjax.leaky_readout(2))
        >>> model = to_neurobench(net, net.init(jax.random.key(0)))
        >>> model(torch.ones(3, 20, 4)).shape
        torch.Size([3])

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4.
    """
    if importlib.util.find_spec("neurobench") is None:
        hint = "Install it, for instance with pip install 'snnjax[neurobench]'"
        raise ImportError(f"to_neurobench: `neurobench` must be installed, got no such package. {hint}.")
    _check(network, params)
    # Packages without which everything else works, and of which a type checker may not know.
    torch, models = importlib.import_module("torch"), importlib.import_module("neurobench.models")
    modules, signals = _modules(torch, network, params), _signals(network)
    record = ("spikes", *dict.fromkeys(signals.values()))
    run = jax.jit(lambda inputs: network.apply(params, None, inputs, stats=stats, record=record)[0])

    class Model(models.NeuroBenchModel):
        """The network as NeuroBench sees it."""

        def __init__(self) -> None:
            super().__init__()
            self.add_activation_module(torch.nn.Identity)

        def __net__(self) -> Any:
            return modules

        def __call__(self, batch: Any) -> Any:
            inputs = _inputs(batch, network, params)
            output = run(inputs)
            with torch.no_grad():
                _pass(torch, network, modules, signals, inputs, output)
            if decoder is None:
                return _tensor(torch, jnp.swapaxes(output.output, 0, 1))
            named = metrics.predictions(output.output, decoder=decoder)
            return _tensor(torch, named if named.ndim == 1 else jnp.swapaxes(named, 0, 1)).long()

    return Model()


def _check(network: Network, params: Params) -> None:
    check_params(_OP, params, network.nodes, network.in_shapes)
    if len(network.inputs) != 1 or not network.is_single:
        fail(
            f"{_OP}: `network` must have one input and one output, got several. Make a network of one of them."
        )
    for node in network.nodes:
        # NeuroBench would not count the products of others.
        is_known = params.get(node.name) is None or isinstance(node.block, _KNOWN)
        if isinstance(node.block, Pool) or not is_known:
            hint = "Count its operations with metrics.synaptic_operations"
            fail(
                f"{_OP}: `network` must have only dense weights, got {node.block.kind} in {node.name!r}. {hint}."
            )
    dtypes = sorted({leaf.dtype.name for leaf in jax.tree.leaves(params)})
    # In a smaller dtype NeuroBench's counts would be rounded.
    if not set(dtypes) <= {"float32", "float64"}:
        actual = " and ".join(dtypes)
        fail(f"{_OP}: `params` must be float32 or float64, got {actual}. Cast or dequantise them.")


def _signals(network: Network) -> dict[str, str]:
    """The node or input whose signal each connection receives, before delays: a delayed spike counts once."""
    passed: dict[str, str] = {}  # by the nodes that pass on the signal of another one
    found = {}
    for node in network.nodes:
        source = passed.get(node.sources[0], node.sources[0])
        if isinstance(node.block, Axonal | Flatten | Late) or node.block.is_skipped(train=False):
            passed[node.name] = source
        if isinstance(node.block, Dense):
            found[node.name] = source
    return found


def _modules(torch: Any, network: Network, params: Params) -> Any:
    """The modules with the parameters of the network: one for each block of weights or neurons."""
    modules, constants = torch.nn.ModuleDict(), []
    for node in network.nodes:
        block: Any = node.block
        arrays: Any = params.get(node.name)
        if isinstance(block, Dense):
            modules[_key(node.name)] = _linear(torch, block, arrays)
            continue
        if block.is_spiking:
            modules[_key(node.name)] = torch.nn.Identity()
        constants.append(arrays)
    # Of neurons, delays and norms, of which no metric depends on more than their number and size.
    modules["constants"] = torch.nn.ParameterList(
        [_parameter(torch, leaf) for leaf in jax.tree.leaves(constants)]
    )
    return modules


def _key(name: str) -> str:
    """The key of the module of a node: no name ends with a slash, and torch allows no dots."""
    return name.replace(".", ":") + "/"


def _linear(torch: Any, block: Dense, params: LinearParams) -> Any:
    weights, bias = block.used(params.weights), params.bias
    module = torch.nn.Linear(*weights.shape, bias=bias is not None)
    module.weight = _parameter(torch, weights.T)
    if bias is not None:
        module.bias = _parameter(torch, bias)
    return module


def _parameter(torch: Any, leaf: Array) -> Any:
    return torch.nn.Parameter(_tensor(torch, leaf), requires_grad=False)


def _tensor(torch: Any, array: Array) -> Any:
    return torch.from_numpy(np.array(array))


def _inputs(batch: Any, network: Network, params: Params) -> Array:
    """A batch of NeuroBench with the axes and the dtype of the network, ``[time, batch, inputs]``."""
    shape = (None, None, network.num_inputs)
    check_shape(_OP, "batch", batch, shape, "batch, time, inputs", "Flatten images in a preprocessor")
    return jnp.swapaxes(jnp.asarray(batch.numpy()), 0, 1).astype(params_dtype(params))


def _pass(
    torch: Any, network: Network, modules: Any, signals: dict[str, str], inputs: Array, output: NetworkOutput
) -> None:
    """Show the hooks what went through each module, as rows ``[time * batch, neurons]``."""
    made = {network.inputs[0][0]: inputs, **output.recorded, network.outputs[0][1]: output.output}
    for node in network.nodes:
        signal = signals.get(node.name, node.name)  # connections receive one, neurons send theirs
        if _key(node.name) in modules:
            modules[_key(node.name)](_rows(torch, made[signal]))


def _rows(torch: Any, signal: Any) -> Any:
    signal = signal.to_dense() if isinstance(signal, SparseSpikes) else signal
    return _tensor(torch, signal.reshape(-1, math.prod(signal.shape[2:])))
