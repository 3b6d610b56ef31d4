"""The layout of tile maps in a report: rows by tile number, not by position on the chip."""

import numpy as np
from jaxtyping import Float, Shaped

# Wider than high, like a page.
_SHAPE = 1.45


def columns_of(tiles: int) -> int:
    """Choose the number of tiles in a row.

    Example:
        >>> from snnjax.ipu.profiles import tiles
        >>> tiles.columns_of(1472), tiles.columns_of(4)
        (46, 2)
    """
    return max(1, round(np.sqrt(tiles * _SHAPE).item()))


def grid(values: Shaped[np.ndarray, " tiles"], ipus: int) -> Float[np.ndarray, "rows columns"]:
    """Arrange the tiles of all IPUs in one map, with an empty row between IPUs; NaN where there is no tile.

    Example:
        >>> import numpy as np
        >>> from snnjax.ipu.profiles import tiles
        >>> tiles.grid(np.arange(6.0), 2).tolist()
        [[0.0, 1.0], [2.0, nan], [nan, nan], [3.0, 4.0], [5.0, nan]]
    """
    per_ipu = len(values) // ipus
    columns = columns_of(per_ipu)
    rows = -(-per_ipu // columns)
    filled = np.full((ipus, rows * columns), np.nan)
    filled[:, :per_ipu] = values.reshape(ipus, per_ipu)
    maps = np.pad(filled.reshape(ipus, rows, columns), ((0, 0), (0, 1), (0, 0)), constant_values=np.nan)
    return maps.reshape(-1, columns)[:-1]
