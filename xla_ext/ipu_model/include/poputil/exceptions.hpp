// The error type of the libraries on top of Poplar.
#pragma once

#include <stdexcept>
#include <string>

namespace poputil {

struct poplibs_error : public std::runtime_error {
  explicit poplibs_error(const std::string& message) : std::runtime_error(message) {}
  explicit poplibs_error(const char* message) : std::runtime_error(message) {}
};

}  // namespace poputil
