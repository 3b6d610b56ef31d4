"""The jnp references by the names of arrays that the model's harness has: `run` is `run_on_model` without a model.

All arrays that the harness has defaults for must be given.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import snnjax
from snnjax import LeakyReadout, LIFLayer, LIFNetworkState, SparseSpikes, Surrogate

Arrays = dict[str, Any]
REFERENCE = {"implementation": "reference"}
PARAMETERS = ("weights", "decay", "threshold", "gain", "bias", "recurrent")  # in the order of LIFLayer
CONSTANTS = ("decay", "threshold", "gain")
# Compiled in half the time, for what runs once.
quick_jit = functools.partial(
    jax.jit,
    compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
)


def run(op: str, arrays: Mapping[str, Any], **attributes: Any) -> dict[str, np.ndarray]:
    """Results by name, in float32: arrays of halves are widened, as the model does with all it sums."""
    wide = {name: np.asarray(array) for name, array in arrays.items()}
    wide = {name: a.astype(np.float32) if a.dtype.kind == "f" else a for name, a in wide.items()}
    surrogate = Surrogate(attributes.pop("surrogate", "superspike"), attributes.pop("slope", 10.0))
    results = OPS[op]({name: jnp.asarray(array) for name, array in wide.items()}, surrogate, **attributes)
    return {name: np.asarray(array) for name, array in results.items()}


def _spike_matmul(given: Arrays, _: Surrogate) -> Arrays:
    ids, weights = given["ids"], given["weights"]
    counts = jnp.zeros(ids.shape[:1], jnp.int32)

    def product(values: jax.Array, weights: jax.Array) -> jax.Array:
        spikes = SparseSpikes(ids, values, counts, counts, weights.shape[0])
        return snnjax.spike_matmul(spikes, weights, **REFERENCE)

    out, pull_back = jax.vjp(product, given["values"], weights)
    d_values, d_weights = pull_back(given["g"])
    return {"out": out, "d_values": d_values, "d_weights": d_weights}


def _select_spikes(given: Arrays, surrogate: Surrogate, capacity: int) -> Arrays:
    def select(v: jax.Array, threshold: jax.Array) -> tuple[jax.Array, SparseSpikes]:
        second = given["second_threshold"]
        options: Arrays = {"capacity": capacity, "surrogate": surrogate, **REFERENCE}
        spikes = snnjax.select_spikes(v, threshold, second, **options)
        return spikes.values, spikes

    _, pull_back, spikes = jax.vjp(select, given["v"], given["threshold"], has_aux=True)
    results = {name: getattr(spikes, name) for name in ("ids", "values", "num_spikes", "num_listed")}
    g_v, g_threshold = pull_back(given["g"])
    return {**results, "g_v": g_v, "g_threshold": g_threshold}


def _lif_step(given: Arrays, surrogate: Surrogate, **convention: Any) -> Arrays:
    names = ("v", "current", *CONSTANTS)

    def step(*arguments: jax.Array) -> Any:
        return snnjax.lif_step(*arguments, surrogate=surrogate, **convention, **REFERENCE)

    (v_new, spikes), pull_back = jax.vjp(step, *(given[name] for name in names))
    cotangents = pull_back((given["g_v_new"], given["g_spikes"]))
    results = {f"g_{name}": g for name, g in zip(names, cotangents, strict=True)}
    return {"v_new": v_new, "spikes": spikes, **results}


def num_layers(arrays: Mapping[str, Any]) -> int:
    return sum(name.startswith("weights") for name in arrays)


def _lif_network(given: Arrays, surrogate: Surrogate, **options: Any) -> Arrays:
    """All results, and for the cotangents among them all gradients that the harness has."""
    learns_constants = options.pop("learns_constants", False)
    inputs_gradient = options.pop("inputs_gradient", False)
    parts = ("weights", "bias", "v", "recurrent", "spikes", *(CONSTANTS if learns_constants else ()))
    names = [f"{part}{layer}" for layer in range(num_layers(given)) for part in parts]
    names = [name for name in (*names, *(("values", "inputs") if inputs_gradient else ())) if name in given]
    if "readout_weights" in given:
        constants = ("decay", "gain") if learns_constants else ()
        names += [f"readout_{part}" for part in ("weights", "bias", "v", *constants)]

    def network(arrays: Arrays) -> tuple[Arrays, Arrays]:
        results = _network_results({**given, **arrays}, surrogate, options)
        differentiable = {name: array for name, array in results.items() if f"g_{name}" in given}
        return differentiable, results

    @quick_jit
    def with_gradients(arrays: Arrays) -> Arrays:
        differentiable, pull_back, results = jax.vjp(network, arrays, has_aux=True)
        gradients = pull_back({name: given[f"g_{name}"] for name in differentiable})[0]
        return {**results, **{f"g_{name}": g for name, g in gradients.items()}}

    return with_gradients({name: given[name] for name in names})


def _network_results(given: Arrays, surrogate: Surrogate, options: Any) -> Arrays:
    count = num_layers(given)
    layers = [LIFLayer(*(given.get(f"{part}{layer}") for part in PARAMETERS)) for layer in range(count)]
    readout = None
    if "readout_weights" in given:
        readout = LeakyReadout(*(given[f"readout_{part}"] for part in ("weights", "decay", "gain", "bias")))
    inputs = _inputs(given)
    shape = (inputs.ids if isinstance(inputs, SparseSpikes) else inputs).shape
    state = snnjax.lif_network_state(shape[1], layers, readout)
    membranes = tuple(given[f"v{layer}"] for layer in range(count))
    spikes = tuple(given.get(f"spikes{layer}", zeros) for layer, zeros in enumerate(state.spikes))
    state = LIFNetworkState(membranes, state.w, spikes, given.get("readout_v"))
    lengths = given.get("lengths")
    second = tuple(given[f"second_threshold{layer}"] for layer in range(count))
    options = {"record_spikes": True, "second_threshold": second, "surrogate": surrogate, **options}
    out, last = snnjax.lif_network(inputs, layers, readout, state, lengths=lengths, **options, **REFERENCE)
    return _named(out, last, _lengths(lengths, shape), readout is not None)


def _inputs(given: Arrays) -> Any:
    """Dense inputs, or events with their values."""
    if "inputs" in given:
        return given["inputs"]
    ids = given["ids"]
    zeros = jnp.zeros(ids.shape[:2], jnp.int32)
    values = given.get("values", jnp.ones(ids.shape, jnp.float32))
    return SparseSpikes(ids, values, zeros, zeros, given["weights0"].shape[0])


def _lengths(lengths: Any, shape: tuple[int, ...]) -> jax.Array:
    steps, batch = shape[:2]
    return jnp.full(batch, steps) if lengths is None else jnp.clip(lengths, 0, steps)


def _named(out: Any, last: Any, lengths: jax.Array, has_readout: bool) -> Arrays:
    """The results by the names of the harness, which counts spikes where the reference has their mean."""
    results = {"output": out.output}
    for layer, activity in enumerate(out.activity):
        results[f"counts{layer}"] = activity * jnp.maximum(lengths, 1).astype(jnp.float32)[:, None]
        results[f"last_v{layer}"] = last.v[layer]
        if last.spikes[layer] is not None:
            results[f"last_spikes{layer}"] = last.spikes[layer]
        if not has_readout and layer + 1 == len(out.activity):
            continue
        results[f"dropped{layer}"] = out.dropped[layer]
        if isinstance(out.spikes[layer], SparseSpikes):  # lists that are not cut are bits
            parts = ("ids", "values", "num_spikes", "num_listed")
            results |= {f"{part}{layer}": getattr(out.spikes[layer], part) for part in parts}
    if has_readout:
        results["last_readout_v"] = last.readout
    return results


def _training_step(
    given: Arrays, surrogate: Surrogate, num_updates: int, learning_rate: float, pooling: str, **options: Any
) -> Arrays:
    """`num_updates` steps of optax.adam on the gradient of the mean cross-entropy."""
    parts = ("weights", "bias", "recurrent")
    names = [f"{part}{layer}" for layer in range(num_layers(given)) for part in parts]
    names = [name for name in (*names, "readout_weights", "readout_bias") if name in given]
    parameters = {name: given[name] for name in names}

    def loss(parameters: Arrays) -> jax.Array:
        output = _network_results({**given, **parameters}, surrogate, options)["output"]
        steps = _lengths(given.get("lengths"), output.shape)
        valid = (jnp.arange(output.shape[0])[:, None] < steps[None])[:, :, None]
        if pooling == "max":
            logits = jnp.max(output, axis=0, where=valid, initial=-jnp.inf)
        else:
            logits = jnp.sum(output, axis=0, where=valid)
            logits = logits / steps[:, None].astype(jnp.float32) if pooling == "mean" else logits
        return optax.softmax_cross_entropy_with_integer_labels(logits, given["labels"]).mean()

    optimiser, step = optax.adam(learning_rate), quick_jit(jax.value_and_grad(loss))
    state, losses = optimiser.init(parameters), []
    with jax.numpy_dtype_promotion("standard"):  # optax mixes whole numbers and floats
        for _ in range(num_updates):
            value, gradient = step(parameters)
            losses.append(value)
            updates, state = optimiser.update(gradient, state, parameters)
            parameters = optax.apply_updates(parameters, updates)
    return {"loss": jnp.stack(losses), **{f"new_{name}": array for name, array in parameters.items()}}


OPS = {
    "spike_matmul": _spike_matmul,
    "select_spikes": _select_spikes,
    "lif_step": _lif_step,
    "lif_network": _lif_network,
    "training_step": _training_step,
}
