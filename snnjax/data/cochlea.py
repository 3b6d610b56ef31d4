"""A model of the inner ear that converts sound to spikes of bushy cells, as in the data sets of `heidelberg`.

A wave in the fluid of the cochlea moves the basilar membrane, most strongly at a place that depends on the frequency.
Hair cells release transmitter where it moves, and a bushy cell at each place spikes when many of its 40 nerve fibres
do. All quantities of the membrane are in cgs units, as in the paper; the other constants are in 1/s and s.

It is written from the papers and compared with `lauscher`, the program by the authors of the first one (tests/data).
Sources: Cramer, Stradmann, Schemmel, Zenke 2020, doi:10.1109/TNNLS.2020.3044364 (the chain and its constants); Sieroka,
Dosch, Rupp 2006, doi:10.1121/1.2204438 (membrane); Meddis 1988, doi:10.1121/1.396050 (hair cells).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from snnjax._check import check_integer, fail

# Membrane: stiffness STIFFNESS exp(-DECAY x) - SOFTNESS, mass and damping at position x, from 0 to LENGTH cm.
_STIFFNESS, _SOFTNESS, _DECAY, LENGTH = 1e9, 3500.0, 3.0, 3.5
_MASS, _DEPTH, _DENSITY = 0.05, 0.1, 1.0
_DAMPING = 0.15 * math.sqrt(_STIFFNESS * _MASS)
# Hair cells: rates of replenishment, release (maximum), loss, reuptake and reprocessing of transmitter, and of firing.
_MADE, _LET_OUT, _LOST, _TAKEN_BACK, _MADE_READY, _FIRED = 5.05, 2000.0, 2500.0, 6580.0, 66.3, 50000.0
_REST, _HALF = 5.0, 300.0  # of the velocity in the release probability: (v + REST) / (v + REST + HALF)
# Bushy cells: fibres, time constants in s of membrane, synapses and pauses, and the weight of a fibre's spike in 1/s.
_FIBRES, _MEMBRANE, _SYNAPSE, _PAUSE, _WEIGHT = 40, 1e-3, 5e-4, 1e-3, 13e3 / 40
_LEVEL = 0.3  # root mean square of the sound
LOWEST_RATE = 8000


class HairCells(NamedTuple):
    """The transmitter pools of the hair cells; 1 is full."""

    ready: Array  # [channels] available for release
    cleft: Array  # [channels] in the cleft, where it makes fibres fire
    store: Array  # [channels] after reuptake


class BushyCells(NamedTuple):
    """The state of the bushy cells and of the fibres that end at them."""

    recent: Array  # [pause, channels] spikes of the fibres in the last steps, a ring buffer
    pausing: Array  # [channels] number of fibres that spiked in these steps
    current: Array  # [channels] synaptic current
    membrane: Array  # [channels], spikes at 1
    pause: Array  # [channels] remaining refractory steps of the cell


def make_cochlea(sample_rate: int, num_samples: int, num_channels: int = 700) -> Callable[[Any, Any], Array]:
    """Make a function from sound to spikes, ``(waves[words, samples], keys[words]) -> spikes[words, steps, channels]``.

    There are ``num_samples // 2 + 1`` steps of ``2 / sample_rate`` seconds, spikes are boolean, and channel 0 has the
    highest frequency. The spikes of a word depend on its wave and key only, not on other words. Waves should be
    `conditioned`, and padded with zeros if shorter. SciPy, a dependency of JAX, computes the Hankel functions.

    Errors: a rate below 8000 samples per second, or fewer than 2 samples or channels.

    Example:
        >>> import jax, numpy as np
        >>> from snnjax.data import make_cochlea
        >>> hear = make_cochlea(16000, 1600, num_channels=4)
        >>> wave = 0.3 * np.sin(2 * np.pi * 440 * np.arange(1600) / 16000)
        >>> hear(wave[None], jax.random.split(jax.random.key(0), 1)).shape
        (1, 801, 4)
    """
    op = "make_cochlea"
    sample_rate = check_integer(op, "sample_rate", sample_rate, LOWEST_RATE)
    num_samples = check_integer(op, "num_samples", num_samples, 2)
    num_channels = check_integer(op, "num_channels", num_channels, 2)
    transfer = membrane_transfer(sample_rate, num_samples, np.linspace(0, LENGTH, num_channels))
    return partial(_hear, transfer.astype(np.complex64), 2 / sample_rate)


def conditioned(wave: np.ndarray, sample_rate: int, ramp: float = 0.03) -> np.ndarray:
    """Scale a sound to the level that the model expects, with fades of `ramp` seconds (halves of a Hann window).

    Errors: silence.

    Example:
        >>> import numpy as np
        >>> from snnjax.data.cochlea import conditioned
        >>> conditioned(np.ones(4000), 16000)[[0, 2000]].tolist()
        [0.0, 0.3]
    """
    power = math.sqrt(np.mean(np.square(wave, dtype=np.float64)))
    if power == 0:
        fail("cochlea.conditioned: `wave` must hold a sound, got silence. Omit it.")
    count = min(round(ramp * sample_rate), len(wave) // 2)
    rise = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(count) / max(2 * count - 1, 1))
    gain = np.ones(len(wave))
    gain[:count], gain[len(wave) - count :] = rise, rise[::-1]
    return gain * wave * (_LEVEL / power)


def membrane_transfer(sample_rate: int, num_samples: int, places: np.ndarray) -> np.ndarray:
    """Compute the membrane's transfer function, ``[places, num_samples // 2 + 1]`` complex128.

    The velocity at place x is ``2 w / xi(x) * p(x) / p(0) * z``, where xi is the impedance of the membrane, p the
    pressure and z the impedance of the inlet; ``p = sqrt(G / g) H(G)``, where H is the Hankel function of the first
    kind, ``g = w sqrt(density / (depth xi))`` the wave number and G(x) is ``2 g(0) / DECAY`` and the integral of g from
    0 to x. The lowest frequency is 1 Hz, at which the model is finite.

    Example:
        >>> import numpy as np
        >>> from snnjax.data.cochlea import membrane_transfer
        >>> membrane_transfer(16000, 100, np.array([1.0, 2.0])).shape
        (2, 51)
    """
    from scipy import special

    omega = 2 * np.pi * np.linspace(1, sample_rate // 2, num_samples // 2 + 1)

    def resistance(x: Any) -> Any:
        damping = _DAMPING * np.exp(-_DECAY * x / 2)
        return _STIFFNESS * np.exp(-_DECAY * x) - _SOFTNESS - _MASS * omega**2 - 1j * omega * damping

    def wave_number(x: Any) -> Any:
        return omega * np.sqrt(_DENSITY / (_DEPTH * resistance(x)))

    # With u = exp(-DECAY x / 2), g dx is c du / (u sqrt(STIFFNESS u^2 - i w DAMPING u - heavy^2)), a standard integral.
    heavy = np.sqrt(_SOFTNESS + _MASS * omega**2)

    def antiderivative(x: Any) -> Any:
        u = np.exp(-_DECAY * x / 2)
        return -1j * omega * _DAMPING - 2 * heavy**2 / u + 2j * heavy * np.sqrt(resistance(x)) / u

    def pressure(x: Any) -> Any:
        logarithm = np.log(antiderivative(0.0) / antiderivative(x))
        scale = 2 * omega / (_DECAY * heavy) * math.sqrt(_DENSITY / _DEPTH)
        phase = 2 * wave_number(0.0) / _DECAY + 1j * scale * logarithm
        return np.sqrt(phase / wave_number(x)) * special.hankel1(0, phase)

    inlet = 2 * omega / _DECAY * math.sqrt(2 / (_DEPTH * _STIFFNESS))
    inlet = 1j * math.sqrt(2 * _STIFFNESS / _DEPTH) * special.hankel2(0, inlet) / special.hankel2(1, inlet)
    at_inlet = inlet / pressure(0.0)
    return np.stack([2 * omega / resistance(x) * pressure(x) * at_inlet for x in places])


def membrane_velocity(transfer: Array | np.ndarray, wave: Array) -> Array:
    """Compute the velocity of the membrane, ``[places, steps]``: positive frequencies only, so at half the sample rate.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from snnjax.data.cochlea import membrane_transfer, membrane_velocity
        >>> transfer = membrane_transfer(16000, 100, np.array([1.0, 2.0])).astype(np.complex64)
        >>> membrane_velocity(transfer, jnp.ones(100)).shape
        (2, 51)
    """
    heard = jnp.fft.fft(wave)[None, : transfer.shape[-1]]
    return jnp.real(jnp.fft.ifft(transfer * heard))


def resting(num_channels: int) -> HairCells:
    """Make hair cells in equilibrium without sound.

    Example:
        >>> from snnjax.data.cochlea import resting
        >>> round(float(resting(1).ready[0]), 3)
        0.359
    """
    gate = _LET_OUT * _REST / (_REST + _HALF)
    gone = _LOST + _TAKEN_BACK
    cleft = _MADE * gate / (_LOST * gate + _MADE * gone)
    pools = cleft * gone / gate, cleft, cleft * _TAKEN_BACK / _MADE_READY
    return HairCells(*(jnp.full(num_channels, pool, jnp.float32) for pool in pools))


def hair_cells(cells: HairCells, velocity: Array, dt: float | Array) -> tuple[HairCells, Array]:
    """Advance the hair cells by `dt` seconds; also return the probability that a fibre fires, ``[channels]``.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.data.cochlea import hair_cells, resting
        >>> round(float(hair_cells(resting(1), jnp.zeros(1), 1e-4)[1][0]), 4)
        0.0065
    """
    open_gates = jnp.maximum(velocity + _REST, 0)
    let_out = dt * _LET_OUT * open_gates / (open_gates + _HALF) * cells.ready
    made = dt * _MADE * jnp.maximum(1 - cells.ready, 0)
    again = dt * _MADE_READY * cells.store
    moved = HairCells(
        cells.ready + made - let_out + again,
        cells.cleft + let_out - dt * (_LOST + _TAKEN_BACK) * cells.cleft,
        cells.store + dt * _TAKEN_BACK * cells.cleft - again,
    )
    cells = HairCells(*(jnp.maximum(pool, 0) for pool in moved))
    return cells, dt * _FIRED * cells.cleft


def bushy_cells(
    cells: BushyCells, probability: Array, uniform: Array, step: Any, dt: float | Array
) -> tuple[BushyCells, Array]:
    """Advance the fibres and bushy cells by one step; also return their spikes, boolean ``[channels]``.

    The fibres of a cell are identical, so it suffices to draw how many of the non-refractory ones fire.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.data.cochlea import bushy_cells, silent
        >>> bushy_cells(silent(2, 1e-4), jnp.zeros(2), jnp.full(2, 0.5), 0, 1e-4)[1].tolist()
        [False, False]
    """
    fired = binomial(_FIBRES - cells.pausing, probability, uniform)
    slot = step % len(cells.recent)
    pausing = cells.pausing + fired - cells.recent[slot]
    current = cells.current * jnp.exp(-dt / _SYNAPSE) + fired
    membrane = cells.membrane * jnp.exp(-dt / _MEMBRANE) + current * _WEIGHT * dt
    membrane = jnp.where(cells.pause > 0, 0, membrane)
    spikes = membrane >= 1
    pause = jnp.where(spikes, jnp.ceil(_PAUSE / dt), cells.pause - 1)
    recent = cells.recent.at[slot].set(fired)
    return BushyCells(recent, pausing, current, jnp.where(spikes, 0, membrane), pause), spikes


def silent(num_channels: int, dt: float) -> BushyCells:
    """Make bushy cells before any sound.

    Example:
        >>> from snnjax.data.cochlea import silent
        >>> silent(3, 2e-4).recent.shape
        (4, 3)
    """
    zeros = jnp.zeros(num_channels, jnp.float32)
    ring = jnp.zeros((math.ceil(_PAUSE / dt) - 1, num_channels), jnp.float32)
    return BushyCells(ring, zeros, zeros, zeros, zeros)


def binomial(count: Array, probability: Array, uniform: Array) -> Array:
    """Draw a binomial number of at most 40 trials from one uniform number, by inverting the distribution.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.data.cochlea import binomial
        >>> binomial(jnp.array([40.0]), jnp.array([0.5]), jnp.array([0.5])).tolist()
        [20.0]
    """
    rarer = jnp.clip(jnp.minimum(probability, 1 - probability), 0)
    odds = rarer / (1 - rarer)
    mass = jnp.exp(count * jnp.log1p(-rarer))

    def beyond(state: Any) -> Array:
        k, _, total, _ = state
        return (k < _FIBRES) & jnp.any(uniform > total)

    def count_on(state: Any) -> Any:
        k, mass, total, drawn = state
        drawn = drawn + jnp.where(uniform > total, 1.0, 0.0)
        mass = mass * odds * ((count - k) / (k + 1))
        return k + 1, mass, total + mass, drawn

    # Most draws are far below 40, and the loop ends when no number is left that would count on.
    start = jnp.zeros((), mass.dtype), mass, mass, jnp.zeros_like(mass)
    _, _, _, drawn = jax.lax.while_loop(beyond, count_on, start)
    drawn = jnp.minimum(drawn, count)  # rounding may leave the total below 1
    return jnp.where(probability > 0.5, count - drawn, drawn)


@partial(jax.jit, static_argnums=1)
def _hear(transfer: Array, dt: float, waves: Array, keys: Any) -> Array:
    def word(wave: Array, key: PRNGKeyArray) -> Array:
        velocity = membrane_velocity(transfer, wave).T
        num_steps, num_channels = velocity.shape

        def step(cells: Any, at: Any) -> Any:
            moving, number = at
            uniform = jax.random.uniform(jax.random.fold_in(key, number), (num_channels,), jnp.float32)
            hairs, probability = hair_cells(cells[0], moving, dt)
            bushes, spikes = bushy_cells(cells[1], probability, uniform, number, dt)
            return (hairs, bushes), spikes

        start = resting(num_channels), silent(num_channels, dt)
        return jax.lax.scan(step, start, (velocity, jnp.arange(num_steps)))[1]

    return jax.vmap(word)(jnp.asarray(waves, jnp.float32), keys)
