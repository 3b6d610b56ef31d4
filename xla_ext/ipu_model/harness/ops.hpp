// The ops that can be run on the model. Each reads its operands from the call and fills its results there; with
// `backward` set, its cotangents too.
#pragma once

#include <string>
#include <vector>

#include "call.hpp"
#include "model.hpp"

namespace snnjax::harness {

Report runSpikeMatmul(const Call& call);
Report runSelectSpikes(const Call& call);
Report runLifStep(const Call& call);
Report runLifNetwork(const Call& call);
Report runTrainingStep(const Call& call);

}  // namespace snnjax::harness
