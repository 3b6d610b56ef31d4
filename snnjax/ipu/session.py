"""A session on IPUs, a thin layer over JAX: how many IPUs, which precision, how much of their memory."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from snnjax._check import check_choice, check_integer, check_switches, fail
from snnjax._types import Optimiser, Params
from snnjax.ipu import _training
from snnjax.ipu._training import REPLICAS, Loss, OptimiserState
from snnjax.ipu.device import PLATFORM
from snnjax.ipu.profiles.measure import read_profile

# The sessions that were opened in this thread, innermost last.
_opened: ContextVar[tuple["Session", ...]] = ContextVar("opened", default=())
# The start of JAX's error message when a program does not fit into memory.
_EXHAUSTED = "RESOURCE_EXHAUSTED"


class OutOfTileMemory(RuntimeError):
    """A program needs more of a tile's memory than its session allows."""


@dataclass(eq=False)
class _Step:
    """A jitted step that obeys its session: each program's memory is checked before its first run."""

    jitted: Any
    session: "Session"
    _checked: set[Any] = field(default_factory=set)

    def lower(self, state: PyTree, batch: PyTree) -> jax.stages.Lowered:
        return self.jitted.lower(state, batch)

    def __call__(self, state: PyTree, batch: PyTree) -> PyTree:
        self.session.check_runs("optimize")
        if self.session.limits_memory:
            leaves, structure = jax.tree.flatten((state, batch))
            kind = (structure, *((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves))
            if kind not in self._checked:
                self.session.check_memory("optimize", self.lower(state, batch).compile())
                self._checked.add(kind)
        return self.jitted(state, batch)


@dataclass(kw_only=True, eq=False)
class Session:
    """IPUs, and how programs are compiled for them; a context manager inside which `get_session` returns it.

    `optimize` trains. If ``k = num_ipus * gradient_accumulation`` is above 1, each leaf of its batch has a leading axis
    of k micro-batches; the gradient is their mean, and each IPU works on its share of them.

    Errors: an option is out of range; there are fewer IPUs than requested; use outside of `initialize` and `finalize`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.ipu import Session, get_session
        >>> with Session(precision="mixed") as session:
        ...     double = session.compile(lambda x: 2 * x, jnp.ones(3))
        ...     session.execute(double, jnp.ones(3)).tolist(), get_session() is session
        ([2.0, 2.0, 2.0], True)
    """

    num_ipus: int = 1
    precision: str = "float32"  # "float16"; "mixed": float16 with float32 master weights and loss scaling
    memory_proportion: float = 1.0  # share of each tile's memory that a program may use
    enable_half_partials: bool = False  # float16 products are accumulated in float16: faster, less accurate
    compile_only: bool = False  # nothing runs: to find out what a program needs
    recompute: bool = False  # the forward pass in the backward pass, instead of storing residuals
    gradient_accumulation: int = 1  # micro-batches per IPU in one optimiser step
    platform: str = PLATFORM  # "cpu" runs the same session there, for comparison
    _devices: tuple[Any, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("num_ipus", "gradient_accumulation"):
            check_integer("Session", name, getattr(self, name), 1)
        check_choice("Session", "precision", self.precision, tuple(_training.PRECISIONS))
        share = self.memory_proportion
        if not isinstance(share, int | float) or not 0 < share <= 1:
            expected = "be above 0 and at most 1"
            fail(f"Session: `memory_proportion` must {expected}, got {share!r}. Pass 1.0 for all of it.")
        switches = ("enable_half_partials", "compile_only", "recompute")
        check_switches("Session", **{name: getattr(self, name) for name in switches})

    def initialize(self) -> "Session":
        """Acquire the IPUs, and become the current session of this thread.

        Raises:
            ValueError: if there are fewer IPUs than `num_ipus`, or it is initialized already.
        """
        if self.is_open:
            hint = "Call finalize first, or open another session"
            fail(f"Session.initialize: `session` must not be initialized, got one that is. {hint}.")
        devices = tuple(jax.devices(self.platform))
        if len(devices) < self.num_ipus:
            hint = "Set SNNJAX_IPU_DEVICES before JAX starts"
            fail(f"Session: `num_ipus` must be at most {len(devices)}, got {self.num_ipus}. {hint}.")
        self._devices = devices[: self.num_ipus]
        _opened.set((*_opened.get(), self))
        return self

    def finalize(self) -> None:
        """Release the IPUs; the enclosing session becomes the current one again."""
        self._check_open("finalize")
        self._devices = ()
        _opened.set(tuple(each for each in _opened.get() if each is not self))

    def info(self) -> dict[str, Any]:
        """The IPUs, their resources, and how much of them is in use."""
        self._check_open("info")
        first = self._devices[0]
        known = ("chip", "num_tiles", "memory_per_tile", "clock_hz")
        stats = [device.memory_stats() or {} for device in self._devices]
        return {
            "devices": [str(device) for device in self._devices],
            **{name: getattr(first, name, None) for name in known},
            "bytes_in_use": [each.get("bytes_in_use", 0) for each in stats],
            "precision": self.precision,
        }

    def compile(self, function: Callable[..., Any], *args: PyTree) -> jax.stages.Compiled:
        """Compile a function for arguments like these (arrays or `jax.ShapeDtypeStruct`).

        Raises:
            OutOfTileMemory: if it needs more than `memory_proportion` of a tile's memory.
            jax.errors.JaxRuntimeError: if it does not fit at all, or contains an unsupported operation.
        """
        self._check_open("compile")
        jitted: Any = function if hasattr(function, "lower") else jax.jit(function)
        compiled = jitted.lower(*jax.tree.map(self._described, args)).compile(self._options())
        self.check_memory("compile", compiled)
        return compiled

    def execute(self, compiled: jax.stages.Compiled, *args: PyTree) -> PyTree:
        """Run what `compile` returned.

        Raises:
            ValueError: if the session only compiles.
        """
        self._check_open("execute")
        self.check_runs("execute")
        return compiled(*jax.tree.map(self._placed, args))

    def optimize(
        self, loss: Loss, optimiser: Optimiser, params: Params
    ) -> tuple[OptimiserState, Callable[[OptimiserState, Any], tuple[OptimiserState, jax.Array]]]:
        """Make a training state and a jitted ``step(state, batch) -> (state, loss)`` that donates its state.

        A step raises `OutOfTileMemory` before it runs where its program needs more than `memory_proportion`, and
        ValueError if the session only compiles: ``session.compile(step, state, batch)`` then gives its program.

        A batch without that leading axis of micro-batches raises ValueError.

        With precision "float16" the optimiser computes in float16, in which the ``eps=1e-8`` of `optax.adam` is 0
        and parameters become NaN: pass ``eps=1e-4``.

        Args:
            loss: ``loss(params, batch) -> []``, the mean over a (micro-)batch.
            optimiser: an optax optimiser.
            params: initial parameters; floats become float32, or float16 with precision "float16".

        Example:
            >>> import jax.numpy as jnp, optax
            >>> from snnjax.ipu import Session
            >>> loss = lambda params, batch: jnp.mean((params - batch) ** 2)
            >>> with Session(gradient_accumulation=2) as session:
            ...     state, step = session.optimize(loss, optax.sgd(0.5), jnp.zeros(2))
            ...     state, value = step(state, jnp.array([[1.0, 3.0], [3.0, 5.0]]))
            ...     float(value), state.params.tolist()
            (11.0, [1.0, 2.0])
        """
        self._check_open("optimize")
        precision = _training.PRECISIONS[self.precision]
        options = {"recompute": self.recompute, "micro_batches": self.gradient_accumulation}
        step = _training.make_step(loss, optimiser, precision, replicas=self.num_ipus, **options)
        everywhere, shared = self._sharding(PartitionSpec()), self._sharding(PartitionSpec(REPLICAS))
        if self.num_ipus > 1:
            specs = {"in_specs": (PartitionSpec(), PartitionSpec(REPLICAS)), "out_specs": PartitionSpec()}
            step = jax.shard_map(step, mesh=self.mesh, **specs)
        options = {"compiler_options": self._options(), "donate_argnums": 0}
        jitted = jax.jit(step, in_shardings=(everywhere, shared), **options)
        state = jax.tree.map(jnp.copy, _training.begin(params, optimiser, precision))  # a step donates it
        return jax.device_put(state, everywhere), _Step(jitted, self)

    def find_batch_size(
        self,
        function: Callable[..., Any],
        make_args: Callable[[int], tuple[Any, ...]],
        *,
        largest: int = 2**14,
    ) -> int:
        """Find the largest power of two as batch size with which a function fits in tile memory; nothing is run.

        Args:
            function: the function to compile.
            make_args: returns its arguments, arrays or `jax.ShapeDtypeStruct`, for a batch size.
            largest: the largest batch size to try.

        Raises:
            OutOfTileMemory: if not even one sample fits.
            ValueError: if `largest` is not an integer of at least 1.
        """
        largest = check_integer("Session.find_batch_size", "largest", largest, 1)
        best, size = 0, 1
        while size <= largest:
            try:
                self.compile(function, *make_args(size))
            except (OutOfTileMemory, jax.errors.JaxRuntimeError) as error:
                if not isinstance(error, OutOfTileMemory) and _EXHAUSTED not in str(error):
                    raise
                if best == 0:
                    raise OutOfTileMemory(
                        f"Session.find_batch_size: one sample does not fit. {error}"
                    ) from error
                break
            best, size = size, 2 * size
        return best

    @property
    def is_open(self) -> bool:
        """Whether it is initialized and not finalized."""
        return bool(self._devices)

    @property
    def mesh(self) -> Mesh:
        """The IPUs as a mesh with one axis, for programs on several IPUs."""
        self._check_open("mesh")
        return Mesh(np.array(self._devices), (REPLICAS,), axis_types=(jax.sharding.AxisType.Auto,))

    def __enter__(self) -> "Session":
        return self.initialize()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finalize()

    def _check_open(self, method: str) -> None:
        if not self.is_open:
            hint = "Use it as a context manager"
            fail(f"Session.{method}: `session` must be initialized, got one that is not. {hint}.")

    def _sharding(self, spec: PartitionSpec) -> jax.sharding.Sharding:
        if self.num_ipus == 1:
            return jax.sharding.SingleDeviceSharding(self._devices[0])
        return NamedSharding(self.mesh, spec)

    def _options(self) -> dict[str, str] | None:
        """The compiler options."""
        return {"ipu_half_partials": "true"} if self.enable_half_partials else None

    def _described(self, leaf: Any) -> object:
        """An argument's shape, dtype and sharding in this session, whatever its type and wherever it is."""
        if not hasattr(leaf, "shape"):
            return leaf
        weak = getattr(leaf, "weak_type", False)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=self._place_of(leaf), weak_type=weak)

    def _placed(self, leaf: object) -> object:
        return jax.device_put(leaf, self._place_of(leaf)) if hasattr(leaf, "shape") else leaf

    def _place_of(self, leaf: object) -> jax.sharding.Sharding:
        known = getattr(leaf, "sharding", None)
        if known is not None and known.device_set == set(self._devices):
            return known
        return self._sharding(PartitionSpec())

    def check_runs(self, method: str) -> None:
        """Raise a `ValueError` if the session only compiles."""
        if self.compile_only:
            hint = "Open a session without it"
            fail(f"Session.{method}: `compile_only` must be False to run, got True. {hint}.")

    @property
    def limits_memory(self) -> bool:
        """Whether programs must leave memory of their tiles; the CPU has none."""
        return self.memory_proportion < 1 and self.platform == PLATFORM

    def check_memory(self, method: str, compiled: jax.stages.Compiled) -> None:
        """Raise `OutOfTileMemory` if a program needs more than `memory_proportion` of a tile's memory."""
        if not self.limits_memory:
            return
        profile = read_profile(compiled)
        memory, limit = profile.tile_memory, profile.data["memory_per_tile"]
        most = int(memory.max())
        if most > self.memory_proportion * limit:
            tile = int(memory.argmax())
            raise OutOfTileMemory(
                f"Session.{method}: `memory_proportion` must be at least {most / limit:.3f} for this program, got "
                f"{self.memory_proportion} ({most} of {limit} bytes on tile {tile}). Pass a larger one, or a smaller "
                "batch."
            )


def get_session() -> Session:
    """Return the session that this thread initialized last and that is still open.

    Raises:
        ValueError: if there is none.

    Example:
        >>> from snnjax.ipu import Session, get_session
        >>> with Session(num_ipus=2):
        ...     get_session().mesh.shape["replicas"]
        2
    """
    still_open = [session for session in _opened.get() if session.is_open]
    if not still_open:
        hint = "Call it inside `with Session(...)`"
        fail(f"get_session: `session` must be open in this thread, got none. {hint}.")
    return still_open[-1]
