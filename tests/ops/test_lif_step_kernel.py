"""The kernels of `lif_step` equal the reference in every convention."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import lif_step
from snnjax._types import SURROGATES
from tests.ops.common import assert_near, assert_same, jit
from tests.ops.kernel_checks import needs_kernels

pytestmark = needs_kernels

CONVENTIONS = [
    {"reset_time": time, "spike_from": source, "reset": reset, "detach_reset": detached}
    for time, source in (
        ("before_decay", "new"),
        ("before_decay", "old"),
        ("after_decay", "new"),
        ("after_decay", "old"),
        ("immediate", "new"),
    )
    for reset in ("subtract", "zero", "none")
    for detached in (True, False)
]


def step_and_gradients(options: dict[str, Any], implementation: str) -> Any:
    def of(arguments: Any, g: Any) -> Any:
        results, pull_back = jax.vjp(
            lambda *a: lif_step(*a, implementation=implementation, **options), *arguments
        )
        return results, pull_back(g)

    return jit(of)


@pytest.mark.parametrize("options", CONVENTIONS, ids=lambda options: "-".join(map(str, options.values())))
def test_step_equals_the_reference(options: dict[str, Any]) -> None:
    """Every convention; membranes and spikes to the bit, their arguments being dyadic."""
    number = CONVENTIONS.index(options)
    rng, neurons = np.random.default_rng(number), (300, 7, 0)[number % 3]
    dtype = ("float32", "bfloat16")[number % 2]
    surrogate = SURROGATES[number % len(SURROGATES)]
    constant = ((neurons,), ())[number // 2 % 2]
    numbers = [rng.integers(-8, 40, (9, neurons)) / 16 for _ in range(2)]
    numbers += [
        0.5 ** rng.integers(1, 3, constant),
        rng.integers(8, 16, constant) / 16,
        0.5 * np.ones(constant),
    ]
    v, *others = numbers
    arguments = [jnp.asarray(v, jnp.float32), *(jnp.asarray(array, dtype) for array in others)]
    g = tuple(jnp.asarray(rng.normal(size=(9, neurons)), kind) for kind in ("float32", dtype))
    options = {**options, "surrogate": surrogate, "inclusive": number % 4 == 0}
    (ours, ours_g), (theirs, theirs_g) = (
        step_and_gradients(options, implementation)(arguments, g) for implementation in ("cpu", "reference")
    )
    assert_same(ours, theirs)
    assert_near(ours_g, theirs_g, {"float32": 1e-5, "bfloat16": 0.02}[dtype])


def test_float64_membranes_are_refused() -> None:
    with jax.enable_x64(), pytest.raises(ValueError, match="'reference' for float64 membranes, got 'cpu'"):
        lif_step(*jnp.ones((2, 1), jnp.float64), 0.5, 1.0, implementation="cpu")
