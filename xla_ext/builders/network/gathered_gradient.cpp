// The gradient of weights gathered by input. What lists say of it is known before any gradient is, and made beside
// other work. A tile of a block of neurons takes a part of the inputs, hears the gradients of the currents of all
// groups, and adds up the rows in which each input fires: nothing is summed over groups, but for the few inputs that
// fire so often that all tiles of the block share their rows.
#include <utility>

#include "builders/network/rows.hpp"

namespace snnjax::builders {
namespace {

using poplar::program::If;
using poplar::program::RepeatWhileTrue;

constexpr unsigned kBits = 32;  // of a word

class GatheredGradient : LayerPass {
 public:
  GatheredGradient(const LayerPass& of, bool own)
      : LayerPass(of),
        own_(own),
        list_(plan.lists[own ? l + 1 : l]),
        rows_(plan.blockRows()),
        words_(wordsOfRows(rows_)),
        room_(wordsOfRecord(rows_, list_.num_neurons, list_.listed)),
        level_(graph, plan.num_tiles, 0, setName("level")) {}

  // Lists of layers name nobody twice; a user's events may, and are gone through again then.
  void add(const Tensor& g_current, const Tensor& g_weights) {
    Sequence again;
    for (const ComputeSet& set : pass.of_lists) {
      of_lists_.push_back({set});
      if (!repeats()) continue;
      of_lists_.back().push_back(graph.addComputeSet(setName("again")));
      again.add(Execute(of_lists_.back().back()));
    }
    addMasks();
    addTurned();
    addRecords();
    addSums(g_current, g_weights);
    addShared(g_current, g_weights);
    pass.body.add(sums_);
    if (!repeats()) return;
    const ComputeSet next = graph.addComputeSet(setName("level"));
    level_.advance(graph, next, 0, plan.num_tiles, 1);
    const RepeatWhileTrue levels(Sequence(), any_, Sequence({Execute(next), again, sums_}));
    pass.body.add(If(any_, Sequence({levels, level_.reset()}), Sequence()));
  }

 private:
  bool repeats() const { return !own_ && !NetworkPlan::isMade(l); }
  unsigned inputs() const { return list_.num_neurons; }
  std::string setName(const char* what) const { return name(std::string(own_ ? "own_" : "") + what); }
  ComputeSet addSum(const char* what) {
    const ComputeSet set = graph.addComputeSet(setName(what));
    sums_.add(Execute(set));
    return set;
  }
  enum Stage : std::size_t { kMasks, kTurned, kRows };  // of Pass::of_lists
  // Neurons are at work beside a stage, on the first tiles: it has the last ones, each once before any a second time.
  unsigned tileApart(Stage stage) { return plan.num_tiles - 1 - pass.of_lists_placed[stage]++ % plan.num_tiles; }
  void addOfLists(Stage stage, const std::string& type, unsigned tile, const std::vector<Field>& fields,
                  const std::vector<State>& states) {
    for (const ComputeSet& set : of_lists_[stage]) addVertex(graph, set, type, tile, fields, states);
  }

  // At the homes, a bit for each input: [words of a row, rows].
  void addMasks() {
    const Tensor& lists = pass.tensors.lists[own_ ? l + 1 : l].lists;
    const unsigned words = ceilDivide(inputs(), kBits);
    const Tensor masks = addAtHomes(graph, UNSIGNED_INT, list_.homes, words, setName("masks"));
    more_ = graph.addVariable(UNSIGNED_INT, {list_.homes.size()}, setName("more"));
    std::vector<Tensor> rows;
    for (std::size_t h = 0; h < list_.homes.size(); ++h) {
      const Home& home = list_.homes[h];
      graph.setTileMapping(more_[h], home.tile);
      rows.push_back(rowsOf(masks, home).flatten().reshape({words, home.rows}));
      addOfLists(
          kMasks, "snnjax::MaskSpikes", home.tile,
          {{"list", rowsOf(lists, home)}, {"masks", rows.back()}, {"more", more_[h]}, {"level", level_.at(home.tile)}},
          with(recordStates(home.rows, list_), {{"words", words}, {"num_inputs", inputs()}}));
    }
    masks_ = poplar::concat(rows, 1);
    if (own_) masks_ = ofStepBefore(masks_);
  }

  // Of rows [batch, block_steps]: before the first step nobody fires.
  Tensor ofStepBefore(const Tensor& masks) {
    const std::size_t batch = plan.options.batch, steps = plan.block_steps;
    const Tensor none = graph.addConstant(UNSIGNED_INT, {1, 1, 1}, 0U, setName("none"));
    graph.setTileMapping(none, 0);
    const Tensor first = none.broadcast(static_cast<unsigned>(masks.dim(0)), 0).broadcast(plan.options.batch, 1);
    const Tensor rows = masks.reshape({masks.dim(0), batch, steps}).slice(0, steps - 1, 2);
    return poplar::concat(first, rows, 2).reshape({masks.dim(0), batch * steps});
  }

  void addAny(const std::vector<ComputeSet>& sets, unsigned tile, const Tensor& in, const Tensor& any) {
    graph.setTileMapping(any, tile);
    for (const ComputeSet& set : sets) {
      addVertex(graph, set, templateVertex("snnjax::AnyWord", any.elementType()), tile, {{"in", in}, {"any", any}},
                {{"count", static_cast<unsigned>(in.numElements())}});
    }
  }

  // By input, a bit for each row: [inputs, words], in parts of 32 inputs and 32 rows.
  void addTurned() {
    const std::size_t blocks = masks_.dim(0), parts = blocks * words_;
    const Tensor turned = graph.addVariable(UNSIGNED_INT, {blocks, words_, kBits}, setName("turned"));
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t block = part / words_, word = part % words_;
      const unsigned tile = tileApart(kTurned);
      const std::size_t first = word * kBits, last = std::min<std::size_t>(rows_, first + kBits);
      graph.setTileMapping(turned[block][word], tile);
      addOfLists(kTurned, "snnjax::TurnMasks", tile,
                 {{"masks", masks_[block].slice(first, last)}, {"turned", turned[block][word]}},
                 {{"rows", static_cast<unsigned>(last - first)}});
    }
    turned_ = turned.dimShuffle({0, 2, 1}).reshape({blocks * kBits, words_}).slice(0, inputs());
    // In the same exchange, what homes say: some of them a tile.
    for (std::size_t first = 0; repeats() && first < more_.dim(0); first += kBits) {
      const Tensor some = graph.addVariable(UNSIGNED_INT, {1}, setName("more"));
      addAny(of_lists_[kTurned], tileApart(kTurned),
             more_.slice(first, std::min<std::size_t>(more_.dim(0), first + kBits)), some[0]);
      more_of_tiles_.push_back(some);
    }
  }

  // By input, the rows in which it fires: [inputs, 1 + room], one for each worker of a tile: fewer messages. The tiles
  // of a narrow readout take a few rounds meanwhile.
  void addRecords() {
    constexpr unsigned kRounds = 3;
    const unsigned apart = plan.layers.back().isNarrow() ? plan.layers.back().tiles.first : 0,
                   few = plan.num_tiles - apart, shares = ceilDivide(inputs(), kShares);
    std::vector<Home> homes = spreadRows(inputs(), std::min(shares <= few * kRounds ? few : plan.num_tiles, shares));
    for (Home& home : homes) home.tile = tileApart(kRows);
    records_ = addAtHomes(graph, UNSIGNED_INT, homes, 1 + room_, setName("rows_of_inputs"));
    for (const Home& home : homes) {
      addOfLists(kRows, "snnjax::ListRows", home.tile,
                 {{"turned", rowsOf(turned_, home)}, {"records", rowsOf(records_, home)}},
                 {{"inputs", home.rows}, {"words", words_}, {"room", room_}});
    }
    if (!repeats()) return;
    any_ = graph.addVariable(poplar::BOOL, {}, setName("any"));
    addAny(of_lists_[kRows], plan.num_tiles - 1, poplar::concat(more_of_tiles_), any_);
  }

  // Each tile sums for its part of the inputs.
  void addSums(const Tensor& g_current, const Tensor& g_weights) {
    const ComputeSet set = addSum("weights");
    const std::size_t columns = layer.tiles.columns;
    any_shared_ = addOfTiles(1, "any_shared");  // 0 from the start, and after it was read
    graph.setInitialValue(any_shared_, 0U);
    shared_ = addOfTiles(kShares * (1 + kSharedInputs), "shared");
    shared_bits_ = addOfTiles(std::size_t{words_} * kSharedOfTile, "shared_bits");
    forEachTile(*this, [&](const LayerTile& at) {
      const Part part = ownPart(at);
      if (part.first == part.last) return graph.setInitialValue(shared_[at.block][at.group], 0U);
      const std::size_t first = part.first / columns, last = part.last / columns;
      addVertex(graph, set, "snnjax::GatherGradient", at.tile(),
                {{"records", records_.slice(first, last)},
                 {"g_current", g_current[at.block]},
                 {"g_weights", g_weights[at.block].slice(part.first, part.last)},
                 {"shared", shared_[at.block][at.group]},
                 {"shared_bits", shared_bits_[at.block][at.group]},
                 {"any", any_shared_[at.block][at.group][0]},
                 {"level", level_.at(at.tile())}},
                {{"inputs", static_cast<unsigned>(last - first)},
                 {"words", words_},
                 {"room", room_},
                 {"rows", rows_},
                 {"neurons", static_cast<unsigned>(columns)},
                 {"longest", longest()},
                 {"always_adds", plan.num_blocks > 1}});
    });
  }

  // Where the gradient lies, without the row that no input has.
  Part ownPart(const LayerTile& at) const {
    const std::size_t columns = layer.tiles.columns, end = inputs() * columns;
    const Part part = partOf(layer, end + columns, at.group);
    return {std::min(part.first, end), std::min(part.last, end)};
  }
  // A quarter of what a worker has to add up if all inputs are alike.
  unsigned longest() const {
    const std::size_t workers = std::size_t{kShares} * layer.sample_groups.size();
    return static_cast<unsigned>(std::size_t{rows_} * list_.listed / (4 * workers));
  }
  // [blocks, groups, elements], on their tiles.
  Tensor addOfTiles(std::size_t elements, const char* what) {
    const std::size_t groups = layer.sample_groups.size();
    const Tensor all = graph.addVariable(UNSIGNED_INT, {layer.tiles.count, groups, elements}, setName(what));
    forEachTile(*this, [&](const LayerTile& at) { graph.setTileMapping(all[at.block][at.group], at.tile()); });
    return all;
  }

  // If there are any: all blocks share the same inputs. Each tile sums over the rows of its own samples. Whether there
  // are is found beside a readout's sums, which are ready by now if all steps run at once.
  void addShared(const Tensor& g_current, const Tensor& g_weights) {
    const Tensor any = graph.addVariable(poplar::BOOL, {}, setName("any_shared"));
    if (pass.of_readout && plan.num_blocks == 1) {
      sums_.add(Execute(*pass.of_readout));
      addAny({*std::exchange(pass.of_readout, {})}, plan.num_tiles - 1, any_shared_[0].flatten(), any);
    } else {
      addAny({addSum("shared/any")}, layer.tileOf(0, 0), any_shared_[0].flatten(), any);
    }
    const ComputeSet sums = graph.addComputeSet(setName("shared/sums")),
                     adds = graph.addComputeSet(setName("shared/adds"));
    const std::size_t columns = layer.tiles.columns, groups = layer.sample_groups.size(),
                      each = kSharedOfTile * columns;
    const Tensor partial = graph.addVariable(FLOAT, {layer.tiles.count, groups, groups * each}, setName("shared/sums"));
    forEachTile(*this, [&](const LayerTile& at) {
      graph.setTileMapping(partial[at.block][at.group], at.tile());
      const unsigned first = layer.sample_groups[at.group].first * plan.block_steps, word = first / kBits,
                     last = ceilDivide(first + at.rows(), kBits);
      addVertex(graph, sums, "snnjax::SumShared", at.tile(),
                {{"shared", shared_[at.block]},
                 {"shared_bits", shared_bits_[at.block].slice(word * kSharedOfTile, last * kSharedOfTile, 1)},
                 {"g_current", at.ownRows(g_current)},
                 {"sums", partial[at.block][at.group]}},
                {{"tiles", static_cast<unsigned>(groups)},
                 {"words", last - word},
                 {"first", first % kBits},
                 {"rows", at.rows()},
                 {"neurons", static_cast<unsigned>(columns)}});
      const Part part = ownPart(at);
      if (part.first == part.last) return;
      addVertex(graph, adds, "snnjax::AddShared", at.tile(),
                {{"shared", shared_[at.block][at.group]},
                 {"sums", partial[at.block].slice(at.group * each, (at.group + 1) * each, 1)},
                 {"g_weights", g_weights[at.block].slice(part.first, part.last)},
                 {"any", any_shared_[at.block][at.group][0]}},
                {{"groups", static_cast<unsigned>(groups)}, {"neurons", static_cast<unsigned>(columns)}});
    });
    sums_.add(If(any, Sequence({Execute(sums), Execute(adds)}), Sequence()));
  }

  bool own_;                      // the weights of own spikes of the step before
  const ListPlan& list_;          // that names the rows of the weights: what the layer reads, or fires
  unsigned rows_, words_, room_;  // rows of a block of all samples, words of bits for them, words of a record
  Counter level_;
  Tensor masks_, turned_, records_, more_, any_;
  Tensor any_shared_, shared_, shared_bits_;  // [blocks, groups, ...]
  std::vector<Tensor> more_of_tiles_;
  std::vector<std::vector<ComputeSet>> of_lists_;  // of each stage: the first one, and where it is done again
  Sequence sums_;
};

}  // namespace

void addGatheredGradient(const LayerPass& of, bool own, const Tensor& g_current, const Tensor& g_weights) {
  const std::string name = of.name(own ? "own_weights" : "weights");
  const Tensor sums = spreadOverGroups(of.graph, of.layer, g_weights, name + "/sums");
  if (of.plan.num_blocks > 1) of.pass.zeros.push_back(sums);
  GatheredGradient(of, own).add(g_current, sums);
  if (sums != g_weights) of.pass.after.add(Copy(sums, g_weights));
}

}  // namespace snnjax::builders
