"""The jnp references by the names of arrays that the model's harness has: `run` is `run_on_model` without a model."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import (
    LeakyReadout,
    LIFLayer,
    LIFNetworkState,
    SparseSpikes,
    Surrogate,
    lif_network,
    lif_network_state,
    lif_step,
    select_spikes,
    spike_matmul,
)

Arrays = dict[str, Any]
Results = dict[str, np.ndarray]
FORCED = {"implementation": "reference"}


def run(op: str, arrays: Mapping[str, Any], **attributes: Any) -> Results:
    """Results by name; those with a cotangent are in the dtype in which the op computes."""
    given = {name: jnp.asarray(array) for name, array in arrays.items()}
    surrogate = Surrogate(attributes.pop("surrogate", "superspike"), attributes.pop("slope", 10.0))
    results = OPS[op](given, surrogate, **attributes)
    return {name: np.asarray(array) for name, array in results.items()}


def _spike_matmul(given: Arrays, _: Surrogate) -> Arrays:
    ids, weights = given["ids"], given["weights"]
    values = jnp.broadcast_to(given.get("values", jnp.ones((), weights.dtype)), ids.shape)
    counts = jnp.zeros(ids.shape[:1], jnp.int32)

    def product(values: Any, weights: Any) -> Any:
        return spike_matmul(SparseSpikes(ids, values, counts, counts, weights.shape[0]), weights, **FORCED)

    out, pull_back = jax.vjp(product, values, weights)
    if "g" not in given:
        return {"out": out}
    d_values, d_weights = pull_back(given["g"])
    return {"out": out, "d_values": d_values, "d_weights": d_weights}


def _select_spikes(given: Arrays, surrogate: Surrogate, capacity: int) -> Arrays:
    v = given["v"]
    each = [
        jnp.broadcast_to(given.get(name, jnp.asarray(default, v.dtype)), v.shape[1:])
        for name, default in (("threshold", 1.0), ("second_threshold", 0.9))
    ]

    def select(v: Any, threshold: Any) -> Any:
        spikes = select_spikes(v, threshold, each[1], capacity=capacity, surrogate=surrogate, **FORCED)
        return spikes.values, spikes

    _, pull_back, spikes = jax.vjp(select, v, each[0], has_aux=True)
    results = {name: getattr(spikes, name) for name in ("ids", "values", "num_spikes", "num_listed")}
    if "g" in given:
        results |= dict(zip(("g_v", "g_threshold"), pull_back(given["g"]), strict=True))
    return results


def _lif_step(given: Arrays, surrogate: Surrogate, **convention: Any) -> Arrays:
    names = ("v", "current", "decay", "threshold", "gain")

    def step(*arguments: Any) -> Any:
        return lif_step(*arguments, surrogate=surrogate, **convention, **FORCED)

    (v_new, spikes), pull_back = jax.vjp(step, *(given[name] for name in names))
    results = {"v_new": v_new, "spikes": spikes}
    if "g_v_new" in given:
        cotangents = pull_back((given["g_v_new"], given["g_spikes"]))
        results |= {f"g_{name}": g for name, g in zip(names, cotangents, strict=True)}
    return results


def _lif_network(given: Arrays, surrogate: Surrogate, **options: Any) -> Arrays:
    learns_constants = options.pop("learns_constants", False)
    count = sum(name.startswith("weights") for name in given)
    names = [str(layer) for layer in range(count)] + (["readout"] if "readout_weights" in given else [])
    differentiated = _differentiated(given, count)

    def network(arrays: Arrays) -> Arrays:
        return _run_network({**given, **arrays}, count, surrogate, options)

    results, pull_back = jax.vjp(network, differentiated)
    cotangents = {name: given.get(f"g_{name}", jnp.zeros_like(result)) for name, result in results.items()}
    results = dict(results)
    if any(f"g_{name}" in given for name in results):
        wanted = ("weights", "bias", "v", *(("decay", "threshold", "gain") if learns_constants else ()))
        gradients = pull_back(_float_only(cotangents, results))[0]
        for name, g in gradients.items():
            part = name.removeprefix("readout_").rstrip("0123456789")
            if part in wanted and not (name.startswith("readout") and part in ("decay", "gain")):
                results[f"g_{name}"] = g
    del names
    return results


def _float_only(cotangents: Arrays, results: Arrays) -> Arrays:
    """Whole numbers have cotangents of the type that says that they have none."""
    return {
        name: g
        if jnp.issubdtype(results[name].dtype, jnp.floating)
        else np.zeros(results[name].shape, jax.dtypes.float0)
        for name, g in cotangents.items()
    }


def _differentiated(given: Arrays, count: int) -> Arrays:
    """All parameters and first membranes, with the defaults of the harness."""
    batch, dtype = given["ids"].shape[1], given["weights0"].dtype
    arrays: Arrays = {}
    layers = [(part, f"{part}{layer}") for layer in range(count) for part in PARTS]
    if "readout_weights" in given:
        layers += [(part, f"readout_{part}") for part in PARTS if part != "threshold"]
    for part, name in layers:
        prefix = name.removesuffix(part) if name.startswith("readout") else ""
        suffix = "" if prefix else name.removeprefix(part)
        weights = given[f"{prefix}weights{suffix}"]
        default = {
            "bias": lambda n: jnp.zeros(n, dtype),
            "v": lambda n: jnp.zeros((batch, n), dtype),
            "threshold": lambda n: jnp.ones(n, dtype),
        }.get(part)
        neurons = weights.shape[1]
        arrays[name] = given[name] if name in given or default is None else default(neurons)
    return arrays


PARTS = ("weights", "bias", "decay", "threshold", "gain", "v")


def _run_network(given: Arrays, count: int, surrogate: Surrogate, options: Any) -> Arrays:
    """The results of the harness, each of which may have a cotangent."""
    fields = ("weights", "decay", "threshold", "gain", "bias")
    layers = [LIFLayer(*(given[f"{part}{layer}"] for part in fields)) for layer in range(count)]
    readout = None
    if "readout_weights" in given:
        readout = LeakyReadout(*(given[f"readout_{part}"] for part in ("weights", "decay", "gain", "bias")))
    ids, weights = given["ids"], given["weights0"]
    zeros = jnp.zeros(ids.shape[:2], jnp.int32)
    values = given.get("values", jnp.ones(ids.shape, weights.dtype)).astype(weights.dtype)
    inputs = SparseSpikes(ids, values, zeros, zeros, weights.shape[0])
    state = lif_network_state(ids.shape[1], layers, readout)
    state = LIFNetworkState(
        tuple(given[f"v{layer}"] for layer in range(count)), state.spikes, given.get("readout_v")
    )
    second = [given.get(f"second_threshold{layer}", jnp.asarray(0.9)) for layer in range(count)]
    lengths = given.get("lengths")
    out, last = lif_network(
        inputs,
        layers,
        readout,
        state,
        lengths=lengths,
        second_threshold=tuple(second),
        surrogate=surrogate,
        **{"record_spikes": True, **options},
        **FORCED,
    )
    return _named(out, last, ids.shape[0], lengths, readout is not None)


def _named(out: Any, last: Any, steps: int, lengths: Any, has_readout: bool) -> Arrays:
    length = (
        jnp.float32(steps) if lengths is None else jnp.clip(lengths, 1, steps).astype(jnp.float32)[:, None]
    )
    results = {"output": out.output}
    for layer, activity in enumerate(out.activity):
        results[f"counts{layer}"] = activity * length
        results[f"last_v{layer}"] = last.v[layer]
        if not has_readout and layer + 1 == len(out.activity):
            continue
        results[f"dropped{layer}"] = out.dropped[layer]
        if isinstance(out.spikes[layer], SparseSpikes):
            for part in ("ids", "values", "num_spikes", "num_listed"):
                results[f"{part}{layer}"] = getattr(out.spikes[layer], part)
    if has_readout:
        results["last_readout_v"] = last.readout
    return results


OPS = {
    "spike_matmul": _spike_matmul,
    "select_spikes": _select_spikes,
    "lif_step": _lif_step,
    "lif_network": _lif_network,
}
