#include "pjrt/interface/errors.hpp"

#include "pjrt/interface/table.hpp"

namespace snnjax::pjrt {

Error* toError(const std::optional<Failure>& failure) {
  return failure.has_value() ? new Error{nullptr, *failure} : nullptr;
}

void refuse(const std::string& op, const std::string& argument, const std::string& expected, const std::string& actual,
            const std::string& hint, ErrorCode code) {
  throw Failure(code, op + ": `" + argument + "` must " + expected + ", got " + actual + ". " + hint + ".");
}

void addErrorFunctions(Table& table) {
  table.add("Error_Destroy", [](ErrorDestroyArgs& args) { delete args.error; });
  table.add("Error_Message", [](ErrorMessageArgs& args) {
    const std::string_view message = args.error->failure.what();
    args.message = message.data();
    args.message_size = message.size();
  });
  table.add("Error_GetCode", [](ErrorGetCodeArgs& args) { args.code = static_cast<int>(args.error->failure.code()); });
}

}  // namespace snnjax::pjrt
