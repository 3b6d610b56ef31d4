#include "poplibs/popops/codelet_names.hpp"

#include <poputil/VertexTemplates.hpp>

namespace poplibs {

namespace e = popops::expr;

namespace {

bool isReal(const poplar::Type& type) { return type == poplar::FLOAT || type == poplar::HALF; }
bool isInteger(const poplar::Type& type) { return type == poplar::INT || type == poplar::UNSIGNED_INT; }

// Which types a codelet of poplar_kernels/elementwise/elementwise.cpp has been made for.
enum class Types { Reals, Integers, Signed, Numbers, Any, Bools };

bool has(Types types, const poplar::Type& type) {
  switch (types) {
    case Types::Reals: return isReal(type);
    case Types::Integers: return isInteger(type);
    case Types::Signed: return isReal(type) || type == poplar::INT;
    case Types::Numbers: return isReal(type) || isInteger(type);
    case Types::Any: return isReal(type) || isInteger(type) || type == poplar::BOOL;
    case Types::Bools: break;
  }
  return type == poplar::BOOL;
}

struct Codelet {
  const char* name;
  Types types;
};

Codelet codeletOf(e::UnaryOpType op) {
  using enum e::UnaryOpType;
  switch (op) {
    case ABSOLUTE: return {"Absolute", Types::Signed};
    case ASIN: return {"ArcSine", Types::Reals};
    case BITWISE_NOT: return {"BitwiseNot", Types::Integers};
    case CBRT: return {"CubicRoot", Types::Reals};
    case CEIL: return {"Ceil", Types::Reals};
    case COS: return {"Cosine", Types::Reals};
    case COUNT_LEADING_ZEROS: return {"CountLeadingZeros", Types::Integers};
    case ERF: return {"ErrorFunction", Types::Reals};
    case EXPONENT: return {"Exponent", Types::Reals};
    case EXPONENT_MINUS_ONE: return {"ExponentMinusOne", Types::Reals};
    case FLOOR: return {"Floor", Types::Reals};
    case INVERSE: return {"Inverse", Types::Reals};
    case IS_FINITE: return {"IsFinite", Types::Reals};
    case IS_INF: return {"IsInf", Types::Reals};
    case IS_NAN: return {"IsNan", Types::Reals};
    case LOGARITHM: return {"Logarithm", Types::Reals};
    case LOGARITHM_ONE_PLUS: return {"LogarithmOnePlus", Types::Reals};
    case LOGICAL_NOT: return {"LogicalNot", Types::Bools};
    case NEARBY_INT: return {"NearbyInt", Types::Reals};
    case NEGATE: return {"Negate", Types::Signed};
    case POPCOUNT: return {"Popcount", Types::Integers};
    case ROUND: return {"Round", Types::Reals};
    case RSQRT: return {"ReciprocalRoot", Types::Reals};
    case SIGMOID: return {"Sigmoid", Types::Reals};
    case SIGNUM: return {"Signum", Types::Signed};
    case SIN: return {"Sine", Types::Reals};
    case SQRT: return {"SquareRoot", Types::Reals};
    case SQUARE: return {"Square", Types::Numbers};
    case TAN: return {"Tan", Types::Reals};
    case TANH: return {"Tanh", Types::Reals};
    case TRUNC: return {"Trunc", Types::Reals};
    case GELU_ERF:
    case RELU: break;  // rewritten
  }
  return {nullptr, Types::Any};
}

Codelet codeletOf(e::BinaryOpType op) {
  using enum e::BinaryOpType;
  switch (op) {
    case ADD: return {"Add", Types::Numbers};
    case ATAN2: return {"Atan2", Types::Reals};
    case BITWISE_AND: return {"BitwiseAnd", Types::Integers};
    case BITWISE_OR: return {"BitwiseOr", Types::Integers};
    case BITWISE_XOR: return {"BitwiseXor", Types::Integers};
    case DIVIDE: return {"Divide", Types::Numbers};
    case EQUAL: return {"Equal", Types::Any};
    case GREATER_THAN: return {"Greater", Types::Numbers};
    case GREATER_THAN_EQUAL: return {"GreaterEqual", Types::Numbers};
    case LESS_THAN: return {"Less", Types::Numbers};
    case LESS_THAN_EQUAL: return {"LessEqual", Types::Numbers};
    case LOGICAL_AND: return {"LogicalAnd", Types::Bools};
    case LOGICAL_OR: return {"LogicalOr", Types::Bools};
    case MAXIMUM: return {"Maximum", Types::Numbers};
    case MINIMUM: return {"Minimum", Types::Numbers};
    case MULTIPLY: return {"Multiply", Types::Numbers};
    case NOT_EQUAL: return {"NotEqual", Types::Any};
    case POWER: return {"Power", Types::Numbers};
    case REMAINDER: return {"Remainder", Types::Numbers};
    case SHIFT_LEFT: return {"ShiftLeft", Types::Integers};
    case SHIFT_RIGHT: return {"ShiftRight", Types::Integers};
    case SHIFT_RIGHT_SIGN_EXTEND: return {"ShiftRightSignExtend", Types::Integers};
    case SUBTRACT: return {"Subtract", Types::Numbers};
    case BITWISE_XNOR:
    case INV_STD_DEV_TO_VARIANCE:
    case VARIANCE_TO_INV_STD_DEV: break;  // rewritten
  }
  return {nullptr, Types::Any};
}

std::string named(const char* form, const Codelet& codelet, const poplar::Type& type) {
  if (codelet.name == nullptr || !has(codelet.types, type)) return {};
  return poputil::templateVertex(form, codelet.name, type);
}

}  // namespace

std::string unaryCodelet(e::UnaryOpType op, const poplar::Type& type) {
  return named("snnjax::Unary", codeletOf(op), type);
}

std::string binaryCodelet(e::BinaryOpType op, const poplar::Type& type) {
  return named("snnjax::Binary", codeletOf(op), type);
}

std::string selectCodelet(const poplar::Type& type) {
  return has(Types::Any, type) ? poputil::templateVertex("snnjax::Select", type) : std::string();
}

std::string reduceCodelet(popops::Operation op, const poplar::Type& in, const poplar::Type& out) {
  const auto name = [](popops::Operation operation) -> const char* {
    using enum popops::Operation;
    switch (operation) {
      case ADD: return "Sum";
      case SQUARE_ADD: return "SquareSum";
      case MUL: return "Product";
      case MIN: return "Smallest";
      case MAX: return "Largest";
      case LOGICAL_AND: return "AllOf";
      case LOGICAL_OR: return "AnyOf";
      case LOG_ADD: break;
    }
    return nullptr;
  }(op);
  const bool logical = op == popops::Operation::LOGICAL_AND || op == popops::Operation::LOGICAL_OR;
  const bool fits =
      logical ? in == poplar::BOOL && out == poplar::BOOL : (isReal(in) && isReal(out)) || (isInteger(in) && in == out);
  if (name == nullptr || !fits) return {};
  return poputil::templateVertex("snnjax::Reduce", name, in, out);
}

bool givesBool(e::UnaryOpType op) {
  using enum e::UnaryOpType;
  return op == IS_FINITE || op == IS_INF || op == IS_NAN || op == LOGICAL_NOT;
}

bool givesBool(e::BinaryOpType op) {
  using enum e::BinaryOpType;
  switch (op) {
    case EQUAL:
    case NOT_EQUAL:
    case GREATER_THAN:
    case GREATER_THAN_EQUAL:
    case LESS_THAN:
    case LESS_THAN_EQUAL:
    case LOGICAL_AND:
    case LOGICAL_OR: return true;
    default: return false;
  }
}

}  // namespace poplibs
