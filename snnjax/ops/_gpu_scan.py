"""A scan over time of neurons as one kernel of a GPU: Pallas, on its Triton back end.

The kernel runs the caller's own step, traced on a block of neurons, over all time steps: states stay in registers, and
every input and result crosses the memory once.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, PyTree

# Measured on an H200: 32 to 256 neurons a block, 1 to 8 warps and 16 steps at once are all as fast.
_BLOCK = 128  # neurons of a program
_THREADS = 32  # of a warp
_AHEAD = 8  # steps whose inputs are read at once, so that they wait for the memory together

Ref = Any  # an array of the kernel, as Pallas has it
Index = Any  # a step or a row: an integer or a scalar


class _Block(NamedTuple):
    """What one program reads and writes: one sequence, and a block of neurons as ``[1, block]``."""

    row: Index
    columns: Any  # a slice
    mask: Array | None  # bool [1, block], where there are neurons; None if everywhere

    def load(self, ref: Ref, *step: Index) -> Array:
        """The block of an array ``[..., batch, neurons]``, 0 where there are no neurons."""
        at = ref.at[(*step, pl.ds(self.row, 1), self.columns)]
        return triton.load(at, mask=self.mask, other=None if self.mask is None else 0)

    def load_flag(self, ref: Ref, step: Index) -> Array:
        """The entry of an array ``[time, batch]``, ``[1]``."""
        return triton.load(ref.at[step, pl.ds(self.row, 1)])

    def load_constant(self, ref: Ref) -> Array:
        """One value, or one for each neuron: ``[block]``."""
        if ref.shape[0] == 1:
            return jnp.broadcast_to(ref[0], (self.columns.size,))
        if self.mask is None:
            return triton.load(ref.at[self.columns])
        return triton.load(ref.at[self.columns], mask=self.mask[0], other=0)

    def store(self, ref: Ref, value: Array, *step: Index) -> None:
        """Write the block of an array."""
        at = ref.at[(*step, pl.ds(self.row, 1), self.columns)]
        triton.store(at, jnp.broadcast_to(value, (1, self.columns.size)).astype(ref.dtype), mask=self.mask)


class _Form(NamedTuple):
    """What the kernel runs, and the trees of what it is given and yields."""

    step: Callable[[Any, Any, Any], tuple[Any, Any]]
    constants: Any
    carry: Any
    xs: Any
    flags: Sequence[bool]  # which of the xs are bool, given as int8
    steps: int
    reverse: bool

    def read(self, block: _Block, refs: Sequence[Any], step: Index) -> PyTree:
        """The inputs of a step."""
        leaves = [block.load(ref, step) if ref.ndim == 3 else block.load_flag(ref, step) for ref in refs]
        each = zip(leaves, self.flags, strict=True)
        return jax.tree.unflatten(self.xs, [leaf != 0 if is_flag else leaf for leaf, is_flag in each])

    def run(
        self, block: _Block, constants: PyTree, xs: Sequence[Any], ys: Sequence[Any], carry: PyTree
    ) -> PyTree:
        """All steps: read from `xs`, write to `ys`, return the last carry, in leaves."""

        def several(start: Index, carry: Sequence[Array], number: int) -> list[Array]:
            places = [self.steps - 1 - start - i if self.reverse else start + i for i in range(number)]
            read = [self.read(block, xs, place) for place in places]
            for place, x in zip(places, read, strict=True):
                after, y = self.step(constants, jax.tree.unflatten(self.carry, carry), x)
                for ref, leaf in zip(ys, jax.tree.leaves(y), strict=True):
                    block.store(ref, leaf, place)
                carry = [jnp.broadcast_to(leaf, (1, block.columns.size)) for leaf in jax.tree.leaves(after)]
            return list(carry)

        rounds, rest = divmod(self.steps, _AHEAD)
        if rounds:
            carry = jax.lax.fori_loop(0, rounds, lambda i, own: several(i * _AHEAD, own, _AHEAD), carry)
        return several(jnp.int32(rounds * _AHEAD), carry, rest)


def scan(
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    constants: PyTree,
    first: PyTree,
    xs: PyTree,
    *,
    reverse: bool,
    interpret: bool,
) -> tuple[Any, Any]:
    """`snnjax.ops._time_scan.time_scan` as one kernel: neither sequences nor neurons may act on one another in a step.

    Constants are ``[]``, ``[1]`` or ``[neurons]``, `first` is ``[batch, neurons]``, and `xs` are ``[time, batch,
    neurons]`` or ``[time, batch]``. With `interpret` the kernel runs in plain JAX, to be tested on any platform.
    """
    (steps, *_), (batch, width) = jax.tree.leaves(xs)[0].shape, jax.tree.leaves(first)[0].shape
    given_constants, of_constants = jax.tree.flatten(jax.tree.map(jnp.atleast_1d, constants))
    carry, of_carry = jax.tree.flatten(first)
    given, of_xs = jax.tree.flatten(xs)
    flags = [x.dtype == jnp.bool_ for x in given]
    given = [x.astype(jnp.int8) if is_flag else x for x, is_flag in zip(given, flags, strict=True)]
    yielded = jax.eval_shape(functools.partial(jax.lax.scan, functools.partial(step, constants)), first, xs)
    results, of_results = jax.tree.flatten(yielded)
    form = _Form(step, of_constants, of_carry, of_xs, flags, steps, reverse)
    sizes = len(given_constants), len(carry), len(given)
    block = min(_BLOCK, pl.next_power_of_2(width))
    called = pl.pallas_call(
        functools.partial(_kernel, form, sizes, block),
        out_shape=results,
        grid=(batch, pl.cdiv(width, block)),
        compiler_params=None if interpret else triton.CompilerParams(max(1, block // _THREADS), 1),
        interpret=interpret,
        name="snnjax_time_scan",
    )(*given_constants, *carry, *given)
    return jax.tree.unflatten(of_results, called)


def _kernel(form: _Form, sizes: tuple[int, int, int], size: int, *refs: Ref) -> None:
    """One program of the kernel: a block of neurons of one sequence."""
    num_constants, num_carry, num_xs = sizes
    stops = num_constants, num_constants + num_carry, num_constants + num_carry + num_xs
    constants, first, xs = refs[: stops[0]], refs[stops[0] : stops[1]], refs[stops[1] : stops[2]]
    last, ys = refs[stops[2] : stops[2] + num_carry], refs[stops[2] + num_carry :]
    start, width = pl.program_id(1) * size, first[0].shape[-1]
    is_ragged = width % size != 0
    mask = (start + jnp.arange(size) < width)[None, :] if is_ragged else None
    block = _Block(pl.program_id(0), pl.ds(start, size), mask)
    own = jax.tree.unflatten(form.constants, [block.load_constant(ref) for ref in constants])
    carry = form.run(block, own, xs, ys, [block.load(ref) for ref in first])
    for ref, leaf in zip(last, carry, strict=True):
        block.store(ref, leaf)
