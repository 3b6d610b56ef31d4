// Operations applied element by element, with NumPy's broadcasting. Every operation `f` comes as f (a new tensor),
// fInPlace (into the first operand) and fWithOutput; operands may be plain numbers where a tensor gives the type.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/Expr.hpp>
#include <type_traits>
#include <vector>

namespace popops {

// Evaluates the expression with its placeholders standing for the elements of `ts`: one compute set, with one vertex on
// each tile of the result, which lies on the tiles of the operand that uses most of them.
poplar::Tensor map(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                   const poplar::OptionFlags& options = {});

// The same into ts[0], which must have the shape and the type of the result.
void mapInPlace(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                const poplar::OptionFlags& options = {});

// The same into `out`.
void mapWithOutput(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                   const poplar::Tensor& out, poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                   const poplar::OptionFlags& options = {});

#define SNNJAX_MAP_OF(Kind, Placeholders, Parameters, Tensors)                                                    \
  inline poplar::Tensor map(poplar::Graph& graph, expr::Kind##OpType op, SNNJAX_LIST Parameters,                  \
                            poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},              \
                            const poplar::OptionFlags& options = {}) {                                            \
    return map(graph, expr::Kind##Op(op, SNNJAX_LIST Placeholders), {SNNJAX_LIST Tensors}, prog, debug, options); \
  }                                                                                                               \
  inline void mapInPlace(poplar::Graph& graph, expr::Kind##OpType op, SNNJAX_LIST Parameters,                     \
                         poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},                 \
                         const poplar::OptionFlags& options = {}) {                                               \
    mapInPlace(graph, expr::Kind##Op(op, SNNJAX_LIST Placeholders), {SNNJAX_LIST Tensors}, prog, debug, options); \
  }                                                                                                               \
  inline void mapWithOutput(poplar::Graph& graph, expr::Kind##OpType op, SNNJAX_LIST Parameters,                  \
                            const poplar::Tensor& out, poplar::program::Sequence& prog,                           \
                            const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {    \
    mapWithOutput(graph, expr::Kind##Op(op, SNNJAX_LIST Placeholders), {SNNJAX_LIST Tensors}, out, prog, debug,   \
                  options);                                                                                       \
  }
#define SNNJAX_LIST(...) __VA_ARGS__
SNNJAX_MAP_OF(Unary, (expr::PlaceHolder(1)), (const poplar::Tensor& a), (a))
SNNJAX_MAP_OF(Binary, (expr::PlaceHolder(1), expr::PlaceHolder(2)), (const poplar::Tensor& a, const poplar::Tensor& b),
              (a, b))
SNNJAX_MAP_OF(Ternary, (expr::PlaceHolder(1), expr::PlaceHolder(2), expr::PlaceHolder(3)),
              (const poplar::Tensor& a, const poplar::Tensor& b, const poplar::Tensor& c), (a, b, c))
#undef SNNJAX_LIST
#undef SNNJAX_MAP_OF

// `Result` where T is a number; elsewhere a function that returns it takes no part.
template <typename T, typename Result>
using IfNumber = typename std::enable_if<std::is_arithmetic<T>::value, Result>::type;

#define SNNJAX_UNARY_FUNCTION(fn, OP)                                                                         \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& a, poplar::program::Sequence& prog,    \
                           const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) { \
    return map(graph, expr::UnaryOpType::OP, a, prog, debug, options);                                        \
  }                                                                                                           \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& a, poplar::program::Sequence& prog,     \
                          const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {  \
    mapInPlace(graph, expr::UnaryOpType::OP, a, prog, debug, options);                                        \
  }                                                                                                           \
  inline void fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& out,        \
                             poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},         \
                             const poplar::OptionFlags& options = {}) {                                       \
    mapWithOutput(graph, expr::UnaryOpType::OP, a, out, prog, debug, options);                                \
  }
SNNJAX_UNARY_FUNCTION(abs, ABSOLUTE)
SNNJAX_UNARY_FUNCTION(asin, ASIN)
SNNJAX_UNARY_FUNCTION(bitwiseNot, BITWISE_NOT)
SNNJAX_UNARY_FUNCTION(cbrt, CBRT)
SNNJAX_UNARY_FUNCTION(ceil, CEIL)
SNNJAX_UNARY_FUNCTION(cos, COS)
SNNJAX_UNARY_FUNCTION(countLeadingZeros, COUNT_LEADING_ZEROS)
SNNJAX_UNARY_FUNCTION(erf, ERF)
SNNJAX_UNARY_FUNCTION(exp, EXPONENT)
SNNJAX_UNARY_FUNCTION(expm1, EXPONENT_MINUS_ONE)
SNNJAX_UNARY_FUNCTION(floor, FLOOR)
SNNJAX_UNARY_FUNCTION(inv, INVERSE)
SNNJAX_UNARY_FUNCTION(isFinite, IS_FINITE)
SNNJAX_UNARY_FUNCTION(isInf, IS_INF)
SNNJAX_UNARY_FUNCTION(isNaN, IS_NAN)
SNNJAX_UNARY_FUNCTION(log, LOGARITHM)
SNNJAX_UNARY_FUNCTION(log1p, LOGARITHM_ONE_PLUS)
SNNJAX_UNARY_FUNCTION(logicalNot, LOGICAL_NOT)
SNNJAX_UNARY_FUNCTION(nearbyInt, NEARBY_INT)
SNNJAX_UNARY_FUNCTION(neg, NEGATE)
SNNJAX_UNARY_FUNCTION(popcount, POPCOUNT)
SNNJAX_UNARY_FUNCTION(relu, RELU)
SNNJAX_UNARY_FUNCTION(round, ROUND)
SNNJAX_UNARY_FUNCTION(rsqrt, RSQRT)
SNNJAX_UNARY_FUNCTION(sigmoid, SIGMOID)
SNNJAX_UNARY_FUNCTION(signum, SIGNUM)
SNNJAX_UNARY_FUNCTION(sin, SIN)
SNNJAX_UNARY_FUNCTION(sqrt, SQRT)
SNNJAX_UNARY_FUNCTION(square, SQUARE)
SNNJAX_UNARY_FUNCTION(tan, TAN)
SNNJAX_UNARY_FUNCTION(tanh, TANH)
SNNJAX_UNARY_FUNCTION(trunc, TRUNC)
#undef SNNJAX_UNARY_FUNCTION

#define SNNJAX_BINARY_FUNCTION(fn, OP)                                                                                 \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,                     \
                           poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},                    \
                           const poplar::OptionFlags& options = {}) {                                                  \
    return map(graph, expr::BinaryOpType::OP, a, b, prog, debug, options);                                             \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  IfNumber<T, poplar::Tensor> fn(poplar::Graph& graph, const poplar::Tensor& a, T b, poplar::program::Sequence& prog,  \
                                 const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {    \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::PlaceHolder(1), expr::Const(b)), {a}, prog, debug,  \
               options);                                                                                               \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  IfNumber<T, poplar::Tensor> fn(poplar::Graph& graph, T a, const poplar::Tensor& b, poplar::program::Sequence& prog,  \
                                 const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {    \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::Const(a), expr::PlaceHolder(1)), {b}, prog, debug,  \
               options);                                                                                               \
  }                                                                                                                    \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,                      \
                          poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},                     \
                          const poplar::OptionFlags& options = {}) {                                                   \
    mapInPlace(graph, expr::BinaryOpType::OP, a, b, prog, debug, options);                                             \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  IfNumber<T, void> fn##InPlace(poplar::Graph& graph, const poplar::Tensor& a, T b, poplar::program::Sequence& prog,   \
                                const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {     \
    mapInPlace(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::PlaceHolder(1), expr::Const(b)), {a}, prog, debug,  \
               options);                                                                                               \
  }                                                                                                                    \
  inline void fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,                   \
                             const poplar::Tensor& out, poplar::program::Sequence& prog,                               \
                             const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {        \
    mapWithOutput(graph, expr::BinaryOpType::OP, a, b, out, prog, debug, options);                                     \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  IfNumber<T, void> fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& a, T b, const poplar::Tensor& out,      \
                                   poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},            \
                                   const poplar::OptionFlags& options = {}) {                                          \
    mapWithOutput(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::PlaceHolder(1), expr::Const(b)), {a}, out, prog, \
                  debug, options);                                                                                     \
  }
SNNJAX_BINARY_FUNCTION(add, ADD)
SNNJAX_BINARY_FUNCTION(atan2, ATAN2)
SNNJAX_BINARY_FUNCTION(bitwiseAnd, BITWISE_AND)
SNNJAX_BINARY_FUNCTION(bitwiseOr, BITWISE_OR)
SNNJAX_BINARY_FUNCTION(bitwiseXnor, BITWISE_XNOR)
SNNJAX_BINARY_FUNCTION(bitwiseXor, BITWISE_XOR)
SNNJAX_BINARY_FUNCTION(div, DIVIDE)
SNNJAX_BINARY_FUNCTION(eq, EQUAL)
SNNJAX_BINARY_FUNCTION(gt, GREATER_THAN)
SNNJAX_BINARY_FUNCTION(gteq, GREATER_THAN_EQUAL)
SNNJAX_BINARY_FUNCTION(invStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
SNNJAX_BINARY_FUNCTION(logicalAnd, LOGICAL_AND)
SNNJAX_BINARY_FUNCTION(logicalOr, LOGICAL_OR)
SNNJAX_BINARY_FUNCTION(lt, LESS_THAN)
SNNJAX_BINARY_FUNCTION(lteq, LESS_THAN_EQUAL)
SNNJAX_BINARY_FUNCTION(max, MAXIMUM)
SNNJAX_BINARY_FUNCTION(min, MINIMUM)
SNNJAX_BINARY_FUNCTION(mul, MULTIPLY)
SNNJAX_BINARY_FUNCTION(neq, NOT_EQUAL)
SNNJAX_BINARY_FUNCTION(pow, POWER)
SNNJAX_BINARY_FUNCTION(rem, REMAINDER)
SNNJAX_BINARY_FUNCTION(shiftLeft, SHIFT_LEFT)
SNNJAX_BINARY_FUNCTION(shiftRight, SHIFT_RIGHT)
SNNJAX_BINARY_FUNCTION(shiftRightSignExtend, SHIFT_RIGHT_SIGN_EXTEND)
SNNJAX_BINARY_FUNCTION(sub, SUBTRACT)
SNNJAX_BINARY_FUNCTION(varianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
#undef SNNJAX_BINARY_FUNCTION

#define SNNJAX_TERNARY_FUNCTION(fn, OP)                                                                           \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,                \
                           const poplar::Tensor& c, poplar::program::Sequence& prog,                              \
                           const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {     \
    return map(graph, expr::TernaryOpType::OP, a, b, c, prog, debug, options);                                    \
  }                                                                                                               \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,                 \
                          const poplar::Tensor& c, poplar::program::Sequence& prog,                               \
                          const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {      \
    mapInPlace(graph, expr::TernaryOpType::OP, a, b, c, prog, debug, options);                                    \
  }                                                                                                               \
  inline void fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,              \
                             const poplar::Tensor& c, const poplar::Tensor& out, poplar::program::Sequence& prog, \
                             const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {   \
    mapWithOutput(graph, expr::TernaryOpType::OP, a, b, c, out, prog, debug, options);                            \
  }
SNNJAX_TERNARY_FUNCTION(clamp, CLAMP)
SNNJAX_TERNARY_FUNCTION(select, SELECT)
#undef SNNJAX_TERNARY_FUNCTION

}  // namespace popops
