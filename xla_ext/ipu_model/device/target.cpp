// Poplar's Target, TargetType and Type, from the chip's table.
#include <cstring>
#include <ostream>
#include <poplar/Target.hpp>
#include <poplar/exceptions.hpp>

#include "costs/costs.hpp"
#include "graph/half_bits.hpp"

namespace poplar {

// Known before any code runs: other initialisers may use them.
constinit Type BOOL{Type::Kind::Bool};
constinit Type CHAR{Type::Kind::Char};
constinit Type UNSIGNED_CHAR{Type::Kind::UnsignedChar};
constinit Type SIGNED_CHAR{Type::Kind::SignedChar};
constinit Type UNSIGNED_SHORT{Type::Kind::UnsignedShort};
constinit Type SHORT{Type::Kind::Short};
constinit Type UNSIGNED_INT{Type::Kind::UnsignedInt};
constinit Type INT{Type::Kind::Int};
constinit Type UNSIGNED_LONG{Type::Kind::UnsignedLong};
constinit Type LONG{Type::Kind::Long};
constinit Type UNSIGNED_LONGLONG{Type::Kind::UnsignedLongLong};
constinit Type LONGLONG{Type::Kind::LongLong};
constinit Type QUARTER{Type::Kind::Quarter};
constinit Type HALF{Type::Kind::Half};
constinit Type FLOAT{Type::Kind::Float};

std::string Type::toString() const {
  switch (kind_) {
    case Kind::Bool: return "bool";
    case Kind::Char: return "char";
    case Kind::UnsignedChar: return "unsigned char";
    case Kind::SignedChar: return "signed char";
    case Kind::UnsignedShort: return "unsigned short";
    case Kind::Short: return "short";
    case Kind::UnsignedInt: return "unsigned int";
    case Kind::Int: return "int";
    case Kind::UnsignedLong: return "unsigned long";
    case Kind::Long: return "long";
    case Kind::UnsignedLongLong: return "unsigned long long";
    case Kind::LongLong: return "long long";
    case Kind::Quarter: return "quarter";
    case Kind::Half: return "half";
    case Kind::Float: return "float";
  }
  return "";
}

std::ostream& operator<<(std::ostream& stream, const Type& type) { return stream << type.toString(); }

std::string toString(TargetType type) {
  return type == TargetType::IPU ? "IPU" : type == TargetType::CPU ? "CPU" : "IPU_MODEL";
}

Target::Target(const ipu_model::Chip& chip, TargetType type, unsigned ipus, unsigned tiles_per_ipu)
    : chip_(&chip), type_(type), ipus_(ipus), tiles_per_ipu_(tiles_per_ipu), bytes_per_tile_(chip.tile_memory) {
  if (ipus == 0 || tiles_per_ipu == 0) {
    throw poplar_error("Target: `numIPUs` must be positive, and so must the tiles of each, got " +
                       std::to_string(ipus) + " of " + std::to_string(tiles_per_ipu) + ". One IPU has " +
                       std::to_string(chip.tiles) + " tiles.");
  }
}

Target Target::createCPUTarget(bool, unsigned numIPUs) {
  return {ipu_model::chipNamed("ipu2"), TargetType::CPU, numIPUs, 1};
}

Target Target::createIPUTarget(unsigned numIPUs, StringRef systemType, const OptionFlags&) {
  const ipu_model::Chip& chip = ipu_model::chipNamed(systemType);
  return {chip, TargetType::IPU_MODEL, numIPUs, chip.tiles};
}

Target Target::createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType, const OptionFlags&) {
  return {ipu_model::chipNamed(systemType), TargetType::IPU_MODEL, numIPUs, tilesPerIPU};
}

Target Target::createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const {
  Target target = *this;
  target.ipus_ = numIPUs;
  target.tiles_per_ipu_ = tilesPerIPU;
  return target;
}

StringRef Target::getTargetSystemString() const { return chip_->name; }
StringRef Target::getTargetArchString() const { return chip_->architecture; }
unsigned Target::getNumWorkerContexts() const { return chip_->workers; }
double Target::getTileClockFrequency() const { return chip_->clock_hz; }
unsigned Target::getExchangeBytesPerCycle() const { return chip_->exchange_bytes_per_cycle; }
unsigned Target::getMemcpyBytesPerCycle() const { return chip_->copy_bytes_per_cycle; }
unsigned Target::getMinIPUSyncDelay() const { return static_cast<unsigned>(ipu_model::ipuSyncCycles(*chip_)); }
unsigned Target::getMaxIPUSyncDelay() const { return getMinIPUSyncDelay(); }
unsigned Target::getGlobalSyncCycles() const {
  return static_cast<unsigned>(ipu_model::systemSyncCycles(*chip_, ipus_));
}
bool Target::supportsExchangeBusSharing() const { return true; }
unsigned Target::getRptCountMax() const { return chip_->repeat_count_max; }

std::vector<unsigned> Target::getMemoryElementOffsets() const {
  std::vector<unsigned> offsets;
  for (unsigned at = 0; at < chip_->tile_memory; at += chip_->memory_element) offsets.push_back(at);
  return offsets;
}

unsigned Target::getInterleavedMemoryElementIndex() const { return chip_->interleaved_from / chip_->memory_element; }

unsigned Target::getVectorWidth(const Type& type) const {
  const auto bytes = static_cast<unsigned>(type.size());
  return bytes > 0 ? getDataPathWidth() / (8 * bytes) : 1;
}

void copyFloatToDeviceHalf(const Target&, const float* src, void* dst, std::size_t numElements) {
  for (std::size_t i = 0; i < numElements; ++i) {
    const std::uint16_t bits = ipu_model::halfOf(static_cast<double>(src[i]));
    std::memcpy(static_cast<std::byte*>(dst) + i * sizeof(bits), &bits, sizeof(bits));
  }
}

void copyDeviceHalfToFloat(const Target&, const void* src, float* dst, std::size_t numElements) {
  for (std::size_t i = 0; i < numElements; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(src) + i * sizeof(bits), sizeof(bits));
    dst[i] = ipu_model::halfToFloat(bits);
  }
}

void copyDoubleToDeviceHalf(const Target&, const double* src, void* dst, std::size_t numElements) {
  for (std::size_t i = 0; i < numElements; ++i) {
    const std::uint16_t bits = ipu_model::halfOf(src[i]);
    std::memcpy(static_cast<std::byte*>(dst) + i * sizeof(bits), &bits, sizeof(bits));
  }
}

void copyDeviceHalfToDouble(const Target&, const void* src, double* dst, std::size_t numElements) {
  for (std::size_t i = 0; i < numElements; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(src) + i * sizeof(bits), sizeof(bits));
    dst[i] = static_cast<double>(ipu_model::halfToFloat(bits));
  }
}

}  // namespace poplar
