// The base classes of codelets, and everything else that a codelet may use.
//
// A vertex class has fields (Input, Output, InOut, Vector, VectorList, plain members) and `compute`, which runs once
// for each vertex and execution of its compute set; that of a MultiVertex runs once on each worker. The result,
// `bool` or `void`, is not used. Fields may be private, and lie in base classes.
#pragma once

#include <poplar/FieldTypes.hpp>
#include <poplar/HalfFloat.hpp>
#include <poplar/InOutTypes.hpp>

#if !defined(__clang__) && !defined(__builtin_assume)
#define __builtin_assume(condition) static_cast<void>(0)  // a hint of the vendor's compiler
#endif

namespace ipu_model {
struct AnyVertex {};
}  // namespace ipu_model

namespace poplar {

class Vertex : public ipu_model::AnyVertex {};

// Runs on the supervisor, without floating point.
class SupervisorVertex : public ipu_model::AnyVertex {};

class MultiVertex : public ipu_model::AnyVertex {
 public:
  // Six hardware threads a tile on all chips (ipu.md 3.3 of the project's notes; Poplar's numWorkerContexts).
  static constexpr unsigned numWorkers() { return 6; }
};

}  // namespace poplar
