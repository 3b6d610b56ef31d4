// The code of an error, whoever throws it.
#include "builders/error.hpp"
#include <new>
#include <poplar/exceptions.hpp>
#include "builders/layout/network_plan.hpp"

#include "check.hpp"

namespace {

using snnjax::ErrorCode;
using snnjax::builders::NetworkOptions;

constexpr std::size_t kBytes = 638976;  // of a tile of Mk2

template <typename Exception>
void hasCode(const Exception& exception, ErrorCode code, const std::string& message) {
  try {
    throw exception;
  } catch (const std::exception& caught) {
    const snnjax::Error error = snnjax::errorOf(caught);
    CHECK(error.code() == code);
    CHECK_EQUAL(std::string(error.what()), message);
  }
}

void exceptionsHaveTheCodeOfTheirClass() {
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kResourceExhausted, ErrorCode::kUnimplemented, ErrorCode::kInternal}) {
    hasCode(snnjax::Error(code, "as it is"), code, "as it is");
  }
  hasCode(poplar::graph_memory_allocation_error("full"), ErrorCode::kResourceExhausted, "full");
  hasCode(poplar::poplar_error("wrong"), ErrorCode::kInternal, "wrong");
  hasCode(std::runtime_error("wrong"), ErrorCode::kInternal, "wrong");
  hasCode(std::bad_alloc(), ErrorCode::kResourceExhausted,
          "ipu: `memory` of the host must hold arrays and all tiles of the model, got too little. Use fewer tiles.");
}

ErrorCode codeOf(const NetworkOptions& options) {
  try {
    planNetwork(options, 16, kBytes);
  } catch (const snnjax::Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

void networksThatOutgrowTheirTilesLackMemory() {
  NetworkOptions options;
  options.num_steps = 2;
  options.batch = 1;
  options.num_inputs = options.event_capacity = 100;
  options.layers = {{.neurons = 3000}, {.neurons = 3000}};
  CHECK(codeOf(options) == ErrorCode::kResourceExhausted);
}

}  // namespace

int main() {
  exceptionsHaveTheCodeOfTheirClass();
  networksThatOutgrowTheirTilesLackMemory();
  return check::failures == 0 ? 0 : 1;
}
