#include "model.hpp"

#include <algorithm>
#include <builders/error.hpp>
#include <cstring>
#include <ipu_model/profile.hpp>
#include <poplar/IPUModel.hpp>

#include "codelets/codelet_library.hpp"
#include "graph/graph_data.hpp"

namespace snnjax::harness {
namespace {

poplar::Device createDevice(const Call& call) {
  poplar::IPUModel model(call.chip().c_str());
  model.numIPUs = call.numIpus();
  if (call.numTiles() > model.tilesPerIPU) {
    throw Error(ErrorCode::kInvalidArgument, "run_on_model: `num_tiles` must be at most " +
                                                 std::to_string(model.tilesPerIPU) + " on " + call.chip() + ", got " +
                                                 std::to_string(call.numTiles()) + ". Use more IPUs.");
  }
  if (call.numTiles() > 0) model.tilesPerIPU = call.numTiles();
  return model.createDevice();
}

template <typename To, typename From>
std::vector<std::byte> bytesOf(std::span<const From> values) {
  std::vector<To> converted(values.size());
  std::ranges::transform(values, converted.begin(), [](From value) { return static_cast<To>(value); });
  std::vector<std::byte> bytes(converted.size() * sizeof(To));
  std::memcpy(bytes.data(), converted.data(), bytes.size());
  return bytes;
}

template <typename From>
std::vector<std::int32_t> integersOf(const std::vector<std::byte>& bytes) {
  std::vector<From> values(bytes.size() / sizeof(From));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return {values.begin(), values.end()};
}

}  // namespace

Model::Model(const Call& call)
    : device_(createDevice(call)),
      graph_(device_.getTarget()),
      threads_(static_cast<unsigned>(call.number("threads"))) {
  graph_.data()->libraries.push_back(ipu_model::CodeletLibrary::builtIn());
}

void Model::write(const poplar::Tensor& tensor, std::span<const float> values) {
  if (tensor.elementType() == poplar::FLOAT) return addWrite(tensor, bytesOf<float>(values));
  std::vector<std::byte> bytes(values.size() * poplar::HALF.size());
  poplar::copyFloatToDeviceHalf(device_.getTarget(), values.data(), bytes.data(), values.size());
  addWrite(tensor, std::move(bytes));
}

void Model::write(const poplar::Tensor& tensor, std::span<const std::int32_t> values) {
  const bool is_short = tensor.elementType() == poplar::UNSIGNED_SHORT;
  addWrite(tensor, is_short ? bytesOf<std::uint16_t>(values) : bytesOf<std::int32_t>(values));
}

void Model::addWrite(const poplar::Tensor& tensor, std::vector<std::byte> bytes) {
  if (bytes.size() != tensor.numElements() * tensor.elementType().size()) {
    throw Error(ErrorCode::kInternal, "harness: an array does not fill its tensor");
  }
  const std::string handle = "write" + std::to_string(writes_.size());
  graph_.createHostWrite(handle, tensor);
  writes_.push_back({handle, tensor.elementType(), std::move(bytes)});
}

void Model::read(const poplar::Tensor& tensor) {
  const std::string handle = "read" + std::to_string(reads_.size());
  graph_.createHostRead(handle, tensor);
  reads_.push_back(
      {handle, tensor.elementType(), std::vector<std::byte>(tensor.numElements() * tensor.elementType().size())});
}

void Model::connect(const std::string& stream, std::span<std::byte> memory) { streams_.emplace_back(stream, memory); }

Report Model::run(const std::vector<poplar::program::Program>& programs) {
  poplar::OptionFlags options;
  if (threads_ > 0) options.set("ipu_model.threads", std::to_string(threads_));
  poplar::Engine engine(graph_, programs, options);
  engine.load(device_);
  for (const auto& [stream, memory] : streams_) {
    engine.connectStream(stream, memory.data(), memory.data() + memory.size());
  }
  for (Transfer& each : writes_) {
    engine.writeTensor(each.handle, each.bytes.data(), each.bytes.data() + each.bytes.size());
    each.bytes = {};
  }
  for (unsigned program = 0; program < programs.size(); ++program) engine.run(program);
  for (Transfer& each : reads_) {
    engine.readTensor(each.handle, each.bytes.data(), each.bytes.data() + each.bytes.size());
  }
  return {ipu_model::toJson(ipu_model::profileOf(engine))};
}

const Model::Transfer& Model::next() {
  if (num_taken_ == reads_.size()) throw Error(ErrorCode::kInternal, "harness: more is taken than was read");
  return reads_[num_taken_++];
}

std::vector<float> Model::nextFloats() {
  const Transfer& transfer = next();
  std::vector<float> values(transfer.bytes.size() / transfer.type.size());
  if (transfer.type == poplar::HALF) {
    poplar::copyDeviceHalfToFloat(device_.getTarget(), transfer.bytes.data(), values.data(), values.size());
  } else {
    std::memcpy(values.data(), transfer.bytes.data(), transfer.bytes.size());
  }
  return values;
}

std::vector<std::int32_t> Model::nextIntegers() {
  const Transfer& transfer = next();
  return transfer.type.size() == sizeof(std::uint16_t) ? integersOf<std::uint16_t>(transfer.bytes)
                                                       : integersOf<std::int32_t>(transfer.bytes);
}

}  // namespace snnjax::harness
