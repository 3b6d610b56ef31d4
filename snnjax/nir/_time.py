"""Conversion between time constants and decays per step.

"euler": ``v = v' + dt / tau (r I - v')``, that is ``decay = 1 - dt / tau``, as in snnTorch, Norse and Spyx, and in
NIR's published examples. "exact": ``decay = exp(-dt / tau)``, the solution of the equation for an input that is
constant over the step, as in Sinabs. In both cases the input has the gain ``r (1 - decay)``.

Decays are represented by ``leak = 1 - decay``, which is accurate even if the decay is close to 1.

Source: Pedersen et al. 2024, doi:10.1038/s41467-024-52259-9.
"""

import numpy as np

METHODS = ("euler", "exact")
# Raw decays ``log(decay / (1 - decay))`` whose sigmoid is 0 and 1 in float32 and float64.
_RAW_OF_0, _RAW_OF_1 = -750.0, 40.0


def leak_of(tau: np.ndarray, dt: float, method: str) -> np.ndarray:
    """The fraction of the membrane lost per step; above 1 if Euler's step is too long for the time constant."""
    ratio = dt / np.asarray(tau, np.float64)
    return np.asarray(ratio if method == "euler" else -np.expm1(-ratio))


def tau_of(leak: np.ndarray, dt: float, method: str) -> np.ndarray:
    """The inverse of `leak_of`; infinite for a leak of 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(dt / leak if method == "euler" else dt / -np.log1p(-leak))


def leak_of_raw(raw: np.ndarray) -> np.ndarray:
    """``1 - sigmoid(raw)``."""
    return np.asarray(np.exp(-np.logaddexp(0.0, np.asarray(raw, np.float64))))


def raw_of_leak(leak: np.ndarray) -> np.ndarray:
    """The inverse of `leak_of_raw`, finite even for decays of 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log1p(-leak) - np.log(leak), _RAW_OF_0, _RAW_OF_1))
