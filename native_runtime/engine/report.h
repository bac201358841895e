// Where the core says what is wrong with a graph.
#pragma once

#include <cstdarg>

#include "core/host.h"

namespace wb::engine {

struct Reporter {
  const Host* host = nullptr;

  __attribute__((format(printf, 3, 4))) Error fail(Error error, const char* format, ...) const {
    std::va_list list;
    va_start(list, format);
    host->vreport(host->self, format, list);
    va_end(list);
    return error;
  }
};

}  // namespace wb::engine
