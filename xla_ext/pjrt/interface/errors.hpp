// Errors in PJRT's form.
#pragma once

#include <optional>
#include <string>
#include "builders/error.hpp"

#include "pjrt/interface/abi.hpp"

namespace snnjax::pjrt {

// The cause of a failure. It may be returned several times, each time as a PJRT Error.
using Failure = snnjax::Error;

struct Error {
  void* functions;  // of PJRT 0.106 and newer, which callers look for in the first word
  Failure failure;
};

// Null if nothing failed. The caller of the plugin owns the result.
Error* toError(const std::optional<Failure>& failure);

// "op: `argument` must <expected>, got <actual>. <hint>."
[[noreturn]] void refuse(const std::string& op, const std::string& argument, const std::string& expected,
                         const std::string& actual, const std::string& hint,
                         ErrorCode code = ErrorCode::kInvalidArgument);

class Table;
void addErrorFunctions(Table& table);

}  // namespace snnjax::pjrt
