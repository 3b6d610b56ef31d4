"""Networks as populations and projections by name, whose synapses are drawn in place for `snnjax.simulate`."""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import (
    check_choice,
    check_integer,
    check_key,
    check_shape,
    check_switches,
    concrete,
    fail,
    short_repr,
)
from snnjax._delayed_synapses import DelayedSynapses, blocks_for
from snnjax._synapses import check_known_key, check_probability
from snnjax._types import Params, Unchecked
from snnjax.neurons._neuron import Neuron, check_spiking, drawn, is_drawn, num_owners
from snnjax.ops._random import key_words
from snnjax.ops._simulation.cells import Cells as Cells
from snnjax.ops._simulation.input import SpikeTrains as SpikeTrains
from snnjax.ops._simulation.records import Record as Record
from snnjax.ops._simulation.records import Recording as Recording
from snnjax.ops._simulation.records import SynapticLIF, step_length
from snnjax.ops._tables.connect import Operands
from snnjax.ops.connect import DISTINCT, IN_DEGREE, ONE_TO_ONE, UNIFORM, Static, connect
from snnjax.ops.connect import Projection as Row

_WEIGHTS, _DELAYS = 2**12, 2**16  # equally likely values that stand for a distribution
_MOST_OF_ROW = 2**16 - 1  # synapses of a neuron to a block
_MOST_SYNAPSES = 2**31 - 1
_CONNECT = "Populations.connect"
CellModel = Neuron | SynapticLIF | tuple[Neuron, Params]
_RULES = ("probability", "number", "in_degree", "out_degree", "one_to_one")


class Distribution(Protocol):
    """What weights and delays may be drawn from."""

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """The values below which these shares are."""
        ...


def _check_ascending(op: str, **ends: float) -> None:
    (low, least), (high, most) = ends.items()
    if least > most:
        hint = "Pass the smallest value first"
        fail(f"{op}: `{low}` must be below `{high}`, {most:g}, got {least:g}. {hint}.")


@explained
class Normal(NamedTuple):
    """A normal distribution; values outside `least` to `most` are drawn again."""

    mean: float
    std: float
    least: float = -math.inf
    most: float = math.inf

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """The values below which these shares are."""
        if self.std <= 0:
            hint = "Pass a number in place of the distribution"
            fail(f"Normal: `std` must be above 0, got {self.std:g}. {hint}.")
        _check_ascending("Normal", least=self.least, most=self.most)
        low, high = (
            0.5 * math.erfc((self.mean - end) / self.std / 2**0.5) for end in (self.least, self.most)
        )
        share = low + (high - low) * shares
        # From the closer end, in whose distance float32 has the precision.
        tail = jax.scipy.special.ndtri(jnp.asarray(np.minimum(share, 1 - share), jnp.float32))
        return self.mean + self.std * np.where(share < 0.5, tail, -np.asarray(tail, np.float64))


@explained
class Uniform(NamedTuple):
    """Values between `low` and `high`, all equally likely."""

    low: float
    high: float

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """The values below which these shares are."""
        _check_ascending("Uniform", low=self.low, high=self.high)
        return self.low + (self.high - self.low) * shares


@explained
@dataclass(frozen=True)
class Projection:
    """Synapses from the neurons of one population to those of another, by one of five rules.

    Weights and delays are numbers, or distributions from which each synapse draws its own value: `Normal`, `Uniform`,
    or another `Distribution`. Weights are drawn from 4,096 equally likely values, delays from 65,536.
    """

    source: str
    target: str
    weight: float | Distribution  # mV, or in units of the leak conductance
    # ms, rounded to steps, from the end of that in which a neuron spikes, as in NEST and Brian2: after 0 ms it arrives
    # in the next step, after one step in that behind it
    delay: float | Distribution
    probability: float | None = None  # each pair has a synapse with it, independently
    number: int | None = None  # of synapses, of any pairs: a pair may have several
    in_degree: int | None = None  # synapses of each neuron that receives, likewise
    out_degree: int | None = None  # of each neuron that sends, to as many others
    one_to_one: bool | None = None  # the first of one population leads to the first of the other, and so on
    receptor: int = 0
    autapses: bool = True  # whether a neuron may lead to itself


class _Drawn(NamedTuple):
    """A projection as a row of the table, but for its places in the arrays."""

    rule: int
    firsts: np.ndarray  # [blocks, sources + 1]
    quantiles: np.ndarray
    late: np.ndarray


@explained
class Populations:
    """Populations of neurons by name: consecutive neurons of one network, in this order.

    Args:
        sizes: numbers of neurons by name.
        dt: length of a step in ms.
        receptors: number of receptors of each neuron.

    Raises:
        ValueError: if `sizes` is not a mapping, or a number is out of range.

    Example:
        >>> import jax
        >>> from snnjax import circuits
        >>> column = circuits.Populations({"E": 80, "I": 20}, dt=0.1)
        >>> column.each({"E": 1.0, "I": -4.0})[[79, 80]].tolist()
        [1.0, -4.0]
        >>> wiring = [
        ...     circuits.Projection(
        ...         "E", "I", weight=0.2, delay=circuits.Normal(1.5, 0.7, 0.1), probability=0.1
        ...     ),
        ...     circuits.Projection("I", "E", weight=circuits.Normal(-1.0, 0.1), delay=0.8, in_degree=5),
        ... ]
        >>> synapses = column.connect(jax.random.key(0), wiring)
        >>> synapses.num_neurons, int((synapses.sources() >= 80).sum())
        (100, 400)
    """

    def __init__(self, sizes: Mapping[str, int], *, dt: float, receptors: int = 1) -> None:
        op = "Populations"
        if not isinstance(sizes, Mapping) or not sizes:
            fail(
                f"{op}: `sizes` must be a mapping of names, got {short_repr(sizes)}. Pass {{'E': 80, 'I': 20}}."
            )
        self.sizes = {name: check_integer(op, f"sizes[{name!r}]", size, 0) for name, size in sizes.items()}
        self.num_neurons = sum(self.sizes.values())
        self.dt, self.receptors = step_length(op, dt), check_integer(op, "receptors", receptors, 1)

    @property
    def slices(self) -> dict[str, slice]:
        """The numbers of each population."""
        ends = itertools.accumulate(self.sizes.values())
        return {
            name: slice(end - size, end) for (name, size), end in zip(self.sizes.items(), ends, strict=True)
        }

    def __getitem__(self, name: str) -> slice:
        """The numbers of a population."""
        check_choice("Populations", "name", name, tuple(self.sizes))
        return self.slices[name]

    def each(self, values: Mapping[str, Any], *, others: float | None = None) -> np.ndarray:
        """Numbers, or arrays of one for each neuron, of all populations by name, as one array ``[neurons]``.

        Args:
            values: by name.
            others: the value of populations that are not named; None if all must be.

        Raises:
            ValueError: if a population has no value, or a name is not that of a population.
        """
        if others is not None:
            values = dict.fromkeys(self.sizes, others) | dict(values)
        self._check_names("Populations.each", "values", values)
        parts = [np.broadcast_to(np.asarray(values[name], float), size) for name, size in self.sizes.items()]
        return np.concatenate(parts)

    def split(self, array: Array | np.ndarray) -> dict[str, Any]:
        """The parts of an array with neurons on its last axis, by name."""
        shape = (*(None,) * (np.ndim(array) - 1), self.num_neurons)
        check_shape("Populations.split", "array", array, shape, "..., neurons", "Pass one for each neuron")
        return {name: array[..., self[name]] for name in self.sizes}

    def cells(self, models: Mapping[str, CellModel], key: Array | None = None) -> Cells:
        """Neurons with a model for each population, which may be your own, as `snnjax.simulate` takes them.

        A step of `snnjax.neurons.Neuron` lasts `dt`. Its inputs ``[1, neurons]`` are the sum of the weights of the
        synapses through which spikes arrive in the step, random input, given currents and noise; with several receptors
        they are ``[receptors, 1, neurons]``, and currents and noise are added to the first. A neuron spikes where its
        membrane is above the threshold. Steps are in `jax.numpy`; with plasticity, so is the delivery of spikes.

        Args:
            models: by name: `snnjax.neurons.Neuron`, or a pair of it and its params; or the leaky neurons of
                `snnjax.neurons.cuba_lif` and `coba_lif`.
            key: a PRNG key, for models whose constants are drawn.

        Raises:
            ValueError: if a population has no model, a model is not a neuron, does not spike or has graded spikes, or
                leaky neurons have another number of receptors or another `dt`, or constants are drawn without a key.

        Example:
            >>> from snnjax import circuits, neurons
            >>> column = circuits.Populations({"E": 80, "I": 20}, dt=1.0)
            >>> fast = neurons.izhikevich("fast_spiking")
            >>> cells = column.cells({"E": neurons.izhikevich(), "I": fast})
            >>> cells.num_receptors, cells.sizes
            (1, (80, 20))
        """
        op = "Populations.cells"
        self._check_names(op, "models", models)
        if key is not None:
            check_key(op, key)
        keys = [None] * len(self.sizes) if key is None else jax.random.split(key, len(self.sizes))
        parts = [
            self._part(op, f"models[{name!r}]", models[name], size, own)
            for (name, size), own in zip(self.sizes.items(), keys, strict=True)
        ]
        models_of, params = zip(*parts, strict=True)
        return Cells(params, models_of, tuple(self.sizes.values()), self.receptors, self.dt)

    def _part(
        self, op: str, argument: str, given: CellModel, size: int, key: Array | None
    ) -> tuple[Neuron | None, Params]:
        """A model, None for leaky neurons, and its params."""
        if isinstance(given, SynapticLIF):
            own, expected = (given.num_receptors, given.dt), (self.receptors, self.dt)
            if own[0] != expected[0] or not math.isclose(own[1], expected[1], rel_tol=1e-6):
                numbers, actual = (f"{receptors} and {step:g}" for receptors, step in (expected, own))
                hint = "Make both alike"
                fail(
                    f"{op}: `{argument}` must have `receptors` and `dt` of the populations, {numbers}, got {actual}. "
                    f"{hint}."
                )
            return None, given
        model, params = given if isinstance(given, tuple) else (given, None)
        check_spiking(op, model)
        if model.is_graded:
            hint = "Choose one whose spikes are 0 and 1"
            fail(f"{op}: `{argument}` must not have graded spikes, got {model.name}. {hint}.")
        if params is not None:
            return model, params
        if key is None and is_drawn(model):
            hint = "Pass key=jax.random.key(0)"
            fail(
                f"{op}: `key` must be a PRNG key, from which constants of `{argument}` are drawn, got None. {hint}."
            )
        key = jax.random.key(0) if key is None else key  # nothing is drawn from it
        return model, drawn(model, key, num_owners(model, (size,)))

    def connect(
        self,
        key: Array,
        projections: Sequence[Projection],
        *,
        dtype: DTypeLike = jnp.bfloat16,
        blocks: int | None = None,
        implementation: str | None = None,
    ) -> DelayedSynapses:
        """Draw the synapses of projections, each in its place and on all threads, without a list of pairs.

        NumPy draws how many synapses each neuron sends. Each synapse is drawn from the key, its neuron and its number,
        so the result is the same for any number of threads.

        Args:
            key: a PRNG key, with a known value.
            projections: any number, even several for the same pair of populations.
            dtype: of weights: bfloat16 (4 bytes a synapse with everything else) or float32 (6, and plastic).
            blocks: as in `DelayedSynapses.of`.
            implementation: as in `snnjax.simulate`.

        Raises:
            ValueError: if a projection names an unknown population, has no rule or several, a number is out of range, a
                delay is negative, or the key is traced.
        """
        operands, static = self.plan(key, projections, dtype, blocks)
        words, weights, segments = connect(operands, static, implementation)
        longest = int(operands.late.max(initial=1))
        targets = self.receptors * self.num_neurons
        return DelayedSynapses(words, weights, segments, operands.ends, targets, longest)

    def plan(
        self, key: Array, projections: Sequence[Projection], dtype: DTypeLike, blocks: int | None
    ) -> tuple[Operands, Static]:
        """What is drawn in place: how many synapses each neuron sends, and the values of weights and delays."""
        op = _CONNECT
        check_key(op, key)
        check_known_key(op, key)
        check_choice(op, "dtype", jnp.dtype(dtype).name, ("bfloat16", "float32"))
        blocks = blocks_for(op, blocks, self.num_neurons, self.receptors * self.num_neurons)
        words = key_words(key)
        draw = np.random.Generator(np.random.Philox(key=np.asarray(words).view(np.uint32).astype(np.uint64)))
        found = [self._drawn(f"projections[{k}]", each, blocks, draw) for k, each in enumerate(projections)]
        rows, arrays = self._table(op, projections, found)
        ends = _ends(op, rows, found, blocks, self.num_neurons)
        segments, synapses = ends.reshape(-1, 2)[-1:].sum(axis=0).tolist()
        static = Static(synapses, segments, jnp.dtype(dtype) == jnp.bfloat16)
        firsts, quantiles, late = map(jnp.asarray, arrays)
        return Operands(words, jnp.asarray(rows), firsts, jnp.asarray(ends), quantiles, late), static

    def _check_names(self, op: str, argument: str, names: Mapping[str, Any]) -> None:
        if set(names) != set(self.sizes):
            hint = f"Name {', '.join(self.sizes)}"
            fail(f"{op}: `{argument}` must have a value for each population, got {', '.join(names)}. {hint}.")

    def _drawn(self, where: str, each: Projection, blocks: int, draw: np.random.Generator) -> _Drawn:
        """How many synapses each neuron sends to each block, and the values of their weights and delays."""
        if not isinstance(each, Projection):
            fail(
                f"{_CONNECT}: `{where}` must be a Projection, got {short_repr(each)}. Make it with circuits.Projection."
            )
        for name in ("source", "target"):
            if getattr(each, name) not in self.sizes:
                hint = f"Choose one of {', '.join(self.sizes)}"
                fail(
                    f"{_CONNECT}: `{where}.{name}` must be a population, got {short_repr(getattr(each, name))}. {hint}."
                )
        given = [rule for rule in _RULES if getattr(each, rule) is not None]
        if len(given) != 1:
            actual, hint = " and ".join(given) or "none", f"Pass one of {', '.join(_RULES)}"
            fail(f"{_CONNECT}: `{where}` must have one rule, got {actual}. {hint}.")
        sources, targets = (
            np.arange(self[name].start, self[name].stop) for name in (each.source, each.target)
        )
        if each.one_to_one not in (None, True):
            actual, hint = short_repr(each.one_to_one), "Pass another rule"
            fail(f"{_CONNECT}: `{where}.one_to_one` must be True or left out, got {actual}. {hint}.")
        check_switches(_CONNECT, autapses=each.autapses)
        rule, counts = _counts(where, given[0], each, sources, targets, blocks, draw)
        firsts = np.zeros((blocks, len(sources) + 1), np.int64)
        np.cumsum(counts, axis=1, out=firsts[:, 1:])
        delays = _values(f"{where}.delay", each.delay, _DELAYS)
        late = 1 + np.rint(delays / self.dt)  # a spike is at the end of its step
        if delays.min() < 0 or late.max() > _MOST_OF_ROW:
            wrong = float(delays.min() if delays.min() < 0 else delays.max())
            hint = "Limit its distribution"
            fail(
                f"{_CONNECT}: `{where}.delay` must be 0 to {_MOST_OF_ROW - 1} steps, got {wrong:g} ms. {hint}."
            )
        weights = _values(f"{where}.weight", each.weight, _WEIGHTS)
        return _Drawn(rule, firsts, weights.astype(np.float32), late.astype(np.uint16))

    def _table(
        self, op: str, projections: Sequence[Projection], found: Sequence[_Drawn]
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The rows of all projections; and `firsts`, quantiles of weights and of delays, each table once."""
        firsts = np.concatenate([np.zeros(0, np.int64), *(each.firsts.reshape(-1) for each in found)])
        if len(firsts) > _MOST_SYNAPSES or (len(firsts) and firsts.max() > _MOST_SYNAPSES):
            most = max(len(firsts), firsts.max(initial=0))
            fail(
                f"{op}: `projections` must have at most {_MOST_SYNAPSES} synapses, got {most}. Use several networks."
            )
        weights, late = _Joined(), _Joined()
        rows, cell = [], 0
        for each, own in zip(projections, found, strict=True):
            source, target = self[each.source], self[each.target]
            receptor = check_integer(op, "receptor", each.receptor, 0)
            if receptor >= self.receptors:
                fail(
                    f"{op}: `receptor` must be below {self.receptors}, the receptors, got {receptor}. "
                    "Choose one of them."
                )
            ends = (source.start, source.stop - source.start, target.start, target.stop - target.start)
            skips = int(not each.autapses)
            tables = (*weights.place(own.quantiles), *late.place(own.late))
            rows.append(Row(*ends, receptor, own.rule, skips, *tables, cell))
            cell += own.firsts.size
        table = np.array(rows, np.int32).reshape(-1, len(Row._fields))
        return table, (firsts.astype(np.int32), weights.array(np.float32), late.array(np.uint16))


class _Joined:
    """Tables one after another; equal ones are stored once."""

    def __init__(self) -> None:
        self.places: dict[bytes, tuple[int, int]] = {}
        self.parts: list[np.ndarray] = []

    def place(self, table: np.ndarray) -> tuple[int, int]:
        """Where a table begins, and its length."""
        known = self.places.setdefault(table.tobytes(), (sum(map(len, self.parts)), len(table)))
        if known[0] == sum(map(len, self.parts)):
            self.parts.append(table)
        return known

    def array(self, dtype: DTypeLike) -> np.ndarray:
        """All of them."""
        return np.concatenate([np.zeros(0, dtype), *self.parts])


def _values(where: str, given: Unchecked, count: int) -> np.ndarray:
    """The values of a number or distribution, in float64."""
    shares = (np.arange(count) + 0.5) / count
    numbers = concrete(given.quantiles(shares) if hasattr(given, "quantiles") else given)
    if (
        numbers is None
        or numbers.dtype.kind not in "fiu"
        or numbers.size == 0
        or numbers.ndim > 1
        or (numbers.ndim == 1 and not hasattr(given, "quantiles"))
        or not np.all(np.isfinite(numbers))
    ):
        hint = "Pass circuits.Normal"
        fail(
            f"{_CONNECT}: `{where}` must be a finite number or a distribution, got {short_repr(given)}. {hint}."
        )
    return np.atleast_1d(np.asarray(numbers, np.float64))


def _counts(
    where: str,
    rule: str,
    each: Projection,
    sources: np.ndarray,
    targets: np.ndarray,
    blocks: int,
    draw: np.random.Generator,
) -> tuple[int, np.ndarray]:
    """The rule of the kernel, and the numbers of synapses ``[blocks, sources]``."""
    width = np.bincount(targets % blocks, minlength=blocks)[:, None]
    may = np.broadcast_to(width, (blocks, len(sources)))  # targets that there are to choose from
    if not each.autapses:
        if rule in ("in_degree", "one_to_one"):
            fail(f"{_CONNECT}: `{where}.autapses` must be True with {rule}, got False. Choose another rule.")
        own = (sources % blocks == np.arange(blocks)[:, None]) & np.isin(sources, targets)
        may = may - own
    if rule == "one_to_one":
        sizes = len(sources), len(targets)
        if sizes[0] != sizes[1]:
            fail(
                f"{_CONNECT}: `{where}.{rule}` must be of equal sizes, got {sizes[0]} and {sizes[1]}. Use another rule."
            )
        return ONE_TO_ONE, (targets % blocks == np.arange(blocks)[:, None]).astype(np.int64)
    if rule == "probability":
        share = check_probability(_CONNECT, each.probability)
        return DISTINCT, draw.binomial(may, share)
    count = check_integer(_CONNECT, rule, getattr(each, rule), 0)
    if count > 0 and may.sum() == 0:
        fail(
            f"{_CONNECT}: `{where}.{rule}` must be 0 between populations without pairs, got {count}. Leave it out."
        )
    if rule == "number":
        shares = may / max(may.sum(), 1)
        return UNIFORM, draw.multinomial(count, shares.reshape(-1)).reshape(may.shape)
    if rule == "in_degree":
        even = np.full(len(sources), 1 / max(len(sources), 1))
        return IN_DEGREE, np.stack([draw.multinomial(count * int(own), even) for own in width[:, 0]])
    return DISTINCT, _out_of_blocks(where, count, may, draw)


def _out_of_blocks(where: str, count: int, may: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """How many of so many different targets of each neuron are in each block."""
    most = int(may.sum(axis=0).min(initial=count))
    if count > most:
        hint = "Choose fewer"
        fail(
            f"{_CONNECT}: `{where}.out_degree` must be at most {most}, the neurons to choose from, got {count}. {hint}."
        )
    found, left = np.zeros(may.shape, np.int64), np.full(may.shape[1], count)
    for block in range(len(may)):  # of those that are left, so many
        found[block] = draw.hypergeometric(may[block], may[block + 1 :].sum(axis=0), left)
        left = left - found[block]
    return found


def _ends(op: str, rows: np.ndarray, drawn: Sequence[_Drawn], blocks: int, neurons: int) -> np.ndarray:
    """Of each block and sender where its segments and synapses end.

    A row has as many segments as its delays could need, of which some are empty.
    """
    by_delays: dict[int, tuple[np.ndarray, int]] = {}
    for row, each in zip(rows, drawn, strict=True):
        of = Row(*map(int, row))
        counts, _ = by_delays.setdefault(
            of.first_late, (np.zeros((blocks, neurons), np.int64), len(np.unique(each.late)))
        )
        counts[:, of.first_source : of.first_source + of.sources] += np.diff(each.firsts, axis=1)
    zero = np.zeros((blocks, neurons), np.int64)
    synapses = functools.reduce(np.add, (counts for counts, _ in by_delays.values()), zero)
    segments = functools.reduce(np.add, (np.minimum(*own) for own in by_delays.values()), zero)
    if synapses.max(initial=0) > _MOST_OF_ROW:
        fail(
            f"{op}: `blocks` must leave at most {_MOST_OF_ROW} synapses of a neuron to each, got {synapses.max()}. "
            "Pass more blocks."
        )
    ends = np.stack([np.cumsum(segments), np.cumsum(synapses)], axis=1)
    return ends.reshape(blocks, neurons, 2).astype(np.int32)
