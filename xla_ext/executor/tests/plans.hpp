// Plans as snnjax/ipu/lowering writes them, made by hand: values by number, instructions by name.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "executor/executable.hpp"
#include "executor/plan/plan.hpp"

namespace plans {

using namespace snnjax::executor;
using snnjax::Error;
using snnjax::ErrorCode;
using Shape = std::vector<std::size_t>;

class Bytes {
 public:
  Bytes& number(std::int64_t value) { return raw(&value, sizeof value); }
  Bytes& text(const std::string& value) { return number(std::ssize(value)).raw(value.data(), value.size()); }
  template <typename Items, typename Write>
  Bytes& list(const Items& items, Write&& write) {
    number(std::ssize(items));
    for (const auto& item : items) write(item);
    return *this;
  }
  template <typename Numbers>
  Bytes& numbers(const Numbers& all) {
    return list(all, [this](auto value) { number(static_cast<std::int64_t>(value)); });
  }
  Bytes& texts(const std::vector<std::string>& all) {
    return list(all, [this](const std::string& value) { text(value); });
  }
  Bytes& raw(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
    return *this;
  }
  const std::vector<std::byte>& get() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

inline void write(Bytes& out, const Block& block) {
  out.numbers(block.parameters);
  out.list(block.instructions, [&](const Instruction& each) {
    out.text(each.op).numbers(each.inputs).numbers(each.outputs);
    out.list(each.ints, [&](const auto& numbers) { out.numbers(numbers); });
    out.texts(each.texts);
    out.list(each.blocks, [&](const Block& inner) { write(out, inner); });
    out.text(each.where);
  });
  out.numbers(block.results);
}

inline std::vector<std::byte> bytesOf(const Plan& plan) {
  Bytes out;
  out.number(0x32414e4c504e4e53).text(plan.name).number(static_cast<std::int64_t>(plan.num_partitions));
  out.list(plan.options, [&](const auto& option) { out.text(option.first).text(option.second); });
  out.list(plan.types,
           [&](const ArrayType& type) { out.number(static_cast<std::int64_t>(type.dtype)).numbers(type.shape); });
  out.list(plan.constants, [&](const Constant& constant) {
    out.number(static_cast<std::int64_t>(constant.value)).number(constant.is_splat);
    out.number(std::ssize(constant.bytes)).raw(constant.bytes.data(), constant.bytes.size());
  });
  out.list(plan.aliases, [&](const auto& pair) {
    out.number(static_cast<std::int64_t>(pair.first)).number(static_cast<std::int64_t>(pair.second));
  });
  out.numbers(plan.donated).numbers(plan.devices).texts(plan.parameter_shardings).texts(plan.result_shardings);
  out.numbers(plan.complex_parameters).numbers(plan.complex_results);
  write(out, plan.main);
  return out.get();
}

// A plan that grows; its functions give the numbers of values.
class Builder {
 public:
  explicit Builder(std::size_t partitions = 1) {
    plan.name = "test";
    plan.num_partitions = partitions;
    for (std::size_t i = 0; i < partitions; ++i) plan.devices.push_back(i);
  }

  ValueId value(Dtype dtype, Shape shape) {
    plan.types.push_back({dtype, std::move(shape)});
    return plan.types.size() - 1;
  }
  ValueId parameter(Dtype dtype, Shape shape) {
    plan.main.parameters.push_back(value(dtype, std::move(shape)));
    return plan.main.parameters.back();
  }
  template <typename T>
  ValueId constant(Dtype dtype, Shape shape, const std::vector<T>& values) {
    Constant constant{value(dtype, std::move(shape)), values.size() == 1, {}};
    constant.bytes.resize(values.size() * sizeof(T));
    std::memcpy(constant.bytes.data(), values.data(), constant.bytes.size());
    plan.constants.push_back(constant);
    return constant.value;
  }

  using Ints = std::vector<std::vector<std::int64_t>>;
  static Instruction instruction(const std::string& op, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
                                 Ints ints = {}, std::vector<std::string> texts = {}, std::vector<Block> blocks = {}) {
    return {op,         std::move(inputs), std::move(outputs), std::move(ints), std::move(texts), std::move(blocks),
            "test.py:1"};
  }
  ValueId add(Block& block, const std::string& op, std::vector<ValueId> inputs, const ArrayType& type, Ints ints = {},
              std::vector<std::string> texts = {}) {
    const ValueId output = value(type.dtype, type.shape);
    block.instructions.push_back(instruction(op, std::move(inputs), {output}, std::move(ints), std::move(texts)));
    return output;
  }
  // "multiply.f32" of a and b, of the type of a.
  ValueId binary(Block& block, const std::string& operation, ValueId a, ValueId b) {
    const ArrayType type = plan.types[a];
    const std::string t = toString(type.dtype);
    return add(block, "elementwise", {a, b}, type, {{0, 0}, {1, 1}, {2, 0, 1}, {0, 2}},
               {"load." + t, "load." + t, operation + "." + t, "store." + t});
  }

  std::shared_ptr<Executable> build(const std::shared_ptr<System>& system) {
    return std::make_shared<Executable>(system, bytesOf(plan));
  }

  Plan plan;
};

inline std::shared_ptr<System> system(std::size_t tiles = 4, std::size_t devices = 1) {
  return std::make_shared<System>(SystemOptions{"mk2", devices, tiles});
}

template <typename T>
std::shared_ptr<Array> array(const std::shared_ptr<System>& system, Dtype dtype, Shape shape,
                             const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return std::make_shared<Array>(system, ArrayType{dtype, std::move(shape)}, std::move(bytes));
}

template <typename T = float>
std::vector<T> valuesOf(Array& array) {
  std::vector<T> values(array.bytes().size() / sizeof(T));
  std::memcpy(values.data(), array.bytes().data(), array.bytes().size());
  return values;
}

// The number after "key": of a profile.
inline double numberIn(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\":");
  return at == json.npos ? -1 : std::stod(json.substr(at + key.size() + 3));
}

}  // namespace plans
