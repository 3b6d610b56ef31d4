#include "planner/row_plan.hpp"

#include <algorithm>
#include <vector>

#include "poplar_kernels/movement/cycles.hpp"
#include "poplar_kernels/reductions/cycles.hpp"

namespace snnjax::planner {
namespace {

constexpr std::size_t kWorkers = 6;

double times(std::uint64_t slots) { return static_cast<double>(kWorkers * slots); }

// Into ever more parts, up to `most`, of which none is empty: sizes of a part.
std::vector<std::size_t> partSizes(std::size_t size, std::size_t most) {
  constexpr std::size_t kSteps = 7;
  std::vector<std::size_t> blocks;
  const auto add = [&](std::size_t parts) {
    const std::size_t block = ceilDivide(size, parts);
    if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
  };
  const std::size_t limit = std::max<std::size_t>(1, std::min(size, most));
  for (std::size_t parts = 1; parts < limit; parts += 1 + parts / kSteps) add(parts);
  add(limit);
  return blocks;
}

// One division of a table: the memory and time of a tile.
class RowEstimate {
 public:
  RowEstimate(const RowSizes& sizes, const RowPlan& plan)
      : sizes_(sizes),
        plan_(plan),
        table_(plan.row_block * plan.column_block),
        found_(plan.lookup_block * plan.column_block) {}

  // Numbers and a part of the table are received, rows are looked up, and the results are combined.
  RowPlan gather() const {
    const bool joins = plan_.row_parts > 1;
    RowPlan plan = plan_;
    plan.bytes = 4 * plan.lookup_block + (table_ + found_ * (joins ? 2 : 1)) * sizes_.element_bytes;
    const std::size_t each = ceilDivide(plan.lookup_block, kWorkers);
    plan.cycles = kComputeSet + kPhase + words(table_) + messages(plan.row_block) +
                  static_cast<double>(plan.lookup_block) +
                  times(cycles::gatherRows(each, plan.column_block, static_cast<unsigned>(sizes_.element_bytes)));
    if (joins) plan.cycles += kComputeSet + kPhase + words(found_) + reduced(found_, plan.row_parts);
    return plan;
  }

  // Numbers and new values are received; every worker goes through the numbers and takes those of its rows. The table
  // is sent there and back, or the tables of each part of the numbers are combined in its place.
  RowPlan scatter() const {
    const bool joins = plan_.lookup_parts > 1;
    const std::size_t element = sizes_.element_bytes;
    RowPlan plan = plan_;
    plan.bytes = 4 * plan.lookup_block + (table_ + found_ + (joins ? plan.lookup_parts * sizes_.share : 0)) * element;
    const std::size_t sharing = std::min(kWorkers, plan.row_block);
    const std::size_t own = std::min(plan.lookup_block, plan.lookup_block / (plan.row_parts * sharing) + 1);
    plan.cycles = kComputeSet + kPhase + static_cast<double>(plan.lookup_block) + words(found_) +
                  times(cycles::scatterWith(plan.lookup_block, own, plan.column_block, static_cast<unsigned>(element)));
    if (joins) {
      plan.cycles += kComputeSet +
                     times(cycles::fillTensor(ceilDivide(table_, kWorkers), static_cast<unsigned>(element))) +
                     kComputeSet + kPhase + std::max(words(table_), words(plan.lookup_parts * sizes_.share)) +
                     messages(plan.lookup_parts * ceilDivide(sizes_.share, plan.column_block)) +
                     times(cycles::sumRows(plan.lookup_parts + 1, ceilDivide(sizes_.share, 2 * kWorkers) * 2, true));
    } else {
      plan.cycles += 2 * (words(table_) + messages(plan.row_block));
    }
    return plan;
  }

 private:
  double words(std::size_t elements) const { return static_cast<double>(elements * sizes_.element_bytes) / 4; }
  // Pieces of rows are received one by one (ipu_model/chips: receive_control_cycles), whole rows at once.
  double messages(std::size_t pieces) const {
    constexpr double kMessage = 3;
    return plan_.column_parts > 1 ? kMessage * static_cast<double>(pieces) : 0;
  }
  // A tile joins `parts` results of its share of `elements`, which are bits.
  double reduced(std::size_t elements, std::size_t parts) const {
    const std::size_t outputs = ceilDivide(ceilDivide(elements, parts), 2 * kWorkers) * 2;
    return times(cycles::reduce(outputs, parts, outputs * kWorkers, cycles::Element::Float));
  }

  const RowSizes& sizes_;
  const RowPlan& plan_;
  std::size_t table_, found_;  // elements
};

// Columns are divided in words of 64 bits, which a worker loads and stores at once.
template <class Of>
RowPlan search(const RowSizes& sizes, const Machine& machine, bool divides_lookups, const Of& estimate) {
  const std::size_t grain = std::max<std::size_t>(1, 8 / sizes.element_bytes);
  RowPlan best;
  bool any = false;
  for (const std::size_t grains : partSizes(ceilDivide(sizes.columns, grain), machine.tiles)) {
    RowPlan plan;
    plan.column_block = std::min(sizes.columns, grains * grain);
    plan.column_parts = ceilDivide(sizes.columns, plan.column_block);
    const std::size_t left = machine.tiles / plan.column_parts;
    for (const std::size_t lookups : partSizes(sizes.lookups, divides_lookups ? left : 1)) {
      plan.lookup_block = lookups;
      plan.lookup_parts = ceilDivide(sizes.lookups, lookups);
      for (const std::size_t rows : partSizes(sizes.rows, left / plan.lookup_parts)) {
        plan.row_block = rows;
        plan.row_parts = ceilDivide(sizes.rows, rows);
        const RowPlan tried = estimate(plan);
        const bool fits = tried.bytes <= machine.bytes, did = best.bytes <= machine.bytes;
        if (any && !(fits == did ? (fits ? tried.cycles < best.cycles : tried.bytes < best.bytes) : fits)) continue;
        any = true;
        best = tried;
      }
    }
  }
  return best;
}

}  // namespace

RowPlan planGather(const RowSizes& sizes, const Machine& machine) {
  return search(sizes, machine, true, [&](const RowPlan& plan) { return RowEstimate(sizes, plan).gather(); });
}

RowPlan planScatter(const RowSizes& sizes, const Machine& machine, bool in_order) {
  return search(sizes, machine, !in_order, [&](const RowPlan& plan) { return RowEstimate(sizes, plan).scatter(); });
}

}  // namespace snnjax::planner
