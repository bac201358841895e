// Unit test of the demo backends' native half: a blob runs, and no blob, however broken, does harm.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "backends/demo/blob.h"
#include "core/register.h"

// What the demo needs of the runtime.
namespace wb {
std::uint64_t now_ns() { return 0; }
}  // namespace wb

namespace {

using wb::Error;
using wb::demo::BlobHeader;
using wb::demo::BlobInstruction;
using wb::demo::BlobValue;
using wb::demo::Opcode;
using wb::demo::ValueKind;

int failures = 0;

#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                  \
    }                                                                              \
  } while (false)

struct Memory {
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  std::size_t left = std::size_t{1} << 20;
  wb::Diagnostic diagnostic;
};

void* allocate(void* self, std::size_t bytes, std::size_t) {
  auto& memory = *static_cast<Memory*>(self);
  if (bytes > memory.left) return nullptr;
  memory.left -= bytes;
  memory.blocks.push_back(std::make_unique<std::byte[]>(bytes));
  return memory.blocks.back().get();
}

void report(void* self, const char* format, std::va_list args) {
  static_cast<Memory*>(self)->diagnostic.vadd(format, args);
}

Error resize(void*, wb::Tensor& tensor, const std::int32_t* sizes, int rank) {
  if (rank != tensor.rank) return Error::InvalidArgument;
  for (int d = 0; d < rank; ++d) {
    if (tensor.sizes[d] != sizes[d]) return Error::InvalidArgument;
  }
  return Error::Ok;
}

struct NoData final : wb::NamedData {
  [[nodiscard]] wb::Result<std::span<const std::byte>> get(std::string_view) const override { return Error::NotFound; }
};

// (a + 2 b) * c, with a (2, 3), b (3), c a constant (2, 1).
std::vector<std::byte> make_blob() {
  const BlobHeader header{wb::demo::kMagic, wb::demo::kVersion, 5, 2, 1, 2, 2 * sizeof(float)};
  const BlobValue values[] = {{ValueKind::Input, 2, 0, 0, 0, {2, 3}},
                              {ValueKind::Input, 1, 0, 0, 0, {3}},
                              {ValueKind::Output, 2, 0, 0, 0, {2, 3}},
                              {ValueKind::Temporary, 2, 0, 0, 0, {2, 3}},
                              {ValueKind::Constant, 2, 0, 0, 0, {2, 1}}};
  const BlobInstruction instructions[] = {{Opcode::Add, 2, 0, {0, 1, 0}, 3, 2.0F, 0},
                                          {Opcode::Mul, 2, 1, {3, 4, 0}, 2, 1.0F, 0}};
  const float data[] = {10.0F, 100.0F};
  std::vector<std::byte> blob(sizeof header + sizeof values + sizeof instructions + sizeof data);
  std::byte* out = blob.data();
  const auto append = [&out](const void* source, std::size_t size) {
    std::memcpy(out, source, size);
    out += size;
  };
  append(&header, sizeof header);
  append(values, sizeof values);
  append(instructions, sizeof instructions);
  append(data, sizeof data);
  return blob;
}

wb::Backend* find(std::string_view id) {
  const wb::Registration* entry = wb::Registration::first();
  while (entry != nullptr && entry->backend()->id() != id) entry = entry->next();
  return entry == nullptr ? nullptr : entry->backend();
}

struct Run {
  Error init = Error::Ok;
  Error execute = Error::Ok;
  float out[6] = {};
  Memory memory;
};

void run(Run& run, wb::Backend& backend, std::span<const std::byte> blob,
         std::span<const wb::CompileSpecRef> specs = {}) {
  const wb::Host host{&run.memory, allocate, nullptr, resize, report};
  const NoData no_data;
  wb::BackendInitContext init{&host, &no_data, "forward"};
  wb::DelegateHandle* handle = nullptr;
  // An exact copy on the heap, so that a sanitizer sees each byte that is read past its end.
  const std::unique_ptr<std::byte[]> copy(new std::byte[blob.size()]);
  if (!blob.empty()) std::memcpy(copy.get(), blob.data(), blob.size());
  run.init = backend.init(init, {copy.get(), blob.size()}, specs, &handle);
  if (run.init != Error::Ok) return;
  float a[] = {1, 2, 3, 4, 5, 6};
  float b[] = {1, 0, -1};
  std::int32_t sizes_a[] = {2, 3};
  std::int32_t sizes_b[] = {3};
  std::int64_t strides[] = {3, 1};
  const std::uint8_t order[] = {0, 1};
  wb::Tensor tensors[] = {{a, sizes_a, strides, order, sizeof a, wb::ScalarType::Float, 2},
                          {b, sizes_b, strides + 1, order, sizeof b, wb::ScalarType::Float, 1},
                          {run.out, sizes_a, strides, order, sizeof run.out, wb::ScalarType::Float, 2}};
  wb::EValue values[3];
  wb::EValue* args[3];
  for (int i = 0; i < 3; ++i) {
    values[i].tag = wb::Tag::Tensor;
    values[i].payload.tensor = &tensors[i];
    args[i] = &values[i];
  }
  wb::BackendExecuteContext context{&host};
  run.execute = backend.execute(context, handle, args);
  backend.destroy(handle);
}

void test_runs() {
  Run result;
  run(result, *find("AddMulBackendDemo"), make_blob());
  EXPECT(result.init == Error::Ok && result.execute == Error::Ok);
  const float expected[] = {30, 20, 10, 600, 500, 400};
  for (int i = 0; i < 6; ++i) EXPECT(result.out[i] == expected[i]);
}

void test_refuses_what_is_not_its_own() {
  Run result;
  run(result, *find("BackendWithCompilerDemo"), make_blob());
  EXPECT(result.init == Error::NotSupported);  // it has no mul
  EXPECT(std::strstr(result.memory.diagnostic.text(), "opcode 3") != nullptr);
}

void test_max_value_limits_the_rank() {
  const std::byte one[] = {std::byte{1}};
  const wb::CompileSpecRef specs[] = {{"max_value", one}};
  Run result;
  run(result, *find("AddMulBackendDemo"), make_blob(), specs);
  EXPECT(result.init == Error::InvalidProgram);
  const std::byte huge[] = {std::byte{200}};
  const wb::CompileSpecRef wrong[] = {{"max_value", huge}};
  Run other;
  run(other, *find("AddMulBackendDemo"), make_blob(), wrong);
  EXPECT(other.init == Error::InvalidArgument);
}

void test_no_memory_is_an_error() {
  Run result;
  result.memory.left = 300;
  run(result, *find("AddMulBackendDemo"), make_blob());
  EXPECT(result.init == Error::MemoryAllocationFailed);
}

void test_truncation() {
  const std::vector<std::byte> blob = make_blob();
  for (std::size_t size = 0; size < blob.size(); ++size) {
    Run result;
    run(result, *find("AddMulBackendDemo"), {blob.data(), size});
    EXPECT(result.init != Error::Ok && !result.memory.diagnostic.empty());
  }
}

// Whatever is written anywhere: an error, or a run that stays within its memory (which a sanitizer watches).
void test_mutations(int count) {
  std::mt19937 random(1);
  const std::vector<std::byte> original = make_blob();
  const std::uint32_t values[] = {0, 1, 2, 3, 4, 5, 7, 8, 0x7fffffffU, 0x80000000U, 0xffffffffU, 0x10000U};
  for (int i = 0; i < count; ++i) {
    std::vector<std::byte> blob = original;
    for (std::uint32_t n = 1 + random() % 3; n != 0; --n) {
      const std::size_t at = random() % (blob.size() / 4) * 4;
      if (random() % 2 == 0) {
        blob[at + random() % 4] ^= static_cast<std::byte>(1U << random() % 8);
      } else {
        std::memcpy(blob.data() + at, &values[random() % std::size(values)], 4);
      }
    }
    Run result;
    run(result, *find("AddMulBackendDemo"), blob);
    EXPECT(result.init == Error::Ok || !result.memory.diagnostic.empty());
  }
}

}  // namespace

int main(int argc, char** argv) {
  test_runs();
  test_refuses_what_is_not_its_own();
  test_max_value_limits_the_rank();
  test_no_memory_is_an_error();
  test_truncation();
  test_mutations(argc > 1 ? std::atoi(argv[1]) : 20000);
  if (failures == 0) std::puts("ok");
  return failures == 0 ? 0 : 1;
}
