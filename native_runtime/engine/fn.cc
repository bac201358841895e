#include "engine/graph.h"

namespace wb::engine {

int arity_of(Fn fn) {
  if (fn < Fn::Add) return 1;
  return fn < Fn::Where ? 2 : 3;
}

}  // namespace wb::engine
