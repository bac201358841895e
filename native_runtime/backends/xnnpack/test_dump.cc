// wb_xnnpack_dump FILE.pte: the graphs that the XNNPACK delegates of a program become, as text.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "backends/xnnpack/builder.h"
#include "engine/dump.h"
#include "executor/loader.h"
#include "program/program.h"

namespace {

using wb::Error;

// Memory that lives until the end of the process, as a method's does until its end.
void* allocate(void*, std::size_t bytes, std::size_t alignment) {
  return std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}

void report(void* self, const char* format, std::va_list args) {
  static_cast<wb::Diagnostic*>(self)->vadd(format, args);
}

Error print(const wb::BackendInitContext& context, std::span<const std::byte> processed) {
  WB_ASSIGN(const wb::xnnpack::Blob blob, wb::xnnpack::open_blob(context, processed));
  wb::xnnpack::Builder builder(context, blob);
  WB_TRY(builder.read_values());
  WB_TRY(builder.read_nodes());
  builder.finish();
  std::fputs(wb::engine::dump(builder.graph).c_str(), stdout);
  return Error::Ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: wb_xnnpack_dump FILE.pte\n");
    return 2;
  }
  wb::Diagnostic diagnostic;
  auto program = wb::Program::open(argv[1], diagnostic);
  Error error = program.error();
  const wb::Host host{.self = &diagnostic, .allocate = allocate, .vreport = report};
  for (std::size_t m = 0; error == Error::Ok && m < (*program)->method_count(); ++m) {
    const auto& plan = (*program)->method_at(m);
    const wb::MergedData data({}, **program);
    for (std::uint32_t d = 0; error == Error::Ok && d < wb::count(plan.delegates()); ++d) {
      const auto& record = *plan.delegates()->Get(d);
      if (wb::view(record.id()) != "XnnpackBackend") continue;
      std::printf("%s, delegate %u\n", plan.name()->c_str(), d);
      wb::BackendInitContext context;
      context.host = &host;
      context.named_data = &data;
      error = print(context, (*program)->delegate_data(record));
    }
  }
  if (error != Error::Ok) std::fprintf(stderr, "%s: %s\n", wb::name_of(error), diagnostic.text());
  return error == Error::Ok ? 0 : 1;
}
