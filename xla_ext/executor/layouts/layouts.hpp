// The layouts of values: a function of their shape within one program, so that operations over values of one shape need
// no exchange. A product determines the layouts of its operands and result, a slice in a loop that of the array it is
// cut from; other shapes are spread evenly. The library's own ops propose layouts for single values.
#pragma once

#include <map>
#include <memory>
#include <poplar/Graph.hpp>
#include <set>
#include <unordered_map>
#include <vector>

#include "executor/layouts/layout.hpp"
#include "executor/layouts/product.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {

// The layouts that own ops propose for operands and results. A proposal for one value holds for all that share its
// layout: those of the same elementwise operations and loops, views of the same order, and results in a parameter's
// memory. So weights stay where the op multiplies with them, unless that slows their update by more than the transfer
// there and back.
struct Proposal {
  ValueId value;
  Blocks blocks;
  double times = 1;  // that the op runs
};

// How often a loop runs its blocks; a guess where that depends on data.
double iterationsOf(const Instruction& instruction);

// The layout of each value that a proposal reaches; the first of several wins.
std::unordered_map<ValueId, std::shared_ptr<const Layout>> spreadProposals(const Plan& plan,
                                                                           const std::vector<Proposal>& proposals,
                                                                           std::size_t tiles);

// Whether an instruction's one result is its one input with other dimensions of size 1, or as another type: the same
// elements in the same order.
bool keepsOrder(const Plan& plan, const Instruction& instruction);

class Layouts {
 public:
  Layouts(const Plan& plan, const poplar::Target& target, const std::vector<Proposal>& proposals = {});

  // The layout of a value: as an own op proposed, else that of its shape.
  const Layout& ofValue(ValueId value) const;
  // Dimensions of size 1 do not count.
  const Layout& of(const Shape& shape) const;
  const std::vector<std::size_t>& cuts(const Shape& shape) const { return of(shape).cuts(); }
  // How a product of the program is divided.
  const ProductPlan& of(const Product& product) const { return products_.at(product); }

  // A variable {elements} in memory order as an array of the shape, and back.
  poplar::Tensor view(const poplar::Tensor& memory, const Shape& shape) const { return of(shape).view(memory, shape); }
  poplar::Tensor memoryOrder(const poplar::Tensor& tensor) const { return of(tensor.shape()).memoryOrder(tensor); }
  // Maps a variable {elements} in memory order: tile t gets [cuts[t], cuts[t + 1]).
  void map(poplar::Graph& graph, const poplar::Tensor& memory, const Shape& shape) const {
    of(shape).map(graph, memory);
  }

  std::size_t tiles() const { return tiles_; }

 private:
  struct Uses;
  static void collect(const Plan& plan, const Block& block, double times, Uses& uses);
  planner::Machine machineFor(const Product& product) const;
  bool isTransposed(const Product& product, const Shape& shape, bool depth_first) const;
  bool decides(const Product& product, const Shape& key) const;
  planner::ProductSizes sizesOf(const Product& product) const;
  void settleShared(const Product& product, const std::vector<std::pair<double, const Product*>>& by_work);
  void divide(const Product& product);
  std::size_t depthOfBlocks(const ProductPlan& plan) const;
  std::map<Shape, std::pair<std::size_t, std::size_t>> shared_;  // blocks of a matrix that stays in several products
  const Blocks* settle(const Shape& shape, Blocks blocks, bool is_main, std::size_t spread);
  Layout make(const Shape& shape) const;

  const Plan& plan_;
  std::size_t tiles_, tile_bytes_;
  std::size_t heavy_products_ = 0;
  std::unordered_map<ValueId, std::shared_ptr<const Layout>> proposed_;
  std::map<Product, ProductPlan> products_;
  std::map<Shape, Blocks> matrices_;            // shapes of products, without dimensions of size 1; so are all below
  std::map<Shape, bool> deep_;                  // whether the depth is innermost, as the unit needs it
  std::set<Shape> sliced_;                      // cut along their first dimension while the program runs
  std::set<Shape> worked_on_;                   // by elementwise operations and sums
  std::map<Shape, std::size_t> least_on_tile_;  // elements, for slices of which a tile holds many
  mutable std::map<Shape, Layout> layouts_;
};

}  // namespace snnjax::executor
