#include "engine/passes/draft.h"

namespace wb::engine {

Error run_passes(Draft& draft, bool fuse) {
  WB_TRY(fold_half(draft));
  split_programs(draft);
  WB_TRY(settle_moves(draft));
  if (fuse) {
    remove_dead_code(draft);
    fold_quantized(draft);
    merge_reshapes(draft);
    unfold_products(draft);
    merge_transposes(draft);
    sink_transposes(draft);
    assign_layout(draft);
    merge_transposes(draft);
    sink_transposes(draft);
    absorb_transposes(draft);
    free_transposes(draft);
    unfold_products(draft);
    fold_constants(draft);
    forward_outputs(draft);
    fuse_pad(draft);
    fuse_pointwise(draft);
  }
  WB_TRY(legalize_quantized(draft));
  remove_dead_code(draft);
  return Error::Ok;
}

}  // namespace wb::engine
