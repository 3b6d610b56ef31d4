// Dense products of poplin beside what they took on hardware.
#pragma once

#include <cstddef>

#include "calibration/report.hpp"

namespace ipu_model::calibration {

// Float and half apart; those of at most so many multiply-adds.
Table denseProducts(bool halves, double most_products);

}  // namespace ipu_model::calibration
