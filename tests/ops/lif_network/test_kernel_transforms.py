"""The kernels of `lif_network` under the transforms of JAX, with several blocks of samples and tiles of neurons.

`test_transforms.py` and `test_sharding.py` test all ops at small sizes; here results are bit-identical.
"""

import functools
from typing import Any
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from snnjax import _targets, lif_network
from snnjax._types import Signal
from tests.numbers import assert_close
from tests.ops.common import jit, pick, stack, weighted_sum
from tests.ops.kernel_checks import compiled, everything, needs_kernels
from tests.ops.lif_network.random_networks import Form, arguments, runner

pytestmark = needs_kernels

FORM = Form(3, 20, 40, (130, 20), 3, recurrent=True, capacity=(12, None), recurrent_delay=1, synaptic=True)
EVENTS = Form(
    3, 20, 40, (130, 20), None, True, capacity=12, given="uint16 lists", reset="zero", connected=0.1
)
ARGUMENTS = ("inputs", "layers", "readout", "state", "lengths", "second_threshold")
# Over one argument or all; there is no readout in the second form.
MAPPED = [(form, place) for form in (FORM, EVENTS) for place in (*range(len(ARGUMENTS)), None)]
MAPPED.remove((EVENTS, ARGUMENTS.index("readout")))
SHARDS = 4
TOLERANCE = 1e-5  # partial sums of the shards are added in another order


def draws(form: Form, count: int) -> list[tuple[Any, ...]]:
    return [arguments(form, np.random.default_rng(seed)) for seed in range(count)]


def name_of(argument) -> str:
    if isinstance(argument, Form):
        return "dense" if argument == FORM else "events"
    return "all" if argument is None else ARGUMENTS[argument]


@pytest.mark.parametrize("form, mapped", MAPPED, ids=name_of)
def test_vmap_keeps_the_bits(form: Form, mapped: int | None) -> None:
    """Of results and of gradients, those of shared arguments per example; mapped over one argument or all."""
    sets = draws(form, 3)
    axes = tuple(0 if mapped in (None, place) else None for place in range(len(ARGUMENTS)))
    each = [tuple(s[i] if axis == 0 else sets[0][i] for i, axis in enumerate(axes)) for s in sets]
    stacked = [stack([e[i] for e in each]) if axis == 0 else each[0][i] for i, axis in enumerate(axes)]
    results = jit(jax.vmap(everything(form, "cpu"), axes))(*stacked)
    for index, given in enumerate(each):
        chex.assert_trees_all_equal(pick(results, index), compiled(form, "cpu")(*given), strict=True)


def test_vmap_of_vmap_keeps_the_bits() -> None:
    """Inputs mapped inside, layers outside: groups of a batch."""
    sets = draws(FORM, 2)
    inputs, layers = (stack([each[place] for each in sets]) for place in (0, 1))
    inner = jax.vmap(everything(FORM, "cpu"), (0, None, None, None, None, None))
    outer = jit(jax.vmap(inner, (None, 0, None, None, None, None)))
    results = outer(inputs, layers, *sets[0][2:])
    for i, j in np.ndindex(2, 2):
        expected = compiled(FORM, "cpu")(sets[j][0], sets[i][1], *sets[0][2:])
        chex.assert_trees_all_equal(pick(pick(results, i), j), expected, strict=True)


def test_scan_and_checkpoint_keep_the_bits() -> None:
    sets = draws(FORM, 3)
    step = jax.checkpoint(everything(FORM, "cpu"))
    _, results = jit(lambda xs: jax.lax.scan(lambda carry, x: (carry, step(*x)), 0, xs))(stack(sets))
    for index, given in enumerate(sets):
        chex.assert_trees_all_equal(pick(results, index), compiled(FORM, "cpu")(*given), strict=True)


def test_pieces_of_a_sequence_keep_the_bits() -> None:
    """With `chunk`, and by carrying the state from call to call."""
    inputs, layers, readout, state, lengths, _ = draws(FORM, 1)[0]
    run = functools.partial(lif_network, capacity=FORM.capacity, record_spikes=True, implementation="cpu")
    whole, last = run(inputs, layers, readout, state, lengths=lengths)
    chunked = run(inputs, layers, readout, state, lengths=lengths, chunk=2)
    chex.assert_trees_all_equal(
        (chunked[0].output, chunked[0].spikes, chunked[1]), (whole.output, whole.spikes, last), strict=True
    )
    first, between = run(inputs[:2], layers, readout, state, lengths=jnp.minimum(lengths, 2))
    second, end = run(inputs[2:], layers, readout, between, lengths=jnp.maximum(lengths - 2, 0))
    chex.assert_trees_all_equal(jnp.concatenate([first.output, second.output]), whole.output, strict=True)
    chex.assert_trees_all_equal(end, last, strict=True)


def test_new_values_run_the_compiled_program() -> None:
    """One call of each target is traced, and the program holds it."""
    calls: list[str] = []
    original = _targets.call

    def counted(target: str, *rest, **attributes):
        calls.append(target)
        return original(target, *rest, **attributes)

    function = jit(everything(FORM, "cpu"))
    sets = draws(FORM, 3)
    with mock.patch.object(_targets, "call", counted):
        text = function.lower(*sets[0]).as_text()
        for given in sets:
            function(*given)
    assert set(calls) == {"snnjax_lif_network", "snnjax_lif_network_backward"}
    assert len(calls) == 2
    assert [text.count(f"@{target}(") for target in sorted(set(calls))] == [1, 1]


def test_shard_map_keeps_the_bits() -> None:
    """Of results; gradients of what all shards share are sums over them."""
    given = draws(FORM, 1)[0]
    mesh = jax.make_mesh((SHARDS,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    batch = [PartitionSpec(*(None,) * axis, "data") for axis in range(2)]
    state = jax.tree.map(lambda leaf: batch[leaf.ndim - 2], given[3])
    in_specs = (batch[1], PartitionSpec(), PartitionSpec(), state, batch[0], PartitionSpec())
    out_specs = (batch[1], batch[0], batch[0], batch[1], tuple(state))
    sharded = jax.shard_map(runner(FORM, "cpu"), mesh=mesh, in_specs=in_specs, out_specs=out_specs)

    def gradient(function):
        def loss(inputs: Signal, layers, readout):
            results = function(inputs, layers, readout, *given[3:])
            return weighted_sum(results), results

        return jit(jax.grad(loss, argnums=(0, 1, 2), has_aux=True))(*given[:3])

    (ours, results), (theirs, expected) = gradient(sharded), gradient(runner(FORM, "cpu"))
    chex.assert_trees_all_equal(results, expected, strict=True)
    assert_close(ours, theirs, of_largest=TOLERANCE)
