"""Every error message of every op."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    Connection,
    LIFLayer,
    LIFReadout,
    SparseSpikes,
    Synapses,
    delay_spikes,
    lif_network,
    lif_network_state,
    lif_step,
    pool_spikes,
    select_spikes,
    spike,
    spike_conv,
    spike_matmul,
    spike_sparse_matmul,
)
from snnjax._check import type_words
from snnjax._types import Signal, State
from snnjax.surrogates import Surrogate
from tests.errors.refusals import refusals

V = jnp.zeros((2, 3))
SURROGATES = (
    "be 'superspike', 'arctan', 'triangle', 'gaussian', 'sigmoid', 'boxcar' or 'straight_through', got 'step'. "
    "Choose one of these."
)
LISTS = SparseSpikes.from_ids(jnp.zeros((2, 4), int), 3)
BUILD = "Build it with SparseSpikes.from_ids or from_dense."
X = jnp.zeros((5, 2, 4))
W_CONV = jnp.zeros((3, 1, 2))
SYNAPSES, W_SPARSE = Synapses.from_mask(np.ones((3, 2), bool)), jnp.zeros(6)
LAYER = LIFLayer(jnp.zeros((4, 3)), decay=0.5)
DELAYED = LAYER._replace(connection=Connection(max_delay=2), delays=0.5)
RECURRENT = LAYER._replace(recurrent=jnp.zeros((3, 3)))
READOUT = LIFReadout(jnp.zeros((3, 2)), decay=0.5)
STATE = lif_network_state(2, [LAYER], READOUT)
FIT = "Match its shape to the layer below and to its neurons."
OWN = "Use lif_network_state, or the state from an earlier call of the same network."
NEURONS = "Pass one value, or one per neuron."


def net(
    layer: LIFLayer = LAYER, readout: LIFReadout = READOUT, state: State = None, x: Any = X, **options: Any
) -> Any:
    return lif_network(x, [layer], readout, state, **options)


def of_layer(**arrays: Any) -> Any:
    return STATE._replace(layers=(STATE.layers[0]._replace(**arrays),))


def conv(spikes: Signal = X[0, :, :], weights: Any = W_CONV, shape: Any = (4, 1), **options: Any) -> Any:
    return spike_conv(spikes, weights, shape=shape, **options)


def delay(spikes: Signal = X, delays: Any = 0.5, pending: Any = None, **options: Any) -> Any:
    return delay_spikes(spikes, delays, pending, **{"max_delay": 2, **options})


def lists_with(**leaves: Any) -> SparseSpikes:
    given = {
        name: getattr(LISTS, name)
        for name in ("ids", "values", "num_spikes", "num_listed", "num_dropped", "num_neurons")
    }
    return SparseSpikes(**{**given, **leaves})


SMALL_OPS = {
    "spike: `x` must have a floating-point dtype, got int32. Cast it with x.astype(jnp.float32).": lambda: (
        spike(jnp.zeros(2, int))
    ),
    f"spike: `surrogate` must {SURROGATES}": lambda: spike(V, "step"),
    f"surrogates.Surrogate: `name` must {SURROGATES}": lambda: Surrogate("step", 1.0),
    "arctan: `slope` must be a positive number, got 0.0. Try slope=10.0.": lambda: Surrogate("arctan", 0.0),
    "lif_step: `v` must have a floating-point dtype, got int32. "
    "Cast it with v.astype(jnp.float32).": lambda: lif_step(V.astype(int), V, 0.5, 1.0),
    "lif_step: `v` must have a neuron axis, got a scalar. Pass v[neurons].": lambda: lif_step(
        V[0, 0], V[0, 0], 0.5, 1.0
    ),
    "lif_step: `current` must have shape [..., neurons] = [2, 3], got [3]. Give it the shape of v.": lambda: (
        lif_step(V, V[0], 0.5, 1.0)
    ),
    "lif_step: `v` must have dtype float32, the accumulation dtype of bfloat16, got bfloat16. Cast it "
    "with v.astype(jnp.float32).": lambda: lif_step(V.astype(jnp.bfloat16), V.astype(jnp.bfloat16), 0.5, 1.0),
    f"lif_step: `decay` must be a scalar or have shape [neurons] = [3], got [2]. {NEURONS}": lambda: lif_step(
        V, V, jnp.ones(2), 1.0
    ),
    f"lif_step: `threshold` must be a scalar or have shape [neurons] = [3], got [2, 3]. {NEURONS}": lambda: (
        lif_step(V, V, 0.5, V)
    ),
    f"lif_step: `gain` must be a scalar or have shape [neurons] = [3], got [4]. {NEURONS}": lambda: lif_step(
        V, V, 0.5, 1.0, jnp.ones(4)
    ),
    f"lif_step: `surrogate` must {SURROGATES}": lambda: lif_step(V, V, 0.5, 1.0, surrogate="step"),
    "lif_step: `reset` must be 'subtract', 'zero' or 'none', got 'hard'. Choose one of these.": lambda: (
        lif_step(V, V, 0.5, 1.0, reset="hard")
    ),
    "lif_step: `reset_time` must be 'before_decay', 'after_decay' or 'immediate', got 'later'. "
    "Choose one of these.": lambda: lif_step(V, V, 0.5, 1.0, reset_time="later"),
    "lif_step: `spike_from` must be 'new' or 'old', got 'both'. Choose one of these.": lambda: lif_step(
        V, V, 0.5, 1.0, spike_from="both"
    ),
    "lif_step: `spike_from` must be 'new' if reset_time is 'immediate', got 'old'. Use "
    "reset_time='after_decay' with "
    "the old membrane's spikes.": lambda: lif_step(V, V, 0.5, 1.0, reset_time="immediate", spike_from="old"),
    **{
        f"lif_step: `{switch}` must be True or False, got 'no'. Choose one of these.": functools.partial(
            lif_step, V, V, 0.5, 1.0, **{switch: "no"}
        )
        for switch in ("detach_reset", "inclusive")
    },
    "lif_step: `implementation` must be None or 'reference' for an op without a CPU kernel, got 'cpu'. "
    "Leave it None for the reference.": lambda: lif_step(V, V, 0.5, 1.0, implementation="cpu"),
    **{
        f"{op}: `implementation` must be None, 'reference', 'cpu', 'gpu' or 'composed', got 'tpu'. "
        "Choose one of these.": call
        for op, call in (
            ("lif_step", lambda: lif_step(V, V, 0.5, 1.0, implementation="tpu")),
            ("select_spikes", lambda: select_spikes(V, 1.0, 0.9, capacity=1, implementation="tpu")),
            ("spike_matmul", lambda: spike_matmul(LISTS, V.T, implementation="tpu")),
            ("delay_spikes", lambda: delay(implementation="tpu")),
            ("lif_network", lambda: net(implementation="tpu")),
        )
    },
    "select_spikes: `v` must have a floating-point dtype, got int32. "
    "Cast it with v.astype(jnp.float32).": lambda: select_spikes(V.astype(int), 1.0, 0.9, capacity=1),
    "select_spikes: `v` must have a neuron axis, got a scalar. Pass v[neurons].": lambda: select_spikes(
        V[0, 0], 1.0, 0.9, capacity=1
    ),
    "select_spikes: `capacity` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: (
        select_spikes(V, 1.0, 0.9, capacity=-1)
    ),
    "select_spikes: `capacity` must be an integer of at least 0, got True. Pass an int, such as 1.": lambda: (
        select_spikes(V, 1.0, 0.9, capacity=True)
    ),
    "select_spikes: `threshold` must be a scalar, or have shape [3] or the shape of v, [2, 3], got [2]. "
    "Broadcast it to the shape of v.": lambda: select_spikes(V, jnp.ones(2), 0.9, capacity=1),
    "select_spikes: `second_threshold` must be a scalar, or have shape [3] or the shape of v, [2, 3], got [1, 3]. "
    "Broadcast it to the shape of v.": lambda: select_spikes(V, 1.0, jnp.ones((1, 3)), capacity=1),
    f"select_spikes: `surrogate` must {SURROGATES}": lambda: select_spikes(
        V, 1.0, 0.9, capacity=1, surrogate="step"
    ),
    f"spike_matmul: `spikes.values` must have shape [..., capacity] = [2, 4], got [2, 3]. {BUILD}": lambda: (
        spike_matmul(lists_with(values=jnp.ones((2, 3))), V.T)
    ),
    f"spike_matmul: `spikes.num_spikes` must have shape [...] = [2], got [3]. {BUILD}": lambda: spike_matmul(
        lists_with(num_spikes=jnp.ones(3, int)), V.T
    ),
    f"spike_matmul: `spikes.num_listed` must have shape [...] = [2], got []. {BUILD}": lambda: spike_matmul(
        lists_with(num_listed=jnp.ones((), int)), V.T
    ),
    f"spike_matmul: `spikes.num_dropped` must have shape [...] = [2], got []. {BUILD}": lambda: spike_matmul(
        lists_with(num_dropped=jnp.ones((), int)), V.T
    ),
    "spike_matmul: `weights` must have a floating-point dtype, got int32. "
    "Cast it with weights.astype(jnp.float32).": lambda: spike_matmul(LISTS, V.T.astype(int)),
    "spike_matmul: `spikes` must have a neuron axis, got a number. "
    "Add it, for instance spikes[None].": lambda: spike_matmul(jnp.float32(1.0), V),
    "spike_matmul: `weights` must have shape [neurons, outputs] = [2, any], got [3, 2]. "
    "Pass one row of weights for every neuron of the spikes.": lambda: spike_matmul(V.T, V.T),
    "spike_matmul: `weights` must have shape [neurons, outputs] = [3, any], got [2, 3]. "
    "Pass one row of weights for every neuron of the spikes.": lambda: spike_matmul(LISTS, V),
    "delay_spikes: `spikes` must have shape [time, batch, neurons], got [2, 4]. "
    "Add the missing axes, for instance spikes[:, None].": lambda: delay(X[0]),
    f"delay_spikes: `spikes.values` must have shape [..., capacity] = [2, 4], got [2, 3]. {BUILD}": lambda: (
        delay(lists_with(values=jnp.ones((2, 3))))
    ),
    "delay_spikes: `delays` must have a floating-point dtype, got int32. "
    "Cast it with delays.astype(jnp.float32).": lambda: delay(delays=jnp.ones(4, int)),
    "delay_spikes: `delays` must be a scalar or have shape [neurons] = [4], got [3]. "
    "Pass one delay, or one per neuron.": lambda: delay(delays=jnp.ones(3)),
    "delay_spikes: `pending` must have shape [max_delay + 1, batch, neurons] = [3, 2, 4], got [2, 2, 4]. "
    "Pass that of the previous call, or None.": lambda: delay(pending=jnp.zeros((2, 2, 4))),
    "delay_spikes: `max_delay` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: delay(
        max_delay=-1
    ),
    "delay_spikes: `lengths` must have shape [batch] = [2], got [3]. "
    "Pass the number of steps of each sequence.": lambda: delay(lengths=jnp.ones(3, int)),
    "delay_spikes: `lengths` must hold integers, got float32. Cast it with lengths.astype(int).": lambda: (
        delay(lengths=jnp.ones(2))
    ),
    "SparseSpikes.from_dense: `capacity` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: (
        SparseSpikes.from_dense(V, -1)
    ),
    "SparseSpikes.from_ids: `num_neurons` must be an integer of at least 0, got 2.5. "
    "Pass an int, such as 1.": lambda: SparseSpikes.from_ids(jnp.zeros(2, int), 2.5),
    "SparseSpikes.from_ids: `ids` must be an integer array [..., capacity], got float32[2, 3]. "
    "Pass neuron ids, padded with num_neurons.": lambda: SparseSpikes.from_ids(V, 3),
    **{
        f"SparseSpikes.from_ids: `ids` must be between 0 and 3, got {beyond}. "
        "Fill unused slots with num_neurons.": functools.partial(
            SparseSpikes.from_ids, jnp.array([[0, beyond]]), 3
        )
        for beyond in (-1, 4)
    },
}

CONV = {
    "spike_conv: `spikes` must have a neuron axis, got a number. "
    "Add it, for instance spikes[None].": lambda: conv(jnp.float32(1.0)),
    "spike_conv: `weights` must have a floating-point dtype, got int32. "
    "Cast it with weights.astype(jnp.float32).": lambda: conv(weights=W_CONV.astype(int)),
    "spike_conv: `weights` must have shape [length, channels / groups, outputs], got [1, 3, 1, 2]. "
    "Match their axes to `shape`.": lambda: conv(weights=W_CONV[None]),
    "spike_conv: `weights` must have shape [height, width, channels / groups, outputs], got [3, 1, 2]. "
    "Match their axes to `shape`.": lambda: conv(shape=(2, 2, 1)),
    "spike_conv: `weights` must have shape [length, channels / groups, outputs] = [3, 1, 2], got [3, 2, 2]. "
    "Divide the channels of `shape` by `groups`.": lambda: conv(weights=jnp.zeros((3, 2, 2))),
    "spike_conv: `shape` must be (height, width, channels) or (length, channels), got (4,). "
    "Pass one integer per axis.": lambda: conv(shape=(4,)),
    "spike_conv: `shape` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: conv(
        shape=(4, 0)
    ),
    "spike_conv: `shape` must have 4 neurons, like `spikes`, got [5, 1], which has 5. "
    "Pass (height, width, channels) or (length, channels).": lambda: conv(shape=(5, 1)),
    "spike_conv: `strides` must be an integer or a tuple of one length, got (1, 2). "
    "Pass one integer per axis.": lambda: conv(strides=(1, 2)),
    "spike_conv: `strides` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: conv(strides=0),
    "spike_conv: `groups` must divide the number of channels of `shape`, 1, got 2. "
    "Choose a divisor of both numbers of channels.": lambda: conv(groups=2),
    "spike_conv: `padding` must be 'same', 'valid', an integer or pairs of integers, got 'full'. Pass the zeros on "
    "both sides of each axis, such as 1, or before and after, ((1, 1),).": lambda: conv(padding="full"),
    "spike_conv: `padding` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: conv(
        padding=((-1, 0),)
    ),
    "spike_conv: `padding` must make at most 2147483647 neurons, got 4294967300. Split the image.": lambda: (
        conv(padding=((2**31 - 1, 1),))
    ),
    "spike_conv: `kernel` must fit into the padded image, [4], got [5]. "
    "Pad more, or choose a smaller kernel.": lambda: conv(weights=jnp.zeros((5, 1, 2)), padding="valid"),
    "spike_conv: `implementation` must be None, 'reference', 'cpu', 'gpu' or 'composed', got 'tpu'. "
    "Choose one of these.": lambda: conv(implementation="tpu"),
}

NETWORK = {
    "lif_network: `layers` must hold at least one layer, got none. "
    "Pass [LIFLayer(weights, decay)].": lambda: lif_network(X, []),
    "lif_network: `chunk` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: net(chunk=0),
    "lif_network: `inputs` must have axes [time, batch, inputs], got shape [2, 4]. "
    "Add the missing axis, for instance inputs[:, None] for a batch of one.": lambda: net(x=X[0]),
    "lif_network: `inputs` must have axes [time, batch, inputs], got shape [1, 2]. Add "
    "the missing axis, for instance inputs[:, None] for a batch of one.": lambda: net(x=jnp.zeros((1, 2))),
    "lif_network: `inputs` must have axes [time, batch, inputs], got shape [2, 3]. "
    "Pass lists with leading axes [time, batch].": lambda: net(x=LISTS),
    f"lif_network: `inputs.values` must have shape [..., capacity] = [2, 4], got [2, 3]. {BUILD}": lambda: (
        net(x=lists_with(values=jnp.ones((2, 3))))
    ),
    f"lif_network: `layers[0].weights` must have shape [inputs, neurons] = [4, any], got [5, 3]. {FIT}": lambda: (
        net(LAYER._replace(weights=jnp.zeros((5, 3))))
    ),
    f"lif_network: `layers[1].weights` must have shape [inputs, neurons] = [3, any], got [4, 3]. {FIT}": lambda: (
        lif_network(X, [LAYER, LAYER])
    ),
    "lif_network: `layers[0].weights` must have a floating-point dtype, got int32. Cast it with "
    "layers[0].weights.astype(jnp.float32).": lambda: net(LAYER._replace(weights=jnp.zeros((4, 3), int))),
    f"lif_network: `layers[0].bias` must have shape [neurons] = [3], got [2]. {FIT}": lambda: net(
        LAYER._replace(bias=jnp.zeros(2))
    ),
    f"lif_network: `layers[0].recurrent` must have shape [neurons, neurons] = [3, 3], got [4, 3]. {FIT}": lambda: (
        net(LAYER._replace(recurrent=jnp.zeros((4, 3))))
    ),
    "lif_network: `layers[0].delays` must be None without a `max_delay`, got delays. "
    "Give both or neither.": lambda: net(LAYER._replace(delays=0.5)),
    "lif_network: `layers[0].delays` must be a scalar or have shape [inputs] = [4], got [3]. "
    "Pass one delay, or one per input.": lambda: net(DELAYED._replace(delays=jnp.zeros(3))),
    "lif_network: `layers[0].recurrent_delays` must be given with `recurrent` weights and a `max_delay` of "
    "`recurrent_connection`, "
    "or be None, got delays. Give all of them or none.": lambda: net(
        LAYER._replace(recurrent_connection=DELAYED.connection, recurrent_delays=0.5)
    ),
    f"lif_network: `state.layers[0].pending` must be float32[3, 2, 4], got None. {OWN}": lambda: net(
        DELAYED, state=STATE
    ),
    f"lif_network: `readout.weights` must have shape [inputs, neurons] = [3, any], got [4, 2]. {FIT}": lambda: (
        net(readout=READOUT._replace(weights=jnp.zeros((4, 2))))
    ),
    "lif_network: `readout.bias` must have the dtype of the first layer, float32, got bfloat16. "
    "Cast one of them.": lambda: net(readout=READOUT._replace(bias=jnp.zeros(2, jnp.bfloat16))),
    f"lif_network: `decay` must be a scalar or have shape [neurons] = [3], got [4]. {NEURONS}": lambda: net(
        LAYER._replace(decay=jnp.zeros(4))
    ),
    f"lif_network: `threshold` must be a scalar or have shape [neurons] = [3], got [4]. {NEURONS}": lambda: (
        net(LAYER._replace(threshold=jnp.zeros(4)))
    ),
    f"lif_network: `gain` must be a scalar or have shape [neurons] = [2], got [3]. {NEURONS}": lambda: net(
        readout=READOUT._replace(gain=jnp.zeros(3))
    ),
    f"lif_network: `second_threshold` must be a scalar or have shape [neurons] = [3], got [2]. {NEURONS}": lambda: (
        net(capacity=2, second_threshold=[jnp.zeros(2)])
    ),
    "lif_network: `capacity` must hold 1 value, one per layer, got 2. "
    "Pass a scalar to use it everywhere.": lambda: net(capacity=(2, 2)),
    "lif_network: `second_threshold` must hold 1 value, one per layer, got 3. "
    "Pass a scalar to use it everywhere.": lambda: net(second_threshold=np.ones(3)),
    "lif_network: `capacity` must be an integer of at least 0, got 0.5. Pass an int, such as 1.": lambda: net(
        capacity=0.5
    ),
    "lif_network: `reset` must be 'subtract', 'zero' or 'none', got 'hard'. Choose one of these.": lambda: (
        net(reset="hard")
    ),
    f"lif_network: `surrogate` must {SURROGATES}": lambda: net(surrogate="step"),
    "lif_network: `lengths` must have shape [batch] = [2], got [3]. "
    "Pass the number of steps of each sequence.": lambda: net(lengths=[1, 2, 3]),
    "lif_network: `lengths` must be between 0 and 5, got 4294967296. "
    "Pass the number of steps of each sequence.": lambda: net(lengths=np.array([1, 1 << 32])),
    "lif_network: `lengths` must hold integers, got float32. Cast it with lengths.astype(int).": lambda: net(
        lengths=jnp.ones(2)
    ),
    f"lif_network: `state.layers[0].spikes` must be float32[2, 3], got None. {OWN}": lambda: net(
        RECURRENT, state=STATE
    ),
    f"lif_network: `state.layers` must have 1 entry, got 2 entries. {OWN}": lambda: net(
        state=STATE._replace(layers=STATE.layers * 2)
    ),
    f"lif_network: `state.layers[0].v` must be float32[2, 3], got float32[1, 3]. {OWN}": lambda: net(
        state=of_layer(v=jnp.zeros((1, 3)))
    ),
    f"lif_network: `state.layers[0].v` must be float32[2, 3], got bfloat16[2, 3]. {OWN}": lambda: net(
        state=of_layer(v=jnp.zeros((2, 3), jnp.bfloat16))
    ),
    f"lif_network: `state.readout` must be float32[2, 2], got None. {OWN}": lambda: net(
        state=STATE._replace(readout=None)
    ),
    f"lif_network: `state.readout` must be float32[2, 2], got float16[2, 2]. {OWN}": lambda: net(
        state=STATE._replace(readout=jnp.zeros((2, 2), jnp.float16))
    ),
}
test_wrong_argument_says_so = refusals(SMALL_OPS, CONV, NETWORK)


NOT_ARRAYS = {
    "spike_matmul: `spikes`": lambda value: spike_matmul(value, jnp.ones((3, 2))),
    "spike_matmul: `weights`": lambda value: spike_matmul(LISTS, value),
    "spike_sparse_matmul: `spikes`": lambda value: spike_sparse_matmul(value, W_SPARSE, SYNAPSES),
    "spike_sparse_matmul: `weights`": lambda value: spike_sparse_matmul(V, value, SYNAPSES),
    "spike_conv: `weights`": lambda value: conv(weights=value),
    "spike_conv: `spikes`": lambda value: conv(spikes=value),
    "pool_spikes: `spikes`": lambda value: pool_spikes(value, 2, shape=(4, 1)),
    "spike: `x`": lambda value: spike(value),
    "lif_step: `threshold`": lambda value: lif_step(V, V, 0.5, value),
    "select_spikes: `v`": lambda value: select_spikes(value, 1.0, 0.9, capacity=2),
    "select_spikes: `threshold`": lambda value: select_spikes(V, value, 0.9, capacity=2),
    "select_spikes: `second_threshold`": lambda value: select_spikes(V, 1.0, value, capacity=2),
    "delay_spikes: `spikes`": lambda value: delay(spikes=value),
    "delay_spikes: `delays`": lambda value: delay(delays=value),
    "lif_step: `v`": lambda value: lif_step(value, V, 0.5, 1.0),
    "lif_step: `current`": lambda value: lif_step(V, value, 0.5, 1.0),
    "lif_step: `decay`": lambda value: lif_step(V, V, value, 1.0),
    "lif_network: `inputs`": lambda value: net(x=value),
    "SparseSpikes.from_dense: `spikes`": lambda value: SparseSpikes.from_dense(value, 2),
    "SparseSpikes.from_ids: `ids`": lambda value: SparseSpikes.from_ids(value, 3),
}


@pytest.mark.parametrize("value", [None, "spikes", [[1.0, 0.0]], {}], ids=["None", "text", "list", "dict"])
@pytest.mark.parametrize("argument", NOT_ARRAYS)
def test_what_is_not_an_array_is_named(argument: str, value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        NOT_ARRAYS[argument](value)
    words = type_words(value)
    assert str(caught.value) == f"{argument} must be an array, got {words}. Pass a JAX or NumPy array."


COMPLEX: list[tuple[str, Callable[[], Any]]] = [
    ("spike_matmul: `spikes`", lambda: spike_matmul(V.astype(jnp.complex64), jnp.zeros((3, 2)))),
    (
        "spike_sparse_matmul: `spikes`",
        lambda: spike_sparse_matmul(V.astype(jnp.complex64), W_SPARSE, SYNAPSES),
    ),
    ("spike_conv: `spikes`", lambda: conv(X[0].astype(jnp.complex64))),
    ("delay_spikes: `spikes`", lambda: delay(X.astype(jnp.complex64))),
    ("pool_spikes: `spikes`", lambda: pool_spikes(X[0].astype(jnp.complex64), 2, shape=(2, 2, 1))),
    ("lif_network: `inputs`", lambda: net(x=X.astype(jnp.complex64))),
    ("SparseSpikes.from_dense: `spikes`", lambda: SparseSpikes.from_dense(V.astype(jnp.complex64), 2)),
]


@pytest.mark.parametrize("argument, call", COMPLEX, ids=[argument for argument, _ in COMPLEX])
def test_complex_spikes_are_refused(argument: str, call: Callable[[], Any]) -> None:
    """A cast would silently drop half of them."""
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == (
        f"{argument} must hold real numbers, got complex64. Pass its real part or absolute value."
    )
