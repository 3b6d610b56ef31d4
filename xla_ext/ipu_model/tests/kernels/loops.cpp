// Inner loops take as many operations of pairs as their cost says: each pair is replaced by one that counts them.
// Loads, branches and what lies beside another instruction stand here as the comments beside the costs have them.
#include <vector>

#include "check.hpp"
#include "kernels/counting.hpp"

#define float2 counting::Float2
#include "poplar_kernels/lists/cycles.hpp"
#include "poplar_kernels/lists/selection.hpp"
#include "poplar_kernels/network/cycles.hpp"
#undef float2

namespace {

constexpr unsigned kLoad = 1, kBranch = 1, kBeside = 1;  // the last one: in a bundle of the others

// Of each further turn of a loop over so many numbers.
template <unsigned kTurn = 2, class Loop>
unsigned operationsOf(Loop&& loop) {
  alignas(8) const float v[4 * kTurn] = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto counted = [&](unsigned count) {
    counting::operations = 0;
    loop(v, count);
    return counting::operations;
  };
  const unsigned first = counted(2 * kTurn), second = counted(3 * kTurn), third = counted(4 * kTurn);
  CHECK_EQUAL(third - second, second - first);
  return second - first;
}

}  // namespace

int main() {
  using namespace snnjax;
  const unsigned above = operationsOf<4>([](const float* v, unsigned count) { numAbove(v, count, true, 3.0f); }),
                 beyond = operationsOf<4>([](const float* v, unsigned count) { nextBeyond<true>(v, count, 3.0f); }),
                 standing = operationsOf([](const float* v, unsigned count) { Standing(3.0f).add(v, count); }),
                 any = operationsOf([](const float* v, unsigned count) {
                   using Of = Numbers<counting::Float2>;
                   for (unsigned k = 0; k < count; k += 2) anyAbove(Of::load(v + k), Of::fill(3.0f));
                 });
  CHECK_EQUAL(cycles::kFourAbove, 2 * kLoad + above + kBranch - 2 * kBeside);  // the other one beside the second load
  constexpr unsigned kLesser = 2;  // the lesser of two pairs each, which is not counted
  CHECK_EQUAL(cycles::kFourBeyond, 2 * kLoad + beyond + kLesser + kBranch - 2 * kBeside);
  CHECK_EQUAL(cycles::kRankedPair, kLoad + standing + kBranch - kBeside);
  // The mask's two halves in one, and from there to a main register, whose branch the loop's follows.
  constexpr unsigned kHalves = 1, kMove = 1;
  CHECK_EQUAL(cycles::kPair, 2 * kLoad + any + kHalves + kMove + 2 * kBranch);
  // Sent spikes are told by their bits, without a comparison; of two pairs in one.
  constexpr unsigned kOr = 1;
  CHECK_EQUAL(cycles::kFiredPair, kLoad + kHalves + kMove + 2 * kBranch);
  CHECK_EQUAL(cycles::kFiredPairs, 2 * kLoad + kOr + kHalves + kMove + 2 * kBranch);
  return check::failures;
}
