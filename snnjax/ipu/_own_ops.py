"""What the IPU takes of the library's own ops, and when it is there.

`snnjax._dispatch`, which stands above this package, hands over here what it does once JAX knows the platform.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

# (target, shapes, static) -> what the IPU's codelets cannot take, for instance "bfloat16 weights", or None
Obstacle = Callable[[str, Any, Any], str | None]

_DTYPES = ("float32", "float16")
# Ids of lists are 16 bits on the tiles, and the last of them marks an unused slot.
_MAX_WIDTH = 65_535

_waiting: list[Callable[[str, Obstacle], None]] = []
_platforms: list[str] = []


def when_there(register: Callable[[str, Obstacle], None]) -> None:
    """Call `register` with the platform and its obstacle: now, or once JAX knows the platform."""
    _waiting.append(register)
    for platform in _platforms:
        register(platform, obstacle)


def platform_is_there(platform: str) -> None:
    """JAX knows the platform."""
    if platform in _platforms:
        return
    _platforms.append(platform)
    for register in _waiting:
        register(platform, obstacle)


def obstacle(target: str, shapes: Any, static: Any) -> str | None:
    """What the codelets of `target` cannot take of operands of these shapes (with a groups axis), or None."""
    arrays = list(_arrays(shapes))
    wrong = [array.dtype.name for array in arrays if array.dtype.name in ("bfloat16", "float64")]
    if wrong:
        return f"{wrong[0]} arrays"
    op = target.removeprefix("snnjax_").removesuffix("_backward")
    if op == "lif_network":
        return _of_network(target, shapes, static)
    if any(array.size == 0 for array in arrays):
        return "arrays without elements"
    if op in ("lif_step", "select_spikes") and static.surrogate.obstacle:
        return static.surrogate.obstacle
    if op == "select_spikes" and any(
        threshold.ndim == 3 for threshold in shapes[1 : 3 if target == f"snnjax_{op}" else 2]
    ):
        return "a threshold of each row and neuron"
    return None


def _arrays(shapes: Any) -> Iterator[Any]:
    if shapes is None:
        return
    if hasattr(shapes, "dtype"):
        yield shapes
        return
    for each in shapes:
        yield from _arrays(each)


def _of_network(target: str, shapes: Any, static: Any) -> str | None:
    """The forward and the backward pass decide alike: what one records, the other reads."""
    is_backward = target.endswith("_backward")
    operands, switches = (shapes.operands, static[0]) if is_backward else (shapes, static)
    dtype = operands.linears[0].weights.dtype.name
    if dtype not in _DTYPES:
        return f"{dtype} weights"
    for layer in switches.layers:
        if layer.surrogate.obstacle:
            return layer.surrogate.obstacle
    if any(constants.second_state is not None for constants in operands.constants):
        return "neurons with a second state"
    if any(layer.records_spikes for layer in switches.layers) and (is_backward or switches.keeps_record):
        return "recorded spikes in a gradient"
    kinds = {
        (layer.reset, layer.detach_reset, layer.surrogate.name, layer.surrogate.slope)
        for layer in switches.layers
    }
    if len(kinds) > 1:
        return "layers whose resets or surrogates differ"
    return _of_widths(operands)


def _of_widths(operands: Any) -> str | None:
    first = next(_arrays(operands.inputs))
    widths = [linear.weights.shape[1:] for linear in operands.linears]
    if operands.readout is not None:
        widths.append(operands.readout.linear.weights.shape[1:])
    if 0 in (*first.shape[1:], *(math.prod(each) for each in widths)):
        return "an axis of length 0"
    if max(max(each) for each in widths) > _MAX_WIDTH:
        return f"more than {_MAX_WIDTH} neurons in a layer"
    return None
