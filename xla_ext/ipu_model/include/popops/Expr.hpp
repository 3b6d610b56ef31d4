// Expressions over elements of tensors: `Tanh(_1 * 2.0f + _2)`, to be applied by popops::map().
#pragma once

#include <cstdint>
#include <memory>
#include <poplar/Type.hpp>
#include <popops/ExprOp.hpp>
#include <type_traits>

namespace popops {
namespace expr {

// A node of an expression tree. Trees are immutable; every node owns clones of its arguments.
class Expr {
 public:
  virtual ~Expr() = default;
  virtual std::unique_ptr<Expr> clone() const = 0;

  template <class T>
  bool isA() const {
    return dynamic_cast<const T*>(this) != nullptr;
  }
  template <class T>
  const T* getAs() const {
    return dynamic_cast<const T*>(this);
  }

 protected:
  Expr() = default;
  Expr(const Expr&) = default;
  Expr& operator=(const Expr&) = default;
};

// Holds any expression, for trees that are built step by step.
class Any {
 public:
  Any(const Expr& expr) : expr_(expr.clone()) {}
  Any(const Any& other) : expr_(other.expr_->clone()) {}
  Any(Any&&) = default;
  Any& operator=(const Any& other) {
    expr_ = other.expr_->clone();
    return *this;
  }
  Any& operator=(Any&&) = default;
  operator Expr&() { return *expr_; }
  operator const Expr&() const { return *expr_; }

 private:
  std::unique_ptr<Expr> expr_;
};

// A number. Beside an operand with a type it takes that type (as a literal does in C++), alone it has its own.
class Const : public Expr {
 public:
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  Const(T value) : Const(static_cast<double>(value), typeOf<T>()) {}
  Const(double value, const poplar::Type& type) : value_(value), type_(type) {}

  const poplar::Type& getType() const { return type_; }
  double getDataAsDouble() const { return value_; }
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new Const(*this)); }

 private:
  template <typename T>
  static poplar::Type typeOf() {
    return std::is_same<T, bool>::value       ? poplar::BOOL
           : std::is_floating_point<T>::value ? poplar::FLOAT
           : std::is_unsigned<T>::value       ? poplar::UNSIGNED_INT
                                              : poplar::INT;
  }

  double value_;  // holds every value of the types of 32 bits exactly
  poplar::Type type_;
};

class ConstHalf : public Const {
 public:
  explicit ConstHalf(float value) : Const(static_cast<double>(value), poplar::HALF) {}
};

inline ConstHalf operator""_half(long double value) { return ConstHalf(static_cast<float>(value)); }

// The values of an expression in another type.
class Cast : public Expr {
 public:
  Cast(const Expr& argument, const poplar::Type& type) : argument_(argument.clone()), type_(type) {}
  const Expr& getLHS() const { return *argument_; }
  const poplar::Type& getRHSType() const { return type_; }
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new Cast(*argument_, type_)); }

 private:
  std::unique_ptr<Expr> argument_;
  poplar::Type type_;
};

// Stands for the tensor number `index` of a map, counted from 1.
class PlaceHolder : public Expr {
 public:
  explicit PlaceHolder(unsigned index) : index_(index) {}
  unsigned getIndex() const { return index_; }
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new PlaceHolder(*this)); }

 private:
  unsigned index_;
};

const PlaceHolder _1(1), _2(2), _3(3), _4(4), _5(5), _6(6), _7(7), _8(8), _9(9), _10(10), _11(11), _12(12), _13(13),
    _14(14), _15(15), _16(16), _17(17), _18(18), _19(19), _20(20);

class UnaryOp : public Expr {
 public:
  UnaryOp(UnaryOpType type, const Expr& argument) : type_(type), argument_(argument.clone()) {}
  UnaryOpType getOpType() const { return type_; }
  const Expr& getArg() const { return *argument_; }
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new UnaryOp(type_, *argument_)); }

 private:
  UnaryOpType type_;
  std::unique_ptr<Expr> argument_;
};

class BinaryOp : public Expr {
 public:
  BinaryOp(BinaryOpType type, const Expr& left, const Expr& right)
      : type_(type), left_(left.clone()), right_(right.clone()) {}
  BinaryOpType getOpType() const { return type_; }
  const Expr& getLHS() const { return *left_; }
  const Expr& getRHS() const { return *right_; }
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new BinaryOp(type_, *left_, *right_)); }

 private:
  BinaryOpType type_;
  std::unique_ptr<Expr> left_, right_;
};

class TernaryOp : public Expr {
 public:
  TernaryOp(TernaryOpType type, const Expr& a, const Expr& b, const Expr& c)
      : type_(type), a_(a.clone()), b_(b.clone()), c_(c.clone()) {}
  TernaryOpType getOpType() const { return type_; }
  const Expr& getArg0() const { return *a_; }
  const Expr& getArg1() const { return *b_; }
  const Expr& getArg2() const { return *c_; }
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new TernaryOp(type_, *a_, *b_, *c_)); }

 private:
  TernaryOpType type_;
  std::unique_ptr<Expr> a_, b_, c_;
};

#define SNNJAX_UNARY_EXPR(Name, OP)                               \
  class Name : public UnaryOp {                                   \
   public:                                                        \
    explicit Name(const Expr& a) : UnaryOp(UnaryOpType::OP, a) {} \
  };
SNNJAX_UNARY_EXPR(Abs, ABSOLUTE)
SNNJAX_UNARY_EXPR(Asin, ASIN)
SNNJAX_UNARY_EXPR(BitwiseNot, BITWISE_NOT)
SNNJAX_UNARY_EXPR(Cbrt, CBRT)
SNNJAX_UNARY_EXPR(Ceil, CEIL)
SNNJAX_UNARY_EXPR(Cos, COS)
SNNJAX_UNARY_EXPR(Erf, ERF)
SNNJAX_UNARY_EXPR(Exp, EXPONENT)
SNNJAX_UNARY_EXPR(Expm1, EXPONENT_MINUS_ONE)
SNNJAX_UNARY_EXPR(Floor, FLOOR)
SNNJAX_UNARY_EXPR(GeluErf, GELU_ERF)
SNNJAX_UNARY_EXPR(Inv, INVERSE)
SNNJAX_UNARY_EXPR(IsFinite, IS_FINITE)
SNNJAX_UNARY_EXPR(IsInf, IS_INF)
SNNJAX_UNARY_EXPR(IsNaN, IS_NAN)
SNNJAX_UNARY_EXPR(Log, LOGARITHM)
SNNJAX_UNARY_EXPR(Log1p, LOGARITHM_ONE_PLUS)
SNNJAX_UNARY_EXPR(NearbyInt, NEARBY_INT)
SNNJAX_UNARY_EXPR(Neg, NEGATE)
SNNJAX_UNARY_EXPR(Not, LOGICAL_NOT)
SNNJAX_UNARY_EXPR(Relu, RELU)
SNNJAX_UNARY_EXPR(Round, ROUND)
SNNJAX_UNARY_EXPR(Rsqrt, RSQRT)
SNNJAX_UNARY_EXPR(Sigmoid, SIGMOID)
SNNJAX_UNARY_EXPR(Signum, SIGNUM)
SNNJAX_UNARY_EXPR(Sin, SIN)
SNNJAX_UNARY_EXPR(Sqrt, SQRT)
SNNJAX_UNARY_EXPR(Square, SQUARE)
SNNJAX_UNARY_EXPR(Tan, TAN)
SNNJAX_UNARY_EXPR(Tanh, TANH)
SNNJAX_UNARY_EXPR(Trunc, TRUNC)
#undef SNNJAX_UNARY_EXPR

inline BitwiseNot operator~(const Expr& a) { return BitwiseNot(a); }
inline Not operator!(const Expr& a) { return Not(a); }
inline Neg operator-(const Expr& a) { return Neg(a); }

#define SNNJAX_BINARY_EXPR(Name, OP)                                         \
  class Name : public BinaryOp {                                             \
   public:                                                                   \
    Name(const Expr& a, const Expr& b) : BinaryOp(BinaryOpType::OP, a, b) {} \
  };
#define SNNJAX_BINARY_EXPR_AND_SYMBOL(Name, OP, SYMBOL)                                         \
  SNNJAX_BINARY_EXPR(Name, OP)                                                                  \
  inline Name operator SYMBOL(const Expr& a, const Expr& b) { return Name(a, b); }              \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type> \
  Name operator SYMBOL(T a, const Expr& b) {                                                    \
    return Name(Const(a), b);                                                                   \
  }                                                                                             \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type> \
  Name operator SYMBOL(const Expr& a, T b) {                                                    \
    return Name(a, Const(b));                                                                   \
  }
SNNJAX_BINARY_EXPR_AND_SYMBOL(Add, ADD, +)
SNNJAX_BINARY_EXPR(Atan2, ATAN2)
SNNJAX_BINARY_EXPR_AND_SYMBOL(BitwiseAnd, BITWISE_AND, &)
SNNJAX_BINARY_EXPR_AND_SYMBOL(BitwiseOr, BITWISE_OR, |)
SNNJAX_BINARY_EXPR(BitwiseXnor, BITWISE_XNOR)
SNNJAX_BINARY_EXPR_AND_SYMBOL(BitwiseXor, BITWISE_XOR, ^)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Divide, DIVIDE, /)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Equal, EQUAL, ==)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Gt, GREATER_THAN, >)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Gte, GREATER_THAN_EQUAL, >=)
SNNJAX_BINARY_EXPR(InvStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Lt, LESS_THAN, <)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Lte, LESS_THAN_EQUAL, <=)
SNNJAX_BINARY_EXPR_AND_SYMBOL(And, LOGICAL_AND, &&)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Or, LOGICAL_OR, ||)
SNNJAX_BINARY_EXPR(Max, MAXIMUM)
SNNJAX_BINARY_EXPR(Min, MINIMUM)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Mul, MULTIPLY, *)
SNNJAX_BINARY_EXPR_AND_SYMBOL(NotEqual, NOT_EQUAL, !=)
SNNJAX_BINARY_EXPR(Pow, POWER)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Rem, REMAINDER, %)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Shl, SHIFT_LEFT, <<)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Shr, SHIFT_RIGHT, >>)
SNNJAX_BINARY_EXPR(ShrSE, SHIFT_RIGHT_SIGN_EXTEND)
SNNJAX_BINARY_EXPR_AND_SYMBOL(Sub, SUBTRACT, -)
SNNJAX_BINARY_EXPR(VarianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
#undef SNNJAX_BINARY_EXPR_AND_SYMBOL
#undef SNNJAX_BINARY_EXPR

class Select : public TernaryOp {  // c ? a : b
 public:
  Select(const Expr& a, const Expr& b, const Expr& c) : TernaryOp(TernaryOpType::SELECT, a, b, c) {}
};

class Clamp : public TernaryOp {  // min(max(a, b), c)
 public:
  Clamp(const Expr& a, const Expr& b, const Expr& c) : TernaryOp(TernaryOpType::CLAMP, a, b, c) {}
};

}  // namespace expr
}  // namespace popops
