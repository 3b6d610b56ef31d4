// A compiled plan: its programs on the tiles of its IPUs, and the arrays kept there between runs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>
#include "builders/error.hpp"

#include "executor/plan/cost.hpp"
#include "executor/plan/options.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {

class Executable;

// The IPUs of a process.
struct SystemOptions {
  std::string version = "mk2";  // one of kVersions
  std::size_t num_devices = 1;
  std::size_t num_tiles = 0;  // of each IPU; 0: all that the chip has
};

class Array;

// Called with the callback's number and arrays, for jax.debug.print and the like, during a run. Returns the bytes of
// its results, one array after the other, row-major. It must not wait for another run, which would wait for this one.
using HostCallback = std::function<std::string(std::int64_t, std::span<const std::shared_ptr<Array>>)>;

// Which executable is loaded on each IPU, and one lock for all: a run takes it whole.
class System {
 public:
  explicit System(SystemOptions options);
  const SystemOptions& options() const { return options_; }
  void setHostCallback(HostCallback callback);

 private:
  friend class Executable;
  friend class Array;
  SystemOptions options_;
  std::recursive_mutex mutex_;       // callbacks ask for their arrays' bytes while a run holds it
  std::vector<Executable*> loaded_;  // one an IPU
  HostCallback callback_;
};

// Of one run: which of its results have been counted as requests of the host.
struct Requests;

// One array of one device. Its elements are in the host's memory, on the tiles of the executable that made it, or both;
// an array on tiles is brought to the host on demand, or saved before something else is written there. A request of the
// host is counted where the program asks for the elements, not where they are saved: whether an array that nobody reads
// is still held then depends on the time that its owner took.
class Array {
 public:
  Array(std::shared_ptr<System> system, ArrayType type, std::vector<std::byte> bytes);
  const ArrayType& type() const { return type_; }
  // The elements, row-major, in the host's memory. Throws Error where the array has been donated.
  const std::vector<std::byte>& bytes();
  // The same in two parts: what is counted, in the order of the program, and the elements, which may come earlier.
  void request();
  const std::vector<std::byte>& saved();

 private:
  friend class Executable;
  std::shared_ptr<System> system_;
  ArrayType type_;
  std::vector<std::byte> bytes_;
  bool on_host_ = true;                 // bytes_ are the elements
  bool is_lost_ = false;                // they are nowhere: there was no memory to bring them to
  Executable* resident_in_ = nullptr;   // the executable on whose tiles they are as well
  std::size_t place_ = 0;               // there (device_program.hpp): a result, or a parameter that it was kept in
  std::shared_ptr<Requests> requests_;  // of the run that made it; none for arrays from the host
  std::size_t result_ = 0;              // of that run
};

class Executable {
 public:
  // Builds the graph and the engine. Throws Error where something cannot be lowered, and Poplar's exceptions, such as
  // for lack of tile memory, which errorOf maps to a code.
  Executable(std::shared_ptr<System> system, std::span<const std::byte> plan);
  ~Executable();
  const Plan& plan() const;
  Cost cost() const;
  // The bytes from which another process makes the same executable.
  const std::vector<std::byte>& serialised() const;

  // arguments[partition][parameter] -> results[partition][result]. Arguments named by `donated` (positions of
  // parameters) may give their tile memory to results, and hold nothing afterwards.
  using Arrays = std::vector<std::vector<std::shared_ptr<Array>>>;
  Arrays run(const Arrays& arguments, const std::vector<bool>& donated);

  // The cost of all runs since the last reset, as JSON (include/ipu_model/profile.hpp and the plan's operations).
  std::string profile() const;
  void resetProfile();
  // Bytes of tile memory in use, of all tiles.
  std::size_t tileMemory() const;

 private:
  friend class Array;
  friend struct Requests;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace snnjax::executor
