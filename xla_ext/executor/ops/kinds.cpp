#include "executor/ops/kinds.hpp"

#include <limits>

#include "executor/lowering.hpp"

namespace snnjax::executor::ops {
namespace {

bool isNumber(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kInt32 || dtype == Dtype::kUint32;
}
bool isReal(Dtype dtype) { return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16; }

}  // namespace

Kind kindOf(const std::string& kind, Dtype dtype) {
  const bool is_bool = dtype == Dtype::kBool;
  const bool all = kind == "and" || (is_bool && (kind == "minimum" || kind == "multiply"));
  const bool any = kind == "or" || (is_bool && (kind == "maximum" || kind == "add"));
  if (all || any || kind == "xor") {
    if (!is_bool && (!isNumber(dtype) || isReal(dtype))) return {};
    return {all   ? "snnjax::BitAnd"
            : any ? "snnjax::BitOr"
                  : "snnjax::BitXor",
            is_bool ? poplar::UNSIGNED_CHAR : poplar::UNSIGNED_INT};
  }
  if (!isNumber(dtype)) return {};
  const char* const name = kind == "add"        ? "snnjax::Sum"
                           : kind == "multiply" ? "snnjax::Product"
                           : kind == "maximum"  ? "snnjax::Largest"
                                                : "snnjax::Smallest";
  return {name, poplarType(dtype)};
}

double neutralOf(const std::string& kind, Dtype dtype) {
  if (dtype == Dtype::kBool) return kind == "and" || kind == "minimum" || kind == "multiply" ? 1 : 0;
  if (kind == "multiply") return 1;
  if (kind == "and") return dtype == Dtype::kInt32 ? -1 : std::numeric_limits<std::uint32_t>::max();
  if (kind != "maximum" && kind != "minimum") return 0;
  const bool most = kind == "minimum";
  if (isReal(dtype)) return most ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  if (dtype == Dtype::kUint32) return most ? std::numeric_limits<std::uint32_t>::max() : 0;
  return most ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int32_t>::min();
}

}  // namespace snnjax::executor::ops
