// Errors as PJRT hands them over.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "executor/error.hpp"
#include "pjrt/abi.hpp"

namespace snnjax::pjrt {

using executor::ErrorCode;

// Why something did not come to be. It may be handed out several times, as an Error each.
struct Failure {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

struct Error {
  void* functions = nullptr;  // of PJRT 0.106 and newer, which callers look for in the first word
  Failure failure;
};

// What a caught exception says.
Failure failureOf(const std::exception& exception);
// Nothing where nothing failed. The caller of the plugin owns what it gets.
Error* toError(const std::optional<Failure>& failure);

// "op: `argument` must <expected>, got <actual>. <way out>."
[[noreturn]] void refuse(const std::string& op, const std::string& argument, const std::string& expected,
                         const std::string& actual, const std::string& way_out);

class Table;
void addErrorFunctions(Table& table);

}  // namespace snnjax::pjrt
