"""What NIR leaves open and each library does in its own way: named, so that a graph gives the spikes of its writer."""

from typing import NamedTuple


class Convention(NamedTuple):
    """How the writer of a graph computes its neurons."""

    dt: float | None = None  # the step that its files assume without saying so
    method: str = "euler"
    reset: str = "zero"  # NIR has no other, but writers of other resets export all the same
    reset_time: str = "before_decay"  # as in `snnjax.lif_step`, likewise below
    reset_time_with_synapse: str = "before_decay"
    spike_from: str = "new"
    inclusive: bool = False
    unit_gain: bool = False  # inputs count in full, whatever the file says of r and w_in
    unit_gain_without_leak: bool = False  # likewise in IF alone


# Read in the sources of snnTorch 1.0.0, Norse 1.1.0, Spyx 1.0.0 and Sinabs 2.0.3, for the neurons that they export with
# their own defaults, Sinabs with `SingleSpike`; `tests/golden/make_nir.py` holds each row against its library.
CONVENTIONS = {
    "nir": Convention(),
    "snntorch": Convention(
        dt=1e-4, reset="subtract", reset_time="after_decay", reset_time_with_synapse="after_decay"
    ),
    "norse": Convention(unit_gain_without_leak=True),
    "spyx": Convention(dt=1.0, reset="subtract", reset_time="after_decay", spike_from="old", unit_gain=True),
    "sinabs": Convention(dt=1.0, method="exact", reset="subtract", inclusive=True),
}
