// Exchange phases that osmarks/ipu-stack scheduled and measured on a C600, and isolated transfers between two tiles.
#pragma once

#include "calibration/report.hpp"

namespace ipu_model::calibration {

Table isolatedTransfers();
Table exchangePhases();

}  // namespace ipu_model::calibration
