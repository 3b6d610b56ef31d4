// A view of variables of a graph: an array of any rank whose elements are those of the variables, never a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <poplar/ArrayRef.hpp>
#include <poplar/Interval.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/Type.hpp>
#include <poplar/UpsampleMethod.hpp>
#include <string>
#include <vector>

namespace ipu_model {
class View;
}

namespace poplar {

// A contiguous part of a variable.
struct VariableInterval {
  unsigned var = 0;
  Interval interval;
};

class Tensor {
 public:
  Tensor();  // of no graph, to be assigned to
  explicit Tensor(std::shared_ptr<const ipu_model::View> view);

  Type elementType() const;
  unsigned rank() const { return static_cast<unsigned>(shape().size()); }
  const std::vector<std::size_t>& shape() const;
  std::size_t dim(unsigned dimension) const;
  std::size_t numElements() const;
  bool valid() const { return view_ != nullptr; }
  std::string shapeToString() const;
  std::string getDebugStr() const;
  std::string getVarStr() const;

  // The part [i, ...], of one rank less; a scalar once all indices are given.
  Tensor operator[](std::size_t i) const;
  Tensor index(ArrayRef<std::size_t> indices) const;

  // Elements begin to end of one dimension, or of each of the first dimensions.
  Tensor slice(std::size_t begin, std::size_t end, unsigned dimension = 0) const;
  Tensor slice(const Interval& region, unsigned dimension = 0) const;
  Tensor slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const;
  std::vector<Tensor> slices(ArrayRef<Interval> intervals, unsigned dimension = 0) const;
  std::vector<Tensor> slices(const std::vector<std::vector<Interval>>& intervals, unsigned dimension = 0) const;
  // One tensor for each index or set of them, of that element along a dimension (which stays, of size 1).
  std::vector<Tensor> slices(ArrayRef<unsigned> indices, unsigned dimension = 0) const;

  Tensor subSample(unsigned stride, unsigned dimension) const;
  Tensor upsample(unsigned scale, unsigned dimension, UpsampleMethod method) const;
  Tensor broadcast(unsigned count, unsigned dimension) const;
  Tensor reverse(unsigned dimension) const;

  Tensor reshape(ArrayRef<std::size_t> shape) const;
  Tensor reshapePartial(unsigned beginIndex, unsigned endIndex, ArrayRef<std::size_t> newDims) const;
  Tensor flatten() const;
  Tensor flatten(unsigned dimBegin, unsigned dimEnd) const;
  Tensor squeeze() const;
  Tensor squeeze(ArrayRef<std::size_t> dims) const;
  // Puts a dimension of size 1 before each of `dims`, indices of the dimensions of this tensor.
  Tensor expand(ArrayRef<std::size_t> dims) const;

  Tensor dimShuffle(ArrayRef<unsigned> permutation) const;
  Tensor dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const;
  Tensor dimRoll(unsigned dimension, unsigned newIndex = 0) const;
  Tensor transpose() const;

  // The same bits, taken for another type of the same size.
  Tensor reinterpret(const Type& type) const;

  // One run of elements of one variable, in order.
  bool isContiguous() const;
  // Some element occurs more than once.
  bool containsAliases() const;
  bool containsConstant() const;
  bool isParallelWriteable() const { return !containsAliases() && !containsConstant(); }
  bool intersectsWith(const Tensor& other) const;
  // Where contiguous runs begin and end, in the flattened tensor.
  std::vector<Interval> getContiguousRegions() const;
  // The runs of variables, in the order of the flattened tensor.
  std::vector<VariableInterval> getVarRegions() const;

  // Whether a constant, and of which value, where that is known when the graph is built.
  template <typename T>
  bool getConstantValue(T* value) const {
    return constantValue(value, equivalent_device_type<T>().value);
  }

  void dump(std::ostream& stream) const;

  // The same view of the same variables.
  friend bool operator==(const Tensor& a, const Tensor& b);
  friend bool operator!=(const Tensor& a, const Tensor& b) { return !(a == b); }

  const std::shared_ptr<const ipu_model::View>& view() const { return view_; }  // the model's own

 private:
  bool constantValue(void* value, const Type& type) const;

  std::shared_ptr<const ipu_model::View> view_;
};

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

// Tensors one after the other along a dimension.
Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension = 0);
Tensor concat(const Tensor& first, const Tensor& second, unsigned dimension = 0);
// A new first tensor's dimension: a tensor after `t`, of one rank less.
Tensor append(const Tensor& t, const Tensor& element, unsigned dimension = 0);

}  // namespace poplar
