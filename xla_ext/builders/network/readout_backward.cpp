// Backward through a narrow readout, on the tiles of the neurons that it reads: they hear who of them is listed, and
// the gradients of all outputs in their samples' rows. So neither dot products nor dense rows travel.
#include <algorithm>

#include "builders/network/rows.hpp"

namespace snnjax::builders {
namespace {

// Calls add(first, last, tile) for the pieces of a part of the readout's weights, of `elements` elements that read a
// block of neurons: the tiles of the block's groups share the gradients of all parts.
template <typename Add>
void forEachPiece(const LayerPlan& below, unsigned parts, unsigned block, unsigned part, unsigned elements, Add&& add) {
  const auto groups = static_cast<unsigned>(below.sample_groups.size());
  const unsigned pieces = std::max(1U, groups / parts), each = ceilDivide(ceilDivide(elements, pieces), 2) * 2;
  for (unsigned first = 0, k = part * pieces; first < elements; first += each, ++k) {
    add(first, std::min(elements, first + each), below.tileOf(block, k % groups));
  }
}

class ReadoutBackward {
 public:
  ReadoutBackward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, Pass& pass)
      : graph_(graph), plan_(plan), tensors_(tensors), pass_(pass) {}

  // Of the last list, for the tiles that fired it: unsigned [blocks, words, batch * block_steps].
  Tensor addMasks() {
    const ListPlan& list = plan_.lists.back();
    const unsigned blocks = below().tiles.count, columns = below().tiles.columns, words = markWords(columns);
    const Tensor masks = addAtHomes(graph_, UNSIGNED_INT, list.homes, std::size_t{blocks} * words, name("masks"));
    const ComputeSet set = pass_.of_lists.front();
    std::vector<Tensor> rows;
    for (const Home& home : list.homes) {
      const Tensor own = rowsOf(masks, home);
      addVertex(graph_, set, "snnjax::MaskLists", home.tile,
                {{"list", rowsOf(tensors_.lists.back().lists, home)}, {"masks", own}},
                {{"rows", home.rows},
                 {"stride", list.stride},
                 {"capacity", list.capacity},
                 {"columns", columns},
                 {"blocks", blocks},
                 {"num_neurons", list.num_neurons}});
      rows.push_back(own.flatten().reshape({blocks, words, home.rows}));
    }
    return poplar::concat(rows, 2);
  }

  Tensor add(const Tensor& g_current, const Tensor& g_weights) {
    const Tensor masks = addMasks();
    const Tensor g_spikes = addRowsOf(graph_, plan_, last(), below().tiles.columns, name("g_spikes"));
    const std::size_t elements = std::size_t{kShares} * parts() * below().tiles.columns * columns();
    for (std::size_t g = 0; g < below().sample_groups.size(); ++g) {
      of_groups_.push_back(addGroup(graph_, FLOAT, below(), g, elements, name("weights") + "/of_group"));
    }
    if (plan_.num_blocks > 1) pass_.zeros.insert(pass_.zeros.end(), of_groups_.begin(), of_groups_.end());
    const ComputeSet set = pass_.addSet(graph_, "weights" + std::to_string(plan_.layers.size() - 1));
    forEachTile(plan_, last(), [&](const LayerTile& at) { addProducts(set, at, masks, g_current, g_spikes); });
    addSums(g_weights);
    return g_spikes;
  }

 private:
  // Of the neurons that the readout reads.
  std::size_t last() const { return plan_.layers.size() - 2; }
  const LayerPlan& below() const { return plan_.layers[last()]; }
  const LayerPlan& readout() const { return plan_.layers.back(); }
  unsigned parts() const { return readout().tiles.count; }
  unsigned columns() const { return readout().tiles.columns; }
  // Neurons of a block that are not to spare.
  unsigned readable(unsigned block) const {
    const unsigned each = below().tiles.columns;
    return std::min(each, below().neurons - block * each);
  }
  // Their rows of a matrix [parts, (inputs + 1) * columns].
  Tensor rowsOfBlock(const Tensor& matrix, unsigned block) const {
    const std::size_t first = std::size_t{block} * below().tiles.columns;
    return matrix.slice(first * columns(), (first + readable(block)) * columns(), 1);
  }
  std::string name(const char* what) const {
    return "backward/" + std::string(what) + std::to_string(plan_.layers.size() - 1);
  }
  // What the workers of a group's tile have summed up for a block: [workers, parts, readable * columns].
  Tensor ofGroup(std::size_t group, unsigned block) const {
    const std::size_t each = std::size_t{readable(block)} * columns();
    return of_groups_[group][block].slice(0, kShares * parts() * each).reshape({kShares, parts(), each});
  }

  void addProducts(ComputeSet set, const LayerTile& at, const Tensor& masks, const Tensor& g_current,
                   const Tensor& g_spikes) {
    const SampleGroup& own = below().sample_groups[at.group];
    const unsigned first = own.first * plan_.block_steps, behind = first + at.rows();
    addVertex(graph_, set, templateVertex("snnjax::ReadoutGradient", weightsType(plan_)), at.tile(),
              {{"masks", masks[at.block].slice(first, behind, 1)},
               {"weights", rowsOfBlock(tensors_.layers.back().weights, at.block)},
               {"g_current", g_current.slice(first * columns(), behind * columns(), 1)},
               {"g_spikes", at.ownRows(g_spikes)},
               {"g_weights", ofGroup(at.group, at.block)}},
              {{"rows", at.rows()},
               {"neurons", below().tiles.columns},
               {"readable", readable(at.block)},
               {"parts", parts()},
               {"columns", columns()},
               {"starts", plan_.num_blocks == 1}});
  }

  // Over workers and groups.
  void addSums(const Tensor& g_weights) {
    const auto groups = static_cast<unsigned>(of_groups_.size());
    const ComputeSet set = graph_.addComputeSet(name("weights") + "/sum_of_groups");
    pass_.of_readout = set;
    for (unsigned p = 0; p < below().tiles.count; ++p) {
      for (unsigned part = 0; part < parts(); ++part) {
        std::vector<Tensor> in;
        for (unsigned g = 0; g < groups; ++g) in.push_back(ofGroup(g, p).slice(part, part + 1, 1).squeeze({1}));
        const Tensor rows = poplar::concat(in), sum = rowsOfBlock(g_weights, p)[part];
        forEachPiece(below(), parts(), p, part, readable(p) * columns(),
                     [&](unsigned first, unsigned last, unsigned tile) {
                       addVertex(graph_, set, "snnjax::SumRows", tile,
                                 {{"in", rows.slice(first, last, 1)}, {"out", sum.slice(first, last)}},
                                 {{"rows", kShares * groups}, {"columns", last - first}});
                     });
      }
    }
  }

  Graph& graph_;
  const NetworkPlan& plan_;
  const NetworkTensors& tensors_;
  Pass& pass_;
  std::vector<Tensor> of_groups_;  // [blocks, workers * parts * columns of a block * columns]
};

}  // namespace

Tensor addReadoutBackward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                          const NetworkCotangents& cotangents, const Tensor& g_current, Pass& pass) {
  return ReadoutBackward(graph, plan, tensors, pass).add(g_current, cotangents.layers.back().g_weights);
}

Tensor addReadoutGradient(Graph& graph, const NetworkPlan& plan, const std::string& name) {
  const LayerPlan &readout = plan.layers.back(), &below = plan.layers[plan.layers.size() - 2];
  const std::size_t columns = readout.tiles.columns, each = below.tiles.columns * columns,
                    rows = readout.inputs * columns;
  const Tensor blocks = graph.addVariable(FLOAT, {readout.tiles.count, rows + columns}, name);
  graph.setTileMapping(blocks.slice(rows, rows + columns, 1), below.tileOf(0, 0));
  for (unsigned part = 0; part < readout.tiles.count; ++part) {
    for (unsigned p = 0; p < below.tiles.count; ++p) {
      const Tensor of_block = blocks[part].slice(p * each, std::min(rows, (p + 1) * each));
      forEachPiece(below, readout.tiles.count, p, part, static_cast<unsigned>(of_block.numElements()),
                   [&](unsigned first, unsigned last, unsigned tile) {
                     graph.setTileMapping(of_block.slice(first, last), tile);
                   });
    }
  }
  return blocks;
}

}  // namespace snnjax::builders
