"""W13, a recurrent layer with few synapses: fused and scanned, beside a dense one and beside plain JAX.

All compute the same function of the same parameters, the weights of the synapses; for a dense matrix those are placed
among zeros in each call.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.experimental.sparse import BCOO

from snnjax import Synapses, layer, leaky_readout, network, sparse
from snnjax._types import Params
from snnjax.blocks import LinearParams, SparseParams
from tests.benchmarks import workloads
from tests.benchmarks.programs.networks import INFERENCE, TRAINING, jit
from tests.benchmarks.programs.neurons import Shape, by_hand, sample, tasks
from tests.benchmarks.timing import Program, Timer, timer

PLAIN_DENSE, PLAIN_BCOO = "plain JAX, dense matrix", "plain JAX, BCOO"
DENSE, SCANNED, FUSED = "snnjax, dense", "snnjax, sparse with bias", "snnjax, sparse"
ALTERNATIVES = (PLAIN_DENSE, PLAIN_BCOO, DENSE, SCANNED, FUSED)
_BACK = "layer_0/recurrent"


def made(shape: Shape, fan_out: int, name: str):
    """The network of an alternative."""
    (width,) = shape.hidden
    is_sparse = name in (SCANNED, FUSED)
    connection = sparse(width, fan_out=fan_out, bias=name == SCANNED) if is_sparse else True
    return network(shape.inputs, [layer(width, recurrent=connection)], leaky_readout(shape.outputs))


@functools.lru_cache(maxsize=1)
def data(shape: Shape, fan_out: int) -> tuple[Any, Any, jax.Array, jax.Array]:
    """Parameters of the fused network, its stats, inputs and labels."""
    net, key, (inputs, labels) = made(shape, fan_out, FUSED), jax.random.key(workloads.SEED), sample(shape)
    stats = net.initial_stats(key)
    return net.init(key, inputs, stats=stats, target_activity=shape.rate), stats, inputs, labels


def stored(name: str, synapses: Synapses) -> Callable[[jax.Array], Any]:
    """Makes the parameters of the recurrent connection, as an alternative has them, of the weights."""
    shape = (synapses.num_neurons, synapses.num_targets)
    if name == FUSED:
        return lambda weights: SparseParams(weights, None)
    if name == SCANNED:
        return lambda weights: SparseParams(weights, jnp.zeros(shape[1]))
    if name in (PLAIN_DENSE, DENSE):
        return lambda weights: LinearParams(synapses.to_dense(weights), None)
    ends = jnp.stack([synapses.sources(), synapses.targets.astype(jnp.int32)], axis=1)
    matrix = functools.partial(BCOO, shape=shape, indices_sorted=True, unique_indices=True)
    return lambda weights: LinearParams(matrix((weights, ends)), None)


def outputs_of(shape: Shape, fan_out: int, name: str) -> Callable[[Any, Any], jax.Array]:
    """The forward pass of an alternative, of (parameters, inputs)."""
    net, stats = made(shape, fan_out, name), data(shape, fan_out)[1]
    store = stored(name, stats[_BACK])

    def forward(params: Params, inputs: jax.Array) -> jax.Array:
        params = {**params, _BACK: store(params[_BACK].weights)}
        if name in (PLAIN_DENSE, PLAIN_BCOO):
            return by_hand(net, params, inputs)
        return net.apply(params, None, inputs, stats=None if name == DENSE else stats)[0].output

    return forward


def timed(shape: Shape, fan_out: int, name: str, task: str) -> Timer:
    params, _, inputs, labels = data(shape, fan_out)
    optimiser = optax.adam(workloads.LEARNING_RATE)
    run = jit(tasks(outputs_of(shape, fan_out, name), optimiser)[task])
    given = (params, inputs) if task == INFERENCE else (params, optimiser.init(params), inputs, labels)
    return timer(run, lambda: given)


def programs(shape: Shape, fan_out: int) -> Iterator[tuple[tuple[str, str], Program]]:
    """By task and alternative."""
    for task in (TRAINING, INFERENCE):
        for name in ALTERNATIVES:
            yield (task, name), functools.partial(timed, shape, fan_out, name, task)
