#include "executor/executable.hpp"

#include <algorithm>
#include <cstring>

#include "executor/device_program.hpp"

namespace snnjax::executor {

System::System(SystemOptions options) : options_(std::move(options)), loaded_(options_.num_devices) {}

void System::setHostCallback(HostCallback callback) {
  const std::lock_guard lock(mutex_);
  callback_ = std::move(callback);
}

// ---- The program and its residents ----

struct Requests {
  std::shared_ptr<Executable::Impl*> program;
  std::vector<bool> counted;  // of each result
};

class Executable::Impl {
 public:
  Impl(Executable& owner, std::shared_ptr<System> system, std::span<const std::byte> bytes)
      : owner_(owner), system_(std::move(system)), bytes_(bytes.begin(), bytes.end()), plan_(readPlan(bytes)) {
    for (const std::size_t device : plan_.devices) {
      if (device < system_->loaded_.size()) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  "compile: `devices` must be IPUs that there are, got number " + std::to_string(device) + " of " +
                      std::to_string(system_->loaded_.size()) + ". Set SNNJAX_IPU_DEVICES to more.");
    }
    program_ = std::make_unique<DeviceProgram>(plan_, system_->options());
    program_->connectCallbacks(
        [this](auto number, const auto& types, auto inputs) { return call(number, types, inputs); });
    addSlots();
  }
  ~Impl() {
    const std::lock_guard lock(system_->mutex_);
    try {
      leave();
    } catch (const std::exception&) {
      lose();
    }
    *self_ = nullptr;
  }

  const Plan& plan() const { return plan_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  DeviceProgram& program() { return *program_; }
  System& system() { return *system_; }

  Arrays run(const Arrays& arguments, const std::vector<bool>& donated);
  // The program wants these in the host's memory: brings and counts what has not come yet, of each run together. Those
  // that were donated stay without elements.
  static void request(std::span<Array* const> arrays);
  // Brings one to the host, uncounted: the program may never read it.
  static void save(Array& array);

 private:
  // The place on the tiles of a parameter, a result or both, and the arrays held there, one per partition.
  struct Slot {
    std::vector<std::weak_ptr<Array>> holders;
    bool overwritten = false;  // by each run
  };

  void addSlots();
  void enter();
  void leave();
  void lose();
  void clear(Slot& slot);
  void download(const std::vector<std::size_t>& places, bool counted);
  void check(const Arrays& arguments) const;
  bool lies(const Arrays& arguments, std::size_t parameter) const;
  Slot& slotOf(std::size_t place);
  DeviceProgram::Targets targetsOf(std::size_t place, std::vector<std::byte>& nobody);
  bool isToKeep(const Arrays& arguments, const DeviceProgram::Kept& pair) const;
  void keep(const Arrays& arguments);
  void upload(const Arrays& arguments);
  void consume(const Arrays& arguments, const std::vector<bool>& donated);
  Arrays makeResults();
  std::string call(std::int64_t number, const std::vector<ArrayType>& types, poplar::ArrayRef<const void*> inputs);

  Executable& owner_;
  std::shared_ptr<System> system_;
  std::vector<std::byte> bytes_;
  Plan plan_;
  std::unique_ptr<DeviceProgram> program_;
  std::vector<Slot> slots_;  // of parameters, then of results that share none with one
  std::vector<std::size_t> parameter_slots_, result_slots_;
  std::shared_ptr<Impl*> self_ = std::make_shared<Impl*>(this);  // null once it is gone
};

void Executable::Impl::addSlots() {
  const auto add = [this](bool overwritten) {
    slots_.push_back({std::vector<std::weak_ptr<Array>>(plan_.num_partitions), overwritten});
    return slots_.size() - 1;
  };
  for (std::size_t i = 0; i < plan_.main.parameters.size(); ++i) parameter_slots_.push_back(add(false));
  for (const std::size_t parameter : plan_.donated) slots_[parameter_slots_[parameter]].overwritten = true;
  for (std::size_t i = 0; i < plan_.main.results.size(); ++i) {
    const auto pair =
        std::find_if(plan_.aliases.begin(), plan_.aliases.end(), [i](const auto& p) { return p.second == i; });
    result_slots_.push_back(pair == plan_.aliases.end() ? add(true) : parameter_slots_[pair->first]);
    slots_[result_slots_.back()].overwritten = true;
  }
}

// Unloads other executables from these IPUs.
void Executable::Impl::enter() {
  for (const std::size_t device : plan_.devices) {
    Executable* const other = system_->loaded_[device];
    if (other == &owner_) continue;
    if (other != nullptr) other->impl_->leave();
    system_->loaded_[device] = &owner_;
  }
}

void Executable::Impl::leave() {
  for (Slot& slot : slots_) clear(slot);
  std::replace(system_->loaded_.begin(), system_->loaded_.end(), &owner_, static_cast<Executable*>(nullptr));
}

// The same without memory: what is only on the tiles is lost.
void Executable::Impl::lose() {
  for (const Slot& slot : slots_) {
    for (const std::weak_ptr<Array>& holder : slot.holders) {
      const std::shared_ptr<Array> array = holder.lock();
      if (array == nullptr || array->resident_in_ != &owner_) continue;
      array->resident_in_ = nullptr;
      array->is_lost_ = !array->on_host_;
    }
  }
  std::replace(system_->loaded_.begin(), system_->loaded_.end(), &owner_, static_cast<Executable*>(nullptr));
}

// Arrays held only there are first saved.
void Executable::Impl::clear(Slot& slot) {
  for (std::weak_ptr<Array>& holder : slot.holders) {
    if (const std::shared_ptr<Array> array = holder.lock()) {
      const bool lies_here = array->resident_in_ == &owner_ && &slotOf(array->place_) == &slot;
      if (lies_here) save(*array);
      if (lies_here) array->resident_in_ = nullptr;
    }
    holder.reset();
  }
}

void Executable::Impl::save(Array& array) {
  if (array.on_host_ || array.resident_in_ == nullptr) return;
  array.resident_in_->impl_->download({array.place_}, false);
}

void Executable::Impl::request(std::span<Array* const> arrays) {
  std::vector<std::pair<Requests*, std::vector<std::size_t>>> wanted;
  for (const Array* array : arrays) {
    Requests* const requests = array->requests_.get();
    if (requests == nullptr || *requests->program == nullptr || requests->counted[array->result_]) continue;
    if (wanted.empty() || wanted.back().first != requests) wanted.push_back({requests, {}});
    wanted.back().second.push_back(array->result_);
  }
  for (auto& [requests, results] : wanted) {
    Impl& impl = **requests->program;
    const std::vector<std::size_t> places = impl.program_->together(std::move(results));
    for (const std::size_t place : places) requests->counted[place] = true;
    impl.download(places, true);  // of results that were saved, only to be counted
  }
  for (Array* array : arrays) save(*array);
}

Executable::Impl::Slot& Executable::Impl::slotOf(std::size_t place) {
  const std::size_t results = result_slots_.size();
  return slots_[place < results ? result_slots_[place] : parameter_slots_[program_->kept()[place - results].parameter]];
}

// Where a place's arrays of all partitions go that are not on the host; `nobody` takes the others.
DeviceProgram::Targets Executable::Impl::targetsOf(std::size_t place, std::vector<std::byte>& nobody) {
  const std::size_t results = result_slots_.size();
  const ValueId value =
      place < results ? plan_.main.results[place] : plan_.main.parameters[program_->kept()[place - results].parameter];
  const std::size_t size = plan_.types[value].numBytes();
  nobody.resize(size);
  DeviceProgram::Targets targets;
  for (const std::weak_ptr<Array>& holder : slotOf(place).holders) {
    const std::shared_ptr<Array> array = holder.lock();
    const bool wanted = array != nullptr && !array->on_host_ && array->place_ == place;
    if (wanted) array->bytes_.resize(size);
    targets.push_back(wanted ? array->bytes_.data() : nobody.data());
  }
  return targets;
}

// Brings the arrays of places, of all partitions, to the host, as far as they lie there.
void Executable::Impl::download(const std::vector<std::size_t>& places, bool counted) {
  std::vector<std::vector<std::byte>> nobody(places.size());
  std::vector<DeviceProgram::Targets> targets;
  for (std::size_t i = 0; i < places.size(); ++i) targets.push_back(targetsOf(places[i], nobody[i]));
  program_->download(places, std::move(targets), counted);
  for (const std::size_t each : places) {
    for (const std::weak_ptr<Array>& holder : slotOf(each).holders) {
      const std::shared_ptr<Array> array = holder.lock();
      if (array != nullptr && array->place_ == each) array->on_host_ = true;
    }
  }
}

void Executable::Impl::check(const Arrays& arguments) const {
  const auto refuse = [](const std::string& expected, const std::string& actual) {
    throw Error(ErrorCode::kInvalidArgument,
                "run: `arguments` must " + expected + ", got " + actual + ". Compile for arrays of these types.");
  };
  if (arguments.size() != plan_.num_partitions) {
    refuse("be given for each partition, " + std::to_string(plan_.num_partitions), std::to_string(arguments.size()));
  }
  for (const auto& of_partition : arguments) {
    if (of_partition.size() != parameter_slots_.size()) {
      refuse("number " + std::to_string(parameter_slots_.size()), std::to_string(of_partition.size()));
    }
    for (std::size_t i = 0; i < of_partition.size(); ++i) {
      const ArrayType& type = plan_.types[plan_.main.parameters[i]];
      if (of_partition[i]->type() != type) refuse("be " + type.toString(), of_partition[i]->type().toString());
    }
  }
}

// Whether an argument is what its parameter's place holds.
bool Executable::Impl::lies(const Arrays& arguments, std::size_t parameter) const {
  const Slot& slot = slots_[parameter_slots_[parameter]];
  for (std::size_t p = 0; p < plan_.num_partitions; ++p) {
    if (slot.holders[p].lock() != arguments[p][parameter]) return false;
  }
  return true;
}

// Whether an argument is the last run's result that belongs in its place.
bool Executable::Impl::isToKeep(const Arrays& arguments, const DeviceProgram::Kept& pair) const {
  if (lies(arguments, pair.parameter)) return false;
  const Slot& slot = slots_[result_slots_[pair.result]];
  for (std::size_t p = 0; p < plan_.num_partitions; ++p) {
    const Array& array = *arguments[p][pair.parameter];
    if (slot.holders[p].lock().get() != &array || array.resident_in_ != &owner_) return false;
  }
  return true;
}

// Moves earlier results that are now arguments to their parameters' places, on the tiles.
void Executable::Impl::keep(const Arrays& arguments) {
  std::vector<std::size_t> pairs;
  const std::vector<DeviceProgram::Kept>& kept = program_->kept();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (isToKeep(arguments, kept[i])) pairs.push_back(i);
  }
  for (const std::size_t i : pairs) clear(slots_[parameter_slots_[kept[i].parameter]]);
  program_->keep(pairs);
  for (const std::size_t i : pairs) {
    Slot& slot = slots_[parameter_slots_[kept[i].parameter]];
    for (std::size_t p = 0; p < plan_.num_partitions; ++p) {
      slot.holders[p] = arguments[p][kept[i].parameter];
      arguments[p][kept[i].parameter]->resident_in_ = &owner_;
      arguments[p][kept[i].parameter]->place_ = result_slots_.size() + i;
    }
  }
}

void Executable::Impl::upload(const Arrays& arguments) {
  keep(arguments);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < parameter_slots_.size(); ++i) {
    if (!lies(arguments, i)) missing.push_back(i);
  }
  // Saves all before filling any: a place to fill may hold another argument.
  std::vector<Array*> wanted;
  for (const std::size_t i : missing) {
    for (const auto& of_partition : arguments) wanted.push_back(of_partition[i].get());
  }
  request(wanted);
  for (const Array* array : wanted) {
    if (array->on_host_) continue;
    throw Error(ErrorCode::kInvalidArgument,
                "run: `arguments` must hold elements, got " + array->type().toString() +
                    " that was donated. Donated arrays are gone: use the results in their place.");
  }
  // Results of the last run may lie in the memory of donated arguments.
  for (std::size_t slot = parameter_slots_.size(); slot < slots_.size(); ++slot) clear(slots_[slot]);
  std::vector<DeviceProgram::Sources> sources(missing.size());
  for (std::size_t k = 0; k < missing.size(); ++k) {
    clear(slots_[parameter_slots_[missing[k]]]);
    for (const auto& of_partition : arguments) sources[k].push_back(of_partition[missing[k]]->bytes_.data());
  }
  program_->upload(missing, std::move(sources));
  for (const std::size_t i : missing) {  // now that it is there
    for (std::size_t p = 0; p < plan_.num_partitions; ++p) slots_[parameter_slots_[i]].holders[p] = arguments[p][i];
  }
}

// Donated arguments are empty from now on; anything else that the run overwrites is saved.
void Executable::Impl::consume(const Arrays& arguments, const std::vector<bool>& donated) {
  for (std::size_t i = 0; i < donated.size() && i < parameter_slots_.size(); ++i) {
    if (!donated[i]) continue;
    for (const auto& of_partition : arguments) {
      Array& array = *of_partition[i];
      array.on_host_ = false;
      array.resident_in_ = nullptr;
      array.requests_ = nullptr;
      array.bytes_ = {};
    }
    for (std::weak_ptr<Array>& holder : slots_[parameter_slots_[i]].holders) holder.reset();
  }
  for (Slot& slot : slots_) {
    if (slot.overwritten) clear(slot);
  }
}

Executable::Arrays Executable::Impl::makeResults() {
  Arrays results(plan_.num_partitions);
  const auto requests = std::make_shared<Requests>(self_, std::vector<bool>(result_slots_.size(), false));
  for (std::size_t r = 0; r < result_slots_.size(); ++r) {
    for (std::size_t p = 0; p < plan_.num_partitions; ++p) {
      const ArrayType& type = plan_.types[plan_.main.results[r]];
      const auto array = std::make_shared<Array>(system_, type, std::vector<std::byte>());
      array->on_host_ = false;
      array->resident_in_ = &owner_;
      array->place_ = array->result_ = r;
      array->requests_ = requests;
      slots_[result_slots_[r]].holders[p] = array;
      results[p].push_back(array);
    }
  }
  return results;
}

Executable::Arrays Executable::Impl::run(const Arrays& arguments, const std::vector<bool>& donated) {
  const std::lock_guard lock(system_->mutex_);
  check(arguments);
  enter();
  upload(arguments);
  consume(arguments, donated);
  program_->run();
  return makeResults();
}

std::string Executable::Impl::call(std::int64_t number, const std::vector<ArrayType>& types,
                                   poplar::ArrayRef<const void*> inputs) {
  std::vector<std::shared_ptr<Array>> arrays;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto* begin = static_cast<const std::byte*>(inputs[i]);
    arrays.push_back(
        std::make_shared<Array>(system_, types[i], std::vector<std::byte>(begin, begin + types[i].numBytes())));
  }
  return system_->callback_ ? system_->callback_(number, arrays) : std::string();
}

// ---- Arrays ----

Array::Array(std::shared_ptr<System> system, ArrayType type, std::vector<std::byte> bytes)
    : system_(std::move(system)), type_(std::move(type)), bytes_(std::move(bytes)) {}

const std::vector<std::byte>& Array::bytes() {
  const std::lock_guard lock(system_->mutex_);
  request();
  return saved();
}

void Array::request() {
  const std::lock_guard lock(system_->mutex_);
  Array* const self = this;
  Executable::Impl::request({&self, 1});
}

const std::vector<std::byte>& Array::saved() {
  const std::lock_guard lock(system_->mutex_);
  Executable::Impl::save(*this);
  if (on_host_) return bytes_;
  if (is_lost_) {
    throw Error(ErrorCode::kResourceExhausted, "array: `buffer` must hold elements, got " + type_.toString() +
                                                   " for which there was no memory when its program was deleted. "
                                                   "Read it before, or use smaller arrays.");
  }
  throw Error(ErrorCode::kInvalidArgument,
              "array: `buffer` must hold elements, got " + type_.toString() +
                  " that was donated. Donated arrays are gone: use the results in their place.");
}

// ---- Executable ----

Executable::Executable(std::shared_ptr<System> system, std::span<const std::byte> plan)
    : impl_(std::make_unique<Impl>(*this, std::move(system), plan)) {}
Executable::~Executable() = default;

const Plan& Executable::plan() const { return impl_->plan(); }
Cost Executable::cost() const { return costOf(impl_->plan()); }
const std::vector<std::byte>& Executable::serialised() const { return impl_->bytes(); }
Executable::Arrays Executable::run(const Arrays& arguments, const std::vector<bool>& donated) {
  return impl_->run(arguments, donated);
}

std::string Executable::profile() const {
  const std::lock_guard lock(impl_->system().mutex_);
  return impl_->program().profile();
}

void Executable::resetProfile() {
  const std::lock_guard lock(impl_->system().mutex_);
  impl_->program().resetProfile();
}

std::size_t Executable::tileMemory() const { return impl_->program().tileMemory(); }

}  // namespace snnjax::executor
