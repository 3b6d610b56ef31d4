#include "builders/layout/layer_costs.hpp"

#include <cmath>
#include <limits>

#include "builders/layout/placement.hpp"
#include "planner/product_plan.hpp"

namespace snnjax::builders {
namespace {

constexpr double kExchangeBytes = 4;  // that a tile receives in a cycle
constexpr double kMessage = 3;        // cycles of a further message
// Code of exchanges, on the fullest tile, for each block of neurons that it hears: fitted to what the model counts.
constexpr double kExchangeCode = 120;
// Of a block of steps and layer, forward and backward: supersteps, and what each costs before any work is done.
constexpr double kSupersteps = 14, kSuperstep = 400;

// Samples and steps of a group, of all blocks.
double rowsOf(const Work& work, Choice choice) { return double{1} * samplesOf(work, choice.groups) * work.steps(); }
double rowsOfWorker(const Work& work, Choice choice) {
  return work.blocks * std::ceil(double{1} * samplesOf(work, choice.groups) * work.block_steps / kWorkers);
}

// Slots of the busiest worker, and bytes that a tile receives.
struct Load {
  double slots = 0, bytes = 0;

  double cycles() const { return slots * kWorkers + bytes / kExchangeBytes; }
};

bool gathers(const Work& work, const Product& product, Choice choice) {
  return (&product == &work.input ? work.gathers : work.gathers_own) && choice.groups > 1;
}

// Blocks of columns, whose sums stay in registers.
double blocksOf(double pairs, bool valued) { return std::ceil(pairs / pairsAtOnce(valued)); }

// The same gathered by input: bits of all lists at their homes, turned and listed on all tiles, before; each tile hears
// the gradients of the currents of all groups, and the rows of its inputs.
Load gatheredOf(const Work& work, const Product& product, Choice choice) {
  const double rows = double{1} * work.batch * work.steps(), words = std::ceil(rows / work.blocks / 32);
  const double inputs = std::ceil(product.inputs / choice.groups), of_worker = std::ceil(inputs / kWorkers);
  const double record = wordsOfRecord(work.batch * work.block_steps, product.inputs, product.listed);
  const double pairs = choice.columns / 2.0, blocks = blocksOf(pairs, false);
  const double listed = rows * product.listed / product.inputs;
  const double turned = std::ceil(product.inputs / 32 * words / work.tiles),
               owned = std::ceil(product.inputs / kWorkers / work.tiles);
  Load load;
  load.slots = of_worker * (work.blocks * (10 + 5 * blocks + 2 * pairs) + listed * (2.5 * blocks + pairs));
  load.slots += inputs * pairs / kWorkers * 1.25;
  load.slots += work.blocks * (120 * static_cast<double>(work.home_rows) + turned * 220 + owned * (10 + 5 * words)) +
                owned * listed * 12;
  load.bytes += rows * choice.columns * kWord + work.blocks * inputs * (1.5 + record) * kWord;
  return load;
}

// Of all steps: the gradients of a matrix, which are 0 at first. Workers share its rows; the busiest has more entries
// than the others.
Load gradientOf(const Work& work, const Product& product, Choice choice) {
  constexpr double kBusiest = 1.15;
  const double matrix = (product.inputs + 1) * choice.columns, rows = rowsOf(work, choice);
  const double pairs = choice.columns / 2.0, blocks = blocksOf(pairs, product.valued);
  if (gathers(work, product, choice)) return gatheredOf(work, product, choice);
  Load load;
  load.slots += rows * (9 + 4 * blocks + pairs + kBusiest * product.listed / kWorkers * (5 * blocks + 2 * pairs));
  load.slots += matrix / 2 / kWorkers * 1.25;
  if (choice.groups == 1) return load;
  load.slots += matrix / choice.groups / 2 / kWorkers * (3 + 1.25 * choice.groups);
  load.bytes += matrix * kWord;
  return load;
}

// Values of 0 aside, the lists of a group's rows.
double listBytes(const Work& work, Choice choice) {
  const double values = work.input.valued ? kWord * static_cast<double>(work.input.capacity) : 0;
  return rowsOf(work, choice) * (2.0 * static_cast<double>(work.input.record) + values);
}
double weightBytes(const Work& work, Choice choice) {
  return (work.input.inputs + 1) * choice.columns * static_cast<double>(work.weight_bytes);
}

// Of all steps: the currents of the inputs, whose rows are summed in so many parts. Pairs of tiles receive the weights
// together where none has them before and none is left over.
Load currentsOf(const Work& work, Choice choice, unsigned parts) {
  const double pairs = choice.columns / 2.0, blocks = blocksOf(pairs, work.input.valued);
  const double entry = pairs + (work.input.valued ? 6 : 2.5) * blocks;
  const double rows = parts == 1 ? rowsOfWorker(work, choice) : std::ceil(rowsOf(work, choice) / parts / kWorkers);
  return {rows * (20 + 5 * blocks + work.input.listed * entry),
          listBytes(work, choice) / parts +
              weightBytes(work, choice) / (parts > 1 && parts * choice.groups % 2 == 0 ? 2 : 1)};
}

// Of all steps: the currents of the inputs and their gradients.
double inputOf(const Work& work, Choice choice) {
  const Product& product = work.input;
  const double pairs = choice.columns / 2.0, lists = listBytes(work, choice);
  const double rows_of_worker = rowsOfWorker(work, choice), bytes = lists + weightBytes(work, choice);
  const Load currents = currentsOf(work, choice, rowPartsOf(work, choice));
  // For the unit weights leave the tiles of the layer, and their gradient comes back, row by row.
  const double moved = product.inputs * (choice.columns + kMessage) / choice.groups;
  double cycles = choice.currents_on_unit ? work.unit->currents.cycles + moved : currents.cycles();
  if (!work.learns) return cycles;
  cycles += choice.gradient_on_unit ? work.unit->gradient.cycles + moved
                                    : gradientOf(work, product, choice).cycles() + lists / kExchangeBytes;
  if (!product.sends_gradient) return cycles;
  return cycles +
         Load{rows_of_worker * (30 + product.listed * (6 + blocksOf(pairs, false) + 2 * pairs)), bytes}.cycles();
}

// What comes from a user's arrays and goes back, row by row: a readout's weights, its output and their gradients; and
// currents that were summed elsewhere.
double copiesOf(const Work& work, Choice choice) {
  const double ways = work.learns ? 2 : 1, row = choice.columns + kMessage;
  const unsigned parts = rowPartsOf(work, choice);
  double cycles = parts > 1 ? rowsOf(work, choice) * choice.columns + parts * kMessage : 0;
  if (!work.leaky) return cycles;
  return cycles + ways * work.input.inputs * row / choice.groups + 2 * rowsOf(work, choice) * row;
}

// Of all steps: backward through a narrow readout, on the tiles of the neurons that it reads. Rows of masks and of its
// gradients arrive; the rows of listed neurons are multiplied, and added up, in about as many parts as pairs.
Load readoutOf(const Work& work, Choice choice) {
  if (work.outputs == 0) return {};
  const double rows = rowsOf(work, choice), words = markWords(choice.columns), pairs = (work.outputs + 1) / 2;
  const double listed = rows * work.heard * choice.columns / work.neurons / kWorkers;
  return {rows / kWorkers * (6 + choice.columns + 5 * words) + listed * (22 + 11 * pairs),
          rows * kWord * (words + work.outputs)};
}

// [m, k] times [k, n] on the matrix unit, as poplin is expected to divide it: partial sums are variables.
UnitProduct productOf(const NetworkPlan& plan, std::size_t m, std::size_t k, std::size_t n) {
  const auto bytes = static_cast<std::size_t>(kUnitShare * static_cast<double>(plan.bytes_per_tile));
  const planner::ProductPlan division = planner::planProduct({m, k, n}, {plan.num_tiles, bytes});
  const double block = kWord * static_cast<double>(division.m_block * division.n_block);
  const double sums = division.k_parts > 1 ? block * (1 + 1.0 / static_cast<double>(division.k_parts)) : block;
  // Of exchanges: rows of both operands come one by one.
  const auto code = static_cast<double>(division.code + planner::kMessageCode * division.steps() *
                                                            (division.m_block + division.n_block));
  // The operand of the neurons comes in pieces of their columns, about four; each element is transposed,
  // there or before.
  constexpr double kPiece = 3.0 / 4, kTransposed = 2;
  const double operand = static_cast<double>(division.k_block * division.n_block) * (1 + kPiece + kTransposed);
  return {.cycles = division.cycles + operand, .bytes = {sums + code, static_cast<double>(division.bytes) - block}};
}

// The products of a layer's inputs there: rows are made dense at their homes, and for the gradient both operands are
// transposed over all tiles.
Unit unitOf(const NetworkPlan& plan, const Work& work) {
  constexpr double kTransposed = 9, kPhase = 400;  // cycles of an element, its message included, and of a superstep
  const auto inputs = static_cast<std::size_t>(work.input.inputs);
  const double rows = plan.blockRows(), neurons = work.neurons,
               row = static_cast<double>(work.home_rows) * work.input.inputs;
  const double operands = (work.input.inputs + neurons) * rows / work.tiles;
  Unit unit = {productOf(plan, plan.blockRows(), inputs, work.neurons),
               productOf(plan, inputs, plan.blockRows(), work.neurons)};
  unit.currents.cycles += kPhase + row + neurons * rows / work.tiles;
  unit.gradient.cycles += 5 * kPhase + row + kTransposed * operands + 2 * neurons * work.input.inputs / work.tiles;
  unit.currents.bytes.kept += row * kWord;
  unit.gradient.bytes.kept += (row + operands) * kWord;
  return unit;
}

// Of a step of a recurrent layer: cycles of an exchange and of a compute set; slots until its vertices are at work.
constexpr double kStepExchange = 300, kStepSet = 40, kFields = 40;

// Of a step: the loop of a recurrent layer, with its exchanges.
double stepOf(const Work& work, const Product& product, Choice choice) {
  const unsigned samples = samplesOf(work, choice.groups), blocks = ceilDivide(work.neurons, choice.columns);
  const auto capacity = static_cast<unsigned>(product.capacity);
  const double pairs = choice.columns / 2.0;
  const double numbers = std::ceil(samples * pairs / kWorkers), each = samples * product.listed / kWorkers;
  Load load = {kFields + numbers * (60 + 3 * product.listed), 0};
  double cycles = kStepSet + planParts({blocks, choice.columns, capacity, product.listed, samples}).cycles;
  if (work.learns) {
    cycles += kStepExchange + 2 * kStepSet + planSums(blocks, samples * capacity).cycles;
    load.slots += 2 * kFields + numbers * 70 + std::ceil(each) * (8 + 2 * pairs);
  }
  return load.cycles() + cycles;
}

// Of a matrix and the lists that multiply it. Weights, and the sum of their gradients, are those of a user's arrays,
// spread over the groups; each group has the gradient of its own samples. Weights travel to the tiles of all groups
// that read lists, and stay there in a loop.
Bytes bytesOf(const Work& work, const Product& product, Choice choice, bool in_loop) {
  const double rows = rowsOf(work, choice) / work.blocks, matrix = (product.inputs + 1) * choice.columns;
  const double entries = static_cast<double>(product.capacity) * kWord;
  const auto weight_bytes = static_cast<double>(work.weight_bytes);
  Bytes bytes = {matrix * (weight_bytes + (work.learns ? kWord : 0)) / choice.groups,
                 rows * static_cast<double>(product.record) * 2};
  if (!choice.currents_on_unit || (work.learns && !choice.gradient_on_unit) || product.sends_gradient) {
    if (choice.groups > 1) (in_loop ? bytes.kept : bytes.buffer) += matrix * weight_bytes;
    if (product.valued) bytes.buffer += rows * entries;
  }
  if (gathers(work, product, choice) && work.learns && !choice.gradient_on_unit) {
    const double own_rows = double{1} * work.batch * work.block_steps;
    // Bits and sums of shared inputs, and the code of their messages.
    constexpr double kSharedCode = 100;
    bytes.kept +=
        kSharedOfTile * kWord * (own_rows / 32 + choice.groups * choice.columns) + kSharedCode * choice.groups;
    bytes.buffer =
        std::max(bytes.buffer,
                 own_rows * choice.columns * kWord +
                     product.inputs / choice.groups *
                         (1 + wordsOfRecord(work.batch * work.block_steps, product.inputs, product.listed)) * kWord);
  } else if (choice.groups > 1 && work.learns && !choice.gradient_on_unit) {
    bytes.kept += matrix * kWord;
    bytes.buffer = std::max(bytes.buffer, matrix * kWord);  // a part of it from each group
  }
  if (!product.sends_gradient) return bytes;
  bytes.kept += rows * entries;
  // The dot products of all blocks arrive to be summed.
  const double sums = rows * choice.groups / work.tiles * entries * ceilDivide(work.neurons, choice.columns);
  bytes.buffer = std::max(bytes.buffer, sums);
  return bytes;
}

Product productOf(const ListPlan& list, bool sends_gradient) {
  return {.inputs = static_cast<double>(list.num_neurons),
          .listed = static_cast<double>(list.listed),
          .capacity = list.capacity,
          .record = list.stride,
          .dense = list.dense,
          .valued = list.valued,
          .sends_gradient = sends_gradient};
}

// Marks of pairs of neurons, and the words that they become: of a sample and step.
double marksOf(Choice choice) { return choice.columns / 2.0 + offeredStride(choice.columns) - choice.columns; }

}  // namespace

std::size_t rowsAtHome(const NetworkPlan& plan) { return ceilDivide(plan.blockRows(), plan.num_tiles); }

unsigned samplesOf(const Work& work, unsigned groups) { return ceilDivide(work.batch, groups); }

unsigned rowPartsOf(const Work& work, Choice choice) {
  if (work.blocks > 1 || choice.currents_on_unit) return 1;
  const unsigned others = othersOf(work.neurons, choice.columns, choice.groups, static_cast<unsigned>(work.tiles)),
                 rows = samplesOf(work, choice.groups) * work.block_steps,
                 parts = ceilDivide(rows, ceilDivide(rows, std::max(1U, std::min(rows, others / choice.groups))));
  const bool pays = parts > 1 && currentsOf(work, choice, parts).cycles() < currentsOf(work, choice, 1).cycles();
  return pays ? parts : 1;
}

Work workOf(const NetworkPlan& plan, std::size_t l) {
  const NetworkOptions& options = plan.options;
  const bool is_readout = l == options.layers.size(),
             is_last = l + (options.outputs > 0 ? 0 : 1) == options.layers.size(),
             is_narrow = options.outputs <= kNarrow, is_below = l + 1 == options.layers.size() && options.outputs > 0;
  const bool keeps_second = !is_readout && options.layers[l].neuron.second_state && plan.keepsSecond(l);
  Work work = {.input = productOf(plan.lists[l], l > 0 && !(is_readout && is_narrow)),
               .unit = {},
               .recurrent = {},
               .neurons = is_readout ? options.outputs : options.layers[l].neurons,
               .batch = options.batch,
               .block_steps = plan.block_steps,
               .blocks = plan.num_blocks,
               .leaky = is_readout,
               .gathers = !plan.lists[l].valued && plan.blockRows() <= kMaxShortNeurons,
               // Where all steps run at once, and nobody fires before the first one.
               .gathers_own = plan.num_blocks == 1 && !options.first_spikes && plan.blockRows() <= kMaxShortNeurons,
               .learns = options.keeps_record && !(is_readout && is_narrow),
               .scan = is_readout             ? 12.0
                       : options.keeps_record ? 38.0
                                              : 20.0,
               .outputs = is_below && is_narrow && options.keeps_record ? options.outputs : 0,
               .heard = is_below ? static_cast<double>(plan.lists[l + 1].listed) : 0,
               .weight_bytes = options.half_weights ? 2U : 4U,
               .kept = (options.keeps_record || is_last ? 1U : 0U) + (keeps_second ? 1U : 0U),
               // Currents and membranes to select from; backward the gradients of currents and spikes.
               .states = options.keeps_record ? 4U : 2U,
               .home_rows = rowsAtHome(plan),
               .tiles = static_cast<double>(plan.num_tiles)};
  if (plan.num_blocks == 1 && !options.half_weights) {
    work.unit = unitOf(plan, work);
  }
  if (is_last && options.keeps_record && plan.num_blocks > 1) ++work.kept;  // the gradient of the output
  if (is_readout || !options.layers[l].recurrent) return work;
  work.recurrent = productOf(plan.lists[l + 1], false);
  work.states += 2;  // gradients of spikes beside the tile, and the slots of neurons in lists
  return work;
}

// The cycles of a tile in all.
double cyclesOf(const Work& work, Choice choice) {
  const double numbers = std::ceil(samplesOf(work, choice.groups) * (choice.columns / 2.0) / kWorkers) * work.steps();
  const double supersteps = work.blocks * kSupersteps * kSuperstep;
  const double input = inputOf(work, choice) + copiesOf(work, choice);
  const double readout = readoutOf(work, choice).cycles();
  if (!work.recurrent) return input + readout + supersteps + kWorkers * work.scan * numbers;
  Load load = work.learns ? gradientOf(work, *work.recurrent, choice) : Load();
  load.bytes += (work.recurrent->inputs + 1) * choice.columns * static_cast<double>(work.weight_bytes);
  return input + readout + load.cycles() + supersteps + work.steps() * stepOf(work, *work.recurrent, choice);
}

Bytes unitBytesOf(const Work& work, Choice choice) {
  Bytes bytes;
  const auto add = [&](const UnitProduct& product) {
    bytes.kept += product.bytes.kept;
    bytes.buffer = std::max(bytes.buffer, product.bytes.buffer);
  };
  if (choice.currents_on_unit) add(work.unit->currents);
  if (choice.gradient_on_unit) add(work.unit->gradient);
  return bytes;
}

Bytes bytesOf(const Work& work, Choice choice) {
  const double numbers = rowsOf(work, choice) * choice.columns;
  const double states = static_cast<double>(work.kept) + static_cast<double>(work.states) / work.blocks;
  Bytes bytes = bytesOf(work, work.input, choice, work.blocks > 1);
  const Bytes unit = unitBytesOf(work, choice);
  bytes.kept += unit.kept;
  bytes.buffer = std::max(bytes.buffer, unit.buffer);
  bytes.kept += numbers * kWord * states + kExchangeCode * ceilDivide(work.neurons, choice.columns);
  bytes.kept += rowsOf(work, choice) / work.blocks * kWord * marksOf(choice);
  bytes.kept += double{kWord * kWorkers} * choice.columns * work.outputs;  // sums of workers
  bytes.buffer = std::max(bytes.buffer, readoutOf(work, choice).bytes / work.blocks);
  if (!work.recurrent) return bytes;
  // Lists of a loop stay as well; its products are by lists.
  const Bytes own = bytesOf(work, *work.recurrent, {choice.columns, choice.groups}, true);
  bytes.kept += own.kept + own.buffer;
  return bytes;
}

namespace {

// Lists in parts that are joined, and ranked or merged.
PartsPlan planJoined(const OwnSpikes& of) {
  // Slots of a pair that is searched, with those of the spikes that it may have; cycles of a part; those of a merge and
  // of asking all samples for lists with too many; slots of a list that is read.
  constexpr double kPair = 6, kPart = 36, kAsk = 1200, kRead = 5;
  // Steps in which lists have too many are ranked as well: merging has to be so many times as fast.
  constexpr double kPays = 2;
  constexpr unsigned kFewest = 8;  // slots: a part whose own list overflows ranks twice
  PartsPlan best, merged;
  best.cycles = merged.cycles = std::numeric_limits<double>::infinity();
  for (unsigned of_part = of.blocks; of_part > 0; --of_part) {
    const unsigned count = ceilDivide(of.blocks, of_part),
                   slots = (std::min(std::max(of.capacity, kFewest), of_part * of.columns) + 1) / 2 * 2;
    if (count > 1 && count * of.samples > of.blocks) break;  // tiles of their own
    const double heard = of_part * (of.columns + kMessage) + of_part * of.columns / 2.0 * kPair;
    const double ranked = std::ceil(double{1} * of.capacity / count / kWorkers) * kWorkers * (10 + 3.5 * of.capacity);
    const double cycles = heard + count * (2 * slots + 2 * kMessage + kPart) + ranked +
                          double{1} * of.samples * count * (slots + kMessage + 1);
    if (cycles < best.cycles)
      best = {.count = count, .blocks = of_part, .slots = slots, .lists = count, .of_list = slots, .cycles = cycles};
    const double once = heard + kAsk + count * (slots + kMessage + kPart) + double{5} * of.capacity +
                        double{1} * of.samples * (of.capacity + kMessage + 1);
    if (once < merged.cycles)
      merged = {.count = count,
                .blocks = of_part,
                .slots = slots,
                .are_merged = true,
                .of_list = of.capacity,
                .cycles = once};
  }
  PartsPlan plan = kPays * merged.cycles < best.cycles ? merged : best;
  plan.cycles += 3 * (kStepExchange + kStepSet) + kWorkers * (4 * kFields + kRead * of.numbers() * plan.lists) +
                 double{1} * of.samples * plan.lists * (1 + plan.of_list);
  return plan;
}

// Slots of selecting among so many lists, in a step in which more fire than usual: a list, a spike, one that is kept,
// one more than these, of which a part is kept in place of others and takes a search.
double selection(const OwnSpikes& of) {
  constexpr double kSelection = 11, kList = 2.5, kSpike = 6, kKept = 3, kMore = 5, kReplaces = 0.6, kSearch = 7,
                   kSearched = 6;
  const double spikes = of.listed + 2 * std::sqrt(of.listed), more = std::max(0.0, spikes - of.capacity);
  return kSelection + kList * of.blocks + kSpike * spikes + kKept * (spikes - more) +
         more * (kMore + kReplaces * (kSearch + kSearched * of.capacity));
}

PartsPlan planBlocks(const OwnSpikes& of) {
  constexpr double kBlock = 50, kPair = 3;  // slots of a block's list, and of a pair of its neurons
  PartsPlan plan = {
      .count = of.blocks, .slots = std::min(of.capacity, of.columns), .are_blocks = true, .lists = of.blocks};
  plan.of_list = 2 * plan.slots;
  const double rows = std::ceil(double{1} * of.samples / kWorkers),
               selected = std::min(double{1} * of.samples, of.numbers());
  plan.cycles = kStepExchange + of.blocks * (of.samples * (1.0 + plan.of_list) + kMessage) + kStepSet +
                kWorkers * (kFields + rows * (kBlock + kPair * of.columns / 2) + selected * selection(of));
  return plan;
}

}  // namespace

double OwnSpikes::numbers() const { return std::ceil(samples * (columns / 2.0) / kWorkers); }

PartsPlan planParts(const OwnSpikes& of) {
  const PartsPlan joined = planJoined(of), blocks = planBlocks(of);
  return of.capacity > 0 && blocks.cycles < joined.cycles ? blocks : joined;
}

SumsPlan planSums(unsigned blocks, unsigned entries) {
  // Cycles of those that read a part, for two neurons of a worker; slots of a pair in a row. Sums take an exchange and
  // a compute set.
  constexpr double kRead = 14, kSlots = 1.2, kSums = kStepExchange + kStepSet + 150;
  SumsPlan best = {.parts = blocks, .runs = 1, .of_run = ceilDivide(entries, 2) * 2};
  best.cycles = blocks * (double{1} * entries + kMessage + kRead);
  if (entries == 0) return best;  // of lists without slots
  for (unsigned parts = 1; parts < blocks; ++parts) {
    const unsigned most = std::min(ceilDivide(entries, 2), std::max(1U, blocks / parts));
    // With longer runs sums wait for them, with more runs their readers for more messages.
    const auto balanced = static_cast<unsigned>(parts * std::sqrt(kMessage * entries / blocks));
    const unsigned of_run = ceilDivide(std::max(ceilDivide(entries, most), balanced), 2) * 2,
                   runs = ceilDivide(entries, of_run);
    const double rows = ceilDivide(blocks, parts);
    const double summed = rows * (of_run + kMessage + kWorkers * kSlots * std::ceil(of_run / 2.0 / kWorkers));
    const double cycles = kSums + summed + parts * (double{1} * entries + kMessage * runs + kRead);
    if (cycles < best.cycles) best = {parts, runs, of_run, cycles};
  }
  return best;
}

}  // namespace snnjax::builders
