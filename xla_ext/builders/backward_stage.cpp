#include "backward_stage.hpp"

#include <string>

#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::UNSIGNED_SHORT;
using poplar::program::Copy;
using poplar::program::Sequence;

// Every tile's own copies of rows at the homes, gathered into one exchange.
class CopiesForTiles {
 public:
  void add(const poplar::Tensor& rows, const poplar::Tensor& copies) {
    if (!copies.valid()) return;
    from_.push_back(rows.flatten().expand({0}).broadcast(static_cast<unsigned>(copies.dim(0)), 0).flatten());
    to_.push_back(copies.flatten());
  }
  poplar::program::Program program() const {
    if (from_.empty()) return Sequence();
    return Copy(poplar::concat(from_), poplar::concat(to_));
  }

 private:
  std::vector<poplar::Tensor> from_, to_;
};

}  // namespace

Stage addStage(Loop& loop, std::size_t l) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l];
  const std::string name = loop.name + "/layer" + std::to_string(l) + "/";
  const auto blocks = [&](const poplar::Type& type, std::size_t each, const char* part) {
    return addBlocks(loop.graph, type, layer.tiles, loop.plan.options.batch * each, name + part);
  };
  Stage stage;
  if (!list.dense) stage.lists = blocks(UNSIGNED_SHORT, list.stride, "lists");
  if (list.valued && !list.dense) stage.values = blocks(poplar::FLOAT, list.capacity, "values");
  if (list.dense && makesDots(loop.plan, l)) {
    stage.all_inputs = addBlocks(loop.graph, UNSIGNED_SHORT, layer.tiles, list.stride, name + "all_inputs");
  }
  stage.g_current = blocks(poplar::FLOAT, layer.tiles.columns, "g_current");
  if (makesDots(loop.plan, l)) stage.dots = blocks(poplar::FLOAT, list.capacity, "dots");
  if (!layer.recurrent) return stage;
  stage.own_lists = blocks(UNSIGNED_SHORT, loop.plan.lists[l + 1].stride, "own_lists");
  stage.own_dots = blocks(poplar::FLOAT, loop.plan.lists[l + 1].capacity, "own_dots");
  return stage;
}

ListsRead listsOfDots(const Loop& loop, std::size_t l, unsigned i, const Stage& stage) {
  if (loop.plan.lists[l].dense) return {stage.all_inputs[i], 0};
  return {stage.lists[i], loop.plan.lists[l].stride};
}

Sequence copyLists(const Loop& loop, const std::vector<Stage>& stages) {
  CopiesForTiles lists, values;
  for (std::size_t l = 0; l < stages.size(); ++l) {
    lists.add(loop.tensors.lists[l].lists, stages[l].lists);
    values.add(loop.tensors.lists[l].values, stages[l].values);
    if (loop.plan.layers[l].recurrent) lists.add(loop.tensors.lists[l + 1].lists, stages[l].own_lists);
  }
  return Sequence({lists.program(), values.program()});
}

}  // namespace snnjax::builders
