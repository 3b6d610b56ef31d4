// What an elementwise chain costs a worker, in issue slots: as code generated from its program, also where the codelets
// of elementwise_chain.cpp interpret it. The executor counts the bundles of the code's loop (xla_ext/executor/plan/
// chain_cost.cpp says by which rules). The loop takes four elements at a time; of what remains, two are taken together.
//
// Arithmetic of a 64-bit vector as in PopLibs' estimators (ipu.md 3.5): simple operations 1; exponential 6, square root
// 10, logarithm, tanh and sigmoid 12, division 10, power 312; comparisons 14 for 4 floats, 22 for 4 integers. Not in
// the table, and assumed here: functions of a software library (sine, error function, ...) at 60 an element, twice what
// a polynomial of degree 12 takes with its reduction.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax {

// Kinds of arithmetic that cost the same.
enum class Work { Simple, Exponential, Root, Logarithm, Tangent, Division, Power, Comparison, Library };
enum class Kind { Float, Integer };

namespace cycles {

// Slots for two floats, or for one integer.
constexpr Slots arithmetic(Work work, Kind kind) {
  constexpr Slots kTwoLibraryElements = 2 * 60;
  const bool integer = kind == Kind::Integer;
  switch (work) {
    case Work::Simple: return integer ? 2 : 1;
    case Work::Exponential: return kExponential;
    case Work::Root: return kRoot;
    case Work::Logarithm:
    case Work::Tangent: return 12;
    case Work::Division: return integer ? 30 : kQuotient;  // integers: a division in software, assumed
    case Work::Power: return integer ? 156 : 312;
    case Work::Comparison: return integer ? 6 : 7;
    case Work::Library: break;
  }
  return kTwoLibraryElements;
}

// The call; the count and the tables of rows; the worker's share, whose divisor is a constant; which loops run.
constexpr Slots kChainPrologue = kCall + 3 + 14 + 4;

// `rows` are the slots that get pointers and constants into registers.
constexpr Slots chain(Slots elements, Slots rows, Slots four, Slots two, Slots one) {
  return kChainPrologue + rows + elements / 4 * four + elements % 4 / 2 * two + elements % 2 * one;
}

}  // namespace cycles
}  // namespace snnjax
