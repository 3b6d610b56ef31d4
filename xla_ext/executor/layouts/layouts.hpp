// Where values lie: a function of their shape within one program, so that operations over values of one shape need no
// exchange. A product decides for the shapes of its operands and result, a slice in a loop for what it is cut from,
// and other shapes are spread evenly. Own ops propose for single values (proposals.hpp).
#pragma once

#include <map>
#include <poplar/Graph.hpp>
#include <set>
#include <unordered_map>
#include <vector>

#include "executor/layouts/layout.hpp"
#include "executor/layouts/product.hpp"
#include "executor/layouts/proposals.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {

class Layouts {
 public:
  Layouts(const Plan& plan, const poplar::Target& target, const std::vector<Proposal>& proposals = {});

  // Of a value: as an own op proposed, else that of its shape.
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
  void divide(const Product& product, KnownBlocks& known);
  const Blocks* settle(const Shape& shape, Blocks blocks, bool is_main, std::size_t spread);
  Layout make(const Shape& shape) const;

  const Plan& plan_;
  std::size_t tiles_;
  std::unordered_map<ValueId, std::shared_ptr<const Layout>> proposed_;
  std::map<Product, ProductPlan> products_;
  std::map<Shape, Blocks> matrices_;            // shapes of products, without dimensions of size 1; so are all below
  std::set<Shape> sliced_;                      // cut along their first dimension while the program runs
  std::map<Shape, std::size_t> least_on_tile_;  // elements, of slices of which tiles hold many
  mutable std::map<Shape, Layout> layouts_;
};

}  // namespace snnjax::executor
