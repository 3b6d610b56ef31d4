"""One step of integer neurons: lava's equations in integers without bounds, decays, and products within int32."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import fixed_point
from snnjax.fixed_point._step import Membranes, Neurons, advance, beside, decayed

LAVA = fixed_point.LAVA_LOIHI
TOP = 2**23


def truncated(x, kept):
    """`x` times `kept` over 4096, rounded to 0, as lava and nengo-loihi do it."""
    return (abs(x) * kept // 4096) * (1 if x >= 0 else -1)


def by_hand(u, v, a, du, dv, bias, threshold):
    """A step of lava's equations in Python's integers, which have no width."""
    u = truncated(u, 4096 - du) + 64 * a
    wraps = not -TOP < u <= TOP
    u = u - 2 * TOP if u > TOP else u + 2 * TOP if u <= -TOP else u
    v = truncated(v, 4096 - dv) + u + bias
    saturates = abs(v) > TOP - 1
    v = max(-TOP + 1, min(TOP - 1, v))
    return u, 0 if v > threshold else v, v > threshold, wraps, saturates


@jax.jit
def lava_steps(threshold, dv, du, bias, drive):
    """Current, membrane and spikes ``[time, neurons, 3]`` of neurons on given drives."""
    arrays = [own.astype(jnp.int32) for own in (threshold, dv, du[None], bias)]
    neurons, zeros = beside(Neurons(*arrays)), jnp.zeros((1, len(bias)), jnp.int32)

    def step(state, a):
        after, spikes = advance(LAVA, neurons, state, a)
        return after, jnp.stack([after.current[0, 0], after.v[0], spikes[0]], axis=-1)

    return jax.lax.scan(step, Membranes(zeros, zeros[None]), drive.astype(jnp.int32)[:, None, None])[1]


def test_lava_steps_are_those_of_its_own_model():
    held = np.load(Path(__file__).parents[1] / "golden" / "lava.npz")
    found = lava_steps(held["threshold"], held["dv"], held["du"] + 1, held["bias"], held["drive"])
    assert np.array_equal(found, np.stack([held["u"], held["v"], held["s"]], axis=-1))
    assert held["s"].sum() > 100


def test_lava_in_integers_without_bounds():
    rng, count, steps = np.random.default_rng(0), 64, 100
    du, dv = rng.integers(1, 4097, count), rng.integers(0, 4096, count)
    du[1::4] = 1  # currents that hardly decay come to wrap
    bias = rng.integers(-4096, 4096, count) << rng.integers(0, 8, count)
    threshold = rng.integers(0, 131072, count) << 6
    drive = rng.integers(-32768, 32768, (steps, count)) * (rng.random((steps, count)) < 0.3)
    drive[:, ::2] //= 64  # half of the neurons stay clear of the bounds
    found = np.asarray(lava_steps(threshold, dv, du, bias, drive))
    seen = np.zeros(3, int)
    for k in range(count):
        u = v = 0
        for t in range(steps):
            constants = int(du[k]), int(dv[k]), int(bias[k]), int(threshold[k])
            u, v, *flags = by_hand(u, v, int(drive[t, k]), *constants)
            seen += flags
            assert tuple(found[t, k]) == (u, v, flags[0])
    assert all(seen > 2)  # spikes, wraps and saturations


@pytest.mark.parametrize("bits", [16, 24])
def test_products_within_int32_are_those_of_64_bits(bits):
    chip = fixed_point.FixedPoint(
        name="test", weight_bits=8, state_bits=bits, decay="multiply", decay_bits=12, rounding="floor",
        threshold_bits=15, bias_bits=16,
    )  # fmt: skip
    rng, top = np.random.default_rng(bits), 2 ** (bits - 1)
    x = np.concatenate([rng.integers(-top, top, 20_000), [-top, top - 1, -1, 0, 1]])
    decay = np.concatenate([rng.integers(0, 4097, 20_000), [1, 1, 4095, 4096, 4095]])
    given = jnp.asarray(x, jnp.int32), jnp.asarray(decay, jnp.int32)
    assert np.array_equal(decayed(chip, *given), (x * (4096 - decay)) >> 12)
    assert np.array_equal(
        decayed(LAVA, *given), [truncated(int(a), 4096 - int(d)) for a, d in zip(x, decay, strict=True)]
    )


@pytest.mark.parametrize(
    ("x", "decay", "left"),
    [(3, 2, 2), (1, 5, 0), (-1, 5, 0), (-33, 5, -31), (100, 0, 0), (-32768, 15, -32767)],
)
def test_a_shift_takes_at_least_one_of_a_positive_state(x, decay, left):
    assert decayed(fixed_point.XYLO, jnp.int32(x), jnp.int32(decay)) == left


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (
            {"state_bits": 25},
            "`state_bits` must be between 8 and 24, got 25. Float32 and int32 hold no more exactly.",
        ),
        ({"max_spikes": 0}, "`max_spikes` must be an integer of at least 1, got 0. Pass 1 or more."),
        (
            {"max_input": 2.5},
            "`max_input` must be an integer of at least 1, got 2.5. Pass an int, such as 1.",
        ),
        (
            {"input_shift": 7, "each_source": False},  # a sum of weights would not be int32
            "`input_shift` must be between 0 and 6, got 7. Float32 and int32 hold no more exactly.",
        ),
        (
            {"threshold_shift": 10},  # beside 15 bits
            "`threshold_shift` must be between 0 and 9, got 10. Float32 and int32 hold no more exactly.",
        ),
        (
            {"decay_bits": 6},  # int32 would be shifted by up to 63
            "`decay_bits` must be between 0 and 5, got 6. Float32 and int32 hold no more exactly.",
        ),
        (
            {"decay_bits": 5, "synapse_offset": 1},
            "`synapse_offset` must be between 0 and 0, got 1. Float32 and int32 hold no more exactly.",
        ),
        (
            {"decay": "multiply", "synapse_offset": 2},  # a current would change its sign
            "`synapse_offset` must be between 0 and 1, got 2. Float32 and int32 hold no more exactly.",
        ),
        (
            {"least_synapse_decay": 16},  # which 4 bits do not hold
            "`least_synapse_decay` must be between 0 and 15, got 16. Float32 and int32 hold no more exactly.",
        ),
        (
            {"overflow": "wrap"},
            "`each_source` must be False unless overflow='saturate', input_first=True, input_shift=0 and "
            "connections=('dense',), got True. Leave it out.",
        ),
    ],
)
def test_switches_and_bits_are_checked(wrong, expected):
    with pytest.raises(ValueError) as error:
        dataclasses.replace(fixed_point.XYLO, **wrong)
    assert str(error.value) == f"FixedPoint: {expected}"
