"""Single ops on the IPU Model: an op's program runs on NumPy arrays and yields its results and what it would cost."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Shaped

from snnjax.ipu import _model_library
from snnjax.ipu._arrays import Operands, refuse
from snnjax.ipu._network_op import lif_network
from snnjax.ipu._profile import Profile
from snnjax.ipu._single_ops import lif_step, select_spikes, spike_matmul
from snnjax.ipu._training_op import training_step

OPS: Mapping[str, Callable[..., None]] = {
    "spike_matmul": spike_matmul,
    "select_spikes": select_spikes,
    "lif_step": lif_step,
    "lif_network": lif_network,
    "training_step": training_step,
}
CHIPS = ("mk1", "mk2", "bow", "c600")


def run_on_model(
    op: str,
    arrays: Mapping[str, Any],
    *,
    chip: str = "mk2",
    num_tiles: int | None = None,
    num_ipus: int = 1,
    threads: int | None = None,
    **attributes: Any,
) -> tuple[dict[str, Shaped[np.ndarray, "..."]], Profile]:
    """Run one op's program on the IPU Model, forward and, if cotangents are among the arrays, backward.

    Weights (``v`` where there are none) in float16 make the program one of halves. Which arrays and attributes an op
    takes, and what it yields, its function in ``snnjax.ipu.harness`` says: ``spike_matmul``, ``select_spikes``,
    ``lif_step``, ``lif_network``, ``training_step``.

    Args:
        op: the name of the op.
        arrays: NumPy arrays by name.
        chip: "mk1", "mk2", "bow" or "c600".
        num_tiles: of each IPU; None takes all that the chip has.
        num_ipus: how many IPUs there are.
        threads: of this machine, which run the codelets; None takes all. Results do not depend on it.
        attributes: what is static about the op.

    Returns:
        The results by name, and the `Profile`.

    Raises:
        ValueError: for arrays and attributes that do not fit.
        RuntimeError: where the library of the model is missing, or the program does not fit onto the tiles.

    Example:
        >>> import numpy as np
        >>> from snnjax.ipu import run_on_model
        >>> arrays = {"ids": np.array([[0, 2]]), "weights": np.arange(6, dtype=np.float32).reshape(3, 2)}
        >>> results, profile = run_on_model("spike_matmul", arrays, num_tiles=4)
        >>> results["out"].tolist(), profile.cycles > 0
        ([[4.0, 6.0]], True)
    """
    if op not in OPS:
        refuse("run_on_model", "op", f"be one of {', '.join(OPS)}", repr(op), "Choose one of these")
    if chip not in CHIPS:
        refuse("run_on_model", "chip", f"be one of {', '.join(CHIPS)}", repr(chip), "Choose one of these")
    for name, number in (("num_tiles", num_tiles), ("num_ipus", num_ipus), ("threads", threads)):
        if number is not None and number < 1:
            refuse("run_on_model", name, "be at least 1", number, "Pass a larger number")
    operands = Operands(op, arrays)
    OPS[op](operands, **attributes)
    operands.check_all_used()
    numbers = {**operands.numbers, "threads": threads or 0}
    profile = _model_library.call(op, chip, (num_tiles or 0, num_ipus), operands.arrays, numbers)
    return operands.results(), Profile(profile)
