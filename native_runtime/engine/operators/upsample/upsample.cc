// Upsample of images: bilinear ones are mixed from two rows of the image into one, then along it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "engine/names.h"
#include "engine/operators/common/epilogue.h"
#include "engine/operators/common/lanes.h"
#include "engine/operators/common/work.h"
#include "engine/operators/move/runs.h"

namespace wb::engine::WB_ISA {
namespace {

// One dimension, in the arithmetic (float) that PyTorch uses.
struct Scaling {
  std::int64_t in, out;
  float step;  // distance in the input of neighbouring outputs
  bool align;

  Scaling(std::int64_t in_, std::int64_t out_, double scale, bool align_) : in(in_), out(out_), align(align_) {
    if (align) {
      step = out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0.0F;
    } else {
      step = scale > 0 ? static_cast<float>(1.0 / scale) : static_cast<float>(in) / static_cast<float>(out);
    }
  }

  // PyTorch does not look at the factor for these two sizes.
  [[nodiscard]] std::int64_t nearest(std::int64_t o) const {
    if (out == in) return o;
    if (out == 2 * in) return o / 2;
    const float place = std::floor(static_cast<float>(o) * step);
    return place < static_cast<float>(in - 1) ? static_cast<std::int64_t>(place) : in - 1;
  }
};

// low (1 - weight) + high weight
struct Mix {
  std::int64_t low = 0, high = 0;
  float weight = 0;

  Mix(const Scaling& scaling, std::int64_t o) {
    const std::int64_t last = scaling.in - 1;
    const float half = (static_cast<float>(o) + 0.5F) * scaling.step - 0.5F;
    const float place = scaling.align ? static_cast<float>(o) * scaling.step : std::max(half, 0.0F);
    low = std::min(static_cast<std::int64_t>(std::min(place, static_cast<float>(last))), last);
    high = std::min(low + 1, last);
    weight = std::clamp(place - static_cast<float>(low), 0.0F, 1.0F);
  }
};

struct Upsampling {
  Scaling rows, columns;
  std::int64_t batch, channels;

  explicit Upsampling(const Node& node, const Shape& in, const Shape& out)
      : rows(in.sizes[1], out.sizes[1], node.attributes.scale_h, aligned(node)),
        columns(in.sizes[2], out.sizes[2], node.attributes.scale_w, aligned(node)),
        batch(in.sizes[0]),
        channels(in.sizes[3]) {}

  static bool aligned(const Node& node) {
    return node.attributes.align_corners && node.attributes.upsample_mode == Attributes::UpsampleMode::Bilinear;
  }
  [[nodiscard]] std::int64_t in_line() const { return columns.in * channels; }
  [[nodiscard]] std::int64_t out_line() const { return columns.out * channels; }
};

// out[i] = a[i] (1 - w) + b[i] w
void mix_rows(const float* a, const float* b, float w, float* out, std::int64_t n) {
  const float u = 1.0F - w;
  std::int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) store(out + i, fma(load(a + i), splat(u), load(b + i) * w));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    store_first(out + i, fma(load_first(a + i, rest), splat(u), load_first(b + i, rest) * w), rest);
  }
}

void bilinear_row(const Upsampling& up, const Mix* columns, const float* image, std::int64_t oy, float* out,
                  float* row) {
  const Mix y(up.rows, oy);
  mix_rows(image + y.low * up.in_line(), image + y.high * up.in_line(), y.weight, row, up.in_line());
  for (std::int64_t ox = 0; ox < up.columns.out; ++ox) {
    const Mix& x = columns[ox];
    if (up.channels == 1) {
      out[ox] = row[x.low] * (1.0F - x.weight) + row[x.high] * x.weight;
    } else {
      mix_rows(row + x.low * up.channels, row + x.high * up.channels, x.weight, out + ox * up.channels, up.channels);
    }
  }
}

void nearest_row(const Upsampling& up, const std::int64_t* columns, const float* line, float* out) {
  const std::size_t bytes = static_cast<std::size_t>(up.channels) * sizeof(float);
  for (std::int64_t ox = 0; ox < up.columns.out; ++ox) {
    copy_run(reinterpret_cast<std::byte*>(out + ox * up.channels),
             reinterpret_cast<const std::byte*>(line + columns[ox] * up.channels), bytes);
  }
}

Error upsample_prepare(PrepareContext& context) {
  const ScalarType in = context.operands.inputs[0].dtype;
  if (in == ScalarType::Float && context.operands.outputs[0].dtype == ScalarType::Float) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "upsampling of %s, expected float32", name_of(in));
}

std::size_t table_bytes(std::int64_t out_w) { return (static_cast<std::size_t>(out_w) * sizeof(Mix) + 63) / 64 * 64; }

Error upsample_shape(ShapeContext& context) {
  const Shape& in = context.operands.inputs[0].shape;
  const auto line = static_cast<std::size_t>(context.threads * in.sizes[2] * in.sizes[3]) * sizeof(float);
  context.scratch = table_bytes(context.operands.outputs[0].shape.sizes[2]) + line;
  return Error::Ok;
}

void upsample_run(const RunContext& context) {
  const Shape& shape = context.operands.outputs[0].shape;
  if (shape.numel() == 0) return;
  const Upsampling up(context.node, context.operands.inputs[0].shape, shape);
  const bool linear = context.node.attributes.upsample_mode == Attributes::UpsampleMode::Bilinear;
  const auto* in = context.operands.inputs[0].as<const float>();
  auto* out = context.operands.outputs[0].as<float>();
  auto* mixes = reinterpret_cast<Mix*>(context.scratch);
  auto* places = reinterpret_cast<std::int64_t*>(context.scratch);
  for (std::int64_t ox = 0; ox < up.columns.out; ++ox) {
    if (linear) {
      mixes[ox] = Mix(up.columns, ox);
    } else {
      places[ox] = up.columns.nearest(ox);
    }
  }
  const Epilogue epilogue(context);
  auto* lines = reinterpret_cast<float*>(context.scratch + table_bytes(up.columns.out));
  split(context.pool, up.batch * up.rows.out, shape.numel() * 2, [&](std::int64_t begin, std::int64_t end, int thread) {
    std::int64_t done = -1;  // the line of the source that the row before came from
    for (std::int64_t i = begin; i < end; ++i) {
      const float* image = in + i / up.rows.out * up.rows.in * up.in_line();
      float* to = out + i * up.out_line();
      if (linear) {
        bilinear_row(up, mixes, image, i % up.rows.out, to, lines + thread * up.in_line());
      } else {
        const float* line = image + up.rows.nearest(i % up.rows.out) * up.in_line();
        if (line - in == done && epilogue.empty()) {
          std::memcpy(to, to - up.out_line(), static_cast<std::size_t>(up.out_line()) * sizeof(float));
        } else {
          nearest_row(up, places, line, to);
        }
        done = line - in;
      }
      if (!epilogue.empty()) epilogue.apply(to, up.channels, i * up.columns.out, up.columns.out, 0, up.channels);
    }
  });
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(upsample_upsample, {Op::Upsample, upsample_prepare, upsample_shape, upsample_run, epilogue_fuses})
