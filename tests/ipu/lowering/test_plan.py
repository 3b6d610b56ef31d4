"""What a plan holds besides its operations: options, donation, constants, bytes, and lowering from many threads."""

import concurrent.futures
import gc

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from snnjax.ipu import lowering
from snnjax.ipu.lowering import lower
from snnjax.ipu.lowering.rules import callbacks
from tests.ipu.lowering.arrays import numbers
from tests.ipu.lowering.artifacts import artifact, options
from tests.ipu.lowering.checks import on_ipu, plan_of
from tests.ipu.lowering.reader import describe, read

X = numbers(np.float32, (4, 3))


def test_plan_says_what_it_is_of():
    def step(x):
        return x + 1.0

    plan = read(lower(artifact(step, X), options({"ipu_tiles": "64", "ipu_half_partials": "true"})))
    assert (plan.name, plan.num_partitions, plan.devices) == ("jit_step", 1, [0])
    assert plan.options == [
        ("half_partials", "true"),
        ("tiles", "64"),
        ("argument", "x"),
        ("result", "result"),
    ]
    (instruction,) = plan.main.instructions
    assert instruction.where == "test_plan.py:24 (test_plan_says_what_it_is_of.<locals>.step)"
    assert "elementwise" in describe(plan)


def test_options_may_be_numbers_and_bools():
    plan = read(lower(artifact(lambda x: x, X), options({"ipu_tiles": 64, "ipu_half_partials": True})))
    assert plan.options[:2] == [("half_partials", "true"), ("tiles", "64")]


def test_arguments_and_results_have_the_names_of_the_users_code():
    def step(params, x):
        return {"y": params["layer_0/connection"][0] * x}, x

    plan = plan_of(step, {"layer_0/connection": [X]}, X)
    assert plan.options == [
        ("argument", "params['layer_0/connection'][0]"),
        ("argument", "x"),
        ("result", "result[0]['y']"),
        ("result", "result[1]"),
    ]


def test_donated_parameters_give_their_memory_to_results_of_their_type():
    def step(params, state, x):
        return {"w": params["w"] - x.sum(), "b": params["b"] * 2.0}, state + 1, x

    arguments = {"w": X, "b": X[0]}, np.int32(3), X
    plan = plan_of(step, *arguments, donate_argnums=(0, 1))
    assert plan.donated == [0, 1, 2]
    assert plan.aliases == [(0, 0), (1, 1), (2, 2)]
    assert plan_of(step, *arguments).donated == []


def test_results_may_be_parameters_constants_and_the_same_twice():
    def function(x):
        return x, x, jnp.ones(3), 2, x + 1.0, x + 1.0

    assert len(plan_of(function, X).main.instructions) == 1
    for result, expected in zip(on_ipu(function, X), (X, X, np.ones(3), 2, X + 1, X + 1), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_equal_instructions_are_one():
    plan = plan_of(lambda x: (x @ x.T) * (x @ x.T) + jnp.sum(x @ x.T), X)
    assert [instruction.op for instruction in plan.main.instructions] == ["dot", "reduce", "elementwise"]


def test_constants_are_written_once_and_whole():
    table = numbers(np.float32, (70, 3))
    plan = plan_of(lambda i: jnp.asarray(table)[i] + jnp.asarray(table)[i + 1], np.int32(3))
    large = [array for array in plan.constants.values() if array.size > 64]
    assert len(large) == 1
    np.testing.assert_array_equal(large[0], table)


def test_threads_lower_at_once():
    programs = [artifact(lambda x, k=k: jnp.tanh(x) * k, X) for k in range(3)]
    alone = [lower(program, options()) for program in programs]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda k: lower(programs[k % 3], options()), range(24)))
    assert together == alone * 8


def test_text_is_a_program_too():
    program = b"func.func @main(%0: tensor<3xf32>) -> tensor<3xf32> { return %0 : tensor<3xf32> }"
    assert read(lower(program, options())).main.results == [0]


def test_composites_are_known_or_decomposed():
    plan = plan_of(lambda x: (lax.top_k(x, 2), lax.erf(x), lax.erf_inv(x)), X)
    assert {instruction.op for instruction in plan.main.instructions} == {"top_k", "elementwise"}
    texts = [text for i in plan.main.instructions for text in i.texts]
    assert "erf.f32" in texts


def test_unknown_callback_is_an_error():
    with pytest.raises(
        LookupError, match=r"callback: `number` must be that of a function of this process, got 0\."
    ):
        lowering.call_back(0, [])


def test_callbacks_are_let_go():
    for _ in range(2 * callbacks._KEPT):
        callbacks.Callback(print)
    gc.collect()
    assert len(callbacks._CALLBACKS) <= callbacks._KEPT + 50
