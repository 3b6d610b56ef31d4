// Which vertices write which elements in one compute set. The hardware runs all its vertices at once, so an element has
// at most one writer, and its other readers see the old value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph_data.hpp"
#include "tensor/spans.hpp"

namespace ipu_model {

class Writers {
 public:
  // Throws graph_connection_error where two of the vertices, or one of them twice, write an element.
  Writers(const GraphData& graph, std::span<const std::uint32_t> vertices, const std::string& compute_set);

  // Whether a vertex other than `vertex` writes an element of the runs.
  bool othersWrite(std::span<const Run> runs, std::uint32_t vertex) const;

 private:
  struct Write {
    Span span;
    std::uint32_t vertex;
    std::uint32_t field;
  };
  void collect(const GraphData& graph, std::uint32_t vertex);
  [[noreturn]] static void refuse(const GraphData& graph, const Write& a, const Write& b, const std::string& name);

  std::vector<Write> writes_;     // sorted
  std::vector<bool> is_written_;  // by variable: something of it is
};

}  // namespace ipu_model
