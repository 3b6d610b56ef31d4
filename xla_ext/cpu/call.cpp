#include "call.hpp"

namespace snnjax {

ffi::TypeId Site::id = XLA_FFI_UNKNOWN_TYPE_ID;

namespace {

// Makes the type of sites known to XLA, which must be before it learns of a handler with one. It does so here, and not
// in Python: jaxlib makes types known after handlers if both are registered before there is a device.
void registerSite(const XLA_FFI_Api* api) {
  static constexpr ffi::TypeInfo kInfo = ffi::MakeTypeInfo<Site>();
  [[maybe_unused]] static XLA_FFI_Error* const error =
      ffi::Ffi::RegisterTypeId(api, "snnjax_site", &Site::id, &kInfo);  // without it XLA refuses the handlers
}

}  // namespace

const ffi::Ffi* readsAttributes(const Target& target, const XLA_FFI_Api* api) {
  registerSite(api);
  const auto read = [&target](ffi::Dictionary attributes) -> ffi::ErrorOr<std::unique_ptr<Site>> {
    std::unique_ptr<Site> site;
    const ffi::Error error = guarded(target.op, [&] { site = target.read(Attributes(target.op, attributes)); });
    if (error.failure()) return ffi::Unexpected(error);
    return site;
  };
  return ffi::Ffi::BindInstantiate().Attrs().To(read).release();
}

const ffi::Ffi* runs(const Target& target) {
  const auto run = [&target](Site* site, ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                             ffi::Dictionary) {
    return guarded(target.op, [&] {
      target.run(*site, Operands(target.op, operands), Results(target.op, results), threadsOf(pool));
    });
  };
  return ffi::Ffi::Bind()
      .Ctx<ffi::State<Site>>()
      .Ctx<ffi::ThreadPool>()
      .RemainingArgs()
      .RemainingRets()
      .Attrs()
      .To(run)
      .release();
}

Attributes::Attributes(const char* op, ffi::Dictionary attributes) : op_(op), attributes_(attributes) {
  const auto digest = attributes.get<std::string_view>("schema");
  if (!digest.has_error() && *digest == schema::kDigest) return;
  throw misfit(op, "schema", "be " + std::string(schema::kDigest) + ", that of the kernels",
               digest.has_error() ? "none" : std::string(*digest));
}

std::vector<schema::Place> Attributes::places(std::span<const schema::Leaf> leaves, const char* names,
                                              std::size_t layers) const {
  return schema::placesOf(leaves, get<std::string_view>(names), layers, refusal(op_));
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
extern "C" SNNJAX_EXPORT const char* const snnjax_schema = snnjax::schema::kDigest.data();
