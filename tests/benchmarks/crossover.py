"""List form against dense form of `spike_matmul`'s reference, over rows and share of neurons listed.

Prints time of the dense form over time of the list form, above 1 where lists are faster, for the product and for the
product with both of its backward passes: the evidence for `_MAX_LIST_ROWS` and `_MAX_LIST_SHARE`.
Run it with ``python tests/benchmarks/crossover.py [width ...]``.
"""

import importlib
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import SparseSpikes, spike_matmul

# The module, which the op of the same name hides.
MODULE = importlib.import_module("snnjax.ops.spike_matmul")
WIDTHS = (1024, 4096)
ROWS = (1, 2, 4, 8, 16, 48, 128)
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
# Of a list form that would gather more than this, only the slowness would show.
MAX_GATHERED = 2**27  # entries of the weights
REPEATS, MIN_SECONDS = 7, 0.004

Program = Callable[..., Any]


def compiled(function: Program, lists: bool, *arguments: Any) -> Program:
    """`function` compiled with one of the two forms, whatever the constants say."""
    own = MODULE.prefers_lists
    MODULE.prefers_lists = lambda *_: lists
    try:
        return jax.jit(lambda *operands: function(*operands)).lower(*arguments).compile()
    finally:
        MODULE.prefers_lists = own


def forward(values: Any, weights: Any, spikes: SparseSpikes, g: Any) -> Any:
    del g
    listed = SparseSpikes(spikes.ids, values, spikes.num_spikes, spikes.num_listed, spikes.num_neurons)
    return spike_matmul(listed, weights)


def with_backward(values: Any, weights: Any, spikes: SparseSpikes, g: Any) -> Any:
    out, pull_back = jax.vjp(lambda v, w: forward(v, w, spikes, g), values, weights)
    return out, pull_back(g)


def seconds(program: Program, arguments: tuple[Any, ...], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        jax.block_until_ready(program(*arguments))
    return (time.perf_counter() - start) / calls


def speed_of_lists(function: Program, rows: int, capacity: int, width: int) -> float:
    """Median time of the dense form over that of the list form, interleaved."""
    rng = np.random.default_rng(0)
    ids = np.sort(rng.permuted(np.tile(np.arange(width), (rows, 1)), axis=1)[:, :capacity], axis=1)
    spikes = SparseSpikes.from_ids(jnp.asarray(ids), width)
    weights = jnp.asarray(rng.normal(size=(width, width)), jnp.float32)
    g = jnp.asarray(rng.normal(size=(rows, width)), jnp.float32)
    arguments = (spikes.values, weights, spikes, g)
    programs = [compiled(function, lists, *arguments) for lists in (False, True)]
    calls = [max(1, int(MIN_SECONDS / min(seconds(p, arguments, 1) for _ in range(2)))) for p in programs]
    times = [[seconds(p, arguments, n) for p, n in zip(programs, calls, strict=True)] for _ in range(REPEATS)]
    return statistics.median(dense / lists for dense, lists in times)


def main() -> None:
    """Print one table per width and direction."""
    widths = [int(argument) for argument in sys.argv[1:]] or WIDTHS
    for width, (name, function) in itertools.product(
        widths, (("forward", forward), ("forward and backward", with_backward))
    ):
        header = "".join(f"{100 * share:>8.1f} %" for share in SHARES)
        sys.stdout.write(f"\n{width} x {width}, {name}: dense time over list time\n{'rows':>5}{header}\n")
        for rows in ROWS:
            sys.stdout.write(f"{rows:>5}")
            for share in SHARES:
                capacity = max(1, round(share * width))
                small = rows * capacity * width <= MAX_GATHERED
                text = f"{speed_of_lists(function, rows, capacity, width):.2f}" if small else "-"
                sys.stdout.write(f"{text:>10}")
                sys.stdout.flush()
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
