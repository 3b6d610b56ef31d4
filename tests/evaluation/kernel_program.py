"""Run the kernels in a separate process: `python -m tests.evaluation.kernel_program results.npz [rounded]`.

The environment chooses the number of threads (`NPROC`, which XLA reads) and the instruction set (`SNNJAX_CPU_ISA`).
"""

import dataclasses
import functools
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import LIFLayer, lif_network, spike_matmul
from snnjax._types import Signal
from snnjax.quantisation import Quantised
from tests import quick
from tests.numbers import array, dyadic
from tests.ops import test_delay_spikes as of_delays
from tests.ops.common import is_float, jit
from tests.ops.kernel_checks import compiled
from tests.ops.lif_network.random_networks import Form, arguments
from tests.ops.products import test_spike_conv_kernel as of_convolutions
from tests.ops.products.test_spike_matmul_kernel import Product, compiled_product, lists
from tests.ops.simulation import test_simulate as of_simulations
from tests.project.architecture import ROOT

# Several tiles of neurons, blocks of samples and chunks of rows: work for four threads.
FORMS = (
    Form(8, 70, 200, (300, 65), 3, capacity=(30, None), record_spikes=False),
    Form(6, 40, 130, (200,), recurrent=True, given="uint16 lists", slots=20, surrogate="arctan", capacity=40),
    Form(6, 70, 30, (70,), recurrent=True, recurrent_delay=6, synaptic=True),
    Form(6, 13, 30, (70,), recurrent=True),
)
# Short lists, long ones, and one row.
PRODUCTS = (Product(64, 500, 700, 60), Product(64, 500, 700, 400), Product(1, 500, 1300, 500))
# Convolutions with the fraction of active inputs: sparse, dense, in groups.
CONVOLUTIONS = tuple(zip((0, 1, 4), (0.1, 0.45, 1.0), strict=True))
CONVOLVED_ROWS = 300
DELAYED = of_delays.Form(40, 30, 100, 12)
MANY = 80  # samples, whose steps use each row of the weights so often that packing pays
NOISE = 1e-3
LIMIT = 120  # seconds after which a process counts as hanging; it needs about five


def off_grid(tree):
    """The float leaves with noise: sums round, so that another order of additions is another result."""
    rng = np.random.default_rng(1)

    def move(leaf):
        if not is_float(leaf):
            return leaf
        noise = rng.normal(size=leaf.shape) * NOISE
        return array(np.asarray(leaf) + noise.astype(leaf.dtype), leaf.dtype)

    return jax.tree.map(move, tree)


def network_arguments(form: Form) -> dict[str, Any]:
    """Arrays whose sums are exact, and arrays whose sums round."""
    exact = arguments(form, np.random.default_rng(0))
    return {"exact": exact, "rounded": off_grid(exact)}


def product_arguments(product: Product) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    ids, values = lists(rng, product, 0.9)
    shapes = (product.neurons, product.outputs), (product.rows, product.outputs)
    exact = ids, values, *(dyadic(rng, -16, 16, *shape) for shape in shapes)
    return {"exact": exact, "rounded": off_grid(exact)}


@functools.cache
def product_and_network(implementation: str):
    def run(inputs: Signal, layers):
        product = spike_matmul(inputs[0], layers[0].weights, implementation=implementation)
        return product, lif_network(inputs, layers, implementation=implementation)

    return jit(run)


def with_int8(implementation: str):
    """A product and a network with weights of 8 bits, whose scales are powers of 2: no sum rounds."""
    rng = np.random.default_rng(0)

    def weights(inputs: int, outputs: int) -> Quantised:
        scale = array(0.5 ** rng.integers(6, 9, outputs), jnp.float32)
        return Quantised(array(rng.integers(-128, 128, (inputs, outputs)), jnp.int8), scale)

    layers = LIFLayer(weights(300, 200), 0.5, gain=1.0, recurrent=weights(200, 200))
    inputs = array(rng.random((6, 40, 300)) < rng.random(40)[:, None] ** 3, jnp.float32)
    return product_and_network(implementation)(inputs, [layers, LIFLayer(weights(200, 130), 0.5, gain=1.0)])


def simulated(shared: bool, implementation: str):
    """Steps of a network with random input, whose constants are shared or not."""
    given, options = of_simulations.random_network(3, 83, 2, shared=shared)
    return of_simulations.run(*given, **options, steps=of_simulations.STEPS, implementation=implementation)


def with_conductances(implementation: str):
    """One step, whose membranes err by the exponential function."""
    (cells, *given), _ = of_simulations.random_network(8, 83, 2, shared=False, conductances=True)
    cells = dataclasses.replace(cells, leak=-cells.leak, threshold=cells.threshold + 100.0)
    return of_simulations.run(cells, *given, steps=1, implementation=implementation)


@functools.cache
def first_sample(implementation: str):
    """What a network yields for the first sample of a batch."""

    def run(inputs: Signal, layers):
        out, state = lif_network(inputs, layers, record_spikes=True, implementation=implementation)
        dense = [each.to_dense() if hasattr(each, "to_dense") else each for each in out.spikes]
        return [each[:, :1] for each in (out.output, *dense)], [layer.v[:1] for layer in state.layers]

    return jit(run)


def of_the_first(samples: int, dtype: str, recurrent: bool, implementation: str):
    """The steps of the network use rows of the weights rarely, or often.

    Widths end in vectors of every number of columns, and no row of spikes is so full that it is multiplied densely.
    """
    rng = np.random.default_rng(0)

    def weights(inputs: int, outputs: int, size: float = 0.25):
        if dtype == "int8":
            scale = array(size * rng.uniform(0.5, 1.5, outputs) / 75, jnp.float32)
            return Quantised(array(rng.integers(-128, 128, (inputs, outputs)), jnp.int8), scale)
        return array(size * rng.normal(size=(inputs, outputs)), dtype)

    layers = [
        LIFLayer(weights(n, m), 0.5, gain=1.0, recurrent=weights(m, m, 0.05) if recurrent else None)
        for n, m in zip((150, 250, 127), (250, 127, 61), strict=True)
    ]
    spikes = rng.random((8, MANY, 150)) < 0.04
    inputs = array((spikes * rng.normal(size=spikes.shape))[:, :samples], jnp.float32)
    return first_sample(implementation)(inputs, layers)


def results_of(kind: str, implementation: str) -> dict[str, Any]:
    """Results and gradients of networks and products, of arrays whose sums are exact or round."""
    trees = {
        f"network {index} {kind}": compiled(form, implementation)(*network_arguments(form)[kind])
        for index, form in enumerate(FORMS)
    }
    for index, product in enumerate(PRODUCTS):
        run = compiled_product(product.neurons, implementation)
        trees[f"product {index} {kind}"] = run(*product_arguments(product)[kind])
    if kind == "exact":
        trees["int8 exact"] = with_int8(implementation)
        for shared in (False, True):
            trees[f"simulation {'of one kind' if shared else 'of many'} exact"] = simulated(
                shared, implementation
            )
        trees["simulation of conductances exact"] = with_conductances(implementation)
    return trees


def results(implementation: str) -> dict[str, np.ndarray]:
    """All results and gradients by name."""
    trees = results_of("exact", implementation) | results_of("rounded", implementation)
    for index, share in CONVOLUTIONS:
        geometry, rng = of_convolutions.GEOMETRIES[index], np.random.default_rng(0)
        ids, *exact = of_convolutions.draw_arguments(rng, geometry, CONVOLVED_ROWS, share)
        run = of_convolutions.compiled(geometry, implementation)
        trees[f"convolution {index} rounded"] = run(ids, *off_grid(exact))
    given = off_grid(of_delays.draw(DELAYED, np.random.default_rng(0), 0.3))
    trees["delays rounded"] = of_delays.compiled(DELAYED, implementation)(*given)
    for dtype, recurrent in itertools.product(("float32", "bfloat16", "int8"), (False, True)):
        for name, samples in (("alone", 1), ("together", MANY)):
            tree = of_the_first(samples, dtype, recurrent, implementation)
            trees[f"{name} {dtype} {'recurrent' if recurrent else 'forward'}"] = tree
    return by_name(trees)


def by_name(trees: dict[str, Any]) -> dict[str, np.ndarray]:
    """The leaves of trees, as they are stored."""
    return {
        f"{name} {place}": _storable(np.asarray(leaf))
        for name, tree in trees.items()
        for place, leaf in enumerate(jax.tree.leaves(tree))
    }


def _storable(array: np.ndarray) -> np.ndarray:
    """The same numbers in a dtype that NumPy's files know: they have no bfloat16."""
    return array.astype(np.float32) if array.dtype == jnp.bfloat16 else array


def threads_of_pool() -> int:
    """The number of threads in XLA's pool, by their names."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return names.count("tf_XLAEigen")


def results_of_process(
    path: Path, *before: str, kind: str | None = None, **environment: str
) -> dict[str, np.ndarray]:
    """The results, or those of a kind, that a separate process writes to `path`; `before` is the start of the command.

    Processes with one number of threads, to which XLA compiles, share what one of them has compiled.
    """
    command = [
        *before,
        sys.executable,
        "-m",
        "tests.evaluation.kernel_program",
        str(path),
        *([kind] if kind else []),
    ]
    compiled = {
        "JAX_COMPILATION_CACHE_DIR": str(path.parents[1] / f"compiled-{environment.get('NPROC')}"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    known = {**os.environ, "XLA_FLAGS": quick.XLA_FLAGS, **compiled, **environment}
    subprocess.run(command, cwd=ROOT, env=known, check=True, timeout=LIMIT)
    with np.load(path) as arrays:
        return dict(arrays)


if __name__ == "__main__":
    path, *kinds = sys.argv[1:]
    computed = by_name(results_of(kinds[0], "cpu")) if kinds else results("cpu")
    np.savez(path, threads=threads_of_pool(), **computed)
