// The C interface of the library that snnjax/ipu/ loads.
#include <builders/error.hpp>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include "call.hpp"
#include "ops.hpp"

namespace snnjax::harness {
namespace {

Report run(const Call& call) {
  static const std::map<std::string, std::function<Report(const Call&)>> ops = {{"spike_matmul", runSpikeMatmul},
                                                                                {"select_spikes", runSelectSpikes},
                                                                                {"lif_step", runLifStep},
                                                                                {"lif_network", runLifNetwork},
                                                                                {"training_step", runTrainingStep}};
  const auto op = ops.find(call.op());
  if (op != ops.end()) return op->second(call);
  std::string names;
  for (const auto& [name, run_op] : ops) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::kInvalidArgument,
              "run_on_model: `op` must be one of " + names + ", got " + call.op() + ". Choose one of these.");
}

// A copy that C owns.
char* copyOf(const std::string& text) {
  char* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace
}  // namespace snnjax::harness

extern "C" {

// Runs the op of a call and fills its results. Returns 0, or an ErrorCode; `profile` (JSON) or `error` is set to a text
// that snnjax_ipu_model_free takes back.
[[gnu::visibility("default")]] int snnjax_ipu_model_run(const SnnjaxCall* call, char** profile, char** error) {
  using snnjax::harness::copyOf;
  try {
    const snnjax::harness::Report report = snnjax::harness::run(snnjax::harness::Call(*call));
    *profile = copyOf(report.profile);
    return 0;
  } catch (const std::exception& exception) {
    const snnjax::Error problem = snnjax::errorOf(exception);
    *error = copyOf(problem.what());
    return static_cast<int>(problem.code());
  }
}

[[gnu::visibility("default")]] void snnjax_ipu_model_free(char* text) { delete[] text; }
}
