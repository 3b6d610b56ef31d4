"""What the equation of neurons, the tables of own ops and their kernels share: constants by name, switches by number.

It is read as `snnjax._schema` says, when the libraries are built too, and imports nothing else. Generated from it are
the records and enumerations of CPU kernels, builders and codelets (``schema/neurons.hpp``).
"""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

# Kernels and codelets know a switch by its position.
RESETS = ("subtract", "zero", "none")
SURROGATES = ("superspike", "arctan", "triangle", "gaussian", "sigmoid", "boxcar", "straight_through")
SWITCHES = {"Reset": RESETS, "Surrogate": SURROGATES}  # by the name of their enumeration

# The header of a spike list on the tiles of an IPU, and how many entries each field has: spikes kept, neurons listed,
# true spikes before the cap, and where the spikes of the second to the last share of the neurons begin.
LIST_HEADER = {"kept": 1, "listed": 1, "true_spikes": 1, "starts": 5}

_CONSTANT = arrays("sums", "neurons_or_1", gradient="wanted")
_COUPLING = _CONSTANT._replace(given="optional")


class SecondState(NamedTuple):
    r"""The constants of the second state ``w`` of `lif_network`'s neurons; None means absent.

    Each is one value or one per neuron. In the equation of `snnjax.lif_network`, `w_decay` is :math:`\alpha_w`,
    `w_membrane` :math:`a`, `w_gain` :math:`g_w`, `w_jump` :math:`b`, `v_coupling` :math:`c` and `threshold_coupling`
    :math:`\kappa`.
    """

    w_decay: Annotated[Any, _CONSTANT]
    w_membrane: Annotated[Any, _COUPLING] = None
    w_gain: Annotated[Any, _COUPLING] = None
    w_jump: Annotated[Any, _COUPLING] = None
    v_coupling: Annotated[Any, _COUPLING] = None
    threshold_coupling: Annotated[Any, _COUPLING] = None


class GLIFConstants(NamedTuple):
    """The constants of a generalised LIF neuron, each ``[]`` or ``[neurons]``; `GLIF` has the equation."""

    decay: Annotated[Any, _CONSTANT]
    threshold: Annotated[Any, _CONSTANT]
    gain: Annotated[Any, _CONSTANT]
    # Whole steps after a spike in which a neuron stays as it is; None for neurons without a refractory period
    refractory: Annotated[Any, _COUPLING._replace(gradient="none")] = None
    second_state: SecondState | None = None


RECORDS = (SecondState, GLIFConstants)
