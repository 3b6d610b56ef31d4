// Running sums, products, maxima and minima along a dimension. Long lines are divided: the running totals of the parts
// come first, and each part then starts from the total of those before it.
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/ops/kinds.hpp"

namespace snnjax::executor::ops {
namespace {

void checkCumulative(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needKind(0);
  op.need(op.input(0) == op.output(), "keep the type");
  op.need(op.ints(0).size() == 2 && op.ints(0)[0] >= 0 &&
              static_cast<std::size_t>(op.ints(0)[0]) < op.input(0).shape.size(),
          "name a dimension and a direction");
}

using poputil::templateVertex;

class Running {
 public:
  Running(Lowering& lowering, const Kind& kind, bool reverse)
      : lowering_(lowering),
        kind_(kind),
        reverse_(reverse),
        wide_(kind.type == poplar::HALF ? poplar::FLOAT : kind.type) {}

  void run(const poplar::Tensor& in, const poplar::Tensor& out) {
    const std::size_t parts = partsOf(in.dim(0), in.dim(1));
    if (parts == 1) return add(kind_.type, in, out, nullptr);
    const std::size_t lines = in.dim(0), length = in.dim(1) / parts;
    const poplar::Tensor pieces = in.reshape({lines * parts, length});
    const poplar::Tensor totals = lowering_.makeTemporary(wide_, {lines, parts});
    addTotals(pieces, totals.flatten());
    const poplar::Tensor sums = lowering_.makeTemporary(wide_, {lines, parts});
    add(wide_, totals, sums, nullptr);
    // The running total before each part; the neutral element before the first.
    poplar::Tensor none = neutral().reshape({1, 1}).broadcast(asUnsigned(lines), 0);
    const poplar::Tensor others = reverse_ ? sums.slice(1, parts, 1) : sums.slice(0, parts - 1, 1);
    const poplar::Tensor before = reverse_ ? poplar::concat(others, none, 1) : poplar::concat(none, others, 1);
    const poplar::Tensor flat = before.flatten();
    add(kind_.type, pieces, out.reshape({lines * parts, length}), &flat);
  }

 private:
  // Equal parts, as many as the tiles' workers can use.
  std::size_t partsOf(std::size_t lines, std::size_t length) const {
    constexpr std::size_t kLeastPart = 64;
    const std::size_t workers = lowering_.layouts().tiles() * lowering_.graph().getTarget().getNumWorkerContexts();
    std::size_t parts = std::max<std::size_t>(1, std::min(length / kLeastPart, workers / lines));
    while (length % parts != 0) --parts;
    return parts;
  }

  poplar::Tensor neutral() {
    poplar::Graph& graph = lowering_.graph();
    const Dtype dtype = wide_ == poplar::FLOAT ? Dtype::kFloat32
                        : wide_ == poplar::INT ? Dtype::kInt32
                                               : Dtype::kUint32;
    const std::string name = kind_.name == "snnjax::Sum"       ? "add"
                             : kind_.name == "snnjax::Product" ? "multiply"
                             : kind_.name == "snnjax::Largest" ? "maximum"
                                                               : "minimum";
    const double value = neutralOf(name, dtype);
    const poplar::Tensor one = wide_ == poplar::FLOAT ? graph.addConstant(wide_, {1}, value, lowering_.debug("neutral"))
                                                      : graph.addConstant(wide_, {1}, static_cast<long long>(value),
                                                                          lowering_.debug("neutral"));
    graph.setTileMapping(one, 0);
    return one;
  }

  void addTotals(const poplar::Tensor& pieces, const poplar::Tensor& totals) {
    ComputeStep step(lowering_, "totals");
    for (const LinesOfTile& lines : spreadLines(lowering_, pieces.dim(0))) {
      step.add(templateVertex("snnjax::Reduce", kind_.name, kind_.type, wide_), lines.tile,
               {{"in", pieces.slice(lines.first, lines.first + lines.count).flatten()},
                {"out", totals.slice(lines.first, lines.first + lines.count)},
                {"outer", asUnsigned(lines.count)},
                {"rows", asUnsigned(pieces.dim(1))},
                {"inner", 1U}});
    }
    step.execute();
  }

  void add(const poplar::Type& type, const poplar::Tensor& in, const poplar::Tensor& out,
           const poplar::Tensor* before) {
    const poplar::Tensor none = before == nullptr ? neutral() : *before;
    ComputeStep step(lowering_, "running");
    for (const LinesOfTile& lines : spreadLines(lowering_, in.dim(0))) {
      const std::size_t last = lines.first + lines.count;
      step.add(templateVertex("snnjax::Cumulative", kind_.name, type), lines.tile,
               {{"in", in.slice(lines.first, last).flatten()},
                {"before", before == nullptr ? none : none.slice(lines.first, last)},
                {"out", out.slice(lines.first, last).flatten()},
                {"rows", asUnsigned(lines.count)},
                {"length", asUnsigned(in.dim(1))},
                {"continues", before != nullptr},
                {"reverse", reverse_}});
    }
    step.execute();
  }

  Lowering& lowering_;
  Kind kind_;
  bool reverse_;
  poplar::Type wide_;  // of totals
};

void cumulative(Lowering& lowering, const Instruction& instruction) {
  const auto dimension = static_cast<std::size_t>(instruction.ints[0][0]);
  const std::string& name = instruction.texts[0];
  const Kind kind = kindOf(name, lowering.type(instruction.inputs[0]).dtype);
  if (kind.name.empty() || kind.name.starts_with("snnjax::Bit")) {
    lowering.refuse(instruction, "cannot run `" + name + "` over these elements", "Convert them to 32-bit numbers");
  }
  const poplar::Tensor in = asLines(lowering.get(instruction.inputs[0]), dimension);
  const poplar::Tensor out = asLines(lowering.make(instruction.outputs[0]), dimension);
  Running(lowering, kind, instruction.ints[0][1] != 0).run(in, out);
}

}  // namespace

extern const Operation kCumulative = {checkCumulative, cumulative};

}  // namespace snnjax::executor::ops
