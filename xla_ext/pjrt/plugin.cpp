// The plugin: all functions in one table, which jaxlib asks for.
#include <iterator>
#include <string_view>

#include "export.hpp"
#include "pjrt/arrays/buffer.hpp"
#include "pjrt/devices/client.hpp"
#include "pjrt/devices/device.hpp"
#include "pjrt/interface/event.hpp"
#include "pjrt/interface/table.hpp"
#include "pjrt/programs/compile.hpp"
#include "pjrt/programs/execute.hpp"
#include "pjrt/programs/program.hpp"

namespace snnjax::pjrt {
namespace {

void addPluginFunctions(Table& table) {
  table.add("Plugin_Initialize", [](PluginInitializeArgs&) {});
  // The StableHLO version in which programs arrive from any jaxlib: newer versions contain what the lowering does not
  // know.
  table.add("Plugin_Attributes", [](PluginAttributesArgs& args) {
    static constexpr std::int64_t version[] = {1, 13, 0};
    static const NamedValue attribute = {{sizeof(NamedValue), nullptr},
                                         "stablehlo_current_version",
                                         std::string_view("stablehlo_current_version").size(),
                                         kInt64List,
                                         {.int64_array_value = version},
                                         std::size(version)};
    args.attributes = &attribute;
    args.num_attributes = 1;
  });
}

Table makeTable() {
  Table table;
  addErrorFunctions(table);
  addPluginFunctions(table);
  addEventFunctions(table);
  addClientFunctions(table);
  addDeviceFunctions(table);
  addBufferFunctions(table);
  addHostCopyFunctions(table);
  addCompileFunctions(table);
  addProgramFunctions(table);
  addExecuteFunctions(table);
  table.extensions() = shardingsExtension();
  return table;
}

}  // namespace
}  // namespace snnjax::pjrt

extern "C" SNNJAX_EXPORT const snnjax::pjrt::Api* GetPjrtApi() {
  static const snnjax::pjrt::Table table = snnjax::pjrt::makeTable();
  return &table.api();
}
