"""Spikes whose times have derivatives: against the adjoint equations by hand, and against continuous time."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

import snnjax
from snnjax import losses, metrics, neurons, train
from tests.errors.refusals import refusals
from tests.neurons import event_driven
from tests.neurons.event_driven import DURATION, MEMBRANE_TIME, SYNAPSE_TIME
from tests.numbers import array

MOVING = {"gradient": "spike_times", "detach_reset": False}
KEY = jax.random.key(0)


def moving(decay=0.9, synapse_decay=0.8, **options):
    """Neurons without gains."""
    given = {"normalize": False, "normalize_synapse": False, **MOVING, **options}
    return neurons.current_lif(decay, 1.0, synapse_decay, **given)


def recurrent(neuron, inputs, width):
    connection = snnjax.dense(width, bias=False)
    return snnjax.network(inputs, [snnjax.layer(connection, neuron, recurrent=True).named("own")])


def by_hand(weights, x, own, q, decay, synapse_decay, min_rise):
    """The gradients of ``sum(q sent)`` by weights and threshold, and how many rows of recurrent weights they need.

    Backwards in time, with the cotangents U, A and X of the membrane after its reset and before it, and of the current;
    a spike needs one row, with the difference of the cotangents of two steps.
    """
    w_in, w_rec = weights
    spikes, membranes = own
    steps, width = spikes.shape
    d_in, d_rec, d_threshold, rows = np.zeros_like(w_in), np.zeros_like(w_rec), 0.0, 0
    after, current, later = np.zeros(width), np.zeros(width), np.zeros(width)  # U_t, X_{t + 1}, X_{t + 2}
    reset = membranes - spikes
    for t in range(steps - 1, -1, -1):
        before = reset[t - 1] if t else np.zeros(width)
        fired = np.flatnonzero(spikes[t] * (before <= 1))
        rows += len(fired)
        next_q = q[t + 1] if t + 1 < steps else np.zeros(width)
        moves = np.zeros(width)
        moves[fired] = (next_q - q[t])[fired] + w_rec[fired] @ (later - current) - (1 - decay) * after[fired]
        rise = np.maximum(membranes[t] - before, min_rise)
        fraction = np.clip((1 - before) / rise, 0, 1)
        d_threshold += np.sum(moves / rise - spikes[t] * after)
        membrane = after - moves * fraction / rise
        after = decay * membrane - moves * (1 - fraction) / rise
        current, later = membrane + synapse_decay * current, current
        d_in += np.outer(x[t], current)
        if t:
            d_rec += np.outer(spikes[t - 1], current)
    return (d_in, d_rec, d_threshold), rows


def test_gradients_are_those_of_the_adjoint_equations() -> None:
    with jax.enable_x64(True):
        rng, steps, inputs, width = np.random.default_rng(0), 200, 12, 8
        w_in, w_rec = rng.normal(0.1, 0.2, (inputs, width)), rng.normal(0, 0.2, (width, width))
        x, q = (rng.random((steps, inputs)) < 0.05) * 1.0, rng.normal(size=(steps, width))
        net = recurrent(moving(0.97, 0.9, min_rise=0.1, learn_threshold=True), inputs, width)
        params = net.init(KEY)

        def loss(w_in, w_rec, threshold):
            given = {
                "own/connection": params["own/connection"]._replace(weights=w_in),
                "own/recurrent": params["own/recurrent"]._replace(weights=w_rec),
                "own/neuron": params["own/neuron"]._replace(threshold=jnp.broadcast_to(threshold, width)),
            }
            ran = net.apply(given, None, jnp.asarray(x)[:, None], record="membranes")[0]
            return jnp.sum(ran.output[:, 0] * q), (ran.output[:, 0], ran.membranes["own/neuron"][:, 0])

        gradients, own = jax.grad(loss, (0, 1, 2), has_aux=True)(
            jnp.asarray(w_in), jnp.asarray(w_rec), jnp.float64(1.0)
        )
        expected, rows = by_hand((w_in, w_rec), x, [np.asarray(each) for each in own], q, 0.97, 0.9, 0.1)
        assert rows > 80
        chex.assert_trees_all_close(gradients, tuple(map(jnp.asarray, expected)), rtol=1e-12, atol=1e-12)


@functools.cache
def gradient_in_steps(steps: int):
    """The gradient of `event_driven.loss_of` by a circuit, in so many steps: of (circuit, inputs, w_out)."""
    dt = DURATION / steps
    decay, synapse_decay = np.exp(-dt / MEMBRANE_TIME), np.exp(-dt / SYNAPSE_TIME)
    gain = SYNAPSE_TIME * (synapse_decay - decay) / (SYNAPSE_TIME - MEMBRANE_TIME)
    longest = int(8 / dt) + 2
    delayed = snnjax.axonal(longest), snnjax.dense(3, bias=False)
    own = moving(float(decay), float(synapse_decay), min_rise=1e-9)
    items = [delayed[0].named("delay"), snnjax.layer(delayed[1], own, recurrent=delayed).named("own")]
    net = snnjax.network(4, items)
    start = net.init(KEY)

    def loss(given: event_driven.Circuit, x: jax.Array, w_out: jax.Array) -> jax.Array:
        weights = {"own/connection": given.w_in, "own/recurrent/dense_0": given.w_rec}
        # Recurrent spikes take one step in any case.
        delays = {"delay": given.delay_in / dt, "own/recurrent/axonal_0": given.delay / dt - 1}
        params = {name: start[name]._replace(weights=gain * each) for name, each in weights.items()}
        for name, delay in delays.items():
            params[name] = start[name]._replace(raw_delay=jax.scipy.special.logit(delay / longest))
        spikes = net.apply(params, None, x)[0].output[:, 0]
        logits = 4 * (event_driven.worth(np.arange(steps) * dt) @ spikes @ w_out)
        return jax.nn.logsumexp(logits) - logits[0]

    return jax.jit(jax.grad(loss))


def relative_errors(seed: int) -> list[list[float]]:
    """How far gradients are from continuous time, relative to its norm, at each dt: all of them, those of delays."""
    circuit, inputs, w_out = event_driven.example(seed)
    truth, errors = event_driven.gradient(circuit, inputs, w_out), []
    for steps in (200, 800, 3200):
        x = np.zeros((steps, 1, 4))
        for time, j in inputs:
            x[int(time * steps / DURATION), 0, j] += 1
        found = gradient_in_steps(steps)(
            event_driven.Circuit(*map(jnp.asarray, circuit)), x, jnp.asarray(w_out)
        )

        def error(*fields: str, found=found) -> float:
            own, given = (
                np.concatenate([np.ravel(getattr(each, name)) for name in fields]) for each in (found, truth)
            )
            return float(np.linalg.norm(own - given) / np.linalg.norm(given))

        errors.append([error(*circuit._fields), error("delay_in", "delay")])
    return errors


def test_gradients_converge_to_those_of_continuous_time() -> None:
    """At steps of 0.5, 0.125 and 0.031 ms; the medians of five networks, each of first order in the step.

    What is left are spikes that share a step with an arrival, which bends the membrane.
    """
    with jax.enable_x64(True):
        errors = np.median([relative_errors(seed) for seed in range(5)], axis=0)
    assert (errors < np.array([[0.45], [0.08], [0.03]])).all(), errors


def test_spikes_and_states_are_those_of_a_surrogate() -> None:
    rng = np.random.default_rng(1)
    x = array(rng.random((50, 3, 6)) < 0.2, jnp.float32)
    plain = moving(gradient="surrogate", learn_threshold=True)
    results = []
    for neuron in (plain, moving(learn_threshold=True)):
        net = recurrent(neuron, 6, 9)
        params = jax.tree.map(lambda leaf: 2 * leaf, net.init(KEY))
        out, state = net.apply(params, None, x, lengths=jnp.array([50, 30, 0]), record="membranes")
        own = getattr(state["own/neuron"], "neuron", state["own/neuron"])
        results.append((out.output, out.membranes, out.activity, own))
    assert jnp.sum(results[0][0]) > 50
    chex.assert_trees_all_equal(*results)


def test_activity_keeps_its_surrogate() -> None:
    """Silent neurons, whose spikes have no times, have a gradient by which they become active."""
    gradients = []
    for neuron in (moving(gradient="surrogate", detach_reset=True), moving()):
        net = snnjax.network(4, [snnjax.layer(5, neuron).named("own")])
        params = jax.tree.map(lambda leaf: 0.01 * leaf, net.init(KEY))

        def activity(params, net=net):
            out, _ = net.apply(params, None, jnp.ones((20, 1, 4)))
            return losses.activity_lower_bound(out.activity, 0.1), out.output

        gradient, spikes = jax.grad(activity, has_aux=True)(params)
        assert jnp.sum(spikes) == 0
        gradients.append(gradient)
    assert jnp.any(gradients[1]["own/connection"].weights != 0)
    chex.assert_trees_all_close(*gradients, rtol=1e-5)


def test_networks_say_why_they_are_scanned() -> None:
    assert "the times of the spikes of current_lif have derivatives" in str(recurrent(moving(), 2, 3).paths)


def fitted(loss):
    net = snnjax.network(2, [snnjax.layer(3, moving())], snnjax.leaky_readout(2))
    return train.make_train_step(net, loss, None, train.TrainConfig())


def shared():
    net = snnjax.network(2, [snnjax.layer(3, moving())], snnjax.leaky_readout(2))
    given = net.init(KEY), jnp.ones((4, 1, 2)), jnp.array([0])
    return metrics.gradient_share(net, *given, loss=losses.cross_entropy_sum)


test_refusals = refusals(
    {
        "gradient_share: `layer_0/neuron` must have spikes with a surrogate, got times with derivatives of "
        "current_lif. Such layers have no lists.": shared,
        "current_lif: `gradient` must be 'surrogate' or 'spike_times', got 'exact'. Choose one of these.": lambda: (
            neurons.current_lif(gradient="exact")
        ),
        "current_lif: `min_rise` must be positive and finite, got 0. Try 0.25.": lambda: moving(min_rise=0),
        "current_lif: `min_rise` must be positive and finite, got inf. Try 0.25.": lambda: moving(
            min_rise=float("inf")  # by which all derivatives would be 0
        ),
        "current_lif: `min_rise` must be given with gradient='spike_times' alone, got 0.1. Leave it out.": lambda: (
            neurons.current_lif(min_rise=0.1)
        ),
        "current_lif: `detach_reset` must be False for gradient='spike_times', got True: its reset moves with "
        "a spike. Pass detach_reset=False, or gradient='surrogate'.": lambda: moving(detach_reset=True),
        "current_lif: `reset` must be 'subtract' for gradient='spike_times', got 'zero': a reset to zero loses what "
        "the membrane rose since the crossing. Pass reset='subtract', or gradient='surrogate'.": lambda: (
            moving(reset="zero")
        ),
        "current_lif: `inclusive` must be False for gradient='spike_times', got True: a line that ends at the "
        "threshold does not cross it. Pass inclusive=False, or gradient='surrogate'.": lambda: moving(
            inclusive=True
        ),
        "layer: `capacity` must be None for spikes whose times have derivatives, got 4: lists forget the spikes of "
        "the step before. Leave it out, or pass gradient='surrogate' to the neuron.": lambda: snnjax.layer(
            8, moving(), capacity=4
        ),
        "refractory: `neuron` must have spikes with a surrogate, got times with derivatives. "
        "Make it with gradient='surrogate'.": lambda: neurons.refractory(moving(), 2),
        "lif: `gradient` must be one of its arguments, got 'spike_times'. Use neurons.current_lif: without a "
        "synaptic current, spikes fall on inputs.": lambda: neurons.lif(gradient="spike_times"),
        "fit: `loss` must be a sum over time for the spike times of 'layer_0/neuron', got one of single steps: these "
        "jump where inputs arrive. Use cross_entropy_sum with weights of the steps.": lambda: fitted(
            losses.cross_entropy_max
        ),
    }
)
