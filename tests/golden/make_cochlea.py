"""Make `cochlea.npz`: the results of the SHD authors' program for the beginning of one spoken word.

    python make_cochlea.py          # where lauscher (LGPL-2.1, not part of this project) and espeak-ng are installed

Made with lauscher 1.0.1 and numpy 2.4.6 in Python 3.11, of a word by espeak-ng 1.51. `wave` holds the first 0.16 s of
it, int16 at 22,050 Hz; `velocity` and `probability` [channels, steps / STRIDE] are those of its membrane and hair
cells in 9 channels; `spikes` [repetitions, channels, bins] counts those of its bushy cells, which are random, in
bins of 20 ms.
"""

import io
import subprocess
import wave
from pathlib import Path

import numpy as np
from lauscher.audiowaves import MonoAudioWave
from lauscher.transformations import BasilarMembrane, BushyCell, HairCell, HanningWindow, RmsNormalizer

STRIDE, CHANNELS, BINS, REPETITIONS = 8, 9, 8, 100
SAMPLES = 3528


def main() -> None:
    np.random.seed(2026)  # noqa: NPY002 - lauscher draws from NumPy's global generator
    spoken = subprocess.run(["espeak-ng", "-v", "de", "--stdout", "acht"], check=True, capture_output=True)
    with wave.open(io.BytesIO(spoken.stdout)) as sound:
        rate, samples = sound.getframerate(), np.frombuffer(sound.readframes(2**24), "<i2")[:SAMPLES]
    word = MonoAudioWave(samples / 2**15, rate)
    word = word.transform(RmsNormalizer(0.3)).transform(HanningWindow(0.03, 0.03))
    velocity = word.transform(BasilarMembrane(channels=CHANNELS))
    probability = velocity.transform(HairCell())
    spikes = np.zeros((REPETITIONS, CHANNELS, BINS), np.uint8)
    for repetition in spikes:
        times, units = probability.transform(BushyCell())._data
        bins = np.minimum((times / 0.02).astype(int), BINS - 1)
        np.add.at(repetition, (units.astype(int), bins), 1)
    np.savez_compressed(
        Path(__file__).with_name("cochlea.npz"),
        wave=samples,
        velocity=velocity.channels[:, ::STRIDE].astype(np.float32),
        probability=probability.channels[:, ::STRIDE].astype(np.float32),
        spikes=spikes,
    )
    print("spikes", spikes.sum((0, 2)), spikes.sum((0, 1)), "largest probability", probability.channels.max())


if __name__ == "__main__":
    main()
