#include "call.hpp"

namespace snnjax {

ffi::TypeId Site::id = XLA_FFI_UNKNOWN_TYPE_ID;

void registerSite(const XLA_FFI_Api* api) {
  static constexpr ffi::TypeInfo kInfo = ffi::MakeTypeInfo<Site>();
  [[maybe_unused]] static XLA_FFI_Error* const error =
      ffi::Ffi::RegisterTypeId(api, "snnjax_site", &Site::id, &kInfo);  // without it XLA refuses the handlers
}

Attributes::Attributes(const char* op, ffi::Dictionary attributes) : op_(op), attributes_(attributes) {
  const auto digest = attributes.get<std::string_view>("schema");
  if (!digest.has_error() && *digest == schema::kDigest) return;
  throw misfit(op, "schema", "be " + std::string(schema::kDigest) + ", that of the kernels",
               digest.has_error() ? "none" : std::string(*digest));
}

Types typesOf(schema::Numbers numbers, ffi::DataType floats, Index neurons) {
  using enum schema::Numbers;
  switch (numbers) {
    case kFloats:
      if (floats != ffi::DataType::INVALID) return {floats};
      return kFloating;
    case kSums: return kWide;
    case kMembranes: return {floats, ffi::BF16};
    case kInputs: return {ffi::F32, ffi::BF16, ffi::U8, ffi::PRED};
    case kValues: return kFloating;
    case kGivenIds: return {ffi::U16, ffi::S32};
    case kIds: return {idType(neurons)};
    case kCounts: return {ffi::S32};
    case kBits: return {ffi::U8};
    case kFlags: return {ffi::PRED};
    case kInt8: break;
  }
  return {ffi::S8};
}

}  // namespace snnjax

// What snnjax/_targets.py compares before it registers the handlers.
extern "C" const char* const snnjax_schema = snnjax::schema::kDigest.data();
