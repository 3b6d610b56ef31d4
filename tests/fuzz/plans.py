"""Plans of many programs with mistakes, read, checked and lowered by the executor as those of saved programs are."""

import importlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import xla_client
from snnjax_jax_plugin import _library, _wire

import snnjax
from snnjax import SparseSpikes
from snnjax.ipu.lowering import lower
from tests.fuzz.plan_mutations import mutated
from tests.ipu.lowering.artifacts import artifact, options
from tests.ipu.lowering.reader import read
from tests.ops.common import with_gradient
from tests.ops.lif_network.random_networks import ADAPTIVE, ADLIF, ALL, Form, arguments, runner

TILES, DEVICES = 4, 2
# What the executor says when it refuses, as absl::StatusCode; anything else is a mistake of its own.
REFUSALS = (3, 8, 12)
TABLE = np.random.default_rng(0).normal(size=(10, 10)).astype(np.float32)
X, Y, I = jnp.linspace(-1, 1, 24).reshape(4, 6), jnp.ones((6, 5)), jnp.arange(6, dtype=jnp.int32)  # noqa: E741


SMALL = Form(3, 2, 6, (5,), record_spikes=False)
NETWORKS = (
    SMALL._replace(capacity=3, recurrent=True),
    SMALL._replace(widths=(5, 4), second_states=(ADLIF, ADAPTIVE), given="uint16 lists", lengths=False),
    SMALL._replace(outputs=None, given="int32 lists", per_neuron=False, bias=False),
    SMALL._replace(widths=(5, 4), capacity=(2, None), given="uint8", record_spikes=True),
    SMALL._replace(recurrent=True, outputs=None, second_states=(ALL,), reset="zero", detach_reset=False),
    SMALL._replace(capacity=3, record_spikes=True, given="uint16 lists", surrogate="triangle"),
)


def programs(num_networks: int) -> Iterator[bytes]:
    """Valid plans, with every operation and target of the executor."""
    for function, given in (*_operations(), *_own_ops()):
        yield lower(artifact(function, *given), options({"ipu_tiles": "3"}))
    yield lower(artifact(lambda x, y: (x + 1.0, y * 2), X, I, donate_argnums=(0, 1)), options())
    yield from _of_two_ipus()
    for number, form in enumerate(NETWORKS[:num_networks]):
        given, function = arguments(form, np.random.default_rng(number)), runner(form, None)
        forms = [function] if form.record_spikes else [function, with_gradient(function)]
        yield from (lower(artifact(each, *given), options()) for each in forms)


def _operations() -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    key = jax.random.key(0)
    at = (jnp.int32(1), jnp.int32(2))
    return [
        (lambda x: (jnp.tanh(x) * 2 + x, x > 0, x.astype(jnp.float16), x.astype(jnp.int8)), (X,)),
        (lambda x, y: (x @ y, jnp.einsum("bij,bjk->bki", x[None], y[None])), (X, Y)),
        (lambda x: (x.sum(0), x.max(), jnp.argmax(x, 1), jnp.cumsum(x, 0), lax.cummax(x, 1)), (X,)),
        (lambda x: (x.T[::2], x[:, ::-1], jnp.pad(x, 1), jnp.concatenate([x, x], 1), x.reshape(3, 8)), (X,)),
        (lambda x, i: (x[:, i % 3], x.at[:, i].add(1.0), x.at[i % 4].set(0.0)), (X, I)),
        (lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), (X, *at)),
        (lambda x, i, j: lax.dynamic_update_slice(x, x[:2, :2], (i, j)), (X, *at)),
        (lambda x: (lax.sort(x), lax.top_k(x, 2), jnp.argsort(x, 0)), (X,)),
        (lambda: (jax.random.normal(key, (3, 5)), jax.random.bits(key, (7,))), ()),
        (lambda x: lax.fori_loop(0, 3, lambda i, x: x * 0.5 + i.astype(jnp.float32), x), (X,)),
        (lambda x: lax.while_loop(lambda c: c[0] < 3.0, lambda c: (c[0] + c[1][0, 0], c[1] * 2), (x[0, 0], x)), (X,)),
        (lambda x, i: lax.switch(i[0], [lambda: x, lambda: x * 2, lambda: jnp.flip(x)]), (X, I)),
        (lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(6), x), (X,)),
        (lambda x: [jax.debug.callback(print, x), jax.pure_callback(np.sort, jax.typeof(x), x)][1], (X,)),
        (lambda x: (jnp.conj(lax.complex(x, x)), lax.bitcast_convert_type(x, jnp.int32)), (X,)),
        (lambda x: lax.bitcast_convert_type(x, jnp.uint8), (X,)),
        (lambda x: lax.conv_general_dilated(x[None, None], x[None, None, :2, :2], (1, 1), "SAME"), (X,)),
        (lambda: jnp.arange(100.0).reshape(10, 10) * 1.5 + jnp.asarray(TABLE), ()),
    ]  # fmt: skip


def _own_ops() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    counts = jnp.zeros(4, jnp.int32)
    for dtype in (jnp.uint16, jnp.int32):
        spikes = SparseSpikes(jnp.zeros((4, 3), dtype), jnp.ones((4, 3)), counts, counts, 0 * counts, 6)
        yield with_gradient(lambda *given: snnjax.spike_matmul(*given)), (spikes, Y)
    for threshold in (jnp.float32(0.5), jnp.full(6, 0.5)):
        yield with_gradient(lambda v, t: snnjax.select_spikes(v, t, 0.1, capacity=3)), (X, threshold)


def _of_two_ipus() -> Iterator[bytes]:
    mesh = Mesh(np.array(jax.devices("cpu")[:DEVICES]), ("d",))
    compile_options = xla_client.CompileOptions()
    compile_options.num_partitions = DEVICES
    compile_options.device_assignment = xla_client.DeviceAssignment.create(np.arange(DEVICES)[None])

    def body(x: jax.Array):
        ring = lax.ppermute(x, "d", [(0, 1), (1, 0)])
        spread = lax.psum_scatter(x.T, "d", tiled=True), lax.all_to_all(x, "d", 1, 0, tiled=True)
        return lax.psum(x, "d"), lax.all_gather(x, "d"), ring, spread, x + lax.axis_index("d").astype(x.dtype)

    mapped = jax.shard_map(
        body, mesh=mesh, in_specs=PartitionSpec("d"), out_specs=PartitionSpec("d"), check_vma=False
    )
    x = jax.device_put(X, NamedSharding(mesh, PartitionSpec("d")))
    module = jax.jit(mapped).trace(x).lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
    yield lower(mlir.module_to_bytecode(module), compile_options.SerializeAsString())


class Fuzz:
    """Examples are seeds of a plan's choice and its mistakes."""

    def __init__(self, num_networks: int, rounds: int) -> None:
        self.rounds = rounds  # of an example, each with other mistakes
        self.plans = [read(data) for data in programs(num_networks)]
        self.strategy = st.integers(0, 2**64 - 1)
        self.errors = importlib.import_module("pypjrt.errors")
        _library.connect()
        plugin = importlib.import_module("pypjrt._loader").Plugin(_wire.path())
        client_of = importlib.import_module("pypjrt.client").Client
        self.client = client_of(plugin, options={"num_tiles": TILES, "num_devices": DEVICES})
        self.header = f"snnjax program for IPUs mk2/{TILES}\n".encode()

    def check(self, example: int, counted: Counter[str]) -> None:
        """A plan is read, checked and lowered, or it is refused in words."""
        rng = random.Random(example)
        for _ in range(self.rounds):
            self.load(mutated(rng.choice(self.plans), rng), counted)

    def load(self, data: bytes, counted: Counter[str]) -> None:
        counted["plans"] += 1
        try:
            self.read(data)
        except self.errors.PjrtError as error:
            if error.code not in REFUSALS:
                raise
            counted["refused"] += 1

    def read(self, data: bytes) -> None:
        """Load a saved program of this plan, and drop it."""
        self.client.deserialize_executable(self.header + data).close()
