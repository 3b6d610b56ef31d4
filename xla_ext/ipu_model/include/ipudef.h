// What the vendor's header of this name gives a codelet: the short vector types.
#pragma once

#include <poplar/VectorTypes.hpp>
