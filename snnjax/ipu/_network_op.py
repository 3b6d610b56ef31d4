"""How `lif_network` is called on the model: names and shapes of arrays, and what is static.

Arrays of layer 0, 1, ... have its number behind their name, those of a read-out begin with ``readout_``. The C++ side
numbers the read-out as one more layer.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from snnjax.ipu._arrays import INPUTS, MAPPINGS, RESETS, SURROGATES, Operands, number_of, refuse


def lif_network(
    operands: Operands,
    *,
    capacity: int | Sequence[int | None] | None = None,
    surrogate: str = "superspike",
    slope: float = 10.0,
    reset: str = "subtract",
    detach_reset: bool = True,
    mapping: str = "balanced",
    record_spikes: bool = False,
    learns_constants: bool = False,
    inputs_gradient: bool = False,
) -> None:
    """Events ``ids`` ``[time, batch, slots]``, for layer l ``weights<l>`` ``[inputs, neurons]``, ``decay<l>``, ...

    Optional: ``values`` of the events ``[time, batch, slots]``, or in place of events ``inputs``
    ``[time, batch, inputs]``; ``lengths`` ``[batch]``; ``threshold<l>``, ``second_threshold<l>``, ``gain<l>``,
    ``bias<l>``, ``recurrent<l>`` ``[neurons, neurons]``, and the state before the first step: membranes ``v<l>``
    ``[batch, neurons]`` and, of recurrent layers, spikes ``spikes<l>``; the same of a read-out (``readout_weights``,
    ...).

    Results: ``output``, ``last_v<l>``, ``last_spikes<l>`` of recurrent layers, ``last_readout_v``, ``counts<l>``,
    ``dropped<l>``, on request ``ids<l>``, ``values<l>``, ``num_spikes<l>`` and ``num_listed<l>`` of every layer whose
    spikes another layer or itself reads.

    `mapping` says how neurons are shared among tiles: "balanced" by the work and memory of each layer, "equal" with as
    many neurons of each layer on a tile.

    Any of ``g_output``, ``g_counts<l>``, ``g_last_v<l>``, ``g_last_spikes<l>``, ``g_last_readout_v`` asks for
    gradients: ``g_weights<l>``, ``g_recurrent<l>``, ``g_bias<l>``, ``g_v<l>``, ``g_spikes<l>`` where first spikes are
    given, ``g_readout_weights``, ..., with `learns_constants` ``g_decay<l>``, ``g_threshold<l>``, ``g_gain<l>``,
    ``g_readout_decay`` and ``g_readout_gain``, and with `inputs_gradient` ``g_values`` or ``g_inputs``.
    """
    network = Network(operands, capacity, inputs_gradient)
    network.set_switches(surrogate, slope, reset, detach_reset, mapping)
    operands.numbers.update(
        record_spikes=record_spikes, learns_constants=learns_constants, backward=network.backward
    )
    network.hand_over_inputs()
    for layer in range(len(network.widths)):
        network.hand_over_parameters(layer)
    network.hand_over_state()
    network.ask_for_results(record_spikes or network.backward)
    if network.backward:
        network.ask_for_gradients(learns_constants)


class Network:
    """The sizes of a network and its arrays; the read-out is the last of its layers."""

    def __init__(
        self,
        operands: Operands,
        capacity: int | Sequence[int | None] | None,
        inputs_gradient: bool = False,
    ) -> None:
        self.operands = operands
        self.has_readout = operands.has("readout_weights")
        count = 1
        while operands.has(f"weights{count}"):
            count += 1
        self.num_lif = count
        names = [self.name("weights", layer) for layer in range(count + self.has_readout)]
        shapes = [operands.shape(name, "inputs, neurons") for name in names]
        self.num_inputs, self.widths = shapes[0][0], [shape[1] for shape in shapes]
        self.half = operands.is_half(names[0])
        self.is_dense = operands.has("inputs")
        source = ("inputs", "time, batch, inputs") if self.is_dense else ("ids", "time, batch, slots")
        self.steps, self.batch, self.slots = operands.shape(*source)
        self.slots = self.num_inputs if self.is_dense else self.slots
        self.capacity = self._capacities(capacity)
        self.is_recurrent = [operands.has(f"recurrent{layer}") for layer in range(count)]
        self.backward = any(operands.has(name) for name in self._cotangents())
        self.inputs_gradient = inputs_gradient
        operands.numbers.update(
            num_steps=self.steps,
            batch=self.batch,
            num_inputs=self.num_inputs,
            event_capacity=self.slots,
            num_layers=count,
            outputs=self.widths[-1] if self.has_readout else 0,
            half=self.half,
        )
        operands.numbers.update(inputs_gradient=inputs_gradient, first_spikes=False)
        for layer in range(count):
            own = self.capacity[layer]
            operands.numbers[f"neurons{layer}"] = self.widths[layer]
            operands.numbers[f"capacity{layer}"] = -1 if own is None else min(own, self.widths[layer])

    def name(self, part: str, layer: int) -> str:
        """``weights0``, ``readout_weights``."""
        return f"{part}{layer}" if layer < self.num_lif else f"readout_{part}"

    def _capacities(self, capacity: Any) -> list[int | None]:
        each = list(capacity) if isinstance(capacity, Sequence) else [capacity] * self.num_lif
        if len(each) != self.num_lif or any(c is not None and c < 1 for c in each):
            expected = f"be None or at least 1, one value or {self.num_lif} of them"
            refuse(self.operands.op, "capacity", expected, capacity, "Count the layers")
        return each if self.has_readout else [*each[:-1], None]  # a spiking output is fully listed

    def set_switches(
        self, surrogate: str, slope: float, reset: str, detach_reset: bool, mapping: str
    ) -> None:
        """Names become the numbers that the codelets have for them."""
        op = self.operands.op
        self.operands.numbers.update(
            surrogate=number_of(op, "surrogate", surrogate, SURROGATES),
            slope=slope,
            reset=number_of(op, "reset", reset, RESETS),
            detach_reset=detach_reset,
            equal_columns=number_of(op, "mapping", mapping, MAPPINGS),
        )

    def _cotangents(self) -> list[str]:
        layers = range(self.num_lif)
        each = [f"{part}{layer}" for layer in layers for part in ("g_counts", "g_last_v", "g_last_spikes")]
        return ["g_output", "g_last_readout_v", *each]

    def hand_over_inputs(self) -> None:
        """Events that all have the value 1 are spikes, which take less on the device."""
        operands, shape = self.operands, (self.steps, self.batch, self.slots)
        lengths = operands.integers("lengths", (self.batch,), default=self.steps)
        np.clip(lengths, 0, self.steps, out=lengths)
        operands.numbers["inputs"] = INPUTS.index("dense")
        if self.is_dense:
            operands.arrays["values"] = operands.floats("inputs", (self.steps, self.batch, self.num_inputs))
            return
        ids = operands.integers("ids", shape)
        values = operands.floats("values", shape, 1.0)
        named = (ids >= 0) & (ids < self.num_inputs)
        if self.inputs_gradient or np.any((values != 0) & (values != 1) & named):
            operands.numbers["inputs"] = INPUTS.index("events")
            return
        operands.numbers["inputs"] = INPUTS.index("spikes")
        ids[values == 0] = self.num_inputs

    def inputs_of(self, layer: int) -> int:
        """Rows of a layer's weights."""
        return self.num_inputs if layer == 0 else self.widths[layer - 1]

    def hand_over_state(self) -> None:
        """The membranes before the first step, and the spikes of recurrent layers if there are any."""
        for layer, neurons in enumerate(self.widths):
            self._as_numbered("v", layer, (self.batch, neurons), 0.0)
        recurrent = [layer for layer, is_recurrent in enumerate(self.is_recurrent) if is_recurrent]
        first_spikes = any(self.operands.has(f"spikes{layer}") for layer in recurrent)
        self.operands.numbers["first_spikes"] = first_spikes
        for layer in recurrent if first_spikes else ():
            self.operands.floats(f"spikes{layer}", (self.batch, self.widths[layer]), 0.0)

    def is_listed(self, layer: int) -> bool:
        """Whether a layer's spikes are read by another one, or by itself."""
        return layer + 1 < len(self.widths) or (layer < self.num_lif and self.is_recurrent[layer])

    def hand_over_parameters(self, layer: int) -> None:
        """Weights and constants under the names that the C++ side knows."""
        neurons = self.widths[layer]
        self._as_numbered("weights", layer, (self.inputs_of(layer), neurons))
        self._as_numbered("bias", layer, (neurons,), 0.0)
        decay = self._as_numbered("decay", layer, (neurons,))
        self._as_numbered("gain", layer, (neurons,), 1 - decay)
        if layer == self.num_lif:
            return
        if self.is_recurrent[layer]:
            self.operands.floats(f"recurrent{layer}", (neurons, neurons))
        self._as_numbered("threshold", layer, (neurons,), 1.0)
        second = self._as_numbered("second_threshold", layer, (neurons,), 0.9)
        if self.capacity[layer] is None:
            second[:] = -np.inf

    def _as_numbered(self, part: str, layer: int, shape: tuple[int, ...], default: Any = None) -> np.ndarray:
        name, numbered = self.name(part, layer), f"{part}{layer}"
        array = self.operands.floats(name, shape, default)
        if name != numbered:
            self.operands.arrays[numbered] = self.operands.arrays.pop(name)
        return array

    def ask_for_results(self, records: bool) -> None:
        """Everything that the forward pass yields."""
        result, batch, steps = self.operands.result, self.batch, self.steps
        last = len(self.widths) - 1
        # All membranes of the last layer, the first ones in front: the output and the last membranes are read off it.
        result("membranes", (steps + 1, batch, self.widths[last]))
        for layer in range(self.num_lif):
            neurons = self.widths[layer]
            result(f"counts{layer}", (batch, neurons))
            if self.is_recurrent[layer]:
                result(f"last_spikes{layer}", (batch, neurons))
            if layer < last:
                result(f"last{layer}", (batch, neurons))
            if not self.is_listed(layer):
                continue
            result(f"dropped{layer}", (batch,), np.int32)
            if records:
                slots = int(self.operands.numbers[f"capacity{layer}"])
                slots = neurons if slots < 0 else slots
                result(f"ids{layer}", (steps, batch, slots), np.int32)
                for part in ("num_kept", "num_spikes", "num_listed"):
                    result(f"{part}{layer}", (steps, batch), np.int32)
        self.operands.finish = self._finish

    def ask_for_gradients(self, learns_constants: bool) -> None:
        """Cotangents, 0 where none is given, and gradients."""
        operands, last = self.operands, len(self.widths) - 1
        operands.floats("g_output", (self.steps, self.batch, self.widths[last]), 0.0)
        for layer, neurons in enumerate(self.widths):
            state, is_lif = (self.batch, neurons), layer < self.num_lif
            name = self.name("v", layer)
            operands.floats(f"g_last_{name}", state, 0.0)
            operands.arrays[f"g_last{layer}"] = operands.arrays.pop(f"g_last_{name}")
            if is_lif:
                operands.floats(f"g_counts{layer}", state, 0.0)
            if is_lif and self.is_recurrent[layer]:
                operands.floats(f"g_last_spikes{layer}", state, 0.0)
                operands.result(f"g_recurrent{layer}", (neurons, neurons))
                if operands.numbers["first_spikes"]:
                    operands.result(f"g_spikes{layer}", state)
            operands.result(f"g_weights{layer}", (self.inputs_of(layer), neurons))
            constants = ("decay", "gain", *(("threshold",) if is_lif else ()))
            for part in ("bias", "v", *(constants if learns_constants else ())):
                operands.result(f"g_{part}{layer}", state)
        if self.inputs_gradient:
            operands.result("g_values", (self.steps, self.batch, self.slots))

    def _finish(self, raw: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The results by the names that users know."""
        last = len(self.widths) - 1
        membranes = raw.pop("membranes")
        results = {"output": membranes[1:], f"last{last}": membranes[-1]}
        if not self.has_readout:
            results["output"] = self._spikes_of(membranes[1:])
        for name, array in raw.items():
            is_sum = name.startswith(("g_bias", "g_decay", "g_threshold", "g_gain"))  # over the batch
            results[name] = np.sum(array, axis=0) if is_sum else array
        for layer in range(self.num_lif):
            if f"ids{layer}" in results:
                self._complete_lists(results, layer)
        renamed = {f"last{layer}": f"last_{self.name('v', layer)}" for layer in range(last + 1)}
        if self.has_readout:
            parts = ("weights", "bias", "v", "decay", "gain")
            renamed |= {f"g_{part}{last}": f"g_readout_{part}" for part in parts}
        if self.is_dense:
            renamed["g_values"] = "g_inputs"
        return {renamed.get(name, name): array for name, array in results.items()}

    def _spikes_of(self, membranes: np.ndarray) -> np.ndarray:
        threshold = self.operands.arrays[f"threshold{self.num_lif - 1}"]
        valid = np.arange(self.steps)[:, None] < self.operands.arrays["lengths"]
        return ((membranes > threshold) & valid[:, :, None]).astype(membranes.dtype)

    def _complete_lists(self, results: dict[str, np.ndarray], layer: int) -> None:
        """Slots up to the capacity that was asked for, and values: 1 for spikes."""
        ids = results[f"ids{layer}"]
        wanted = self.capacity[layer] or ids.shape[-1]
        room = ((0, 0), (0, 0), (0, wanted - ids.shape[-1]))
        results[f"ids{layer}"] = np.pad(ids, room, constant_values=self.widths[layer])
        kept = results.pop(f"num_kept{layer}")
        dtype = np.float16 if self.half else np.float32
        results[f"values{layer}"] = (np.arange(wanted) < kept[:, :, None]).astype(dtype)
