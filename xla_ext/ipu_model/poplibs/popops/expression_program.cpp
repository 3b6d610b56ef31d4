#include "poplibs/popops/expression_program.hpp"

#include <bit>
#include <bitset>
#include <limits>
#include <map>
#include <optional>
#include <poputil/exceptions.hpp>
#include <string>
#include <utility>

#include "poplibs/popops/opcodes.hpp"

namespace poplibs {
namespace {

namespace e = popops::expr;
using snnjax::elementwise::ElementwiseProgram;

[[noreturn]] void refuse(const std::string& what) { throw poputil::poplibs_error("popops::map: " + what); }

bool isReal(const poplar::Type& type) { return type == poplar::FLOAT || type == poplar::HALF; }

// Tensors and constants stay in their slots; results have theirs until an operation has read them.
class Compiler {
 public:
  explicit Compiler(const std::vector<poplar::Tensor>& tensors) : tensors_(tensors) {}

  ExpressionProgram compiled(const e::Expr& expr) {
    const Value result = typed(value(expr));
    steps_.push_back({accessOf(result.type).value().store, 0, {result.slot}, 0});
    return {ElementwiseProgram(std::move(steps_)), std::move(inputs_), result.type};
  }

 private:
  // A slot, or a number that has yet to take its neighbours' type.
  struct Value {
    poplar::Type type;
    unsigned slot = 0;
    bool temporary = false;  // read once
    const e::Const* number = nullptr;
  };

  Value value(const e::Expr& expr) {
    if (const auto simpler = rewritten(expr)) return value(*simpler);
    if (const auto* number = expr.getAs<e::Const>()) return {number->getType(), 0, false, number};
    if (const auto* holder = expr.getAs<e::PlaceHolder>()) return loaded(holder->getIndex());
    if (const auto* op = expr.getAs<e::Cast>()) return converted(typed(value(op->getLHS())), op->getRHSType());
    if (const auto* op = expr.getAs<e::UnaryOp>()) return unary(op->getOpType(), typed(value(op->getArg())));
    if (const auto* op = expr.getAs<e::BinaryOp>()) return binary(*op);
    const auto& op = *expr.getAs<e::TernaryOp>();
    if (op.getOpType() == e::TernaryOpType::SELECT) return select(op);
    return value(e::Min(e::Max(op.getArg0(), op.getArg1()), op.getArg2()));
  }

  Value loaded(unsigned index) {
    if (index < 1 || index > tensors_.size()) {
      refuse("`expr` must use placeholders 1 to " + std::to_string(tensors_.size()) + ", got " + std::to_string(index) +
             ". Give one tensor for each placeholder.");
    }
    const poplar::Tensor& tensor = tensors_[index - 1];
    const auto known = loaded_.find(index);
    if (known != loaded_.end()) return {tensor.elementType(), known->second};
    const auto access = accessOf(tensor.elementType());
    if (!access) {
      refuse("`ts` must hold elements of at most 32 bits, got " + tensor.elementType().toString() +
             ". Cast the tensor.");
    }
    const unsigned slot = take();
    steps_.push_back({access->load, slot, {}, static_cast<unsigned>(inputs_.size())});
    inputs_.push_back(tensor);
    loaded_[index] = slot;
    return {tensor.elementType(), slot};
  }

  static unsigned bitsOf(const poplar::Type& type, double number) {
    const auto real = static_cast<float>(number);
    if (type == poplar::FLOAT) return std::bit_cast<unsigned>(real);
    if (type == poplar::HALF) return std::bit_cast<unsigned>(snnjax::chain::roundedToHalf(real));
    return type == poplar::BOOL ? number != 0 : static_cast<unsigned>(static_cast<long long>(number));
  }
  Value constant(const poplar::Type& type, double number) {
    const unsigned bits = bitsOf(type, number);
    const auto [known, is_new] = constants_.try_emplace(bits, 0);
    if (is_new) {
      known->second = take();
      steps_.push_back({Opcode::constant, known->second, {}, bits});
    }
    return {type, known->second};
  }

  Value typed(const Value& value) { return typed(value, value.type); }
  Value typed(const Value& value, const poplar::Type& type) {
    return value.number == nullptr ? value : constant(type, value.number->getDataAsDouble());
  }

  // Numbers take the type of the values beside them, or keep their own where there are none.
  std::vector<Value> alike(std::vector<Value> values) {
    std::optional<poplar::Type> type;
    for (const Value& value : values) {
      if (value.number != nullptr) continue;
      if (type && !(*type == value.type)) {
        refuse("`operands` must have one type, got " + type->toString() + " and " + value.type.toString() +
               ". Cast one of them.");
      }
      type = value.type;
    }
    for (Value& value : values) value = typed(value, type.value_or(values[0].type));
    return values;
  }

  Value add(Opcode opcode, const std::vector<Value>& from, const poplar::Type& type) {
    std::vector<unsigned> slots;
    for (const Value& value : from) {
      slots.push_back(value.slot);
      if (value.temporary) used_.reset(value.slot);
    }
    const unsigned slot = take();
    steps_.push_back({opcode, slot, std::move(slots), 0});
    const Value result = {type, slot, true};
    const bool rounds = type == poplar::HALF && opcode != Opcode::round_f16;
    return rounds ? add(Opcode::round_f16, {result}, type) : result;
  }

  unsigned take() {
    for (unsigned slot = 0; slot < used_.size(); ++slot) {
      if (used_[slot]) continue;
      used_.set(slot);
      return slot;
    }
    refuse("`expr` must need at most " + std::to_string(used_.size()) +
           " values at a time, got more. Divide it into several maps.");
  }

  static Opcode existing(const std::optional<Opcode>& opcode) {
    if (!opcode) refuse("`operation` must exist for the operands' type, got none. Cast the operands to float.");
    return *opcode;
  }

  Value unary(e::UnaryOpType op, const Value& x) {
    const Opcode opcode = existing(opcodeOf(op, x.type));
    const poplar::Type type = givesBool(op) ? poplar::BOOL : x.type;
    if (op == e::UnaryOpType::INVERSE) return add(opcode, {constant(x.type, 1), x}, type);
    if (op == e::UnaryOpType::IS_NAN) return add(opcode, {x, x}, type);
    if (op == e::UnaryOpType::IS_INF) {
      const Value infinity = constant(x.type, std::numeric_limits<double>::infinity());
      return add(opcode, {add(Opcode::abs_f32, {x}, x.type), infinity}, type);
    }
    return add(opcode, {x}, type);
  }

  Value binary(const e::BinaryOp& op) {
    const Value left = value(op.getLHS());
    const std::vector<Value> operands = alike({left, value(op.getRHS())});
    const poplar::Type& type = operands[0].type;
    const Opcode opcode = existing(opcodeOf(op.getOpType(), type));
    return add(opcode, operands, givesBool(op.getOpType()) ? poplar::BOOL : type);
  }

  Value select(const e::TernaryOp& op) {
    const Value yes = value(op.getArg0());
    const std::vector<Value> choices = alike({yes, value(op.getArg1())});
    const Value predicate = typed(value(op.getArg2()));
    if (!(predicate.type == poplar::BOOL)) {
      refuse("`predicate` of a select must be of type bool, got " + predicate.type.toString() +
             ". Compare it with a number.");
    }
    return add(Opcode::select, {predicate, choices[0], choices[1]}, choices[0].type);
  }

  // As the codelet Cast: reals saturate, integers lose their upper bits, a bool is true for any number but 0.
  Value converted(const Value& x, const poplar::Type& to) {
    if (x.type == to) return x;
    if (!accessOf(to)) {
      refuse("`type` of a cast must have at most 32 bits, got " + to.toString() + ". Cast to a narrower one.");
    }
    if (isReal(to)) return toReal(x, to);
    if (isReal(x.type)) return fromReal(x, to);
    if (to == poplar::BOOL) return add(Opcode::convert_s32_bool, {x}, to);
    const auto wrap = wrapOf(to);
    return wrap ? add(*wrap, {x}, to) : Value{to, x.slot, x.temporary};
  }

  Value toReal(const Value& x, const poplar::Type& to) {
    if (isReal(x.type)) return to == poplar::HALF ? add(Opcode::round_f16, {x}, to) : Value{to, x.slot, x.temporary};
    return add(x.type == poplar::UNSIGNED_INT ? Opcode::convert_u32_f32 : Opcode::convert_s32_f32, {x}, to);
  }

  Value fromReal(const Value& x, const poplar::Type& to) {
    if (to == poplar::BOOL) return add(Opcode::convert_f32_bool, {x}, to);
    if (to == poplar::UNSIGNED_INT) return add(Opcode::convert_f32_u32, {x}, to);
    const Value whole = add(Opcode::convert_f32_s32, {x}, poplar::INT);
    if (to == poplar::INT) return whole;
    const bool is_signed = to == poplar::SHORT || to == poplar::SIGNED_CHAR || to == poplar::CHAR;
    const double range = to.size() == 1 ? 0x1p8 : 0x1p16;
    const double lowest = is_signed ? -range / 2 : 0, most = lowest + range - 1;
    const Value above = add(Opcode::maximum_s32, {whole, constant(poplar::INT, lowest)}, poplar::INT);
    return add(Opcode::minimum_s32, {above, constant(poplar::INT, most)}, to);
  }

  static std::optional<Opcode> wrapOf(const poplar::Type& type) {
    if (type == poplar::SHORT) return Opcode::wrap_s16;
    if (type == poplar::UNSIGNED_SHORT) return Opcode::wrap_u16;
    if (type == poplar::UNSIGNED_CHAR) return Opcode::wrap_u8;
    if (type == poplar::CHAR || type == poplar::SIGNED_CHAR) return Opcode::wrap_s8;
    return {};
  }

  const std::vector<poplar::Tensor>& tensors_;
  std::vector<ElementwiseProgram::Step> steps_;
  std::vector<poplar::Tensor> inputs_;
  std::map<unsigned, unsigned> loaded_, constants_;  // slots, by placeholder and by bits
  std::bitset<snnjax::chain::kMaxSlots> used_;
};

}  // namespace

ExpressionProgram programOf(const e::Expr& expr, const std::vector<poplar::Tensor>& tensors) {
  return Compiler(tensors).compiled(expr);
}

}  // namespace poplibs
