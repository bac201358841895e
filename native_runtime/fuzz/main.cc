// wb_fuzz [--runs N] [--seconds S] [--seed X] [--only R] [--save FILE] FILE...
//
// Changes the given valid files (.pte, .ptd) and loads and executes what comes out. Run r changes file r modulo the
// number of files with the seed X + r, so that `--only r` repeats one run. Ends with a count of outcomes; a crash, a
// sanitizer's report or a run of more than 20 seconds ends it with the number of the run and a status other than 0.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include "fuzz/mutate.h"
#include "fuzz/try.h"

namespace {

constexpr unsigned kSecondsPerRun = 20;

struct Seed {
  const char* path = nullptr;
  bool is_data = false;
  wb::fuzz::Mutator mutator;
};

long long current_run = -1;
const char* current_path = "";

void say_run() {
  char text[512];
  const int length = std::snprintf(text, sizeof text, "wb_fuzz: in run %lld of %s\n", current_run, current_path);
  if (length > 0) {
    const ssize_t ignored = ::write(STDERR_FILENO, text, static_cast<std::size_t>(length));
    (void)ignored;
  }
}

void on_alarm(int) {
  say_run();
  std::_Exit(3);
}

bool read_file(const char* path, std::vector<std::byte>* bytes) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return false;
  std::byte block[65536];
  for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, file)) != 0;)
    bytes->insert(bytes->end(), block, block + n);
  std::fclose(file);
  return true;
}

// The bytes in memory of exactly their size, aligned as a mapped file is: a sanitizer sees a read one byte behind them.
wb::fuzz::Outcome try_exact(const Seed& seed, const std::vector<std::byte>& bytes, const wb::fuzz::Limits& limits) {
  void* exact = nullptr;
  if (::posix_memalign(&exact, 64, bytes.empty() ? 1 : bytes.size()) != 0) std::abort();
  if (!bytes.empty()) std::memcpy(exact, bytes.data(), bytes.size());
  const std::span<const std::byte> span{static_cast<const std::byte*>(exact), bytes.size()};
  const auto outcome = seed.is_data ? wb::fuzz::try_data_file(span) : wb::fuzz::try_program(span, limits);
  std::free(exact);
  return outcome;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());  // NOLINT
#endif

int main(int argc, char** argv) {
  long long runs = 10000;
  long long seconds = 60;
  long long only = -1;
  unsigned long long base = 1;
  const char* save = nullptr;
  std::vector<Seed> seeds;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--runs") {
      runs = std::atoll(value), ++i;
    } else if (argument == "--seconds") {
      seconds = std::atoll(value), ++i;
    } else if (argument == "--seed") {
      base = std::strtoull(value, nullptr, 10), ++i;
    } else if (argument == "--only") {
      only = std::atoll(value), ++i;
    } else if (argument == "--save") {
      save = value, ++i;
    } else {
      std::vector<std::byte> bytes;
      if (!read_file(argv[i], &bytes)) {
        std::fprintf(stderr, "wb_fuzz: can't read %s\n", argv[i]);
        return 2;
      }
      seeds.push_back({argv[i], argument.ends_with(".ptd"), wb::fuzz::Mutator(std::move(bytes))});
    }
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: wb_fuzz [--runs N] [--seconds S] [--seed X] [--only R] [--save FILE] FILE...\n");
    return 2;
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(&say_run);
#endif
  ::signal(SIGALRM, &on_alarm);
  const std::time_t start = std::time(nullptr);
  long long outcomes[4] = {};
  long long done = 0;
  for (long long run = only < 0 ? 0 : only; run < (only < 0 ? runs : only + 1); ++run, ++done) {
    if (std::time(nullptr) - start >= seconds) break;
    const Seed& seed = seeds[static_cast<std::size_t>(run) % seeds.size()];
    current_run = run;
    current_path = seed.path;
    const std::vector<std::byte> bytes = seed.mutator.mutate(base + static_cast<unsigned long long>(run));
    if (save != nullptr) {
      std::FILE* file = std::fopen(save, "wb");
      if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) return 2;
      std::fclose(file);
    }
    ::alarm(kSecondsPerRun);
    ++outcomes[static_cast<int>(try_exact(seed, bytes, {}))];
    ::alarm(0);
  }
  std::printf("%lld runs in %lld s: %lld refused, %lld not loaded, %lld failed to execute, %lld executed\n", done,
              static_cast<long long>(std::time(nullptr) - start), outcomes[0], outcomes[1], outcomes[2], outcomes[3]);
  return 0;
}
