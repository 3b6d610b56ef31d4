"""`_dispatch`: one primitive per target, its `vmap` rule, and the choice of its implementation."""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters.partial_eval import dce_jaxpr
from jax.sharding import PartitionSpec

from snnjax import _dispatch, _jax_compat, _targets
from snnjax._batching import SHARED, any_group
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import vary_alike

X = jnp.arange(12.0).reshape(4, 3)
W = jnp.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]])


def scaled_product(operands: tuple[Any, Any], scale: float) -> tuple[Any]:
    return (jnp.matmul(*operands) * scale,)


def column_sums(operands: tuple[Any, Any], _) -> dict[str, Any]:
    return {"sums": jnp.sum(operands[0], axis=0), "product": jnp.matmul(*operands)}


PRODUCT = Target("test_product", "product", scaled_product)
SUMS = Target("test_sums", "sums", column_sums)


def product(x, w):
    return evaluate(PRODUCT, (x, w), (0, SHARED), (0,), 2.0)[0]


def sums(x, w):
    return evaluate(SUMS, (x, w), (0, SHARED), {"sums": SHARED, "product": 0})


def call_shapes(function, *arguments) -> list[list[tuple[int, ...]]]:
    """The shapes of operands and results of each call of a target in the jaxpr."""
    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    calls = [e for e in jaxpr.eqns if e.primitive.name.startswith("test_")]
    return [[v.aval.shape for v in (*e.invars, *e.outvars)] for e in calls]


def stacked(array: jax.Array, count: int) -> jax.Array:
    return jnp.stack([array + i for i in range(count)])


def test_target_is_its_reference_eager_and_compiled() -> None:
    for function in (product, jax.jit(product)):
        np.testing.assert_array_equal(function(X, W), 2 * X @ W)
    results = jax.jit(sums)(X, W)
    np.testing.assert_array_equal(results["sums"], X.sum(0))
    np.testing.assert_array_equal(results["product"], X @ W)


def test_programs_name_the_targets_in_their_metadata_only() -> None:
    for function, x in ((product, X), (jax.vmap(product, (0, None)), stacked(X, 2))):
        lowered = jax.jit(function).lower(x, W)
        assert "/test_product.reference/" in lowered.as_text(debug_info=True)  # the path as well
        assert "test_product" not in lowered.as_text()


def test_target_is_one_primitive_with_a_groups_axis() -> None:
    assert call_shapes(product, X, W) == [[(1, 4, 3), (1, 3, 2), (1, 4, 2)]]


def test_a_droppable_result_that_a_program_does_not_use_has_no_rows_there() -> None:
    shapes = {"product": jax.ShapeDtypeStruct((4, 2), X.dtype), "rows": jax.ShapeDtypeStruct((4, 3), X.dtype)}

    def reference(operands: tuple[Any, Any], _) -> dict[str, Any]:
        return {"product": jnp.matmul(*operands), "rows": operands[0]}

    target = Target("test_dropped", "dropped", reference)

    def both(x, w):
        droppable = {"product": False, "rows": True}
        options = {"results": shapes, "droppable": droppable}
        return evaluate(target, (x, w), (0, SHARED), {"product": 0, "rows": 0}, **options)

    for name, expected in (("product", X @ W), ("rows", X)):
        only = functools.partial(lambda name, x, w: both(x, w)[name], name)
        jaxpr = dce_jaxpr(jax.make_jaxpr(only)(X, W).jaxpr, [True])[0]
        (call,) = [each for each in jaxpr.eqns if each.primitive.name == "test_dropped"]
        rows = 4 if name == "rows" else 0
        assert [v.aval.shape for v in call.outvars] == [(1, 4, 2), (1, rows, 3)]
        np.testing.assert_array_equal(jax.jit(only)(X, W), expected)


def test_vmap_over_the_batched_operand_folds_into_the_batch() -> None:
    xs = stacked(X, 5)
    assert call_shapes(jax.vmap(product, (0, None)), xs, W) == [[(1, 20, 3), (1, 3, 2), (1, 20, 2)]]
    np.testing.assert_array_equal(jax.vmap(product, (0, None))(xs, W), 2 * xs @ W)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_vmap_over_any_axis_and_into_any_axis(axis: int) -> None:
    xs, ws = stacked(X, 5), stacked(W, 5)
    moved = [jnp.moveaxis(array, 0, axis) for array in (xs, ws)]
    for in_axes, given, expected in (
        ((axis, None), (moved[0], W), 2 * xs @ W),
        ((None, axis), (X, moved[1]), 2 * X @ ws),
        ((axis, axis), moved, 2 * xs @ ws),
    ):
        results = jax.vmap(product, in_axes, out_axes=axis)(*given)
        np.testing.assert_array_equal(jnp.moveaxis(results, axis, 0), expected)


def test_vmap_over_a_shared_operand_makes_groups() -> None:
    """The batched operand stays one group: it is not copied."""
    shapes = [[(1, 4, 3), (5, 3, 2), (5, 4, 2)]]
    assert call_shapes(jax.vmap(product, (None, 0)), X, stacked(W, 5)) == shapes


def test_vmap_with_a_shared_result_makes_groups() -> None:
    """One sum per example, not one over all of them."""
    xs = stacked(X, 5)
    assert call_shapes(jax.vmap(sums, (0, None)), xs, W)[0][0] == (5, 4, 3)
    np.testing.assert_array_equal(jax.vmap(sums, (0, None))(xs, W)["sums"], xs.sum(1))


def test_nested_vmaps_fold_into_batch_and_groups() -> None:
    xs, ws = stacked(X, 5), stacked(W, 3)
    expected = 2 * jnp.einsum("abi,cio->cabo", xs, ws)
    batch_inside = jax.vmap(jax.vmap(product, (0, None)), (None, 0))
    np.testing.assert_array_equal(batch_inside(xs, ws), expected)
    assert call_shapes(batch_inside, xs, ws) == [[(1, 20, 3), (3, 3, 2), (3, 20, 2)]]
    groups_inside = jax.vmap(jax.vmap(product, (None, 0)), (0, None))
    np.testing.assert_array_equal(groups_inside(xs, ws), jnp.swapaxes(expected, 0, 1))
    assert call_shapes(groups_inside, xs, ws) == [[(1, 20, 3), (3, 3, 2), (3, 20, 2)]]


def test_groups_of_groups_are_groups() -> None:
    a, b = stacked(X, 2), stacked(stacked(W, 2), 3)
    nested = jax.vmap(jax.vmap(sums), (None, 0))
    np.testing.assert_array_equal(nested(a, b)["product"], jnp.einsum("gbi,cgio->cgbo", a, b))
    assert call_shapes(nested, a, b)[0][:2] == [(6, 4, 3), (6, 3, 2)]


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)])
def test_vmap_over_no_examples_gives_none(in_axes: tuple[int | None, int | None]) -> None:
    given = [array if axis is None else array[None][:0] for array, axis in zip((X, W), in_axes, strict=True)]
    assert jax.vmap(product, in_axes)(*given).shape == (0, 4, 2)
    assert jax.vmap(sums, in_axes)(*given)["sums"].shape == (0, 3)


def branch(operands, _) -> tuple[Any]:
    (x,) = operands
    large = any_group(x > 10)
    return (jax.lax.cond(large, lambda: jax.lax.fori_loop(0, 3, lambda _, y: y + 1, x), lambda: x),)


def test_condition_of_any_group_stays_a_branch_under_vmap() -> None:
    """A select would compute both branches; all groups take the branch that one requires."""

    def function(x):
        return evaluate(Target("test_branch", "branch", branch), (x,), (SHARED,), (SHARED,))[0]

    xs = jnp.array([[1.0, 2.0], [3.0, 11.0]])
    np.testing.assert_array_equal(jax.vmap(function)(xs), xs + 3)
    np.testing.assert_array_equal(jax.vmap(function)(xs[:, :1]), xs[:, :1])
    lowered = jax.jit(jax.vmap(function)).lower(xs).as_text()
    assert "stablehlo.case" in lowered
    assert "stablehlo.select" not in lowered


def test_vary_alike_does_nothing_outside_of_shard_map() -> None:
    assert [a is b for a, b in zip(vary_alike([X, W]), [X, W], strict=True)] == [True, True]


def test_operands_and_results_vary_over_the_union_of_axes() -> None:
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    varying = []

    def local(x, w):
        alike = vary_alike([x, w])
        result = product(x, w)
        varying.extend(jax.typeof(array).manual_axis_type.varying for array in (*alike, result))
        return result

    specs = (PartitionSpec("a"), PartitionSpec(None, "b"))
    out = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=PartitionSpec("a", "b"))(X, W)
    assert set(varying) == {frozenset({"a", "b"})}
    np.testing.assert_array_equal(out, 2 * X @ W)


def test_shapes_of_results_are_derived_once() -> None:
    """A second bind of the same shapes does not trace the reference; another dtype or x64 does."""
    traced = []

    def reference(operands, _) -> tuple[Any]:
        traced.append(operands[0].dtype.name)
        return (operands[0] + 1,)

    target = Target("test_traced", "traced", reference)

    def bind(x):
        return evaluate(target, (x,), (0,), (0,))[0]

    for x in (X, X, X.astype(jnp.bfloat16), X):
        jax.make_jaxpr(bind)(x)
    assert traced == ["float32", "bfloat16"]
    with jax.enable_x64(True):
        assert jax.make_jaxpr(bind)(np.zeros((4, 3))).out_avals[0].dtype == jnp.float64


# The test kernel adds this to the reference, to show which of them was used.
MARK = 1000.0
MISSING = "There is no library: build it"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Say whether the library is there, None, or why not, whatever this machine has."""

    def set_missing(sentence: str | None) -> None:
        monkeypatch.setattr(_targets, "missing", lambda: sentence)

    _dispatch._warn_once.cache_clear()
    set_missing(None)
    return set_missing


class Marked:
    """A product with a kernel written in jnp; the object is new in each test, and so is what JAX compiles for it."""

    def __init__(self, obstacle: str | None = None, pays: bool = True, max_groups: int = 100) -> None:
        self.calls: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []

        def call(operands: tuple[Any, Any], scale: float, results) -> tuple[Any]:
            x, w = operands
            self.calls.append((x.shape, w.shape, results[0].shape[0]))
            return (jnp.matmul(x, w) * scale + MARK,)

        def find_obstacle(operands: tuple[Any, Any], _: float) -> str | None:
            groups = max(operand.shape[0] for operand in operands)
            return f"{groups} groups" if groups > max_groups else obstacle

        kernel = Kernel(call, find_obstacle, lambda shapes, static: pays)
        self.target = Target("test_marked", "marked", scaled_product, {"cpu": kernel})

    def __call__(self, x, w, implementation: str | None = None):
        return evaluate(self.target, (x, w), (0, SHARED), (0,), 2.0, implementation=implementation)[0]


@pytest.mark.parametrize("compile", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("implementation, mark", [(None, MARK), ("cpu", MARK), ("reference", 0)])
def test_implementation_chooses(library, compile, implementation: str | None, mark: float) -> None:
    marked = Marked()
    result = compile(lambda x, w: marked(x, w, implementation))(X, W)
    np.testing.assert_array_equal(result, 2 * X @ W + mark)
    assert marked.calls == ([((1, 4, 3), (1, 3, 2), 1)] if mark else [])


@pytest.mark.parametrize(
    "marked", [Marked("such operands"), Marked(pays=False)], ids=["cannot", "does not pay"]
)
def test_kernel_is_left_out_where_it(library, marked: Marked) -> None:
    np.testing.assert_array_equal(marked(X, W), 2 * X @ W)


@pytest.mark.parametrize("pays", [True, False])
@pytest.mark.parametrize("takes_kernel", [True, False])
def test_platform_that_decides_later_is_given_both_forms(monkeypatch, pays: bool, takes_kernel: bool) -> None:
    marked, asked = Marked(), []

    def either(kernel, reference, pays: bool, arrays) -> Any:
        asked.append((pays, [array.shape for array in arrays]))
        return kernel() if takes_kernel else reference()

    own = marked.target.kernels["cpu"]._replace(pays=lambda shapes, static: pays, either=either)
    monkeypatch.setattr(_dispatch._platforms, "kernel", lambda platform, target: own)
    target = dataclasses.replace(marked.target, kernels={})
    product = jax.jit(lambda x, w: evaluate(target, (x, w), (0, SHARED), (0,), 2.0)[0])
    product.trace(X, W).lower(lowering_platforms=("ipu",))
    assert asked == [(pays, [(1, 4, 3), (1, 3, 2), (1, 4, 2)])]
    assert bool(marked.calls) == takes_kernel


def test_kernel_that_does_not_pay_can_be_asked_for(library) -> None:
    np.testing.assert_array_equal(Marked(pays=False)(X, W, "cpu"), 2 * X @ W + MARK)


def test_library_that_is_missing_warns_once_and_leaves_the_references(library) -> None:
    library(MISSING)
    text = f"snnjax runs without its compiled kernels, on slower references. {MISSING}."
    with pytest.warns(RuntimeWarning) as record:
        np.testing.assert_array_equal(Marked()(X, W), 2 * X @ W)
    assert [str(warning.message) for warning in record] == [text]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(jax.jit(Marked())(X, W), 2 * X @ W)


@pytest.mark.parametrize("marked, implementation", [(Marked(pays=False), None), (Marked(), "reference")])
def test_library_that_is_not_needed_is_not_missed(library, marked: Marked, implementation) -> None:
    library(MISSING)
    np.testing.assert_array_equal(marked(X, W, implementation), 2 * X @ W)


@pytest.mark.parametrize(
    "marked, implementation, sentence, text",
    [
        (
            Marked(),
            "tpu",
            None,
            "be None, 'reference', 'cpu', 'gpu' or 'composed', got 'tpu'. Choose one of these.",
        ),
        (
            Marked(),
            "cpu",
            MISSING,
            "be None or 'reference' without the compiled kernels, got 'cpu'. There is no library: build it.",
        ),
        (
            Marked("float64 weights"),
            "cpu",
            None,
            "be None or 'reference' for float64 weights, got 'cpu'. Leave it None for an automatic choice.",
        ),
    ],
)
def test_implementation_that_cannot_be_had_raises_while_tracing(
    library, marked: Marked, implementation: str, sentence: str | None, text: str
) -> None:
    library(sentence)
    with pytest.raises(ValueError) as error:
        jax.make_jaxpr(lambda x, w: marked(x, w, implementation))(X, W)
    assert str(error.value) == f"marked: `implementation` must {text}"


@pytest.mark.parametrize("asked, name", [("cpu", "CPU"), ("gpu", "GPU")])
def test_op_without_a_kernel_says_so(library, asked: str, name: str) -> None:
    with pytest.raises(ValueError) as error:
        evaluate(PRODUCT, (X, W), (0, SHARED), (0,), 2.0, implementation=asked)
    assert str(error.value) == (
        f"product: `implementation` must be None or 'reference' for an op without a {name} kernel, got "
        f"'{asked}'. Leave it None for the reference."
    )


def test_obstacle_that_vmap_makes(library) -> None:
    """By default the reference is used; if forced, the kernel raises."""
    ws = stacked(W, 5)
    mapped = jax.vmap(Marked(max_groups=1), (None, 0))
    np.testing.assert_array_equal(mapped(X, ws), 2 * X @ ws)
    forced = Marked(max_groups=1)
    with pytest.raises(ValueError, match="must be None or 'reference' for 5 groups, got 'cpu'"):
        jax.vmap(lambda w: forced(X, w, "cpu"))(ws)


def test_other_platforms_take_the_reference(library) -> None:
    marked, devices = Marked(), ("cuda",)
    jax.jit(marked).trace(X, W).lower(lowering_platforms=devices)
    assert marked.calls == []
    traced = jax.jit(lambda x, w: marked(x, w, "cpu")).trace(X, W)
    with pytest.raises(ValueError) as error:
        traced.lower(lowering_platforms=devices)
    assert str(error.value) == (
        "marked: `implementation` must be None or 'reference' on platform cuda, got 'cpu'. "
        "Leave it None, or run the program under jax.default_device of a CPU."
    )


@pytest.mark.parametrize("implementation", [None, "cpu"])
def test_kernel_sees_the_groups_of_vmap(library, implementation: str | None) -> None:
    marked, xs, ws = Marked(), stacked(X, 5), stacked(W, 3)

    def call(x, w):
        return marked(x, w, implementation)

    results = jax.vmap(jax.vmap(call, (0, None)), (None, 0))(xs, ws)
    np.testing.assert_array_equal(results, 2 * jnp.einsum("abi,cio->cabo", xs, ws) + MARK)
    assert marked.calls == [((1, 20, 3), (3, 3, 2), 3)]


def test_kernel_inside_grad_and_scan(library) -> None:
    marked = Marked()

    @jax.custom_vjp
    def with_gradient(x, w):
        return marked(x, w, "cpu")

    with_gradient.defvjp(lambda x, w: (with_gradient(x, w), w), lambda w, g: (marked(g, w.T, "cpu"), None))

    def loss(x):
        steps = jax.lax.scan(lambda total, row: (total + jnp.sum(with_gradient(row, W)), None), 0.0, x)
        return steps[0]

    value, slope = jax.jit(jax.value_and_grad(loss))(X[:, None, :])
    assert value == np.sum(2 * X @ W + MARK)
    np.testing.assert_array_equal(slope[:, 0], np.broadcast_to(2 * W.sum(1) + MARK, X.shape))


def test_kernel_inside_shard_map(library) -> None:
    marked = Marked()
    mesh = jax.make_mesh((4,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    specs = (PartitionSpec("batch"), PartitionSpec())
    sharded = jax.shard_map(
        lambda x, w: marked(x, w, "cpu"), mesh=mesh, in_specs=specs, out_specs=PartitionSpec("batch")
    )
    np.testing.assert_array_equal(jax.jit(sharded)(X, W), 2 * X @ W + MARK)
    assert marked.calls == [((1, 1, 3), (1, 3, 2), 1)]


@pytest.mark.parametrize("live_inputs", [(), ([True, True],)], ids=["0.10.2", "0.12.0.1"])
def test_dead_code_is_dropped_as_each_version_of_jax_asks(live_inputs: tuple[Any, ...]) -> None:
    primitive = _jax_compat.Primitive("test")
    _jax_compat.set_dce_rule(primitive, lambda used, equation: (used, equation))
    rule = _jax_compat.dce_rules[primitive]
    assert rule([True, False], *live_inputs, "equation") == ([True, False], "equation")
