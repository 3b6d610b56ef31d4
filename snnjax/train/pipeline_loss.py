"""A pipeline that computes the loss, so that backward passes begin before all forward passes have ended.

The schedule is PipeDream-flush (Narayanan et al. 2020, arXiv:2006.09503), also called one forward, one backward (1F1B).
Devices advance in turns: in each one, a device computes the backward pass of one piece and the forward pass of another.
The last device does both passes of a piece at once, as its backward pass is the first. On `D` devices::

    turn                   0    1    ...  D - 1   D       ...
    forward on device d    piece 0 enters at turn d, and one more in each turn
    backward on device d   piece 0 returns at turn 2 (D - 1) - d, and one more in each turn

So device d holds the inputs of ``2 (D - 1 - d)`` pieces, however many there are. With turns of its own for each pass a
device would hold ``D - d`` (the original schedule), but two devices would then never do the same at the same time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from snnjax._check import check_integer, fail, plural
from snnjax._sharding import vary_alike
from snnjax._types import Params, Signal, State, accumulation_dtype, upcast
from snnjax.train.pieces import BATCH, batch_of, check_stage, choose, cut, read

_OP = "pipeline_loss"


def pipeline_loss(
    stage: Callable[[Any, Any], Any],
    loss: Callable[[Any, Any, Any], Any],
    params: Params,
    loss_params: Params,
    inputs: Signal,
    targets: PyTree,
    *,
    pieces: int,
    axis: str = "stage",
) -> Float[Array, ""]:
    r"""Compute the loss at the end of a pipeline, and for `jax.grad` its gradients, by the schedule of PipeDream-flush.

    Call it inside `jax.shard_map`. With the parameters ``params[k]`` of one stage per device, the result is the mean
    over the pieces of a batch of what one device computes::

        for k in range(devices):
            inputs = stage(params[k], inputs)
        loss(loss_params, inputs, targets)

    This equals the loss of the whole batch if `loss` is a mean over samples. `jax.grad` and `jax.value_and_grad`
    differentiate once with respect to `params`, `loss_params` and `inputs`; the gradients are those of one device. What
    is learnt must be an argument: `stage` and `loss` may close over other values only. Gradients are always computed
    along with the value, so evaluate with `pipeline`.

    A device computes the backward pass of a piece as soon as the next device has. Therefore it stores the stage inputs
    of at most ``2 * (devices - 1)`` pieces, where `pipeline` stores the residuals of all pieces. The backward pass
    computes the stage's forward pass again, as with ``jax.checkpoint(stage)``.

    A step takes the time of ``pieces + devices - 1`` forward and backward passes of a piece, as with `pipeline`, and
    each device computes `pieces` of them. In the bubble a device computes nothing. Only the last device computes the
    loss, while the others wait, so the readout had better be small.

    Args:
        stage: ``stage(params[k], x) -> y`` for one stage and one piece; `y` has the structure, shapes and dtypes of
            `x`. Samples must not depend on each other.
        loss: ``loss(loss_params, y, targets) -> scalar`` for one piece, such as a readout and its loss.
        params: the device's shard of the result of `stack_stages`; its leaves are ``[1, ...]``.
        loss_params: the parameters of the loss, the same on all devices; ``()`` if it has none.
        inputs: the device's share of the batch, a pytree whose leaves are ``[time, batch / devices, ...]``, such as
            spikes as arrays or `SparseSpikes`.
        targets: the device's share of what the loss compares with, a pytree whose leaves are ``[batch / devices]``,
            such as labels, or ``[time, batch / devices, ...]``. It gets no gradient.
        pieces: the number of pieces that the batch is cut into. Each takes an equal part of every device's share.
        axis: the mesh axis of the devices.

    Returns:
        The loss, the same on all devices.

    Raises:
        ValueError: if `pieces` does not divide a device's share of the batch, a device has several stages, a tree has
            no leaves, a leaf lacks time or batch axes, a stage changes shapes or dtypes, or the loss is no scalar.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jax.sharding import PartitionSpec as P
        >>> import snnjax
        >>> from snnjax import losses, train
        >>> net = snnjax.network(8, [snnjax.layer(8)])  # one layer, which passes its spikes on
        >>> layers = [net.init(key) for key in jax.random.split(jax.random.key(0), 4)]
        >>> mesh = jax.make_mesh((4,), ("stage",), (jax.sharding.AxisType.Auto,))
        >>> def step(params, readout, spikes, labels):
        ...     stage = lambda params, spikes: net.apply(params, None, spikes)[0].output
        ...     loss = lambda readout, spikes, labels: losses.cross_entropy_sum(spikes @ readout, labels)
        ...     return train.pipeline_loss(stage, loss, params, readout, spikes, labels, pieces=2)
        >>> specs = P("stage"), P(), P(None, "stage"), P("stage")
        >>> total = jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=P())
        >>> data = jnp.ones((5, 8, 8)), jnp.arange(8) % 3
        >>> run = jax.jit(jax.value_and_grad(total, argnums=(0, 1)))
        >>> value, gradients = run(train.stack_stages(layers, devices=4), jnp.zeros((8, 3)), *data)
        >>> round(float(value), 3), gradients[1].shape
        (1.099, (8, 3))
    """
    _check(params, inputs, targets, pieces)
    stage_params = jax.tree.map(lambda leaf: leaf[0], params)
    parts, target_parts = (
        jax.tree.map(lambda leaf: cut(leaf, pieces, min(leaf.ndim - 1, BATCH)), tree)
        for tree in (inputs, targets)
    )
    *given, _ = vary_alike((stage_params, loss_params, parts, target_parts, lax.axis_index(axis)))

    value, gradients = _Pipeline(stage, loss, pieces, axis, *map(lax.stop_gradient, given)).run()
    # The last device has computed it.
    return lax.psum(_with_gradients(tuple(given[:-1]), value, gradients), axis)


@jax.custom_vjp
def _with_gradients(given: Any, value: Array, gradients: PyTree) -> Array:
    """`value`, whose gradient with respect to the leaves of floating point of `given` is known."""
    del given, gradients
    return value


def _with_gradients_forward(given: Any, value: Array, gradients: PyTree) -> tuple[Array, Any]:
    # None for integers, which have no gradient.
    pairs = zip(given, gradients, strict=True)
    return value, tuple(_with_floats(tree, floats, lambda _: None) for tree, floats in pairs)


def _with_gradients_backward(gradients: PyTree, cotangent: Array) -> tuple[Any, Array, None]:
    # That of `value` is for what the stage or the loss close over.
    return jax.tree.map(lambda leaf: cotangent.astype(leaf.dtype) * leaf, gradients), cotangent, None


_with_gradients.defvjp(_with_gradients_forward, _with_gradients_backward)


class _Sums(NamedTuple):
    """Over the pieces so far, in the dtypes of sums; the gradients are those of the leaves of floating point."""

    loss: Array
    params: list[Array]
    loss_params: list[Array]


class _Carry(NamedTuple):
    """What a device holds between turns."""

    held: State  # inputs of the stage, each leaf [slots, time, samples of a piece, ...]
    arrived: State  # the input of the next forward pass, from the device before
    cotangents: list[Array]  # for the next backward pass, from the device after
    sums: _Sums


@dataclass(frozen=True)
class _Pipeline:
    """One run over a batch."""

    stage: Callable[[Any, Any], Any]
    loss: Callable[[Any, Any, Any], Any]
    pieces: int
    axis: str
    params: Params
    loss_params: Params
    inputs: Signal  # each leaf [pieces, time, a device's part of a piece, ...]
    targets: PyTree  # the same, or [pieces, a device's part]

    @property
    def distance(self) -> int:
        """From the first device to the last."""
        return lax.axis_size(self.axis) - 1

    @property
    def me(self) -> Array:
        return lax.axis_index(self.axis)

    def alike(self, tree: PyTree) -> PyTree:
        """`tree`, varying over the mesh axes over which anything does, as both branches of a condition must."""
        return vary_alike((tree, self.params, self.inputs, self.targets, self.me))[0]

    def piece_of(self, tree: PyTree, piece: Array | int) -> PyTree:
        """A piece of the batch, of which each device has a part."""

        def gathered(part: Array) -> Array:
            return lax.all_gather(part, self.axis, axis=min(part.ndim - 1, BATCH), tiled=True)

        return jax.tree.map(gathered, read(tree, jnp.clip(piece, 0, self.pieces - 1)))

    def run(self) -> tuple[Array, tuple[list[Array], list[Array], list[Array]]]:
        """The loss on the last device, 0 elsewhere; and gradients, each device's own."""
        turns = self.pieces + 2 * self.distance
        carry, left = lax.scan(self.turn, self.start(), jnp.arange(turns))
        sums = jax.tree.map(lambda leaf: leaf / self.pieces, carry.sums)
        like = (_floats(self.params), _floats(self.loss_params))
        of_params, of_loss_params = (
            [each.astype(leaf.dtype) for each, leaf in zip(total, leaves, strict=True)]
            for total, leaves in zip(sums[1:], like, strict=True)
        )
        # The first piece leaves the first device when the others have taken it there and back.
        return sums.loss, (of_params, of_loss_params, [leaf[-self.pieces :] / self.pieces for leaf in left])

    def start(self) -> _Carry:
        """Before the first turn."""
        x, loss = jax.eval_shape(self.one)
        _check_loss(loss)
        slots = max(2 * self.distance, 1)
        of_params, of_loss_params = (
            [jnp.zeros(leaf.shape, accumulation_dtype(leaf.dtype)) for leaf in _floats(tree)]
            for tree in (self.params, self.loss_params)
        )
        sums = _Sums(jnp.zeros((), accumulation_dtype(loss.dtype)), of_params, of_loss_params)
        held = jax.tree.map(lambda leaf: jnp.zeros((slots, *leaf.shape), leaf.dtype), x)
        arrived = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), x)
        return self.alike(_Carry(held, arrived, _floats(arrived), sums))

    def one(self) -> tuple[Any, Any]:
        """One piece through one stage, for its shapes."""
        x = self.piece_of(self.inputs, 0)
        y = self.stage(self.params, x)
        check_stage(_OP, x, y)
        return x, self.loss(self.loss_params, y, self.piece_of(self.targets, 0))

    def turn(self, carry: _Carry, tick: Array) -> tuple[_Carry, list[Array]]:
        """Each device's backward pass of one piece, then its forward pass of another.

        A device that has no piece takes the other branch: on IPUs, the others are then seen to work alone.
        """
        held, arrived, cotangents, sums = carry
        distance, is_last = self.distance, self.me == self.distance
        entering = choose(self.me == 0, self.piece_of(self.inputs, tick), arrived)
        target = self.piece_of(self.targets, tick - distance)
        piece = tick - 2 * distance + self.me
        slots = jax.tree.leaves(held)[0].shape[0]
        x = choose(is_last, entering, read(held, piece % slots))
        works = (piece >= 0) & (piece < self.pieces)
        sums, cotangents = lax.cond(works, self.backward, lambda *same: same[:2], sums, cotangents, x, target)

        piece = tick - self.me
        held = jax.tree.map(
            lambda leaf, new: lax.dynamic_update_index_in_dim(leaf, new, piece % slots, 0), held, entering
        )
        works = (piece >= 0) & (piece < self.pieces) & ~is_last
        y = lax.cond(works, lambda x: self.alike(self.stage(self.params, x)), lambda x: x, entering)
        left = [self.to_shares(each) for each in cotangents]
        links = [(device, device + 1) for device in range(distance)]
        arrived = jax.tree.map(lambda leaf: lax.ppermute(leaf, self.axis, links), y)
        links = [(after, before) for before, after in links]
        cotangents = [lax.ppermute(each, self.axis, links) for each in cotangents]
        return _Carry(held, arrived, cotangents, sums), left

    def backward(
        self, sums: _Sums, cotangents: list[Array], x: Signal, target: Any
    ) -> tuple[_Sums, list[Array]]:
        """The backward pass of a piece, after its forward pass: on the last device that of the loss as well."""

        def floats_of_stage(params: Params, floats: list[Array]) -> tuple[list[Array], Any]:
            # Integers, such as ids of spikes, have no tangents.
            y = self.stage(params, _with_floats(x, floats, lambda leaf: leaf))
            return _floats(y), y

        _, pull, y = jax.vjp(floats_of_stage, self.params, _floats(x), has_aux=True)

        def of_loss() -> tuple[Array, list[Array], list[Array]]:
            value, pull = jax.vjp(
                lambda loss_params, y: self.loss(loss_params, y, target), self.loss_params, y
            )
            of_params, of_y = map(_floats, pull(jnp.ones_like(value)))
            return sums.loss + upcast(value), _added(sums.loss_params, of_params), of_y

        value, of_loss_params, cotangents = lax.cond(
            self.me == self.distance,
            lambda: self.alike(of_loss()),
            lambda: (sums.loss, sums.loss_params, cotangents),
        )
        of_params, of_x = pull(cotangents)
        return self.alike((_Sums(value, _added(sums.params, _floats(of_params)), of_loss_params), of_x))

    def to_shares(self, leaf: Array) -> Array:
        """Of what leaves the first device, each device's part."""
        mine = jnp.where(self.me == 0, leaf, jnp.zeros_like(leaf))
        return lax.psum_scatter(mine, self.axis, scatter_dimension=BATCH, tiled=True)


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)


def _floats(tree: PyTree) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(tree) if _is_float(leaf)]


def _with_floats(tree: PyTree, floats: list[Array], other: Callable[[Any], Any]) -> Any:
    """`tree` with `floats` for its leaves of floating point, and `other(leaf)` for the rest."""
    rest = iter(floats)
    return jax.tree.map(lambda leaf: next(rest) if _is_float(leaf) else other(leaf), tree)


def _added(sums: list[Array], new: list[Array]) -> list[Array]:
    return [before + upcast(each) for before, each in zip(sums, new, strict=True)]


def _check(params: Params, inputs: Signal, targets: PyTree, pieces: int) -> None:
    pieces = check_integer(_OP, "pieces", pieces, 1)
    leading = {leaf.shape[0] if leaf.ndim else 0 for leaf in jax.tree.leaves(params)}
    if leading != {1}:
        expected, actual = (
            "have leaves with a leading axis of one stage",
            " and ".join(map(str, sorted(leading))),
        )
        hint = "Make one stage of a device's layers, stack the stages and shard them over the mesh axis"
        fail(f"{_OP}: `params` must {expected}, got {actual}. {hint}.")
    share = batch_of(_OP, inputs)
    shapes = [list(leaf.shape) for leaf in jax.tree.leaves(targets)]
    if not all(shape and shape[min(len(shape) - 1, BATCH)] == share for shape in shapes):
        expected = f"have leaves [{share}] or [time, {share}, ...] like the inputs"
        fail(f"{_OP}: `targets` must {expected}, got {shapes}. Pass each device its share.")
    if share % pieces != 0:
        expected, hint = f"divide the {plural(share, 'sample')} of a device", "Choose a divisor of them"
        fail(f"{_OP}: `pieces` must {expected}, got {pieces}. {hint}.")


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, jax.ShapeDtypeStruct) or loss.shape != () or not _is_float(loss):
        actual = ", ".join(f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(loss))
        hint = "Take the mean over the samples of a piece"
        fail(f"{_OP}: `loss` must return a floating-point scalar, got {actual}. {hint}.")
