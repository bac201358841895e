#include "layout.h"

#include "anchors.h"
#include "graph.h"
#include "order.h"
#include "place.h"
#include "ranks.h"
#include "route.h"

namespace wb::layout {

Status layout(const Input& input, Output& output) {
  if (const Status status = check(input); !status) return status;
  const bool kept = has_anchors(input);
  AnchoredRows rows;
  if (kept) {
    rows = assign_anchored_rows(input);
  } else {
    rows.of = assign_rows(input);
  }
  Layered g = build(input, rows.of);
  Places places;
  if (kept) {
    places = place_anchored(g, input, rows);
  } else {
    order_rows(g, input.options.sweeps);
    places.x = place(g, input.options.gap_x);
  }
  route(g, places, input.options, output);
  return {};
}

}  // namespace wb::layout
