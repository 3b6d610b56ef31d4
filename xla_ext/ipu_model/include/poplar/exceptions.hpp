// What Poplar's functions throw. Every message says which operation, which argument, what it must be, and one hint.
#pragma once

#include <stdexcept>
#include <string>

namespace poplar {

struct poplar_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A tensor's shape, index or element type does not fit.
struct tensor_creation_error : poplar_error {
  using poplar_error::poplar_error;
};
struct index_error : poplar_error {
  using poplar_error::poplar_error;
};
struct type_error : poplar_error {
  using poplar_error::poplar_error;
};

// A graph that the hardware could not execute.
struct graph_connection_error : poplar_error {
  using poplar_error::poplar_error;
};
struct unknown_field : graph_connection_error {
  using graph_connection_error::graph_connection_error;
};
struct unknown_vertex_type : poplar_error {
  using poplar_error::poplar_error;
};
struct invalid_tile_mapping : poplar_error {
  using poplar_error::poplar_error;
};
struct no_size_specified : poplar_error {
  using poplar_error::poplar_error;
};
struct control_program_error : poplar_error {
  using poplar_error::poplar_error;
};

// Codelets could not be compiled or loaded.
struct graph_object_load_error : poplar_error {
  using poplar_error::poplar_error;
};
struct graph_program_compilation_error : poplar_error {
  explicit graph_program_compilation_error(const std::string& message, std::string compiler_output = {})
      : poplar_error(message), output(std::move(compiler_output)) {}
  std::string output;
};

// Too much for the memory of a tile.
struct graph_memory_allocation_error : poplar_error {
  using poplar_error::poplar_error;
};

// Host reads and writes, streams, options, run time.
struct tensor_io_state_error : poplar_error {
  using poplar_error::poplar_error;
};
struct stream_connection_error : poplar_error {
  using poplar_error::poplar_error;
};
struct invalid_option : poplar_error {
  using poplar_error::poplar_error;
};
struct no_environment : poplar_error {
  using poplar_error::poplar_error;
};
struct profiling_disabled : poplar_error {
  using poplar_error::poplar_error;
};
struct runtime_error : poplar_error {
  using poplar_error::poplar_error;
};
struct application_runtime_error : runtime_error {
  using runtime_error::runtime_error;
};

}  // namespace poplar
