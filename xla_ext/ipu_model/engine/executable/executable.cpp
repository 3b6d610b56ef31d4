// Executables in a stream: the plan, the ends of streams, buffers and host functions, and the libraries of codelets.
#include <algorithm>
#include <fstream>
#include <poplar/Engine.hpp>
#include <sstream>

#include "codelets/process.hpp"
#include "engine/executable/archive.hpp"
#include "engine/executable/plan.hpp"

namespace ipu_model {
namespace {

// Ends with the version of what follows.
const std::string kMagic = "snnjax IPU Model executable 2\n";

template <typename Archive, typename... Members>
void transferAll(Archive& archive, Members&... members) {
  (transfer(archive, members), ...);
}

}  // namespace

template <typename Archive>
void transfer(Archive& archive, MemberValue& value) {
  transferAll(archive, value.field, value.bytes);
}

// Its type follows from that of its codelet.
template <typename Archive>
void transfer(Archive& archive, VertexPlan& vertex) {
  transferAll(archive, vertex.codelet, vertex.first_row, vertex.rows, vertex.members, vertex.estimate);
}

// `codelets` go with the libraries.
template <typename Archive>
void transfer(Archive& archive, ComputeSetPlan& plan) {
  transferAll(archive, plan.name, plan.vertices, plan.tiles, plan.rows, plan.gathers, plan.scatters, plan.before,
              plan.after, plan.sync_cycles);
}

template <typename Archive>
void transfer(Archive& archive, CopyPlan& plan) {
  transferAll(archive, plan.name, plan.moves, plan.then, plan.cost);
}

template <typename Archive>
void transfer(Archive& archive, HostPlan& plan) {
  transferAll(archive, plan.name, plan.moves, plan.bytes, plan.ipu_bytes, plan.rearrangement);
}

template <typename Archive>
void transfer(Archive& archive, InitialPlan& plan) {
  transferAll(archive, plan.moves, plan.bytes);
}

template <typename Archive>
void transfer(Archive& archive, StepCrossReplica::Part& part) {
  transferAll(archive, part.from, part.to, part.replicas);
}

template <typename Archive>
void transfer(Archive& archive, StepCrossReplica& step) {
  transferAll(archive, step.copy, step.parts);
}

template <typename Archive>
void transfer(Archive& archive, StepSwitch& step) {
  transferAll(archive, step.control, step.cases, step.otherwise);
}

template <typename Archive>
void transfer(Archive& archive, StepHostCall& step) {
  transferAll(archive, step.function, step.inputs, step.outputs);
}

template <typename Archive>
void transfer(Archive& archive, StepPrint& step) {
  transferAll(archive, step.title, step.host, step.type, step.shape, step.format);
}

template <typename Archive>
void transfer(Archive& archive, StepError& step) {
  transferAll(archive, step.message, step.predicate, step.printed);
}

template <typename Archive>
void transfer(Archive& archive, HostFunctionType& function) {
  transferAll(archive, function.handle, function.input_bytes, function.output_bytes);
}

namespace {

void writeTarget(Writer& archive, const poplar::Target& target) {
  std::string chip(target.chip().name);
  auto type = target.getTargetType();
  std::uint32_t ipus = target.getNumIPUs(), tiles = target.getTilesPerIPU();
  std::uint64_t bytes = target.getBytesPerTile();
  transferAll(archive, chip, type, ipus, tiles, bytes);
}

poplar::Target readTarget(Reader& archive) {
  std::string chip;
  poplar::TargetType type{};
  std::uint32_t ipus = 0, tiles = 0;
  std::uint64_t bytes = 0;
  transferAll(archive, chip, type, ipus, tiles, bytes);
  poplar::Target target(chipNamed(chip), type, ipus, tiles);
  target.setBytesPerTile(bytes);
  return target;
}

struct End {
  std::string handle;
  poplar::Type element;
  std::uint64_t elements = 0, repeats = 0;
  poplar::DataStreamType type{};
  poplar::ReplicatedStreamMode mode{};
};

}  // namespace

template <typename Archive>
void transfer(Archive& archive, End& end) {
  transferAll(archive, end.handle, end.element, end.elements, end.repeats, end.type, end.mode);
}

namespace {

void writeEnds(Writer& archive, const GraphData& graph) {
  std::vector<End> streams, buffers;
  for (const poplar::DataStream& of : graph.streams) {
    streams.push_back({of.handle(), of.elementType(), of.numElements(), 1, of.type(), of.replicatedMode()});
  }
  for (const poplar::RemoteBuffer& of : graph.remote_buffers) {
    buffers.push_back({of.handle(), of.elementType(), of.numElements(), of.getRepeats()});
  }
  std::vector<HostFunctionType> functions = graph.host_functions;
  transferAll(archive, streams, buffers, functions);
}

void readEnds(Reader& archive, GraphData& graph) {
  std::vector<End> streams, buffers;
  transferAll(archive, streams, buffers, graph.host_functions);
  for (End& of : streams) {
    const auto id = static_cast<unsigned>(graph.streams.size());
    graph.streams.emplace_back(id, std::move(of.handle), of.type, of.element, of.elements, of.mode);
  }
  for (End& of : buffers) {
    const auto id = static_cast<unsigned>(graph.remote_buffers.size());
    graph.remote_buffers.emplace_back(id, std::move(of.handle), of.element, of.elements, of.repeats);
  }
}

template <typename Archive>
void transferPlan(Archive& archive, Plan& plan) {
  transferAll(archive, plan.sizes, plan.replicas, plan.variable_bytes, plan.scratch_bytes, plan.initial,
              plan.replica_numbers, plan.compute_sets, plan.copies, plan.host, plan.blocks, plan.programs,
              plan.functions, plan.host_writes, plan.host_reads, plan.memory);
}

// The library of a type: its number, or one more than the last for the built-in one.
std::uint32_t libraryOf(const VertexType* type, const GraphData& graph) {
  const auto holds = [type](const std::shared_ptr<const CodeletLibrary>& library) {
    const std::vector<VertexType>& types = library->vertexTypes();
    return !library->contents().empty() && type >= types.data() && type < types.data() + types.size();
  };
  const auto found = std::find_if(graph.libraries.begin(), graph.libraries.end(), holds);
  return static_cast<std::uint32_t>(found - graph.libraries.begin());
}

void writeCodelets(Writer& archive, const Plan& plan) {
  std::vector<std::string> libraries;
  for (const auto& library : plan.graph->libraries) libraries.push_back(library->contents());
  transfer(archive, libraries);
  for (const ComputeSetPlan& compute_set : plan.compute_sets) {
    std::vector<std::pair<std::string, std::uint32_t>> codelets;
    for (const VertexType* type : compute_set.codelets) {
      codelets.emplace_back(type->name, libraryOf(type, *plan.graph));
    }
    transfer(archive, codelets);
  }
}

std::shared_ptr<const CodeletLibrary> libraryWith(const std::string& contents) {
  if (contents.empty()) return CodeletLibrary::builtIn();
  const TemporaryFolder folder("snnjax-executable");
  const std::filesystem::path gp = folder.path() / "codelets.gp";
  std::ofstream(gp, std::ios::binary) << contents;
  return CodeletLibrary::load(gp);
}

void readCodelets(Reader& archive, Plan& plan) {
  std::vector<std::string> libraries;
  transfer(archive, libraries);
  for (const std::string& contents : libraries) plan.graph->libraries.push_back(libraryWith(contents));
  for (ComputeSetPlan& compute_set : plan.compute_sets) {
    std::vector<std::pair<std::string, std::uint32_t>> codelets;
    transfer(archive, codelets);
    for (const auto& [name, number] : codelets) {
      const auto& known = plan.graph->libraries;
      const VertexType* type = (number < known.size() ? known[number] : CodeletLibrary::builtIn())->find(name);
      if (type == nullptr) {
        throw poplar::poplar_error("deserialize: `in` must use codelets that there are, got " + name +
                                   ". Write the executable with this version of the model.");
      }
      compute_set.codelets.push_back(type);
    }
    for (VertexPlan& vertex : compute_set.vertices) vertex.type = compute_set.codelets.at(vertex.codelet);
  }
}

// FNV-1a, 64 bits. It detects damage, not malice: an executable holds code, and must come from a trusted source.
std::uint64_t checksum(const std::string& text) {
  std::uint64_t state = 0xcbf29ce484222325;
  for (const char each : text) state = (state ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  return state;
}

void writeWhole(std::ostream& out, const std::string& text) {
  Writer archive(out);
  archive.bytes(kMagic.data(), kMagic.size());
  std::uint64_t size = text.size(), sum = checksum(text);
  transferAll(archive, size, sum);
  archive.bytes(text.data(), text.size());
}

// The bytes given to `writeWhole`: their contents need no further check.
std::string readWhole(std::istream& in) {
  constexpr std::uint64_t kPiece = 1U << 20U;  // bytes at a time: a wrong size allocates no more than the stream holds
  Reader archive(in);
  std::string magic(kMagic.size(), ' ');
  archive.bytes(magic.data(), magic.size());
  if (magic != kMagic) {
    throw poplar::poplar_error(
        "deserialize: `in` must begin as Executable::serialize of this version writes it, got another text. Compile "
        "the graph again.");
  }
  std::uint64_t size = 0, sum = 0;
  transferAll(archive, size, sum);
  std::string text;
  while (text.size() < size) {
    const std::size_t before = text.size();
    text.resize(before + std::min(kPiece, size - before));
    archive.bytes(text.data() + before, text.size() - before);
  }
  if (checksum(text) != sum) {
    throw poplar::poplar_error(
        "deserialize: `in` must be as Executable::serialize wrote it, got other bytes. Compile the graph again.");
  }
  return text;
}

}  // namespace
}  // namespace ipu_model

namespace poplar {

void Executable::serialize(std::ostream& out) const {
  std::ostringstream text;
  ipu_model::Writer archive(text);
  ipu_model::writeTarget(archive, plan_->target);
  ipu_model::writeEnds(archive, *plan_->graph);
  ipu_model::Plan plan = *plan_;  // the one function that names the members for both ways does not know const
  ipu_model::transferPlan(archive, plan);
  ipu_model::writeCodelets(archive, *plan_);
  ipu_model::writeWhole(out, text.str());
}

Executable Executable::deserialize(std::istream& in) {
  std::istringstream text(ipu_model::readWhole(in));
  ipu_model::Reader archive(text);
  auto plan = std::make_shared<ipu_model::Plan>();
  plan->target = ipu_model::readTarget(archive);
  plan->graph = std::make_shared<ipu_model::GraphData>(plan->target);
  ipu_model::readEnds(archive, *plan->graph);
  ipu_model::transferPlan(archive, *plan);
  ipu_model::readCodelets(archive, *plan);
  return Executable(std::move(plan));
}

}  // namespace poplar
