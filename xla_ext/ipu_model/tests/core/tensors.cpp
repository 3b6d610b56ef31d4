// Tensors as views: what each operation views, and where elements are stored.
#include <numeric>
#include <poplar/OptionFlags.hpp>

#include "core/on_model.hpp"

namespace {

using namespace poplar;
using on_model::Model;
using Shape = std::vector<std::size_t>;

// The numbers of the elements of a variable, in the order in which a tensor has them.
std::vector<std::size_t> elements(const Tensor& tensor) {
  std::vector<std::size_t> result;
  for (const VariableInterval& region : tensor.getVarRegions()) {
    for (std::size_t i = region.interval.begin(); i < region.interval.end(); ++i) result.push_back(i);
  }
  return result;
}
using Elements = std::vector<std::size_t>;

Graph emptyGraph(unsigned tiles = 4) { return Graph(on_model::device(tiles)); }

void seesPartsAndOrders() {
  Graph graph = emptyGraph();
  const Tensor t = graph.addVariable(FLOAT, {2, 3, 4}, "t");
  CHECK((elements(t[1][2]) == Elements{20, 21, 22, 23}));
  CHECK((elements(t.slice({0, 1, 2}, {2, 2, 4})) == Elements{6, 7, 18, 19}));
  CHECK((elements(t.index({1, 0}).reverse(0)) == Elements{15, 14, 13, 12}));
  CHECK((elements(t.dimShuffle({2, 0, 1})[1]) == Elements{1, 5, 9, 13, 17, 21}));
  CHECK((t.dimShuffle({2, 0, 1}).shape() == Shape{4, 2, 3}));
  CHECK((elements(t[0].transpose().flatten().slice(3, 7)) == Elements{1, 5, 9, 2}));
  CHECK((elements(t[0][0].subSample(3, 0)) == Elements{0, 3}));
  CHECK((elements(t[0][0].slice(0, 2).broadcast(2, 0)) == Elements{0, 1, 0, 1}));
  CHECK((elements(t[0][0].slice(0, 2).upsample(2, 0, UpsampleMethod::REPEAT)) == Elements{0, 0, 1, 1}));
  CHECK((t.broadcast(3, 1).shape() == Shape{2, 9, 4}));
  CHECK((t.dimRoll(2).shape() == Shape{4, 2, 3}) && (t.dimRoll(0, 2).shape() == Shape{3, 4, 2}));
  CHECK((t.dimShufflePartial({0, 2}, {1, 0}).shape() == Shape{4, 2, 3}));
  CHECK((t.flatten(0, 2).shape() == Shape{6, 4}) && (t.reshapePartial(1, 3, {2, 6}).shape() == Shape{2, 2, 6}));
  CHECK((t.expand({0, 2}).shape() == Shape{1, 2, 3, 1, 4}) && (t.expand({0, 2}).squeeze().shape() == t.shape()));
  CHECK((t.expand({3}).squeeze({3}).shape() == t.shape()));
  CHECK(t[0].slice(0, 0).numElements() == 0 && elements(t.slice(1, 1)).empty());
  CHECK_EQUAL(t.shapeToString(), "{2,3,4}");
}

void putsTensorsTogether() {
  Graph graph = emptyGraph();
  const Tensor t = graph.addVariable(FLOAT, {2, 3}, "t");
  const Tensor wide = concat(t.slice(0, 1, 1), t.slice(2, 3, 1), 1);
  CHECK((elements(wide) == Elements{0, 2, 3, 5}) && (wide.shape() == Shape{2, 2}));
  CHECK((elements(concat({t[1], t[0].reverse(0), t[0]})) == Elements{3, 4, 5, 2, 1, 0, 0, 1, 2}));
  CHECK((elements(append(t, t[0])) == Elements{0, 1, 2, 3, 4, 5, 0, 1, 2}));
  CHECK(concat(t.slice(0, 1), t.slice(1, 2)) == t && concat(t, t).slice(0, 2) == t);
  CHECK(concat(t.slice(0, 2, 1), t.slice(2, 3, 1), 1).isContiguous());
  CHECK(t.slices({Interval(0, 1), Interval(1, 3)}, 1)[1] == t.slice(1, 3, 1));
  CHECK((elements(t.flatten().slices(std::vector<std::vector<Interval>>{{{0, 1}, {4, 6}}})[0]) == Elements{0, 4, 5}));
}

void knowsItsElements() {
  Graph graph = emptyGraph();
  const Tensor t = graph.addVariable(FLOAT, {4, 4}, "t");
  CHECK(t.isContiguous() && t.slice(1, 3).isContiguous() && !t.slice(0, 1, 1).isContiguous());
  CHECK(!t.transpose().containsAliases() && t.broadcast(2, 0).containsAliases() &&
        concat(t, t[0].expand({0})).containsAliases());
  CHECK(t.isParallelWriteable() && !t.broadcast(2, 0).isParallelWriteable());
  CHECK(t.slice(0, 2).intersectsWith(t.slice(3, 4, 1)) && !t.slice(0, 2).intersectsWith(t.slice(2, 4)));
  CHECK((t.slice(1, 3, 1).getContiguousRegions() == std::vector<Interval>{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
  CHECK(t.reinterpret(INT).elementType() == INT);
  const Tensor constant = graph.addConstant(INT, {2}, ArrayRef<int>({3, 5}));
  int value = 0;
  CHECK(constant[1].getConstantValue(&value) && value == 5 && !t[0][0].reinterpret(INT).getConstantValue(&value));
  CHECK(constant.containsConstant() && !t.containsConstant());
  CHECK(graph.findUnbroadcastTensor(t[0].expand({0}).broadcast(3, 0)).numElements() == 4);
}

void refusesWhatIsNotThere() {
  Graph graph = emptyGraph();
  const Tensor t = graph.addVariable(FLOAT, {2, 3}, "t");
  CHECK_THROWS(t[2], "`i` must be below 2, got 2");
  CHECK_THROWS(t.slice(1, 4, 1), "`end` must lie between begin and the dimension's size 3, got [1,4)");
  CHECK_THROWS(t.dim(2), "`dimension` must be one of the 2 dimensions");
  CHECK_THROWS(t.reshape({4}), "`shape` must hold 6 elements, got {4}");
  CHECK_THROWS(t.dimShuffle({0, 0}), "`permutation` must hold each of the 2 dimensions once");
  CHECK_THROWS(concat(t, t.transpose()), "`tensors` must agree in type and in all dimensions but 0");
  CHECK_THROWS(t.reinterpret(HALF), "`type` must have elements of 4 bytes");
  CHECK_THROWS(t.squeeze({0}), "`dims` must name dimensions of size 1");
  CHECK_THROWS(Tensor().shape(), "`tensor` must belong to a graph");
  CHECK_THROWS(graph.addConstant(FLOAT, {3}, ArrayRef<float>({1, 2})), "`values` must be one value or 3, got 2");
}

void remembersTiles() {
  Graph graph = emptyGraph(8);
  const Tensor t = graph.addVariable(FLOAT, {4, 4}, "t");
  for (unsigned i = 0; i < 4; ++i) graph.setTileMapping(t.slice(i, i + 1, 1), i);
  const auto mapping = graph.getTileMapping(t.transpose());
  CHECK((mapping[2] == std::vector<Interval>{{8, 12}}));
  CHECK((graph.getTileMapping(t)[3] == std::vector<Interval>{{3, 4}, {7, 8}, {11, 12}, {15, 16}}));
  graph.setTileMapping(t.flatten().slice(2, 9), 7);
  CHECK((graph.getTileMapping(t)[7] == std::vector<Interval>{{2, 9}}));
  const Tensor linear = graph.addVariable(FLOAT, {20}, VariableMappingMethod::LINEAR, "linear");
  CHECK((graph.getTileMapping(linear)[6] == std::vector<Interval>{{18, 20}}));
  graph.setTileMapping(t, mapping);
  CHECK((graph.getTileMapping(t)[1] == std::vector<Interval>{{4, 8}}));
}

void clonesOrderAndTiles() {
  Graph graph = emptyGraph();
  const Tensor t = graph.addVariable(FLOAT, {2, 3}, "t");
  for (unsigned i = 0; i < 3; ++i) graph.setTileMapping(t.slice(i, i + 1, 1), i);
  const Tensor copy = graph.clone(HALF, t.transpose(), "copy");
  CHECK((elements(copy) == Elements{0, 3, 1, 4, 2, 5}) && copy.elementType() == HALF);
  CHECK(graph.getTileMapping(copy) == graph.getTileMapping(t.transpose()));
  const Tensor twice = t.slice(0, 1).broadcast(2, 0);
  CHECK(!graph.clone(twice).containsAliases());
  CHECK(
      (elements(graph.clone(twice, "", TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES)) == Elements{0, 1, 2, 0, 1, 2}));
  CHECK((graph.cloneN(t, 3).shape() == Shape{3, 2, 3}));
  const auto regions = graph.getSortedContiguousRegions(t.transpose().flatten(), {{0, 6}});
  CHECK((regions == std::vector<std::vector<Interval>>{{{0, 1}, {2, 3}, {4, 5}, {1, 2}, {3, 4}, {5, 6}}}));
  Tensor a = t.transpose().flatten(), b = graph.clone(t).flatten();
  graph.reorderToSimplify(&a, {&b});
  CHECK(a.isContiguous() && (elements(b) == Elements{0, 2, 4, 1, 3, 5}));
}

void virtualGraphsAreParts() {
  Graph graph = Graph(on_model::device(4, 2));
  Graph upper = graph.createVirtualGraph(4, 8);
  Graph some = upper.createVirtualGraph(std::vector<unsigned>{3, 1});
  CHECK_EQUAL(upper.getTarget().getNumTiles(), 4U);
  CHECK_EQUAL(some.getTarget().getNumTiles(), 2U);
  CHECK_EQUAL(graph.createVirtualGraph(3).getTarget().getNumIPUs(), 2U);
  CHECK_EQUAL(graph.createVirtualGraph(3).physicalTile(4), 5U);
  const Tensor t = some.addVariable(FLOAT, {2}, "t");
  some.setTileMapping(t[0], 0);
  some.setTileMapping(t[1], 1);
  CHECK((graph.getTileMapping(t)[7] == std::vector<Interval>{{0, 1}}));
  CHECK((upper.getTileMapping(t)[1] == std::vector<Interval>{{1, 2}}));
  CHECK_THROWS(some.setTileMapping(t, 2), "`tile` must be below 2");
}

void convertsHalf() {
  const Target target = on_model::device(1).getTarget();
  const std::vector<float> numbers{1.0F, -2.5F, 65504.0F, 65520.0F, 6e-8F, 1e-9F, 0.1F, 2049.0F};
  std::vector<std::uint16_t> bits(numbers.size());
  copyFloatToDeviceHalf(target, numbers.data(), bits.data(), bits.size());
  CHECK((bits == std::vector<std::uint16_t>{0x3c00, 0xc100, 0x7bff, 0x7c00, 1, 0, 0x2e66, 0x6800}));
  std::vector<float> back(bits.size());
  copyDeviceHalfToFloat(target, bits.data(), back.data(), back.size());
  CHECK_EQUAL(back[2], 65504.0F);
  CHECK_EQUAL(back[7], 2048.0F);
  for (unsigned all = 0; all < 0x7c00; ++all) {
    const auto one = static_cast<std::uint16_t>(all);
    std::uint16_t again = 0;
    copyDeviceHalfToFloat(target, &one, back.data(), 1);
    copyFloatToDeviceHalf(target, back.data(), &again, 1);
    CHECK(again == one);
  }
}

void readsOptions() {
  OptionFlags flags{{"a", "1"}};
  readJSON(R"({"b": "two", "c": 3.5, "d": true})", flags);
  CHECK(flags.at("a") == "1" && flags.at("b") == "two" && flags.at("c") == "3.5" && flags.at("d") == "true");
  CHECK_THROWS(readJSON("[1]", flags), "`json` must be an object");
  CHECK_THROWS(flags.at("e"), "`option` must have been set, got \"e\"");
}

}  // namespace

int main() {
  return on_model::result([] {
    seesPartsAndOrders();
    putsTensorsTogether();
    knowsItsElements();
    refusesWhatIsNotThere();
    remembersTiles();
    clonesOrderAndTiles();
    virtualGraphsAreParts();
    convertsHalf();
    readsOptions();
  });
}
