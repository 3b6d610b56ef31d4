"""`Block`: a pure function of whole sequences, of which networks are made."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._check import fail
from snnjax._sparse_spikes import SparseSpikes, values_of
from snnjax._types import Params, Signal, State, Stats, accumulation_dtype, upcast

Shape = tuple[
    int, ...
]  # of the neurons: (neurons,), (length, channels) or (height, width, channels), row-major


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Context:
    """How a call of a network runs its blocks."""

    lengths: Array | None = None  # int32 [batch], the number of steps of each sequence
    key: Array | None = None  # of this block alone
    # Of neurons that list their spikes, in place of their own: of this block, or of all by name for a network.
    second_threshold: Any = None
    # Added to the distances from the threshold at which neurons spike, [time, batch, neurons]: of this block, or
    # of all by name. Then these distances are recorded in place of membranes.
    offsets: Any = None
    train: bool = dataclasses.field(default=False, metadata={"static": True})
    record: tuple[str, ...] = dataclasses.field(default=(), metadata={"static": True})  # see `Network.apply`
    implementation: str | None = dataclasses.field(default=None, metadata={"static": True})  # of the ops

    def valid(self, num_steps: int) -> Array | None:
        """True where a sequence has not ended yet, bool ``[time, batch]``; None without lengths."""
        if self.lengths is None:
            return None
        return jnp.arange(num_steps, dtype=jnp.int32)[:, None] < self.lengths[None, :]


class BlockResult(NamedTuple):
    """What a block returns; None for what it does not have."""

    signal: Signal
    state: State = None
    stats: Stats = None
    # Of neurons: the true spikes of each sequence, [batch, neurons]; None if the spikes that it returns are all.
    counts: Array | None = None
    dropped: Array | None = None  # of neurons: the spikes that did not fit into their lists, int32 [batch]
    membranes: Array | None = None  # of neurons, ``[time, batch, *shape]``, if the context asks for them


_P = TypeVar("_P", bound="Item")


@dataclass(frozen=True, kw_only=True)
class Item:
    """A block or a container, and where it stands in a network.

    Example:
        >>> import snnjax
        >>> from snnjax import blocks
        >>> low, high = snnjax.layer(4).named("low"), snnjax.layer(4).named("high")
        >>> both = blocks.join("add").receiving("low", "high")
        >>> snnjax.network(3, [low, high, both]).nodes[-1].sources
        ('low/neuron', 'high/neuron')
    """

    kind: ClassVar[str] = "item"  # names one without a name, with its number among those of its kind
    name: str | None = None
    # The names of the inputs, blocks or containers that it receives; None for what stands before it.
    source: tuple[str, ...] | None = None

    def named(self: _P, name: str | None) -> _P:
        """The same under a name, by which params, results and other items know it."""
        return dataclasses.replace(self, name=name)

    def receiving(self: _P, *sources: str) -> _P:
        """The same with the signals of these inputs, blocks or containers in place of the one before it."""
        return dataclasses.replace(self, source=sources)


@dataclass(frozen=True, kw_only=True)
class _Traits(Item):
    """What few blocks say of themselves, with what holds for all others."""

    num_signals: ClassVar[int | None] = 1  # that it receives; None for any number
    is_spiking: ClassVar[bool] = False  # whether its signal are the spikes of neurons
    # Whether nothing is multiplied by weights but what a `Linear` or its `op` says: metrics count these operations.
    is_counted: ClassVar[bool] = False

    def fitted(self, *shapes: Shape) -> Any:
        """The block for signals of these shapes, where it has to know them."""
        del shapes
        return self

    def ahead(self) -> tuple[int, Any] | None:
        """How many steps early its signal is known, and the block that returns it so many steps earlier.

        The two have the same params and stats. None if it has a signal without any spikes, such as a bias, or may have.
        """
        return None

    def is_skipped(self, train: bool) -> bool:
        """Whether it passes its signal on as it is."""
        del train
        return False

    def drive(self) -> float | None:
        """The deviation of the currents that its neurons need at the start; None if it has no neurons."""
        return None

    @property
    def lists_spikes(self) -> bool:
        """Whether its signal are lists of spikes, which have a second threshold."""
        return False

    def check_second_threshold(
        self, op: str, params: Params, stats: Stats, shape: Shape, second: Any
    ) -> None:
        """Warn about a second threshold in place of its own that does not serve."""
        del op, params, stats, shape, second

    @property
    def obstacle(self) -> str | None:
        """Why `op` is None, if more can be said than that the fused op does not know such blocks."""
        return None

    def op(self, shape: Shape) -> "Op | None":
        """How `snnjax.lif_network` computes it; None if it does not."""
        del shape
        return None

    def operands(self, params: Params, stats: Stats, shape: Shape) -> Any:
        """The arrays of `op`."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Block(_Traits):
    """A part of a network; one's own is a frozen dataclass derived from it, with at least `apply`.

    Shapes are those of the neurons of each incoming signal. A block holds no arrays: what it learns are its params,
    what it carries from step to step is its state, and what it carries from one call to the next its stats. A class
    says by attributes that its signal are spikes (`is_spiking`), that it receives several signals (`num_signals`, None
    for any number), and that it multiplies nothing by weights of its own, for metrics (`is_counted`).

    Example:
        >>> import dataclasses
        >>> from snnjax import blocks
        >>> @dataclasses.dataclass(frozen=True)
        ... class Double(blocks.Block):
        ...     kind = "double"
        ...
        ...     def apply(self, params, state, stats, x, *, shapes, context):
        ...         return blocks.BlockResult(2 * x)
        >>> import snnjax
        >>> [node.name for node in snnjax.network(4, [Double(), snnjax.layer(3)]).nodes]
        ['double_0', 'layer_0/connection', 'layer_0/neuron']
    """

    kind: ClassVar[str] = "block"

    def out_shape(self, *shapes: Shape) -> Shape:
        """The shape of its signal."""
        return shapes[0]

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> Any:
        """Draw its params, None if it learns nothing."""
        del key, shapes, dtype
        return None

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes: Shape) -> Any:
        """The state before the first step, arrays with a batch axis; None if it has none."""
        del params, stats, batch, shapes
        return None

    def initial_stats(self, key: Array, *shapes: Shape) -> Any:
        """The stats before the first call, None if it has none."""
        del key, shapes
        return None

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """Run all time steps."""
        raise NotImplementedError

    def needs_all_steps(self, train: bool) -> bool:
        """Whether a run cannot be cut into pieces of fewer steps.

        A block that does not say so itself can be cut if it has a state or an `op`, and no stats: these may be those of
        all steps.
        """
        del train
        own = type(self)
        is_stepwise = own.initial_state is not Block.initial_state or own.op is not Block.op
        return not is_stepwise or own.initial_stats is not Block.initial_stats

    def scaled(self, params: Params, factor: Array) -> Any:
        """The params whose signal is `factor` times as large, None if there are none."""
        del params, factor
        return None


@dataclass(frozen=True, kw_only=True)
class Stepwise(Block):
    """A block that runs step by step: its state says all about the steps before."""

    def needs_all_steps(self, train: bool) -> bool:
        """It does not."""
        del train
        return False


class Op:
    """How `snnjax.lif_network` computes a block: a part of a layer, in the order in which the parts may follow."""


def times(params: Params, factor: Array) -> Any:
    """All arrays times a factor, in their own dtypes."""
    return jax.tree.map(
        lambda own: (upcast(own) * factor.astype(accumulation_dtype(own.dtype))).astype(own.dtype), params
    )


def given(kind: str, what: str, held: Any) -> Any:
    """The `held` params or stats of a block of this kind; a block that is run alone may lack them."""
    if held is None:
        maker = {"params": "init", "stats": "initial_stats"}[what]
        fail(
            f"{kind}: `{what}` must hold those of the block, got None. Make them with block.{maker}(key, shape)."
        )
    return held


def flat(signal: Signal) -> Signal:
    """A signal over flat neurons, ``[time, batch, neurons]``."""
    if isinstance(signal, SparseSpikes):
        return signal
    return signal.reshape(*signal.shape[:2], math.prod(signal.shape[2:]))


def shaped(signal: Signal, shape: Shape) -> Signal:
    """A signal over neurons of `shape`; lists stay as they are."""
    return signal if isinstance(signal, SparseSpikes) else signal.reshape(*signal.shape[:2], *shape)


def dense_signal(signal: Signal, shape: Shape) -> Array:
    """A signal as an array ``[time, batch, *shape]``, for blocks of one's own: lists of spikes are made dense.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes, blocks
        >>> lists = SparseSpikes.from_ids(jnp.array([[[1, 3]]]), num_neurons=4)
        >>> blocks.dense_signal(lists, (2, 2)).tolist()
        [[[[0.0, 1.0], [0.0, 1.0]]]]
    """
    return shaped(signal.to_dense() if isinstance(signal, SparseSpikes) else signal, shape)


def rounded(signal: Signal, dtype: DTypeLike) -> Signal:
    """A signal in another dtype."""
    if isinstance(signal, SparseSpikes):
        return signal.with_values(dtype)
    return signal.astype(dtype)


def within(signal: Signal, valid: Array | None) -> Signal:
    """A signal, 0 after the end of each sequence: padding, even NaN, does not affect outputs or gradients."""
    if valid is None:
        return signal
    if isinstance(signal, SparseSpikes):
        values = values_of(signal)
        return dataclasses.replace(
            signal, values=jnp.where(valid[:, :, None], values, jnp.zeros_like(values))
        )
    return jnp.where(aligned_mask(valid, signal.ndim), signal, jnp.zeros_like(signal))


def overflow(spikes: Signal) -> Array:
    """The number of spikes of each sequence that were not listed, int32 ``[batch]``."""
    if isinstance(spikes, SparseSpikes):
        return jnp.sum(spikes.num_dropped, axis=0, dtype=jnp.int32)
    return jnp.zeros(spikes.shape[1], jnp.int32)


def aligned_mask(valid: Array, ndim: int) -> Array:
    """A mask ``[time, batch]`` or ``[batch]`` with as many axes as an array."""
    return valid.reshape(*valid.shape, *(1,) * (ndim - valid.ndim))


def choose(inside: Array | None, now: Any, otherwise: Any) -> Any:
    """Arrays ``[batch, ...]`` from `now` within a sequence, else from `otherwise`."""
    if inside is None:
        return now
    return jax.tree.map(lambda a, b: jnp.where(aligned_mask(inside, a.ndim), a, b), now, otherwise)


def one_per_neuron(array: Array, shape: Shape) -> Array:
    """One value for each neuron from one for each channel, the last axis of `shape`."""
    return jnp.tile(array, math.prod(shape[:-1])) if len(shape) > 1 else array
