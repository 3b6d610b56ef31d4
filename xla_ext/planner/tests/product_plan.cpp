// Plans of random products: their blocks cover the product, fit in memory and use distinct tiles, and the time falls as
// a machine grows.
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "check.hpp"
#include "planner/product_plan.hpp"

using namespace snnjax::planner;

namespace {

class Draws {
 public:
  ProductSizes sizes() { return {size(), size(), size(), flip(), flip(), flip()}; }
  Machine machine() { return {tiles_[random_() % tiles_.size()], std::size_t{16384} << random_() % 6}; }
  bool flip() { return random_() % 2 == 0; }

 private:
  // As often small as large.
  std::size_t size() { return 1 + random_() % (std::size_t{1} << (1 + random_() % 12)); }

  std::mt19937 random_{17};
  std::vector<std::size_t> tiles_{1, 7, 64, 300, 1472};
};

// The number of parts of a size, of which every one but the last is whole, and none empty.
void checkCut(std::size_t size, std::size_t block, std::size_t parts) {
  CHECK(block >= 1 && parts >= 1);
  CHECK(parts * block >= size && (parts - 1) * block < size);
}

void blocksMakeUpTheProduct(const ProductSizes& sizes, const Machine& machine, const ProductPlan& plan) {
  checkCut(sizes.m, plan.m_block, plan.m_parts);
  checkCut(sizes.k, plan.k_block, plan.k_parts);
  checkCut(sizes.n, plan.n_block, plan.n_parts);
  checkCut(plan.k_block, plan.k_step, plan.steps());
  CHECK(plan.main == ProductPlan::Main::Out || plan.steps() == 1);
  CHECK(plan.parts() <= machine.tiles && plan.tiles() <= machine.tiles);
}

void tilesAreToldApart(const ProductPlan& plan) {
  for (const bool depth_first : {false, true}) {
    std::set<std::size_t> tiles;
    for (std::size_t m = 0; m < plan.m_parts; ++m) {
      for (std::size_t k = 0; k < plan.k_parts; ++k) {
        for (std::size_t n = 0; n < plan.n_parts; ++n) tiles.insert(plan.tile(m, k, n, depth_first));
      }
    }
    CHECK_EQUAL(tiles.size(), plan.parts());
    CHECK(*tiles.rbegin() < plan.tiles());
  }
}

// For a tile: what it receives, recounted, and sums where the output is not written directly.
void memoryIsKept(const ProductSizes& sizes, const Machine& machine, const ProductPlan& plan) {
  using Main = ProductPlan::Main;
  const std::size_t element = sizes.halves ? 2 : 4;
  std::size_t bytes = 0;
  if (!(plan.main == Main::Lhs && plan.n_parts == 1)) bytes += plan.m_block * plan.k_step * element;
  if (!(plan.main == Main::Rhs && plan.m_parts == 1)) bytes += plan.k_step * plan.n_block * element;
  const bool at_once = plan.main == Main::Out && plan.k_parts == 1 && !sizes.halves;
  if (!at_once) bytes += plan.m_block * plan.n_block * 4 * (plan.k_parts > 1 ? 2 : 1);
  CHECK_EQUAL(plan.bytes, bytes);
  // This share of all sums and one step's operands fits whenever the machine is large enough for the product.
  const std::size_t sums = 2 * 4 * (sizes.m * sizes.n / machine.tiles + sizes.m + sizes.n);
  if (4 * sums < machine.bytes) CHECK(plan.bytes <= machine.bytes);
}

void randomProducts() {
  Draws draws;
  for (int i = 0; i < 300; ++i) {
    const ProductSizes sizes = draws.sizes();
    const Machine machine = draws.machine();
    const ProductPlan plan = planProduct(sizes, machine);
    blocksMakeUpTheProduct(sizes, machine, plan);
    tilesAreToldApart(plan);
    memoryIsKept(sizes, machine, plan);
  }
}

void settledBlocksBind() {
  const ProductPlan plan = planProduct({48, 300, 200}, {64, 300000}, {0, 40, 32});
  CHECK(plan.main == ProductPlan::Main::Rhs && plan.k_block == 40 && plan.n_block == 32);
}

// The stationary matrix is transposed on its tile, what travels once beforehand: not by each receiver.
void transposesWhatTravelsBefore() {
  const ProductPlan plan = planProduct({48, 2312, 1466, false, true, true}, {1472, 380000});
  CHECK(plan.main == ProductPlan::Main::Rhs);
  CHECK(plan.transposes_lhs && !plan.lhs_transposed && plan.rhs_transposed && !plan.transposes_rhs);
}

void largeProductsComeInSteps() {
  const Machine machine{1472, 383000};
  const ProductPlan square = planProduct({4096, 4096, 4096}, machine);
  CHECK(square.main == ProductPlan::Main::Out && square.steps() > 1 && square.bytes <= machine.bytes);
  // Few rows: weights stay where they are.
  const ProductPlan narrow = planProduct({16, 4096, 4096}, machine);
  CHECK(narrow.main == ProductPlan::Main::Rhs && narrow.m_parts == 1 && !narrow.holds_lhs);
}

// Each row of an operand that lies in rows is a message of a step: 20 bytes of code, which count as memory.
void rowsTakeCode() {
  const Machine machine{1472, 300000};
  const ProductPlan blocks = planProduct({4800, 2312, 1466}, machine);
  const ProductPlan rows =
      planProduct({.m = 4800, .k = 2312, .n = 1466, .lhs_in_rows = true, .out_in_rows = true}, machine);
  CHECK(rows.main == ProductPlan::Main::Out && rows.bytes + rows.code <= machine.bytes);
  const std::size_t of_sums = rows.k_parts > 1 ? 2 * rows.m_block : 0;
  CHECK_EQUAL(rows.code, 20 * (rows.steps() * (rows.m_block + 1) + of_sums));
  CHECK(blocks.code < rows.code && blocks.cycles < rows.cycles);
}

void moreTilesAreFaster() {
  for (const bool halves : {false, true}) {
    const ProductSizes sizes{512, 2048, 1024, halves};
    double before = planProduct(sizes, {1, 10000000}).cycles;
    for (const std::size_t tiles : {16, 256, 1472}) {
      const double cycles = planProduct(sizes, {tiles, 380000}).cycles;
      CHECK(cycles < before);
      before = cycles;
    }
  }
}

}  // namespace

int main() {
  randomProducts();
  settledBlocksBind();
  transposesWhatTravelsBefore();
  largeProductsComeInSteps();
  rowsTakeCode();
  moreTilesAreFaster();
  return check::failures;
}
