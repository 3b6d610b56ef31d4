// The inner loops of the CPU kernels, compiled once per instruction set and chosen at run time.
//
// All arithmetic is in float32. Every function computes each element of its result by a fixed sequence of operations,
// however the work is divided into columns, samples or threads: the bits are the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "poplar_kernels/conventions.hpp"

namespace snnjax {

using Index = std::int64_t;

// Rows of a matrix in memory, `stride` elements from one to the next.
template <typename T>
struct Rows {
  T* data;
  Index stride;

  [[gnu::always_inline]] T* row(Index index) const { return data + index * stride; }
};

// Rows of a matrix in memory that come in blocks of equally many.
struct RowBlocks {
  Rows<const float> first;  // block
  Index rows;               // of a block
  Index blocks = 1;
  Index stride = 0;  // numbers from one block to the next

  Index count() const { return blocks * rows; }
  const float* row(Index index) const { return first.row(index % rows) + index / rows * stride; }
};

// The entries of one row of inputs or spikes that are not 0.
struct SpikeRow {
  const std::uint32_t* ids;  // all below the number of neurons: checked when the row was made
  const float* values;       // nullptr: all are 1
  std::uint32_t count;
  bool is_dense;  // too many to list; ids is empty and the row is read in its dense form
};

// Synapses with delays, by the rows of what arrives from which they collect their two shares: one, and that behind it.
struct DelayedShares {
  const std::uint32_t* rows;
  const float *now, *next;
  Index count;
};

// Synapses with delays by senders, which may come again with other synapses: the rows of what arrives from which they
// collect their two shares, one and that behind it.
// Numbers of a row, at most: each load of a synapse serves them all, and their sums stay in registers.
constexpr Index longestCollected(Index lanes) { return std::max<Index>(2 * lanes, 16); }
struct SenderRun {
  std::uint32_t sender, end;  // behind its last synapse
};
struct SenderShares {
  const SenderRun* runs;
  Index count;  // of runs
  const std::uint32_t* rows;
  const float *now, *next;
};

// The number of set bits (Warren, Hacker's Delight, 5-1): baseline x86-64 has no instruction for it.
inline Index countBits(std::uint64_t bits) {
  bits -= (bits >> 1) & 0x5555555555555555U;
  bits = (bits & 0x3333333333333333U) + ((bits >> 2) & 0x3333333333333333U);
  bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fU;
  return static_cast<Index>((bits * 0x0101010101010101U) >> 56);
}

// Listing writes whole vectors, which may reach this far past the last entry.
inline constexpr Index kListSlack = 64;

struct SurrogateForm {
  Surrogate kind;
  float slope;
  float reach;  // further than this from the threshold the derivative is 0; may be infinite

  // Whether neurons far from their threshold have no slope at all.
  bool isBounded() const { return kind == Surrogate::Triangle || kind == Surrogate::Boxcar || reach - reach == 0.0F; }
};

// The constants of some columns (neurons) of a layer, one value per column, padded to whole vectors (the thresholds of
// padding are infinite, so that it never spikes).
//
//   w = w_decay w' + w_membrane v' + w_gain current + w_jump s'
//   v = decay reset(v', s') + gain current + v_coupling w
//   s = [v > threshold + threshold_coupling w]
//
// The constants of the second state, w, are nullptr where they are absent: all of them in plain LIF. In the
// `refractory` steps after a spike both states stay as they are, and s is 0.
struct NeuronConstants : GLIFConstants<const float*> {
  const float* second_threshold;
};

// The origin of membranes recorded in bfloat16. Rounded directly they could cross the threshold and so change resets
// and spikes; their distance to it keeps its sign. An infinite threshold has no useful distance.
inline float originOf(float threshold) { return threshold - threshold == 0.0F ? threshold : 0.0F; }

// One time step of some neurons (columns) of some samples (rows).
struct StepForward {
  Index rows, columns;
  NeuronConstants constants;
  Reset reset;
  Index step;                             // the number of this time step
  const std::int32_t* ends;               // [rows], the step after the last one of each sample
  Rows<const float> current;              // in whole vectors
  const float *factor, *term;             // of the currents, [columns] in whole vectors; either may be nullptr
  NeuronState<Rows<const float>> before;  // the step; data nullptr: `state`
  NeuronState<Rows<float>> state;         // after the step; data nullptr where there is none, as of the second state
  Rows<float> counts;                     // true spikes so far, updated; data may be nullptr
  Rows<std::uint64_t> spikes;             // bits, overwritten
  Rows<std::uint64_t> near;               // bits of second_threshold < v <= threshold, overwritten; data may be nullptr
  Rows<float> record;                     // membranes after the step; data may be nullptr
  Rows<std::uint16_t> record_bfloat16;    // their distances from originOf(threshold), likewise
  Rows<float> record_current;             // currents of the step; data may be nullptr
  bool record_streams;                    // bypassing the caches: it is too large to stay there until it is read
};

// What is not recorded of the state, after one time step again: it follows from membranes, and is cheaper than a
// record.
struct StepAgain {
  Index rows, columns;
  NeuronConstants constants;
  Index step;
  const std::int32_t* ends;
  NeuronState<Rows<const float>> before;  // the step; all but the membranes in whole vectors
  Rows<const float> v;                    // membranes after the step
  Rows<const float> current;              // read only with `w_gain`
  NeuronState<Rows<float>> after;         // the step; data nullptr where it is not asked for, as of the membranes
};

// The same step backwards. Cotangents are named after what they belong to, with g_ in front.
struct StepBackward {
  Index rows, columns;
  NeuronConstants constants;
  Reset reset;
  bool detach_reset;
  SurrogateForm surrogate;
  Index step;
  const std::int32_t* ends;
  Rows<const float> g_spikes;             // of the listed spikes
  Rows<const std::uint64_t> listed;       // bits; data nullptr: every neuron is listed
  Rows<const float> g_counts;             // data may be nullptr
  NeuronState<Rows<const float>> g_last;  // of the state after the last step of each sample; data may be nullptr
  NeuronState<Rows<const float>> after;   // the step; data nullptr where it needs none, as of second states
  NeuronState<Rows<const float>> before;  // likewise; membranes are read only for the sums below
  Rows<const float> current;              // read only for the sums of both gains
  Rows<const float> given;                // the currents that were given, read only for `sum_given`
  Rows<const float> next_v;               // of the next call, to be fetched meanwhile; data may be nullptr
  Rows<const float> next_g_spikes;        // likewise
  // Of the state that the next step begins with, updated; of the membrane behind the reset. Data nullptr: none.
  NeuronState<Rows<float>> g_state;
  // Of the current, 0 past the end of a sample; overwritten. Without `w_gain` it must still be multiplied by `gain`,
  // because then it is also the membrane's cotangent.
  Rows<float> g_v;
  // The cotangents of constants, which are sums over all steps and samples: [columns], added to; nullptr: not needed.
  // That of the gain is asked for where the current reaches both states: elsewhere it is summed with the weights.
  GLIFConstants<float*> sums;
  float* sum_current;  // likewise, the sum of g_v
  float* sum_given;    // likewise, of g_v times the given current
};

// Numbers side by side, one for each set bit of a row; there may be fewer.
struct MarkedNumbers {
  const std::uint64_t* marks;
  const float* numbers;
  Index count;
};

// All steps of some neurons of one sample, whose currents are given. They have neither a second state nor a refractory
// period, and come in whole vectors.
inline constexpr Index kMostStepsAtOnce = 16;
struct StepsForward {
  Index steps, columns;  // kMostStepsAtOnce at most
  NeuronConstants constants;
  Reset reset;
  Index end;                   // the step after the sample's last one
  Rows<const float> current;   // [steps], as they are given
  Index next;                  // numbers from these to those of the next call, to be fetched meanwhile
  const float *factor, *term;  // of the currents; either may be nullptr
  float *state, *counts;       // membranes, and true spikes so far, updated; counts may be nullptr
  // As of `StepForward`, [steps], none behind the end.
  Rows<std::uint64_t> spikes, near;
  Rows<float> v;  // [steps], membranes after the steps until the end; data may be nullptr
};

// The same steps backwards. Membranes are computed again.
struct StepsBackward {
  Index steps, columns;
  NeuronConstants constants;
  Reset reset;
  bool detach_reset;
  SurrogateForm surrogate;
  Index end;                         // the step after the sample's last one
  Rows<const float> current;         // [steps], as they are given
  Index next;                        // numbers from these to those of the next call, to be fetched meanwhile
  const float *factor, *term;        // of the currents; either may be nullptr
  const float* first_v;              // before the first step; nullptr: 0
  Rows<const float> g_spikes;        // [steps], of the listed spikes
  Rows<const std::uint64_t> listed;  // likewise bits; data nullptr: every neuron is listed
  const float *g_counts, *g_last;    // of the counts and of the last membranes; nullptr: none
  const float* scale;                // of the cotangents of given currents
  Rows<float> g_current;             // [steps], aligned to vectors; overwritten past the caches, 0 behind the end
  float *sum_current, *sum_given;    // as of `StepBackward`
};

// Lists of ids and values as operands hold them, `capacity` slots a row. An id in [0, width) names a neuron.
struct EntryLists {
  const void* ids;  // uint16 or int32
  bool ids_are_uint16;
  const void* values;  // float32 or bfloat16
  bool values_are_bfloat16;
  Index capacity, width;
};

// What a spike in one pixel of an image adds to the outputs of a convolution: rows of weights that lie contiguously,
// and so do the outputs that they are added to.
struct PixelPatch {
  std::uint32_t weights;       // the first weight of channel 0
  std::uint32_t channel;       // weights from one channel to the next
  std::uint32_t row;           // weights from one row to the next
  std::uint32_t out;           // the first output of the image
  std::uint32_t rows, pixels;  // of outputs; either may be 0
};

// The patches of all pixels, of which outputs [first, first + columns) count.
struct PixelPatches {
  const PixelPatch* of_pixel;
  std::uint32_t channels, channels_of_group;  // of a pixel; every group of them is convolved by itself
  Index outputs_of_group;                     // of a pixel
  Index pixel, row;                           // outputs from one pixel (row of pixels) of a patch to the next
  Index first, columns;
};

// A patch in outputs with pixels around them, of which one vector lies side by side; the weights of a patch are vectors
// too, row by row.
struct PaddedPatch {
  Index rows, columns;
  Index row;  // numbers from one row of outputs to the next
};

// Spikes by channel, those of channel c from starts[c] to starts[c + 1], and where their patches begin.
struct PatchPlaces {
  Index channels;
  const std::uint32_t *starts, *places;
  const float* values;  // nullptr: all are 1
};

// A constant of neurons: one for each, or one for all, then repeated over a vector.
template <typename T>
struct NeuronConstant {
  const T* data;
  bool is_shared;

  const T* at(Index neuron) const { return is_shared ? data : data + neuron; }
};

inline constexpr int kMostReceptors = 4;

// One time step of neurons that integrate what their receptors receive (snnjax/ops/simulate.py).
struct SynapticStep {
  Index first, end;         // of the neurons in the arrays below
  Index stride, receptors;  // numbers from one receptor to the next; 1 to kMostReceptors of each neuron
  bool has_conductances;
  NeuronConstant<float> leak, threshold, reset, refractory;  // potentials relative to rest
  const NeuronConstant<float>*synaptic_decay, *effect;       // [receptors]
  NeuronConstant<float> currents;                            // of this step; data nullptr: none
  float* v;                                                  // [stride], relative to rest, updated; so is what follows
  float* remaining;                                          // [stride], whole numbers of steps
  float* received;                                           // [receptors, stride]
  float* arriving;                                           // [receptors, stride], received and set to 0
};

// Random words of one time step, one for each neuron.
struct RandomStep {
  std::uint32_t key[2];          // of this step and this use
  Index first, end;              // of the neurons in the arrays below
  std::uint32_t number, blocks;  // neuron n of these is n * blocks + number of all
};

// What a Poisson process adds in one time step to the receptors of neurons. All constants that are not shared have a
// vector more than there are neurons.
struct PoissonStep {
  RandomStep random;
  Index levels;
  const NeuronConstant<std::int32_t>* limits;  // [levels]
  NeuronConstant<float> weights;
  float* arriving;  // added to
};

// Noise of one time step: how many bits of a random word are 1 beyond a half of them, each of which adds `scale`.
struct NoiseStep {
  RandomStep random;
  NeuronConstant<float> scale;
  float* currents;  // added to
};

// How a chip computes with integers (snnjax/fixed_point/_chips.py).
struct IntegerArithmetic {
  bool shifts, to_zero, at_least_one;  // decays
  bool saturates, wraps, each_source;  // currents
  bool input_first, change_first, bounded_last, subtracts, inclusive;
  std::int32_t decay_bits, input_shift, low, high, max_spikes;
};

// What adds rows of int8, times spikes and 2 to the power of a shift, to sums.
struct IntegerSums {
  Index columns;  // whole vectors
  Rows<const std::int8_t> weights;
  std::int32_t shift;  // below 32
  bool saturates;      // after each row
  std::int32_t low, high;
};

// One time step of neurons in the integers of a chip. Rows of constants and states are whole vectors, of which the
// neurons behind the last one have a threshold that no membrane reaches.
struct IntegerStep {
  IntegerArithmetic chip;
  Index neurons, synapses;
  Index stride;                                  // from one synapse to the next
  const std::int32_t *threshold, *decay, *bias;  // decays by what they keep, unless they are shifts below 32
  const std::int32_t* synapse_decay;             // [synapses, stride]
  std::int32_t* arriving;                        // likewise, set to 0; already in `current` with each_source
  std::int32_t *v, *current, *counts;            // updated
  float *spikes, *record_v;                      // [neurons], overwritten; the record may be nullptr
  Rows<float> record_current;                    // likewise, of each synapse
};

struct Kernels {
  const char* name;
  Index lanes;      // float32 numbers in a vector
  Index tile_rows;  // rows that dense products take at once; a single row takes as long

  // The entries of a dense row that are not 0; the buffers hold `width` + kListSlack elements. Values are written only
  // where not all are 1.
  std::uint32_t (*listNonZero)(const float* row, Index width, std::uint32_t* ids, float* values, bool* all_ones);
  // The same for bfloat16.
  std::uint32_t (*listNonZeroBfloat16)(const std::uint16_t* row, Index width, std::uint32_t* ids, float* values,
                                       bool* all_ones);
  // The same for whole numbers of one byte.
  std::uint32_t (*listNonZeroBytes)(const std::uint8_t* row, Index width, std::uint32_t* ids, float* values,
                                    bool* all_ones);
  // The ids of the set bits of a row of `width` bits; the buffer holds `width` + kListSlack elements.
  std::uint32_t (*listBits)(const std::uint64_t* bits, Index width, std::uint32_t* ids);
  // Bits of the ones of a row, in whole words; false if it holds other numbers than 0 and 1.
  bool (*markOnes)(const float* row, Index width, std::uint64_t* bits);
  // Bits of the neurons that a list names, in `words` words; false if it names one twice. `scratch` holds 64 bytes a
  // word.
  bool (*markIds)(const std::uint32_t* ids, std::uint32_t count, Index words, std::uint8_t* scratch,
                  std::uint64_t* bits);
  // 1 for each set bit of a row, 0 for the others.
  void (*expandBits)(const std::uint64_t* bits, Index width, float* out);
  // The number of set bits.
  Index (*countMarks)(const std::uint64_t* marks, Index words);
  // The numbers of a row whose bits are set, side by side; the buffer holds kListSlack elements more than there are.
  void (*compressMarked)(const std::uint64_t* marks, Index width, const float* from, float* out);
  // And back: the next number for each set bit, 0 for the others and where there is no next one.
  void (*expandMarked)(MarkedNumbers from, Index width, float* out);
  // The same of a list, which has the spikes first and then what else is listed; and added to what is there.
  void (*expandList)(MarkedNumbers spikes, MarkedNumbers listed, Index width, float* out);
  void (*addList)(MarkedNumbers spikes, MarkedNumbers listed, Index width, float* out);

  // to[r] = from[r], or scale * from[r], where aligned rows are written past the caches.
  void (*streamRows)(Rows<const float> from, Index rows, Index columns, const float* scale, Rows<float> to);

  // out = factor * x + term of a row, either of which may be nullptr.
  void (*affine)(const float* x, const float* factor, const float* term, Index columns, float* out);

  // The entries of a row of lists whose ids name a neuron and whose values are not 0; the buffers hold `capacity`.
  std::uint32_t (*listEntries)(const EntryLists& from, Index row, std::uint32_t* ids, float* values, bool* all_ones);

  // Bits of v > threshold, and of second_threshold < v <= threshold, in whole words.
  void (*mark)(const float* v, const float* threshold, const float* second_threshold, Index neurons,
               std::uint64_t* spikes, std::uint64_t* near);

  // Bits of the neurons whose surrogate has a slope at v, in whole words. `w` is nullptr where no threshold follows it;
  // `next_v`, of a later call, is fetched meanwhile and may be nullptr.
  void (*markSlopes)(SurrogateForm surrogate, const NeuronConstants& constants, const float* v, const float* w,
                     const float* next_v, Index columns, std::uint64_t* slopes);

  // out[r] = start[r] + sum_k values[k] * weights[ids[k]] over any number of columns. The start may be shared by all
  // rows (stride 0), be `out` itself, or be absent (data nullptr).
  void (*sumRows)(const SpikeRow* spikes, Index rows, Rows<const float> weights, Index columns, Rows<const float> start,
                  Rows<float> out);
  // The same with weights in bfloat16.
  void (*sumRowsBfloat16)(const SpikeRow* spikes, Index rows, Rows<const std::uint16_t> weights, Index columns,
                          Rows<const float> start, Rows<float> out);
  // The same with weights in int8, times the scale of each column: out[r] = start[r] + scale * sum. Where all values
  // are 1 the sum is one of whole numbers, and exact.
  void (*sumRowsInt8)(const SpikeRow* spikes, Index rows, Rows<const std::int8_t> weights, Index columns,
                      const float* scale, Rows<const float> start, Rows<float> out);
  // weights[ids[k]] += values[k] * g[r].
  void (*addRows)(const SpikeRow* spikes, Index rows, Rows<float> weights, Index columns, Rows<const float> g);
  // out[k] = <weights[ids[k]], g> of one row, over any number of columns; out has one element per id.
  void (*dotRows)(const std::uint32_t* ids, Index count, Rows<const float> weights, Index columns, const float* g,
                  float* out);

  // out[r] = start[r] + dense[r] @ weights[:depth]; false if a result is not finite (`out` is then not to be used).
  bool (*multiplyRows)(Rows<const float> dense, Index rows, Index depth, Rows<const float> weights, Index columns,
                       Rows<const float> start, Rows<float> out);
  // The same with weights in panels of two vectors of columns, or one at last, whose rows lie one after another: a
  // panel stays in the first-level cache, where rows of whole matrices would compete for a few sets.
  void (*multiplyPanels)(const RowBlocks& dense, Index depth, const float* panels, Index columns,
                         Rows<const float> start, Rows<float> out);
  // The same for numbers split into bfloat16 parts, with sums in float32. One part is the number rounded, which is
  // faster where there are instructions for it (`roundingPays`); three make up a float32, and `parts_of_float` is 3
  // where even their products are faster than those of `multiplyPanels`, else 0. Rows and panels are first split into a
  // layout specific to the instruction set, of `splitLength` float32 numbers a row and a column. False if a result may
  // not be that of float32 because something is not finite.
  bool (*roundingPays)();
  Index parts_of_float;
  Index (*splitLength)(Index depth, Index parts);
  void (*splitRows)(const RowBlocks& dense, Index depth, Index parts, Rows<float> out);
  void (*splitPanels)(const float* panels, Index depth, Index columns, Index parts, float* out);
  bool (*multiplySplit)(Rows<const float> split, Index rows, Index depth, Index parts, const float* panels,
                        Index columns, Rows<float> out);
  // weights[k] += sum_r dense[r][k] * g[r].
  void (*addProducts)(Rows<const float> dense, Index rows, Index depth, Rows<float> weights, Index columns,
                      Rows<const float> g);

  // out += the patches of a row of spikes, times their values.
  void (*addPatches)(const SpikeRow& spikes, const PixelPatches& patches, const float* weights, float* out);
  // weights += values times what lies in `g` under the patches.
  void (*addPatchGradients)(const SpikeRow& spikes, const PixelPatches& patches, float* weights, const float* g);
  // out[k] = <the patch of ids[k], what lies under it in `g`>.
  void (*dotPatches)(const std::uint32_t* ids, Index count, const PixelPatches& patches, const float* weights,
                     const float* g, float* out);
  // Channel by channel, over padded outputs: weights += values times what lies in `g` under the patches.
  void (*addPaddedGradients)(const PaddedPatch& patch, const PatchPlaces& spikes, const float* g, float* weights);
  // A row of these outputs: one vector a pixel, with zeros behind `columns` numbers.
  void (*padRow)(Rows<const float> from, Index pixels, Index columns, float* to);

  // Delays of all synapses of a neuron to some targets, in vectors: taps, of which tap k is the share of each weight
  // that arrives after k steps, and rows, of what arrives in each step. There are two taps at least and `lanes` at
  // most; the last is that of the longest delay. Vectors of fewer targets hold zeros behind them. From so many columns
  // of rows of targets to vectors, and back past the caches, which other threads see after `finishStream`.
  void (*readVectors)(Rows<const float> from, Index rows, Index columns, Rows<float> to);
  void (*writeVectors)(Rows<const float> from, Index rows, Index columns, Rows<float> to);
  void (*finishStream)();
  void (*spreadShares)(const float* weights, const float* delays, Index targets, Index count, float* taps);
  // rows[ids[k] + tap] += values[k] * taps[tap].
  void (*addTaps)(const SpikeRow& spikes, const float* taps, Index count, float* rows);
  // sums[tap] += sum_k values[k] * rows[ids[k] + tap].
  void (*sumTaps)(const SpikeRow& spikes, const float* rows, Index count, float* sums);
  // The cotangents of weights and delays from those sums; `g_delays` may be nullptr.
  void (*pickTaps)(const float* sums, Index count, const float* weights, const float* delays, Index targets,
                   float* g_weights, float* g_delays);
  // out[k] += sum_tap <taps[tap], rows[ids[k] + tap]>.
  void (*dotTaps)(const std::uint32_t* ids, Index spikes, const float* taps, Index count, const float* rows,
                  float* out);
  // The two shares of each weight, and how late the first of them is; `taps` are one more than the longest delay.
  void (*splitShares)(const float* weights, const float* delays, Index count, Index taps, float* whole, float* now,
                      float* next);
  // out += sum_k now[k] * arriving[rows[k]] + next[k] * arriving[rows[k] + 1], for so many vectors; rows may overlap.
  void (*collectShares)(const DelayedShares& shares, Rows<const float> arriving, Index vectors, float* out);
  // sums.row(sender)[step] += now[k] * rows[row + step] + next[k] * rows[row + step + 1] for all synapses k of a
  // sender, in one step, two or four; rows, and sums of a step, are so many vectors, of
  // `longestCollected` numbers at most.
  void (*collectSteps)(const SenderShares& shares, Index steps, const float* rows, Index vectors, Rows<float> sums);
  // Of 4 x 4 pixels and a block of 2 x 2 outputs, whole vectors of channels: the 16 numbers that a convolution of 3 x 3
  // multiplies, and the outputs from its 16 sums of products, false if one is not finite.
  void (*spreadBlock)(const float* const* pixels, Index channels, Rows<float> out);
  bool (*collectBlock)(Rows<const float> products, Index channels, float* const* pixels);
  // to[c][r] = from[r][c]; whole vectors are read of each row, and written with zeros behind the last one.
  void (*transpose)(Rows<const float> from, Index rows, Index columns, Rows<float> to);

  void (*stepForward)(const StepForward& step);
  void (*stepAgain)(const StepAgain& step);
  void (*stepBackward)(const StepBackward& step);
  void (*stepsForward)(const StepsForward& steps);
  void (*stepsBackward)(const StepsBackward& steps);
  // Lists the neurons that spike, ascending, and returns their number; the buffer holds all.
  Index (*stepSynaptic)(const SynapticStep& step, std::uint32_t* spikes);
  void (*addPoisson)(const PoissonStep& step);
  void (*addNoise)(const NoiseStep& step);
  // sums += values[k] * 2^shift * weights[ids[k]], in this order.
  void (*addIntegers)(const SpikeRow& spikes, const IntegerSums& add, std::int32_t* sums);
  // The same of numbers that are given, float32 that holds integers.
  void (*addWhole)(const float* from, Index columns, std::int32_t* sums);
  // Whether a neuron spikes.
  bool (*stepIntegers)(const IntegerStep& step);
  // out = surrogate.derivative(x), any number of elements.
  void (*derivative)(SurrogateForm surrogate, const float* x, Index count, float* out);
};

// The kernels for the best instruction set of this machine.
const Kernels& kernels();

}  // namespace snnjax
