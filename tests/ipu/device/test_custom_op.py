"""The custom operation for frameworks on an installed SDK, loaded and run on the IPU Model as a framework would."""

import base64
import dataclasses
import os
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax.ipu import custom_op
from tests.project.architecture import ROOT

# Where it was built: with an SDK (xla_ext/custom_op/README.md) in another folder.
BUILD = Path(os.environ.get("SNNJAX_CUSTOM_OP", ROOT / "build" / "release"))
PROGRAM, LIBRARY = BUILD / "run_custom_op", BUILD / "snnjax_custom_op.so"


class Op(NamedTuple):
    """A function with arrays for it."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    target: bytes = b""  # the op's name in a plan


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def network() -> Op:
    """Two layers over time, as `network.apply` calls `lif_network`."""
    built = snnjax.network(12, [snnjax.layer(20, capacity=10)], snnjax.leaky_readout(3))
    params = jax.eval_shape(built.init, jax.random.key(0))
    inputs = np.abs(normal(1, 10, 5, 12))

    def apply(params, inputs: jax.Array, **options) -> jax.Array:
        return built.apply(params, None, inputs, **options)[0].output

    return Op(
        apply,
        (jax.tree.map(lambda leaf: np.abs(normal(leaf.size, *leaf.shape)), params), inputs),
        b"lif_network",
    )


def product() -> Op:
    ids = np.random.default_rng(0).integers(0, 33, (6, 4), np.int32)  # of 32 inputs: 32 is an unused slot

    def multiply(ids: jax.Array, values: jax.Array, weights: jax.Array, **options) -> jax.Array:
        spikes = dataclasses.replace(snnjax.SparseSpikes.from_ids(ids, 32), values=values)
        return snnjax.spike_matmul(spikes, weights, **options)

    return Op(multiply, (ids, normal(1, 6, 4), normal(2, 32, 24)), b"spike_matmul")


def step() -> Op:
    return Op(
        snnjax.lif_step, (normal(0, 7, 30), normal(1, 7, 30), np.full(30, 0.9, np.float32), np.float32(0.5))
    )


def dense() -> Op:
    """A batch of products, one of halves, and one of vectors."""

    def multiply(a: jax.Array, b: jax.Array, halves: jax.Array, **options) -> list[jax.Array]:
        return [jnp.einsum("bij,bkj->bik", a, b), halves @ halves.T, a[0, 0] @ b[0, 0]]

    return Op(multiply, (normal(0, 3, 5, 7), normal(1, 3, 4, 7), normal(2, 6, 9).astype(np.float16)), b"dot")


OPS = {"dense": dense, "network": network, "product": product, "step": step}


def put(folder: Path, op: Op, gradients: Sequence[np.ndarray]) -> None:
    """Writes a folder of tests/run.cpp."""
    attributes = custom_op(op.function, *op.arguments)
    for name, text in attributes._asdict().items():
        assert op.target in base64.b64decode(text)
        (folder / name).write_text(text)
    lines = []
    for kind, arrays in (("input", map(np.asarray, jax.tree.leaves(op.arguments))), ("gradient", gradients)):
        for number, array in enumerate(arrays):
            lines.append(" ".join(map(str, (kind, array.dtype, *array.shape))))
            (folder / f"{kind}{number}").write_bytes(array.tobytes())
    (folder / "arrays").write_text("\n".join(lines))


def reference(op: Op, arguments: tuple[Any, ...], given: list[Any]) -> tuple[list[Any], list[Any]]:
    """Outputs, and the gradients of floating-point inputs."""
    outputs, pull = jax.vjp(partial(op.function, implementation="reference"), *arguments)
    gradients = jax.tree.leaves(pull(jax.tree.unflatten(jax.tree.structure(outputs), given)))
    return jax.tree.leaves(outputs), [None if leaf.dtype == jax.dtypes.float0 else leaf for leaf in gradients]


def run(*folders: Path) -> str:
    """What the program says of its errors."""
    if not PROGRAM.exists():
        pytest.skip(f"there is no {PROGRAM}: `make kernels` builds it")
    environment = os.environ | {"SNNJAX_IPU_TILES": "16"}
    done = subprocess.run(
        [PROGRAM, LIBRARY, *folders], capture_output=True, text=True, check=False, env=environment
    )
    assert bool(done.returncode) == bool(done.stderr)
    return done.stderr


def test_custom_op_equals_the_references(tmp_path: Path) -> None:
    """Forward and gradient, of dense products, a network, a sparse product and a step of neurons."""
    expected = {}
    for name, make in OPS.items():
        op, folder = make(), tmp_path / name
        folder.mkdir()
        shapes = jax.tree.leaves(jax.eval_shape(op.function, *op.arguments))
        given = [normal(9, *leaf.shape).astype(leaf.dtype) for leaf in shapes]
        expected[folder] = jax.jit(partial(reference, op))(op.arguments, given)
        put(folder, op, given)
    assert run(*expected) == ""
    for folder, kinds in expected.items():
        for kind, arrays in zip(("output", "input_gradient"), kinds, strict=True):
            assert any(array is not None and np.any(array) for array in arrays)
            for number, array in enumerate(arrays):
                path = folder / f"{kind}{number}"
                if array is None:
                    assert not path.exists()
                    continue
                actual = np.frombuffer(path.read_bytes(), array.dtype).reshape(array.shape)
                tolerance = 2e-5 if array.dtype == np.float32 else 2e-2  # sums of halves of about 5
                np.testing.assert_allclose(actual, array, rtol=tolerance, atol=tolerance, err_msg=str(path))


def test_custom_op_says_what_its_plan_takes(tmp_path: Path) -> None:
    put(tmp_path, Op(lambda x: x + 1, (normal(0, 3),)), [normal(1, 3)])
    again = "Make them again with snnjax.ipu.custom_op.\n"
    (tmp_path / "arrays").write_text("input float32 4\ngradient float32 3")
    expected = "custom_op: `inputs` must have float[3] at position 0, got float[4]. "
    assert run(tmp_path) == expected + again
    (tmp_path / "arrays").write_text("gradient float32 3")
    assert run(tmp_path) == "custom_op: `inputs` must number 1, got 0. " + again
    (tmp_path / "attributes").write_text("no plan")
    assert (
        run(tmp_path) == "custom_op: `attributes` must be a plan in base64, got the character ' '. " + again
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_custom_op_refuses_types_that_poplar_lacks(dtype: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^custom_op: `arguments` must have types that Poplar has, got {dtype}\. "
    ):
        custom_op(lambda x: x, jnp.ones(3, dtype))
