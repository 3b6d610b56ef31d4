#include "engine/compiler/exchange.hpp"

#include <algorithm>
#include <tuple>

namespace ipu_model {
namespace {

constexpr std::size_t kWord = 4;         // bytes of an exchange word, and of an instruction
constexpr std::size_t kBufferAlign = 8;  // bytes, of a buffer for one message

std::uint64_t words(std::size_t bytes) { return (bytes + kWord - 1) / kWord; }

}  // namespace

ExchangePhase::ExchangePhase(const poplar::Target& target) : target_(&target) {}

void ExchangePhase::addCopy(std::uint32_t tile, const TileCopy& copy) {
  copies_.resize(target_->getNumTiles());
  copies_[tile].bytes += copy.bytes;
  copies_[tile].pieces += copy.pieces;
}

ExchangeCost ExchangePhase::finish(std::vector<TileBytes>& memory, bool buffered) {
  ExchangeCost cost;
  const Chip& chip = target_->chip();
  const auto travels = [](const Transfer& transfer) { return transfer.source != transfer.destination; };
  if (std::any_of(transfers_.begin(), transfers_.end(), travels)) {
    const std::uint32_t per_ipu = target_->getTilesPerIPU();
    traffic_.assign(target_->getNumTiles(), {});
    for (std::uint32_t tile = 0; tile < traffic_.size(); ++tile) traffic_[tile].tile = tile % per_ipu;
    received_bytes_.assign(target_->getNumTiles(), 0);
    merge();
    countReceived();
    countSent();
    for (std::size_t first = 0; first < traffic_.size(); first += per_ipu) {
      cost.cycles = std::max(cost.cycles, exchangeCycles(chip, std::span(traffic_).subspan(first, per_ipu)));
    }
    const std::uint64_t link_cycles = linkTime(cost);
    cost.cycles += link_cycles;
    cost.sync_cycles = cost.link_bytes > 0 ? systemSyncCycles(chip, target_->getNumIPUs()) : ipuSyncCycles(chip);
    for (const Transfer& transfer : transfers_) cost.bytes += transfer.bytes;
    cost.messages = transfers_.size();
    addMemory(memory, buffered);
  } else {
    for (const Transfer& transfer : transfers_) addCopy(transfer.source, {transfer.bytes, 1});
  }
  std::uint64_t copy_cycles = 0;
  for (const TileCopy& copy : copies_) {
    if (copy.bytes > 0) copy_cycles = std::max(copy_cycles, tileCopyCycles(chip, copy.bytes, copy.pieces));
  }
  cost.cycles += copy_cycles;
  return cost;
}

// Neighbours on the source that stay neighbours become one message; leaves the order by source and address.
void ExchangePhase::merge() {
  std::sort(transfers_.begin(), transfers_.end(), [](const Transfer& a, const Transfer& b) {
    return std::tie(a.destination, a.source, a.from) < std::tie(b.destination, b.source, b.from);
  });
  std::size_t last = 0;
  for (std::size_t i = 1; i < transfers_.size(); ++i) {
    Transfer& before = transfers_[last];
    const Transfer& next = transfers_[i];
    if (before.source == next.source && before.destination == next.destination &&
        before.from + before.bytes == next.from && before.to + before.bytes == next.to) {
      before.bytes += next.bytes;
    } else {
      transfers_[++last] = next;
    }
  }
  transfers_.resize(last + 1);
  std::sort(transfers_.begin(), transfers_.end(), [](const Transfer& a, const Transfer& b) {
    return std::tie(a.source, a.from, a.bytes, a.destination) < std::tie(b.source, b.from, b.bytes, b.destination);
  });
}

void ExchangePhase::countReceived() {
  const std::uint32_t per_ipu = target_->getTilesPerIPU();
  const Chip& chip = target_->chip();
  for (const Transfer& transfer : transfers_) {
    TileTraffic& tile = traffic_[transfer.destination];
    tile.words_received += words(transfer.bytes);
    ++tile.fragments_received;
    received_bytes_[transfer.destination] += (transfer.bytes + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
    if (transfer.source / per_ipu != transfer.destination / per_ipu) continue;
    // A program may use more tiles than the chip has: the extra ones share the places of the last ones.
    const auto place = [&](std::uint32_t number) { return std::min(number % per_ipu, chip.tiles - 1); };
    tile.route_cycles =
        std::max(tile.route_cycles, arrivalCycles(chip, place(transfer.source), place(transfer.destination)));
  }
}

// Transfers are in order of source and address here: a word counts once, however many tiles take it.
void ExchangePhase::countSent() {
  std::size_t sent_to = 0;  // end of what the current source has sent
  for (std::size_t first = 0; first < transfers_.size();) {
    const Transfer& transfer = transfers_[first];
    std::size_t after = first;
    while (after < transfers_.size() && transfers_[after].source == transfer.source &&
           transfers_[after].from == transfer.from && transfers_[after].bytes == transfer.bytes) {
      ++after;
    }
    if (first == 0 || transfers_[first - 1].source != transfer.source) sent_to = 0;
    const std::size_t end = transfer.from + transfer.bytes;
    TileTraffic& tile = traffic_[transfer.source];
    if (end > sent_to) {
      tile.words_sent += words(end - std::max(sent_to, transfer.from));
      ++tile.fragments_sent;
      sent_to = end;
    }
    countPairs(std::span(transfers_).subspan(first, after - first));
    first = after;
  }
}

void ExchangePhase::countPairs(std::span<const Transfer> same_words) {
  for (std::size_t i = 1; i < same_words.size(); ++i) {
    const std::uint32_t tile = same_words[i].destination;
    if (same_words[i - 1].destination != pairedTile(tile) || tile < same_words[i - 1].destination) continue;
    const std::uint64_t paired = pairedWords(target_->chip(), words(same_words[i].bytes));
    traffic_[tile].paired_words_received += paired;
    traffic_[pairedTile(tile)].paired_words_received += paired;
  }
}

// A word crosses a link once for each IPU that needs it, and is distributed to the tiles there.
std::uint64_t ExchangePhase::linkTime(ExchangeCost& cost) const {
  const std::uint32_t ipus = target_->getNumIPUs();
  if (ipus == 1) return 0;
  const std::uint32_t per_ipu = target_->getTilesPerIPU();
  std::vector<std::uint64_t> link_words(std::size_t{ipus} * ipus, 0);
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const Transfer& transfer = transfers_[i];
    const std::uint32_t from = transfer.source / per_ipu;
    const std::uint32_t to = transfer.destination / per_ipu;
    const bool again = i > 0 && transfers_[i - 1].source == transfer.source &&
                       transfers_[i - 1].from == transfer.from && transfers_[i - 1].bytes == transfer.bytes &&
                       transfers_[i - 1].destination / per_ipu == to;
    if (from == to || again) continue;
    link_words[std::size_t{from} * ipus + to] += words(transfer.bytes);
    cost.link_bytes += words(transfer.bytes) * kWord;
  }
  return cost.link_bytes > 0 ? linkCycles(target_->chip(), link_words, ipus) : 0;
}

void ExchangePhase::addMemory(std::vector<TileBytes>& memory, bool buffered) const {
  const Chip& chip = target_->chip();
  for (std::size_t tile = 0; tile < traffic_.size(); ++tile) {
    memory[tile].exchange_code += kWord * (chip.send_control_cycles * traffic_[tile].fragments_sent +
                                           chip.receive_control_cycles * traffic_[tile].fragments_received);
    if (buffered) memory[tile].buffers = std::max(memory[tile].buffers, received_bytes_[tile]);
  }
}

}  // namespace ipu_model
