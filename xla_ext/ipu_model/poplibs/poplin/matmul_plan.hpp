// How a matrix product is divided over the tiles.
#pragma once

#include <cstddef>
#include <poplar/Interval.hpp>

namespace poplibs {

// [m, k] times [k, n]
struct ProductShape {
  std::size_t m, k, n;
};

// Into how many parts each dimension is cut; the parts of one product of blocks lie on one tile.
struct MatMulPlan {
  ProductShape shape;
  std::size_t parts_m, parts_k, parts_n;

  poplar::Interval rows(std::size_t part) const { return cut(shape.m, parts_m, part); }
  poplar::Interval depth(std::size_t part) const { return cut(shape.k, parts_k, part); }
  poplar::Interval columns(std::size_t part) const { return cut(shape.n, parts_n, part); }
  unsigned tile(std::size_t row_part, std::size_t depth_part, std::size_t column_part) const {
    return static_cast<unsigned>((depth_part * parts_m + row_part) * parts_n + column_part);
  }

 private:
  static poplar::Interval cut(std::size_t size, std::size_t parts, std::size_t part) {
    return {size * part / parts, size * (part + 1) / parts};
  }
};

// The plan with the least estimated time on so many tiles.
MatMulPlan planMatMul(const ProductShape& shape, unsigned tiles);

}  // namespace poplibs
