#include "executor/plan_lowering.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <poplar/exceptions.hpp>
#include <sstream>

#include "executor/operations.hpp"
#include "executor/ops/elementwise.hpp"
#include "schema/tables.hpp"

namespace snnjax::executor {
namespace {

poplar::Tensor repeated(const poplar::Tensor& one, const Shape& shape) {
  const std::size_t elements = productOf(shape);
  if (elements == 0) return one.slice(0, 0).reshape(shape);
  return one.broadcast(static_cast<unsigned>(elements), 0).reshape(shape);
}

std::vector<unsigned> numbersOf(const Constant& constant, std::size_t bytes) {
  std::vector<unsigned> numbers(constant.bytes.size() / bytes);
  for (std::size_t i = 0; i < numbers.size(); ++i) std::memcpy(&numbers[i], constant.bytes.data() + i * bytes, bytes);
  return numbers;
}

// For all ops of a block, which runs this often.
void collect(const Plan& plan, const Block& block, double times, const poplar::Target& target,
             std::vector<Proposal>& proposals) {
  for (const Instruction& instruction : block.instructions) {
    if (const Propose propose = operationNamed(instruction.op).propose) {
      for (Proposal& proposal : propose(plan, instruction, target)) {
        proposals.push_back(std::move(proposal));
        proposals.back().times = times;
      }
    }
    for (const Block& inner : instruction.blocks) {
      collect(plan, inner, times * iterationsOf(instruction), target, proposals);
    }
  }
}

using CountsBySize = std::map<std::size_t, std::vector<std::size_t>>;  // by the bytes of an element, by tile

// Of an operation, all its calls together.
CountsBySize scratchOf(const Plan& plan, const Layouts& layouts, const Instruction& instruction) {
  CountsBySize sums;
  const Scratch scratch = operationNamed(instruction.op).scratch;
  if (scratch == nullptr) return sums;
  for (const ScratchCall& call : scratch(plan, layouts, instruction)) {
    std::vector<std::size_t>& of_size = sums.try_emplace(call.element_bytes, layouts.tiles()).first->second;
    for (std::size_t tile = 0; tile < call.counts.size(); ++tile) {
      of_size[tile] += roundedUp(call.counts[tile], call.element_bytes);
    }
  }
  return sums;
}

// On each tile the most that any operation asks for: they run one after the other.
void collectScratch(const Plan& plan, const Layouts& layouts, const Block& block, CountsBySize& most) {
  for (const Instruction& instruction : block.instructions) {
    for (const auto& [element_bytes, counts] : scratchOf(plan, layouts, instruction)) {
      std::vector<std::size_t>& of_size = most.try_emplace(element_bytes, counts.size()).first->second;
      for (std::size_t tile = 0; tile < counts.size(); ++tile) of_size[tile] = std::max(of_size[tile], counts[tile]);
    }
    for (const Block& inner : instruction.blocks) collectScratch(plan, layouts, inner, most);
  }
}

std::vector<Proposal> proposalsOf(const Plan& plan, const poplar::Target& target) {
  std::vector<Proposal> proposals;
  collect(plan, plan.main, 1, target, proposals);
  return proposals;
}

}  // namespace

void checkCodelets(poplar::Graph& scratch) {
  const std::string digest(schema::kDigest);
  try {
    scratch.addVertex(scratch.addComputeSet("tables"), "snnjax::Tables_" + digest);
  } catch (const poplar::unknown_vertex_type&) {
    throw Error(ErrorCode::kInvalidArgument, "compile: `snnjax.gp` must be built with the tables of arrays " + digest +
                                                 ", as this library is, got others. Build both with `make kernels`.");
  }
}

PlanLowering::PlanLowering(poplar::Graph& graph, const Plan& plan)
    : plan_(plan),
      graph_(graph),
      layouts_(plan, graph.getTarget(), proposalsOf(plan, graph.getTarget())),
      storages_(graph),
      values_(plan.types.size()) {
  for (const Constant& constant : plan.constants) {
    Value& value = values_[constant.value];
    value.constant = &constant;
    value.splat = constant.is_splat ? &constant : nullptr;
    value.read_only = value.live = true;
  }
}

poplar::DebugContext PlanLowering::debug(std::string_view part) const {
  if (instruction_ == nullptr) return std::string("results");
  std::string name =
      instruction_->op == "custom_call" && !instruction_->texts.empty() ? instruction_->texts[0] : instruction_->op;
  if (!part.empty()) name += "/" + std::string(part);
  const std::string& where = instruction_->where;
  if (!where.empty()) name += " (" + where.substr(0, where.find(" (")) + ")";
  return name;
}

// ---- Values ----

poplar::Tensor PlanLowering::get(ValueId value) {
  if (values_[value].constant != nullptr) makeConstant(value);
  return values_[value].tensor;
}

poplar::Tensor PlanLowering::memory(ValueId value) {
  const poplar::Tensor tensor = get(value);
  Value& known = values_[value];
  if (!known.memory.valid()) known.memory = layouts_.ofValue(value).memoryOrder(tensor);
  return known.memory;
}

const Constant* PlanLowering::splatOf(ValueId value) const { return values_[value].splat; }

// A splat is one element, which tiles fetch as needed; others have the layout of their shape.
void PlanLowering::makeConstant(ValueId id) {
  Value& value = values_[id];
  const Constant& constant = *std::exchange(value.constant, nullptr);
  const ArrayType& type = this->type(id);
  const poplar::Type element = poplarType(type.dtype);
  const std::vector<unsigned> numbers = numbersOf(constant, element.size());
  if (constant.is_splat) {
    const poplar::Tensor one =
        graph_.addConstant(unsignedOf(element.size()), {1}, poplar::ArrayRef<unsigned>(numbers), "constant");
    graph_.setTileMapping(one, static_cast<unsigned>(id % graph_.getTarget().getNumTiles()));
    value.tensor = repeated(one.reinterpret(element), type.shape);
    return;
  }
  const poplar::Tensor memory = graph_.addVariable(unsignedOf(element.size()), {type.numElements()}, "constant");
  const Layout& layout = layouts_.ofValue(id);
  layout.map(graph_, memory);
  const poplar::Tensor array = layout.view(memory, type.shape);
  if (!numbers.empty()) graph_.setInitialValue(array.flatten(), poplar::ArrayRef<unsigned>(numbers));
  value.tensor = array.reinterpret(element);
  value.memory = memory.reinterpret(element);
}

void PlanLowering::share(ValueId id, const std::vector<StorageId>& storages) {
  values_[id].storages = storages;
  values_[id].live = true;
  for (const StorageId storage : storages) storages_.addUser(storage);
}

// The storage now holds the value; it already counts it as a user.
void PlanLowering::place(ValueId id, StorageId storage) {
  Value& value = values_[id];
  const poplar::Type element = poplarType(type(id).dtype);
  value.memory = storages_.memory(storage).reinterpret(element);
  value.tensor = layouts_.ofValue(id).view(value.memory, type(id).shape);
  value.storages = {storage};
  value.whole = value.live = true;
}

poplar::Tensor PlanLowering::make(ValueId id) {
  const Layout& layout = layouts_.ofValue(id);
  const auto wanted = wanted_.find(id);
  if (wanted != wanted_.end() && storages_.users(wanted->second) == 0 &&
      storages_.fits(wanted->second, bytesOf(id), layout)) {
    storages_.addUser(wanted->second);
    place(id, wanted->second);
  } else {
    poplarType(type(id).dtype);
    place(id, storages_.take(bytesOf(id), layout, debug({})));
  }
  return values_[id].tensor;
}

poplar::Tensor PlanLowering::makeTemporary(const poplar::Type& type, const std::vector<std::size_t>& shape) {
  temporaries_.push_back(storages_.take(type.size(), layouts_.of(shape), debug("temporary")));
  return layouts_.view(storages_.memory(temporaries_.back()).reinterpret(type), shape);
}

poplar::Tensor PlanLowering::makeScratch(const poplar::Type& type, const std::vector<std::size_t>& counts) {
  temporaries_.push_back(storages_.takeScratch(type.size(), counts, debug("scratch")));
  return storages_.memory(temporaries_.back()).reinterpret(type);
}

void PlanLowering::bind(ValueId output, const poplar::Tensor& tensor, const std::vector<ValueId>& views_of) {
  std::vector<StorageId> storages;
  bool read_only = views_of.empty(), same = !views_of.empty();
  for (const ValueId of : views_of) {
    const Value& value = values_[of];
    for (const StorageId storage : value.storages) {
      if (std::find(storages.begin(), storages.end(), storage) == storages.end()) storages.push_back(storage);
    }
    read_only = read_only || value.read_only;
    same = same && value.splat != nullptr && value.splat->bytes == values_[views_of[0]].splat->bytes;
  }
  Value& value = values_[output];
  value.tensor = tensor;
  value.read_only = read_only;
  value.splat = same ? values_[views_of[0]].splat : nullptr;
  if (views_of.size() == 1) value.record = values_[views_of[0]].record;
  share(output, storages);
}

void PlanLowering::rename(ValueId output, ValueId input, const poplar::Tensor& tensor) {
  bind(output, tensor, {input});
  const Value& from = values_[input];
  if (!from.memory.valid() || &layouts_.ofValue(output) != &layouts_.ofValue(input)) return;
  values_[output].memory = from.memory.reinterpret(tensor.elementType());
  values_[output].whole = from.whole;
}

poplar::Tensor PlanLowering::memoryIn(const Blocks& blocks, ValueId id) {
  const Value& value = values_[id];
  if (!value.whole || !(layouts_.ofValue(id).blocks() == blocks)) return {};
  return storages_.memoryAndSpare(value.storages[0]).reinterpret(value.tensor.elementType());
}

void PlanLowering::attach(ValueId output, std::shared_ptr<const Record> record) {
  values_[output].record = std::move(record);
}

bool PlanLowering::diesNow(ValueId value) const {
  const auto own = frames_.back().last_uses.find(value);
  return own != frames_.back().last_uses.end() && own->second == frames_.back().position;
}

bool PlanLowering::wants(ValueId output, ValueId input) const {
  const auto wanted = wanted_.find(output);
  const auto& storages = values_[input].storages;
  return wanted != wanted_.end() && storages.size() == 1 && storages[0] == wanted->second;
}

// Whether the present instruction reads the value as one operand, and not in its blocks, which run later.
bool PlanLowering::isOnlyOperand(ValueId value) const {
  const std::vector<ValueId>& operands = instruction_->inputs;
  return std::count(operands.begin(), operands.end(), value) == 1 && !frames_.back().read_inside.contains(value);
}

bool PlanLowering::takeOver(ValueId output, ValueId input) {
  const Value& old = values_[input];
  if (!old.whole || old.read_only || old.storages.size() != 1 || storages_.users(old.storages[0]) != 1) return false;
  if (!diesNow(input) || !isOnlyOperand(input) || type(output).shape != type(input).shape) return false;
  if (!storages_.fits(old.storages[0], bytesOf(output), layouts_.ofValue(output))) return false;
  const auto wanted = wanted_.find(output);
  const bool better = wanted != wanted_.end() && wanted->second != old.storages[0] &&
                      storages_.users(wanted->second) == 0 &&
                      storages_.fits(wanted->second, bytesOf(output), layouts_.ofValue(output));
  if (better) return false;
  const StorageId storage = old.storages[0];
  values_[input] = {};  // the output uses the storage in its place
  place(output, storage);
  return true;
}

void PlanLowering::copy(ValueId from, const poplar::Tensor& to) {
  if (to.numElements() == 0) return;
  if (const Constant* splat = splatOf(from)) return fill(*this, *splat, to);
  const bool alike = to.shape() == type(from).shape;
  const poplar::Tensor source = alike ? memory(from) : get(from).flatten();
  const poplar::Tensor target = alike ? layouts_.ofValue(from).memoryOrder(to) : to.flatten();
  program().add(poplar::program::Copy(source, target, false, debug("copy")));
}

void PlanLowering::release(ValueId id) {
  Value& value = values_[id];
  if (!value.live) return;
  for (const StorageId storage : value.storages) storages_.release(storage);
  value = {};
}

void PlanLowering::addCodelet(const std::string& name, const std::string& source, const std::string& flags) {
  if (!codelets_.insert(name).second) return;
  std::stringstream text(source);
  graph_.addCodelets(text, flags);
}

// ---- Blocks ----

void PlanLowering::lower(const Instruction& instruction) {
  const Instruction* const outer = std::exchange(instruction_, &instruction);
  std::vector<StorageId> temporaries;
  temporaries.swap(temporaries_);
  operationNamed(instruction.op).lower(*this, instruction);
  live_memory_.push_back({debug({}).getPathName(), storages_.live()});
  temporaries.swap(temporaries_);
  for (const StorageId storage : temporaries) storages_.release(storage);
  instruction_ = outer;
}

// Values of this block that are not used after its present instruction.
void PlanLowering::releaseUsed() {
  const Frame& frame = frames_.back();
  const Instruction& instruction = frame.block.instructions[frame.position];
  const auto release_dead = [this](ValueId value) {
    if (diesNow(value)) release(value);
  };
  std::for_each(instruction.inputs.begin(), instruction.inputs.end(), release_dead);
  std::for_each(instruction.outputs.begin(), instruction.outputs.end(), release_dead);
  if (instruction.blocks.empty() && frame.position != 0) return;
  for (const auto& [value, last] : frame.last_uses) {  // what blocks have used, and parameters that nothing uses
    if (last == frame.position) release(value);
  }
}

poplar::program::Sequence PlanLowering::lower(const Block& block, const std::function<void()>& then) {
  frames_.push_back({block, lastUses(block), 0, {}, poplar::program::Sequence()});
  for (std::size_t i = 0; i < block.instructions.size(); ++i) {
    frames_.back().position = i;
    frames_.back().read_inside = readInside(block.instructions[i]);
    lower(block.instructions[i]);
    releaseUsed();
  }
  if (then) then();
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  for (const auto& [value, last] : frame.last_uses) release(value);
  return frame.program;
}

void PlanLowering::carry(const std::vector<ValueId>& outputs, const Block& block, bool may_write) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value place = values_[outputs[i]];
    const StorageId storage = place.storages[0];
    storages_.hold(storage);
    // The parameter uses the place instead of the output, which gets it back at the end.
    if (block.parameters.empty()) {
      storages_.release(storage);
    } else {
      values_[block.parameters[i]] = place;
      values_[block.parameters[i]].read_only = !may_write;
    }
    if (may_write) wanted_[block.results[i]] = storage;
  }
}

void PlanLowering::endCarry(const std::vector<ValueId>& outputs) {
  for (const ValueId output : outputs) {
    storages_.addUser(values_[output].storages[0]);
    storages_.endHold(values_[output].storages[0]);
  }
}

void PlanLowering::moveAll(const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
  std::vector<Place> places;
  for (const ValueId value : to) places.push_back({values_[value].tensor, values_[value].storages[0]});
  moveAll(from, places);
}

// One after the other, first those whose target no other pending copy reads. If they form a cycle, one source is first
// copied aside, which breaks it.
void PlanLowering::moveAll(const std::vector<ValueId>& from, const std::vector<Place>& to) {
  std::vector<std::size_t> waiting;
  std::vector<poplar::Tensor> aside(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (splatOf(from[i]) != nullptr || !(get(from[i]) == to[i].tensor)) waiting.push_back(i);
  }
  const auto holdsUp = [&](std::size_t reader, std::size_t i) {
    const auto& storages = values_[from[reader]].storages;
    return reader != i && !aside[reader].valid() &&
           std::find(storages.begin(), storages.end(), to[i].storage) != storages.end();
  };
  while (!waiting.empty()) {
    const auto next = std::find_if(waiting.begin(), waiting.end(), [&](std::size_t i) {
      return std::none_of(waiting.begin(), waiting.end(), [&](std::size_t reader) { return holdsUp(reader, i); });
    });
    if (next == waiting.end()) {
      const std::size_t i = *std::find_if(waiting.begin(), waiting.end(), [&](std::size_t reader) {
        return std::any_of(waiting.begin(), waiting.end(), [&](std::size_t other) { return holdsUp(reader, other); });
      });
      aside[i] = makeTemporary(poplarType(type(from[i]).dtype), type(from[i]).shape);
      copy(from[i], aside[i]);
      continue;
    }
    const std::size_t i = *next;
    if (aside[i].valid()) {
      program().add(poplar::program::Copy(aside[i], to[i].tensor, false, debug("copy")));
    } else {
      copy(from[i], to[i].tensor);
    }
    waiting.erase(next);
  }
}

// ---- The program ----

void PlanLowering::bindParameters() {
  std::vector<bool> donated(plan_.main.parameters.size());
  for (const std::size_t parameter : plan_.donated) donated[parameter] = true;
  for (const auto& [parameter, result] : plan_.aliases) donated[parameter] = true;
  for (std::size_t i = 0; i < plan_.main.parameters.size(); ++i) {
    const ValueId value = plan_.main.parameters[i];
    const std::string name = "parameter " + std::to_string(i);
    place(value, storages_.take(poplarType(type(value).dtype).size(), layouts_.ofValue(value), name));
    parameters_.push_back({values_[value].tensor, values_[value].storages[0]});
    values_[value].read_only = !donated[i];
    if (!donated[i]) storages_.hold(parameters_[i].storage);
  }
  for (const auto& [parameter, result] : plan_.aliases) {
    storages_.hold(parameters_[parameter].storage);
    wanted_[plan_.main.results[result]] = parameters_[parameter].storage;
  }
}

// Results are placed in the memory of the parameter they are paired with, or in memory of their own.
void PlanLowering::keepResults() {
  const std::vector<ValueId>& results = plan_.main.results;
  std::vector<std::optional<Place>> places(results.size());
  for (const auto& [parameter, result] : plan_.aliases) places[result] = parameters_[parameter];
  const auto ofParameter = [this](StorageId storage) {
    return std::any_of(parameters_.begin(), parameters_.end(), [=](const Place& p) { return p.storage == storage; });
  };
  std::vector<ValueId> from;
  std::vector<Place> to;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& storages = values_[results[i]].storages;
    if (!places[i] && std::any_of(storages.begin(), storages.end(), ofParameter)) {
      const Layout& layout = layouts_.ofValue(results[i]);
      const StorageId own = storages_.take(bytesOf(results[i]), layout, debug({}));
      const poplar::Tensor memory = storages_.memory(own).reinterpret(poplarType(type(results[i]).dtype));
      places[i] = Place{layout.view(memory, type(results[i]).shape), own};
    }
    if (places[i]) {
      from.push_back(results[i]);
      to.push_back(*places[i]);
    }
    results_.push_back(places[i] ? places[i]->tensor : get(results[i]));
  }
  moveAll(from, to);
}

void PlanLowering::reserveScratch() {
  CountsBySize most;
  collectScratch(plan_, layouts_, plan_.main, most);
  for (const auto& [element_bytes, counts] : most) storages_.reserveScratch(element_bytes, counts, "scratch");
}

poplar::program::Sequence PlanLowering::lowerMain() {
  bindParameters();
  reserveScratch();
  return lower(plan_.main, [this] { keepResults(); });
}

poplar::HostFunction PlanLowering::hostFunction(std::int64_t number, const std::vector<ValueId>& arrays,
                                                const std::vector<ValueId>& results) {
  Callback callback{"callback " + std::to_string(callbacks_.size()), number, {}, {}};
  std::vector<poplar::Type> types, result_types;
  std::vector<std::size_t> sizes, result_sizes;
  for (const ValueId array : arrays) {
    callback.types.push_back(type(array));
    types.push_back(poplarType(type(array).dtype));
    sizes.push_back(type(array).numElements());
  }
  for (const ValueId result : results) {
    callback.results.push_back(type(result));
    result_types.push_back(poplarType(type(result).dtype));
    result_sizes.push_back(type(result).numElements());
  }
  callbacks_.push_back(callback);
  return graph_.addHostFunction(callback.handle, types, sizes, result_types, result_sizes);
}

}  // namespace snnjax::executor
