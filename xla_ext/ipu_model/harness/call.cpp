#include "call.hpp"

#include <builders/error.hpp>
#include <limits>

namespace snnjax::harness {

Call::Call(const SnnjaxCall& call) : call_(&call) {
  for (std::int64_t i = 0; i < call.num_arrays; ++i) arrays_[call.arrays[i].name] = &call.arrays[i];
  for (std::int64_t i = 0; i < call.num_numbers; ++i) numbers_[call.numbers[i].name] = call.numbers[i].value;
}

void* Call::find(const std::string& name, std::size_t size, bool is_integer) const {
  const auto array = arrays_.find(name);
  const bool fits = array != arrays_.end() && static_cast<std::size_t>(array->second->size) == size &&
                    (array->second->is_integer != 0) == is_integer;
  if (fits) return array->second->data;
  throw Error(ErrorCode::kInvalidArgument, op() + ": `" + name + "` must be an array of " + std::to_string(size) +
                                               (is_integer ? " integers" : " floats") +
                                               ", got another one or none. Call it through snnjax.ipu.run_on_model.");
}

std::span<float> Call::floats(const std::string& name, std::size_t size) const {
  return {static_cast<float*>(find(name, size, false)), size};
}

std::span<std::int32_t> Call::integers(const std::string& name, std::size_t size) const {
  return {static_cast<std::int32_t*>(find(name, size, true)), size};
}

double Call::number(const std::string& name) const {
  const auto number = numbers_.find(name);
  if (number != numbers_.end()) return number->second;
  throw Error(ErrorCode::kInvalidArgument,
              op() + ": `" + name + "` must be a number, got none. Call it through snnjax.ipu.run_on_model.");
}

unsigned Call::size(const std::string& name) const {
  const double value = number(name);
  if (value >= 1 && value <= std::numeric_limits<int>::max()) return static_cast<unsigned>(value);
  throw Error(ErrorCode::kInvalidArgument, op() + ": `" + name + "` must be at least 1, got " +
                                               std::to_string(static_cast<long long>(value)) +
                                               ". Leave the op out where there is nothing to compute.");
}

}  // namespace snnjax::harness
