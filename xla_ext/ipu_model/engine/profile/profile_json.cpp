// The profile as JSON.
#include <array>
#include <charconv>
#include <cmath>

#include "ipu_model/json.hpp"
#include "ipu_model/profile.hpp"

namespace ipu_model {

JsonWriter& JsonWriter::key(const std::string& name) {
  separate();
  quote(name);
  text_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(const std::string& text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(std::uint64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  separate();
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text_ += std::isfinite(number) ? std::string(digits.data(), written.ptr) : "null";
  return *this;
}

void JsonWriter::quote(const std::string& text) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  text_ += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (code < 0x20) {
      text_ += "\\u00";
      text_ += kHexDigits[code >> 4U];
      text_ += kHexDigits[code & 0xfU];
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

namespace {

void write(JsonWriter& json, const CodeletProfile& codelet) {
  json.open('{').field("name", codelet.name).field("vertices", codelet.vertices).field("count", codelet.count);
  json.field("cycles", codelet.cycles).field("mean", codelet.mean()).field("max", codelet.max);
  json.field("unknown", codelet.unknown).close('}');
}

void write(JsonWriter& json, const ExchangeProfile& exchange) {
  json.open('{').field("cycles", exchange.cycles).field("bytes", exchange.bytes);
  json.field("link_bytes", exchange.link_bytes).field("messages", exchange.messages).close('}');
}

void write(JsonWriter& json, const CopyProfile& copy) {
  json.open('{').field("name", copy.name).field("position", copy.position).field("executions", copy.executions);
  json.field("sync_cycles", copy.sync_cycles).field("host_cycles", copy.host_cycles);
  write(json.key("exchange"), copy.exchange);
  json.close('}');
}

void write(JsonWriter& json, const ComputeSetProfile& compute_set);
void write(JsonWriter& json, const TileProfile& tile);
void write(JsonWriter& json, const std::string& text) { json.value(text); }
void write(JsonWriter& json, std::uint64_t number) { json.value(number); }

template <typename T>
void writeAll(JsonWriter& json, const std::string& name, const std::vector<T>& all) {
  json.key(name).open('[');
  for (const T& one : all) write(json, one);
  json.close(']');
}

void write(JsonWriter& json, const ComputeSetProfile& compute_set) {
  json.open('{').field("name", compute_set.name).field("position", compute_set.position);
  json.field("executions", compute_set.executions);
  json.field("cycles", compute_set.cycles).field("max", compute_set.max).field("tiles", compute_set.tiles);
  json.field("tile_cycles", compute_set.tile_cycles).field("balance", compute_set.balance());
  json.field("sync_cycles", compute_set.sync_cycles);
  write(json.key("exchange"), compute_set.exchange);
  writeAll(json, "codelets", compute_set.codelets);
  json.close('}');
}

void write(JsonWriter& json, const TileProfile& tile) {
  json.open('{').field("cycles", tile.cycles).field("variables", tile.variables).field("vertices", tile.vertices);
  json.field("code", tile.code).field("exchange_code", tile.exchange_code);
  json.field("buffers", tile.buffers).field("stacks", tile.stacks).close('}');
}

}  // namespace

void writeFields(JsonWriter& json, const Profile& profile, bool tiles) {
  json.field("chip", profile.chip).field("clock_hz", profile.clock_hz);
  json.field("ipus", std::uint64_t{profile.ipus}).field("tiles_per_ipu", std::uint64_t{profile.tiles_per_ipu});
  json.field("memory_per_tile", profile.memory_per_tile).field("seconds", profile.seconds());
  json.key("cycles").open('{').field("compute", profile.cycles.compute).field("exchange", profile.cycles.exchange);
  json.field("sync", profile.cycles.sync).field("host", profile.cycles.host);
  json.field("total", profile.cycles.total()).close('}');
  writeAll(json, "waiting", profile.waiting);
  writeAll(json, "compute_sets", profile.compute_sets);
  writeAll(json, "copies", profile.copies);
  writeAll(json, "streams", profile.streams);
  writeAll(json, "codelets", profile.codelets);
  writeAll(json, "unknown_codelets", profile.unknown_codelets);
  if (tiles) writeAll(json, "tiles", profile.tiles);
}

std::string toJson(const Profile& profile, bool tiles) {
  JsonWriter json;
  json.open('{');
  writeFields(json, profile, tiles);
  return json.close('}').text();
}

}  // namespace ipu_model
