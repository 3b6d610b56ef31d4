#include "planner/product_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <vector>

#include "poplar_kernels/products/matrix_unit_cycles.hpp"

namespace snnjax::planner {
namespace {

using Main = ProductPlan::Main;

// Whole blocks of the unit where there are several, in ever coarser steps; or the settled block.
std::vector<std::size_t> blockSizes(std::size_t size, std::size_t tiles, std::size_t settled) {
  constexpr std::size_t kUnit = 8, kFine = 128, kSteps = 8;
  if (settled > 0) return {settled};
  std::set<std::size_t> blocks{std::max<std::size_t>(1, size)};
  for (const std::size_t block : {1, 2, 4}) blocks.insert(std::min(block, std::max<std::size_t>(1, size)));
  for (std::size_t block = kUnit; block < size;) {
    blocks.insert(block);
    block += block < kFine ? kUnit : block / kSteps / kUnit * kUnit;
  }
  std::erase_if(blocks, [=](std::size_t block) { return ceilDivide(size, block) > tiles; });
  return {blocks.begin(), blocks.end()};
}

// One division: its traffic, its memory and its time.
class Estimate {
 public:
  Estimate(const ProductSizes& sizes, const Machine& machine, ProductPlan plan)
      : sizes_(sizes), machine_(machine), plan_(plan) {}

  ProductPlan result() {
    plan_.k_step = plan_.k_block;
    const std::size_t sums = bytesOfSums();
    if (plan_.main == Main::Out) serialise(sums);
    plan_.bytes = bytesOfOperands() + sums;
    plan_.cycles = transpositions();  // says which operands travel transposed
    plan_.cycles += exchange() + products() + reduction();
    plan_.code = (plan_.steps() * messages() + messagesOfSums()) * kMessageCode;
    return plan_;
  }

 private:
  std::size_t bytesOfElement() const { return sizes_.halves ? 2 : 4; }
  bool lhsStays() const { return plan_.main == Main::Lhs && plan_.n_parts == 1; }
  bool rhsStays() const { return plan_.main == Main::Rhs && plan_.m_parts == 1; }
  bool addsUp() const { return plan_.k_parts > 1; }
  // Sums move elsewhere or change type: a block of them is held beside the output.
  bool hasSums() const { return plan_.main != Main::Out || addsUp() || sizes_.halves; }

  std::size_t lhsElements() const { return lhsStays() ? 0 : plan_.m_block * plan_.k_step; }
  std::size_t rhsElements() const { return rhsStays() ? 0 : plan_.k_step * plan_.n_block; }
  std::size_t bytesOfOperands() const { return (lhsElements() + rhsElements()) * bytesOfElement(); }
  // The tile's own, and those received to be added up.
  std::size_t bytesOfSums() const { return hasSums() ? plan_.m_block * plan_.n_block * 4 * (addsUp() ? 2 : 1) : 0; }

  // So many steps of the depth, in whole blocks of the unit, that operands fit beside the sums.
  void serialise(std::size_t sums) {
    const std::size_t unit = cycles::unitDepth(sizes_.halves);
    const std::size_t room = machine_.bytes > sums ? machine_.bytes - sums : 0;
    const std::size_t of_unit = (plan_.m_block + plan_.n_block) * unit * bytesOfElement();
    const std::size_t units = std::max<std::size_t>(1, room / std::max<std::size_t>(1, of_unit));
    if (units * unit < plan_.k_block)
      plan_.k_step =
          ceilDivide(ceilDivide(plan_.k_block, unit), ceilDivide(ceilDivide(plan_.k_block, unit), units)) * unit;
  }

  // Received by a tile in one step. Operands that are transposed before they travel are stored as they are used.
  std::size_t messages() const {
    const std::size_t lhs = lhsStays() ? 0 : sizes_.lhs_in_rows && !plan_.transposes_lhs ? plan_.m_block : 1;
    const std::size_t rhs = rhsStays() ? 0 : sizes_.rhs_in_rows && !plan_.transposes_rhs ? plan_.k_step : 1;
    return lhs + rhs;
  }
  // Rows of an output in another layout are cut where its tiles' parts begin.
  std::size_t messagesOfSums() const {
    if (!sizes_.out_in_rows || !hasSums()) return addsUp() ? plan_.k_parts : 0;
    return 2 * plan_.m_block;
  }

  // Words received by a tile. Both tiles of a pair receive the operand that they share in half the time.
  double exchange() const {
    const double steps = static_cast<double>(plan_.steps());
    const double bytes = static_cast<double>(bytesOfElement());
    const double lhs = static_cast<double>(lhsElements()) * bytes / 4,
                 rhs = static_cast<double>(rhsElements()) * bytes / 4;
    if (lhs + rhs == 0) return 0;
    const auto saved = [](double words, std::size_t sharers) {
      return words / 2 * static_cast<double>(sharers / 2 * 2) / static_cast<double>(sharers);
    };
    double shared = 0;
    if (plan_.main == Main::Lhs) shared = plan_.n_parts > 1 ? saved(lhs, plan_.n_parts) : saved(rhs, plan_.m_parts);
    if (plan_.main == Main::Rhs) shared = plan_.m_parts > 1 ? saved(rhs, plan_.m_parts) : saved(lhs, plan_.n_parts);
    if (plan_.main == Main::Out) shared = saved(lhs, plan_.n_parts);
    return steps * (kPhase + lhs + rhs - shared + kMessage * static_cast<double>(messages()));
  }

  // The stationary matrix is transposed in place; what travels is transposed before it is sent, in a step of its own,
  // for which each element goes to the tile that transposes it (poplar_kernels/movement/cycles.hpp).
  double transpositions() {
    double cycles = 0;
    const auto decide = [&](bool transposed, bool stays, std::size_t elements, bool& here, bool& before) {
      here = transposed && stays;
      before = transposed && !stays;
      constexpr double kVertex = 300, kElement = 6 + 3;  // and its message
      const double on_tile = static_cast<double>(ceilDivide(elements, machine_.tiles));
      if (before) cycles += kPhase + kComputeSet + kVertex + kElement * on_tile;
    };
    decide(sizes_.lhs_transposed, lhsStays(), sizes_.m * sizes_.k, plan_.lhs_transposed, plan_.transposes_lhs);
    decide(sizes_.rhs_transposed, rhsStays(), sizes_.k * sizes_.n, plan_.rhs_transposed, plan_.transposes_rhs);
    return cycles;
  }

  // On the tile with the largest block. The unit holds the stationary operand; if the output is stationary, the better
  // operand.
  double products() {
    const auto product = [this](std::size_t rows, std::size_t columns) {
      return static_cast<double>(cycles::matrixProduct(rows, plan_.k_step, columns, sizes_.halves));
    };
    const double holding_lhs = product(plan_.n_block, plan_.m_block),
                 holding_rhs = product(plan_.m_block, plan_.n_block);
    plan_.holds_lhs = plan_.main == Main::Out ? holding_lhs < holding_rhs : plan_.main == Main::Lhs;
    std::size_t transposed = plan_.lhs_transposed ? plan_.m_block * plan_.k_step : 0;
    if (plan_.rhs_transposed) transposed += plan_.k_step * plan_.n_block;
    return static_cast<double>(plan_.steps()) * (kComputeSet + (plan_.holds_lhs ? holding_lhs : holding_rhs) +
                                                 static_cast<double>(cycles::transposed(transposed, sizes_.halves)));
  }

  // Every tile adds up its share of the outputs.
  double reduction() const {
    const std::size_t block = plan_.m_block * plan_.n_block;
    if (addsUp()) {
      const std::size_t fours = ceilDivide(ceilDivide(block, plan_.k_parts), 4 * 6);
      return kPhase + kComputeSet + static_cast<double>(block) + kMessage * static_cast<double>(messagesOfSums()) +
             6 * static_cast<double>(cycles::sumPartials(fours, plan_.k_parts));
    }
    if (!hasSums()) return 0;
    return kComputeSet + 6 * static_cast<double>(cycles::sumPartials(ceilDivide(block, 4 * 6), 1)) +
           (plan_.main == Main::Out ? 0 : kPhase + static_cast<double>(block));
  }

  const ProductSizes& sizes_;
  const Machine& machine_;
  ProductPlan plan_;
};

// The largest matrix is stationary, or an output that is not much smaller: so weights stay in place over a time loop.
std::vector<Main> mainMatrices(const ProductSizes& sizes) {
  constexpr std::size_t kMuchSmaller = 4;
  const Main largest = largestMatrix(sizes);
  const std::size_t most = std::max({sizes.m * sizes.k, sizes.k * sizes.n, sizes.m * sizes.n});
  if (largest == Main::Out || sizes.m * sizes.n * kMuchSmaller < most) return {largest};
  return {largest, Main::Out};
}

class Search {
 public:
  Search(const ProductSizes& sizes, const Machine& machine) : sizes_(sizes), machine_(machine) {}

  void tryBlocks(ProductPlan plan) {
    plan = Estimate(sizes_, machine_, plan).result();
    const bool fits = memory(plan) <= machine_.bytes;
    const bool better = fits == fits_ ? (fits ? plan.cycles < best_.cycles : memory(plan) < memory(best_)) : fits;
    if (any_ && !better) return;
    any_ = true;
    fits_ = fits;
    best_ = plan;
  }
  const ProductPlan& best() const { return best_; }
  bool fits() const { return fits_; }

 private:
  // Code of the exchange stays when operands and sums are gone.
  static std::size_t memory(const ProductPlan& plan) { return plan.bytes + plan.code; }

  const ProductSizes& sizes_;
  const Machine& machine_;
  ProductPlan best_;
  bool any_ = false, fits_ = false;
};

}  // namespace

std::size_t ProductPlan::tile(std::size_t m, std::size_t k, std::size_t n, bool depth_first) const {
  const bool along_depth = depth_first != columns_first;
  switch (main) {
    case Main::Lhs: return (along_depth ? k * m_parts + m : m * k_parts + k) * spacing + n;
    case Main::Rhs: return (along_depth ? k * n_parts + n : n * k_parts + k) * spacing + m;
    case Main::Out: break;
  }
  return (k * m_parts * n_parts + (columns_first ? n * m_parts + m : m * n_parts + n)) * spacing;
}

namespace {

void searchBlocks(Search& search, const ProductSizes& sizes, const Machine& machine, const SettledBlocks& settled,
                  const std::vector<Main>& mains) {
  ProductPlan plan;
  const auto all_k = blockSizes(sizes.k, machine.tiles, settled.k);
  const auto all_n = blockSizes(sizes.n, machine.tiles, settled.n);
  for (const std::size_t m : blockSizes(sizes.m, machine.tiles, settled.m)) {
    plan.m_block = m;
    plan.m_parts = ceilDivide(sizes.m, m);
    for (const std::size_t n : all_n) {
      plan.n_block = n;
      plan.n_parts = ceilDivide(sizes.n, n);
      for (const std::size_t k : all_k) {
        plan.k_block = k;
        plan.k_parts = ceilDivide(sizes.k, k);
        if (plan.parts() > machine.tiles) continue;
        for (const Main main : mains) {
          plan.main = main;
          search.tryBlocks(plan);
        }
      }
    }
  }
}

}  // namespace

Main largestMatrix(const ProductSizes& sizes) {
  const std::size_t lhs = sizes.m * sizes.k, rhs = sizes.k * sizes.n, out = sizes.m * sizes.n;
  if (out >= lhs && out >= rhs) return Main::Out;
  return lhs >= rhs ? Main::Lhs : Main::Rhs;
}

// A stationary output can always be computed in small steps.
ProductPlan planProduct(const ProductSizes& sizes, const Machine& machine, const SettledBlocks& settled) {
  Search search(sizes, machine);
  const bool is_settled = settled.m + settled.k + settled.n > 0;
  searchBlocks(search, sizes, machine, settled,
               is_settled ? std::vector<Main>{largestMatrix(sizes)} : mainMatrices(sizes));
  if (!search.fits()) searchBlocks(search, sizes, machine, {}, {Main::Out});
  ProductPlan plan = search.best();
  plan.spacing = plan.neighbours();
  return plan;
}

}  // namespace snnjax::planner
