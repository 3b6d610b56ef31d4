"""Make `membrane.npz`: the results of the SHD authors' program for the beginning of one spoken word.

    python make_membrane.py         # where lauscher (LGPL-2.1, not part of this project) and espeak-ng are installed

Made with lauscher 1.0.1 and numpy 2.4.6 in Python 3.11, of a word by espeak-ng 1.51. `wave` holds the first 0.16 s of
it, int16 at 22,050 Hz, and `velocity` [channels, steps / STRIDE] is that of the program's membrane at 9 places.
"""

import io
import subprocess
import wave
from pathlib import Path

import numpy as np
from lauscher.audiowaves import MonoAudioWave
from lauscher.transformations import BasilarMembrane, HanningWindow, RmsNormalizer

STRIDE, CHANNELS = 8, 9
SAMPLES = 3528


def main() -> None:
    spoken = subprocess.run(["espeak-ng", "-v", "de", "--stdout", "acht"], check=True, capture_output=True)
    with wave.open(io.BytesIO(spoken.stdout)) as sound:
        rate, samples = sound.getframerate(), np.frombuffer(sound.readframes(2**24), "<i2")[:SAMPLES]
    word = MonoAudioWave(samples / 2**15, rate)
    word = word.transform(RmsNormalizer(0.3)).transform(HanningWindow(0.03, 0.03))
    velocity = word.transform(BasilarMembrane(channels=CHANNELS))
    np.savez_compressed(
        Path(__file__).with_name("membrane.npz"),
        wave=samples,
        velocity=velocity.channels[:, ::STRIDE].astype(np.float32),
    )


if __name__ == "__main__":
    main()
