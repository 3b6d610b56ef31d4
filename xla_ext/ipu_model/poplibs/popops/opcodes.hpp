// Which operations of programs (xla_ext/elementwise) stand for those of expressions.
#pragma once

#include <optional>
#include <poplar/Type.hpp>
#include <popops/ExprOp.hpp>

#include "elementwise/program.hpp"

namespace poplibs {

using snnjax::chain::Opcode;

// Nothing: the operation does not exist for operands of this type.
std::optional<Opcode> opcodeOf(popops::expr::UnaryOpType op, const poplar::Type& type);
std::optional<Opcode> opcodeOf(popops::expr::BinaryOpType op, const poplar::Type& type);

// How elements of a type are read from memory and written; nothing: programs have no such type.
struct Access {
  Opcode load, store;
};
std::optional<Access> accessOf(const poplar::Type& type);

// Whether the result is BOOL, whatever the type of the operands.
bool givesBool(popops::expr::UnaryOpType op);
bool givesBool(popops::expr::BinaryOpType op);

}  // namespace poplibs
