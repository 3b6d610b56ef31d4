"""Make `lava.npz`: random neurons in lava's bit-accurate model of Loihi, with their states and spikes.

    python make_lava.py          # where lava is installed

Made with lava-nc 0.10.0 and numpy 1.26.4 in Python 3.10. The neurons are those of `PyLifModelBitAcc`, stepped by its
own functions outside of its runtime: half of the drives are so large that currents wrap and membranes saturate.
"""

from pathlib import Path

import numpy as np
from lava.proc.lif.models import PyLifModelBitAcc

NEURONS, STEPS = 64, 100


class Model(PyLifModelBitAcc):
    """The model with the widths that its own constructor sets, which needs a process."""

    def __init__(self) -> None:
        self.ds_offset, self.dm_offset, self.isthrscaled = 1, 0, False
        self.uv_bitwidth, self.max_uv_val = 24, 2**23
        self.decay_shift, self.decay_unity, self.vth_shift, self.act_shift = 12, 2**12, 6, 6


def main() -> None:
    """Write the neurons and what they did."""
    rng, model = np.random.default_rng(3), Model()
    model.du, model.dv = rng.integers(0, 4096, NEURONS), rng.integers(0, 4096, NEURONS)
    model.bias_mant = rng.integers(-4096, 4096, NEURONS).astype(np.int16)
    model.bias_exp = rng.integers(0, 8, NEURONS).astype(np.int16)
    model.vth = rng.integers(0, 131072, NEURONS).astype(np.int32)
    model.u, model.v = np.zeros(NEURONS, np.int32), np.zeros(NEURONS, np.int32)
    drive = rng.integers(-32768, 32768, (STEPS, NEURONS)) * (rng.random((STEPS, NEURONS)) < 0.3)
    drive[:, ::2] //= 64
    model.scale_bias()
    model.scale_threshold()
    seen = []
    for row in drive.astype(np.int32):
        model.subthr_dynamics(activation_in=row.copy())
        spikes = model.spiking_activation()
        model.reset_voltage(spike_vector=spikes)
        seen.append((model.u.copy(), model.v.copy(), spikes.astype(np.int32)))
    u, v, s = np.moveaxis(np.array(seen), 1, 0)
    constants = {
        "du": model.du,
        "dv": model.dv,
        "bias": model.effective_bias,
        "threshold": model.effective_vth,
    }
    states = {"drive": drive.astype(np.int16), "u": u, "v": v, "s": s.astype(bool)}
    np.savez_compressed(Path(__file__).with_name("lava.npz"), **constants, **states)


if __name__ == "__main__":
    main()
