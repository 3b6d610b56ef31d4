// A program for one or several IPUs, as snnjax/ipu/lowering writes it: what to compute, with nothing yet about tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace snnjax::executor {

// Numbers as in PJRT_Buffer_Type.
enum class Dtype : std::int64_t {
  kBool = 1,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kComplex64  // of what JAX gives and takes; in plans it is two float32
};
inline constexpr std::size_t kNumDtypes = 14;

std::size_t numBytes(Dtype dtype);  // of an element
std::string toString(Dtype dtype);  // "f32"

struct ArrayType {
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::size_t> shape;  // of one partition

  std::size_t numElements() const;
  std::size_t numBytes() const;
  std::string toString() const;  // "f32[48,10]"
  friend bool operator==(const ArrayType&, const ArrayType&) = default;
};

// How an array of complex numbers is kept: c64[3] as f32[3,2]; every other one as it is.
ArrayType storedAs(const ArrayType& type);
// The other way: what JAX calls complex numbers that are kept so.
ArrayType asComplex(const ArrayType& stored);

using ValueId = std::size_t;  // position in Plan::types

struct Constant {
  ValueId value;
  bool is_splat;                 // bytes hold one element that all elements equal
  std::vector<std::byte> bytes;  // row-major
};

struct Block;

// For the operands, results, ints and texts of each op see README.md.
struct Instruction {
  std::string op;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::vector<std::int64_t>> ints;
  std::vector<std::string> texts;
  std::vector<Block> blocks;
  std::string where;  // "model.py:12 (step)", the user's line, or empty
};

struct Block {
  std::vector<ValueId> parameters;
  std::vector<Instruction> instructions;
  std::vector<ValueId> results;
};

struct Plan {
  std::string name;
  std::size_t num_partitions = 1;  // one IPU each; shapes are those of one partition
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<ArrayType> types;
  std::vector<Constant> constants;
  std::vector<std::pair<std::size_t, std::size_t>> aliases;        // (parameter, result) that share their memory
  std::vector<std::size_t> donated;                                // parameters whose buffers end with the call
  std::vector<std::size_t> devices;                                // of each partition
  std::vector<std::string> parameter_shardings, result_shardings;  // xla.OpSharding; empty for one partition
  std::vector<std::size_t> complex_parameters, complex_results;    // stored as storedAs says
  Block main;
  bool vendor_products = false;  // dense products by poplin; an SDK's has vertices that use the matrix unit
};

// Reads what serialise() of snnjax/ipu/lowering/plan.py wrote. The bytes are not trusted: throws Error if they are not
// a plan, or one whose shapes do not fit its operations.
Plan readPlan(std::span<const std::byte> bytes);

inline constexpr std::size_t kAtTheEnd = std::numeric_limits<std::size_t>::max();

// For each value that a block defines, the position of the instruction that uses it last, in its own blocks or theirs;
// kAtTheEnd for results of the block. A value that nothing uses has the instruction that defines it (parameters: 0).
std::unordered_map<ValueId, std::size_t> lastUses(const Block& block);

// The values that the blocks of an instruction read, those of enclosing blocks among them.
std::unordered_set<ValueId> readInside(const Instruction& instruction);

}  // namespace snnjax::executor
