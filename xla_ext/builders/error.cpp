#include "error.hpp"

#include <new>
#include <poplar/exceptions.hpp>

namespace snnjax {

Error errorOf(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return {ErrorCode::kResourceExhausted,
            "ipu: `memory` of the host must hold arrays and all tiles of the model, got too little. Use fewer tiles."};
  }
  const bool is_full = dynamic_cast<const poplar::graph_memory_allocation_error*>(&exception) != nullptr;
  return {is_full ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, exception.what()};
}

}  // namespace snnjax
