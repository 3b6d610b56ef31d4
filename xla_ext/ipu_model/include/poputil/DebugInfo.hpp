// Debug information of library functions. The model keeps the path of their names; arguments and outputs are not kept.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplar/Tensor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace poputil {

template <typename T>
poplar::ProfileValue toProfileValue(const T& value) {
  return poplar::ProfileValue(value);
}
template <>
inline poplar::ProfileValue toProfileValue(const poplar::Type& type) {
  return type.toString();
}
template <>
inline poplar::ProfileValue toProfileValue(const poplar::Tensor& tensor) {
  return tensor.getDebugStr();
}

class OpDebugInfo : public poplar::DebugInfo {
 public:
  OpDebugInfo(const poplar::DebugContext& context, const std::string& api) : DebugInfo(context, api) {}
  void add(const std::string&, const poplar::ProfileValue&) {}
};

// The arguments of a library function, named as DI_ARGS names them.
using ArgType = std::pair<std::string, poplar::ProfileValue>;

class PoplibsOpDebugInfo : public OpDebugInfo {
 public:
  PoplibsOpDebugInfo(const poplar::DebugContext& context, const std::vector<ArgType>& = {}, const std::string& api = "")
      : OpDebugInfo(context, api) {}
  void addOutput(const poplar::Tensor&) {}
  void addOutputs(const std::vector<ArgType>&) {}
};

template <typename... Arguments>
std::vector<ArgType> ignored(const Arguments&...) {
  return {};
}

}  // namespace poputil

#define DI_ARGS(...) ::poputil::ignored(__VA_ARGS__)
