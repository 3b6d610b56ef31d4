// The tutorial's mappings: element i of the vector on tile i T / 1000; part p of row r, with its vertex, on tile
// (10000 p + r) T / 70000; the sum of row r on tile r T / 10000. The matrix arrives in the order of its stream, spread
// evenly, and moves home from there: a tile's 6,793 words are most of the measured 8,743 cycles of exchange. The vector
// and the result are at home where they arrive.
#include "calibration/matrix_vector.hpp"

#include <cstdint>
#include <filesystem>
#include <ipu_model/profile.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <vector>

#include "error.hpp"

namespace ipu_model::calibration {
namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Sequence;

constexpr std::size_t kRows = 10000, kColumns = 1000, kParts = 7;

class MatrixVector {
 public:
  explicit MatrixVector(poplar::Graph& graph) : graph_(graph), tiles_(graph.getTarget().getNumTiles()) {
    graph.addCodelets((std::filesystem::path(__FILE__).parent_path() / "matrix_vector_codelets.cpp").string());
    matrix_ = graph.addVariable(poplar::FLOAT, {kRows, kColumns}, "matrix");
    vector_ = graph.addVariable(poplar::FLOAT, {kColumns}, "vector");
    parts_ = graph.addVariable(poplar::FLOAT, {kRows, kParts}, "parts");
    out_ = graph.addVariable(poplar::FLOAT, {kRows}, "out");
    for (std::size_t i = 0; i < kColumns; ++i) graph.setTileMapping(vector_[i], tileOf(i, kColumns));
  }

  Sequence program() {
    Sequence program;
    program.add(Copy(graph_.addHostToDeviceFIFO("vector", poplar::FLOAT, kColumns), vector_));
    program.add(Copy(graph_.addHostToDeviceFIFO("matrix", poplar::FLOAT, kRows * kColumns), matrix_));
    program.add(Execute(dotProducts()));
    program.add(Execute(sums()));
    program.add(Copy(out_, graph_.addDeviceToHostFIFO("out", poplar::FLOAT, kRows)));
    return program;
  }

 private:
  [[nodiscard]] unsigned tileOf(std::size_t index, std::size_t count) const {
    return static_cast<unsigned>(index * tiles_ / count);
  }
  poplar::ComputeSet dotProducts() {
    const poplar::ComputeSet set = graph_.addComputeSet("dot_products");
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t begin = part * kColumns / kParts, end = (part + 1) * kColumns / kParts;
      for (std::size_t row = 0; row < kRows; ++row) {
        const unsigned tile = tileOf(part * kRows + row, kParts * kRows);
        const Tensor elements = matrix_[row].slice(begin, end);
        const Tensor out = parts_[row][part];
        graph_.setTileMapping(elements, tile);
        graph_.setTileMapping(out, tile);
        const poplar::VertexRef vertex = graph_.addVertex(
            set, "calibration::DotProduct", {{"row", elements}, {"vector", vector_.slice(begin, end)}, {"out", out}});
        graph_.setTileMapping(vertex, tile);
      }
    }
    return set;
  }

  poplar::ComputeSet sums() {
    const poplar::ComputeSet set = graph_.addComputeSet("sums");
    for (std::size_t row = 0; row < kRows; ++row) {
      const poplar::VertexRef vertex =
          graph_.addVertex(set, "calibration::Sum", {{"parts", parts_[row]}, {"out", out_[row]}});
      graph_.setTileMapping(vertex, tileOf(row, kRows));
      graph_.setTileMapping(out_[row], tileOf(row, kRows));
    }
    return set;
  }

  poplar::Graph& graph_;
  std::size_t tiles_;
  Tensor matrix_, vector_, parts_, out_;
};

// matrix[row, column] = (row + column) mod 8, vector[column] = column mod 4: sums are exact.
void checkResult(const std::vector<float>& matrix, const std::vector<float>& vector, const std::vector<float>& out) {
  for (std::size_t row = 0; row < kRows; ++row) {
    float expected = 0;
    for (std::size_t column = 0; column < kColumns; ++column)
      expected += matrix[row * kColumns + column] * vector[column];
    if (out[row] != expected)
      throw snnjax::Error(snnjax::ErrorCode::kInternal,
                          "matrix_vector: `result` must be exact, got another. Mend the model.");
  }
}

}  // namespace

Table matrixVector() {
  const poplar::Device device = poplar::IPUModel("mk2").createDevice();
  poplar::Graph graph(device);
  const Sequence program = MatrixVector(graph).program();
  poplar::Engine engine(graph, program);
  engine.load(device);
  std::vector<float> matrix(kRows * kColumns), vector(kColumns), out(kRows);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>((i / kColumns + i % kColumns) % 8);
  for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = static_cast<float>(i % 4);
  engine.connectStream("vector", vector.data());
  engine.connectStream("matrix", matrix.data());
  engine.connectStream("out", out.data());
  engine.run();
  checkResult(matrix, vector, out);

  const Profile profile = profileOf(engine);
  double compute = 0;  // the tutorial prints the average over the tiles
  for (const TileProfile& tile : profile.tiles) compute += static_cast<double>(tile.cycles);
  Table table{"**Tutorial 6**, a matrix of 10,000 x 1,000 floats times a vector on Mk2", "cycles", 0, {}};
  table.rows.push_back(
      exactly("compute, average over the tiles", compute / static_cast<double>(profile.tiles.size()), 28300.3));
  table.rows.push_back(exactly("exchange", static_cast<double>(profile.cycles.exchange), 8743.1));
  return table;
}

}  // namespace ipu_model::calibration
