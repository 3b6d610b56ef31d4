// The only place where the executor uses the IPU Model itself.
#include <ipu_model/json.hpp>
#include <ipu_model/profile.hpp>

#include "executor/device_program.hpp"
#include "executor/plan/options.hpp"

namespace snnjax::executor {

std::string modelProfile(const poplar::Engine& engine, const ProgramFacts& facts) {
  ipu_model::JsonWriter json;
  json.open('{');
  ipu_model::writeFields(json, ipu_model::profileOf(engine));
  json.field("program", facts.name).field("runs", std::uint64_t{facts.runs}).key("live_memory").open('[');
  for (const PlanLowering::LiveMemory& each : facts.live_memory) {
    json.open('{').field("name", each.name).field("bytes", each.live.bytes);
    json.field("tile_bytes", each.live.tile_bytes).close('}');
  }
  json.close(']');
  for (const std::string_view fact : kFacts) {
    json.key(std::string(fact) + "s").open('[');
    for (const auto& [name, value] : facts.options) {
      if (name == fact) json.value(value);
    }
    json.close(']');
  }
  return json.close('}').text();
}

std::size_t modelMemory(const poplar::Engine& engine) {
  std::size_t bytes = 0;
  for (const ipu_model::TileProfile& tile : ipu_model::profileOf(engine).tiles) bytes += tile.memory();
  return bytes;
}

}  // namespace snnjax::executor
