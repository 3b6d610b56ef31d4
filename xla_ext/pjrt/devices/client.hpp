// A client: the IPUs of one process, and the queue of work on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/executable.hpp"
#include "export.hpp"
#include "pjrt/devices/device.hpp"
#include "pjrt/devices/queue.hpp"

namespace snnjax::pjrt {

struct Client {
  // Throws where the options are not those of IPUs.
  explicit Client(executor::SystemOptions options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  Device& device(std::int64_t id) const;

  std::string chip;
  std::string platform_version;
  std::vector<std::unique_ptr<Device>> owned_devices;
  std::vector<Device*> devices;
  std::vector<Memory*> memories;
  std::shared_ptr<executor::System> system;
  Queue queue;
};

void addClientFunctions(Table& table);

}  // namespace snnjax::pjrt

// Waits until all clients have finished their work: Python calls it before it exits.
extern "C" SNNJAX_EXPORT void snnjax_ipu_finish();
