#include "executor/layouts/layouts.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>

#include "executor/plan/options.hpp"

namespace snnjax::executor {
namespace {

// Tiles share a block in whole grains, so that their parts are aligned to 64 bits for any type.
constexpr std::size_t kGrain = 8;

poplar::Tensor joined(const std::vector<poplar::Tensor>& pieces) {
  return pieces.size() == 1 ? pieces[0] : poplar::concat(pieces);
}

// Fewer elements per tile cost more to transfer than they save.
constexpr std::size_t kLeastOnTile = 32;
// Data that only travels goes in few long messages, which both tiles of a pair can receive at once.
constexpr std::size_t kLeastToSend = 512;
// Elements per tile of an array of which each tile holds a part of every slice, where an even spread would hold fewer.
constexpr std::size_t kMostOnTile = 32768;

// Small arrays start on tiles all over the chip, chosen by their shape.
std::size_t firstTile(const Shape& shape, std::size_t choices) {
  constexpr std::size_t kMix = 2654435761U;  // Knuth's multiplicative hash: 2^32 over the golden ratio
  std::size_t hash = 1;
  for (const std::size_t size : shape) hash = (hash + size) * kMix % (std::size_t{1} << 32);
  return hash % choices;
}

// Row-major over as many tiles as pay off.
Blocks spreadEvenly(const Shape& shape, std::size_t tiles, std::size_t least_on_tile) {
  const std::size_t elements = productOf(shape);
  Blocks blocks;
  blocks.columns = elements;
  blocks.column_block = std::max<std::size_t>(1, elements);
  blocks.spread = std::clamp<std::size_t>(elements / least_on_tile, 1, tiles);
  blocks.first_tile = firstTile(shape, tiles - blocks.spread + 1);
  return blocks;
}

// Whether the program cuts from an array along its first dimension (of more than one element), and no other.
bool cutsLeading(const Shape& shape, const Shape& part) {
  std::size_t d = 0;
  while (d < shape.size() && shape[d] == 1) ++d;
  return d < shape.size() && part[d] < shape[d] &&
         std::equal(shape.begin() + static_cast<std::ptrdiff_t>(d) + 1, shape.end(),
                    part.begin() + static_cast<std::ptrdiff_t>(d) + 1);
}

}  // namespace

// ---- One layout ----

std::size_t productOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

Shape withoutOnes(const Shape& shape) {
  Shape kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept), [](std::size_t size) { return size != 1; });
  return kept;
}

Layout::Layout(const Blocks& blocks, std::size_t tiles) : blocks_(blocks), cuts_(tiles + 1, 0) {
  std::size_t tile = blocks.first_tile, end = 0;
  blocks.forEach([&](std::size_t row, std::size_t column) {
    const std::size_t width = std::min(blocks.column_block, blocks.columns - column),
                      size = std::min(blocks.row_block, blocks.rows - row) * width,
                      grain = blocks.whole_rows ? width : kGrain, grains = ceilDivide(size, grain);
    for (std::size_t i = 1; i <= blocks.spread; ++i) {
      cuts_.at(++tile) = blocks.leading * (end + std::min(size, i * grains / blocks.spread * grain));
    }
    end += size;
  });
  while (tile < tiles) cuts_[++tile] = blocks.numElements();
}

// From consecutive blocks {block rows, columns of all} to rows, each across all blocks. Columns are divided evenly
// except for the last block.
poplar::Tensor Layout::rowsInOrder(const poplar::Tensor& blocks) const {
  if (blocks_.columns_first) return columnsSideBySide(blocks);
  const std::size_t width = blocks_.column_block, whole = blocks_.columns / width;
  const std::size_t rest = blocks_.columns - whole * width;
  std::vector<poplar::Tensor> pieces;
  std::size_t begin = 0;
  for (std::size_t row = 0; row < blocks_.rows; row += blocks_.row_block) {
    const std::size_t rows = std::min(blocks_.row_block, blocks_.rows - row);
    const std::size_t middle = begin + rows * whole * width, end = begin + rows * blocks_.columns;
    const poplar::Tensor even =
        blocks.slice(begin, middle).reshape({whole, rows, width}).dimShuffle({1, 0, 2}).reshape({rows, whole * width});
    begin = end;
    if (rest == 0) {
      pieces.push_back(even.flatten());
      continue;
    }
    const poplar::Tensor last = blocks.slice(middle, end).reshape({rows, rest});
    for (std::size_t i = 0; i < rows; ++i) {
      if (whole > 0) pieces.push_back(even[i]);
      pieces.push_back(last[i]);
    }
  }
  return joined(pieces);
}

// Blocks of one column are stacked, like their rows.
poplar::Tensor Layout::columnsSideBySide(const poplar::Tensor& blocks) const {
  std::vector<poplar::Tensor> columns;
  for (std::size_t column = 0; column < blocks_.columns; column += blocks_.column_block) {
    const std::size_t width = std::min(blocks_.column_block, blocks_.columns - column);
    const poplar::Tensor part = blocks.slice(column * blocks_.rows, (column + width) * blocks_.rows);
    columns.push_back(part.reshape({blocks_.rows, width}));
  }
  return poplar::concat(columns, 1).flatten();
}

// From all tiles' parts {tile by tile: leading, elements of the tile} to slices, each across all tiles.
poplar::Tensor Layout::slicesInOrder(const poplar::Tensor& memory) const {
  if (blocks_.leading == 1) return rowsInOrder(memory);
  std::vector<poplar::Tensor> slices;
  for (std::size_t i = 0; i < blocks_.leading; ++i) {
    std::vector<poplar::Tensor> parts;
    for (std::size_t tile = 0; tile + 1 < cuts_.size(); ++tile) {
      const std::size_t size = (cuts_[tile + 1] - cuts_[tile]) / blocks_.leading, first = cuts_[tile] + i * size;
      if (size > 0) parts.push_back(memory.slice(first, first + size));
    }
    slices.push_back(rowsInOrder(joined(parts)));
  }
  return joined(slices);
}

poplar::Tensor Layout::view(const poplar::Tensor& memory, const Shape& shape) const {
  if (isRowMajor() || memory.numElements() == 0) return memory.reshape(shape);
  return slicesInOrder(memory).reshape(shape);
}

// {leading, rows, columns} in memory order.
poplar::Tensor Layout::blocksOf(const poplar::Tensor& matrices) const {
  std::vector<poplar::Tensor> pieces;
  std::size_t tile = blocks_.first_tile, done = 0;
  blocks_.forEach([&](std::size_t row, std::size_t column) {
    const std::size_t last_row = std::min(row + blocks_.row_block, blocks_.rows);
    const std::size_t last_column = std::min(column + blocks_.column_block, blocks_.columns);
    const std::size_t size = (last_row - row) * (last_column - column);
    const poplar::Tensor block =
        matrices.slice(row, last_row, 1).slice(column, last_column, 2).reshape({blocks_.leading, size});
    if (blocks_.leading == 1) {
      pieces.push_back(block.flatten());
      return;
    }
    for (std::size_t i = 0; i < blocks_.spread; ++i, ++tile) {
      const std::size_t begin = cuts_[tile] / blocks_.leading - done, end = cuts_[tile + 1] / blocks_.leading - done;
      if (end > begin) pieces.push_back(block.slice(begin, end, 1).flatten());
    }
    done += size;
  });
  return joined(pieces);
}

poplar::Tensor Layout::memoryOrder(const poplar::Tensor& tensor) const {
  if (isRowMajor() || tensor.numElements() == 0) return tensor.flatten();
  return blocksOf(tensor.reshape({blocks_.leading, blocks_.rows, blocks_.columns}));
}

void Layout::map(poplar::Graph& graph, const poplar::Tensor& memory) const {
  for (std::size_t tile = 0; tile + 1 < cuts_.size(); ++tile) {
    if (cuts_[tile] == cuts_[tile + 1]) continue;
    graph.setTileMapping(memory.slice(cuts_[tile], cuts_[tile + 1]), static_cast<unsigned>(tile));
  }
}

// ---- Those of a program ----

// What decides, found in all blocks of a program.
struct Layouts::Uses {
  std::map<Product, double> products;  // and how often they are made
  std::set<Shape> sliced;
  std::set<Shape> worked_on;  // element by element, or summed: the more tiles hold some, the faster
};

double iterationsOf(const Instruction& instruction) {
  constexpr double kGuess = 10;
  if (instruction.op == "repeat") return static_cast<double>(instruction.ints[0][0]);
  return instruction.op == "while" ? kGuess : 1;
}

namespace {

const Shape& stayingMatrix(const Product& product) {
  switch (planner::largestMatrix({product.m, product.k, product.n})) {
    case ProductPlan::Main::Lhs: return product.lhs;
    case ProductPlan::Main::Rhs: return product.rhs;
    case ProductPlan::Main::Out: break;
  }
  return product.out;
}

// Those of the stationary matrix along its rows and columns, as stored; and back.
std::pair<std::size_t, std::size_t> blocksOfMatrix(const Product& product, const ProductPlan& plan) {
  const bool is_lhs = plan.main == ProductPlan::Main::Lhs;
  if (plan.main == ProductPlan::Main::Out) return {plan.m_block, plan.n_block};
  const std::size_t kept = is_lhs ? plan.m_block : plan.n_block;
  if (is_lhs ? product.lhsDepthFirst() : product.rhsDepthFirst()) return {plan.k_block, kept};
  return {kept, plan.k_block};
}

planner::SettledBlocks settledBlocks(const Product& product, const std::pair<std::size_t, std::size_t>& blocks) {
  using Main = ProductPlan::Main;
  const Main main = planner::largestMatrix({product.m, product.k, product.n});
  if (main == Main::Out) return {blocks.first, 0, blocks.second};
  const bool depth_first = main == Main::Lhs ? product.lhsDepthFirst() : product.rhsDepthFirst();
  const std::size_t kept = depth_first ? blocks.second : blocks.first,
                    depth = depth_first ? blocks.first : blocks.second;
  if (main == Main::Lhs) return {kept, depth, 0};
  return {0, depth, kept};
}

}  // namespace

void Layouts::collect(const Plan& plan, const Block& block, double times, Uses& uses) {
  for (const Instruction& instruction : block.instructions) {
    if (instruction.op == "dot") uses.products[Product(plan, instruction)] += times;
    const bool updates = instruction.op == "dynamic_update_slice";
    if (updates || instruction.op == "dynamic_slice") {
      const Shape& whole = plan.types[instruction.inputs[0]].shape;
      const Shape& part = plan.types[updates ? instruction.inputs[1] : instruction.outputs[0]].shape;
      if (cutsLeading(whole, part)) uses.sliced.insert(withoutOnes(whole));
    }
    for (const ValueId value : instruction.outputs) {
      if (instruction.op == "elementwise" || instruction.op == "dot")
        uses.worked_on.insert(withoutOnes(plan.types[value].shape));
    }
    for (const Block& inner : instruction.blocks) collect(plan, inner, times * iterationsOf(instruction), uses);
  }
}

Layouts::Layouts(const Plan& plan, const poplar::Target& target, const std::vector<Proposal>& proposals)
    : plan_(plan),
      tiles_(target.getNumTiles()),
      tile_bytes_(target.getBytesPerTile()),
      proposed_(spreadProposals(plan, proposals, target.getNumTiles())) {
  Uses uses;
  collect(plan, plan.main, 1.0, uses);
  sliced_ = std::move(uses.sliced);
  worked_on_ = std::move(uses.worked_on);
  for (const Shape& shape : sliced_) {
    constexpr std::size_t kLeast = 8, kSlicesOnTile = 1024;  // a grain of a layout; elements of a long history
    std::size_t& least = least_on_tile_.try_emplace({shape.begin() + 1, shape.end()}, kLeastOnTile).first->second;
    least = std::min(least, std::clamp(kSlicesOnTile / shape[0], kLeast, kLeastOnTile));
  }
  std::vector<std::pair<double, const Product*>> by_work;
  for (const auto& [product, times] : uses.products) {
    by_work.emplace_back(-times * static_cast<double>(product.groups * product.m * product.k * product.n), &product);
  }
  std::ranges::stable_sort(by_work, {}, &std::pair<double, const Product*>::first);
  constexpr double kLight = 0.1;  // of the heaviest: what takes little memory
  for (const auto& [work, product] : by_work) heavy_products_ += work <= kLight * by_work[0].first ? 1 : 0;
  for (const auto& [work, product] : by_work) {
    settleShared(*product, by_work);
    divide(*product);
  }
}

// The memory a product may use on a tile: Poplar's default share, less where values need it, or plans did not fit.
planner::Machine Layouts::machineFor(const Product& product) const {
  // Of several products, what is brought for one has memory besides the sums of another.
  constexpr double kAlone = 0.6, kAmongOthers = 0.45, kOfValues = 0.9;
  constexpr std::array<double, kMostAttempts + 1> kSpared = {1, 0.75, 0.4};
  constexpr std::size_t kLeast = 32768;
  const auto bytesOf = [this](const std::vector<ValueId>& values) {
    std::size_t bytes = 0;
    for (const ValueId value : values) bytes += plan_.types[value].numBytes();
    return bytes;
  };
  const std::size_t operands =
      (productOf(product.lhs) + productOf(product.rhs) + productOf(product.out)) * numBytes(product.dtype);
  const std::size_t values = std::max(operands, bytesOf(plan_.main.parameters) + bytesOf(plan_.main.results)) / tiles_;
  const double of_plan = kSpared.at(optionsOf(plan_).attempts) * static_cast<double>(tile_bytes_);
  const auto share = static_cast<std::size_t>((heavy_products_ > 1 ? kAmongOthers : kAlone) * of_plan);
  const auto most = static_cast<std::size_t>(kOfValues * static_cast<double>(tile_bytes_));
  return {std::max<std::size_t>(1, tiles_ / std::max<std::size_t>(1, product.groups)),
          std::max(kLeast, std::min(share, most > values ? most - values : 0))};
}

// Whether an operand must be transposed on the tiles. A matrix has the layout of its first product; the unit needs the
// depth innermost.
bool Layouts::isTransposed(const Product& product, const Shape& shape, bool depth_first) const {
  const Shape key = withoutOnes(shape);
  const auto known = deep_.find(key);
  if (known != deep_.end()) return known->second == depth_first;
  return depth_first && !decides(product, key) && key.size() > 1;
}

// Whether an array lies in blocks of the product that first takes it. Others lie as their dimensions follow each other.
bool Layouts::decides(const Product& product, const Shape& key) const {
  return product.groups == 1 && key.size() == 2 && !sliced_.contains(key);
}

planner::ProductSizes Layouts::sizesOf(const Product& product) const {
  return {product.m,
          product.k,
          product.n,
          product.dtype == Dtype::kFloat16,
          isTransposed(product, product.lhs, product.lhsDepthFirst()),
          isTransposed(product, product.rhs, product.rhsDepthFirst()),
          !decides(product, withoutOnes(product.lhs)),
          !decides(product, withoutOnes(product.rhs)),
          !decides(product, withoutOnes(product.out))};
}

// A matrix that is stationary in several products, such as weights in a training step, gets the blocks that are best
// overall among those that each would choose.
void Layouts::settleShared(const Product& product, const std::vector<std::pair<double, const Product*>>& by_work) {
  const Shape& matrix = stayingMatrix(product);
  if (product.groups != 1 || withoutOnes(matrix).size() != 2 || shared_.contains(matrix)) return;
  std::vector<std::pair<double, const Product*>> together;
  for (const auto& [work, other] : by_work) {
    if (other->groups == 1 && stayingMatrix(*other) == matrix) {
      together.emplace_back(work / static_cast<double>(other->m * other->k * other->n), other);
    }
  }
  if (together.size() < 2) return;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [negative, proposer] : together) {
    const ProductPlan proposed = planner::planProduct(sizesOf(*proposer), machineFor(*proposer));
    if (proposed.main != planner::largestMatrix(sizesOf(*proposer))) continue;
    const auto blocks = blocksOfMatrix(*proposer, proposed);
    double cycles = 0;
    for (const auto& [times, other] : together) {
      cycles -= times * planner::planProduct(sizesOf(*other), machineFor(*other), settledBlocks(*other, blocks)).cycles;
    }
    if (cycles < least) {
      least = cycles;
      shared_[matrix] = blocks;
    }
  }
}

// The heavier products come first.
void Layouts::divide(const Product& product) {
  const auto shared = shared_.find(stayingMatrix(product));
  const bool is_shared = product.groups == 1 && shared != shared_.end();
  const planner::SettledBlocks blocks = is_shared ? settledBlocks(product, shared->second) : planner::SettledBlocks{};
  ProductPlan& plan =
      products_.emplace(product, planner::planProduct(sizesOf(product), machineFor(product), blocks)).first->second;
  if (product.groups != 1 || product.m * product.k * product.n == 0) return;
  using Main = ProductPlan::Main;
  const std::size_t depth = depthOfBlocks(plan);
  const auto matrix = [](std::size_t rows, std::size_t columns, std::size_t row_block, std::size_t column_block,
                         bool depth_first) {
    return depth_first ? Blocks{1, columns, rows, column_block, row_block}
                       : Blocks{1, rows, columns, row_block, column_block};
  };
  const bool lhs_deep = !product.lhsDepthFirst(), rhs_deep = !product.rhsDepthFirst();
  Blocks lhs = matrix(product.m, product.k, plan.m_block, depth, !lhs_deep);
  Blocks rhs = matrix(product.n, product.k, plan.n_block, depth, !rhs_deep);
  // Neighbours take the same part of the depth, so that they share incoming data.
  lhs.columns_first = plan.main == Main::Lhs && plan.n_parts == 1 && lhs_deep;
  rhs.columns_first = plan.main == Main::Rhs && plan.m_parts == 1 && rhs_deep;
  const auto decide = [&](const Shape& key, bool deep) {
    if (decides(product, key)) deep_.emplace(key, deep);
  };
  decide(withoutOnes(product.lhs), lhs_deep);
  decide(withoutOnes(product.rhs), rhs_deep);
  const bool out_stays = plan.main == Main::Out && plan.k_parts == 1;
  const auto settleOne = [&](Main matrix_of) {
    switch (matrix_of) {
      case Main::Lhs: return settle(product.lhs, lhs, plan.main == Main::Lhs, plan.n_parts);
      case Main::Rhs: return settle(product.rhs, rhs, plan.main == Main::Rhs, plan.m_parts);
      case Main::Out: break;
    }
    return settle(product.out, matrix(product.m, product.n, plan.m_block, plan.n_block, false), out_stays, 1);
  };
  // The stationary matrix comes first: another may have its shape. If another product has settled its blocks, they may
  // be further apart or in another order.
  const Blocks* const main = settleOne(plan.main);
  for (const Main other : {Main::Lhs, Main::Rhs, Main::Out}) settleOne(other);
  if (main == nullptr || (plan.main == Main::Out && plan.k_parts > 1)) return;
  if (main->spread >= plan.neighbours()) plan.spacing = main->spread;
  plan.columns_first = main->columns_first;
}

// Steps of the depth take whole blocks of the operands, where there are tiles for so many.
std::size_t Layouts::depthOfBlocks(const ProductPlan& plan) const {
  if (plan.k_parts > 1 && plan.k_block % plan.k_step != 0) return plan.k_block;
  const std::size_t most = tiles_ / std::max(plan.m_parts, plan.n_parts) / plan.k_parts;
  return std::min(plan.k_block, plan.k_step * ceilDivide(plan.steps(), std::max<std::size_t>(1, most)));
}

// The main matrix is stored where it is used, the others are spread over all tiles. Keeps a settled layout that has
// these blocks.
const Blocks* Layouts::settle(const Shape& shape, Blocks blocks, bool is_main, std::size_t spread) {
  const Shape key = withoutOnes(shape);
  if (key != withoutOnes({blocks.rows, blocks.columns}) || key.size() != 2) return nullptr;
  if (!is_main && sliced_.contains(key)) return nullptr;
  const std::size_t block = blocks.row_block * blocks.column_block;
  // Slices have the layout of their history. Many tiles exchange with each part of a product in any case.
  const bool spread_wide = worked_on_.contains(key) || least_on_tile_.contains(key);
  const std::size_t least = spread_wide ? kGrain : kLeastToSend;
  blocks.spread = is_main ? spread : std::clamp<std::size_t>(tiles_ / blocks.parts(), 1, ceilDivide(block, least));
  const Blocks& known = matrices_.emplace(key, blocks).first->second;
  const bool same = known.row_block == blocks.row_block && known.column_block == blocks.column_block;
  return same ? &known : nullptr;
}

Layout Layouts::make(const Shape& key) const {
  if (const auto found = matrices_.find(key); found != matrices_.end()) return Layout(found->second, tiles_);
  if (sliced_.contains(key)) {
    const Shape slice(key.begin() + 1, key.end());
    Blocks blocks = of(slice).blocks();
    const std::size_t on_tile = ceilDivide(ceilDivide(productOf(slice), blocks.parts()), blocks.spread);
    const std::size_t evenly = ceilDivide(productOf(key), tiles_);
    if (blocks.leading == 1 && on_tile * key[0] <= std::max(kMostOnTile, 2 * evenly)) {
      blocks.leading = key[0];
      return Layout(blocks, tiles_);
    }
  }
  const auto least = least_on_tile_.find(key);
  return Layout(spreadEvenly(key, tiles_, least == least_on_tile_.end() ? kLeastOnTile : least->second), tiles_);
}

const Layout& Layouts::ofValue(ValueId value) const {
  const auto found = proposed_.find(value);
  return found != proposed_.end() ? *found->second : of(plan_.types[value].shape);
}

const Layout& Layouts::of(const Shape& shape) const {
  const Shape key = withoutOnes(shape);
  const auto found = layouts_.find(key);
  return found != layouts_.end() ? found->second : layouts_.emplace(key, make(key)).first->second;
}

}  // namespace snnjax::executor
