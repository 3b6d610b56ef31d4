"""An inner ear for recognition: a membrane, lateral inhibition, compression, and cells that spike regularly.

The membrane is that of `cochlea`. Low frequencies move all of it and hide formants, so neighbouring places inhibit each
other: what is left is the second difference of the motion along the membrane. Its amplitude is compressed to the cube
root, as by the outer hair cells, and a cell at each place integrates it and spikes. The hair cells of `cochlea`, which
adapt, and its fibres, which spike at random, hide more of what distinguishes words than this does.

Sources: Shamma 1985, doi:10.1121/1.392800 (lateral inhibition of the motion of the membrane); Robles and Ruggero 2001,
doi:10.1152/physrev.2001.81.3.1305 (compression).
"""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from jaxtyping import Complex, Int, PRNGKeyArray, Shaped

from snnjax._check import check_integer, fail
from snnjax.data.cochlea import LENGTH, LOWEST_RATE, membrane_transfer

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
    spacing = LENGTH / (num_channels - 1)
    motion = membrane_transfer(sample_rate, num_samples, spacing * np.arange(-1, num_channels + 1))
    inhibited = np.diff(motion, 2, axis=0) / spacing**2
    return partial(_hear, inhibited.astype(np.complex64), num_samples, sample_rate)


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
