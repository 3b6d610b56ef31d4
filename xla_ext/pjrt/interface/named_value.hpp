// Attributes and properties as PJRT takes them. A name, or a text, must live as long as what refers to it.
#pragma once

#include <cstdint>
#include <string_view>

#include "pjrt/interface/abi.hpp"

namespace snnjax::pjrt {

NamedValue named(std::string_view name, std::string_view text);
NamedValue named(std::string_view name, std::int64_t number);
NamedValue named(std::string_view name, float number);

}  // namespace snnjax::pjrt
