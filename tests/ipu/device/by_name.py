"""The library's ops as functions of arrays by name, as in tests/ipu/device/cases.py, cotangents ``g_*`` among them.

Results are by name, too, and so are the gradients for the cotangents that are given.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import snnjax
from snnjax import LIFLayer, LIFNetworkState, LIFReadout, SparseSpikes
from snnjax.surrogates import Surrogate
from tests.ipu.device import on_device

Arrays = dict[str, Any]
PARAMETERS = ("weights", "decay", "threshold", "gain", "bias", "recurrent")  # in the order of LIFLayer
CONSTANTS = ("decay", "threshold", "gain")
# Compiled in half the time, for what runs once.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def reference(op: str, arrays: Mapping[str, Any], **attributes) -> dict[str, np.ndarray]:
    """What the op's reference yields on the CPU; or with `implementation` None its kernel, which compiles at once."""
    function = functools.partial(OPS[op], **{"implementation": "reference", **attributes})
    return _as_numpy(jax.jit(function, compiler_options=QUICK)(dict(arrays)))


class OnIpu:
    """An op on arrays, traced once, compiled for one number of tiles after the other."""

    def __init__(self, op: str, arrays: Mapping[str, Any], **attributes) -> None:
        self._arrays = {name: on_device.put(array) for name, array in arrays.items()}
        self._lowered = jax.jit(functools.partial(OPS[op], **attributes)).lower(self._arrays)

    def compile(self, tiles: int, ipus: int = 1, **options: str) -> jax.stages.Compiled:
        """For so many tiles of each of so many IPUs."""
        given = {"tiles": str(tiles), "ipus": str(ipus), **options}
        return self._lowered.compile({f"ipu_{name}": value for name, value in given.items()})

    def run(
        self, compiled: jax.stages.Compiled, arrays: Mapping[str, Any] | None = None
    ) -> dict[str, np.ndarray]:
        """What a compiled program yields, of other arrays where some are given."""
        given = (
            self._arrays if arrays is None else {name: on_device.put(array) for name, array in arrays.items()}
        )
        return _as_numpy(compiled(given))

    def on(self, tiles: int, ipus: int = 1, **options: str) -> dict[str, np.ndarray]:
        """What the op yields there."""
        return self.run(self.compile(tiles, ipus, **options))


def _as_numpy(results: Arrays) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in results.items()}


def _with_gradients(function: Callable[[Arrays], Arrays], given: Arrays, names: tuple[str, ...]) -> Arrays:
    """The results of `function`, and the gradients by `names` for the cotangents among `given`."""
    if not any(name.startswith("g_") for name in given):
        return function(given)

    def differentiable(arrays: Arrays) -> tuple[Arrays, Arrays]:
        results = function({**given, **arrays})
        return {name: results[name] for name in results if f"g_{name}" in given}, results

    outputs, pull_back, results = jax.vjp(differentiable, {name: given[name] for name in names}, has_aux=True)
    gradients = pull_back({name: given[f"g_{name}"] for name in outputs})[0]
    return results | {f"g_{name}": gradient for name, gradient in gradients.items()}


def _spike_matmul(given: Arrays, **options) -> Arrays:
    def product(given: Arrays) -> Arrays:
        counts = jnp.zeros(given["ids"].shape[:1], jnp.int32)
        spikes = SparseSpikes(
            given["ids"], given["values"], counts, counts, 0 * counts, given["weights"].shape[0]
        )
        return {"out": snnjax.spike_matmul(spikes, given["weights"], **options)}

    return _with_gradients(product, given, ("values", "weights"))


def _select_spikes(given: Arrays, **options) -> Arrays:
    def select(given: Arrays) -> Arrays:
        names = ("v", "threshold", "second_threshold")
        spikes = snnjax.select_spikes(*(given[name] for name in names), **options)
        return {name: getattr(spikes, name) for name in ("ids", "values", "num_spikes", "num_listed")}

    return _with_gradients(select, given, ("v", "threshold"))


def num_layers(arrays: Mapping[str, Any]) -> int:
    return sum(name.startswith("weights") for name in arrays)


def _lif_network(
    given: Arrays, *, learns_constants: bool = False, inputs_gradient: bool = False, **options
) -> Arrays:
    """Gradients of weights, state and, on request, of constants and inputs."""
    parts = ("weights", "bias", "v", "recurrent", "spikes", *(CONSTANTS if learns_constants else ()))
    names = [f"{part}{layer}" for layer in range(num_layers(given)) for part in parts]
    constants = ("decay", "gain") if learns_constants else ()
    names += [f"readout_{part}" for part in ("weights", "bias", "v", *constants)]
    names += ["values", "inputs"] if inputs_gradient else []
    known = tuple(name for name in names if name in given)
    return _with_gradients(functools.partial(network_results, options=options), given, known)


def network_results(given: Arrays, options) -> Arrays:
    count = num_layers(given)
    layers = [LIFLayer(*(given.get(f"{part}{layer}") for part in PARAMETERS)) for layer in range(count)]
    readout = None
    if "readout_weights" in given:
        readout = LIFReadout(*(given[f"readout_{part}"] for part in ("weights", "decay", "gain", "bias")))
    second = tuple(given[f"second_threshold{layer}"] for layer in range(count))
    options = {
        "second_threshold": second,
        "lengths": given.get("lengths"),
        "surrogate": Surrogate("superspike", 10.0),
    } | options
    out, last = snnjax.lif_network(_inputs(given), layers, readout, _state(given, layers, readout), **options)
    return _named(out, last)


def _state(given: Arrays, layers, readout) -> LIFNetworkState:
    batch = given["inputs" if "inputs" in given else "ids"].shape[1]
    state = snnjax.lif_network_state(batch, layers, readout)
    states = (
        zeros._replace(v=given[f"v{layer}"], spikes=given.get(f"spikes{layer}", zeros.spikes))
        for layer, zeros in enumerate(state.layers)
    )
    return LIFNetworkState(tuple(states), given.get("readout_v"))


def _inputs(given: Arrays):
    """Dense inputs, or events with their values."""
    if "inputs" in given:
        return given["inputs"]
    ids = given["ids"]
    zeros = jnp.zeros(ids.shape[:2], jnp.int32)
    values = given.get("values", jnp.ones(ids.shape, given["weights0"].dtype))
    return SparseSpikes(ids, values, zeros, zeros, zeros, given["weights0"].shape[0])


def _named(out, last) -> Arrays:
    output = out.output.to_dense() if isinstance(out.output, SparseSpikes) else out.output
    results = {"output": output}
    for layer, (activity, state) in enumerate(zip(out.activity, last.layers, strict=True)):
        results[f"activity{layer}"] = activity
        results[f"dropped{layer}"] = out.dropped[layer]
        results[f"last_v{layer}"] = state.v
        if state.spikes is not None:
            results[f"last_spikes{layer}"] = state.spikes
        spikes = None if out.spikes is None else out.spikes[layer]
        if isinstance(spikes, SparseSpikes):
            parts = ("ids", "values", "num_spikes", "num_listed")
            results |= {f"{part}{layer}": getattr(spikes, part) for part in parts}
        elif spikes is not None:
            results[f"fired{layer}"] = spikes
    if last.readout is not None:
        results["last_readout_v"] = last.readout
    return results


OPS: dict[str, Callable[..., Arrays]] = {
    "spike_matmul": _spike_matmul,
    "select_spikes": _select_spikes,
    "lif_network": _lif_network,
}
