// Rows of inputs or spikes as lists of their nonzero entries, made once and read by every product.
#pragma once

#include <algorithm>
#include <vector>

#include "blocks.hpp"
#include "cpu/kernels.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"

namespace snnjax {

// Above this share of active neurons a dense product of the row is faster than adding the rows of the weights one by
// one: measured by tests/benchmarks, see xla_ext/README.md.
inline constexpr double kDenseShare = 0.35;

// The lengths of the sequences of a batch. Rows of time series are numbered step * batch + sample.
struct Extent {
  Index steps, batch;
  const std::int32_t* ends;  // [batch], in [0, steps]: the step after the last one of each sample

  Index rows() const { return steps * batch; }
};

// What rows are made from.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // The entries of a row that are not 0, by their ids in [0, width); the buffers hold longest() + kListSlack elements.
  // Values count only where not all of them are 1.
  virtual std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const = 0;
  virtual Index longest() const = 0;
  // The row in its dense form; `dense` holds `width` zeros.
  virtual void expand(Index row, float* dense) const = 0;
  // The rows themselves where they lie densely in memory, as float32; otherwise data is nullptr.
  virtual Rows<const float> inPlace() const { return {nullptr, 0}; }
  // Whether rows are stored entry by entry, which is slow to expand.
  virtual bool isListed() const { return false; }
};

// Dense rows of float32, bfloat16, or whole numbers of one byte.
class DenseSource : public RowSource {
 public:
  enum class Type { kFloat32, kBfloat16, kUint8 };
  DenseSource(const void* data, Type type, Index width) : data_(data), type_(type), width_(width) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override;
  Index longest() const override { return width_; }
  void expand(Index row, float* dense) const override;
  Rows<const float> inPlace() const override {
    return {type_ == Type::kFloat32 ? static_cast<const float*>(data_) : nullptr, width_};
  }

 private:
  const void* data_;
  Type type_;
  Index width_;
};

// Lists of ids (uint16 or int32) and values. Ids outside [0, width) and entries of value 0 are left out.
class ListSource : public RowSource {
 public:
  ListSource(const void* ids, bool ids_are_uint16, Numbers values, Index capacity, Index width)
      : ids_(ids), ids_are_uint16_(ids_are_uint16), values_(values), capacity_(capacity), width_(width) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override;
  Index longest() const override { return capacity_; }
  void expand(Index row, float* dense) const override;
  bool isListed() const override { return true; }
  // All ids of a row in the range, whatever their values, and the slots in which they stand.
  std::uint32_t listSlots(Index row, std::uint32_t* ids, std::uint32_t* slots) const;
  // The id in a slot, or -1 where it is outside the range.
  Index idAt(Index row, Index slot) const;
  Index capacity() const { return capacity_; }
  Index width() const { return width_; }

 private:
  float valueAt(Index row, Index slot) const;

  const void* ids_;
  bool ids_are_uint16_;
  Numbers values_;
  Index capacity_, width_;
};

// Spikes as one bit a neuron, `words` words of 64 neurons a row.
class BitSource : public RowSource {
 public:
  BitSource(const std::uint64_t* bits, Index width) : bits_(bits), words_((width + 63) / 64), width_(width) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override;
  Index longest() const override { return width_; }
  void expand(Index row, float* dense) const override;

 private:
  const std::uint64_t* bits_;
  Index words_, width_;
};

// Dense rows that were listed before: bits for the rows that hold only zeros and ones, far less to read than the rows
// themselves.
class RecordedSource : public RowSource {
 public:
  RecordedSource(const RowSource& dense, const std::uint64_t* bits, const std::uint8_t* is_binary, Index width)
      : dense_(dense), bits_(bits, width), is_binary_(is_binary) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override {
    return of(row).list(row, ids, values, all_ones);
  }
  Index longest() const override { return dense_.longest(); }
  void expand(Index row, float* dense) const override { of(row).expand(row, dense); }

 private:
  const RowSource& of(Index row) const { return is_binary_[row] != 0 ? static_cast<const RowSource&>(bits_) : dense_; }

  const RowSource& dense_;
  BitSource bits_;
  const std::uint8_t* is_binary_;
};

// The rows of one source, followed by those of another.
class ChainedSource : public RowSource {
 public:
  ChainedSource(const RowSource& first, Index count, const RowSource& then)
      : first_(first), count_(count), then_(then) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override {
    return row < count_ ? first_.list(row, ids, values, all_ones) : then_.list(row - count_, ids, values, all_ones);
  }
  Index longest() const override { return std::max(first_.longest(), then_.longest()); }
  void expand(Index row, float* dense) const override {
    row < count_ ? first_.expand(row, dense) : then_.expand(row - count_, dense);
  }

 private:
  const RowSource& first_;
  Index count_;
  const RowSource& then_;
};

// Rows of spikes, each as a list or, if that would be long, in dense form.
class SpikeRows {
 public:
  virtual ~SpikeRows() = default;
  const SpikeRow* row(Index index) const { return rows_.data() + index; }
  Index width() const { return width_; }
  // Whether the ids of every row ascend.
  virtual bool isAscending() const { return true; }
  // The dense form of rows [first, first + count), `width` apart.
  virtual void expand(Index first, Index count, float* dense) const = 0;
  // The same, in place where possible and in `scratch` otherwise.
  virtual Rows<const float> dense(Index first, Index count, std::vector<float>& scratch) const;

 protected:
  SpikeRows(Index count, Index width);

  Index width_;
  Index longest_listed_;  // entries; longer rows are dense
  Buffer<SpikeRow> rows_;
};

// All rows of a source. Row r belongs to time step r / batch of sample r % batch, and is empty past that sample's end
// (`ends` may be nullptr).
class SpikeLists : public SpikeRows {
 public:
  // Everything at once.
  SpikeLists(const RowSource& source, Index rows, Index width, Index batch, const std::int32_t* ends,
             const Threads& threads);
  // Rows that are listed as the source produces them, in `parts`, one per thread.
  SpikeLists(const RowSource& source, Index rows, Index width, Index batch, const std::int32_t* ends, Index parts);

  void list(Index part, Index row);
  bool isAscending() const override { return !source_.isListed(); }
  void expand(Index first, Index count, float* dense) const override;
  Rows<const float> dense(Index first, Index count, std::vector<float>& scratch) const override;

 private:
  struct Part {
    Blocks<std::uint32_t> ids;
    Blocks<float> values;  // where some value is not 1
    Blocks<std::uint64_t> bits;
    std::vector<float> scratch;
    std::vector<std::uint8_t> marks;
  };

  const std::uint64_t* bitsOf(Part& part, const std::uint32_t* ids, std::uint32_t count) const;
  bool hasEnded(Index row) const { return ends_ != nullptr && row / batch_ >= ends_[row % batch_]; }

  const RowSource& source_;
  Index batch_;
  const std::int32_t* ends_;
  std::vector<Part> parts_;
  // The bits of long rows that a source holds as lists of distinct ids of value 1, else nullptr: each tile of columns
  // expands the row itself.
  Buffer<const std::uint64_t*> bits_;
};

// One row as a list, however long.
class ListedRow {
 public:
  ListedRow(const SpikeRows& spikes, Index row);
  const SpikeRow& row() const { return row_; }

 private:
  std::vector<std::uint32_t> ids_;
  std::vector<float> values_;
  SpikeRow row_;
};

// The spikes of one time step, set row by row.
class StepSpikes : public SpikeRows {
 public:
  StepSpikes(Index count, Index width);

  void set(Index row, const float* dense);
  void expand(Index first, Index count, float* dense) const override;

 private:
  Index stride_;
  Buffer<std::uint32_t> ids_;
  Buffer<float> values_;
};

}  // namespace snnjax
