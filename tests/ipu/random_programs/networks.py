"""Random networks of `lif_network` for the modelled IPU, most of them of the kind that codelets take.

Numbers are dyadic (tests/ops/lif_network/random_networks.py): spikes are exact, in whatever order currents are added.
Mean activities are quotients, and second states may pass 24 digits, so that numbers are compared to a few of their last
bits, of which no spike is one.
"""

import functools
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from snnjax.ipu.device import network_cost
from tests.numbers import assert_close, picker
from tests.ops.lif_network.random_networks import Form, arguments, random_form, runner

# Most networks have what codelets take, and most of these run on them even where another form is faster by estimate.
_ON_CODELETS, _FORCED, _DELAYED = 0.92, 0.8, 0.3
_TILES = (8, 24, 64)  # fewer do not hold all of these networks
_LONGEST = 12  # delay: with longer ones references do not fit on eight tiles
# Gradients, relative to the largest of an array: rounding of their sums. And numbers relative to the largest of all: a
# step's current is told from the membranes around it, and so rounded like these.
_CLOSE = {"float32": 3e-5, "bfloat16": 3e-2}
_CLOSER = {"float32": 2e-6, "bfloat16": 2e-3}


def drawn_form(rng: np.random.Generator) -> Form:
    """Sizes around the rows of a tile and the pairs that a vector holds, and any switches."""
    pick = picker(rng)
    form = random_form(rng)
    widths = tuple(min(width, pick(9, 33, 100)) for width in form.widths)
    form = form._replace(
        steps=min(form.steps, 9),
        batch=min(form.batch, pick(3, 9, 17)),
        inputs=widths[0] if form.currents else min(form.inputs, 40),
        widths=widths,
        capacity=tuple(pick(None, 1, 3, max(1, width // 2), width + 5) for width in widths),
        slots=min(form.slots, 20),
        max_delays=tuple(most and min(most, _LONGEST) for most in form.max_delays),
    )
    return for_codelets(form, rng) if rng.random() < _ON_CODELETS else form


def for_codelets(form: Form, rng: np.random.Generator) -> Form:
    """The form without what makes a network run as the reference (snnjax/ipu/device/own_ops.py)."""
    is_delayed = rng.random() < _DELAYED and not form.currents
    return form._replace(
        steps=max(form.steps, 1),
        batch=max(form.batch, 1),
        inputs=max(form.inputs, 1),
        widths=tuple(max(width, 1) for width in form.widths),
        outputs=form.outputs or None,
        slots=max(form.slots, 1),
        given="float32" if form.currents else form.given,
        currents=False,
        cutoff=0.0,
        dtype="float32",
        max_delays=form.max_delays if is_delayed else (),
        recurrent_delay=None,
        synaptic=False,
        connected=None,
        refractory=(),
        record_spikes=False,
        rounds_record=(),
    )


def results_and_gradients(form: Form, given: tuple[Any, ...], g: PyTree) -> tuple[PyTree, list[Any]]:
    """All results, and the gradients by layers, readout and state."""

    def function(layers, readout, state):
        output, activity, dropped, spikes, last = runner(form, None)(
            given[0], layers, readout, state, *given[4:]
        )
        return (output, activity, last), (dropped, spikes)

    results, pull, others = jax.vjp(function, *given[1:4], has_aux=True)
    gradients = [leaf for leaf in jax.tree.leaves(pull(g)) if leaf.dtype != jax.dtypes.float0]
    return (results, others), gradients


def cotangent(leaf: jax.ShapeDtypeStruct, rng: np.random.Generator) -> Any:
    if jnp.issubdtype(leaf.dtype, jnp.floating):
        return jnp.asarray(rng.integers(-8, 9, leaf.shape) / 8, leaf.dtype)
    return np.zeros(leaf.shape, jax.dtypes.float0)


def check_network(seed: int, ipu: jax.Device) -> None:
    """Results and gradients on the IPU are those of the CPU's kernels."""
    rng = np.random.default_rng(seed)
    form = drawn_form(rng)
    tiles = int(rng.choice(_TILES))
    is_forced = rng.random() < _FORCED
    check_form(form, arguments(form, rng), tiles, ipu, rng, is_forced=is_forced)


def check_form(
    form: Form,
    given: tuple[Any, ...],
    tiles: int,
    ipu: jax.Device,
    rng: np.random.Generator,
    *,
    is_forced: bool = True,
) -> jax.stages.Compiled:
    """The same of a form and its arguments; returns the program for the IPU.

    The program is on codelets where these take the form and are forced, or faster by estimate.
    """
    output, activity, _, _, last = jax.eval_shape(runner(form, None), *given)
    g = jax.tree.map(functools.partial(cotangent, rng=rng), (output, activity, last))
    function = functools.partial(results_and_gradients, form)
    estimate = {"return_value": True} if is_forced else {"side_effect": network_cost.pays}
    there = jax.device_put((given, g), ipu)
    with mock.patch.object(network_cost, "pays", **estimate):
        program = jax.jit(function, compiler_options={"ipu_tiles": str(tiles)}).lower(*there).compile()
    actual = program(*there)
    expected = jax.jit(function)(*jax.device_put((given, g), jax.devices("cpu")[0]))
    close, closer = _CLOSE[form.dtype], _CLOSER[form.dtype]
    assert_close(actual[0], expected[0], of_largest=0.0, rtol=closer, atol=closer)
    largest = max((float(jnp.max(jnp.abs(leaf), initial=0.0)) for leaf in expected[1]), default=0.0)
    assert_close(actual[1], expected[1], of_largest=close, rtol=close, atol=closer * largest)
    return program
