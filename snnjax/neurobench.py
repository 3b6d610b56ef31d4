"""A network as a model for the harness of NeuroBench, whose metrics then count what snnjax computes."""

import importlib.util
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax import metrics
from snnjax._check import check_shape, fail
from snnjax._network import Network
from snnjax._network.compare import check_params
from snnjax._network.specs import LayerParams, NetworkOutput, NetworkParams
from snnjax.sparse_spikes import SparseSpikes

_OP = "to_neurobench"


def to_neurobench(network: Network, params: NetworkParams, *, decoder: str | None = "sum") -> Any:
    """Turn a network with dense layers into a model for NeuroBench's `Benchmark`.

    snnjax runs the network. NeuroBench counts with hooks on the modules of torch, so the model has one `Linear` for
    each matrix of weights and one `Identity` for each layer of neurons, and passes to them what the network passed on
    in that batch: inputs and spikes to the weights, and each layer's spikes to its neurons. NeuroBench's own code then
    yields its metrics of accuracy, activation sparsity, synaptic operations, connection sparsity, parameters and
    footprint. `MembraneUpdates` and `NeuronOperations` only know the neurons of snnTorch: what they report has no
    meaning here.

    The model is called as ``model(batch)`` with ``batch[batch, time, inputs]``, the axes of NeuroBench, and returns the
    predicted classes ``[batch]``. All steps count: pass sequences of one length.

    Args:
        network: dense layers of any neurons, feed-forward or recurrent, with or without delays.
        params: its parameters, float32 or float64; the model keeps a copy.
        decoder: the decoder of `snnjax.metrics.predictions` that matches the loss; None returns the outputs
            ``[batch, time, outputs]``.

    Raises:
        ValueError: if a layer is not dense, or parameters have another dtype.
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
    modules = _modules(torch, network, params)
    run = jax.jit(lambda inputs: network.apply(params, None, inputs, record="spikes")[0])

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
                _pass(torch, modules, inputs, output)
            if decoder is None:
                return _tensor(torch, jnp.swapaxes(output.output, 0, 1))
            return _tensor(torch, metrics.predictions(output.output, decoder=decoder)).long()

    return Model()


def _check(network: Network, params: NetworkParams) -> None:
    check_params(_OP, params, network.layers, network.readout)
    for place, spec in enumerate(network.layers):
        form = spec.fitted.connection
        if form.pooling is not None or form.convolution is not None:
            actual = " and ".join(part.words for part in form.parts)
            hint = "Count its operations with metrics.synaptic_operations"
            fail(f"to_neurobench: `network.layers[{place}]` must be dense, got {actual}. {hint}.")
    dtypes = sorted({leaf.dtype.name for leaf in jax.tree.leaves(params)})
    # In a smaller dtype NeuroBench's counts would be rounded.
    if not set(dtypes) <= {"float32", "float64"}:
        actual = " and ".join(dtypes)
        fail(f"to_neurobench: `params` must be float32 or float64, got {actual}. Cast or dequantise them.")


def _modules(torch: Any, network: Network, params: NetworkParams) -> Any:
    """The modules with the parameters of the network, in the order of its layers."""
    modules = torch.nn.ModuleDict()
    for place, (spec, layer_params) in enumerate(zip(network.layers, params.layers, strict=True)):
        modules[f"weights{place}"] = _linear(
            torch, spec.fitted.masked(layer_params.weights), layer_params.bias
        )
        if layer_params.recurrent is not None:
            modules[f"recurrent{place}"] = _linear(torch, layer_params.recurrent, None)
        modules[f"layer{place}"] = torch.nn.Identity()
    if network.readout is not None and params.readout is not None:
        layer_params = params.readout
        modules["readout"] = _linear(
            torch, network.readout.fitted.masked(layer_params.weights), layer_params.bias
        )
    modules["constants"] = torch.nn.ParameterList(
        [
            _parameter(torch, leaf)
            for layer_params in (*params.layers, params.readout)
            for leaf in _constants(layer_params)
        ]
    )
    return modules


def _constants(params: LayerParams | None) -> list[Array]:
    """The parameters of neurons and delays, which no metric but their number and size depends on."""
    return [] if params is None else jax.tree.leaves((params.neuron, params.delays))


def _linear(torch: Any, weights: Array, bias: Array | None) -> Any:
    module = torch.nn.Linear(*weights.shape, bias=bias is not None)
    module.weight = _parameter(torch, weights.T)
    if bias is not None:
        module.bias = _parameter(torch, bias)
    return module


def _parameter(torch: Any, leaf: Array) -> Any:
    return torch.nn.Parameter(_tensor(torch, leaf), requires_grad=False)


def _tensor(torch: Any, array: Array) -> Any:
    return torch.from_numpy(np.array(array))


def _inputs(batch: Any, network: Network, params: NetworkParams) -> Array:
    """A batch of NeuroBench with the axes and the dtype of the network, ``[time, batch, inputs]``."""
    shape = (None, None, network.num_inputs)
    check_shape(_OP, "batch", batch, shape, "batch, time, inputs", "Flatten images in a preprocessor")
    return jnp.swapaxes(jnp.asarray(batch.numpy()), 0, 1).astype(params.layers[0].weights.dtype)


def _pass(torch: Any, modules: Any, inputs: Array, output: NetworkOutput) -> None:
    """Show the hooks what went through each module, as rows ``[time * batch, neurons]``."""
    rows = _rows(torch, inputs)
    for place, spikes in enumerate(output.spikes or ()):
        modules[f"weights{place}"](rows)
        rows = _rows(torch, spikes.to_dense() if isinstance(spikes, SparseSpikes) else spikes)
        if f"recurrent{place}" in modules:
            modules[f"recurrent{place}"](rows)
        modules[f"layer{place}"](rows)
    if "readout" in modules:
        modules["readout"](rows)


def _rows(torch: Any, spikes: Array) -> Any:
    return _tensor(torch, spikes.reshape(-1, spikes.shape[-1]))
