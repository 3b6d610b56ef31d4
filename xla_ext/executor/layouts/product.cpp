#include "executor/layouts/product.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace snnjax::executor {
namespace {

std::vector<unsigned> asDimensions(const std::vector<std::int64_t>& ints) { return {ints.begin(), ints.end()}; }

std::vector<unsigned> others(std::size_t rank, const std::vector<unsigned>& a, const std::vector<unsigned>& b) {
  std::vector<unsigned> kept;
  for (unsigned d = 0; d < rank; ++d) {
    if (std::ranges::count(a, d) == 0 && std::ranges::count(b, d) == 0) kept.push_back(d);
  }
  return kept;
}

std::size_t sizeOf(const Shape& shape, const std::vector<unsigned>& dimensions) {
  std::size_t size = 1;
  for (const unsigned d : dimensions) size *= shape[d];
  return size;
}

bool depthFirst(const std::vector<unsigned>& contracting, const std::vector<unsigned>& free) {
  return !contracting.empty() && !free.empty() &&
         *std::ranges::max_element(contracting) < *std::ranges::min_element(free);
}

// Blocks that suit the codelets' 8 columns, more coarsely the larger they are; or the one that is known.
std::vector<std::size_t> blockSizes(std::size_t size, const KnownBlocks& known) {
  constexpr std::size_t kColumns = 8, kSteps = 8;
  std::set<std::size_t> blocks{std::max<std::size_t>(1, size)};
  if (const auto found = known.find(size); found != known.end()) {
    blocks.insert(found->second);
    return {blocks.begin(), blocks.end()};
  }
  for (const std::size_t block : {1, 2, 4}) blocks.insert(std::min(block, std::max<std::size_t>(1, size)));
  for (std::size_t block = kColumns; block < size; block += std::max(kColumns, block / kSteps / kColumns * kColumns)) {
    blocks.insert(block);
  }
  return {blocks.begin(), blocks.end()};
}

// Issue slots of one row of a block, poplar_kernels/dot_cycles.hpp: full blocks of 8 columns, then pairs.
double rowSlots(double columns, double depth) {
  constexpr double kBlock = 30, kBlockStep = 11, kPair = 18, kPairStep = 5;
  const double full = static_cast<double>(static_cast<std::size_t>(columns) / 8);
  const double pairs = static_cast<double>((static_cast<std::size_t>(columns) % 8 + 1) / 2);
  return full * (kBlock + kBlockStep * depth) + pairs * (kPair + kPairStep * depth);
}

// In cycles of the fullest tile: its products on six workers, the words that come from elsewhere, and where the depth
// is divided the exchange and the sum of partial results, which is a stage of its own.
double estimate(const ProductPlan& plan) {
  constexpr double kStage = 600, kSum = 1.5, kMostWords = 100000;
  const auto m = static_cast<double>(plan.m_block), k = static_cast<double>(plan.k_block),
             n = static_cast<double>(plan.n_block);
  const double lhs = m * k, rhs = k * n, out = m * n;
  if (lhs + rhs + 2 * out > kMostWords) return std::numeric_limits<double>::infinity();
  const double workers = static_cast<double>(ceilDivide(plan.m_block * ceilDivide(plan.n_block, 8), 6)) * 6 /
                         static_cast<double>(plan.m_block * ceilDivide(plan.n_block, 8));
  double cycles = m * rowSlots(n, k) * workers;
  if (!(plan.main == ProductPlan::Main::Lhs && plan.n_parts == 1)) cycles += lhs;
  if (!(plan.main == ProductPlan::Main::Rhs && plan.m_parts == 1)) cycles += rhs;
  if (plan.k_parts > 1) return cycles + kStage + (1 + kSum) * out;
  return plan.main == ProductPlan::Main::Out ? cycles : cycles + out;
}

ProductPlan::Main largest(const Product& product) {
  const std::size_t lhs = product.m * product.k, rhs = product.k * product.n, out = product.m * product.n;
  if (out >= lhs && out >= rhs) return ProductPlan::Main::Out;
  return lhs >= rhs ? ProductPlan::Main::Lhs : ProductPlan::Main::Rhs;
}

// Any blocks do: the smallest that fit on the tiles, where no estimate is finite.
ProductPlan evenly(const Product& product, std::size_t tiles, ProductPlan plan) {
  plan.m_parts = std::clamp<std::size_t>(tiles, 1, std::max<std::size_t>(1, product.m));
  plan.m_block = ceilDivide(product.m, plan.m_parts);
  plan.m_parts = ceilDivide(product.m, std::max<std::size_t>(1, plan.m_block));
  plan.k_block = product.k;
  plan.n_parts =
      std::clamp<std::size_t>(tiles / std::max<std::size_t>(1, plan.m_parts), 1, std::max<std::size_t>(1, product.n));
  plan.n_block = ceilDivide(product.n, plan.n_parts);
  plan.n_parts = ceilDivide(product.n, std::max<std::size_t>(1, plan.n_block));
  return plan;
}

}  // namespace

Product::Product(const Plan& plan, const Instruction& instruction)
    : lhs(plan.types[instruction.inputs[0]].shape),
      rhs(plan.types[instruction.inputs[1]].shape),
      out(plan.types[instruction.outputs[0]].shape),
      lhs_batching(asDimensions(instruction.ints[0])),
      rhs_batching(asDimensions(instruction.ints[1])),
      lhs_contracting(asDimensions(instruction.ints[2])),
      rhs_contracting(asDimensions(instruction.ints[3])) {
  groups = sizeOf(lhs, lhs_batching);
  m = sizeOf(lhs, lhsFree());
  k = sizeOf(lhs, lhs_contracting);
  n = sizeOf(rhs, rhsFree());
}

std::vector<unsigned> Product::lhsFree() const { return others(lhs.size(), lhs_batching, lhs_contracting); }
std::vector<unsigned> Product::rhsFree() const { return others(rhs.size(), rhs_batching, rhs_contracting); }
bool Product::lhsDepthFirst() const { return depthFirst(lhs_contracting, lhsFree()); }
bool Product::rhsDepthFirst() const { return rhsFree().empty() || depthFirst(rhs_contracting, rhsFree()); }

std::size_t ProductPlan::tile(std::size_t m, std::size_t k, std::size_t n, bool depth_first) const {
  switch (main) {
    case Main::Lhs: return (depth_first ? k * m_parts + m : m * k_parts + k) * spacing + n;
    case Main::Rhs: return (depth_first ? k * n_parts + n : n * k_parts + k) * spacing + m;
    case Main::Out: break;
  }
  return (m * n_parts + n) * spacing + k;
}

ProductPlan planProduct(const Product& product, std::size_t tiles, const KnownBlocks& known) {
  ProductPlan plan, best;
  plan.main = best.main = largest(product);
  double least = std::numeric_limits<double>::infinity();
  const auto tryBlocks = [&] {
    const double cycles = estimate(plan);
    if (cycles < least) {
      least = cycles;
      best = plan;
    }
  };
  for (const std::size_t m : blockSizes(product.m, known)) {
    plan.m_block = m;
    plan.m_parts = ceilDivide(product.m, m);
    for (const std::size_t n : blockSizes(product.n, known)) {
      plan.n_block = n;
      plan.n_parts = ceilDivide(product.n, n);
      if (plan.m_parts * plan.n_parts > tiles) continue;
      for (const std::size_t k : blockSizes(product.k, known)) {
        plan.k_block = k;
        plan.k_parts = ceilDivide(product.k, k);
        if (plan.parts() <= tiles) tryBlocks();
      }
    }
  }
  if (least == std::numeric_limits<double>::infinity()) best = evenly(product, tiles, best);
  best.spacing = best.thirdParts();
  return best;
}

}  // namespace snnjax::executor
