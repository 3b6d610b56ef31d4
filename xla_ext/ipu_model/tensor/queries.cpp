// Queries of a tensor: where its elements are stored, and whether they alias others.
#include <algorithm>
#include <ostream>
#include <poplar/Tensor.hpp>
#include <poplar/exceptions.hpp>
#include <sstream>

#include "graph/graph_data.hpp"
#include "tensor/spans.hpp"
#include "tensor/view.hpp"

namespace poplar {
namespace {

using ipu_model::Run;
using ipu_model::Span;
using ipu_model::viewOf;

}  // namespace

std::string Tensor::shapeToString() const { return ipu_model::toString(shape()); }

bool Tensor::isContiguous() const {
  const std::vector<Run> runs = viewOf(*this).runs();
  return runs.empty() || (runs.size() == 1 && runs[0].contiguous());
}

bool Tensor::containsAliases() const {
  const std::vector<Run> runs = viewOf(*this).runs();
  if (runs.size() == 1) return runs[0].stride == 0 && runs[0].count > 1;
  std::vector<Span> spans;
  ipu_model::appendSpans(runs, spans);
  return ipu_model::mergeSpans(spans);
}

bool Tensor::containsConstant() const {
  const std::vector<Run> runs = viewOf(*this).runs();
  return std::any_of(runs.begin(), runs.end(),
                     [this](const Run& run) { return view_->graph->variables[run.variable].constant; });
}

bool Tensor::intersectsWith(const Tensor& other) const {
  std::vector<Span> mine, others;
  ipu_model::appendSpans(viewOf(*this).runs(), mine);
  ipu_model::mergeSpans(mine);
  ipu_model::appendSpans(viewOf(other).runs(), others);
  return std::any_of(others.begin(), others.end(), [&](const Span& span) { return ipu_model::intersects(mine, span); });
}

std::vector<Interval> Tensor::getContiguousRegions() const {
  std::vector<Interval> result;
  std::size_t at = 0;
  for (const Run& run : viewOf(*this).runs()) {
    const std::size_t length = run.contiguous() ? run.count : 1;
    for (std::size_t done = 0; done < run.count; done += length, at += length) result.emplace_back(at, at + length);
  }
  return result;
}

std::vector<VariableInterval> Tensor::getVarRegions() const {
  std::vector<VariableInterval> result;
  for (const Run& run : viewOf(*this).runs()) {
    const std::size_t length = run.contiguous() ? run.count : 1;
    for (std::size_t done = 0; done < run.count; done += length) {
      result.push_back({run.variable, {run.at(done), run.at(done) + length}});
    }
  }
  return result;
}

Tensor Tensor::reinterpret(const Type& type) const {
  if (type.size() != elementType().size()) {
    throw type_error("reinterpret: `type` must have elements of " + std::to_string(elementType().size()) +
                     " bytes, as " + elementType().toString() + " has, got " + type.toString() +
                     ". popops::cast converts values.");
  }
  auto view = std::make_shared<ipu_model::View>(*view_);
  view->type = type;
  return Tensor(view);
}

bool Tensor::constantValue(void* value, const Type& type) const {
  const std::vector<Run> runs = viewOf(*this).runs();
  if (runs.size() != 1 || runs[0].count != 1 || type.size() != elementType().size()) return false;
  if (!view_->graph->variables[runs[0].variable].constant) return false;
  for (const ipu_model::InitialValues& initial : view_->graph->initial_values) {
    const Run& constant = initial.runs[0];
    if (constant.variable != runs[0].variable) continue;
    const auto* from = initial.bytes.data() + (runs[0].begin - constant.begin) * type.size();
    std::copy_n(from, type.size(), static_cast<std::byte*>(value));
    return true;
  }
  return false;
}

std::string Tensor::getVarStr() const {
  const std::vector<Run> runs = viewOf(*this).runs();
  return runs.empty() ? "" : view_->graph->variables[runs[0].variable].name;
}

std::string Tensor::getDebugStr() const {
  return valid() ? elementType().toString() + shapeToString() + " of " + getVarStr() : "Tensor()";
}

void Tensor::dump(std::ostream& stream) const {
  stream << getDebugStr() << '\n';
  for (const VariableInterval& region : getVarRegions()) {
    stream << "  " << view_->graph->variables[region.var].name << ' ' << region.interval << '\n';
  }
}

bool operator==(const Tensor& a, const Tensor& b) {
  if (!a.valid() || !b.valid()) return a.valid() == b.valid();
  if (a.view() == b.view()) return true;
  if (a.shape() != b.shape() || a.elementType() != b.elementType() || a.view()->graph != b.view()->graph) return false;
  const std::vector<VariableInterval> mine = a.getVarRegions();
  const std::vector<VariableInterval> others = b.getVarRegions();
  return std::equal(mine.begin(), mine.end(), others.begin(), others.end(),
                    [](const auto& x, const auto& y) { return x.var == y.var && x.interval == y.interval; });
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) { return stream << tensor.getDebugStr(); }

}  // namespace poplar
