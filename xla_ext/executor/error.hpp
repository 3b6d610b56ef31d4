// What goes wrong while a program is compiled or run.
#pragma once

#include <stdexcept>
#include <string>

namespace snnjax::executor {

// Numbers as in absl::StatusCode, which PJRT uses.
enum class ErrorCode {
  kInvalidArgument = 3,
  kNotFound = 5,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace snnjax::executor
