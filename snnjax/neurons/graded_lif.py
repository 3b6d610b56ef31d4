"""LIF neurons with graded spikes: integers, or -1, 0 and 1."""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_integer, fail
from snnjax._types import Params, upcast
from snnjax.neurons._constants import Constant
from snnjax.neurons._glif import GLIF
from snnjax.neurons._model import DECAY, THRESHOLD, Model, gain_of, glif_neuron
from snnjax.neurons._neuron import Neuron, graded_spikes
from snnjax.neurons._step import Bound, check_inputs
from snnjax.ops._glif_step import GLIFConstants, align
from snnjax.surrogates import Surrogate


class GradedLIFParams(NamedTuple):
    """The parameters of `integer_lif` and `ternary_lif`; None for constants that are not learned."""

    raw_decay: Array | None = None  # [neurons]; decay = raw_to_decay(raw_decay)
    threshold: Array | None = None  # [neurons]


class GradedLIFState(NamedTuple):
    """The state of `integer_lif` and `ternary_lif`; the spikes of the previous step follow from the membrane."""

    v: Array  # [batch, neurons] membrane


def _constants(decay: Array, threshold: Array, *, normalize: bool) -> GLIFConstants:
    return GLIFConstants(decay, threshold, gain_of(decay, normalize))


_INTEGER, _TERNARY = (
    Model(name, GradedLIFParams, GradedLIFState, (DECAY, THRESHOLD), _constants, ("normalize",))
    for name in ("integer_lif", "ternary_lif")
)


@explained
def integer_lif(
    decay: Constant = 0.9,
    threshold: Constant = 1.0,
    largest: int = 4,
    *,
    per: str = "channel",
    surrogate: str | Surrogate = "boxcar",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    learn_decay: bool = False,
    learn_threshold: bool = False,
) -> Neuron:
    r"""Make LIF neurons whose spikes are integers: the membrane, rounded in units of the threshold.

    With the spikes ``s'`` of the previous step, the inputs :math:`x`, `decay` :math:`\alpha`, `threshold`
    :math:`\theta` and `largest` :math:`D`:

    .. math::

        v &= \alpha (v' - \theta s') + g x, \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        s &= \mathrm{clip}(\mathrm{round}(v / \theta), 0, D)

    Halves are rounded down. A spike of 3 stands for three spikes: activity, counts and synaptic operations count it
    three times, and the derivative of the surrogate is the sum over the levels ``(i - 1/2) threshold``. That of the
    default is 1 between 0 and ``largest * threshold`` where the threshold is 1, and 0 elsewhere.

    Args:
        largest: the largest spike.
        decay: as for `lif`.
        threshold: the membrane that a spike of 1 stands for; half of it makes a neuron spike.
        reset: "subtract", "zero" or "none".
        per: this and the remaining switches are as for `lif`.

    Raises:
        ValueError: if a number is out of range, or a switch is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.integer_lif(largest=3, normalize=False)
        >>> params = neuron.init(jax.random.key(0), 4)
        >>> neuron.step(params, neuron.initial_state(params, 1, 4), jnp.array([[-2.0, 0.4, 1.6, 9.0]]))[1]
        Array([[0., 0., 2., 3.]], dtype=float32)

    Reference:
        Luo et al. 2024, arXiv:2407.20708.
    """
    arguments = locals()
    largest = check_integer("integer_lif", "largest", largest, 1)
    return _graded(_INTEGER, arguments, (0, int(largest)), 0.5)


@explained
def ternary_lif(
    decay: Constant = 0.9,
    threshold: Constant = 1.0,
    *,
    per: str = "channel",
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    learn_decay: bool = False,
    learn_threshold: bool = False,
) -> Neuron:
    r"""Make LIF neurons whose spikes are 1, or -1 where the membrane is below the negative threshold.

    With the spikes ``s'`` of the previous step, the inputs :math:`x`, `decay` :math:`\alpha` and `threshold`
    :math:`\theta`:

    .. math::

        v &= \alpha (v' - \theta s') + g x, \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        s &= [v > \theta] - [-v > \theta]

    Activity and counts are those of spikes of either sign, never negative.

    Args:
        decay: this and the remaining arguments are as for `lif`; the reset "zero" resets after spikes of either sign.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.ternary_lif(normalize=False)
        >>> params = neuron.init(jax.random.key(0), 3)
        >>> neuron.step(params, neuron.initial_state(params, 1, 3), jnp.array([[-2.0, 0.4, 1.6]]))[1]
        Array([[-1.,  0.,  1.]], dtype=float32)

    Reference:
        Guo et al. 2024, arXiv:2312.06372.
    """
    return _graded(_TERNARY, locals(), (-1, 1), 1.0)


def _graded(model: Model, arguments: dict[str, Any], levels: tuple[int, int], share: float) -> Neuron:
    """The neuron of a model whose first level is at this share of its threshold."""
    given = {name: value for name, value in arguments.items() if name != "largest"}
    plain = glif_neuron(model, given)
    if not np.min(given["threshold"]) > 0:
        fail(f"{model.name}: `threshold` must be positive, got {given['threshold']}. A spike stands for it.")
    assert plain.glif is not None
    attached = plain.glif.reset != "none" and not plain.glif.detach_reset
    bound = {"form": plain.glif, "levels": levels, "share": share, "surrogate": plain.surrogate}
    return dataclasses.replace(
        plain,
        integrate=Bound(_integrate, **bound),
        threshold=Bound(_first_level, of=plain.threshold, share=share),
        inner_surrogate=plain.surrogate if attached else None,
        glif=None,
        arguments=tuple({**arguments, "surrogate": plain.surrogate}.items()),
        levels=levels,
    )


def _first_level(params: Params, *, of: Any, share: float) -> Array:
    return share * of(params)


def _integrate(
    params: Params,
    state: GradedLIFState,
    inputs: Array,
    *,
    form: GLIF,
    levels: tuple[int, int],
    share: float,
    surrogate: Surrogate,
) -> tuple[Array, Array, GradedLIFState]:
    given, v = form.constants(params), state.v
    check_inputs("graded_lif.step", v, inputs)
    decay, threshold, gain = (align(each, v) for each in (given.decay, given.threshold, given.gain))
    first = share * threshold
    one = (max(levels[0], -1), min(levels[1], 1))
    spikes = graded_spikes(v, first, levels, surrogate)[0]
    any_spike = graded_spikes(v, first, one, surrogate)[1]
    if form.detach_reset:
        spikes, any_spike = jax.lax.stop_gradient((spikes, any_spike))
    rest = {"subtract": v - threshold * spikes, "zero": v * (1 - any_spike), "none": v}[form.reset]
    new = decay * rest + gain * upcast(inputs)
    return new, share * threshold, GradedLIFState(new)
