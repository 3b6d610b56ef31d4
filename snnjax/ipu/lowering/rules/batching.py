"""Gather and scatter indices that mean "the same row" become batching dimensions.

``x[arange(rows)[:, None], columns]`` then only needs `columns`, and each row is read on the tile that holds it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.rules.counting import counted_from_end, counts_along
from snnjax.ipu.lowering.types import ArrayType


class Indices(NamedTuple):
    """The indices of a gather or scatter with their StableHLO dimension numbers."""

    value: int
    vector: int  # index_vector_dim
    index_map: tuple[int, ...]  # start_index_map or scattered_dims_to_operand_dims
    single: tuple[int, ...]  # collapsed_slice_dims or inserted_window_dims
    operand_batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    from_end: tuple[int, ...] = ()  # added to negative starts, for each component

    def gather(
        self, builder: Builder, x: int, shape: Sequence[int], window: Sequence[int], sizes: Sequence[int]
    ) -> int:
        """The windows of these sizes; `window` are the dimensions of the result that are not of the indices."""
        type_ = ArrayType(builder.types[x].dtype, tuple(shape))
        return builder.one(
            "gather", (x, self.value), type_, (window, *self._dimensions(), sizes, self.from_end)
        )

    def scatter(self, builder: Builder, x: int, updates: int, window: Sequence[int], kind: str) -> int:
        """`x` with its elements combined with those of the updates, or overwritten (``set``)."""
        ints = (window, *self._dimensions(), self.from_end)
        return builder.one("scatter", (x, self.value, updates), builder.types[x], ints, (kind,))

    def _dimensions(self) -> tuple[tuple[int, ...], ...]:
        batching = self.operand_batching, self.indices_batching
        return self.single, *batching, self.index_map, (self.vector,)


def simplest(builder: Builder, shape: Sequence[int], indices: Indices) -> Indices:
    """The indices of an operand of this shape in the form that is looked up fastest."""
    return _with_starts_from_end(builder, shape, _with_row_dimensions(builder, shape, indices))


def _with_row_dimensions(builder: Builder, shape: Sequence[int], indices: Indices) -> Indices:
    """The indices without the components that are an iota along one of their dimensions."""
    parts = _components(builder, indices)
    rows: dict[int, int] = {}  # operand dimension -> indices dimension
    for dimension, part in zip(indices.index_map, parts, strict=False):
        row = _row_dimension(builder, part, dimension, shape, indices, rows)
        if row is not None:
            rows[dimension] = row
    kept = tuple(dimension for dimension in indices.index_map if dimension not in rows)
    if not rows or not kept or len(parts) != len(indices.index_map):
        return indices
    left = [part for dimension, part in zip(indices.index_map, parts, strict=True) if dimension not in rows]
    pairs = [*zip(indices.operand_batching, indices.indices_batching, strict=True), *rows.items()]
    operand, of_indices = zip(*sorted(pairs), strict=True)
    single = tuple(dimension for dimension in indices.single if dimension not in rows)
    value = views.concatenate(builder, left, indices.vector)
    return Indices(value, indices.vector, kept, single, operand, of_indices)


def _with_starts_from_end(builder: Builder, shape: Sequence[int], indices: Indices) -> Indices:
    """The indices without ``where(i < 0, i + n, i)``, which gathers and scatters apply themselves."""
    of_indices = builder.types[indices.value].shape
    is_single = len(indices.index_map) == 1 and (
        indices.vector >= len(of_indices) or of_indices[indices.vector] == 1
    )
    parts = [indices.value] if is_single else _components(builder, indices)
    if not parts or len(parts) != len(indices.index_map):
        return indices._replace(from_end=(0,) * len(indices.index_map))
    components = zip(indices.index_map, parts, strict=True)
    counted = [counted_from_end(builder, part, shape[dimension]) for dimension, part in components]
    starts, sizes = zip(*counted, strict=True)
    value = starts[0] if is_single else views.concatenate(builder, starts, indices.vector)
    return indices._replace(value=value, from_end=sizes)


def _components(builder: Builder, indices: Indices) -> list[int]:
    """The indices of each operand dimension, as arrays with one element along the index vector."""
    shape = builder.types[indices.value].shape
    if indices.vector >= len(shape):
        return []
    if indices.value in builder.constants:
        places = range(shape[indices.vector])
        return [views.cut_along(builder, indices.value, indices.vector, k, k + 1) for k in places]
    definition = builder.definitions.get(indices.value)
    if definition is None or definition.op != "concatenate" or definition.ints != ((indices.vector,),):
        return []
    is_single = all(builder.types[part].shape[indices.vector] == 1 for part in definition.inputs)
    return list(definition.inputs) if is_single else []


def _row_dimension(
    builder: Builder, part: int, dimension: int, shape: Sequence[int], indices: Indices, rows: dict[int, int]
) -> int | None:
    """The dimension of the indices along which a component enumerates all rows of the operand."""
    lengths = builder.types[part].shape
    for row, length in enumerate(lengths):
        taken = row in (indices.vector, *indices.indices_batching, *rows.values())
        if taken or length != shape[dimension] or dimension not in indices.single or length <= 1:
            continue
        if counts_along(builder, part, row):
            return row
    return None
