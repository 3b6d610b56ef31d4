#include "executor/lowering.hpp"

namespace snnjax::executor {

void refuse(const Plan& plan, const Instruction& instruction, const std::string& what, const std::string& hint) {
  std::string types;
  for (const ValueId value : instruction.inputs) types += (types.empty() ? "" : ", ") + plan.types[value].toString();
  const std::string where = instruction.where.empty() ? "" : " (" + instruction.where + ")";
  const bool own = instruction.op == "custom_call" && !instruction.texts.empty();
  throw Error(ErrorCode::kUnimplemented, "`" + (own ? instruction.texts[0] : instruction.op) + "` of " + types + ": " +
                                             what + ". " + hint + "." + where);
}

poplar::Type poplarType(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool: return poplar::BOOL;
    case Dtype::kInt8: return poplar::SIGNED_CHAR;
    case Dtype::kUint8: return poplar::UNSIGNED_CHAR;
    case Dtype::kInt16: return poplar::SHORT;
    case Dtype::kUint16:
    case Dtype::kBfloat16: return poplar::UNSIGNED_SHORT;
    case Dtype::kFloat16: return poplar::HALF;
    case Dtype::kInt32: return poplar::INT;
    case Dtype::kUint32: return poplar::UNSIGNED_INT;
    case Dtype::kFloat32: return poplar::FLOAT;
    case Dtype::kInt64:
    case Dtype::kUint64:
    case Dtype::kFloat64:
    case Dtype::kComplex64: break;
  }
  throw Error(ErrorCode::kUnimplemented, "compile: `dtype` must have at most 32 bits on the IPU, got " +
                                             toString(dtype) + ". Use float32 or int32.");
}

std::string attribute(const Instruction& instruction, std::string_view name) {
  for (const std::string& text : instruction.texts) {
    const std::size_t colon = text.find(':'), equals = text.find('=');
    if (colon < equals && equals != text.npos && text.substr(0, colon) == name) return text.substr(equals + 1);
  }
  throw Error(ErrorCode::kInvalidArgument, "compile: `" + (instruction.texts.empty() ? "" : instruction.texts[0]) +
                                               "` must have the attribute \"" + std::string(name) +
                                               "\", got none. Use an snnjax of one version throughout.");
}

}  // namespace snnjax::executor
