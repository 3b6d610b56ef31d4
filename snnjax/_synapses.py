"""`Synapses`: which neurons are connected, where few pairs are."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Integer

from snnjax._arguments import explained
from snnjax._check import (
    check_array,
    check_integer,
    check_integers,
    check_key,
    check_real_array,
    check_shape,
    check_size,
    concrete,
    fail,
    short_repr,
)
from snnjax._sparse_spikes import in_range
from snnjax._types import Unchecked, as_int32, id_dtype, uint16_or_int32

# Up to this share of all targets, drawing again the few that were drawn twice takes a few rounds.
_MOST_REDRAWN = 0.5
_MAX_SYNAPSES = 2**31 - 1  # their numbers are int32
_WORDS_AT_ONCE = 1 << 14
_PAIRS_AT_ONCE = 1 << 22


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Synapses:
    """The synapses that exist, by the neurons that send: compressed rows.

    Those of neuron i are numbers ``ends[i - 1]`` to ``ends[i] - 1`` (from 0 for the first neuron), and synapse s leads
    to neuron ``targets[s]``. Two neurons may have several synapses, whose weights add up; targets outside
    ``[0, num_targets)`` receive nothing. The weights are arrays of their own with one number for each synapse, so that
    they are learned and the synapses are not.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import Synapses
        >>> synapses = Synapses.from_mask(jnp.array([[True, False, True], [False, False, True]]))
        >>> synapses.ends, synapses.targets
        (Array([2, 3], dtype=int32), Array([0, 2, 2], dtype=uint16))
        >>> synapses.to_dense(jnp.array([0.5, 1.5, 2.5]))
        Array([[0.5, 0. , 1.5],
               [0. , 0. , 2.5]], dtype=float32)
    """

    ends: Int[Array, " neurons"]  # int32, ascending: behind the last synapse of each neuron
    targets: Integer[Array, " synapses"]  # uint16 or int32
    num_targets: int = field(metadata={"static": True})

    def __post_init__(self) -> None:
        size = check_size("Synapses", "num_targets", self.num_targets)
        object.__setattr__(self, "num_targets", size)

    @property
    def num_neurons(self) -> int:
        """The number of neurons that send."""
        return self.ends.shape[0]

    @property
    def num_synapses(self) -> int:
        """The number of synapses."""
        return self.targets.shape[0]

    def sources(self) -> Int[Array, " synapses"]:
        """The neuron that sends through each synapse, int32."""
        return _sources(self)

    def to_dense(self, weights: Float[Array, " synapses"]) -> Float[Array, "neurons targets"]:
        """The matrix of the weights, 0 where there is no synapse."""
        check_shape(
            "Synapses.to_dense", "weights", weights, (self.num_synapses,), "synapses", "Pass one a synapse"
        )
        return _to_dense(self, weights)

    @classmethod
    @explained
    def from_mask(cls, mask: Bool[Any, "neurons targets"]) -> "Synapses":
        """The synapses where `mask` is true, an array of known values."""
        check_array("Synapses.from_mask", "mask", mask)
        entries = concrete(mask)
        if entries is None or entries.ndim != 2 or entries.dtype != bool:
            fail(
                f"Synapses.from_mask: `mask` must be bool [neurons, targets] of known values, got {short_repr(mask)}. "
                "Compare the weights with 0 outside of jit."
            )
        return _of_rows(np.count_nonzero(entries, axis=1), np.nonzero(entries)[1], entries.shape[1])

    @classmethod
    @explained
    def from_scipy(cls, matrix: Unchecked) -> tuple["Synapses", Float[Array, " synapses"]]:
        """The synapses and weights of a SciPy array in compressed rows (CSR), ``[neurons, targets]``."""
        if getattr(matrix, "format", None) != "csr":
            fail(
                f"Synapses.from_scipy: `matrix` must be a CSR array of SciPy, got {short_repr(matrix)}. "
                "Convert it with .tocsr()."
            )
        check_real_array("Synapses.from_scipy", "matrix.data", matrix.data)
        starts = np.asarray(matrix.indptr)
        return _of_rows(np.diff(starts), matrix.indices, matrix.shape[1]), jnp.asarray(
            matrix.data, jnp.float32
        )

    @classmethod
    @explained
    def fixed_fan_out(cls, key: Array, num_neurons: int, num_targets: int, fan_out: int) -> "Synapses":
        """Synapses from each neuron to `fan_out` different targets, drawn uniformly; a pure function, also under `jit`.

        Raises:
            ValueError: if there are fewer targets than `fan_out`, or a number is none.

        Example:
            >>> import jax
            >>> from snnjax import Synapses
            >>> synapses = Synapses.fixed_fan_out(jax.random.key(0), 100, 1000, fan_out=10)
            >>> synapses.num_synapses, synapses.ends[:3].tolist()
            (1000, [10, 20, 30])
        """
        op = "Synapses.fixed_fan_out"
        sizes = _check_draw(op, key, num_neurons, num_targets, fan_out, among_targets=True)
        num_neurons, num_targets, fan_out = sizes
        return _with_fan_out(key, num_neurons, num_targets, fan_out)

    @classmethod
    @explained
    def fixed_fan_in(cls, key: Array, num_neurons: int, num_targets: int, fan_in: int) -> "Synapses":
        """Synapses to each target from `fan_in` different neurons, drawn uniformly; a pure function, also under `jit`.

        Raises:
            ValueError: if there are fewer neurons than `fan_in`, or a number is none.

        Example:
            >>> import jax
            >>> from snnjax import Synapses
            >>> synapses = Synapses.fixed_fan_in(jax.random.key(0), 100, 50, fan_in=10)
            >>> synapses.num_synapses, int(synapses.ends[-1])
            (500, 500)
        """
        op = "Synapses.fixed_fan_in"
        sizes = _check_draw(op, key, num_neurons, num_targets, fan_in, among_targets=False)
        num_neurons, num_targets, fan_in = sizes
        return _with_fan_in(key, num_neurons, num_targets, fan_in)

    @classmethod
    @explained
    def fixed_number(cls, key: Array, num_neurons: int, num_targets: int, count: int) -> "Synapses":
        """Synapses between `count` different pairs, drawn uniformly; a pure function, also under `jit`.

        Raises:
            ValueError: if there are fewer pairs than `count`, or more than 2^31 - 1, or a number is none.

        Example:
            >>> import jax
            >>> from snnjax import Synapses
            >>> synapses = Synapses.fixed_number(jax.random.key(0), 100, 50, 250)
            >>> synapses.num_synapses, int(synapses.ends[-1])
            (250, 250)
        """
        op = "Synapses.fixed_number"
        num_neurons, num_targets = _check_sizes(op, key, num_neurons, num_targets)
        count, pairs = check_integer(op, "count", count, 0), num_neurons * num_targets
        if pairs > _MAX_SYNAPSES:
            hint = "Choose so many for each neuron with fixed_fan_out"
            fail(f"{op}: `num_targets` must make at most {_MAX_SYNAPSES} pairs, got {pairs}. {hint}.")
        if count > pairs:
            fail(
                f"{op}: `count` must be at most {pairs}, the pairs to choose from, got {count}. Choose fewer."
            )
        return _with_count(key, num_neurons, num_targets, count)

    @classmethod
    @explained
    def with_probability(
        cls, key: Array, num_neurons: int, num_targets: int, probability: float
    ) -> "Synapses":
        """Synapses between each neuron and each target with this probability, independently.

        Their number is random, so this is a function of known values, outside of `jit`.

        Raises:
            ValueError: if the probability is not between 0 and 1, a number is none, or the key is traced.

        Example:
            >>> import jax
            >>> from snnjax import Synapses
            >>> synapses = Synapses.with_probability(jax.random.key(0), 3200, 4000, 0.02)
            >>> abs(synapses.num_synapses - 256_000) < 2000  # four standard deviations
            True
        """
        op = "Synapses.with_probability"
        num_neurons, num_targets = _check_sizes(op, key, num_neurons, num_targets)
        check_known_key(op, key)
        probability = check_probability(op, probability)
        _check_count(int(num_neurons * num_targets * probability))
        pairs = _pairs_drawn(key, num_neurons * num_targets, probability)
        return _of_pairs(pairs, num_neurons, num_targets)

    @classmethod
    @explained
    def by_distance(
        cls,
        key: Array,
        positions: Float[Any, "neurons dimensions"],
        target_positions: Float[Any, "targets dimensions"],
        probability: Callable[[Array], Array],
        *,
        period: float | None = None,
    ) -> "Synapses":
        """Synapses with a probability that depends on the distance between neuron and target, independently.

        Args:
            key: a PRNG key.
            positions: of the neurons that send, in any unit.
            target_positions: of those that receive.
            probability: from an array of distances to one of probabilities; those out of [0, 1] are clipped.
            period: None, or the length after which space repeats along each dimension: a torus without edges.

        Raises:
            ValueError: if the positions do not fit each other, or are traced as the key may not be either.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> from snnjax import Synapses
            >>> places = jnp.linspace(0.0, 1.0, 100)[:, None]  # mm
            >>> near = lambda distance: 0.5 * jnp.exp(-((distance / 0.1) ** 2))
            >>> synapses = Synapses.by_distance(jax.random.key(0), places, places, near)
            >>> gap = jnp.abs(places[synapses.sources(), 0] - places[synapses.targets, 0])
            >>> bool(jnp.mean(gap) < 0.1)
            True
        """
        op = "Synapses.by_distance"
        check_key(op, key)
        check_known_key(op, key)
        if period is not None and not 0 < period < np.inf:
            fail(f"{op}: `period` must be a length above 0, got {period}. Leave it out for space with edges.")
        known = [_places(op, "positions", positions), _places(op, "target_positions", target_positions)]
        if known[0].shape[1] != known[1].shape[1]:
            fail(
                f"{op}: `target_positions` must have the axes of `positions`, {known[0].shape[1]}, "
                f"got {known[1].shape[1]}. Pass positions in the same space."
            )
        pairs = _near_pairs(key, known[0], known[1], probability, period)
        return _of_pairs(pairs, len(known[0]), len(known[1]))

    @classmethod
    @explained
    def from_blocks(cls, blocks: Sequence[Sequence["Synapses | None"]]) -> "Synapses":
        """Join synapses between populations: ``blocks[i][j]`` lead from population i to population j.

        None stands for no synapses; a row and a column must not consist of None alone. Columns may also be receptors of
        one population (`snnjax.simulate`). Synapses are sorted by the neuron that sends. This is a function of known
        values, outside of `jit`.

        Raises:
            ValueError: if the blocks of a row do not send from equally many neurons, or those of a column not lead to
                equally many, or a size is unknown, or the values are.

        Example:
            >>> import jax
            >>> from snnjax import Synapses
            >>> first, second = jax.random.split(jax.random.key(0))
            >>> excitation = Synapses.fixed_fan_out(first, 80, 100, fan_out=5)
            >>> inhibition = Synapses.fixed_fan_out(second, 20, 100, fan_out=5)
            >>> joined = Synapses.from_blocks([[excitation, None], [None, inhibition]])
            >>> joined.num_neurons, joined.num_targets, joined.num_synapses
            (100, 200, 500)
        """
        heights, widths = _sizes_of_blocks(blocks)
        firsts, lefts = (np.cumsum([0, *sizes]) for sizes in (heights, widths))
        pairs = [
            _pairs_of(block, int(first), int(left), int(lefts[-1]))
            for first, row in zip(firsts, blocks, strict=False)
            for left, block in zip(lefts, row, strict=False)
            if block is not None
        ]
        sources, targets = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
        if len(widths) > 1:  # else they are sorted already
            order = np.argsort(sources, kind="stable")
            sources, targets = sources[order], targets[order]
        return _of_rows(np.bincount(sources, minlength=int(firsts[-1])), targets, int(lefts[-1]))


# Outside of `jax.jit`, these compile one program for each size, not one for each operation.
@functools.partial(jax.jit, inline=True)
def _sources(synapses: Synapses) -> Int[Array, " synapses"]:
    # The number of neurons whose synapses end before it.
    ending = jnp.zeros(synapses.num_synapses, jnp.int32)
    ending = ending.at[jnp.maximum(as_int32(synapses.ends), 0)].add(1, mode="drop")
    return jnp.cumsum(ending, dtype=jnp.int32)


@functools.partial(jax.jit, inline=True)
def _to_dense(synapses: Synapses, weights: Array) -> Float[Array, "neurons targets"]:
    dense = jnp.zeros((synapses.num_neurons, synapses.num_targets), weights.dtype)
    return dense.at[_sources(synapses), targets_or_beyond(synapses)].add(weights, mode="drop")


@functools.partial(jax.jit, static_argnums=(1, 2, 3), inline=True)
def _with_fan_out(key: Array, num_neurons: int, num_targets: int, fan_out: int) -> Synapses:
    targets = _distinct(key, num_neurons, fan_out, num_targets)
    ends = fan_out * jnp.arange(1, num_neurons + 1, dtype=jnp.int32)
    return Synapses(ends, targets.reshape(-1).astype(id_dtype(num_targets)), num_targets)


@functools.partial(jax.jit, static_argnums=(1, 2, 3), inline=True)
def _with_fan_in(key: Array, num_neurons: int, num_targets: int, fan_in: int) -> Synapses:
    sources = _distinct(key, num_targets, fan_in, num_neurons).reshape(-1)
    targets = jnp.repeat(jnp.arange(num_targets, dtype=jnp.int32), fan_in)[jnp.argsort(sources, stable=True)]
    return Synapses(_ends(sources, num_neurons), targets.astype(id_dtype(num_targets)), num_targets)


@functools.partial(jax.jit, static_argnums=(1, 2, 3), inline=True)
def _with_count(key: Array, num_neurons: int, num_targets: int, count: int) -> Synapses:
    drawn = _distinct(key, 1, count, num_neurons * num_targets)[0]
    sources, targets = jnp.divmod(drawn, jnp.int32(max(num_targets, 1)))
    return Synapses(_ends(sources, num_neurons), targets.astype(id_dtype(num_targets)), num_targets)


def _ends(sources: Array, num_neurons: int) -> Int[Array, " neurons"]:
    """Behind the last synapse of each neuron."""
    return jnp.cumsum(jnp.bincount(sources, length=num_neurons), dtype=jnp.int32)


def _pairs_of(block: Synapses, first: int, left: int, num_targets: int) -> tuple[np.ndarray, np.ndarray]:
    """The neurons and targets of a block among those of all; a target out of range stays so."""
    ends, targets = concrete(block.ends), concrete(block.targets)
    if ends is None or targets is None:
        fail(
            "Synapses.from_blocks: `blocks` must be of known values, got a tracer. Join them outside "
            "of jit, and pass the result."
        )
    counts = np.diff(np.sort(np.clip(ends.astype(np.int64), 0, len(targets))), prepend=0)
    sources = np.repeat(np.arange(first, first + len(counts), dtype=np.int32), counts)
    own = targets[: len(sources)].astype(np.int64)
    inside = (own >= 0) & (own < block.num_targets)
    return sources, np.where(inside, own + left, num_targets)


def _sizes_of_blocks(blocks: Unchecked) -> tuple[list[int], list[int]]:
    """How many neurons each row of blocks sends from, and how many targets each column has."""
    op = "Synapses.from_blocks"
    rows = [list(row) for row in blocks]
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        lengths = [len(row) for row in rows]
        fail(f"{op}: `blocks` must be rows of equally many blocks, got {lengths}. Use None for no synapses.")

    def one_size(where: str, sizes: set[int]) -> int:
        if len(sizes) != 1:
            found = "None alone" if not sizes else " and ".join(map(str, sorted(sizes)))
            hint = "Synapses of probability 0 have a size, too"
            fail(f"{op}: `blocks` must have one number of {where}, got {found}. {hint}.")
        return sizes.pop()

    heights = [
        one_size(f"neurons in row {i}", {b.num_neurons for b in row if b is not None})
        for i, row in enumerate(rows)
    ]
    widths = [
        one_size(f"targets in column {j}", {b.num_targets for b in column if b is not None})
        for j, column in enumerate(zip(*rows, strict=True))
    ]
    return heights, widths


def _of_pairs(pairs: np.ndarray, num_neurons: int, num_targets: int) -> Synapses:
    """Synapses of ascending numbers of pairs, ``neuron * num_targets + target``."""
    width = max(num_targets, 1)
    return _of_rows(np.bincount(pairs // width, minlength=num_neurons), pairs % width, num_targets)


def _pairs_drawn(key: Array, count: int, probability: float) -> np.ndarray:
    """Those of `count` pairs that are drawn, each with this probability: the gaps between them are geometric."""
    if probability in (0.0, 1.0):
        return np.arange(count if probability == 1.0 else 0)
    found, last, draws = [np.zeros(0, np.int64)], -1, 0
    while last < count:
        words = np.asarray(_words(key, draws))
        uniform = (words[0] + (words[1] + 0.5) / 2**32) / 2**32  # in float64, never 0 or 1
        gaps = np.minimum(np.floor(np.log(uniform) / np.log1p(-probability)), count) + 1
        places = last + np.cumsum(gaps.astype(np.int64))
        found.append(places[places < count])
        last, draws = int(places[-1]), draws + 1
    return np.concatenate(found)


@jax.jit
def _words(key: Array, number: ArrayLike) -> Array:
    """Random words, always as many: each shape would be compiled by itself."""
    return jax.random.bits(jax.random.fold_in(key, number), (2, _WORDS_AT_ONCE), jnp.uint32)


def _near_pairs(
    key: Array, positions: np.ndarray, targets: np.ndarray, probability: Unchecked, period: float | None
) -> np.ndarray:
    """The pairs that are drawn with probabilities of their distance, some rows at a time."""
    rows = max(_PAIRS_AT_ONCE // max(len(targets), 1), 1)
    found = [np.zeros(0, np.int64)]
    for first in range(0, len(positions), rows):
        apart = np.abs(positions[first : first + rows, None] - targets[None])
        if period is not None:
            apart = np.minimum(apart % period, period - apart % period)
        distances = jnp.asarray(np.sqrt(np.sum(apart**2, axis=-1)), jnp.float32)
        likely = jnp.asarray(probability(distances))
        hint = "Return one for each distance"
        check_shape("Synapses.by_distance", "probability", likely, distances.shape, "neurons, targets", hint)
        uniform = jax.random.uniform(jax.random.fold_in(key, first), distances.shape, jnp.float32)
        if jnp.any(jnp.isnan(likely)):
            hint = "Return a number for each distance, also for 0"
            fail(f"Synapses.by_distance: `probability` must return probabilities, got NaN. {hint}.")
        drawn = uniform < likely.astype(jnp.float32)
        source, target = np.nonzero(np.asarray(drawn))
        found.append((source.astype(np.int64) + first) * len(targets) + target)
    return np.concatenate(found)


def _places(op: str, name: str, positions: Unchecked) -> np.ndarray:
    """Positions of known values."""
    check_array(op, name, positions)
    known = concrete(positions)
    if known is None or known.ndim != 2 or not np.issubdtype(known.dtype, np.floating):
        hint = "Pass an array outside of jit"
        fail(
            f"{op}: `{name}` must be float [neurons, dimensions] of known values, "
            f"got {short_repr(positions)}. {hint}."
        )
    if not np.isfinite(known).all():
        fail(f"{op}: `{name}` must be finite, got NaN or infinity. Remove such neurons.")
    return known.astype(np.float64)


def _of_rows(counts: Unchecked, targets: Unchecked, num_targets: int) -> Synapses:
    """Synapses of known numbers, `counts` of each neuron."""
    _check_count(int(np.sum(counts)))
    ends, targets = np.cumsum(counts).astype(np.int32), np.asarray(targets).astype(id_dtype(num_targets))
    return Synapses(jax.device_put(ends), jax.device_put(targets), num_targets)


def _check_count(count: int) -> None:
    if count > _MAX_SYNAPSES:
        fail(
            f"Synapses: `targets` must be at most {_MAX_SYNAPSES}, got {count}. Use several sets of synapses."
        )


def check_probability(op: str, probability: Any) -> float:
    """Check the probability of a synapse between two neurons."""
    if not isinstance(probability, float | int) or not 0 <= probability <= 1:
        hint = "Pass the share of pairs that are connected"
        fail(f"{op}: `probability` must be between 0 and 1, got {short_repr(probability)}. {hint}.")
    return float(probability)


def targets_or_beyond(synapses: Synapses) -> Int[Array, " synapses"]:
    """The targets as int32, `num_targets` for those out of range, which scattering then drops."""
    used = in_range(synapses.targets, synapses.num_targets)
    return jnp.where(used, synapses.targets.astype(jnp.int32), synapses.num_targets)


def ends_and_targets(synapses: Synapses) -> tuple[Int[Array, " neurons"], Integer[Array, " synapses"]]:
    """Both arrays in dtypes that the kernels read: int32, and uint16 or int32."""
    for name in ("ends", "targets"):
        check_integers("Synapses", name, getattr(synapses, name))
    return as_int32(synapses.ends), uint16_or_int32(synapses.targets)


def _check_sizes(op: str, key: Unchecked, num_neurons: int, num_targets: int) -> tuple[int, int]:
    check_key(op, key)
    return (
        check_integer(op, "num_neurons", num_neurons, 0),
        check_integer(op, "num_targets", num_targets, 0),
    )


def check_known_key(op: str, key: Unchecked) -> None:
    if concrete(jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key) is None:
        fail(
            f"{op}: `key` must be known, got a tracer. Draw outside of jit: the number of synapses is random."
        )


def _check_draw(
    op: str, key: Unchecked, num_neurons: int, num_targets: int, each: int, *, among_targets: bool
) -> tuple[int, int, int]:
    """The sizes, and how many of `each` row are drawn, after checking them."""
    num_neurons, num_targets = _check_sizes(op, key, num_neurons, num_targets)
    name = op.removeprefix("Synapses.fixed_")
    each = check_integer(op, name, each, 0)
    rows, most = (num_neurons, num_targets) if among_targets else (num_targets, num_neurons)
    if each > most:
        fail(f"{op}: `{name}` must be at most {most}, the neurons to choose from, got {each}. Choose fewer.")
    _check_count(rows * each)
    return num_neurons, num_targets, each


def _distinct(key: Array, rows: int, count: int, among: int) -> Int[Array, "rows count"]:
    """`count` different numbers below `among` in each row, ascending; all such sets are equally likely."""
    if count > _MOST_REDRAWN * among:
        order = jnp.argsort(jax.random.uniform(key, (rows, among), jnp.float32), axis=1)
        return jnp.sort(order[:, :count].astype(jnp.int32), axis=1)

    def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        """Numbers drawn twice are drawn again, until there are none: which do not depend on their value."""
        own, drawn = carry
        own, now = jax.random.split(own)
        return own, jnp.sort(jnp.where(_repeats(drawn), draw(now), drawn), axis=1)

    def draw(own: Array) -> Array:
        return jax.random.randint(own, (rows, count), 0, among, jnp.int32)

    first, then = jax.random.split(key)
    start = then, jnp.sort(draw(first), axis=1)
    return jax.lax.while_loop(lambda carry: jnp.any(_repeats(carry[1])), again, start)[1]


def _repeats(drawn: Array) -> Bool[Array, "rows count"]:
    """Where a number of an ascending row is that before it."""
    same = drawn[:, 1:] == drawn[:, :-1]
    return jnp.concatenate(
        [jnp.zeros_like(same, shape=(drawn.shape[0], min(drawn.shape[1], 1))), same], axis=1
    )
