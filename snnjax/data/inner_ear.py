"""An inner ear for recognition: a membrane, lateral inhibition, compression, and cells that spike regularly.

A wave in the fluid of the cochlea moves the basilar membrane, most strongly at a place that depends on the frequency.
The membrane is that of SHD and SSC (`heidelberg`), in cgs units as there. Low frequencies move all of it and hide
formants, so neighbouring places inhibit each other: what is left is the second difference of the motion along the
membrane. Its amplitude is compressed to the cube root, as by the outer hair cells, and a cell at each place integrates
it and spikes. The hair cells of SHD, which adapt, and its fibres, which spike at random, hide more of what
distinguishes words than this does.

Sources: Cramer, Stradmann, Schemmel, Zenke 2020, doi:10.1109/TNNLS.2020.3044364, and Sieroka, Dosch, Rupp 2006,
doi:10.1121/1.2204438 (membrane; its motion is compared with that of `lauscher`, the program by the authors of the first
paper); Shamma 1985, doi:10.1121/1.392800 (lateral inhibition of the motion of the membrane); Robles and Ruggero 2001,
doi:10.1152/physrev.2001.81.3.1305 (compression).
"""

import math
from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from jaxtyping import Complex, Int, PRNGKeyArray, Shaped

from snnjax._check import check_integer, fail

# Membrane: stiffness STIFFNESS exp(-DECAY x) - SOFTNESS, mass and damping at position x, from 0 to LENGTH cm.
_STIFFNESS, _SOFTNESS, _DECAY, _LENGTH = 1e9, 3500.0, 3.0, 3.5
_MASS, _DEPTH, _DENSITY = 0.05, 0.1, 1.0
_DAMPING = 0.15 * math.sqrt(_STIFFNESS * _MASS)
_LEVEL = 0.3  # root mean square of the sound
LOWEST_RATE = 8000  # samples per second
_COMPRESSION = 1 / 3
# Spikes per second at a compressed amplitude of 1 (that of the motion is in cm/s, and its difference per cm^2): the
# mean over a word is some 30 per second, so that few cells spike twice in a step of 10 ms.
_RATE = 2.3

Events = tuple[Int[np.ndarray, " events"], Int[np.ndarray, " events"]]


def make_inner_ear(
    sample_rate: int, num_samples: int, num_channels: int = 700
) -> Callable[[Shaped[np.ndarray, " samples"], PRNGKeyArray], Events]:
    """Make a function from sound to spikes, ``(wave[samples], key) -> steps[events], channels[events]``.

    Steps are of ``2 / sample_rate`` seconds, and sorted; channel 0 has the highest frequency. The key determines the
    potentials at which the cells begin. A wave has at most `num_samples` samples, and a root mean square of about 0.3.

    Errors: a rate below 8000 samples per second, fewer than 2 samples or channels, or a longer wave.

    Example:
        >>> import jax, numpy as np
        >>> from snnjax.data import make_inner_ear
        >>> hear = make_inner_ear(16000, 1600, num_channels=70)
        >>> wave = 0.3 * np.sin(2 * np.pi * 440 * np.arange(1600) / 16000)
        >>> steps, channels = hear(wave, jax.random.key(0))
        >>> steps.shape == channels.shape, int(np.bincount(channels).argmax())
        (True, 50)
    """
    op = "make_inner_ear"
    sample_rate = check_integer(op, "sample_rate", sample_rate, LOWEST_RATE)
    num_samples = check_integer(op, "num_samples", num_samples, 2)
    num_channels = check_integer(op, "num_channels", num_channels, 2)
    spacing = _LENGTH / (num_channels - 1)
    motion = membrane_transfer(sample_rate, num_samples, spacing * np.arange(-1, num_channels + 1))
    inhibited = np.diff(motion, 2, axis=0) / spacing**2
    return partial(_hear, inhibited.astype(np.complex64), num_samples, sample_rate)


def conditioned(wave: np.ndarray, sample_rate: int, ramp: float = 0.03) -> np.ndarray:
    """Scale a sound to the level that the model expects, with fades of `ramp` seconds (halves of a Hann window).

    Errors: silence.

    Example:
        >>> import numpy as np
        >>> from snnjax.data.inner_ear import conditioned
        >>> conditioned(np.ones(4000), 16000)[[0, 2000]].tolist()
        [0.0, 0.3]
    """
    power = math.sqrt(np.mean(np.square(wave, dtype=np.float64)))
    if power == 0:
        fail("inner_ear.conditioned: `wave` must hold a sound, got silence. Omit it.")
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
        >>> from snnjax.data.inner_ear import membrane_transfer
        >>> membrane_transfer(16000, 100, np.array([1.0, 2.0])).shape
        (2, 51)
    """
    from scipy import special

    omega = 2 * np.pi * np.linspace(1, sample_rate // 2, num_samples // 2 + 1)

    def resistance(x: float) -> np.ndarray:
        damping = _DAMPING * np.exp(-_DECAY * x / 2)
        return _STIFFNESS * np.exp(-_DECAY * x) - _SOFTNESS - _MASS * omega**2 - 1j * omega * damping

    def wave_number(x: float) -> np.ndarray:
        return omega * np.sqrt(_DENSITY / (_DEPTH * resistance(x)))

    # With u = exp(-DECAY x / 2), g dx is c du / (u sqrt(STIFFNESS u^2 - i w DAMPING u - heavy^2)), a standard integral.
    heavy = np.sqrt(_SOFTNESS + _MASS * omega**2)

    def antiderivative(x: float) -> np.ndarray:
        u = np.exp(-_DECAY * x / 2)
        return -1j * omega * _DAMPING - 2 * heavy**2 / u + 2j * heavy * np.sqrt(resistance(x)) / u

    def pressure(x: float) -> np.ndarray:
        logarithm = np.log(antiderivative(0.0) / antiderivative(x))
        scale = 2 * omega / (_DECAY * heavy) * math.sqrt(_DENSITY / _DEPTH)
        phase = 2 * wave_number(0.0) / _DECAY + 1j * scale * logarithm
        return np.sqrt(phase / wave_number(x)) * special.hankel1(0, phase)

    inlet = 2 * omega / _DECAY * math.sqrt(2 / (_DEPTH * _STIFFNESS))
    inlet = 1j * math.sqrt(2 * _STIFFNESS / _DEPTH) * special.hankel2(0, inlet) / special.hankel2(1, inlet)
    at_inlet = inlet / pressure(0.0)
    return np.stack([2 * omega / resistance(x) * pressure(x) * at_inlet for x in places])


def _hear(
    transfer: Complex[np.ndarray, "channels frequencies"],
    num_samples: int,
    sample_rate: int,
    wave: Shaped[np.ndarray, " samples"],
    key: PRNGKeyArray,
) -> Events:
    from scipy import fft

    if len(wave) > num_samples:
        fail(f"make_inner_ear: `wave` must have at most {num_samples} samples, got {len(wave)}. Cut it.")
    heard = np.fft.fft(wave, num_samples)[: transfer.shape[1]].astype(np.complex64)
    # Of positive frequencies only: at half the sample rate, and its modulus is the amplitude.
    motion = np.asarray(fft.ifft(transfer * heard))
    amplitude = np.abs(motion[:, : -(-len(wave) // 2)])
    begin = np.asarray(jax.random.uniform(key, (len(transfer), 1), np.float32))
    membrane = np.cumsum(amplitude**_COMPRESSION * (_RATE * 2 / sample_rate), axis=1) + begin
    spikes = np.diff(np.floor(membrane), axis=1, prepend=0) > 0
    steps, channels = np.nonzero(spikes.T)
    return steps, channels
