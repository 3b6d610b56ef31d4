"""Random online learning in float64: each rule against back-propagation where the two are equal in theory."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import dense, layer, leaky_readout, losses, network, neurons, online, spiking_readout
from snnjax._neuron_table import SURROGATES
from snnjax._types import Params, Signal
from snnjax.blocks.linear import LinearParams
from snnjax.data import Batch
from snnjax.graph.layers import layers_of
from snnjax.train.online import online_gradients
from tests.numbers import Pick, array, assert_close, picker
from tests.ops.common import jit

# Relative to the largest entry of a gradient: sums of a few hundred terms in float64.
TOLERANCE = 1e-9
PADDING = 3  # steps
RULES = ("eprop", "ostl", "ottt", "truncated", "recurrent", "padded eprop", "padded ostl", "padded ottt")


class Form(NamedTuple):
    """The static configuration: a rule, and a network for which it is exact."""

    rule: str
    net: Any
    given: str  # the dtype of the inputs
    steps: int
    batch: int
    readout: Any = None  # before it was fitted to a network


def random_form(rng: np.random.Generator) -> Form:
    """Any form."""
    pick = picker(rng)
    rule = pick(*RULES)
    name = rule.removeprefix("padded ")
    # OSTL and OTTT know no memory of the readout; its membrane is then the last layer.
    readout = leaky_readout(2, decay=pick(0.3, 0.9)) if name != "ostl" and name != "ottt" else None
    capacity = pick(None, None, 2)
    if readout is None:
        layers, readout = [], spiking_readout(dense(4, bias=pick(True, False)), _neuron(pick, name))
    else:
        width = pick(1, 4, 7)
        own = {"recurrent": name == "recurrent", "capacity": capacity and min(capacity, width)}
        layers = [layer(dense(width, bias=pick(True, False)), _neuron(pick, name), **own)]
        if name == "truncated":
            layers.append(layer(3, _neuron(pick, name), recurrent=pick(True, False)))
    given = pick("float64", "float32", "bfloat16", "float16", "uint8", "bool")
    return Form(rule, network(pick(1, 5), layers, readout), given, pick(1, 4, 9), pick(1, 3), readout)


def _neuron(pick: Pick, rule: str) -> Any:
    switches: Any = {
        "surrogate": pick(*SURROGATES),
        # What OTTT's traces ignore: a reset to zero ends the influence of earlier inputs.
        "reset": pick("subtract", "none") if rule == "ottt" else pick("subtract", "zero", "none"),
        "learn_threshold": pick(True, False),
    }
    if rule == "ottt":
        return neurons.lif(pick(0.2, 0.9), **switches)
    switches["detach_reset"] = pick(True, False)
    lif = functools.partial(neurons.lif, (0.3, 0.95), learn_decay=pick(True, False))
    adaptive = neurons.adaptive_lif if pick(True, False) else neurons.current_lif
    model = pick(lif, neurons.adlif, neurons.se_adlif, adaptive)
    if model is neurons.se_adlif and switches["reset"] == "zero":  # which it does not have
        switches["reset"] = "none"
    return model(**switches)


def squared(output, targets):
    return jnp.mean((output - targets) ** 2)


def arguments(form: Form, seed: int) -> tuple[Any, ...]:
    """Parameters, inputs, targets, lengths, labels and derivatives of a penalty."""
    rng, net = np.random.default_rng(seed), form.net
    params = net.init(jax.random.key(seed), dtype=jnp.float64)
    scale = rng.choice([0.5, 2.0, 6.0])
    spiking = [own for own in layers_of("random_online", net) if not own.is_readout]
    for name in (own.connection.name for own in spiking):
        params[name] = params[name]._replace(weights=scale * params[name].weights)
    inputs = rng.integers(1, 4, (form.steps, form.batch, net.num_inputs))
    inputs = np.where(rng.random(inputs.shape) < 0.5, inputs, 0)
    targets = rng.random((form.steps, form.batch, net.num_outputs))
    lengths = rng.integers(0, form.steps + 1, form.batch)
    pulls = {own.neuron.name: jnp.asarray(rng.normal(size=(form.batch, *own.out_shape))) for own in spiking}
    labels = rng.integers(0, net.num_outputs, form.batch)
    return (
        params,
        jnp.asarray(inputs).astype(form.given),
        jnp.asarray(targets),
        array(lengths, jnp.int32),
        array(labels, jnp.int32),
        pulls,
    )


def _stats(form: Form):
    """The constants that are drawn and not learned, by the names of the layers."""
    return form.net.initial_stats(jax.random.key(0))


def _online(form: Form, params: Params, inputs: Signal, targets):
    """The sum of the gradients of all steps, and the outputs."""
    make = {
        "truncated": lambda net, loss: online.truncated(net, loss, form.steps),
        "recurrent": online.eprop,
    }
    learner = make.get(form.rule, getattr(online, form.rule, None))(form.net, squared)

    def step(carry, xs):
        carry, gradients, output = learner.step(params, carry, *xs)
        return carry, (gradients, output)

    start = learner.init(params, form.batch, _stats(form))
    _, (gradients, outputs) = jax.lax.scan(step, start, (inputs, targets))
    return jax.tree.map(lambda each: jnp.sum(each, axis=0), gradients), outputs


def _backwards(form: Form, params: Params, inputs: Signal, targets):
    """The same by back-propagation through time."""

    def loss(params: Params):
        outputs = form.net.apply(params, None, inputs, stats=_stats(form))[0].output
        return sum(squared(*each) for each in zip(outputs, targets, strict=True)), outputs

    return jax.grad(loss, has_aux=True)(params)


def _without_feedback(form: Form, params: Params, inputs: Signal, targets):
    """e-prop's definition in a recurrent layer: its own earlier spikes are inputs that do not depend on parameters."""
    hidden, _ = layers_of("random_online", form.net)
    connection, neuron = hidden.connection.name, hidden.neuron.name
    back, block = hidden.returning[1].name, hidden.neuron.block
    (weights, bias), (feedback, _) = params[connection], params[back]
    options = {"stats": _stats(form), "record": neuron}
    sent = form.net.apply(params, None, inputs, **options)[0].recorded[neuron]
    sent = sent.to_dense() if block.capacity is not None else sent
    sent = jnp.concatenate([jnp.zeros_like(sent[:1]), sent[:-1]])
    count, (width,) = form.net.num_inputs, hidden.out_shape
    own = layer(dense(width, bias=bias is not None), block.neuron, capacity=block.capacity)
    forward = form._replace(net=network(count + width, [own], form.readout))
    merged = LinearParams(jnp.concatenate([weights, feedback]), bias)
    all_inputs = jnp.concatenate([inputs.astype(sent.dtype), sent], axis=-1)
    given = {**params, connection: merged}
    del given[back]
    found, outputs = _backwards(forward, given, all_inputs, targets)
    both = found[connection].weights
    found[connection] = found[connection]._replace(weights=both[:count])
    return {**found, back: LinearParams(both[count:])}, outputs


def _padded(form: Form, given: tuple[Any, ...]):
    """The gradient of a batch whose steps past the end hold 100, by the rule and by back-propagation of means."""
    params, inputs, _, lengths, labels, pulls = given
    rule = form.rule.removeprefix("padded ")
    inside = jnp.arange(form.steps)[:, None] < lengths[None, :]
    rows = jnp.where(inside[..., None], inputs, jnp.ones_like(inputs))
    rows = jnp.concatenate([rows, jnp.ones((PADDING, *rows.shape[1:]), rows.dtype)])
    learn = online_gradients(form.net, losses.cross_entropy_sum, rule)
    ours = learn(params, Batch(rows, labels, lengths), lengths, pulls, _stats(form))

    def loss(params: Params):
        out = form.net.apply(params, None, inputs, stats=_stats(form), lengths=lengths)[0]
        each = -jax.nn.log_softmax(out.output)[:, jnp.arange(form.batch), labels]
        means = jnp.sum(jnp.where(inside, each, 0), axis=0) / jnp.maximum(lengths, 1)
        pulled = [jnp.sum(pull * out.activity[name]) for name, pull in pulls.items()]
        return jnp.mean(means) + sum(pulled)

    return ours, jax.grad(loss)(params)


@functools.cache
def compiled(form: Form):
    """Two results that are to be equal, of `arguments`."""

    def both(*given):
        if form.rule.startswith("padded"):
            return _padded(form, given)
        exact = _without_feedback if form.rule == "recurrent" else _backwards
        return _online(form, *given[:3]), exact(form, *given[:3])

    return jit(both)


def check_online(form: Form, seed: int) -> None:
    """The rule's gradients are those of back-propagation; OTTT has none of neurons."""
    with jax.enable_x64(True):
        ours, theirs = jax.tree.map(np.asarray, compiled(form)(*arguments(form, seed)))
    if form.rule.endswith("ottt"):
        ours, theirs = (_weights_alone(each) for each in (ours, theirs))
    assert_close(ours, theirs, of_largest=TOLERANCE)


def _weights_alone(found):
    """The gradients without those of neurons."""
    if isinstance(found, tuple):
        return _weights_alone(found[0]), found[1]
    return [
        getattr(own, "recurrent", own if isinstance(own, LinearParams) else None) for own in found.values()
    ]
