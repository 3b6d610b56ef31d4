// The model's description of a vertex class: written by the glue of a compiled codelet library (.gp), read by the graph
// and the engine. A record of plain values and functions, so that a .gp needs no symbol of the model; in C++11, because
// codelets may use any standard from there on. codelet_library.hpp loads and compiles such libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <poplar/ArrayRef.hpp>
#include <poplar/Type.hpp>
#include <string>
#include <vector>

namespace ipu_model {

enum class Direction {
  Input,
  Output,
  InOut,
  State,  // a plain member, or a Vector without a direction: set by Graph::setInitialValue, no edge
};

// The address of a row of elements on the host.
struct EdgeData {
  void* data;
  std::size_t size;  // elements
};

struct FieldType {
  std::string name;
  Direction direction;
  poplar::Type type;        // of one element
  unsigned nesting;         // 0: scalar, 1: Vector, 2: Vector of Vectors or VectorList
  unsigned alignment;       // bytes that the start of each row must be a multiple of
  bool interleaved;         // rows must lie in interleaved memory
  bool sized;               // false: ONE_PTR and scaled pointers, which carry no size
  std::size_t offset;       // bytes from the start of the object on the host
  std::size_t size;         // bytes of one element
  unsigned tile_bytes;      // of the field in the vertex's record on a tile, where pointers have 4 bytes
  unsigned tile_row_bytes;  // nesting 2: for each row besides
  // Both take the field's own address: fields of one type share them, whatever vertex they are of.
  void (*connect_field)(void* field, poplar::ArrayRef<EdgeData> rows);
  void (*set_field)(void* field, const void* value);

  // Points the field at `rows`: one row for nesting 0 (of one element) and 1. Not for a State of nesting 0; a State of
  // nesting 1 is connected to a buffer that holds its initial values.
  void connect(void* vertex, poplar::ArrayRef<EdgeData> rows) const { connect_field(in(vertex), rows); }
  // A State of nesting 0: takes the value of one element of `type`. Not for any other.
  void set(void* vertex, const void* value) const { set_field(in(vertex), value); }

 private:
  void* in(void* vertex) const { return static_cast<char*>(vertex) + offset; }
};

struct VertexType {
  std::string name;               // in normal form, as templateVertex would give it: "space::Foo<float,3>"
  std::string source_name;        // as the source instantiates it, where that is another spelling
  std::size_t size, alignment;    // of the object on the host
  bool multi;                     // MultiVertex: compute() is called once for each worker
  bool supervisor;                // SupervisorVertex
  std::vector<FieldType> fields;  // those of base classes first, each in the order of declaration
  unsigned long source_bytes;     // of the class in the preprocessed source: a measure of how much code it is
  void (*construct)(void* place);
  void (*destroy)(void* vertex);
  void (*compute)(void* vertex, unsigned worker);  // worker: 0 unless `multi`
  // In worker instruction issue slots; reads the fields after compute() ran. Null: unknown.
  std::uint64_t (*worker_cycles)(const void* vertex, unsigned worker);
  // In tile cycles: what the supervisor does besides launching workers. Null: nothing.
  std::uint64_t (*supervisor_cycles)(const void* vertex);

  // Null if there is none of that name.
  const FieldType* field(const std::string& field_name) const {
    for (const FieldType& candidate : fields) {
      if (candidate.name == field_name) return &candidate;
    }
    return nullptr;
  }
};

}  // namespace ipu_model
