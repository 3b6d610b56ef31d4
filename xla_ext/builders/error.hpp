// What goes wrong, and of which kind. Builders, executor, plugin and calibration throw nothing else; the code decides
// what Python raises.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace snnjax {

// Numbers as in absl::StatusCode, which PJRT uses.
enum class ErrorCode : int { kInvalidArgument = 3, kResourceExhausted = 8, kUnimplemented = 12, kInternal = 13 };

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// What was caught, whoever threw it: an Error as it is, exceptions of Poplar and of the standard library by their
// class.
Error errorOf(const std::exception& exception);

}  // namespace snnjax
