// Plans of random gathers and scatters: parts cover the table and the lookups and fit in memory, and the time does not
// rise as a machine grows.
#include <random>

#include "check.hpp"
#include "planner/row_plan.hpp"

using namespace snnjax::planner;

namespace {

void checkCut(std::size_t size, std::size_t block, std::size_t parts) {
  CHECK(block >= 1 && parts >= 1);
  CHECK(parts * block >= size && (parts - 1) * block < size);
}

void checkPlan(const RowSizes& sizes, const Machine& machine, const RowPlan& plan) {
  checkCut(sizes.rows, plan.row_block, plan.row_parts);
  checkCut(sizes.columns, plan.column_block, plan.column_parts);
  checkCut(sizes.lookups, plan.lookup_block, plan.lookup_parts);
  CHECK(plan.parts() <= machine.tiles);
  CHECK(plan.column_parts == 1 || plan.column_block * sizes.element_bytes % 8 == 0);
  CHECK(plan.bytes >= plan.row_block * plan.column_block * sizes.element_bytes);
  CHECK(plan.cycles > 0);
}

void randomPlans() {
  std::mt19937 random{11};
  const auto size = [&random] { return 1 + random() % (std::size_t{1} << (1 + random() % 12)); };
  for (int i = 0; i < 100; ++i) {
    const RowSizes sizes{size(), size(), size(), std::size_t{1} << random() % 3, size()};
    const Machine machine{1 + random() % 1472, std::size_t{1} << 18};
    const RowPlan gather = planGather(sizes, machine), scatter = planScatter(sizes, machine, false);
    const RowPlan ordered = planScatter(sizes, machine, true);
    for (const RowPlan& plan : {gather, scatter, ordered}) checkPlan(sizes, machine, plan);
    CHECK_EQUAL(ordered.lookup_parts, 1UL);
    CHECK(scatter.bytes > machine.bytes || ordered.bytes > machine.bytes || scatter.cycles <= ordered.cycles);
    CHECK(planGather(sizes, {2 * machine.tiles, machine.bytes}).bytes <= std::max(gather.bytes, machine.bytes));
  }
}

void noTileHasAWholeOperand() {
  const Machine machine{1472, 250000};
  const RowSizes sizes{4096, 512, 32768, 4, 1424};
  for (const RowPlan& plan : {planGather(sizes, machine), planScatter(sizes, machine, false)}) {
    CHECK(plan.bytes <= machine.bytes);
    CHECK(plan.row_block * plan.column_block * 20 < sizes.rows * sizes.columns);
    CHECK(plan.parts() > machine.tiles / 2);
  }
}

void fewLookupsDivideTheTable() {
  const RowPlan plan = planGather({4096, 64, 32, 4, 178}, {1472, 250000});
  CHECK(plan.row_parts > 1);
  const RowPlan small = planGather({16, 64, 4096, 4, 32}, {1472, 250000});
  CHECK_EQUAL(small.row_parts, 1UL);
}

}  // namespace

int main() {
  randomPlans();
  noTileHasAWholeOperand();
  fewLookupsDivideTheTable();
}
