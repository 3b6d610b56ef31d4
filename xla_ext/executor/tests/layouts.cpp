// Layouts: permutations of the elements of which each tile holds one interval, and which arrays get which.
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>

#include "executor/layouts/layouts.hpp"
#include "plans.hpp"

namespace {

using namespace plans;

constexpr Dtype kFloat = Dtype::kFloat32;

poplar::Target targetOf(unsigned tiles) {
  poplar::IPUModel model;
  model.numIPUs = 1;
  model.tilesPerIPU = tiles;
  return model.createDevice().getTarget();
}

// The position in a variable of each element of a flat view of it.
std::vector<std::size_t> positions(const poplar::Tensor& tensor) {
  std::vector<std::size_t> result;
  for (const poplar::VariableInterval& part : tensor.flatten().getVarRegions()) {
    for (std::size_t i = part.interval.begin(); i < part.interval.end(); ++i) result.push_back(i);
  }
  return result;
}

void checkLayout(const Blocks& blocks, std::size_t tiles, const Shape& shape) {
  const Layout layout(blocks, tiles);
  poplar::Graph graph(targetOf(static_cast<unsigned>(tiles)));
  const std::size_t elements = productOf(shape);
  const poplar::Tensor memory = graph.addVariable(poplar::FLOAT, {elements}, "memory");
  const poplar::Tensor view = layout.view(memory, shape);
  CHECK(view.shape() == shape);
  std::vector<std::size_t> places = positions(view);
  // Back in memory order all is one piece again, and so is what each tile holds.
  CHECK(layout.memoryOrder(view).isContiguous());
  std::vector<std::size_t> sorted = places;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < elements; ++i) CHECK_EQUAL(sorted[i], i);
  CHECK_EQUAL(layout.cuts().size(), tiles + 1);
  CHECK_EQUAL(layout.cuts().front(), 0U);
  CHECK_EQUAL(layout.cuts().back(), elements);
  CHECK(std::is_sorted(layout.cuts().begin(), layout.cuts().end()));
  // Of all slices along the leading dimension an element lies on the same tile.
  const auto tileOf = [&](std::size_t place) {
    return std::upper_bound(layout.cuts().begin(), layout.cuts().end(), place) - layout.cuts().begin();
  };
  const std::size_t slice = elements / blocks.leading;
  for (std::size_t i = 0; i < elements; ++i) CHECK_EQUAL(tileOf(places[i]), tileOf(places[i % slice]));
  // Of each block the elements lie in a row of tiles of their own.
  for (std::size_t i = 0; i < slice; ++i) {
    const std::size_t row = i / blocks.columns / blocks.row_block, column = i % blocks.columns / blocks.column_block;
    const std::size_t block =
        blocks.columns_first ? column * blocks.rowParts() + row : row * blocks.columnParts() + column;
    const auto first = static_cast<std::ptrdiff_t>(blocks.first_tile + block * blocks.spread);
    CHECK(tileOf(places[i]) > first && tileOf(places[i]) <= first + static_cast<std::ptrdiff_t>(blocks.spread));
  }
}

void permutes() {
  checkLayout({1, 1, 100, 1, 100, 7, 0}, 7, {4, 25});
  checkLayout({1, 1, 5, 1, 5, 1, 3}, 7, {5});
  checkLayout({1, 12, 10, 4, 5, 2, 1}, 16, {12, 10});
  checkLayout({1, 13, 11, 4, 6, 1, 0}, 8, {13, 11});
  checkLayout({1, 13, 11, 20, 2, 2, 0}, 12, {13, 1, 11});
  checkLayout({6, 1, 90, 1, 90, 5, 2}, 9, {6, 9, 10});
  checkLayout({3, 13, 11, 4, 6, 2, 0}, 16, {3, 13, 11});
  checkLayout({1, 13, 11, 4, 6, 2, 0, 0, true}, 18, {13, 11});
  checkLayout({3, 13, 11, 4, 6, 2, 1, 0, true}, 18, {3, 13, 11});
}

Layouts layoutsOf(const Plan& plan, unsigned tiles) { return {plan, targetOf(tiles)}; }

// x [48, 300] times w [300, 200], and the weights' gradient [300, 200] from x and dy [48, 200].
void productsOfATrainingStepShareTheirBlocks() {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId x = builder.parameter(kFloat, {48, 300}), w = builder.parameter(kFloat, {300, 200});
  const ValueId y = builder.add(main, "dot", {x, w}, {kFloat, {48, 200}}, {{}, {}, {1}, {0}});
  const ValueId dw = builder.add(main, "dot", {x, y}, {kFloat, {300, 200}}, {{}, {}, {0}, {0}});
  const ValueId dx = builder.add(main, "dot", {y, w}, {kFloat, {48, 300}}, {{}, {}, {1}, {1}});
  main.results = {dw, dx};
  const Layouts layouts = layoutsOf(builder.plan, 64);
  const auto planOf = [&](std::size_t i) { return layouts.of(Product(builder.plan, main.instructions[i])); };
  const ProductPlan forward = planOf(0), weights = planOf(1), back = planOf(2);
  CHECK(forward.main == ProductPlan::Main::Rhs && weights.main == ProductPlan::Main::Out);
  CHECK(forward.k_block == weights.m_block && forward.n_block == weights.n_block);
  CHECK(back.k_block == forward.n_block && back.n_block == forward.k_block);
  const Blocks& blocks = layouts.of({300, 200}).blocks();
  CHECK_EQUAL(blocks.row_block, forward.k_block);
  CHECK_EQUAL(blocks.column_block, forward.n_block);
  CHECK(forward.tiles() > 32 && forward.tiles() <= 64);
  // A block of the weights lies on the tiles that use it, in all three products.
  CHECK(forward.spacing == blocks.spread && weights.spacing == blocks.spread && back.spacing == blocks.spread);
  for (std::size_t k = 0; k < forward.k_parts; ++k) {
    for (std::size_t n = 0; n < forward.n_parts; ++n) {
      const std::size_t block = blocks.columns_first ? n * blocks.rowParts() + k : k * blocks.columnParts() + n;
      const std::size_t tile = block * blocks.spread;
      CHECK_EQUAL(forward.tile(0, k, n, true), tile);
      CHECK_EQUAL(weights.tile(k, 0, n, false), tile);
      CHECK_EQUAL(back.tile(0, n, k, false), tile);
    }
  }
}

void loopsOverTimeKeepTheirSlices() {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId x = builder.parameter(kFloat, {10, 1, 300}), i = builder.parameter(Dtype::kInt32, {});
  main.results = {builder.add(main, "dynamic_slice", {x, i, i, i}, {kFloat, {1, 1, 300}}, {{1, 1, 300}})};
  const Layouts layouts = layoutsOf(builder.plan, 16);
  CHECK_EQUAL(layouts.of({10, 1, 300}).blocks().leading, 10U);
  for (std::size_t tile = 0; tile <= 16; ++tile) {
    CHECK_EQUAL(layouts.cuts({10, 300})[tile], 10 * layouts.cuts({300})[tile]);
  }
  CHECK_EQUAL(layouts.of({11, 300}).blocks().leading, 1U);
}

// So many slices that tiles would hold too much: they are spread over more tiles, or the array evenly.
void longHistoriesFit() {
  for (const auto& [steps, leading] : {std::pair<std::size_t, std::size_t>{1000, 1000}, {100000, 1}}) {
    Builder builder;
    Block& main = builder.plan.main;
    const ValueId x = builder.parameter(kFloat, {steps, 300}), i = builder.parameter(Dtype::kInt32, {});
    main.results = {builder.add(main, "dynamic_slice", {x, i, i}, {kFloat, {1, 300}}, {{1, 300}})};
    const Layouts layouts = layoutsOf(builder.plan, 1000);
    CHECK_EQUAL(layouts.of({steps, 300}).blocks().leading, leading);
    const std::vector<std::size_t>& cuts = layouts.cuts({steps, 300});
    for (std::size_t tile = 0; tile < 1000; ++tile) CHECK(cuts[tile + 1] - cuts[tile] <= 32768);
  }
}

// Slices that only products read lie on as many tiles as their history needs.
void historiesOfProductsKeepTheirSlices() {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId x = builder.parameter(kFloat, {100, 48, 600}), i = builder.parameter(Dtype::kInt32, {});
  const ValueId w = builder.parameter(kFloat, {600, 200});
  const ValueId slice = builder.add(main, "dynamic_slice", {x, i, i, i}, {kFloat, {1, 48, 600}}, {{1, 48, 600}});
  const ValueId step = builder.add(main, "reshape", {slice}, {kFloat, {48, 600}});
  main.results = {builder.add(main, "dot", {step, w}, {kFloat, {48, 200}}, {{}, {}, {1}, {0}})};
  CHECK_EQUAL(layoutsOf(builder.plan, 256).of({100, 48, 600}).blocks().leading, 100U);
}

void smallArraysLieOnTilesAllOverTheChip() {
  const Layouts layouts = layoutsOf(Builder().plan, 1000);
  std::vector<std::size_t> first;
  for (std::size_t size = 2; size < 22; ++size) {
    const Blocks& blocks = layouts.of({size}).blocks();
    CHECK_EQUAL(blocks.spread, 1U);
    first.push_back(blocks.first_tile);
  }
  std::sort(first.begin(), first.end());
  CHECK(std::unique(first.begin(), first.end()) - first.begin() > 15);
  CHECK_EQUAL(layouts.of({32 * 999}).blocks().spread, 999U);
}

// What an own op proposes for its weights holds for their gradient, for what the update gives and for views of it, but
// not for other values of that shape.
void proposalsHoldForWhatLiesTogether() {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId weights = builder.parameter(kFloat, {6, 8}), gradient = builder.parameter(kFloat, {6, 8});
  const ValueId apart = builder.parameter(kFloat, {6, 8}), carried = builder.parameter(kFloat, {6, 8});
  const ValueId updated = builder.binary(main, "add", weights, gradient);
  const ValueId view = builder.add(main, "reshape", {updated}, {kFloat, {1, 6, 8}});
  const ValueId transposed = builder.add(main, "transpose", {updated}, {kFloat, {8, 6}}, {{1, 0}});
  main.results = {apart, transposed, updated};
  builder.plan.aliases = {{3, 2}};
  const Blocks blocks = {1, 6, 8, 6, 2, 1, 0, 2};
  const Layouts layouts(builder.plan, targetOf(4), {{view, blocks}});
  for (const ValueId value : {weights, gradient, carried, updated, view}) {
    CHECK(layouts.ofValue(value).blocks() == blocks);
  }
  for (const ValueId value : {apart, transposed}) CHECK(!(layouts.ofValue(value).blocks() == blocks));
  // On many tiles the update would leave most of them idle.
  CHECK(!(Layouts(builder.plan, targetOf(16), {{view, blocks}}).ofValue(weights).blocks() == blocks));
  CHECK(Layouts(builder.plan, targetOf(16), {{apart, blocks}}).ofValue(apart).blocks() == blocks);
}

}  // namespace

int main() {
  const std::string error = check::messageOf([] {
    permutes();
    productsOfATrainingStepShareTheirBlocks();
    loopsOverTimeKeepTheirSlices();
    longHistoriesFit();
    historiesOfProductsKeepTheirSlices();
    smallArraysLieOnTilesAllOverTheChip();
    proposalsHoldForWhatLiesTogether();
  });
  if (!error.empty()) check::that(false, error.c_str(), __FILE__, __LINE__);
  return check::failures;
}
