#include "pjrt/errors.hpp"

#include "pjrt/table.hpp"

namespace snnjax::pjrt {

Failure failureOf(const std::exception& exception) {
  const auto* error = dynamic_cast<const executor::Error*>(&exception);
  return {error == nullptr ? ErrorCode::kInternal : error->code(), exception.what()};
}

Error* toError(const std::optional<Failure>& failure) {
  return failure.has_value() ? new Error{.failure = *failure} : nullptr;
}

void refuse(const std::string& op, const std::string& argument, const std::string& expected, const std::string& actual,
            const std::string& way_out) {
  throw executor::Error(ErrorCode::kInvalidArgument,
                        op + ": `" + argument + "` must " + expected + ", got " + actual + ". " + way_out + ".");
}

void addErrorFunctions(Table& table) {
  table.add("Error_Destroy", [](ErrorDestroyArgs& args) { delete args.error; });
  table.add("Error_Message", [](ErrorMessageArgs& args) {
    args.message = args.error->failure.message.data();
    args.message_size = args.error->failure.message.size();
  });
  table.add("Error_GetCode", [](ErrorGetCodeArgs& args) { args.code = static_cast<int>(args.error->failure.code); });
}

}  // namespace snnjax::pjrt
