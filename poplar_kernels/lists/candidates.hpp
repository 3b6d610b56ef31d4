// The candidates of a row, neurons above either threshold, as six workers list them: a part for each share of the
// neurons.
#pragma once

#include "lists.hpp"

namespace snnjax {

// The number of candidates of either kind, and how many are kept.
struct Counts {
  unsigned spikes, near;

  Counts cappedTo(unsigned slots) const {
    const unsigned kept = smaller(spikes, slots);
    return {kept, smaller(near, slots - kept)};
  }
};

// What a worker lists of a row: a record without pads (lists.hpp), its spikes ascending from the first slot on, the
// others from the last one back; and the membranes of both.
template <class Id>
struct Part {
  List<Id> list;
  const float* membranes;

  unsigned count(bool of_spikes) const { return of_spikes ? list.spikes() : list.listed() - list.spikes(); }
  unsigned slot(bool of_spikes, unsigned k) const { return of_spikes ? k : list.capacity - 1 - k; }
  unsigned id(bool of_spikes, unsigned k) const { return static_cast<unsigned>(list.ids()[slot(of_spikes, k)]); }
  float membrane(bool of_spikes, unsigned k) const { return membranes[slot(of_spikes, k)]; }
  // The slots of one kind, in no order.
  unsigned firstSlot(bool of_spikes) const { return of_spikes ? 0 : list.capacity - count(false); }

  // Calls body(v, id) for all of one kind.
  void forEach(bool of_spikes, auto&& body) const {
    for (unsigned k = 0; k < count(of_spikes); ++k) body(membrane(of_spikes, k), id(of_spikes, k));
  }
};

// The parts of all rows: lists [rows, workers, listStride(slots)], membranes [rows, workers, slots].
template <class Id>
struct Parts {
  const Id* lists;
  const float* membranes;
  unsigned slots;

  Part<Id> of(unsigned row, unsigned p) const {
    const unsigned item = row * kShares + p;
    return {{lists + item * listStride(slots), slots}, membranes + item * slots};
  }
  Counts count(unsigned row) const {
    Counts found = {0, 0};
    for (unsigned p = 0; p < kShares; ++p) {
      found.spikes += of(row, p).count(true);
      found.near += of(row, p).count(false);
    }
    return found;
  }
};

// Writes the part of a worker.
template <class Id>
class PartWriter {
 public:
  PartWriter(Id* lists, float* membranes, unsigned slots, unsigned row, unsigned worker)
      : record_(lists + (row * kShares + worker) * listStride(slots)),
        membranes_(membranes + (row * kShares + worker) * slots),
        slots_(slots) {}

  void add(unsigned j, float v, bool is_spike) {
    const unsigned slot = is_spike ? found_.spikes++ : slots_ - ++found_.near;
    record_[kListHeader + slot] = static_cast<Id>(j);
    membranes_[slot] = v;
  }
  void finish() {
    record_[kKept] = static_cast<Id>(found_.spikes);
    record_[kListed] = static_cast<Id>(found_.spikes + found_.near);
  }

 private:
  Id* record_;
  float* membranes_;
  unsigned slots_;
  Counts found_ = {0, 0};
};

}  // namespace snnjax
