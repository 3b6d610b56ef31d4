// Costs of the generic codelets, and of gradients: figures that a reader can count, and monotone in the work.
#include "check.hpp"
#include "kernels/network/neurons.hpp"
#include "poplar_kernels/elementwise/cycles.hpp"
#include "poplar_kernels/movement/cycles.hpp"
#include "poplar_kernels/network/cycles.hpp"
#include "poplar_kernels/reductions/cycles.hpp"

namespace {

using namespace snnjax::cycles;
using kernels::GradientSwitches;

// Ten rows of 8 columns apart: four pairs, each 10 and 3 a row. Side by side: 5 pairs and their join for each output.
static_assert(reduce(8, 10, 8, Element::Float) == 35 + 4 * (10 + 10 * 3));
static_assert(reduce(8, 10, 8, Element::Half) == 35 + 4 * (10 + 10 * 5));
static_assert(reduce(7, 10, 7, Element::Float) == 35 + 7 * (10 + 10 * 3));
static_assert(reduce(8, 10, 1, Element::Float) == 35 + 8 * (10 + 5 * 3 + 2));
static_assert(reduce(8, 9, 1, Element::Float) == 35 + 8 * (10 + 9 * 3 + 2));
static_assert(reduce(8, 10, 8, Element::Integer) == 35 + 8 * (10 + 10 * 4));

constexpr GradientSwitches kNoReset = {snnjax::None, snnjax::Superspike, true};
static_assert(constantsGradient(kNoReset) == membraneGradient(kNoReset) + 10 + 4 + 2 + 10 + 3);

// Each function of one number must not fall where that number grows by `step`.
template <typename F>
void checkMonotone(const char* name, F&& cost, unsigned step = 1) {
  for (unsigned work = 0; work < 200; work += step) {
    if (cost(work + step) < cost(work)) check::that(false, name, __FILE__, __LINE__, std::to_string(work));
  }
}

void testElements() {
  for (const Element element : {Element::Float, Element::Half, Element::Integer}) {
    checkMonotone("rows apart", [=](unsigned n) { return reduce(8, n, 8, element); });
    checkMonotone("rows side by side", [=](unsigned n) { return reduce(8, n, 1, element); }, 2);
    checkMonotone("outputs", [=](unsigned n) { return reduce(n, 5, 8, element); });
  }
  checkMonotone("cast in fours", [](unsigned n) { return cast(4 * n, true, 1); });
  checkMonotone("cast one by one", [](unsigned n) { return cast(n, false, 4); });
}

void testRows() {
  checkMonotone("filled", [](unsigned n) { return fillTensor(4 * n, 4); });
  checkMonotone("transposed", [](unsigned n) { return transpose(n, 2); });
  checkMonotone("gathered", [](unsigned n) { return gatherRows(n, 6, 4); });
  checkMonotone("sliced", [](unsigned n) { return sliceRows(n, 6, 4); });
  checkMonotone("ids", [](unsigned n) { return scatterRows(n, 0, 6, 4); });
  checkMonotone("own rows", [](unsigned n) { return scatterRows(200, n, 6, 4); });
  checkMonotone("numbers", [](unsigned n) { return random(n, kUniform); });
}

void testGradients() {
  for (unsigned char kind = snnjax::Superspike; kind <= snnjax::StraightThrough; ++kind) {
    const GradientSwitches detached = {snnjax::Subtract, kind, true}, attached = {snnjax::Subtract, kind, false};
    CHECK(membraneGradient(attached) > membraneGradient(detached));
    CHECK(constantsGradient(detached) > membraneGradient(detached));
  }
}

}  // namespace

int main() {
  testElements();
  testRows();
  testGradients();
  return check::failures;
}
