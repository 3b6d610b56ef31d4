// Costs of the snn codelets: figures that a reader can count, and monotone in the work.
#include "poplar_kernels/lists/cycles.hpp"
#include "kernels/alone.hpp"
#include "kernels/lists/lists.hpp"
#include "kernels/network/neurons.hpp"
#include "poplar_kernels/network/cycles.hpp"
#include "poplar_kernels/products/cycles.hpp"
#include "poplar_kernels/reductions/cycles.hpp"

namespace {

using namespace kernels;
using namespace snnjax::cycles;
using kernels::GradientSwitches;

constexpr unsigned char kSubtract = snnjax::Subtract, kNone = snnjax::None, kSuperspike = snnjax::Superspike;

// Rows of lists. Two columns of floats: ldz16, min, ld64, and the sum with the branch.
static_assert(sumOfIds(1, 1, true, 4, false) == 4 && sumOfIds(2, 1, true, 4, false) == 7);
static_assert(sumOfIds(1, 4, false, 4, false) == 8);   // besides: the row's product, three loads
static_assert(sumOfIds(1, 4, false, 2, false) == 10);  // halves: widening and sums, eight aux instructions, hold it up
// A row of currents: pointers, its length and the loop 6, with values 8, the sum, a store for each pair; an input of 0
// is a test alone.
static_assert(currentRow(14, 0, 2, 4, false) == 6 + (7 + 7 * 5) + 1);
static_assert(currentRow(14, 100, 2, 4, true) == 8 + (5 + 14 * 6) + 100 * 5 + 1);
// Listing 700 inputs: for each pair ld64, the comparison's way to an integer register, branch, loop; of 16 that are not
// 0 the stores of id and value, tests and counters.
static_assert(listedRow(700, 16, 2) == 9 + 3 * 4 + (4 + 16 * 3 + 5 * 7) + 350 * 5 + 16 * (6 + 4));
static_assert(lastGradient(snnjax::Boxcar) == 5 + 2 + 1 + 3 + 1 + 7 + 3);
static_assert(sumListedRows(14, 2, 4, false) == 7 + 7 * 7 && sumListedRows(15, 2, 4, false) == 7 + 7 * 7 + 4);
static_assert(sumListedRows(15, 2, 4, false, true) == 7 + 7 * 5 + 3);  // rows that a codelet made: no min
static_assert(sumListedRows(10, 22, 4, false) == (7 + 5 * 19) + (7 + 5 * 17));
static_assert(sumListedRows(10, 22, 4, true) == 2 * (5 + 10 * 11) + (5 + 10 * 10));  // with values four pairs at once
static_assert(dotListedRows(14, 2, 4) == 6 + 1 + 7 * 11);  // of two: ldz16, min, ld64, store each, branch; two wait
static_assert(dotListedRows(15, 6, 4) == 6 + 3 + 7 * (2 * 7 + 1 + 2) + (2 + 1 + 5 + 4));
// Two rows of eight pairs: two products and two sums for each pair but the first, in blocks of six and one.
static_assert(dotListedRows(15, 16, 4) == 5 + 7 * (8 + 4 + 4 + (2 + 24) + (2 + 4)) + (5 + 3 + 3 + (2 + 13) + (2 + 3)));
static_assert(dotListedRows(2, 10, 2) == 5 + (8 + (4 + 2) + 4 + (2 + 24)));  // halves are widened
// Marked rows, some in a word that has no others, where only the pairs, a pointer and the branch are left.
static_assert(sumMarkedRows({2, 40, 32}, 12) == 8 + 2 * 10 + 8 * 13 + 32 * 8);
// ldz16, compare, branch, ld64, add, st64, branch
static_assert(addToListedRows(14, 2, false) == 6 + 14 * 6);
static_assert(addToListedRows(14, 2, true) == 6 + 14 * 8);   // besides: the value's load and the product
static_assert(addToListedRows(14, 4, false) == 7 + 14 * 9);  // the row's product, and a second load and store
static_assert(numBelow(0) == 4 && numBelow(14) == 4 + 4 * 7);

// Neurons.
static_assert(advance(kNone, true) == 16 && advance(kSubtract, true) == 17 && advance(kSubtract, false) == 15);
static_assert(advanceTwo(kNone, true) == 25 + 1 && advanceTwo(kSubtract, false) == 26 + 2);
static_assert(surrogate(kSuperspike) == 4 + 4 + 6);
static_assert(membraneGradient(GradientSwitches{kSubtract, kSuperspike, true}) == 25 + 14 + 8);

// Lists.
static_assert(walkOf({30, 4, 1}) == 30 * 7 + 4 * 10 + 6);
static_assert(partOf(3, 2) == 24 + 3 * 8);
static_assert(packedRow(3) == 5 + 4 && packedRow(11) == 6 * 5 + 2 * 6 + 4);
static_assert(blocksOfRow(30, 6) == 30 * 4 && blocksOfRow(9, 22) == 9 * (5 + 2 * 6));
static_assert(joinRow(5, 2) == 12 * 4 + 8 + 2 * 24 + 5 * 10 + 14 + 2 * 2);
// 700 candidates: the extremes, nine counts of 175 fours.
static_assert(searchLists({700, 9, 0, 0, 0, false}) == (60 + 700 * 3) + 9 * (18 + 60 + 175 * 7));
static_assert(searchLists({700, 9, 0, 2, 5, false}) - searchLists({700, 9, 0, 0, 0, false}) ==
              2 * (18 + 60 + 700 * 5 + 5 * 12));
static_assert(searchLists({40, 3, 0, 0, 0, true}) == (60 + 40 * 3) + 3 * (18 + 10 * 7));  // gathered
static_assert(searchLists({40, 3, 2, 0, 0, true}) - searchLists({40, 3, 0, 0, 0, true}) == 2 * (13 + 10 * 11));
static_assert(sumRows(733, 2, true) == 12 + 733 + 91 && sumRows(16, 10, true) == (18 + 16 * 4 + 8) + (12 + 16 + 2));

// One op's rows, and copies. Two entries of value 0: skipped, once for a block of columns.
static_assert(matmulRow(14, 2, 2, 4) == 10 + (5 + 14 * 7) + 2 * 5 + 2);
static_assert(filled(6, 4, 6) == 3 * 2 && filled(5, 4, 5) == 5 * 2 && moved(6, 4, 6) == 3 * 3 &&
              moved(6, 2, 6) == 3 * 3);

// Each function of one number must not fall where that number grows.
template <typename F>
void checkMonotone(const char* name, F&& cost) {
  for (unsigned work = 0; work < 200; ++work) {
    if (cost(work + 1) < cost(work)) check::that(false, name, __FILE__, __LINE__, std::to_string(work));
  }
}

void testMonotone() {
  for (unsigned width : {2U, 4U}) {
    for (unsigned columns : {2U, 4U, 8U, 22U}) {
      checkMonotone("sums in spikes", [=](unsigned n) { return sumListedRows(n, columns, width, false); });
      checkMonotone("valued sums in spikes", [=](unsigned n) { return sumListedRows(n, columns, width, true); });
      checkMonotone("dots in ids", [=](unsigned n) { return dotListedRows(n, columns, width); });
      checkMonotone("updates in ids", [=](unsigned n) { return addToListedRows(n, columns, false); });
    }
    checkMonotone("sums in pairs of columns", [=](unsigned n) { return sumListedRows(10, 2 * n, width, false); });
    checkMonotone("updates in pairs of columns", [=](unsigned n) { return addToListedRows(10, 2 * n, false); });
  }
  checkMonotone("search", [](unsigned n) { return numBelow(n); });
  checkMonotone("candidates", [](unsigned n) { return partOf(n, 2); });
  checkMonotone("pairs", [](unsigned n) { return walkOf({n, 0, 1}); });
  checkMonotone("pairs near", [](unsigned n) { return walkOf({200, n, 1}); });
  checkMonotone("marks of pairs", [](unsigned n) { return packedRow(n); });
  checkMonotone("candidates to cut", [](unsigned n) { return searchLists({n, 9, 2, 1, 3, false}); });
  checkMonotone("passes of the search", [](unsigned n) { return searchLists({100, n, n, n, 3, true}); });
  checkMonotone("candidates of a list", [](unsigned n) { return joinRow(n, 3); });
  checkMonotone("sum of rows", [](unsigned n) { return sumRows(n, 4, true); });
}

void testSamplesMonotone() {
  for (unsigned neurons : {2U, 8U, 22U}) {
    checkMonotone("spikes of a row", [=](unsigned n) { return currentRow(n, 0, neurons, 4, false); });
    checkMonotone("inputs that are not 0", [=](unsigned n) { return currentRow(n, 200 - n, neurons, 4, true); });
    checkMonotone("listed inputs", [=](unsigned n) { return listedRow(200 * neurons, n, 2); });
    checkMonotone("used entries", [=](unsigned n) { return matmulRow(n, 200 - n, neurons, 4); });
  }
  checkMonotone("filled", [](unsigned n) { return filled(n, 2, 2); });
  checkMonotone("copied", [](unsigned n) { return moved(n, 2, 2); });
  for (unsigned char kind = kSuperspike; kind <= snnjax::StraightThrough; ++kind) {
    CHECK(membraneGradient(GradientSwitches{kSubtract, kind, false}) >
          membraneGradient(GradientSwitches{kSubtract, kind, true}));
  }
}

// The slowest worker of LifScan on 48 samples of two neurons: 8 numbers a worker, of 3 steps each that have not ended.
void testVertex(const ipu_model::CodeletLibrary& library) {
  constexpr unsigned kBatch = 48, kSteps = 3, kNeurons = 2;
  const auto cyclesOf = [&](unsigned length) {
    Alone vertex(library, "snnjax::LifScan<false,true>");
    for (const char* name : {"bias", "decay", "gain", "threshold", "second_threshold"}) {
      vertex.edge(name, std::vector<float>(kNeurons));
    }
    vertex.edge("lengths", std::vector<unsigned>(kBatch, length)).edge("block", std::vector<unsigned>{1});
    for (const char* name : {"counts", "membranes"}) vertex.edge(name, std::vector<float>(kBatch * kNeurons));
    for (const char* name : {"current", "offered"}) vertex.edge(name, std::vector<float>(kBatch * kSteps * kNeurons));
    vertex.edge("marks", std::vector<unsigned>(kBatch * kSteps)).state("offered_stride", kNeurons);
    vertex.state("num_steps", kSteps).state("batch", kBatch).state("neurons", kNeurons);
    vertex.state("reset", kSubtract).state("keep_history", false).run().get<float>("offered");
    return vertex.cycles();
  };
  constexpr std::uint64_t kEntry = 6 + 18 + 6 + 48 * 4, kNumber = 26 + 10, kInside = 17, kTwo = 30, kBehind = 7;
  CHECK_EQUAL(cyclesOf(100), kEntry + 8 * (kNumber + kTwo + kInside));
  CHECK_EQUAL(cyclesOf(kSteps + 1), kEntry + 8 * (kNumber + kInside + 2 * kBehind));
  CHECK_EQUAL(cyclesOf(kSteps), kEntry + 8 * (kNumber + 3 * kBehind));
}

// A pair of LifGradientScan whose spikes have no gradient, in either form: of one or of two floats at a time.
void testPair(const ipu_model::CodeletLibrary& library) {
  constexpr unsigned kSteps = 3, kNeurons = 2;
  Alone vertex(library, "snnjax::LifGradientScan<false,false>");
  for (const char* name : {"decay", "gain", "threshold", "second_threshold", "g_counts", "g_v", "g_last", "g_bias"}) {
    vertex.edge(name, std::vector<float>(kNeurons));
  }
  for (const char* name : {"g_spikes", "g_current"}) vertex.edge(name, std::vector<float>(kSteps * kNeurons));
  vertex.edge("membranes", std::vector<float>((kSteps + 1) * kNeurons)).edge("block", std::vector<unsigned>{0});
  vertex.edge("lengths", std::vector<unsigned>{kSteps}).state("num_steps", kSteps).state("batch", 1U);
  vertex.state("neurons", kNeurons).state("reset", kSubtract).state("surrogate", kSuperspike).state("slope", 1.0f);
  vertex.state("detach_reset", true).state("starts", true).run().get<float>("g_current");
  constexpr std::uint64_t kEntry = 6 + 20 + 6 + 4, kNumber = 12 + 15;
  CHECK_EQUAL(vertex.cycles(), kEntry + kNumber + kSteps * 9 - 3);
}

}  // namespace

int main(int argc, char** argv) {
  testMonotone();
  testSamplesMonotone();
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    testVertex(library);
    testPair(library);
  });
}
