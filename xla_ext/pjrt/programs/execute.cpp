#include "pjrt/programs/execute.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pjrt/arrays/buffer.hpp"
#include "pjrt/interface/table.hpp"
#include "pjrt/programs/program.hpp"

namespace snnjax::pjrt {
namespace {

using Arrays = executor::Executable::Arrays;
using Values = std::vector<std::vector<std::shared_ptr<Value>>>;  // [partition][parameter or result]

// About the time it takes to wake the queue's thread on the machines measured.
constexpr auto kShort = std::chrono::microseconds(10);

// One run, from the call to its end.
struct Run {
  std::shared_ptr<CompiledProgram> program;
  Values arguments, results;
  std::vector<bool> donated;
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();

  void operator()();
};

void Run::operator()() {
  try {
    Arrays arrays(arguments.size());
    for (std::size_t partition = 0; partition < arguments.size(); ++partition) {
      for (const auto& value : arguments[partition]) {
        value->get();
        arrays[partition].push_back(value->array);
      }
    }
    const auto begin = std::chrono::steady_clock::now();
    const Arrays outputs = program->executable.run(arrays, donated);
    program->is_short = std::chrono::steady_clock::now() - begin < kShort;
    for (std::size_t partition = 0; partition < results.size(); ++partition) {
      for (std::size_t i = 0; i < results[partition].size(); ++i) results[partition][i]->array = outputs[partition][i];
      program->devices[partition]->load(program.get(), program->tile_memory);
    }
    completion->finish();
  } catch (const std::exception& exception) {
    completion->finish(errorOf(exception));
  }
}

void requireCount(const std::string& what, std::size_t expected, std::size_t actual) {
  if (expected == actual) return;
  refuse("execute", what, "be " + std::to_string(expected), std::to_string(actual), "Compile the program for these");
}

// Throws where the call does not fit the program.
void check(const LoadedExecutableExecuteArgs& args, const CompiledProgram& program) {
  Queue::refuseInside("execute");
  if (args.executable->is_deleted) {
    refuse("execute", "program", "still be there", "one that was deleted", "Compile it again");
  }
  requireCount("num_devices", program.devices.size(), args.num_devices);
  requireCount("num_args", program.numParameters(), args.num_args);
  for (std::size_t partition = 0; partition < args.num_devices; ++partition) {
    for (std::size_t i = 0; i < args.num_args; ++i) {
      const Buffer& buffer = *args.argument_lists[partition][i];
      const std::string name = "argument " + std::to_string(i);
      if (buffer.type != program.parameter(i)) {
        refuse("execute", name, "be " + program.parameter(i).toString(), buffer.type.toString(),
               "Compile the program for it");
      }
      if (buffer.device != program.devices[partition]) {
        refuse("execute", name, "be on " + program.devices[partition]->description.to_string,
               buffer.device->description.to_string, "Put it there with jax.device_put");
      }
    }
  }
}

std::vector<bool> donatedOf(const LoadedExecutableExecuteArgs& args, const CompiledProgram& program) {
  std::vector<bool> donated = program.donated;
  const std::span kept(args.options->non_donatable_input_indices, args.options->num_non_donatable_input_indices);
  for (const std::int64_t i : kept) donated.at(static_cast<std::size_t>(i)) = false;
  return donated;
}

// The values of the arguments. An argument that is donated may not be used elsewhere in the same call.
Values valuesOf(const LoadedExecutableExecuteArgs& args, const std::vector<bool>& donated) {
  Values values(args.num_devices);
  for (std::size_t partition = 0; partition < args.num_devices; ++partition) {
    const std::span buffers(args.argument_lists[partition], args.num_args);
    for (const Buffer* buffer : buffers) values[partition].push_back(buffer->value());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (donated[i] && std::ranges::count(buffers, buffers[i]) > 1) {
        refuse("execute", "argument " + std::to_string(i), "be given once if it is donated", "the same array again",
               "Donate a copy of it");
      }
    }
  }
  return values;
}

// Buffers whose values arrive with the run.
Values makeResults(const LoadedExecutableExecuteArgs& args, const Run& run) {
  Values values(args.num_devices);
  for (std::size_t partition = 0; partition < args.num_devices; ++partition) {
    for (std::size_t i = 0; i < run.program->numResults(); ++i) {
      values[partition].push_back(std::make_shared<Value>(nullptr, run.completion));
      args.output_lists[partition][i] =
          new Buffer(run.program->devices[partition], run.program->result(i), values[partition].back());
    }
    if (args.device_complete_events != nullptr) args.device_complete_events[partition] = new Event{run.completion};
  }
  return values;
}

void execute(LoadedExecutableExecuteArgs& args) {
  const auto& program = args.executable->program;
  check(args, *program);
  Run run;
  run.program = program;
  run.donated = donatedOf(args, *program);
  run.arguments = valuesOf(args, run.donated);
  for (std::size_t partition = 0; partition < args.num_devices; ++partition) {
    for (std::size_t i = 0; i < args.num_args; ++i) {
      if (run.donated[i]) args.argument_lists[partition][i]->take();
    }
  }
  run.results = makeResults(args, run);
  program->client.queue.push(std::move(run), program->is_short ? Queue::Kind::kShort : Queue::Kind::kRun);
}

}  // namespace

void addExecuteFunctions(Table& table) {
  table.add("LoadedExecutable_Execute", [](LoadedExecutableExecuteArgs& args) { execute(args); });
}

}  // namespace snnjax::pjrt
