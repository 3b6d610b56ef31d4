"""Convert a network and its parameters to a graph."""

from typing import Any

import numpy as np

from snnjax._check import fail
from snnjax._network import Network
from snnjax._network.connections import Fitted
from snnjax._network.delays import Axonal
from snnjax._network.specs import LayerParams, LayerSpec, NetworkParams, ReadoutSpec
from snnjax.nir._layout import Shape, channels_first, rows_to_channels_first, to_channels_first
from snnjax.nir._metadata import written
from snnjax.nir._write_neurons import Writing, nodes_of
from snnjax.ops._convolution import Convolution
from snnjax.ops.pool_spikes import Pooling

# The kinds of connections that `_add_connection` writes, besides dense weights.
_PARTS = (Pooling, Convolution)


class _Graph:
    """A graph under construction, a chain of nodes."""

    def __init__(self, first: Any) -> None:
        self.nodes: dict[str, Any] = {"input": first}
        self.edges: list[tuple[str, str]] = []
        self.last = "input"

    def add(self, name: str, node: Any) -> None:
        """Put a node after the last one."""
        self.nodes[name] = node
        self.edges.append((self.last, name))
        self.last = name

    def add_loop(self, neuron: str, way: list[tuple[str, Any]]) -> None:
        """Feed the spikes of the last node back to `neuron`."""
        before = self.last
        for name, node in way:
            self.nodes[name] = node
            self.edges.append((before, name))
            before = name
        self.edges.append((before, neuron))


def graph_of(network: Network, params: NetworkParams, writing: Writing, facts: dict[str, Any]) -> Any:
    """The graph: a chain of nodes, and loops for recurrent layers."""
    import nir

    graph = _Graph(nir.Input(input_type={"input": _axes(network.input_shape)}))
    for index, (spec, layer_params) in enumerate(zip(network.layers, params.layers, strict=True)):
        _add_layer(graph, str(index), spec, layer_params, writing)
    shape = network.layers[-1].fitted.out_shape
    if network.readout is not None and params.readout is not None:
        spec, layer_params, where = network.readout, params.readout, "the read-out"
        shape = spec.fitted.out_shape
        _add_connection(graph, "readout", spec, layer_params, writing)
        for node in nodes_of(where, spec.neuron, layer_params.neuron, shape, writing, {}):
            graph.add("neurons_readout", node)
    graph.add("output", nir.Output(output_type={"output": _axes(shape)}))
    about = {"dt": writing.dt, "method": writing.method, **written(facts)}
    return nir.NIRGraph(nodes=graph.nodes, edges=graph.edges, metadata=about)


def _axes(shape: Shape) -> np.ndarray:
    return np.array(channels_first(shape))


def _add_layer(graph: _Graph, index: str, spec: LayerSpec, params: LayerParams, writing: Writing) -> None:
    import nir

    where, shape = f"layer {index}", spec.fitted.out_shape
    facts = {
        "capacity": spec.capacity,
        "second_threshold": spec.second_threshold,
        "per_channel": spec.per_channel,
    }
    if spec.delays is not None and params.delays is not None:
        graph.add(f"delay_{index}", _delay(spec.delays, params.delays.inputs, spec.fitted.in_shape, writing))
    _add_connection(graph, index, spec, params, writing)
    first = f"neurons_{index}"
    for node in nodes_of(where, spec.neuron, params.neuron, shape, writing, facts):
        graph.add(first if graph.last != first else f"threshold_{index}", node)
    if params.recurrent is None:
        return
    way: list[tuple[str, Any]] = []
    if spec.delays is not None and params.delays is not None and params.delays.recurrent is not None:
        way.append((f"recurrent_delay_{index}", _delay(spec.delays, params.delays.recurrent, shape, writing)))
    weights = np.asarray(params.recurrent, writing.dtype)
    graph.add_loop(first, [*way, (f"recurrent_{index}", nir.Linear(weight=weights.T.copy()))])


def _delay(spec: Axonal, raw: Any, shape: Shape, writing: Writing) -> Any:
    import nir

    steps = np.asarray(spec.steps(raw, shape), np.float64)
    facts = {
        "max_delay": spec.max_delay,
        "initial": list(spec.initial) if isinstance(spec.initial, tuple) else spec.initial,
        "learn": spec.learn,
        "per": spec.per,
    }
    delay = to_channels_first(steps * writing.dt, shape).astype(writing.dtype)
    return nir.Delay(
        delay=delay, metadata=written({"delays": facts}, raw_delay=np.asarray(raw, writing.dtype))
    )


def _add_connection(
    graph: _Graph, index: str, spec: LayerSpec | ReadoutSpec, params: LayerParams, writing: Writing
) -> None:
    """Add pooling, and the weights after it."""
    import nir

    fitted = spec.fitted
    _check_parts(fitted)
    pooling, shape = fitted.connection.pooling, fitted.in_shape
    if pooling is not None:
        if len(pooling.window) != 2:
            fail("to_nir: `network` must pool in two dimensions, as NIR does, got one. Pool only images.")
        make = nir.AvgPool2d if pooling.mean else nir.SumPool2d
        window = np.array(pooling.window)
        graph.add(f"pool_{index}", make(kernel_size=window, stride=window, padding=np.zeros(2, int)))
        shape = pooling.out_shape
    weights = np.asarray(fitted.masked(params.weights), writing.dtype)
    bias = None if params.bias is None else np.asarray(params.bias, writing.dtype)
    if fitted.connection.convolution is not None:
        graph.add(f"weights_{index}", _convolution(index, fitted, weights, bias))
        return
    if len(shape) > 1:
        # Start and end are explicit: NIR's default does not flatten the channels.
        first = {"input": _axes(shape)}
        graph.add(f"flatten_{index}", nir.Flatten(input_type=first, start_dim=0, end_dim=-1))
    mask = None if fitted.mask is None else fitted.mask.entries.astype(np.uint8)
    metadata = {} if mask is None else written({}, mask=mask)
    matrix = np.ascontiguousarray(rows_to_channels_first(weights, shape).T)
    if bias is None:
        graph.add(f"weights_{index}", nir.Linear(weight=matrix, metadata=metadata))
    else:
        graph.add(f"weights_{index}", nir.Affine(weight=matrix, bias=bias, metadata=metadata))


def _check_parts(fitted: Fitted) -> None:
    """Check that an unsupported kind of connection is not mistaken for dense weights."""
    for part in fitted.connection.parts:
        if not isinstance(part, _PARTS):
            fail(
                f"to_nir: `network` must hold connections that are written as NIR, got {part.words}. "
                "Replace it with dense weights or a convolution."
            )


def _convolution(index: str, fitted: Fitted, weights: np.ndarray, bias: np.ndarray | None) -> Any:
    import nir

    convolution = fitted.connection.convolution
    assert convolution is not None
    space = len(convolution.kernel)
    kernels = np.ascontiguousarray(np.moveaxis(weights, (-1, -2), (0, 1)))
    lengths = convolution.shape[:-1]
    common = {
        "weight": kernels,
        "groups": convolution.groups,
        "bias": np.zeros(convolution.channels_out, weights.dtype) if bias is None else bias,
        "metadata": written({"bias": bias is not None}),
    }
    padding = _padding(index, convolution)
    if space == 1:
        single = padding if isinstance(padding, str) else padding[0]
        node = nir.Conv1d(
            input_shape=lengths[0], stride=convolution.strides[0], padding=single, dilation=1, **common
        )
    else:
        pair = (lengths[0], lengths[1])
        node = nir.Conv2d(
            input_shape=pair,
            stride=(convolution.strides[0], convolution.strides[1]),
            padding=padding,
            dilation=(1, 1),
            **common,
        )
    # NIR 1.0.8 assumes square kernels and ungrouped channels.
    node.input_type, node.output_type = (
        {"input": _axes(convolution.shape)},
        {"output": _axes(convolution.out_shape)},
    )
    return node


def _padding(index: str, convolution: Any) -> Any:
    """Zeros on each side, if symmetric; else "same", if that is equivalent."""
    if all(low == high for low, high in convolution.padding):
        return tuple(low for low, _ in convolution.padding)
    same = tuple(((k - 1) // 2, k - 1 - (k - 1) // 2) for k in convolution.kernel)
    if not (convolution.padding == same and all(stride == 1 for stride in convolution.strides)):
        actual = f"{convolution.padding} in layer {index}"
        fail(f"to_nir: `network` must pad both sides alike, got {actual}. Pad them so, or use an odd kernel.")
    return "same"
