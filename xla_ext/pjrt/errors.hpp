// Errors as PJRT hands them over.
#pragma once

#include <builders/error.hpp>
#include <optional>
#include <string>

#include "pjrt/abi.hpp"

namespace snnjax::pjrt {

// Why something did not come to be. It may be handed out several times, as PJRT's Error each.
using Failure = snnjax::Error;

struct Error {
  void* functions;  // of PJRT 0.106 and newer, which callers look for in the first word
  Failure failure;
};

// Nothing where nothing failed. The caller of the plugin owns what it gets.
Error* toError(const std::optional<Failure>& failure);

// "op: `argument` must <expected>, got <actual>. <way out>."
[[noreturn]] void refuse(const std::string& op, const std::string& argument, const std::string& expected,
                         const std::string& actual, const std::string& way_out);

class Table;
void addErrorFunctions(Table& table);

}  // namespace snnjax::pjrt
