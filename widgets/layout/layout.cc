#include "layout.h"

#include "graph.h"
#include "order.h"
#include "place.h"
#include "ranks.h"
#include "route.h"

namespace wb::layout {

Status layout(const Input& input, Output& output) {
  if (const Status status = check(input); !status) return status;
  Layered g = build(input, assign_rows(input));
  order_rows(g, input.options.sweeps);
  Places places;
  places.x = place(g, input.options.gap_x);
  route(g, places, input.options, output);
  return {};
}

}  // namespace wb::layout
