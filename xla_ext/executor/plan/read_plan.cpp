// Bytes -> Plan. A count is never believed before there are bytes for what it counts.
#include <bit>
#include <builders/error.hpp>
#include <cstring>

#include "executor/plan/check_plan.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {
namespace {

constexpr std::int64_t kMagic = 0x31414e4c504e4e53;  // "SNNPLNA1"
constexpr std::size_t kMaxDepth = 64;                // of blocks in blocks
constexpr std::size_t kMaxElements = std::size_t{1} << 40;
constexpr std::size_t kMaxRank = 32;

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

  // Each item of a list takes a number at least.
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

  [[noreturn]] static void refuse(const std::string& expected, const std::string& actual) {
    throw Error(ErrorCode::kInvalidArgument, "compile: `plan` must " + expected + ", got " + actual +
                                                 ". Compile the function anew with this version of snnjax.");
  }

 private:
  std::span<const std::byte> bytes_;
};

ArrayType readType(Reader& reader) {
  const std::int64_t dtype = reader.integer();
  if (dtype < 1 || dtype > static_cast<std::int64_t>(kNumDtypes)) {
    Reader::refuse("have element types of PJRT_Buffer_Type", std::to_string(dtype));
  }
  ArrayType type{static_cast<Dtype>(dtype), reader.indices()};
  if (type.shape.size() > kMaxRank) Reader::refuse("have arrays of rank up to 32", std::to_string(type.shape.size()));
  std::size_t elements = 1;
  for (const std::size_t size : type.shape) {
    const std::size_t counted = std::max<std::size_t>(size, 1);  // sizes of 0 do not hide one that is absurd
    if (counted > kMaxElements / elements) Reader::refuse("have arrays of up to 2^40 elements", type.toString());
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
  if (depth > kMaxDepth) Reader::refuse("have blocks in blocks up to 64 deep", "deeper ones");
  Block block;
  block.parameters = reader.indices();
  block.instructions = reader.list([&] { return readInstruction(reader, depth); });
  block.results = reader.indices();
  return block;
}

}  // namespace

Plan readPlan(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  if (reader.integer() != kMagic) Reader::refuse("begin as plans of this version do", "other bytes");
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
  plan.main = readBlock(reader, 0);
  if (!reader.atEnd()) Reader::refuse("end with its main block", "more bytes");
  checkPlan(plan);
  return plan;
}

}  // namespace snnjax::executor
