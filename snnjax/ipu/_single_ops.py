"""How the single ops are called on the model: names and shapes of arrays, and what is static."""

from typing import Any

import numpy as np

from snnjax.ipu._arrays import (
    MAX_SHORT_NEURONS,
    RESET_TIMES,
    RESETS,
    SURROGATES,
    Operands,
    number_of,
)


def ids_of(operands: Operands, shape: tuple[int, ...], num_neurons: int) -> bool:
    """Hand over ids of any integer dtype; returns whether they take 32 bits on the device.

    No id that names nothing may become one that does, so those that 16 bits do not hold become the pad id.
    """
    ids = operands.integers("ids", shape)
    is_long = num_neurons > MAX_SHORT_NEURONS
    if not is_long:
        ids[(ids < 0) | (ids > MAX_SHORT_NEURONS)] = num_neurons
    return is_long


def spike_matmul(operands: Operands) -> None:
    """``ids``, ``values`` ``[rows, capacity]``, ``weights`` ``[inputs, outputs]``; ``g`` ``[rows, outputs]``.

    Results: ``out``; for a cotangent ``g`` also ``d_values``, ``d_weights``.
    """
    rows, capacity = operands.shape("ids", "rows, capacity")
    num_inputs, outputs = operands.shape("weights", "inputs, outputs")
    half = operands.is_half("weights")
    dtype = np.float16 if half else np.float32
    long_ids = ids_of(operands, (rows, capacity), num_inputs)
    operands.floats("values", (rows, capacity), default=1.0)
    operands.floats("weights", (num_inputs, outputs))
    operands.result("out", (rows, outputs), dtype)
    backward = operands.has("g")
    if backward:
        operands.floats("g", (rows, outputs))
        operands.result("d_values", (rows, capacity), dtype)
        operands.result("d_weights", (num_inputs, outputs))
    sizes = {"rows": rows, "capacity": capacity, "num_inputs": num_inputs, "outputs": outputs}
    operands.numbers.update(sizes, half=half, long_ids=long_ids, backward=backward)


def select_spikes(
    operands: Operands, *, capacity: int, surrogate: str = "superspike", slope: float = 10.0
) -> None:
    """``v`` ``[rows, neurons]``, ``threshold``, ``second_threshold`` (one or one a neuron); ``g`` ``[rows, capacity]``.

    Results: ``ids``, ``values``, ``num_spikes``, ``num_listed``; for a cotangent ``g`` of the values also ``g_v`` and
    ``g_threshold``.
    """
    rows, neurons = operands.shape("v", "rows, neurons")
    half = operands.is_half("v")
    dtype = np.float16 if half else np.float32
    operands.floats("v", (rows, neurons))
    operands.floats("threshold", (neurons,), default=1.0)
    operands.floats("second_threshold", (neurons,), default=0.9)
    operands.result("ids", (rows, capacity), np.int32)
    operands.result("values", (rows, capacity), dtype)
    operands.result("num_spikes", (rows,), np.int32)
    operands.result("num_listed", (rows,), np.int32)
    backward = operands.has("g")
    if backward:
        operands.floats("g", (rows, capacity))
        operands.result("g_v", (rows, neurons), dtype)
        operands.result("g_threshold", (neurons,))
    operands.numbers.update(
        rows=rows,
        neurons=neurons,
        capacity=capacity,
        surrogate=number_of(operands.op, "surrogate", surrogate, SURROGATES),
        slope=slope,
        half=half,
        long_ids=neurons > MAX_SHORT_NEURONS,
        backward=backward,
    )


def lif_step(
    operands: Operands,
    *,
    surrogate: str = "superspike",
    slope: float = 10.0,
    reset: str = "subtract",
    reset_time: str = "before_decay",
    spike_from: str = "new",
    detach_reset: bool = True,
    inclusive: bool = False,
) -> None:
    """``v``, ``current`` ``[rows, neurons]``, ``decay``, ``threshold``, ``gain``; ``g_v_new``, ``g_spikes``.

    Results: ``v_new``, ``spikes``; for a cotangent of either also ``g_v``, ``g_current``, ``g_decay``, ``g_threshold``
    and ``g_gain``.
    """
    op = operands.op
    rows, neurons = shape = operands.shape("v", "rows, neurons")
    half = operands.is_half("v")
    dtype = np.float16 if half else np.float32
    for name in ("v", "current"):
        operands.floats(name, shape)
    decay = operands.floats("decay", (neurons,))
    operands.floats("threshold", (neurons,), default=1.0)
    operands.floats("gain", (neurons,), default=1 - decay)
    for name in ("v_new", "spikes"):
        operands.result(name, shape, dtype)
    backward = operands.has("g_v_new") or operands.has("g_spikes")
    if backward:
        for name in ("g_v_new", "g_spikes"):
            operands.floats(name, shape, default=0.0)
        for name in ("g_v", "g_current"):
            operands.result(name, shape, dtype)
        for name in ("g_decay", "g_threshold", "g_gain"):
            operands.result(name, (neurons,))
    switches: dict[str, Any] = {
        "surrogate": number_of(op, "surrogate", surrogate, SURROGATES),
        "reset": number_of(op, "reset", reset, RESETS),
        "reset_time": number_of(op, "reset_time", reset_time, RESET_TIMES),
        "spike_from_old": number_of(op, "spike_from", spike_from, ("new", "old")),
    }
    operands.numbers.update(switches, rows=rows, neurons=neurons, slope=slope, half=half, backward=backward)
    operands.numbers.update(detach_reset=detach_reset, inclusive=inclusive)
