// Bytes -> Plan. No count is trusted until there are bytes for it, no plan until it is checked.
#include <algorithm>
#include <bit>
#include <cstring>
#include "builders/error.hpp"

#include "executor/operations.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {
namespace {

constexpr std::int64_t kMagic = 0x32414e4c504e4e53;  // "SNNPLNA2"
constexpr std::size_t kMaxDepth = 64;                // of blocks in blocks
constexpr std::size_t kMaxElements = std::size_t{1} << 40;
constexpr std::size_t kMaxRank = 32;

[[noreturn]] void refuse(const std::string& expected, const std::string& actual) {
  throw Error(ErrorCode::kInvalidArgument, "compile: `plan` must " + expected + ", got " + actual +
                                               ". Compile the function again with this version of snnjax.");
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::int64_t integer() {
    static_assert(std::endian::native == std::endian::little);
    std::int64_t value = 0;
    if (bytes_.size() < sizeof value) refuse("have more bytes", "an end in the middle of a number");
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }

  std::size_t index() {
    const std::int64_t value = integer();
    if (value < 0) refuse("have counts and positions from 0 on", std::to_string(value));
    return static_cast<std::size_t>(value);
  }

  std::span<const std::byte> data() {
    const std::size_t size = index();
    if (size > bytes_.size()) refuse("have the bytes that a length promises", std::to_string(size) + " beyond its end");
    const auto data = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return data;
  }

  std::string text() {
    const auto bytes = data();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Each item of a list takes at least one number.
  template <typename Item>
  auto list(Item&& item) {
    const std::size_t size = index();
    if (size > bytes_.size() / sizeof(std::int64_t)) {
      refuse("have the items that a count promises", std::to_string(size) + " items beyond its end");
    }
    std::vector<decltype(item())> items;
    items.reserve(size);
    for (std::size_t i = 0; i < size; ++i) items.push_back(item());
    return items;
  }
  std::vector<std::size_t> indices() {
    return list([this] { return index(); });
  }

  bool atEnd() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

ArrayType readType(Reader& reader) {
  const std::int64_t dtype = reader.integer();
  if (dtype < 1 || dtype > static_cast<std::int64_t>(Dtype::kBfloat16)) {
    refuse("have element types of PJRT_Buffer_Type", std::to_string(dtype));
  }
  ArrayType type{static_cast<Dtype>(dtype), reader.indices()};
  if (type.shape.size() > kMaxRank) refuse("have arrays of rank up to 32", std::to_string(type.shape.size()));
  std::size_t elements = 1;
  for (const std::size_t size : type.shape) {
    const std::size_t counted = std::max<std::size_t>(size, 1);  // a size of 0 does not hide an absurd one
    if (counted > kMaxElements / elements) refuse("have arrays of up to 2^40 elements", type.toString());
    elements *= counted;
  }
  return type;
}

Constant readConstant(Reader& reader) {
  Constant constant{reader.index(), reader.integer() != 0, {}};
  const auto bytes = reader.data();
  constant.bytes.assign(bytes.begin(), bytes.end());
  return constant;
}

Block readBlock(Reader& reader, std::size_t depth);

Instruction readInstruction(Reader& reader, std::size_t depth) {
  Instruction instruction;
  instruction.op = reader.text();
  instruction.inputs = reader.indices();
  instruction.outputs = reader.indices();
  instruction.ints = reader.list([&] { return reader.list([&] { return reader.integer(); }); });
  instruction.texts = reader.list([&] { return reader.text(); });
  instruction.blocks = reader.list([&] { return readBlock(reader, depth + 1); });
  instruction.where = reader.text();
  return instruction;
}

Block readBlock(Reader& reader, std::size_t depth) {
  if (depth > kMaxDepth) refuse("have blocks in blocks up to 64 deep", "deeper ones");
  Block block;
  block.parameters = reader.indices();
  block.instructions = reader.list([&] { return readInstruction(reader, depth); });
  block.results = reader.indices();
  return block;
}

// ---- Checks: values are defined before use, and shapes and types fit operations ----

// Tracks the order in which values are defined, and which of them blocks can see.
class Definitions {
 public:
  explicit Definitions(const Plan& plan) : plan_(plan), states_(plan.types.size(), State::kUndefined) {}

  void define(ValueId value) {
    if (value >= states_.size()) refuse("name values that have a type", number(value));
    if (states_[value] != State::kUndefined) refuse("define each value once", number(value) + " again");
    states_[value] = State::kVisible;
    order_.push_back(value);
  }
  void use(ValueId value) const {
    if (value >= states_.size() || states_[value] != State::kVisible) {
      refuse("define values before they are used", number(value));
    }
  }

  void check(const Block& block) {
    const std::size_t outside = order_.size();
    for (const ValueId value : block.parameters) define(value);
    for (const Instruction& instruction : block.instructions) {
      for (const ValueId value : instruction.inputs) use(value);
      for (const Block& inner : instruction.blocks) check(inner);
      for (const ValueId value : instruction.outputs) define(value);
      checkInstruction(plan_, instruction);
    }
    for (const ValueId value : block.results) use(value);
    for (; order_.size() > outside; order_.pop_back()) states_[order_.back()] = State::kGone;
  }

 private:
  enum class State : std::uint8_t { kUndefined, kVisible, kGone };

  static std::string number(ValueId value) { return "value " + std::to_string(value); }

  const Plan& plan_;
  std::vector<State> states_;
  std::vector<ValueId> order_;
};

void checkConstant(const Plan& plan, const Constant& constant) {
  const ArrayType& type = plan.types[constant.value];
  const std::size_t wanted = constant.is_splat ? numBytes(type.dtype) : type.numBytes();
  if (constant.bytes.size() == wanted) return;
  refuse("have the bytes of its constants", std::to_string(constant.bytes.size()) + " for " + type.toString());
}

void checkAliases(const Plan& plan) {
  std::vector<bool> parameters(plan.main.parameters.size()), results(plan.main.results.size());
  for (const auto& [parameter, result] : plan.aliases) {
    const bool known = parameter < parameters.size() && result < results.size();
    if (!known || parameters[parameter] || results[result]) {
      refuse("pair each parameter and result once", std::to_string(parameter) + " with " + std::to_string(result));
    }
    parameters[parameter] = results[result] = true;
    const ArrayType& from = plan.types[plan.main.parameters[parameter]];
    const ArrayType& to = plan.types[plan.main.results[result]];
    if (from != to) refuse("pair parameters and results of one type", from.toString() + " and " + to.toString());
  }
  for (const std::size_t parameter : plan.donated) {
    if (parameter >= parameters.size()) refuse("donate its own parameters", std::to_string(parameter));
  }
}

// Each is float32 whose last dimension holds the real and the imaginary part.
void checkComplex(const Plan& plan, const std::vector<std::size_t>& places, const std::vector<ValueId>& values) {
  for (const std::size_t place : places) {
    if (place >= values.size()) refuse("name complex numbers among its own", std::to_string(place));
    const ArrayType& type = plan.types[values[place]];
    if (type.dtype != Dtype::kFloat32 || type.shape.empty() || type.shape.back() != 2) {
      refuse("have complex numbers as pairs of f32", type.toString());
    }
  }
}

void checkPlan(const Plan& plan) {
  constexpr std::size_t kMaxPartitions = 1024;
  if (plan.num_partitions == 0 || plan.num_partitions > kMaxPartitions) {
    refuse("have 1 to 1024 partitions", std::to_string(plan.num_partitions));
  }
  if (plan.devices.size() != plan.num_partitions) {
    refuse("name a device for each partition", std::to_string(plan.devices.size()));
  }
  for (const std::size_t device : plan.devices) {
    if (std::ranges::count(plan.devices, device) > 1) {
      refuse("name each device once", "device " + std::to_string(device) + " again");
    }
  }
  Definitions definitions(plan);
  for (const Constant& constant : plan.constants) {
    definitions.define(constant.value);
    checkConstant(plan, constant);
  }
  definitions.check(plan.main);
  checkAliases(plan);
  checkComplex(plan, plan.complex_parameters, plan.main.parameters);
  checkComplex(plan, plan.complex_results, plan.main.results);
}

}  // namespace

Plan readPlan(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  if (reader.integer() != kMagic) refuse("begin as plans of this version do", "other bytes");
  const auto text = [&] { return reader.text(); };
  const auto pairOf = [&](auto first, auto second) {
    return [=] {
      auto a = first();
      auto b = second();
      return std::pair(std::move(a), std::move(b));
    };
  };
  const auto index = [&] { return reader.index(); };
  Plan plan;
  plan.name = reader.text();
  plan.num_partitions = reader.index();
  plan.options = reader.list(pairOf(text, text));
  plan.types = reader.list([&] { return readType(reader); });
  plan.constants = reader.list([&] { return readConstant(reader); });
  plan.aliases = reader.list(pairOf(index, index));
  plan.donated = reader.indices();
  plan.devices = reader.indices();
  plan.parameter_shardings = reader.list(text);
  plan.result_shardings = reader.list(text);
  plan.complex_parameters = reader.indices();
  plan.complex_results = reader.indices();
  plan.main = readBlock(reader, 0);
  if (!reader.atEnd()) refuse("end with its main block", "more bytes");
  checkPlan(plan);
  return plan;
}

}  // namespace snnjax::executor
