// Poplar's exceptions as snnjax errors.
#pragma once

#include <exception>

#include "../error.hpp"

namespace snnjax {

// Converts any caught exception: an Error unchanged, exceptions of Poplar and the standard library by class.
Error errorOf(const std::exception& exception);

}  // namespace snnjax
