"""Scans over time, in the forms that platforms run fastest: the steps and their equations are the same."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

# (step, constants, first carry, xs, reverse) -> (last carry, ys), where a step is (constants, carry, x) -> (carry, y)
Scan = Callable[..., tuple[Any, Any]]


def time_scan(
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    constants: PyTree,
    first: PyTree,
    xs: PyTree,
    *,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """`jax.lax.scan` of a step that is given all constants that it reads, with `unroll` or more steps in each round.

    The steps that are left over are a scan of their own: in that with the others, XLA for GPUs fails (in jaxlib 0.11.2:
    a ``RET_CHECK`` of incompatible shapes) to compile recurrent layers with capacity.
    """
    scan = functools.partial(jax.lax.scan, functools.partial(step, constants), reverse=reverse)
    (steps, *_), *_ = (leaf.shape for leaf in jax.tree.leaves(xs))
    unroll = next((most for most in range(unroll, 2 * unroll) if steps % most == 0), unroll)
    whole = steps - steps % unroll
    if whole in (0, steps):
        return scan(first, xs, unroll=max(1, min(unroll, steps)))
    parts = [functools.partial(scan, unroll=unroll), scan]
    cut = [jax.tree.map(lambda x: x[:whole], xs), jax.tree.map(lambda x: x[whole:], xs)]
    carry, ys = first, [None, None]
    for part in (1, 0) if reverse else (0, 1):
        carry, ys[part] = parts[part](carry, cut[part])
    return carry, jax.tree.map(lambda *each: jnp.concatenate(each), *ys)


def kernel_scan(
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    constants: PyTree,
    first: PyTree,
    xs: PyTree,
    *,
    reverse: bool = False,
    interpret: bool = False,
) -> tuple[Any, Any]:
    """The same as one kernel of a GPU (`snnjax.ops._gpu_scan`), or interpreted on any platform."""
    if any(leaf.size == 0 for leaf in jax.tree.leaves((first, xs))):
        return time_scan(step, constants, first, xs, reverse=reverse)
    from snnjax.ops import _gpu_scan  # imports Pallas, which takes long

    return _gpu_scan.scan(step, constants, first, xs, reverse=reverse, interpret=interpret)


class Loops(NamedTuple):
    """How a platform runs the steps of a reference; results are the same."""

    apart: Scan = time_scan  # of steps in which neither sequences nor neurons act on one another
    mixed: Scan = time_scan  # of any steps
    branches: bool = True  # whether what was computed decides, by a conditional, whether more is needed
    # Whether steps leave out what is rarely needed: weights that are not finite give NaN also for entries of 0, and a
    # recurrent layer runs again with lists that are capped if one of them is too long.
    hopes: bool = False


PLAIN = Loops()
# A GPU waits for the launch of each of a step's few small kernels. XLA fuses steps that are in the same round of the
# loop: with 8 a training step of four layers is 5 times as fast, and takes as long to compile; with 16 there is
# little more to gain (`docs/explanation/gpu.md`). For a conditional even the host waits, so steps have none.
_unrolled = functools.partial(time_scan, unroll=8)
UNROLLED = Loops(_unrolled, _unrolled, branches=False)
KERNELS = Loops(kernel_scan, _unrolled, branches=False)


def _without_loop(
    most: int,
    step: Callable[..., tuple[PyTree, PyTree]],
    constants: PyTree,
    first: PyTree,
    xs: PyTree,
    **options: bool,
) -> tuple[PyTree, PyTree]:
    """`time_scan` without a loop if there are at most so many steps."""
    (steps, *_), *_ = (leaf.shape for leaf in jax.tree.leaves(xs))
    if not isinstance(steps, int) or steps == 0:
        return time_scan(step, constants, first, xs, **options)
    return time_scan(step, constants, first, xs, unroll=steps if steps <= most else 8, **options)


# On an IPU a round of a loop costs as much as hundreds of elementwise operations, and what it stacks is copied: with
# 1,024 neurons, 16 samples and 32 steps `lif_network` takes 5.5 instead of 16.3 thousand modelled cycles a step. Steps
# without products are compiled in seconds; those of recurrent layers take longer.
_apart = functools.partial(_without_loop, 64)
MOST_WITHOUT_LOOP = 32  # steps of recurrent layers
WITHOUT_LOOP = Loops(_apart, functools.partial(_without_loop, MOST_WITHOUT_LOOP), hopes=True)
# The code of exchanges takes memory on each tile: 32 steps of 2,048 recurrent neurons and 64 samples do not fit on the
# tiles without a loop. With four a round a step takes 152.9 thousand cycles, on codelets 251.1.
IN_ROUNDS = Loops(_apart, functools.partial(time_scan, unroll=4), hopes=True)


def platform_scan(
    step: Callable[[Any, Any, Any], tuple[Any, Any]], constants: PyTree, first: PyTree, xs: PyTree
) -> tuple[Any, Any]:
    """`time_scan` in the form that is fastest on the platform for which the program is lowered."""
    (steps, *_), *_ = (leaf.shape for leaf in jax.tree.leaves(xs))
    plain, unrolled = (functools.partial(scan, step) for scan in (time_scan, _unrolled))
    if not isinstance(steps, int) or steps < 2:  # left open by `jax.export`, or too few to be unrolled
        return plain(constants, first, xs)
    return jax.lax.platform_dependent(
        constants, first, xs, cuda=unrolled, rocm=unrolled, ipu=unrolled, default=plain
    )
