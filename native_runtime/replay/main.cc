// wb_replay FILE...
//
// Runs what the files of records hold on this machine and compares. Prints what differs, then the instruction set and
// the counts; returns 1 if anything differed, 2 if a file could not be read.
#include <cstdio>

#include "kernels/select.h"
#include "replay/record.h"

namespace {

constexpr std::int64_t kOperator = 1, kProgram = 2;  // kinds of records

}  // namespace

int main(int argc, char** argv) {
  std::int64_t operators = 0;
  std::int64_t programs = 0;
  std::int64_t bad = 0;
  for (int i = 1; i < argc; ++i) {
    wb::replay::Reader reader;
    if (!reader.open(argv[i])) {
      std::printf("%s: can't be read\n", argv[i]);
      return 2;
    }
    while (!reader.at_end()) {
      const std::int64_t kind = reader.integer();
      bool good = false;
      if (kind == kOperator) {
        good = wb::replay::replay_operator(reader, operators++);
      } else if (kind == kProgram) {
        good = wb::replay::replay_program(reader, programs++);
      }
      if (reader.failed() || (kind != kOperator && kind != kProgram)) {
        std::printf("%s: no file of records\n", argv[i]);
        return 2;
      }
      if (!good) ++bad;
    }
  }
  std::printf("%s: %lld operators, %lld programs, %lld bad\n", wb::kernels::active_isa(),
              static_cast<long long>(operators), static_cast<long long>(programs), static_cast<long long>(bad));
  return bad == 0 ? 0 : 1;
}
