// Poplar's Tensor: operations on shapes and strides.
#include <poplar/Tensor.hpp>

#include <algorithm>
#include <numeric>
#include <poplar/exceptions.hpp>

#include "tensor/view.hpp"

namespace poplar {
namespace {

using ipu_model::toString;
using ipu_model::View;
using ipu_model::viewOf;

std::shared_ptr<View> copyOf(const Tensor& tensor) { return std::make_shared<View>(viewOf(tensor)); }

[[noreturn]] void refuse(const char* operation, const char* argument, const std::string& expected,
                         const std::string& actual, const char* hint) {
  throw index_error(std::string(operation) + ": `" + argument + "` must " + expected + ", got " + actual + ". " + hint);
}

void checkDimension(const View& view, const char* operation, std::size_t dimension) {
  if (dimension >= view.shape.size()) {
    refuse(operation, "dimension",
           "be one of the " + std::to_string(view.shape.size()) + " dimensions of a tensor of shape " +
               toString(view.shape),
           std::to_string(dimension), "Dimensions are counted from 0.");
  }
}

void sliceDimension(View& view, std::size_t begin, std::size_t end, std::size_t dimension) {
  checkDimension(view, "slice", dimension);
  if (begin > end || end > view.shape[dimension]) {
    refuse("slice", "end", "lie between begin and the dimension's size " + std::to_string(view.shape[dimension]),
           "[" + std::to_string(begin) + "," + std::to_string(end) + ") of shape " + toString(view.shape),
           "A slice is [begin, end).");
  }
  if (begin != end) view.offset += static_cast<std::ptrdiff_t>(begin) * view.strides[dimension];
  view.shape[dimension] = end - begin;
}

void eraseDimension(View& view, std::size_t dimension) {
  view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(dimension));
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(dimension));
}

}  // namespace

Tensor::Tensor() = default;
Tensor::Tensor(std::shared_ptr<const View> view) : view_(std::move(view)) {}

Type Tensor::elementType() const { return viewOf(*this).type; }
const std::vector<std::size_t>& Tensor::shape() const { return viewOf(*this).shape; }
std::size_t Tensor::numElements() const { return viewOf(*this).elements(); }

std::size_t Tensor::dim(unsigned dimension) const {
  checkDimension(viewOf(*this), "dim", dimension);
  return view_->shape[dimension];
}

Tensor Tensor::operator[](std::size_t i) const {
  auto view = copyOf(*this);
  checkDimension(*view, "operator[]", 0);
  if (i >= view->shape[0]) {
    refuse("operator[]", "i", "be below " + std::to_string(view->shape[0]), std::to_string(i),
           "The first dimension is indexed.");
  }
  view->offset += static_cast<std::ptrdiff_t>(i) * view->strides[0];
  eraseDimension(*view, 0);
  return Tensor(view);
}

Tensor Tensor::index(ArrayRef<std::size_t> indices) const {
  Tensor result = *this;
  for (const std::size_t i : indices) result = result[i];
  return result;
}

Tensor Tensor::slice(std::size_t begin, std::size_t end, unsigned dimension) const {
  auto view = copyOf(*this);
  sliceDimension(*view, begin, end, dimension);
  return Tensor(view);
}

Tensor Tensor::slice(const Interval& region, unsigned dimension) const {
  return slice(region.begin(), region.end(), dimension);
}

Tensor Tensor::slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const {
  if (begin.size() != end.size()) {
    refuse("slice", "end", "have as many entries as begin, " + std::to_string(begin.size()), std::to_string(end.size()),
           "Give both for the same dimensions.");
  }
  auto view = copyOf(*this);
  for (std::size_t d = 0; d < begin.size(); ++d) sliceDimension(*view, begin[d], end[d], d);
  return Tensor(view);
}

std::vector<Tensor> Tensor::slices(ArrayRef<Interval> intervals, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const Interval& interval : intervals) result.push_back(slice(interval, dimension));
  return result;
}

std::vector<Tensor> Tensor::slices(const std::vector<std::vector<Interval>>& intervals, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const auto& parts : intervals) {
    const std::vector<Tensor> pieces = slices(ArrayRef<Interval>(parts), dimension);
    result.push_back(pieces.empty() ? slice(0, 0, dimension) : concat(pieces, dimension));
  }
  return result;
}

std::vector<Tensor> Tensor::slices(ArrayRef<unsigned> indices, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const unsigned i : indices) result.push_back(slice(i, i + std::size_t{1}, dimension));
  return result;
}

Tensor Tensor::subSample(unsigned stride, unsigned dimension) const {
  auto view = copyOf(*this);
  checkDimension(*view, "subSample", dimension);
  if (stride == 0) {
    refuse("subSample", "stride", "be positive", "0", "A stride of 1 keeps everything.");
  }
  view->shape[dimension] = (view->shape[dimension] + stride - 1) / stride;
  view->strides[dimension] *= static_cast<std::ptrdiff_t>(stride);
  return Tensor(view);
}

Tensor Tensor::upsample(unsigned scale, unsigned dimension, UpsampleMethod) const {
  auto view = copyOf(*this);
  checkDimension(*view, "upsample", dimension);
  std::vector<std::size_t> shape = view->shape;
  shape[dimension] *= scale;
  const auto after = static_cast<std::ptrdiff_t>(dimension) + 1;
  view->shape.insert(view->shape.begin() + after, scale);
  view->strides.insert(view->strides.begin() + after, 0);
  return Tensor(ipu_model::reshaped(*view, std::move(shape)));
}

Tensor Tensor::broadcast(unsigned count, unsigned dimension) const {
  auto view = copyOf(*this);
  checkDimension(*view, "broadcast", dimension);
  std::vector<std::size_t> shape = view->shape;
  shape[dimension] *= count;
  view->shape.insert(view->shape.begin() + dimension, count);
  view->strides.insert(view->strides.begin() + dimension, 0);
  return Tensor(ipu_model::reshaped(*view, std::move(shape)));
}

Tensor Tensor::reverse(unsigned dimension) const {
  auto view = copyOf(*this);
  checkDimension(*view, "reverse", dimension);
  if (view->shape[dimension] > 0) {
    view->offset += static_cast<std::ptrdiff_t>(view->shape[dimension] - 1) * view->strides[dimension];
  }
  view->strides[dimension] *= -1;
  return Tensor(view);
}

Tensor Tensor::reshape(ArrayRef<std::size_t> shape) const {
  const std::size_t elements = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  if (elements != numElements()) {
    refuse("reshape", "shape", "hold " + std::to_string(numElements()) + " elements",
           toString({shape.data(), shape.size()}), "The product of the sizes has to stay.");
  }
  return Tensor(ipu_model::reshaped(*view_, shape.cloneAsVector()));
}

Tensor Tensor::reshapePartial(unsigned beginIndex, unsigned endIndex, ArrayRef<std::size_t> newDims) const {
  if (beginIndex > endIndex || endIndex > rank()) {
    refuse("reshapePartial", "endIndex", "lie between beginIndex and the rank " + std::to_string(rank()),
           std::to_string(endIndex), "Dimensions [beginIndex, endIndex) are replaced.");
  }
  std::vector<std::size_t> sizes(shape().begin(), shape().begin() + beginIndex);
  sizes.insert(sizes.end(), newDims.begin(), newDims.end());
  sizes.insert(sizes.end(), shape().begin() + endIndex, shape().end());
  return reshape(sizes);
}

Tensor Tensor::flatten() const {
  const std::size_t elements = numElements();
  return reshape(elements);
}

Tensor Tensor::flatten(unsigned dimBegin, unsigned dimEnd) const {
  std::size_t elements = 1;
  for (unsigned d = dimBegin; d < dimEnd; ++d) elements *= dim(d);
  return reshapePartial(dimBegin, dimEnd, elements);
}

Tensor Tensor::squeeze() const {
  std::vector<std::size_t> sizes;
  for (const std::size_t size : shape()) {
    if (size != 1) sizes.push_back(size);
  }
  return reshape(sizes);
}

Tensor Tensor::squeeze(ArrayRef<std::size_t> dims) const {
  std::vector<std::size_t> sizes;
  for (std::size_t d = 0; d < rank(); ++d) {
    const bool dropped = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (dropped && shape()[d] != 1) {
      refuse("squeeze", "dims", "name dimensions of size 1", std::to_string(d) + " of shape " + shapeToString(),
             "Slice the dimension first.");
    }
    if (!dropped) sizes.push_back(shape()[d]);
  }
  return reshape(sizes);
}

Tensor Tensor::expand(ArrayRef<std::size_t> dims) const {
  std::vector<std::size_t> sizes;
  for (std::size_t d = 0; d <= rank(); ++d) {
    sizes.insert(sizes.end(), static_cast<std::size_t>(std::count(dims.begin(), dims.end(), d)), 1);
    if (d < rank()) sizes.push_back(shape()[d]);
  }
  return reshape(sizes);
}

Tensor Tensor::dimShuffle(ArrayRef<unsigned> permutation) const {
  auto view = copyOf(*this);
  std::vector<bool> seen(rank(), false);
  bool valid = permutation.size() == rank();
  for (std::size_t d = 0; valid && d < rank(); ++d) {
    valid = permutation[d] < rank() && !seen[permutation[d]];
    if (!valid) break;
    seen[permutation[d]] = true;
    view->shape[d] = shape()[permutation[d]];
    view->strides[d] = view_->strides[permutation[d]];
  }
  if (!valid) {
    refuse("dimShuffle", "permutation", "hold each of the " + std::to_string(rank()) + " dimensions once",
           std::to_string(permutation.size()) + " entries", "dimShuffle({1, 0}) transposes a matrix.");
  }
  return Tensor(view);
}

Tensor Tensor::dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const {
  if (source.size() != destination.size()) {
    refuse("dimShufflePartial", "destination", "have as many entries as source", std::to_string(destination.size()),
           "Each dimension of source goes to one place.");
  }
  std::vector<unsigned> permutation(rank(), rank());
  for (std::size_t i = 0; i < source.size(); ++i) {
    checkDimension(*view_, "dimShufflePartial", source[i]);
    checkDimension(*view_, "dimShufflePartial", destination[i]);
    permutation[destination[i]] = source[i];
  }
  unsigned next = 0;
  for (unsigned& place : permutation) {
    if (place != rank()) continue;
    while (std::find(source.begin(), source.end(), next) != source.end()) ++next;
    place = next++;
  }
  return dimShuffle(permutation);
}

Tensor Tensor::dimRoll(unsigned dimension, unsigned newIndex) const { return dimShufflePartial(dimension, newIndex); }

Tensor Tensor::transpose() const {
  std::vector<unsigned> permutation(rank());
  for (unsigned d = 0; d < rank(); ++d) permutation[d] = rank() - 1 - d;
  return dimShuffle(permutation);
}

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension) {
  if (tensors.empty()) {
    refuse("concat", "tensors", "hold at least one tensor", "none", "Leave the call out.");
  }
  const View& first = viewOf(tensors[0]);
  checkDimension(first, "concat", dimension);
  std::vector<std::size_t> shape = tensors[0].dimRoll(dimension).shape();
  shape[0] = 0;
  std::vector<ipu_model::Run> runs;
  for (const Tensor& tensor : tensors) {
    std::vector<std::size_t> expected = first.shape;
    if (tensor.rank() == expected.size()) expected[dimension] = tensor.dim(dimension);
    if (tensor.shape() != expected || tensor.elementType() != first.type) {
      refuse("concat", "tensors", "agree in type and in all dimensions but " + std::to_string(dimension),
             tensors[0].elementType().toString() + toString(first.shape) + " and " + tensor.elementType().toString() +
                 tensor.shapeToString(),
             "Reshape them first.");
    }
    shape[0] += tensor.dim(dimension);
    for (const ipu_model::Run& run : viewOf(tensor.dimRoll(dimension)).runs()) ipu_model::appendRun(runs, run);
  }
  const Tensor rolled(ipu_model::viewOfRuns(first.graph, first.type, std::move(runs), std::move(shape)));
  return rolled.dimRoll(0, dimension);
}

Tensor concat(const Tensor& first, const Tensor& second, unsigned dimension) {
  return concat({first, second}, dimension);
}

Tensor append(const Tensor& t, const Tensor& element, unsigned dimension) {
  return concat(t, element.expand(std::size_t{dimension}), dimension);
}

}  // namespace poplar
