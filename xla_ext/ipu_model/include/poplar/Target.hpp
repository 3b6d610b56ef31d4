// The properties of the machine that a program is built for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <poplar/OptionFlags.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/TargetType.hpp>
#include <poplar/Type.hpp>
#include <string>
#include <vector>

namespace ipu_model {
struct Chip;
}

namespace poplar {

class Target {
 public:
  Target() = default;
  Target(const ipu_model::Chip& chip, TargetType type, unsigned ipus, unsigned tiles_per_ipu);

  static Target createCPUTarget(bool accurateHalf = true, unsigned numIPUs = 1);
  static Target createIPUTarget(unsigned numIPUs, StringRef systemType, const OptionFlags& opts = {});
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                                const OptionFlags& opts = {});

  TargetType getTargetType() const { return type_; }
  StringRef getTargetSystemString() const;
  StringRef getTargetArchString() const;

  unsigned getNumIPUs() const { return ipus_; }
  unsigned getTilesPerIPU() const { return tiles_per_ipu_; }
  unsigned getNumTiles() const { return ipus_ * tiles_per_ipu_; }
  unsigned getNumWorkerContexts() const;
  std::uint64_t getBytesPerTile() const { return bytes_per_tile_; }
  std::uint64_t getMemoryBytes() const { return getBytesPerTile() * getNumTiles(); }
  double getTileClockFrequency() const;

  unsigned getExchangeBytesPerCycle() const;
  unsigned getMemcpyBytesPerCycle() const;
  unsigned getMinIPUSyncDelay() const;
  unsigned getMaxIPUSyncDelay() const;
  unsigned getGlobalSyncCycles() const;
  unsigned getTilesPerSharedExchangeBus() const { return 2; }
  bool supportsExchangeBusSharing() const;
  std::vector<unsigned> getMemoryElementOffsets() const;
  unsigned getInterleavedMemoryElementIndex() const;

  unsigned getDataPathWidth() const { return 64; }
  // Elements of a type that one instruction of the vector unit takes.
  unsigned getVectorWidth(const Type& type) const;
  unsigned getTypeSize(const Type& type) const { return static_cast<unsigned>(type.size()); }
  unsigned getAtomicStoreGranularity() const { return 4; }
  unsigned getRptCountMax() const;
  unsigned getNumStrideBits() const { return 10; }
  unsigned getWeightsPerConvUnit(bool floatActivations) const { return floatActivations ? 8 : 16; }
  unsigned getFp16InFp16OutConvUnitsPerTile() const { return 16; }
  unsigned getFp16InFp32OutConvUnitsPerTile() const { return 16; }
  unsigned getFp32InFp32OutConvUnitsPerTile() const { return 8; }
  unsigned getConvUnitCoeffLoadBytesPerCycle() const { return 16; }

  // The same chips, `numIPUs` of them, or with fewer tiles used.
  Target createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const;

  // The model's own.
  const ipu_model::Chip& chip() const { return *chip_; }
  void setBytesPerTile(std::uint64_t bytes) { bytes_per_tile_ = bytes; }
  friend bool operator==(const Target& a, const Target& b) {
    return a.chip_ == b.chip_ && a.type_ == b.type_ && a.ipus_ == b.ipus_ && a.tiles_per_ipu_ == b.tiles_per_ipu_ &&
           a.bytes_per_tile_ == b.bytes_per_tile_;
  }
  friend bool operator!=(const Target& a, const Target& b) { return !(a == b); }

 private:
  const ipu_model::Chip* chip_ = nullptr;
  TargetType type_ = TargetType::IPU_MODEL;
  unsigned ipus_ = 0;
  unsigned tiles_per_ipu_ = 0;
  std::uint64_t bytes_per_tile_ = 0;
};

// Between float and the tiles' half, which the host's C++ need not know.
void copyFloatToDeviceHalf(const Target& target, const float* src, void* dst, std::size_t numElements);
void copyDeviceHalfToFloat(const Target& target, const void* src, float* dst, std::size_t numElements);
void copyDoubleToDeviceHalf(const Target& target, const double* src, void* dst, std::size_t numElements);
void copyDeviceHalfToDouble(const Target& target, const void* src, double* dst, std::size_t numElements);

}  // namespace poplar
