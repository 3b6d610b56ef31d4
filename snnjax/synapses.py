"""`Synapses`: which neurons are connected, where few pairs are."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from snnjax._check import (
    check_array,
    check_integer,
    check_key,
    check_shape,
    check_size,
    concrete,
    fail,
    short_repr,
)
from snnjax._types import id_dtype
from snnjax.sparse_spikes import in_range

# Up to this share of all targets, drawing again the few that were drawn twice takes a few rounds.
_MOST_REDRAWN = 0.5
_MAX_SYNAPSES = 2**31 - 1  # their numbers are int32


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
    targets: Int[Array, " synapses"]  # uint16 or int32
    num_targets: int = field(metadata={"static": True})

    def __post_init__(self) -> None:
        check_size("Synapses", "num_targets", self.num_targets)

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
        # The number of neurons whose synapses end before it.
        ending = jnp.zeros(self.num_synapses, jnp.int32).at[jnp.maximum(self.ends, 0)].add(1, mode="drop")
        return jnp.cumsum(ending, dtype=jnp.int32)

    def to_dense(self, weights: Float[Array, " synapses"]) -> Float[Array, "neurons targets"]:
        """The matrix of the weights, 0 where there is no synapse."""
        check_shape(
            "Synapses.to_dense", "weights", weights, (self.num_synapses,), "synapses", "Pass one a synapse"
        )
        columns = targets_or_beyond(self)
        dense = jnp.zeros((self.num_neurons, self.num_targets), weights.dtype)
        return dense.at[self.sources(), columns].add(weights, mode="drop")

    @classmethod
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
    def from_scipy(cls, matrix: Any) -> tuple["Synapses", Float[Array, " synapses"]]:
        """The synapses and weights of a SciPy array in compressed rows (CSR), ``[neurons, targets]``."""
        if getattr(matrix, "format", None) != "csr":
            fail(
                f"Synapses.from_scipy: `matrix` must be a CSR array of SciPy, got {short_repr(matrix)}. "
                "Convert it with .tocsr()."
            )
        starts = np.asarray(matrix.indptr)
        return _of_rows(np.diff(starts), matrix.indices, matrix.shape[1]), jnp.asarray(
            matrix.data, jnp.float32
        )

    @classmethod
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
        _check_draw(
            "Synapses.fixed_fan_out", key, num_neurons, num_targets, fan_out, num_targets, num_neurons
        )
        targets = _distinct(key, num_neurons, fan_out, num_targets)
        ends = fan_out * jnp.arange(1, num_neurons + 1, dtype=jnp.int32)
        return cls(ends, targets.reshape(-1).astype(id_dtype(num_targets)), num_targets)

    @classmethod
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
        _check_draw("Synapses.fixed_fan_in", key, num_neurons, num_targets, fan_in, num_neurons, num_targets)
        sources = _distinct(key, num_targets, fan_in, num_neurons).reshape(-1)
        targets = jnp.repeat(jnp.arange(num_targets, dtype=jnp.int32), fan_in)
        order = jnp.argsort(sources, stable=True)
        ends = jnp.cumsum(jnp.bincount(sources, length=num_neurons), dtype=jnp.int32)
        return cls(ends, targets[order].astype(id_dtype(num_targets)), num_targets)


def _of_rows(counts: Any, targets: Any, num_targets: int) -> Synapses:
    """Synapses of known numbers, `counts` of each neuron."""
    _check_count(int(np.sum(counts)))
    ends = np.cumsum(counts).astype(np.int32)
    return Synapses(jnp.asarray(ends), jnp.asarray(targets, id_dtype(num_targets)), num_targets)


def _check_count(count: int) -> None:
    if count > _MAX_SYNAPSES:
        fail(
            f"Synapses: `targets` must be at most {_MAX_SYNAPSES}, got {count}. Use several sets of synapses."
        )


def targets_or_beyond(synapses: Synapses) -> Int[Array, " synapses"]:
    """The targets as int32, `num_targets` for those out of range, which scattering then drops."""
    used = in_range(synapses.targets, synapses.num_targets)
    return jnp.where(used, synapses.targets.astype(jnp.int32), synapses.num_targets)


def _check_draw(
    op: str, key: Any, num_neurons: int, num_targets: int, each: int, most: int, rows: int
) -> None:
    check_key(op, key)
    check_integer(op, "num_neurons", num_neurons, 0)
    check_integer(op, "num_targets", num_targets, 0)
    name = op.removeprefix("Synapses.fixed_")
    check_integer(op, name, each, 0)
    if each > most:
        fail(f"{op}: `{name}` must be at most {most}, the neurons to choose from, got {each}. Choose fewer.")
    _check_count(rows * each)


def _distinct(key: Array, rows: int, count: int, among: int) -> Int[Array, "rows count"]:
    """`count` different numbers below `among` in each row, ascending; all such sets are equally likely."""
    if count > _MOST_REDRAWN * among:
        order = jnp.argsort(jax.random.uniform(key, (rows, among)), axis=1)
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
