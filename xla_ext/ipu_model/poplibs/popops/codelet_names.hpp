// The names of the codelets of poplar_kernels/ that stand for the operations of expressions and reductions.
#pragma once

#include <poplar/Type.hpp>
#include <popops/ExprOp.hpp>
#include <popops/Operation.hpp>
#include <string>

namespace poplibs {

// Empty: no codelet for this operation (it is rewritten, or has none).
std::string unaryCodelet(popops::expr::UnaryOpType op, const poplar::Type& type);
std::string binaryCodelet(popops::expr::BinaryOpType op, const poplar::Type& type);
std::string selectCodelet(const poplar::Type& type);
std::string reduceCodelet(popops::Operation op, const poplar::Type& in, const poplar::Type& out);

// Whether the result is BOOL, whatever the type of the operands.
bool givesBool(popops::expr::UnaryOpType op);
bool givesBool(popops::expr::BinaryOpType op);

}  // namespace poplibs
