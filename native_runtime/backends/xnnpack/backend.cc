// `XnnpackBackend`: runs graphs of the XNNPACK delegate on the engine.
#include <cstdint>
#include <new>

#include "backends/xnnpack/builder.h"
#include "core/register.h"
#include "engine/engine.h"

namespace wb::xnnpack {
namespace {

struct Delegate {
  engine::Program* program = nullptr;
  std::uint32_t arguments = 0;            // of the call, at least
  std::uint32_t passed_count = 0;         // of the engine's program
  const std::uint32_t* places = nullptr;  // which argument of the call each of them is
  EValue** passed = nullptr;
};

Result<Delegate*> make_delegate(const BackendInitContext& context, const Builder& builder) {
  const std::size_t count = builder.arguments.size();
  void* memory = context.allocate(sizeof(Delegate), alignof(Delegate));
  auto* places = static_cast<std::uint32_t*>(context.allocate((count + 1) * sizeof(std::uint32_t)));
  auto* passed = static_cast<EValue**>(context.allocate((count + 1) * sizeof(EValue*)));
  if (memory == nullptr || places == nullptr || passed == nullptr) {
    return context.fail(Error::MemoryAllocationFailed, "no memory for a delegate of %zu arguments", count);
  }
  auto* delegate = new (memory) Delegate;
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = builder.arguments[i];
    if (places[i] >= delegate->arguments) delegate->arguments = places[i] + 1;
  }
  delegate->passed_count = static_cast<std::uint32_t>(count);
  delegate->places = places;
  delegate->passed = passed;
  return delegate;
}

class XnnpackBackend final : public Backend {
 public:
  [[nodiscard]] const char* id() const override { return "XnnpackBackend"; }

  // Compile specs of this backend say how it was lowered; nothing follows from them here.
  Error init(BackendInitContext& context, std::span<const std::byte> processed, std::span<const CompileSpecRef>,
             DelegateHandle** handle) override {
    WB_ASSIGN(const Blob blob, open_blob(context, processed));
    Builder builder(context, blob);
    WB_TRY(builder.read_values());
    WB_TRY(builder.read_nodes());
    builder.finish();
    WB_ASSIGN(Delegate * delegate, make_delegate(context, builder));
    WB_ASSIGN(delegate->program, engine::compile(context, std::move(builder.graph), {}));
    // Older blobs hold their constants, some of which the program reads in place.
    context.release_processed = blob.has_header && blob.constants.empty();
    *handle = delegate;
    return Error::Ok;
  }

  Error execute(BackendExecuteContext& context, DelegateHandle* handle, std::span<EValue* const> args) override {
    const Delegate& delegate = *static_cast<Delegate*>(handle);
    if (args.size() < delegate.arguments) {
      return context.fail(Error::InvalidArgument, "expected at least %u arguments, found %zu", delegate.arguments,
                          args.size());
    }
    for (std::uint32_t i = 0; i < delegate.passed_count; ++i) delegate.passed[i] = args[delegate.places[i]];
    return engine::execute(context, *delegate.program, {delegate.passed, delegate.passed_count});
  }

  void destroy(DelegateHandle* handle) override { engine::destroy(static_cast<Delegate*>(handle)->program); }
};

constinit XnnpackBackend xnnpack_backend;

WB_REGISTER_BACKEND(xnnpack_backend);

}  // namespace
}  // namespace wb::xnnpack
