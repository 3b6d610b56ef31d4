"""A layer of integer neurons over all steps: its kernel has the bits of the reference, whatever the chip."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import fixed_point
from snnjax.fixed_point import LAVA_LOIHI, SPECK, XYLO
from snnjax.fixed_point._network import LayerState
from snnjax.fixed_point._run import run_layer
from tests.numbers import array
from tests.ops.kernel_checks import needs_kernels

TIME, BATCH, INPUTS, NEURONS = 7, 3, 21, 19  # neither inputs nor neurons are whole vectors
ROOM = 12  # draws of numbers for each chip


def drawn_chip(seed):
    """Any arithmetic."""
    rng = np.random.default_rng(seed)
    choose = lambda *choices: choices[rng.integers(len(choices))]  # noqa: E731
    each, decay = choose(True, False), choose("shift", "multiply")
    switches = ("at_least_one", "symmetric", "change_first", "inclusive", "bounded_last")
    return fixed_point.FixedPoint(
        name=f"drawn {seed}", weight_bits=8, state_bits=int(choose(8, 12, 16, 24)),
        decay=decay, decay_bits=int(rng.integers(1, 6 if decay == "shift" else 13)),
        rounding=choose("floor", "to_zero"), overflow="saturate" if each else choose("saturate", "wrap", "none"),
        each_source=each, input_first=each or choose(True, False), reset=choose("subtract", "zero"),
        max_spikes=choose(1, 3, 31), input_shift=0 if each else choose(0, 3), threshold_bits=15, bias_bits=16,
        **{name: choose(True, False) for name in switches},
    )  # fmt: skip


def drawn_layer(chip, rng, form):
    """Numbers for a layer of two currents, and its state, within the bounds of a chip."""
    low, high = chip.bounds
    recurrent, late, dtype, has_lengths = form

    def whole(least, most, *shape):
        return array(rng.integers(least, most, shape), jnp.int32)

    def counts(mean, *shape):
        return rng.poisson(mean, shape).astype(np.float32)

    decays = 16 if chip.decay == "shift" else 2**chip.decay_bits + 1
    own = fixed_point.Neurons(
        threshold=whole(1, max(high // rng.choice([1, 4, 64]), 2), NEURONS),
        decay=whole(0, decays, NEURONS),
        synapse_decay=whole(0, decays, 2, NEURONS),
        bias=whole(low // 64, high // 64 + 1, NEURONS),
    )
    layer = fixed_point.IntegerLayer(
        weights=whole(-128, 128, 2, INPUTS, NEURONS).astype(jnp.int8),
        recurrent=whole(-128, 128, 2, NEURONS, NEURONS).astype(jnp.int8) if recurrent else None,
        neurons=own,
        unit=jnp.ones(NEURONS),
        shift=whole(0, 3),
        recurrent_shift=whole(0, 2),
        name="a",
    )
    state = LayerState(
        fixed_point.Membranes(*(whole(low, high + 1, *shape, BATCH, NEURONS) for shape in ((), (2,)))),
        counts(0.3, BATCH, INPUTS) if late else None,
        counts(0.3, BATCH, NEURONS) if recurrent else None,
    )
    spikes = counts(rng.choice([0.02, 0.4, 6.0]), TIME, BATCH, INPUTS)
    spikes = spikes > 0 if dtype == "bool" else spikes.astype(dtype)
    return layer, state, spikes, whole(0, TIME + 1, BATCH) if has_lengths else None


# Whether it is recurrent, whether spikes are late, their dtype, and whether sequences have lengths.
FORMS = (
    (True, True, "uint8", True),
    (False, False, "bool", False),
    (True, False, "float32", False),
    (False, True, "uint8", False),
)
CHIPS = [XYLO, LAVA_LOIHI, SPECK, *map(drawn_chip, (1, 2, 5))]


@needs_kernels
@pytest.mark.parametrize("number", range(len(CHIPS)))
def test_kernel_has_the_bits_of_the_reference(number):
    chip, form = CHIPS[number], FORMS[number % len(FORMS)]
    run = [
        jax.jit(functools.partial(run_layer, chip, implementation=implementation))
        for implementation in ("cpu", "reference")
    ]
    rng, spikes = np.random.default_rng(number), 0
    for _ in range(ROOM):
        given = drawn_layer(chip, rng, form)
        ours, definition = (each(*given) for each in run)
        jax.tree.map(np.testing.assert_array_equal, ours, definition)
        spikes += int(ours[0].counts.sum())
    assert spikes > 0


@needs_kernels
def test_layers_are_mapped_over_sequences_and_over_weights():
    rng, run = np.random.default_rng(0), jax.jit(functools.partial(run_layer, XYLO))
    layers, *others = jax.tree.map(
        lambda *each: jnp.stack(each), *(drawn_layer(XYLO, rng, FORMS[0]) for _ in range(2))
    )
    single = [jax.tree.map(lambda own, place=place: own[place], (layers, *others)) for place in range(2)]
    for given, axes in (((layers, *others), 0), ((single[0][0], *others), (None, 0, 0, 0))):
        together = jax.vmap(run, axes)(*given)
        for place, (own, *rest) in enumerate(single):
            alone = run(own if axes == 0 else given[0], *rest)
            mapped = jax.tree.map(lambda leaf, place=place: leaf[place], together)
            jax.tree.map(np.testing.assert_array_equal, mapped, alone)
