// A graph on a modelled device, with what the host writes before its programs run and reads afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <poplar/Device.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"

namespace snnjax::harness {

// What an engine has counted, as JSON.
struct Report {
  std::string profile;
};

class Model {
 public:
  explicit Model(const Call& call);

  poplar::Graph& graph() { return graph_; }
  const poplar::Graph& graph() const { return graph_; }

  // Contents of a tensor, in its own order: float or half; any of the types of whole numbers.
  void write(const poplar::Tensor& tensor, std::span<const float> values);
  void write(const poplar::Tensor& tensor, std::span<const std::int32_t> values);
  // To be read once the programs have run; a whole variable or a contiguous part of one is fastest.
  void read(const poplar::Tensor& tensor);

  // Memory of the caller that a stream of the programs reads or fills, again from its begin once it is at its end.
  void connect(const std::string& stream, std::span<std::byte> memory);

  // Compiles, writes, runs the programs one after the other, and reads.
  Report run(const std::vector<poplar::program::Program>& programs);

  // What was read, in the order of the calls of `read`.
  std::vector<float> nextFloats();
  std::vector<std::int32_t> nextIntegers();

 private:
  struct Transfer {
    std::string handle;
    poplar::Type type;
    std::vector<std::byte> bytes;
  };

  void addWrite(const poplar::Tensor& tensor, std::vector<std::byte> bytes);
  const Transfer& next();

  poplar::Device device_;
  poplar::Graph graph_;
  unsigned threads_;  // of the host; 0: all
  std::vector<Transfer> writes_, reads_;
  std::vector<std::pair<std::string, std::span<std::byte>>> streams_;
  std::size_t num_taken_ = 0;
};

}  // namespace snnjax::harness
