"""Pipeline parallelism: layers are spread over several devices, and pieces of each batch pass from one to the next.

The schedule is that of GPipe (Huang et al. 2019, arXiv:1811.06965); with several stages per device it is the
interleaved schedule of Narayanan et al. (2021, arXiv:2104.04473). Every device runs the same program in lockstep, so
JAX can differentiate it: the gradient is the pipeline in reverse.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PyTree

from snnjax._check import check_integer, fail, plural
from snnjax._types import Params, Signal, State
from snnjax.train.pieces import BATCH, batch_of, check_stage, choose, cut, joined, lengthened, read


def pipeline(
    stage: Callable[[Any, Any], Any], params: Params, inputs: Signal, *, pieces: int, axis: str = "stage"
) -> Any:
    r"""Apply stages that are spread over the devices of a mesh axis to a batch; call it inside `jax.shard_map`.

    With the parameters ``params[k]`` of ``stages = devices * rounds`` stages, the result is the same as on one device::

        for k in range(stages):
            inputs = stage(params[k], inputs)

    Stage ``k`` runs on device ``k % devices``. The batch is cut into pieces; while a stage computes one piece, the next
    stage computes the previous piece. Each device runs ``pieces * rounds`` stage computations, and filling and draining
    the pipeline takes the time of ``devices - 1`` more, forward and backward alike. Because of this bubble, utilisation
    is at most ``pieces * rounds / (pieces * rounds + devices - 1)``: 73 % for 4 devices and 8 pieces, and 84 % with two
    rounds.

    `jax.grad` differentiates with respect to `params` and `inputs`. Every device stores the residuals of all pieces for
    its backward pass; ``jax.checkpoint(stage)`` stores only their inputs, and computes each stage twice.

    Args:
        stage: ``stage(params[k], x) -> y`` for one stage and one piece; `y` has the structure, shapes and dtypes of
            `x`. Samples must not depend on each other. In the bubble it is applied to zeros and to the outputs of
            stages for zeros, where its value and gradient must be finite.
        params: the device's shard of the result of `stack_stages`; its leaves are ``[rounds, ...]``.
        inputs: the device's share of the batch, a pytree whose leaves are ``[time, batch / devices, ...]``, such as
            spikes as arrays or `SparseSpikes`.
        pieces: the number of pieces that the whole batch is cut into; with several rounds, at least the number of
            devices.
        axis: the mesh axis of the devices.

    Returns:
        The device's share of the last stage's results, with the shapes of `inputs`. Layers before and after the
        pipeline, and the loss, therefore work on shares of the batch, as in data-parallel training.

    Raises:
        ValueError: if `pieces` does not divide the batch or is too small, a tree has no leaves, a leaf lacks time and
            batch axes, or a stage changes shapes or dtypes.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jax.sharding import PartitionSpec as P
        >>> import snnjax
        >>> from snnjax import train
        >>> net = snnjax.network(8, [snnjax.layer(8)])  # one layer, which passes its spikes on
        >>> layers = [net.init(key) for key in jax.random.split(jax.random.key(0), 4)]
        >>> mesh = jax.make_mesh((4,), ("stage",), (jax.sharding.AxisType.Auto,))
        >>> def through(params, spikes):
        ...     stage = lambda params, spikes: net.apply(params, None, spikes)[0].output
        ...     return train.pipeline(stage, params, spikes, pieces=2)
        >>> shares = P(None, "stage")
        >>> run = jax.shard_map(through, mesh=mesh, in_specs=(P("stage"), shares), out_specs=shares)
        >>> jax.jit(run)(train.stack_stages(layers, devices=4), jnp.ones((5, 4, 8))).shape
        (5, 4, 8)
    """
    devices, me = lax.axis_size(axis), lax.axis_index(axis)
    rounds = _check(params, inputs, pieces, devices)
    # To the next device; from the last device to the first when another round begins.
    links = [(device, (device + 1) % devices) for device in range(devices if rounds > 1 else devices - 1)]

    def turn(carry: tuple[Any, Any], now: tuple[Array, Any]) -> tuple[tuple[Any, Any], Any]:
        arrived, waiting = carry
        tick, entering = now
        if rounds > 1:
            entering, waiting = _wait(waiting, arrived, tick, entering, pieces)
        x = choose(me == 0, entering, arrived)
        y = stage(read(params, jnp.clip((tick - me) // pieces, 0, rounds - 1) if rounds > 1 else 0), x)
        check_stage("pipeline", x, y)
        return (jax.tree.map(lambda leaf: lax.ppermute(leaf, axis, links), y), waiting), y

    turns = pieces * rounds + devices - 1
    entering = jax.tree.map(
        lambda leaf: cut(lax.all_gather(leaf, axis, axis=BATCH, tiled=True), pieces), inputs
    )
    entering = jax.tree.map(lambda leaf: lengthened(leaf, turns), entering)
    nothing = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), entering)
    # Pieces that come back to device 0 and wait for their next round.
    waiting = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[: pieces - devices + 1]), entering)
    _, left = lax.scan(turn, (nothing, waiting if rounds > 1 else None), (jnp.arange(turns), entering))

    def share(leaf: Array) -> Array:
        last = leaf[turns - pieces :]
        batch = joined(jnp.where(me == devices - 1, last, jnp.zeros_like(last)))
        return lax.psum_scatter(batch, axis, scatter_dimension=BATCH, tiled=True)

    return jax.tree.map(share, left)


def stack_stages(stages: Sequence[Any], devices: int) -> PyTree:
    """Stack the parameters of all stages for `pipeline`: device by device, each with its rounds in order.

    The leading axis of each leaf holds stages ``0, devices, 2 * devices, ...``, which belong to device 0, then those of
    device 1, and so on. Shard it over the mesh axis: ``PartitionSpec("stage")``.

    Args:
        stages: pytrees of the same structure, shapes and dtypes, in the order in which they are applied.
        devices: the size of the mesh axis.

    Raises:
        ValueError: if the number of stages is not a multiple of the number of devices.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import train
        >>> train.stack_stages([jnp.array(float(k)) for k in range(4)], devices=2).tolist()
        [0.0, 2.0, 1.0, 3.0]
    """
    devices = check_integer("stack_stages", "devices", devices, 1)
    if not stages or len(stages) % devices:
        fail(
            f"stack_stages: `stages` must hold a multiple of {devices}, the number of devices, "
            f"got {len(stages)}. Merge stages, or split them."
        )
    order = [stage for device in range(devices) for stage in stages[device::devices]]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *order)


def unstack_stages(params: Params, devices: int) -> list[Any]:
    """Undo `stack_stages`: the parameters of each stage, in the order in which they are applied.

    Raises:
        ValueError: if the leading axis is not a multiple of the number of devices.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import train
        >>> [float(each) for each in train.unstack_stages(jnp.array([0.0, 2.0, 1.0, 3.0]), devices=2)]
        [0.0, 1.0, 2.0, 3.0]
    """
    devices = check_integer("unstack_stages", "devices", devices, 1)
    counts = {leaf.shape[0] if leaf.ndim else 0 for leaf in jax.tree.leaves(params)}
    count = max(counts, default=0)
    if count == 0 or counts != {count} or count % devices:
        expected = f"have leaves whose leading axis is a multiple of {devices}, the number of devices"
        actual = " and ".join(map(str, sorted(counts))) or "none"
        fail(f"unstack_stages: `params` must {expected}, got {actual}. Make them with stack_stages.")
    rounds = count // devices
    places = [device * rounds + each for each in range(rounds) for device in range(devices)]
    return [jax.tree.map(lambda leaf, place=place: leaf[place], params) for place in places]


def _wait(waiting: State, arrived: State, tick: Array, entering: PyTree, pieces: int) -> tuple[Any, Any]:
    """What enters device 0 (pieces of the batch, then what arrived ``pieces - devices`` turns ago) and what waits."""
    places = jax.tree.leaves(waiting)[0].shape[0]

    def keep(leaf: Array, new: Array) -> Array:
        return lax.dynamic_update_index_in_dim(leaf, new, tick % places, 0)

    waiting = jax.tree.map(keep, waiting, arrived)
    return choose(tick < pieces, entering, read(waiting, (tick + 1) % places)), waiting


def _check(params: Params, inputs: Signal, pieces: int, devices: int) -> int:
    """Check the arguments, and return the number of rounds."""
    op = "pipeline"
    pieces = check_integer(op, "pieces", pieces, 1)
    rounds = {leaf.shape[0] if leaf.ndim else 0 for leaf in jax.tree.leaves(params)}
    if len(rounds) != 1 or min(rounds) == 0:
        actual = " and ".join(map(str, sorted(rounds))) or "none"
        hint = "Make them with stack_stages, and shard them over the mesh axis"
        fail(f"{op}: `params` must have leaves with one leading axis of rounds, got {actual}. {hint}.")
    (count,) = rounds
    if count > 1 and pieces < devices:
        expected = f"be at least {devices}, the number of devices, if a device has several stages"
        fail(f"{op}: `pieces` must {expected}, got {pieces}. Cut the batch into more pieces.")
    batch = devices * batch_of(op, inputs)
    if batch % pieces != 0:
        samples = plural(batch, "sample")
        fail(f"{op}: `pieces` must divide the {samples} of a batch, got {pieces}. Choose a divisor of them.")
    return count
