"""What an IPU cannot run is refused when it is compiled, with operation, types, a hint and the user's line."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from snnjax.ipu.lowering import Unsupported, lower
from snnjax.ipu.lowering.rules.primitives import lower_check
from tests.ipu.lowering.artifacts import artifact, options
from tests.ipu.lowering.checks import plan_of

X = np.ones((4, 4), np.float32)
NONE = "the IPU has no such operation. Run this part on the CPU."


def refusal(function, *arguments):
    """The message, and the line of the function that it names."""
    with pytest.raises(Unsupported) as caught:
        plan_of(function, *arguments)
    line = inspect.getsourcelines(function)[1]
    message, _, place = str(caught.value).rpartition(" (test_refusals.py:")
    assert place.startswith(str(line)), (place, line)
    return message


def test_linear_algebra_and_fourier_transforms_are_refused():
    assert refusal(lambda x: jnp.abs(jnp.fft.rfft(x)), X) == f"fft of f32[4,4]: {NONE}"
    assert refusal(lambda x: jnp.fft.ifft(x), X * 1j) == f"fft of c64[4,4]: {NONE}"
    assert refusal(lambda x: lax.linalg.cholesky(x), X) == f"cholesky of f32[4,4]: {NONE}"
    assert refusal(lambda x: jnp.linalg.inv(x), X) == f"triangular_solve of f32[4,4], f32[4,4]: {NONE}"
    assert refusal(lambda x: jnp.linalg.qr(x), X) == (
        "custom_call of f32[4,4]: the IPU has no target 'Qr'. Run this part on the CPU."
    )


def test_operations_that_there_are_not_are_refused():
    message = refusal(lambda x: lax.rng_uniform(x[0, 0], x[0, 1], (3,)), X)
    assert message.endswith(NONE)


def test_other_random_generators_are_refused():
    key = jax.random.key(0, impl="rbg")
    message = refusal(lambda key: jax.random.uniform(key, (3,)), key)
    assert message == (
        "bitcast_convert of u32[2,2]: the IPU has no u64. "
        "Use threefry random keys, JAX's default, and leave jax_enable_x64 off."
    )


def test_functions_of_elements_that_make_arrays_are_refused():
    message = refusal(lambda x: lax.reduce(x, 0.0, lambda a, b: jnp.sort(jnp.stack([a, b]))[0], (0,)), X)
    assert message == (
        "broadcast_in_dim of f32[2,4]: in a function of elements it is not elementwise. "
        "Combine elements by elementwise operations, branches and loops."
    )


def test_large_products_of_integers_are_refused():
    x = np.ones((200, 200), np.int32)
    message = refusal(lambda x: x @ x, x)
    assert message == (
        "dot_general of s32[200,200], s32[200,200]: its 8000000 integer products exceed the limit of 1048576. "
        "Convert the operands to float32."
    )


def test_foreign_custom_calls_are_refused():
    message = refusal(lambda x: jax.ffi.ffi_call("theirs", jax.ShapeDtypeStruct((4, 4), np.float32))(x), X)
    assert message == "custom_call of f32[4,4]: the IPU has no target 'theirs'. Run this part on the CPU."


def test_what_jax_lowers_for_other_platforms_alone_is_refused():
    message = refusal(lambda x: lax.linalg.schur(x)[0], X)
    assert message == ("custom_call of f32[4,4]: the IPU has no target 'schur'. Run this part on the CPU.")


def test_what_complex_numbers_lack_is_refused():
    numbers = np.ones((3, 3), np.complex64)
    assert refusal(lambda x: lax.linalg.schur(x)[0], numbers) == (
        "custom_call of c64[3,3]: the IPU does not do this with complex numbers. Do it with their parts."
    )
    with (
        jax.enable_x64(True),
        pytest.raises(
            Unsupported, match=r"compile: tensor<3xcomplex<f64>> is not a type of the IPU. Use float32, "
        ),
    ):
        plan_of(lambda x: x, np.ones(3, np.complex128))


def test_double_precision_is_refused():
    with jax.enable_x64(True):
        with pytest.raises(Unsupported) as caught:
            plan_of(lambda x: x + 1.0, np.ones(3, np.float64))
        assert str(caught.value) == (
            "compile: `argument 0` must have elements of at most 32 bits, got f64[3]. "
            "Leave jax_enable_x64 off, or convert it."
        )
        message = refusal(lambda x: x.astype(jnp.float64) * 2.0, np.ones(3, np.float32))
        assert message == (
            "convert of f32[3]: the IPU has no f64. Leave jax_enable_x64 off, or convert to 32 bits first."
        )
        with pytest.raises(
            Unsupported, match=r"compile: `result 0` must have elements of at most 32 bits, got s64\[3\]"
        ):
            plan_of(lambda: jnp.arange(3))


def test_constants_of_double_precision_do_not_fill_the_host():
    """The IPU has no such numbers, so that they are computed when the program is compiled: few, not all there are."""
    with jax.enable_x64(True):
        assert not plan_of(lambda: jnp.arange(1000).astype(jnp.float32)).main.instructions
        message = refusal(lambda: jnp.arange(2**40).astype(jnp.float32))
    assert message == "iota: the IPU has no s64. Leave jax_enable_x64 off, or convert to 32 bits first."


def test_sorts_by_functions_are_refused():
    program = """
    func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {
      %1 = "stablehlo.sort"(%0) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.abs %a : tensor<f32>
        %d = stablehlo.compare LT, %c, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %d : tensor<i1>
      }) {dimension = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }"""
    with pytest.raises(
        Unsupported, match=r"sort of f32\[4\]: the IPU sorts by ascending or descending keys, not by a"
    ):
        lower(program.encode(), options())


def test_what_is_no_program_is_refused():
    with pytest.raises(
        ValueError, match=r"compile: `program` must be a StableHLO module, got one that MLIR rejects: "
    ):
        lower(b"no program", options())


def test_options_of_other_compilers_are_refused():
    program = artifact(lambda x: x, X)
    sentence = r"compile: `compiler_options` must begin with 'ipu_', got '%s'. Leave it out on an IPU"
    with pytest.raises(Unsupported, match=sentence % "xla_fast" + r"\.$"):
        lower(program, options({"xla_fast": "1"}))
    with pytest.raises(ValueError, match=sentence % "fast" + r" \(No such compile option: 'fast'\)\.$"):
        lower(program, options({"fast": "1"}))


@pytest.mark.parametrize("option", ["ipu_attempts", "ipu_note", "ipu_argument", "ipu_result"])
def test_what_the_lowering_tells_the_executor_is_no_option_of_users(option):
    sentence = "compile: `compiler_options` must be among ipu_version, ipu_tiles, ipu_ipus and ipu_half_partials, got"
    with pytest.raises(ValueError, match=re.escape(f"{sentence} {option}. Leave it out.")):
        lower(artifact(lambda x: x, X), options({option: "1"}))


def test_line_is_the_caller_s_where_a_library_computes():
    message = refusal(lambda x: jax.nn.relu(jax.scipy.linalg.schur(x)[0]), X)
    assert message.startswith("custom_call")


def test_checks_that_are_not_functionalised_are_refused_unless_they_are_for_debugging():
    assert lower_check(debug=True, err_tree=None) == []
    with pytest.raises(NotImplementedError) as caught:
        lower_check(debug=False, err_tree=None)
    assert str(caught.value) == (
        "checkify.check: `check` must be functionalised on platform ipu, got one that is not. "
        "Call the function through checkify.checkify."
    )
