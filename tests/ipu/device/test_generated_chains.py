"""Elementwise chains as code of their own, compiled while JAX compiles: the bits and the cycles of interpreted ones."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import ipu
from tests.ipu.device.on_device import numbers

KERNELS = Path(__file__).parents[3] / "poplar_kernels"
OPTIONS = {"ipu_version": "bow", "ipu_tiles": "4"}
ELEMENTS = 203  # a share of each worker, and a rest


def _lif(v: jax.Array, current: jax.Array, previous: jax.Array) -> tuple[jax.Array, ...]:
    v = 0.9 * (v - previous) + current
    return v, (v > 1).astype(v.dtype)


def _narrow(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, ...]:
    half = (x.astype(jnp.float16) * 2 + 1).astype(jnp.bfloat16)
    return half, jnp.where((y > 0) | (z == x), y.astype(jnp.int8), 3), jnp.maximum(z, 0)


def _bits(array: np.ndarray) -> bytes:
    """One NaN is like another: C++ does not say which of two operands' it is that is passed on."""
    return np.where(array != array, 0, array).astype(array.dtype).tobytes()


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Asks the model for generated code, by the Python that has what popc.py needs."""

    def ask() -> None:
        monkeypatch.setenv("SNNJAX_IPU_GENERATE", str(KERNELS))
        monkeypatch.setenv("SNNJAX_PYTHON", sys.executable)

    return ask


@pytest.mark.parametrize("function", [_lif, _narrow])
def test_generated_code_yields_bits_and_cycles_of_the_interpreter(
    ipus: list[jax.Device], generate: Callable[[], None], function: Callable[..., Any]
) -> None:
    arrays = [numbers((ELEMENTS,), "float32", seed, edges=True) for seed in range(3)]

    def run() -> tuple[list[np.ndarray], Any]:
        compiled = jax.jit(lambda *given: function(*given), compiler_options=OPTIONS)
        placed = jax.device_put(arrays, ipus[0])
        return [np.asarray(each) for each in compiled(*placed)], ipu.profile(compiled, *placed)

    expected, interpreted = run()
    generate()
    actual, generated = run()
    assert [_bits(each) for each in actual] == [_bits(each) for each in expected]
    assert generated.phases.compute == interpreted.phases.compute
    assert any(name.startswith("snnjax::Chain") for name in generated.codelets)
    assert not any("ElementwiseChain" in name for name in generated.codelets)


def test_a_folder_without_the_headers_is_refused(
    ipus: list[jax.Device], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SNNJAX_IPU_GENERATE", str(tmp_path))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(lambda x: 2 * x + 1)(jax.device_put(numbers((ELEMENTS,), "float32", 0), ipus[0]))
    assert str(caught.value) == (
        "INVALID_ARGUMENT: compile: `SNNJAX_IPU_GENERATE` must name the folder poplar_kernels of snnjax's sources, "
        f'got "{tmp_path}". Unset it: results and cycles are the same.'
    )
