#include "executor/plan/plan.hpp"

#include <array>
#include <functional>
#include <numeric>

namespace snnjax::executor {
namespace {

struct DtypeFacts {
  const char* name;
  std::size_t bytes;
};

// In the order of Dtype, from 1.
constexpr std::array<DtypeFacts, kNumDtypes> kDtypes = {{{"bool", 1},
                                                         {"s8", 1},
                                                         {"s16", 2},
                                                         {"s32", 4},
                                                         {"s64", 8},
                                                         {"u8", 1},
                                                         {"u16", 2},
                                                         {"u32", 4},
                                                         {"u64", 8},
                                                         {"f16", 2},
                                                         {"f32", 4},
                                                         {"f64", 8},
                                                         {"bf16", 2}}};

const DtypeFacts& factsOf(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype) - 1]; }

}  // namespace

std::size_t numBytes(Dtype dtype) { return factsOf(dtype).bytes; }
std::string toString(Dtype dtype) { return factsOf(dtype).name; }

std::size_t ArrayType::numElements() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::size_t ArrayType::numBytes() const { return numElements() * factsOf(dtype).bytes; }

std::string ArrayType::toString() const {
  std::string text = std::string(factsOf(dtype).name) + "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace snnjax::executor
