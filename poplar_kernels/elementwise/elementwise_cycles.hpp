// What the codelets of elementwise.cpp cost a worker, in issue slots (one each six tile cycles).
//
// The loop over 64-bit vectors (2 floats, 4 halves; integers and Booleans one by one) that a compiler makes of C++ with
// aligned ONE_PTR fields: a load for each operand that is not single, the arithmetic, a store, the counter and the
// branch. PopLibs' estimators take 5 beside the arithmetic of a binary operation in C++ (ipu.md 3.5), one less for
// each load that falls away. Arithmetic by vector as in the same table: simple operations 1; exponential and inverse 6,
// square root 10, logarithm, tanh and sigmoid 12, division 10, power 312; comparisons 14 for 4 floats, 9 for 4 halves,
// 22 for 4 integers; integers 7 in all for a sum of two. Not in the table, and assumed here: functions of a software
// library (sine, error function, ...) at 60 an element, twice what a polynomial of degree 12 takes with its reduction.
#pragma once

#include <cstdint>

namespace snnjax {

// Kinds of arithmetic that cost the same.
enum class Work { Simple, Exponential, Inverse, Root, Logarithm, Tangent, Division, Power, Comparison, Library };
enum class Kind { Float, Half, Integer };

namespace cycles {

constexpr std::uint64_t kElementwisePrologue = 30;  // fields, share of the worker, choice of the loop: counted

constexpr unsigned vectorWidth(Kind kind) { return kind == Kind::Float ? 2 : kind == Kind::Half ? 4 : 1; }

// Slots for one 64-bit vector, or for one integer.
constexpr std::uint64_t arithmetic(Work work, Kind kind) {
  constexpr std::uint64_t kLibraryElement = 60;
  switch (work) {
    case Work::Simple: return kind == Kind::Integer ? 2 : 1;
    case Work::Exponential: return 6;
    case Work::Inverse: return 6;
    case Work::Root: return 10;
    case Work::Logarithm: return 12;
    case Work::Tangent: return 12;
    case Work::Division: return kind == Kind::Integer ? 30 : 10;  // integers: a division in software, assumed
    case Work::Power: return kind == Kind::Integer ? 156 : 312;
    case Work::Comparison: return kind == Kind::Float ? 7 : kind == Kind::Half ? 9 : 6;
    case Work::Library: break;
  }
  return kLibraryElement * vectorWidth(kind);
}

// `loads` operands are read again for each vector.
constexpr std::uint64_t elementwise(std::uint64_t elements, Work work, Kind kind, unsigned loads) {
  const std::uint64_t vectors = (elements + vectorWidth(kind) - 1) / vectorWidth(kind);
  constexpr std::uint64_t kStoreAndLoop = 3;
  return kElementwisePrologue + vectors * (loads + arithmetic(work, kind) + kStoreAndLoop);
}

// One predicate byte, two operands, a move on zero, the store, the loop: nothing of it is vector code.
constexpr std::uint64_t select(std::uint64_t elements) {
  constexpr std::uint64_t kElement = 8;
  return kElementwisePrologue + elements * kElement;
}

}  // namespace cycles
}  // namespace snnjax
