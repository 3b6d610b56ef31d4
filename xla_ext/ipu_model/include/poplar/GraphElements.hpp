// Handles of the elements of a graph.
#pragma once

#include <cstddef>
#include <memory>
#include <poplar/StringRef.hpp>

namespace ipu_model {
struct GraphData;
}

namespace poplar {

class ComputeSet {
 public:
  ComputeSet() = default;
  explicit ComputeSet(unsigned id) : id_(id) {}
  unsigned getId() const { return id_; }
  friend bool operator==(const ComputeSet& a, const ComputeSet& b) { return a.id_ == b.id_; }
  friend bool operator!=(const ComputeSet& a, const ComputeSet& b) { return !(a == b); }

 private:
  unsigned id_ = 0;
};

class Function {
 public:
  Function() = default;
  explicit Function(unsigned id) : id_(id) {}
  unsigned getId() const { return id_; }
  friend bool operator==(const Function& a, const Function& b) { return a.id_ == b.id_; }
  friend bool operator!=(const Function& a, const Function& b) { return !(a == b); }

 private:
  unsigned id_ = 0;
};

class HostFunction {
 public:
  HostFunction() = default;
  explicit HostFunction(unsigned id) : id_(id) {}
  unsigned getId() const { return id_; }

 private:
  unsigned id_ = 0;
};

// A field of a vertex, or one row of a field that is a Vector of Vectors.
class FieldRef {
 public:
  FieldRef(ipu_model::GraphData* graph, unsigned vertex, unsigned field, std::size_t row, bool indexed)
      : graph_(graph), vertex_(vertex), field_(field), row_(row), indexed_(indexed) {}

  FieldRef operator[](std::size_t index) const;

  ipu_model::GraphData* graph() const { return graph_; }
  unsigned vertex() const { return vertex_; }
  unsigned field() const { return field_; }
  std::size_t row() const { return row_; }
  bool isIndexed() const { return indexed_; }

 private:
  ipu_model::GraphData* graph_;
  unsigned vertex_;
  unsigned field_;
  std::size_t row_;
  bool indexed_;
};

class VertexRef {
 public:
  VertexRef() = default;
  VertexRef(ipu_model::GraphData* graph, unsigned id) : graph_(graph), id_(id) {}
  unsigned getId() const { return id_; }
  // Throws unknown_field.
  FieldRef operator[](StringRef field) const;
  friend bool operator==(const VertexRef& a, const VertexRef& b) { return a.graph_ == b.graph_ && a.id_ == b.id_; }
  friend bool operator!=(const VertexRef& a, const VertexRef& b) { return !(a == b); }

 private:
  ipu_model::GraphData* graph_ = nullptr;
  unsigned id_ = 0;
};

}  // namespace poplar
