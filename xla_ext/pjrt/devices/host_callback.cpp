#include "pjrt/devices/host_callback.hpp"

#include <atomic>
#include <string>
#include <vector>

#include "pjrt/interface/errors.hpp"

namespace snnjax::pjrt {
namespace {

std::atomic<SnnjaxIpuCallback> call_python = nullptr;

}  // namespace

void giveString(void* result, const char* bytes, std::size_t size) {
  static_cast<std::string*>(result)->assign(bytes, size);
}

std::string callHost(std::int64_t number, std::span<const std::shared_ptr<executor::Array>> arrays) {
  const SnnjaxIpuCallback call = call_python;
  if (call == nullptr) {
    throw Failure(ErrorCode::kInvalidArgument,
                  "callback: `callback` must be set by Python, got none. Import snnjax.ipu first.");
  }
  std::vector<SnnjaxIpuArray> given;
  for (const auto& array : arrays) {
    const auto& [dtype, shape] = array->type();
    given.push_back({static_cast<std::int64_t>(dtype), shape.size(), shape.data(), array->bytes().data()});
  }
  std::string text;
  const int code = call(number, given.data(), given.size(), &text, giveString);
  if (code != 0) throw Failure(static_cast<ErrorCode>(code), text);
  return text;
}

}  // namespace snnjax::pjrt

void snnjax_ipu_set_callback(SnnjaxIpuCallback callback) { snnjax::pjrt::call_python = callback; }
