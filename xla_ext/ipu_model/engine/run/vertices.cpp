#include "engine/run/vertices.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "costs/costs.hpp"

namespace ipu_model {
namespace {

constexpr std::size_t kStorageAlign = 64;

std::size_t roundedUp(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

void count(CodeletCounters& counters, std::uint64_t cycles) {
  ++counters.count;
  counters.cycles += cycles;
  counters.max = std::max(counters.max, cycles);
}

void countUnknown(CodeletCounters& counters) {
  ++counters.count;
  ++counters.unknown;
}

// What a vertex costs: its estimate if there is one, else what its own function says, if it has one.
template <typename Function, typename... Arguments>
std::optional<std::uint64_t> costOf(const VertexPlan& vertex, Function* function, Arguments... arguments) {
  if (vertex.estimate || function == nullptr) return vertex.estimate;
  return function(arguments...);
}

void runOne(const VertexPlan& vertex, void* object, const Chip& chip, TileSchedule& schedule,
            CodeletCounters& counters) {
  const VertexType& type = *vertex.type;
  type.compute(object, 0);
  if (type.supervisor) {
    const auto cycles = costOf(vertex, type.supervisor_cycles, object);
    schedule.addSupervisorVertex(cycles.value_or(0));
    return cycles ? count(counters, *cycles) : countUnknown(counters);
  }
  const auto slots = costOf(vertex, type.worker_cycles, object, 0U);
  schedule.addVertex(slots.value_or(0));
  return slots ? count(counters, *slots * chip.workers) : countUnknown(counters);
}

void runMulti(const VertexPlan& vertex, void* object, const Chip& chip, TileSchedule& schedule,
              CodeletCounters& counters) {
  const VertexType& type = *vertex.type;
  for (unsigned worker = 0; worker < chip.workers; ++worker) type.compute(object, worker);
  if (vertex.estimate) {
    schedule.addSupervisorVertex(*vertex.estimate);
    return count(counters, *vertex.estimate);
  }
  std::array<std::uint64_t, kMaxWorkers> slots{};
  if (type.worker_cycles != nullptr) {
    for (unsigned worker = 0; worker < chip.workers; ++worker) slots[worker] = type.worker_cycles(object, worker);
  }
  std::optional<std::uint64_t> supervisor;
  if (type.supervisor_cycles != nullptr) supervisor = type.supervisor_cycles(object);
  schedule.addMultiVertex(std::span(slots).first(chip.workers), supervisor);
  if (type.worker_cycles == nullptr) return countUnknown(counters);
  const std::uint64_t longest = *std::max_element(slots.begin(), slots.end());
  count(counters, longest * chip.workers + chip.launch_cycles + supervisor.value_or(0));
}

}  // namespace

void LiveComputeSet::FreeMemory::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t{kStorageAlign});
}

LiveComputeSet::LiveComputeSet(const ComputeSetPlan& plan, const Chip& chip, std::byte* memory)
    : plan_(&plan), chip_(&chip) {
  std::vector<std::size_t> places;
  std::size_t bytes = 0;
  for (const VertexPlan& vertex : plan.vertices) {
    bytes = roundedUp(bytes, std::max<std::size_t>(vertex.type->alignment, 1));
    places.push_back(bytes);
    bytes += vertex.type->size;
  }
  storage_.reset(new (std::align_val_t{kStorageAlign}) std::byte[std::max<std::size_t>(bytes, 1)]);
  objects_.reserve(plan.vertices.size());
  for (std::size_t i = 0; i < plan.vertices.size(); ++i) {
    void* object = storage_.get() + places[i];
    plan.vertices[i].type->construct(object);
    objects_.push_back(object);
    connect(plan.vertices[i], object, memory);
  }
}

LiveComputeSet::~LiveComputeSet() {
  for (std::size_t i = 0; i < objects_.size(); ++i) plan_->vertices[i].type->destroy(objects_[i]);
}

void LiveComputeSet::connect(const VertexPlan& vertex, void* object, std::byte* memory) const {
  std::vector<EdgeData> rows;
  for (std::uint32_t first = 0; first < vertex.rows;) {
    const std::uint32_t field = plan_->rows[vertex.first_row + first].field;
    rows.clear();
    std::uint32_t next = first;
    for (; next < vertex.rows && plan_->rows[vertex.first_row + next].field == field; ++next) {
      const RowPlan& row = plan_->rows[vertex.first_row + next];
      rows.push_back({memory + row.address, row.elements});
    }
    vertex.type->fields[field].connect(object, rows);
    first = next;
  }
  for (const MemberValue& member : vertex.members) {
    vertex.type->fields[member.field].set(object, member.bytes.data());
  }
}

std::uint64_t LiveComputeSet::runTile(std::size_t index, ThreadCounters& counters) const {
  const TilePlan& tile = plan_->tiles[index];
  TileSchedule schedule(*chip_);
  for (std::uint32_t i = tile.first_vertex; i < tile.first_vertex + tile.vertices; ++i) {
    const VertexPlan& vertex = plan_->vertices[i];
    CodeletCounters& codelet = counters.codelets[vertex.codelet];
    if (vertex.type->multi) {
      runMulti(vertex, objects_[i], *chip_, schedule, codelet);
    } else {
      runOne(vertex, objects_[i], *chip_, schedule, codelet);
    }
  }
  const std::uint64_t cycles = schedule.cycles();
  counters.tile_cycles += cycles;
  return cycles;
}

}  // namespace ipu_model
