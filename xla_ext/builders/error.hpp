// What Poplar throws, as the error that all else throws.
#pragma once

#include <exception>

#include "../error.hpp"

namespace snnjax {

// What was caught, whoever threw it: an Error as it is, exceptions of Poplar and of the standard library by their
// class.
Error errorOf(const std::exception& exception);

}  // namespace snnjax
