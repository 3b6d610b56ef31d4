// Errors with a code, which decides what Python raises. The C++ of snnjax throws only these and std::bad_alloc. The IPU
// Model throws what Poplar throws, and `errorOf` (builders/error.hpp) gives it a code.
#pragma once

#include <stdexcept>
#include <string>

namespace snnjax {

// Numbers as in absl::StatusCode, which PJRT and XLA's FFI use.
enum class ErrorCode : int { kInvalidArgument = 3, kResourceExhausted = 8, kUnimplemented = 12, kInternal = 13 };

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace snnjax
