// Backward through a narrow readout, on the tiles of the neurons that it reads: they hear who of them is listed, and
// the gradients of all outputs in their samples' rows. So neither dot products nor dense rows travel.

#include "builders/network/rows.hpp"

namespace snnjax::builders {
namespace {

// Calls add(first, last, tile) for the pieces of a part of the readout's weights, of `elements` elements that read a
// block of neurons: the tiles of the block's groups share the gradients of all parts.
void forEachPiece(const LayerPlan& below, unsigned parts, unsigned block, unsigned part, unsigned elements,
                  auto&& add) {
  const auto groups = static_cast<unsigned>(below.sample_groups.size());
  const unsigned pieces = std::max(1U, groups / parts), each = ceilDivide(ceilDivide(elements, pieces), 2) * 2;
  for (unsigned first = 0, k = part * pieces; first < elements; first += each, ++k) {
    add(first, std::min(elements, first + each), below.tileOf(block, k % groups));
  }
}

class ReadoutBackward : LayerPass {
 public:
  explicit ReadoutBackward(Pass& of) : LayerPass{of, of.plan.layers.size() - 1} {}

  // Of the last list, for the tiles that fired it: unsigned [blocks, words, batch * block_steps].
  Tensor addMasks() {
    const ListPlan& list = plan.lists.back();
    const unsigned blocks = below().tiles.count, width = below().tiles.columns, words = markWords(width);
    const Tensor masks = addAtHomes(graph, UNSIGNED_INT, list.homes, std::size_t{blocks} * words, name("masks"));
    const ComputeSet set = pass.of_lists.front();
    std::vector<Tensor> rows;
    for (const Home& home : list.homes) {
      const Tensor own = rowsOf(masks, home);
      addVertex(graph, set, "snnjax::MaskLists", home.tile,
                {{"list", rowsOf(pass.tensors.lists.back().lists, home)}, {"masks", own}},
                with(recordStates(home.rows, list),
                     {{"columns", width}, {"blocks", blocks}, {"num_neurons", list.num_neurons}}));
      rows.push_back(own.flatten().reshape({blocks, words, home.rows}));
    }
    return poplar::concat(rows, 2);
  }

  Tensor add(const Tensor& g_current) {
    const Tensor masks = addMasks();
    const Tensor g_spikes = below_.addRows(below().tiles.columns, name("g_spikes"));
    const std::size_t elements = std::size_t{kShares} * parts() * below().tiles.columns * columns();
    of_groups_ = addGroups(graph, FLOAT, below(), name("weights") + "/of_group", [=](unsigned) { return elements; });
    if (plan.num_blocks > 1) pass.zeros.insert(pass.zeros.end(), of_groups_.begin(), of_groups_.end());
    const ComputeSet set = addSet("weights");
    forEachTile(below_, [&](const LayerTile& at) { addProducts(set, at, masks, g_current, g_spikes); });
    addSums();
    return g_spikes;
  }

 private:
  const LayerPlan& below() const { return below_.layer; }
  unsigned parts() const { return layer.tiles.count; }
  unsigned columns() const { return layer.tiles.columns; }
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
  // What the workers of a group's tile have summed up for a block: [workers, parts, readable * columns].
  Tensor ofGroup(std::size_t group, unsigned block) const {
    const std::size_t each = std::size_t{readable(block)} * columns();
    return of_groups_[group][block].slice(0, kShares * parts() * each).reshape({kShares, parts(), each});
  }

  void addProducts(ComputeSet set, const LayerTile& at, const Tensor& masks, const Tensor& g_current,
                   const Tensor& g_spikes) {
    const SampleGroup& own = below().sample_groups[at.group];
    const unsigned first = own.first * plan.block_steps, behind = first + at.rows();
    addVertex(graph, set, templateVertex("snnjax::ReadoutGradient", weightsType(plan)), at.tile(),
              {{"masks", masks[at.block].slice(first, behind, 1)},
               {"weights", rowsOfBlock(tensors.weights, at.block)},
               {"g_current", g_current.slice(first * columns(), behind * columns(), 1)},
               {"g_spikes", at.ownRows(g_spikes)},
               {"g_weights", ofGroup(at.group, at.block)}},
              {{"rows", at.rows()},
               {"neurons", below().tiles.columns},
               {"readable", readable(at.block)},
               {"parts", parts()},
               {"columns", columns()},
               {"starts", plan.num_blocks == 1}});
  }

  // Over workers and groups.
  void addSums() {
    const auto groups = static_cast<unsigned>(of_groups_.size());
    const ComputeSet set = graph.addComputeSet(name("weights") + "/sum_of_groups");
    pass.of_readout = set;
    for (unsigned p = 0; p < below().tiles.count; ++p) {
      for (unsigned part = 0; part < parts(); ++part) {
        std::vector<Tensor> in;
        for (unsigned g = 0; g < groups; ++g) in.push_back(ofGroup(g, p).slice(part, part + 1, 1).squeeze({1}));
        const Tensor rows = poplar::concat(in), sum = rowsOfBlock(cotangents().g_weights, p)[part];
        forEachPiece(below(), parts(), p, part, readable(p) * columns(),
                     [&](unsigned first, unsigned last, unsigned tile) {
                       addVertex(graph, set, "snnjax::SumRows", tile,
                                 {{"in", rows.slice(first, last, 1)}, {"out", sum.slice(first, last)}},
                                 {{"rows", kShares * groups}, {"columns", last - first}});
                     });
      }
    }
  }

  const LayerPass below_ = {pass, l - 1};  // the neurons that the readout reads
  std::vector<Tensor> of_groups_;          // [blocks, workers * parts * columns of a block * columns]
};

}  // namespace

Tensor addReadoutBackward(Pass& pass, const Tensor& g_current) { return ReadoutBackward(pass).add(g_current); }

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
