#include "poplibs/popops/opcodes.hpp"

namespace poplibs {

namespace e = popops::expr;

namespace {

// The operation on reals, on int, on unsigned and on bool.
struct Forms {
  std::optional<Opcode> real, of_int, of_unsigned, of_bool;

  std::optional<Opcode> of(const poplar::Type& type) const {
    if (type == poplar::FLOAT || type == poplar::HALF) return real;
    if (type == poplar::INT) return of_int;
    if (type == poplar::UNSIGNED_INT) return of_unsigned;
    return type == poplar::BOOL ? of_bool : std::nullopt;
  }
};

Forms reals(Opcode opcode) { return {opcode, {}, {}, {}}; }
Forms integers(Opcode opcode) { return {{}, opcode, opcode, {}}; }
Forms bools(Opcode opcode) { return {{}, {}, {}, opcode}; }

// Of INVERSE, IS_INF and IS_NAN what their last step is.
Forms formsOf(e::UnaryOpType op) {
  using enum e::UnaryOpType;
  switch (op) {
    case ABSOLUTE: return {Opcode::abs_f32, Opcode::abs_s32, {}, {}};
    case ASIN: return reals(Opcode::asin_f32);
    case BITWISE_NOT: return integers(Opcode::not_u32);
    case CBRT: return reals(Opcode::cbrt_f32);
    case CEIL: return reals(Opcode::ceil_f32);
    case COS: return reals(Opcode::cosine_f32);
    case COUNT_LEADING_ZEROS: return integers(Opcode::count_leading_zeros_u32);
    case ERF: return reals(Opcode::erf_f32);
    case EXPONENT: return reals(Opcode::exponential_f32);
    case EXPONENT_MINUS_ONE: return reals(Opcode::exponential_minus_one_f32);
    case FLOOR: return reals(Opcode::floor_f32);
    case INVERSE: return reals(Opcode::divide_f32);
    case IS_FINITE: return reals(Opcode::is_finite_f32);
    case IS_INF: return reals(Opcode::eq_f32);
    case IS_NAN: return reals(Opcode::ne_f32);
    case LOGARITHM: return reals(Opcode::log_f32);
    case LOGARITHM_ONE_PLUS: return reals(Opcode::log_plus_one_f32);
    case LOGICAL_NOT: return bools(Opcode::not_bool);
    case NEARBY_INT: return reals(Opcode::round_nearest_even_f32);
    case NEGATE: return {Opcode::negate_f32, Opcode::negate_s32, {}, {}};
    case POPCOUNT: return integers(Opcode::popcnt_u32);
    case ROUND: return reals(Opcode::round_nearest_afz_f32);
    case RSQRT: return reals(Opcode::rsqrt_f32);
    case SIGMOID: return reals(Opcode::logistic_f32);
    case SIGNUM: return {Opcode::sign_f32, Opcode::sign_s32, {}, {}};
    case SIN: return reals(Opcode::sine_f32);
    case SQRT: return reals(Opcode::sqrt_f32);
    case SQUARE: return {Opcode::square_f32, Opcode::square_s32, Opcode::square_s32, {}};
    case TAN: return reals(Opcode::tan_f32);
    case TANH: return reals(Opcode::tanh_f32);
    case TRUNC: return reals(Opcode::trunc_f32);
    case GELU_ERF:
    case RELU: break;  // rewritten
  }
  return {};
}

#define SNNJAX_NUMBERS(name)                                       \
  {                                                                \
    Opcode::name##_f32, Opcode::name##_s32, Opcode::name##_u32, {} \
  }
#define SNNJAX_ALL(name) {Opcode::name##_f32, Opcode::name##_s32, Opcode::name##_u32, Opcode::name##_u32}

Forms formsOf(e::BinaryOpType op) {
  using enum e::BinaryOpType;
  switch (op) {
    case ADD: return SNNJAX_NUMBERS(add);
    case ATAN2: return reals(Opcode::atan2_f32);
    case BITWISE_AND: return integers(Opcode::and_u32);
    case BITWISE_OR: return integers(Opcode::or_u32);
    case BITWISE_XOR: return integers(Opcode::xor_u32);
    case DIVIDE: return SNNJAX_NUMBERS(divide);
    case EQUAL: return SNNJAX_ALL(eq);
    case GREATER_THAN: return SNNJAX_NUMBERS(gt);
    case GREATER_THAN_EQUAL: return SNNJAX_NUMBERS(ge);
    case LESS_THAN: return SNNJAX_NUMBERS(lt);
    case LESS_THAN_EQUAL: return SNNJAX_NUMBERS(le);
    case LOGICAL_AND: return bools(Opcode::and_u32);
    case LOGICAL_OR: return bools(Opcode::or_u32);
    case MAXIMUM: return SNNJAX_NUMBERS(maximum);
    case MINIMUM: return SNNJAX_NUMBERS(minimum);
    case MULTIPLY: return SNNJAX_NUMBERS(multiply);
    case NOT_EQUAL: return SNNJAX_ALL(ne);
    case POWER: return SNNJAX_NUMBERS(power);
    case REMAINDER: return SNNJAX_NUMBERS(remainder);
    case SHIFT_LEFT: return integers(Opcode::shift_left_u32);
    case SHIFT_RIGHT: return integers(Opcode::shift_right_logical_u32);
    case SHIFT_RIGHT_SIGN_EXTEND: return integers(Opcode::shift_right_arithmetic_s32);
    case SUBTRACT: return SNNJAX_NUMBERS(subtract);
    case BITWISE_XNOR:
    case INV_STD_DEV_TO_VARIANCE:
    case VARIANCE_TO_INV_STD_DEV: break;  // rewritten
  }
  return {};
}

#undef SNNJAX_NUMBERS
#undef SNNJAX_ALL

}  // namespace

std::optional<Opcode> opcodeOf(e::UnaryOpType op, const poplar::Type& type) { return formsOf(op).of(type); }
std::optional<Opcode> opcodeOf(e::BinaryOpType op, const poplar::Type& type) { return formsOf(op).of(type); }

std::optional<Access> accessOf(const poplar::Type& type) {
  if (type == poplar::FLOAT || type == poplar::INT || type == poplar::UNSIGNED_INT) {
    return Access{Opcode::load_word, Opcode::store_word};
  }
  if (type == poplar::HALF) return Access{Opcode::load_f16, Opcode::store_f16};
  if (type == poplar::SHORT) return Access{Opcode::load_s16, Opcode::store_s16};
  if (type == poplar::UNSIGNED_SHORT) return Access{Opcode::load_u16, Opcode::store_u16};
  if (type == poplar::CHAR || type == poplar::SIGNED_CHAR) return Access{Opcode::load_s8, Opcode::store_s8};
  if (type == poplar::BOOL || type == poplar::UNSIGNED_CHAR) return Access{Opcode::load_u8, Opcode::store_u8};
  return {};
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
