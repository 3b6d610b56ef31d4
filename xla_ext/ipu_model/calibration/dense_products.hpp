// Dense products of poplin compared with hardware.
#pragma once

#include <cstddef>

#include "calibration/report.hpp"

namespace ipu_model::calibration {

// Float and half separately; those of at most this many multiply-adds.
Table denseProducts(bool halves, double most_products);

}  // namespace ipu_model::calibration
