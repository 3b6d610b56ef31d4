"""The kernels for smaller instruction sets, in a process that is configured to use them."""

from pathlib import Path

import numpy as np
import pytest

from snnjax import _targets
from tests.evaluation import kernel_program
from tests.ops.kernel_checks import TOLERANCE, needs_kernels
from tests.project import sampling

pytestmark = needs_kernels


@pytest.fixture(scope="module", params=["portable", "avx2", "avx512"])
def instructions(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def here() -> dict[str, np.ndarray]:
    return kernel_program.results("cpu")


@pytest.fixture(scope="module")
def computed(
    instructions: str, here: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, np.ndarray]:
    """Where a sample will do, this process stands for one with the instruction set that it has."""
    if instructions == _targets.instruction_set() and not sampling.ALL:
        return here
    path = tmp_path_factory.mktemp("results") / "results.npz"
    return kernel_program.results_of_process(path, SNNJAX_CPU_ISA=instructions)


@pytest.fixture(scope="module")
def reference() -> dict[str, np.ndarray]:
    return kernel_program.by_name(kernel_program.results_of("exact", "reference"))


def test_results_are_those_of_the_reference(computed, reference) -> None:
    """Exactly, because no sum rounds; gradients within the tolerance of this machine's kernels."""
    assert len(reference) > 30
    for name in reference:
        largest = np.max(np.abs(reference[name].astype(float)), initial=1.0)
        atol = TOLERANCE["float32"] * largest
        np.testing.assert_allclose(computed[name], reference[name], rtol=0, atol=atol, err_msg=name)


def test_a_sample_does_not_depend_on_its_batch(computed) -> None:
    """To the bit: whether weights are read in place or packed, no sum is another one."""
    alone = [name for name in computed if name.startswith("alone")]
    assert len(alone) >= 6 * 3
    for name in alone:
        np.testing.assert_array_equal(computed[name], computed[name.replace("alone", "together")], name)
        assert np.any(computed[name]), name


def test_environment_chooses_the_kernels(computed, here, instructions: str) -> None:
    """Rounded sums distinguish them: larger sets fuse multiplication and addition, and AMX adds parts of products."""
    differ = any(here[name].tobytes() != computed[name].tobytes() for name in here)
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    larger = {"portable": "fma" in flags, "avx2": "avx512vl" in flags}
    # A system may refuse the tiles of a processor that has them.
    larger["avx512"] = _targets.instruction_set() == "amx"
    assert differ == larger[instructions]
