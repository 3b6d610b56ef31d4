#include "pjrt/interface/table.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace snnjax::pjrt {
namespace {

// The lowest version with all that is needed: the logical ids of devices came with 0.96. From 0.106 on callers expect
// tables of functions in the first words of memories and errors.
constexpr int kMinorVersion = 96;
constexpr std::size_t kAlignment = 8;  // of every structure

template <std::size_t slot>
Error* missing(void*) {
  const std::string name(kFunctions[slot]);
  return new Error{nullptr, {ErrorCode::kUnimplemented, "PJRT_" + name + " is not there for the IPU."}};
}

template <std::size_t... slots>
std::array<Function, sizeof...(slots)> allMissing(std::index_sequence<slots...>) {
  return {missing<slots>...};
}

}  // namespace

void requireSize(std::size_t given, std::size_t needed) {
  // Callers give the size up to the end of the last field, without padding.
  const std::size_t padded = (given + kAlignment - 1) / kAlignment * kAlignment;
  if (padded >= needed) return;
  refuse("pjrt", "struct_size", "be at least " + std::to_string(needed), std::to_string(given), "Use a newer jaxlib");
}

Table::Table() {
  api_.struct_size = sizeof(Api);
  api_.pjrt_api_version.struct_size = sizeof(Version);
  api_.pjrt_api_version.minor_version = kMinorVersion;
  api_.functions = allMissing(std::make_index_sequence<kFunctions.size()>());
}

Function& Table::entry(std::string_view name) {
  const auto found = std::ranges::find(kFunctions, name);
  if (found == kFunctions.end()) throw Failure(ErrorCode::kInternal, "no function " + std::string(name));
  return api_.functions[static_cast<std::size_t>(found - kFunctions.begin())];
}

}  // namespace snnjax::pjrt
