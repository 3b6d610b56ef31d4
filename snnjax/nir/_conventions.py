"""What NIR leaves open and libraries do differently: named conventions, so that a graph gives its writer's spikes."""

from typing import NamedTuple


class Convention(NamedTuple):
    """How the writer of a graph computes its neurons."""

    dt: float | None = None  # the step that its files implicitly assume
    method: str = "euler"
    reset: str = "zero"  # NIR has no other, but libraries with other resets export anyway
    reset_time: str = "before_decay"  # as in `snnjax.lif_step`, like the next ones
    reset_time_with_synapse: str = "before_decay"
    spike_from: str = "new"
    inclusive: bool = False
    unit_gain: bool = False  # inputs are not scaled, whatever the file says about r and w_in
    unit_gain_without_leak: bool = False  # the same, only for IF


# From the sources of snnTorch 1.0.0, Norse 1.1.0, Spyx 1.0.0 and Sinabs 2.0.3, for neurons exported with their
# defaults, Sinabs with `SingleSpike`; `tests/golden/make_nir.py` compares each row with its library.
CONVENTIONS = {
    "nir": Convention(),
    "snntorch": Convention(
        dt=1e-4, reset="subtract", reset_time="after_decay", reset_time_with_synapse="after_decay"
    ),
    "norse": Convention(unit_gain_without_leak=True),
    "spyx": Convention(dt=1.0, reset="subtract", reset_time="after_decay", spike_from="old", unit_gain=True),
    "sinabs": Convention(dt=1.0, method="exact", reset="subtract", inclusive=True),
}
