"""Every op equals its reference in plain NumPy loops, in each implementation."""

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np

from tests.cases import Case, as_numpy
from tests.ops.common import each_case, each_op, jit


@each_case
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_op_equals_its_reference(case: Case, seed: int) -> None:
    arguments = case.arguments(np.random.default_rng(seed))
    expected = case.reference(*as_numpy(arguments))
    chex.assert_trees_all_close(jit(case.function)(*arguments), expected, rtol=case.tolerance, strict=True)


@each_op
def test_arguments_reach_all_sides_of_the_definition(case: Case) -> None:
    """The drawn arguments do make neurons fire and stay silent, overflow and fit, so that equality means something."""
    results = [case.reference(*as_numpy(case.arguments(np.random.default_rng(seed)))) for seed in range(8)]
    floats = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(results)]).astype(float)
    assert np.any(floats == 0)
    assert np.any(floats != 0)
    if case.name == "select_spikes":
        assert len({tuple(np.sign(lists.num_spikes - lists.capacity)) for lists in results}) > 1
    if case.name.startswith("lif_network"):
        dropped = np.concatenate([np.ravel(result[2]) for result in results])
        assert np.any(dropped > 0)
        assert np.any(dropped == 0)
