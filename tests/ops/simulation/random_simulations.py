"""Random simulations, compared with a program in NumPy and float64 that is written from the equations alone.

Membranes of float32 may cross a threshold where those of float64 just do not. So the program takes the spikes that it
checks, and says whether each is right: one is wrong where a membrane is further from its threshold than rounding.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import DelayedSynapses, PoissonInput, Synapses, neurons, simulate, simulation_state
from snnjax._types import State
from snnjax.circuits import Record, SpikeTrains
from snnjax.plasticity import STDP, ShortTerm
from snnjax.quantisation import Quantised
from tests.numbers import array

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
MOST_DELAYS = (1, 2, 20, 300)  # of which the last is beyond bytes
BOUNDS = (-3.0, 3.0)  # mV, of plastic weights
KEPT = 0.9375  # of eligibility in a step
# Rounding of at most 40 steps, relative to the largest number, of membranes some tens of mV from rest.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


class Form(NamedTuple):
    """What is compiled."""

    size: int
    receptors: int
    synapses: int
    steps: int
    has_conductances: bool
    shared: bool  # constants of neurons
    max_delay: int
    blocks: int
    delays: str  # dtype
    targets: str  # dtype
    weights: str  # dtype
    has_currents: bool
    poisson: float  # the largest mean number of events in a step; 0 for no input
    stdp: bool
    short_term: bool
    dt: float
    second: bool = False  # a second source, whose rates change in time
    courses: int = 0  # of currents
    noise: bool = False
    given: bool = False  # spikes
    modulated: str = ""  # weights: "at once" or "later", by an eligibility
    every: int = 1  # so many steps a sample is recorded

    @property
    def dtype(self) -> str:
        """That of sums."""
        return "float64" if self.weights == "float64" else "float32"


class Drawn(NamedTuple):
    """A network by its physical constants, in float64, that its arrays are made of."""

    cells: dict[str, Any]
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    scale: np.ndarray  # of each target, for weights of 8 bits
    delays: np.ndarray
    state: dict[str, np.ndarray]
    currents: np.ndarray | None
    shares: np.ndarray | None  # of time courses
    noise: np.ndarray | None  # mV
    given: np.ndarray | None  # spikes of all steps
    rates: np.ndarray | None  # events a step
    rising: np.ndarray | None  # those of the second source
    modulation: np.ndarray
    event: float
    key: np.ndarray
    taus: tuple[float, float]
    plastic: np.ndarray
    use: np.ndarray
    recovery: tuple[np.ndarray, np.ndarray]  # decays of a step


def random_form(rng: np.random.Generator) -> Form:
    """The sizes and kinds of a network."""
    size, stdp = int(rng.choice([1, 7, 16, 33])), bool(rng.random() < 0.4)
    max_delay = int(rng.choice(MOST_DELAYS))
    kinds = ["float32", "float64"] if stdp else ["float32", "float64", "bfloat16", "int8"]
    return Form(
        size,
        int(rng.integers(1, 5)),
        int(rng.integers(0, 6 * size + 1)),
        int(rng.integers(1, 41)),
        bool(rng.random() < 0.5),
        bool(rng.random() < 0.5),
        max_delay,
        int(rng.integers(1, 4)),
        str(rng.choice(INTEGERS)),
        str(rng.choice(["uint16", "int32"])),
        str(rng.choice(kinds)),
        bool(rng.random() < 0.5),
        float(rng.choice([0.0, 0.5, 3.0])),
        stdp,
        bool(rng.random() < 0.4),
        float(rng.choice([0.1, 0.5, 1.0])),
        bool(rng.random() < 0.5),
        int(rng.choice([0, 1, 3])),
        bool(rng.random() < 0.5),
        bool(rng.random() < 0.5),
        str(rng.choice(["", "at once", "later"])) if stdp else "",
        int(rng.integers(1, 4)),
    )


def uniform(rng: np.random.Generator, low: float, high: float, *shape: int):
    """Random numbers of float32, in float64."""
    return rng.uniform(low, high, shape).astype(np.float32).astype(float)


def constants(form: Form, rng: np.random.Generator, width: int) -> dict[str, Any]:
    """Those of neurons, as `cuba_lif` and `coba_lif` take them."""
    cells: dict[str, Any] = {
        "tau": uniform(rng, 5, 30, width),
        "synaptic_taus": tuple(uniform(rng, 1, 12, width) for _ in range(form.receptors)),
        "rest": uniform(rng, -70, -45, width),
        "threshold": uniform(rng, -55, -48, width),
        "reset": uniform(rng, -70, -56, width),
        "refractory": rng.integers(0, 4, width) * form.dt,
    }
    if form.has_conductances:
        cells["reversals"] = tuple(uniform(rng, -80, 0, width) for _ in range(form.receptors))
    return cells


def given_to(form: Form, rng: np.random.Generator, width: int):
    """Currents, their shares, noise, spikes, the events of both sources a step, and the factor of learning."""
    size, steps, of = form.size, form.steps, functools.partial(uniform, rng)
    rates = np.where(rng.random(size) < 0.3, 0.0, of(0, form.poisson, size))
    rates[0] = form.poisson  # so that every draw has as many limits
    rising = np.where(rng.random((steps, width)) < 0.3, 0.0, of(0, 2, steps, width))
    rising[-1, 0] = 2.0
    yield of(0, 12, steps, form.courses or width) if form.has_currents or form.courses else None
    yield of(0, 1, form.courses, width) if form.courses else None
    yield of(0, 9, width) if form.noise else None
    yield rng.random((steps, size)) < 0.1 if form.given else None
    yield rates if form.poisson else None
    yield rising if form.second else None
    yield of(-1, 2, steps) if size % 2 else of(0, 1, 1)


def draw(form: Form, rng: np.random.Generator) -> Drawn:
    """A network whose numbers are those of float32; some of its targets are out of range."""
    size, most = form.size, form.receptors * form.size
    width, of = 1 if form.shared else size, functools.partial(uniform, rng)
    cells = constants(form, rng, width)
    least = 0.0 if form.has_conductances else -BOUNDS[1]
    weights = (
        of(least, BOUNDS[1], form.synapses)
        if form.weights != "int8"
        else rng.integers(0 if form.has_conductances else -127, 128, form.synapses).astype(float)
    )
    if form.weights == "bfloat16":
        weights = np.asarray(jnp.asarray(weights, jnp.bfloat16), float)
    longest = min(form.max_delay, np.iinfo(form.delays).max)
    state = {
        "v": of(-70, -47, size),
        "received": of(least, 2, form.receptors, size),
        "remaining": rng.integers(0, 3, size),
        "sent": rng.random((form.max_delay, size)) < 0.2,
    }
    return Drawn(
        cells,
        np.sort(rng.integers(0, size, form.synapses)),
        rng.integers(0, most + (most > 1), form.synapses),
        weights,
        of(0.005, 0.03, most),
        rng.integers(1, longest + 1, form.synapses),
        state,
        *given_to(form, rng, width),
        float(of(0, 1)),
        rng.integers(0, 2**32, 2, dtype=np.uint32),
        (float(of(5, 30)), float(of(5, 30))),
        rng.random(form.synapses) < 0.7,
        of(0.1, 1, width),
        (of(0, 1, width), of(0, 1, width)),
    )


@functools.cache
def compiled(form: Form):
    """`simulate`, with lists and potentials of all neurons; the kernel where it supports the form."""
    half = range(0, form.size, 2)
    record = Record.of(
        np.arange(form.size), means=[slice(0, form.size), half], every=form.every, received=True
    )
    options = {"steps": form.steps, "capacity": form.size, "record": record}
    return jax.jit(functools.partial(simulate, **options))


def run(form: Form, drawn: Drawn):
    """The results of `simulate`."""
    make = neurons.coba_lif if form.has_conductances else neurons.cuba_lif
    cells = make(dt=form.dt, **drawn.cells)
    ends = np.searchsorted(drawn.sources, np.arange(form.size), side="right").astype(np.int32)
    synapses = Synapses(jnp.asarray(ends), array(drawn.targets, form.targets), form.receptors * form.size)
    weights = array(drawn.weights, form.weights)
    if form.weights == "int8":
        weights = Quantised(weights, array(drawn.scale, jnp.float32))
    delays = array(drawn.delays, form.delays)
    delayed = DelayedSynapses.of(synapses, weights, delays, max_delay=form.max_delay, blocks=form.blocks)
    later = form.modulated == "later"
    state = simulation_state(
        cells, delayed, stdp=form.stdp, eligibility=form.stdp and later, short_term=form.short_term
    )
    given = drawn.state | {"sent": np.packbits(drawn.state["sent"], axis=1, bitorder="little")}
    kinds = {"remaining": "int32", "sent": "uint8"}
    state = state._replace(**{name: array(own, kinds.get(name, form.dtype)) for name, own in given.items()})
    key = jax.random.wrap_key_data(drawn.key)
    return compiled(form)(cells, delayed, state, key, **input_of(form, drawn), **rules_of(form, drawn))


def input_of(form: Form, drawn: Drawn) -> dict[str, Any]:
    """What neurons are given, as options of `simulate`."""
    options: dict[str, Any] = {"poisson": list(sources(form, drawn))}
    if drawn.currents is not None:
        options["currents"] = array(drawn.currents, form.dtype)
    if drawn.shares is not None:
        options["currents"] = options["currents"], array(drawn.shares, form.dtype)
    if drawn.noise is not None:
        options["noise"] = array(drawn.noise, form.dtype)
    if drawn.given is not None:
        steps, ids = np.nonzero(drawn.given)
        options["spikes"] = SpikeTrains.of((steps + 1) * form.dt, ids, dt=form.dt)
    return options


def rules_of(form: Form, drawn: Drawn) -> dict[str, Any]:
    """How synapses change, likewise."""
    options: dict[str, Any] = {}
    if form.modulated:
        options["modulation"] = array(drawn.modulation, form.dtype)
    if form.stdp:
        decay = tuple(float(np.exp(-form.dt / tau)) for tau in drawn.taus)
        bounds = (0.0, BOUNDS[1]) if form.has_conductances else BOUNDS
        plastic = jnp.asarray(drawn.plastic[in_order(form, drawn)])
        kept = KEPT if form.modulated == "later" else None
        options["stdp"] = STDP(decay, (0.1, 0.12), bounds, plastic, kept)
    if form.short_term:
        use, *both = (array(each, form.dtype) for each in (drawn.use, *drawn.recovery))
        options["short_term"] = ShortTerm(use, tuple(both))
    return options


def sources(form: Form, drawn: Drawn):
    """Random input of the first receptor and of the last."""
    per_second = 1000 / form.dt
    if drawn.rates is not None:
        yield PoissonInput.of(rate=drawn.rates * per_second, weight=drawn.event, dt=form.dt)
    if drawn.rising is not None:
        last = form.receptors - 1
        yield PoissonInput.of(rate=drawn.rising * per_second, weight=0.5, dt=form.dt, receptor=last)


def random_words(key: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011) of two counters: both words, ``[2, counters]``."""
    keys = np.array([key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)], np.uint32)
    x, y = (first + keys[0]).astype(np.uint32), (second + keys[1]).astype(np.uint32)
    for group in range(5):
        for bits in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y
            y = ((y << np.uint32(bits)) | (y >> np.uint32(32 - bits))) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return np.stack([x, y])


def words_of_steps(key: np.ndarray, steps: int, size: int, use: int) -> np.ndarray:
    """The random words of each step and neuron for a use, ``[steps, neurons]``."""
    own = np.asarray(jax.random.bits(jax.random.wrap_key_data(key), (2,), jnp.uint32))
    uses = np.full(steps, use, np.uint32)
    first, second = random_words(own, np.arange(steps, dtype=np.uint32), uses)[..., None]
    x = np.arange(size, dtype=np.uint32) * np.uint32(0x9E3779B9) + first
    x = ((x ^ (x >> np.uint32(17))) * np.uint32(0xED5AD4BB)) ^ second
    x = (x ^ (x >> np.uint32(11))) * np.uint32(0xAC4C1B51)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x31848BAB)
    return x ^ (x >> np.uint32(14))


def poisson_counts(words: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """The events of each step and neuron: random words that stand for so many or fewer are exceeded."""
    counts, term = np.zeros(words.shape, int), np.exp(-rates)
    total, count = term + np.zeros(words.shape), 0
    while np.any(reached := words.astype(float) >= np.maximum(np.rint(total * 2.0**32), 1)):
        counts, count = counts + reached, count + 1
        term = term * rates / count
        total = total + term
    return counts


def check_simulation(form: Form, seed: int) -> None:
    """All results of one network are those of the program."""
    with jax.enable_x64(form.dtype == "float64"):
        drawn = draw(form, np.random.default_rng(seed))
        out, state = run(form, drawn)
        out, state = jax.tree.map(np.asarray, (out, state))
    spikes = np.zeros((form.steps, form.size + 1), bool)
    np.put_along_axis(spikes, out.spikes.ids.astype(int), True, axis=1)
    spikes = spikes[:, : form.size]
    np.testing.assert_array_equal(out.spikes.num_spikes, spikes.sum(axis=1))
    np.testing.assert_array_equal(out.counts, spikes.sum(axis=0))
    _Program(form, drawn).check(spikes, out, state)


class _Program:
    """The network in float64, which is told who spikes."""

    def __init__(self, form: Form, drawn: Drawn) -> None:
        self.form, self.drawn = form, drawn
        each = lambda value: np.broadcast_to(value, (form.size,))  # noqa: E731
        self.cells = {name: each(own) for name, own in drawn.cells.items() if not isinstance(own, tuple)}
        self.taus = np.array([each(own) for own in drawn.cells["synaptic_taus"]])
        self.exist = drawn.targets < form.receptors * form.size
        self.weights = drawn.weights.copy()
        if form.weights == "int8":
            self.weights = self.weights * drawn.scale[np.minimum(drawn.targets, len(drawn.scale) - 1)]
        self.v, self.received, self.remaining = (
            drawn.state[name].copy() for name in ("v", "received", "remaining")
        )
        # Of the last steps, the earliest first: who spiked, what the spikes released, and the traces that they found.
        self.sent = drawn.state["sent"].copy()
        self.released, self.before = np.zeros((2, form.max_delay, form.size))
        self.after = np.zeros(form.size)
        self.events = np.zeros((form.steps, form.receptors, form.size))
        kinds = (drawn.rates, drawn.event, 0), (drawn.rising, 0.5, -1)
        present = [kind for kind in kinds if kind[0] is not None]
        for use, (rates, weight, receptor) in enumerate(present):
            words = words_of_steps(drawn.key, form.steps, form.size, use)
            self.events[:, receptor] += weight * poisson_counts(words, rates)
        self.current = np.zeros((form.steps, form.size))
        if drawn.currents is not None:
            self.current += drawn.currents if drawn.shares is None else drawn.currents @ drawn.shares
        if drawn.noise is not None:
            words = words_of_steps(drawn.key, form.steps, form.size, 2**32 - 1)
            self.current += drawn.noise * (np.vectorize(int.bit_count)(words.astype(object)) - 16) / 8**0.5
        self.eligibility = np.zeros(form.synapses)
        self.used, self.available = np.zeros(form.size), np.ones(form.size)

    def check(self, spikes: np.ndarray, out, state: State) -> None:
        """The membranes of all steps, and everything that is left."""
        for t, own in enumerate(spikes):
            self.step(t, own)
            self.check_record(t, out.recorded)
        sent = np.unpackbits(state.sent, axis=1, count=self.form.size, bitorder="little")
        np.testing.assert_array_equal(sent, self.sent)
        self.same("received", state.received, self.received)
        np.testing.assert_array_equal(state.remaining, self.remaining)
        if self.form.stdp:
            order = in_order(self.form, self.drawn)
            self.same("weights", out.weights, self.weights[order])
            if state.traces.eligibility is not None:
                self.same("eligibility", state.traces.eligibility, self.eligibility[order])
            self.same("traces before", state.traces.before, self.before)
            self.same("traces after", state.traces.after, self.after)
        if self.form.short_term:
            self.same("short_term", np.stack(state.short_term), np.stack([self.used, self.available]))
            self.same("released", state.released, self.released)

    def check_record(self, t: int, recorded) -> None:
        """Neurons, the mean of all and that of every other one."""
        sample, rest = divmod(t + 1, self.form.every)
        if rest:
            return
        for name, found, own in (("v", recorded.v, self.v), ("g", recorded.received, self.received)):
            means = np.stack([own.mean(-1), own[..., ::2].mean(-1)], axis=-1)
            self.same(name, found[sample - 1], np.concatenate([own, means], axis=-1))

    def tolerance(self, of: np.ndarray) -> float:
        return TOLERANCE[self.form.dtype] * max(1.0, float(np.max(abs(of), initial=0)))

    def same(self, name: str, got: np.ndarray, expected: np.ndarray) -> None:
        error = np.max(abs(got - expected), initial=0)
        assert error <= self.tolerance(expected), f"{name} is off by {error}"

    def step(self, t: int, spikes: np.ndarray) -> None:
        """One step, in which these neurons spike."""
        form, drawn = self.form, self.drawn
        arrived, arrives = self.arrived()
        g = self.received + arrived + self.events[t]
        busy = self.remaining > 0
        self.v = np.where(busy, self.v, self.integrated(g, self.current[t]))
        distance = np.where(busy, -np.inf, self.v - self.cells["threshold"])
        forced = np.zeros(form.size, bool) if drawn.given is None else drawn.given[t]
        assert not np.any(spikes & busy & ~forced), "a refractory neuron spikes"
        assert np.all(spikes[forced]), "a given spike is missing"
        wrong = (spikes != (distance > 0)) & (abs(distance) > self.tolerance(self.v)) & ~forced
        assert not np.any(wrong), f"neuron {np.flatnonzero(wrong)[0]} in step {t} at {distance[wrong][0]}"
        self.v = np.where(spikes, self.cells["reset"], self.v)
        steps = np.rint(self.cells["refractory"] / form.dt).astype(int)
        self.remaining = np.where(spikes, steps, self.remaining - busy)
        self.received = np.exp(-form.dt / self.taus) * g
        self.learn(t, arrives, spikes)
        self.sent = np.concatenate([self.sent[1:], spikes[None]])

    def integrated(self, g: np.ndarray, current) -> np.ndarray:
        """The membranes after a step: the exact solution, or exponential Euler."""
        tau, rest, dt = self.cells["tau"], self.cells["rest"], self.form.dt
        if self.form.has_conductances:
            pulls = np.array([np.broadcast_to(own, g[0].shape) for own in self.drawn.cells["reversals"]])
            end = (rest + current + np.sum(g * pulls, axis=0)) / (1 + g.sum(axis=0))
            return end + (self.v - end) * np.exp(-dt / tau * (1 + g.sum(axis=0)))
        own, other = np.exp(-dt / tau), np.exp(-dt / self.taus)
        added = self.taus * (other - own) / (self.taus - tau)
        return own * self.v + (1 - own) * (rest + current) + np.sum(added * g, axis=0)

    def arrived(self) -> tuple[np.ndarray, np.ndarray]:
        """What receptors receive in a step, and through which synapses a spike arrives."""
        form, drawn = self.form, self.drawn
        row = form.max_delay - drawn.delays, drawn.sources
        arrives = self.sent[row] & self.exist
        strength = self.weights * self.released[row] if form.short_term else self.weights
        sums = np.zeros(form.receptors * form.size)
        np.add.at(sums, drawn.targets[arrives], strength[arrives])
        return sums.reshape(form.receptors, form.size), arrives

    def learn(self, t: int, arrives: np.ndarray, spikes: np.ndarray) -> None:
        form, drawn = self.form, self.drawn
        if form.stdp:
            first, second = (np.exp(-form.dt / tau) for tau in drawn.taus)
            receivers, after = drawn.targets % form.size, second * self.after
            fired = spikes[receivers] & self.exist
            change = 0.1 * self.before[form.max_delay - drawn.delays, drawn.sources] * fired
            change = change - 0.12 * after[receivers] * arrives
            moves = (arrives | fired) & drawn.plastic
            least = 0.0 if form.has_conductances else BOUNDS[0]
            factor = np.broadcast_to(drawn.modulation, form.steps)[t] if form.modulated else 1.0
            if form.modulated == "later":
                moves = moves | (self.eligibility != 0)
                change = np.where(drawn.plastic, KEPT * self.eligibility + change, 0)
                self.eligibility = change
            changed = np.clip(self.weights + factor * change, least, BOUNDS[1])
            self.weights = np.where(moves, changed, self.weights)
            now = first * (self.before[-1] + self.sent[-1])
            self.before, self.after = np.concatenate([self.before[1:], now[None]]), after + spikes
        if form.short_term:
            raised = self.used + drawn.use * (1 - self.used)
            release = np.where(spikes, raised * self.available, 0.0)
            self.released = np.concatenate([self.released[1:], release[None]])
            self.available = np.where(spikes, (1 - raised) * self.available, self.available)
            self.used = drawn.recovery[1] * np.where(spikes, raised, self.used)
            self.available = 1 - drawn.recovery[0] * (1 - self.available)


def in_order(form: Form, drawn: Drawn) -> np.ndarray:
    """The synapses that exist as `DelayedSynapses` has them: by block of receivers, sender and delay."""
    exist = np.flatnonzero(drawn.targets < form.receptors * form.size)
    keys = drawn.delays, drawn.sources, drawn.targets % form.size % form.blocks
    return exist[np.lexsort([key[exist] for key in keys])]
