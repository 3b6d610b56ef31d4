// The only place where the executor uses the IPU Model itself.
#include <ipu_model/json.hpp>
#include <ipu_model/profile.hpp>

#include "executor/device_program.hpp"

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
  json.close(']').key("notes").open('[');
  for (const std::string& note : facts.notes) json.value(note);
  return json.close(']').close('}').text();
}

std::size_t modelMemory(const poplar::Engine& engine) {
  std::size_t bytes = 0;
  for (const ipu_model::TileProfile& tile : ipu_model::profileOf(engine).tiles) bytes += tile.memory();
  return bytes;
}

}  // namespace snnjax::executor
