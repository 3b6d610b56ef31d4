// Creates a device that reports itself as a model, with a choice of chip and, optionally, fewer tiles.
#pragma once

#include <cstdint>
#include <poplar/Device.hpp>
#include <string>
#include <vector>

namespace poplar {

// Limits what a set of IPUs may exchange; kept for programs that fill it in, the model has its own link costs.
struct GlobalExchangeFlow {
  unsigned src = 0;
  unsigned dst = 0;
};
struct GlobalExchangeConstraint {
  double bandwidth = 0;  // bits per second
  std::vector<GlobalExchangeFlow> flows;
};

class IPUModel {
 public:
  // ipu1, ipu2, ipu21, or the model's own names mk1, mk2, bow, c600. Every field starts with the figure of the chip.
  explicit IPUModel(const char* IPUVersion = "ipu2");

  enum class RelativeSyncDelayType { AUTO, NO_DELAY };

  std::string IPUVersion;
  unsigned numIPUs = 1;
  unsigned tilesPerIPU = 0;
  std::uint64_t memoryBytesPerTile = 0;

  // The chip's own values. Costs come from the chip's table: createDevice throws if one was changed.
  unsigned numWorkerContexts = 0;
  double tileClockFrequency = 0;
  unsigned exchangeBytesPerCycle = 0;
  unsigned memcpyBytesPerCycle = 0;
  unsigned interleavedMemoryElementIndex = 0;

  // Accepted, and without effect.
  unsigned tilesPerSuperTile = 0;
  unsigned instructionBytes = 4;
  bool supportsSuperTileSendReceive = false;
  unsigned minIPUSyncDelay = 0;
  unsigned globalSyncCycles = 0;
  RelativeSyncDelayType relativeSyncDelay = RelativeSyncDelayType::AUTO;
  std::vector<GlobalExchangeConstraint> globalExchangeConstraints;
  bool compileIPUCode = false;

  // half is always half: `accurateHalf` changes nothing.
  Device createDevice(const OptionFlags& opts = {}, bool accurateHalf = true, unsigned deviceManagerId = 0) const;
};

}  // namespace poplar
