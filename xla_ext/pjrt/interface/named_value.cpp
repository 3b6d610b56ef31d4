#include "pjrt/interface/named_value.hpp"

namespace snnjax::pjrt {
namespace {

NamedValue withoutValue(std::string_view name, NamedValueType type, std::size_t size) {
  NamedValue value{};
  value.struct_size = sizeof(NamedValue);
  value.name = name.data();
  value.name_size = name.size();
  value.type = type;
  value.value_size = size;
  return value;
}

}  // namespace

NamedValue named(std::string_view name, std::string_view text) {
  NamedValue value = withoutValue(name, kString, text.size());
  value.string_value = text.data();
  return value;
}

NamedValue named(std::string_view name, std::int64_t number) {
  NamedValue value = withoutValue(name, kInt64, 1);
  value.int64_value = number;
  return value;
}

NamedValue named(std::string_view name, float number) {
  NamedValue value = withoutValue(name, kFloat, 1);
  value.float_value = number;
  return value;
}

}  // namespace snnjax::pjrt
