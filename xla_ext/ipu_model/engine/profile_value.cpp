// Poplar's ProfileValue, and the profile of an engine as one, under the names of the vendor's documents.
#include <array>
#include <charconv>
#include <cmath>
#include <ostream>
#include <poplar/Engine.hpp>
#include <poplar/exceptions.hpp>

#include "engine/engine_data.hpp"
#include "ipu_model/json.hpp"
#include "ipu_model/profile.hpp"

namespace poplar {
namespace {

using Map = ProfileValue::Map;
using Vector = ProfileValue::Vector;

void checkType(bool holds, const char* wanted) {
  if (holds) return;
  throw poplar_error(std::string("ProfileValue: `value` must be ") + wanted +
                     ", got one of another type. type() says what it is.");
}

// ipu_model::JsonWriter's text of one number: whole ones without a point.
std::string numberText(double number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 32> digits{};
  const bool whole = number == std::floor(number) && std::abs(number) < 1e15;
  const auto written =
      whole ? std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<std::int64_t>(number))
            : std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return {digits.data(), written.ptr};
}

class Writer {
 public:
  Writer(std::ostream& stream, bool pretty) : stream_(stream), pretty_(pretty) {}

  void write(const ProfileValue& value) {
    switch (value.type()) {
      case ProfileValue::Type::BOOLEAN: stream_ << (value.asBool() ? "true" : "false"); break;
      case ProfileValue::Type::NUMBER: stream_ << numberText(value.asDouble()); break;
      case ProfileValue::Type::STRING: writeText(value.asString()); break;
      case ProfileValue::Type::VECTOR: {
        const Vector& all = value.asVector();
        writeAll('[', all, ']', [this](const ProfileValue& one) { write(one); });
        break;
      }
      case ProfileValue::Type::MAP:
        writeAll('{', value.asMap(), '}', [this](const Map::value_type& one) {
          writeText(one.first);
          stream_ << (pretty_ ? ": " : ":");
          write(one.second);
        });
        break;
    }
  }

 private:
  template <typename All, typename WriteOne>
  void writeAll(char open, const All& all, char close, WriteOne&& write_one) {
    stream_ << open;
    ++depth_;
    bool first = true;
    for (const auto& one : all) {
      if (!first) stream_ << ',';
      first = false;
      newLine();
      write_one(one);
    }
    --depth_;
    if (!first) newLine();
    stream_ << close;
  }
  void writeText(const std::string& text) { stream_ << ipu_model::JsonWriter().value(text).text(); }
  void newLine() {
    if (pretty_) stream_ << '\n' << std::string(2 * depth_, ' ');
  }

  std::ostream& stream_;
  bool pretty_;
  std::size_t depth_ = 0;
};

Map targetOf(const Target& target) {
  return {{"type", toString(target.getTargetType())},
          {"bytesPerTile", target.getBytesPerTile()},
          {"bytesPerIPU", target.getBytesPerTile() * target.getTilesPerIPU()},
          {"totalMemory", target.getMemoryBytes()},
          {"clockFrequency", target.getTileClockFrequency()},
          {"numIPUs", target.getNumIPUs()},
          {"tilesPerIPU", target.getTilesPerIPU()},
          {"numTiles", target.getNumTiles()}};
}

// Memory of each tile, by a member of its profile.
template <typename Member>
Vector byTile(const ipu_model::Profile& profile, Member member) {
  Vector result;
  for (const ipu_model::TileProfile& tile : profile.tiles) result.emplace_back(member(tile));
  return result;
}

Map memoryOf(const ipu_model::Profile& profile) {
  using Tile = ipu_model::TileProfile;
  return {{"byTile", Map{{"total", byTile(profile, [](const Tile& tile) { return tile.memory(); })},
                         {"variables", byTile(profile, [](const Tile& tile) { return tile.variables; })},
                         {"vertexInstances", byTile(profile, [](const Tile& tile) { return tile.vertices; })},
                         {"vertexCode", byTile(profile, [](const Tile& tile) { return tile.code; })},
                         {"internalExchangeCode", byTile(profile, [](const Tile& tile) { return tile.exchange_code; })},
                         {"exchangeBuffers", byTile(profile, [](const Tile& tile) { return tile.buffers; })}}}};
}

}  // namespace

ProfileValue::ProfileValue() : ProfileValue(Map()) {}
ProfileValue::ProfileValue(Vector value)
    : type_(Type::VECTOR), vector_(std::make_shared<const Vector>(std::move(value))) {}
ProfileValue::ProfileValue(Map value) : type_(Type::MAP), map_(std::make_shared<const Map>(std::move(value))) {}

bool ProfileValue::asBool() const {
  checkType(type_ == Type::BOOLEAN, "a truth value");
  return number_ != 0;
}
double ProfileValue::asDouble() const {
  checkType(type_ == Type::NUMBER, "a number");
  return number_;
}
const std::string& ProfileValue::asString() const {
  checkType(type_ == Type::STRING, "a text");
  return text_;
}
const Vector& ProfileValue::asVector() const {
  checkType(type_ == Type::VECTOR, "a vector");
  return *vector_;
}
const Map& ProfileValue::asMap() const {
  checkType(type_ == Type::MAP, "a map");
  return *map_;
}

const ProfileValue& ProfileValue::operator[](const std::string& name) const {
  const auto found = asMap().find(name);
  if (found != map_->end()) return found->second;
  throw poplar_error("ProfileValue: `name` must be one of the map, got \"" + name + "\". asMap() has them all.");
}

const ProfileValue& ProfileValue::operator[](std::size_t index) const {
  if (index < asVector().size()) return (*vector_)[index];
  throw poplar_error("ProfileValue: `index` must be below " + std::to_string(vector_->size()) + ", got " +
                     std::to_string(index) + ". size() says how many there are.");
}

std::size_t ProfileValue::size() const { return type_ == Type::MAP ? map_->size() : asVector().size(); }

double ProfileValue::sum() const {
  double result = 0;
  for (const ProfileValue& value : asVector()) result += value.asDouble();
  return result;
}

void serializeToJSON(std::ostream& stream, const ProfileValue& value, bool prettyPrint) {
  Writer(stream, prettyPrint).write(value);
}

ProfileValue Engine::getGraphProfile() const {
  const ipu_model::Profile profile = ipu_model::profileOf(*this);
  Vector names, counts;
  for (const ipu_model::ComputeSetProfile& compute_set : profile.compute_sets) {
    std::uint64_t vertices = 0;
    for (const ipu_model::CodeletProfile& codelet : compute_set.codelets) vertices += codelet.vertices;
    names.emplace_back(compute_set.name);
    counts.emplace_back(vertices);
  }
  return Map{{"target", targetOf(data_->plan().target)},
             {"graph", Map{{"numVertices", profile.graph.vertices},
                           {"numEdges", profile.graph.edges},
                           {"numVars", profile.graph.variables},
                           {"numComputeSets", profile.graph.compute_sets}}},
             {"computeSets", Map{{"names", names}, {"vertexCounts", counts}}},
             {"memory", memoryOf(profile)}};
}

ProfileValue Engine::getExecutionProfile() const {
  const ipu_model::Profile profile = ipu_model::profileOf(*this);
  Vector steps;
  for (const ipu_model::ComputeSetProfile& compute_set : profile.compute_sets) {
    steps.emplace_back(Map{{"name", compute_set.name},
                           {"type", "OnTileExecute"},
                           {"executions", compute_set.executions},
                           {"cycles", compute_set.cycles}});
  }
  const auto cycles = byTile(profile, [](const ipu_model::TileProfile& tile) { return tile.cycles; });
  return Map{{"profilerMode", "IPU_MODEL"},
             {"simulation", Map{{"cycles", profile.cycles.total()},
                                {"computeCycles", profile.cycles.compute},
                                {"exchangeCycles", profile.cycles.exchange},
                                {"syncCycles", profile.cycles.sync},
                                {"hostCycles", profile.cycles.host},
                                {"activeCyclesByTile", cycles},
                                {"steps", steps}}}};
}

ProfileValue Engine::getProfile() const {
  return Map{{"graphProfile", getGraphProfile()}, {"executionProfile", getExecutionProfile()}};
}

}  // namespace poplar
