// A chain of operations on elements in one pass: a small program (elementwise_chain_ops.hpp), interpreted over blocks
// of elements. Where graphs are built with an SDK, C++ generated from the program runs instead
// (xla_ext/elementwise/chain_source.cpp); this codelet yields the same bits, and costs what that does. Each result is
// kept in a slot, one block of 32-bit elements on the stack, until others read it; rows of 32-bit elements are read and
// written in place. An operation is dispatched once per block, so that the host can vectorise it.
#include "../vertex.hpp"
#include "elementwise_chain_ops.hpp"

namespace snnjax {

using chain::Opcode;
using poplar::VectorLayout;

template <class T>
using InRows = poplar::Vector<poplar::Input<poplar::Vector<T, VectorLayout::ONE_PTR, 8>>, VectorLayout::ONE_PTR>;
template <class T>
using OutRows = poplar::Vector<poplar::InOut<poplar::Vector<T, VectorLayout::ONE_PTR, 8>>, VectorLayout::ONE_PTR>;

// The addresses of a worker's slots while it steps through blocks.
struct Slots {
  unsigned memory[chain::kMaxSlots][chain::kBlock];
  unsigned* aimed[chain::kMaxSlots];       // where the slot is written: its memory, or an output
  const unsigned* read[chain::kMaxSlots];  // where it is read: there, or an input

  Slots() {
    for (unsigned slot = 0; slot < chain::kMaxSlots; ++slot) read[slot] = aimed[slot] = memory[slot];
  }
  unsigned* written(unsigned slot) {
    unsigned* const at = aimed[slot];
    read[slot] = at;
    aimed[slot] = memory[slot];
    return at;
  }
  void fill(unsigned slot, unsigned value, unsigned count) {
    unsigned* const to = written(slot);
    for (unsigned i = 0; i < count; ++i) to[i] = value;
  }
};

// The elements of a slot become op(those of the slots `from` ...), whose addresses are found before that of the result,
// which may be one of them.
template <class To, class From>
bool mapSlots(unsigned count, Slots& slots, unsigned slot, auto op, auto... from) {
  const auto map = [&](const auto*... x) {
    To* const to = reinterpret_cast<To*>(slots.written(slot));
    for (unsigned i = 0; i < count; ++i) to[i] = static_cast<To>(op(x[i]...));
  };
  map(reinterpret_cast<const From*>(slots.read[from])...);
  return true;
}

// Elements [first, first + count) of the rows of one element type.
template <class T>
struct Rows {
  const InRows<T>& in;
  const OutRows<T>& out;
  unsigned first;

  T* stored(unsigned row) const { return &out[row][first]; }
  const T* loaded(unsigned row) const {
    const unsigned number = row & 0xffffu;
    if ((row & chain::kOwnRow) != 0) return &out[number][first];
    return &in[number][(row & chain::kSingleRow) != 0 ? 0 : first];
  }
};

template <class T, class Widen>
void loadNarrow(const Rows<T>& rows, unsigned row, unsigned count, unsigned* slot, Widen widen) {
  const T* const from = rows.loaded(row);
  const unsigned step = (row & chain::kSingleRow) != 0 ? 0 : 1;
  for (unsigned i = 0; i < count; ++i) slot[i] = widen(from[i * step]);
}

template <class T, class Narrow>
void storeNarrow(const Rows<T>& rows, unsigned row, unsigned count, const unsigned* slot, Narrow narrow) {
  T* const to = rows.stored(row);
  for (unsigned i = 0; i < count; ++i) to[i] = narrow(slot[i]);
}

inline unsigned floatBits(float x) { return bitsOf<unsigned>(x); }

// Operations on words alone. False: some other operation.
inline bool runWord(const chain::Instruction& instruction, const Rows<unsigned>& words, unsigned count, Slots& slots) {
  const auto& [opcode, to, a, b, c] = instruction;
  switch (opcode) {
    case Opcode::nothing: return true;
    case Opcode::load_word: {
      const unsigned* const row = words.loaded(instruction.row());
      if ((instruction.row() & chain::kSingleRow) == 0) {
        slots.read[to] = row;
      } else {
        slots.fill(to, *row, count);
      }
      return true;
    }
    case Opcode::aim: slots.aimed[to] = words.stored(instruction.row()); return true;
    case Opcode::store_word: {
      unsigned* const row = words.stored(instruction.row());
      for (unsigned i = 0; i < count; ++i) row[i] = slots.read[to][i];
      return true;
    }
#define SNNJAX_CHAIN_CASE(name, suffix, From, To, work, expression) \
  case Opcode::name##_##suffix: return mapSlots<To, From>(count, slots, to, chain::functions::name##_##suffix, a);
      SNNJAX_CHAIN_UNARY(SNNJAX_CHAIN_CASE)
#undef SNNJAX_CHAIN_CASE
#define SNNJAX_CHAIN_CASE(name, suffix, From, To, work, expression) \
  case Opcode::name##_##suffix: return mapSlots<To, From>(count, slots, to, chain::functions::name##_##suffix, a, b);
      SNNJAX_CHAIN_BINARY(SNNJAX_CHAIN_CASE)
#undef SNNJAX_CHAIN_CASE
    case Opcode::select: {
      const auto choose = [](unsigned condition, unsigned yes, unsigned no) { return condition != 0 ? yes : no; };
      return mapSlots<unsigned, unsigned>(count, slots, to, choose, a, b, c);
    }
    default: return false;
  }
}

struct NarrowRows {
  Rows<unsigned short> halves;
  Rows<unsigned char> bytes;
};

// Loads and stores of elements of 16 and 8 bits.
inline void runNarrow(const chain::Instruction& instruction, const NarrowRows& rows, unsigned count, Slots& slots) {
  const unsigned slot = instruction.to, row = instruction.row();
  switch (instruction.opcode) {
    case Opcode::load_f16:
      return loadNarrow(rows.halves, row, count, slots.written(slot),
                        [](unsigned short x) { return floatBits(static_cast<float>(bitsOf<half>(x))); });
    case Opcode::store_f16:
      return storeNarrow(rows.halves, row, count, slots.read[slot],
                         [](unsigned x) { return bitsOf<unsigned short>(static_cast<half>(bitsOf<float>(x))); });
    case Opcode::load_bf16:
      return loadNarrow(rows.halves, row, count, slots.written(slot),
                        [](unsigned short x) { return unsigned(x) << 16; });
    case Opcode::store_bf16:
      return storeNarrow(rows.halves, row, count, slots.read[slot],
                         [](unsigned x) { return static_cast<unsigned short>(chain::bfloatBits(bitsOf<float>(x))); });
#define SNNJAX_CHAIN_CASE(type, width, Element)                                               \
  case Opcode::load_##type:                                                                   \
    return loadNarrow(rows.width, row, count, slots.written(slot),                            \
                      [](auto x) { return static_cast<unsigned>(static_cast<Element>(x)); }); \
  case Opcode::store_##type:                                                                  \
    return storeNarrow(rows.width, row, count, slots.read[slot],                              \
                       [](unsigned x) { return static_cast<std::make_unsigned_t<Element>>(x); });
      SNNJAX_CHAIN_NARROW(SNNJAX_CHAIN_CASE)
#undef SNNJAX_CHAIN_CASE
    default: return;
  }
}

// Calls run(instruction) for the operations in words [first, last) of a program, constants excepted, which fill `count`
// elements.
inline void interpret(const unsigned* program, unsigned first, unsigned last, unsigned count, Slots& slots,
                      auto&& run) {
  for (unsigned i = first; i < last; ++i) {
    const chain::Instruction instruction = chain::decoded(program[i]);
    if (instruction.opcode == Opcode::constant) {
      slots.fill(instruction.to, program[++i], count);
    } else {
      run(instruction);
    }
  }
}

// Words before `once` fill slots that all blocks read; the others run for each block.
inline void runBlocks(const auto& vertex, unsigned worker, auto&& run) {
  const Range share = workOf(vertex.count, worker, vertex.kUnit);
  if (share.first == share.last) return;
  Slots slots;
  const unsigned* const program = &vertex.program[0];
  const unsigned most = smaller(chain::kBlock, share.count());
  interpret(program, 0, vertex.once, most, slots, [&](const auto& each) { run(each, share.first, most, slots); });
  for (unsigned first = share.first; first < share.last; first += chain::kBlock) {
    const unsigned count = smaller(chain::kBlock, share.last - first);
    interpret(program, vertex.once, vertex.words, count, slots,
              [&](const auto& each) { run(each, first, count, slots); });
  }
}

// For rows of 32-bit elements.
class ElementwiseChain : public poplar::MultiVertex {
 public:
  In<unsigned> program;   // [words]
  InRows<unsigned> in;    // [inputs][count], or [1] where the program says so
  OutRows<unsigned> out;  // [outputs][count]; some are inputs too, and overwritten
  unsigned count, once, words;
  unsigned pointers, four, two, one;    // issue slots of the code it stands for (cycles.hpp)
  static constexpr unsigned kUnit = 2;  // of a worker's share: 64 bits

  void compute(unsigned worker) {
    runBlocks(*this, worker, [this](const auto& each, unsigned first, unsigned size, Slots& slots) {
      runWord(each, {in, out, first}, size, slots);
    });
  }
};

// For rows of 32, 16 and 8 bits, which have the same fields each.
class MixedElementwiseChain : public ElementwiseChain {
 public:
  InRows<unsigned short> in_halves;
  InRows<unsigned char> in_bytes;
  OutRows<unsigned short> out_halves;
  OutRows<unsigned char> out_bytes;
  static constexpr unsigned kUnit = 8;  // two words of bytes

  void compute(unsigned worker) {
    runBlocks(*this, worker, [this](const auto& each, unsigned first, unsigned size, Slots& slots) {
      if (runWord(each, {in, out, first}, size, slots)) return;
      runNarrow(each, {{in_halves, out_halves, first}, {in_bytes, out_bytes, first}}, size, slots);
    });
  }
};

template <class V>
  requires std::is_base_of_v<ElementwiseChain, V>
std::uint64_t workerCycles(const V& vertex, unsigned worker) {
  const Range share = shareOf(vertex.count, worker, V::kUnit);
  return cycles::chain(share.count(), vertex.pointers, vertex.four, vertex.two, vertex.one);
}

}  // namespace snnjax
