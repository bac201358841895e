// Embeddings with weights of 8, 4 or 2 bits, a scale (and zero point) for each row or group of a row.
#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {
namespace {

// Of four bits the high half comes first, of two bits the lowest pair; stored values are shifted by half their range.
float unpack(const std::uint8_t* row, std::int64_t i, int bits) {
  if (bits == 4) return static_cast<float>((row[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15) - 8);
  return static_cast<float>((row[i / 4] >> (i % 4 * 2) & 3) - 2);
}

// Arguments: weight, scales, zero points?, quant_min, quant_max, indices, (dtype), out.
template <int bits, bool kDtype>
struct Embedding {
  struct State {
    bool ready = false;
  };
  static constexpr std::uint32_t kOut = kDtype ? 7 : 6;

  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, kDtype ? "ttTiit*t" : "ttTiitt"));
    WB_TRY(expect_index_dtype(context, 5));
    const ScalarType weight = context.tensor(0).dtype;
    if (weight != ScalarType::Byte && !(bits == 8 && weight == ScalarType::Char)) {
      return context.fail(Error::InvalidType, "argument 0 (weight): %s", name_of(weight));
    }
    if (!is_floating(context.tensor(1).dtype) || !is_floating(context.tensor(kOut).dtype)) {
      return context.fail(Error::InvalidType, "scales and output must be floating point");
    }
    if (context.optional_tensor(2) != nullptr) WB_TRY(expect_computable(context, 2));
    return Error::Ok;
  }

  static Error plan(KernelContext& context, State& /*state*/) {
    const Tensor& weight = context.tensor(0);
    const Tensor& scales = context.tensor(1);
    const Tensor* zeros = context.optional_tensor(2);
    const Tensor& indices = context.tensor(5);
    Tensor& out = context.tensor(kOut);
    if (weight.rank != 2 || indices.rank >= kMaxRank || scales.rank < 1 || scales.rank > 2 ||
        scales.sizes[0] != weight.sizes[0] || (zeros != nullptr && !same_sizes(*zeros, scales))) {
      return context.fail(Error::InvalidArgument, "the sizes of weight, scales and zero points don't match");
    }
    const std::int64_t width = std::int64_t{weight.sizes[1]} * (8 / bits);
    const std::int64_t groups = scales.rank == 2 ? scales.sizes[1] : 1;
    if (groups == 0 || width % groups != 0 || width > INT32_MAX) {
      return context.fail(Error::InvalidArgument, "%lld groups for rows of %lld", static_cast<long long>(groups),
                          static_cast<long long>(width));
    }
    Shape shape;
    shape.assign(indices);
    shape.sizes[shape.rank++] = static_cast<std::int32_t>(width);
    WB_TRY(context.resize(out, shape.span()));
    const bool contiguous = weight.is_contiguous() && scales.is_contiguous() && indices.is_contiguous() &&
                            out.is_contiguous() && (zeros == nullptr || zeros->is_contiguous());
    return contiguous ? Error::Ok : context.fail(Error::NotSupported, "contiguous tensors are needed");
  }

  static void row(const Tensor& weight, std::int64_t index, std::int64_t begin, std::int64_t n, float scale, float zero,
                  float* block) {
    const auto* data = weight.const_data<std::uint8_t>() + index * weight.sizes[1];
    if constexpr (bits == 8) {
      find_load(weight.dtype, Lane::F32)(block, data + begin, 1, n);
    } else {
      for (std::int64_t i = 0; i < n; ++i) block[i] = unpack(data, begin + i, bits);
    }
    for (std::int64_t i = 0; i < n; ++i) block[i] = (block[i] - zero) * scale;
  }

  static float at(const Tensor& tensor, std::int64_t i) {
    float value = 0;
    find_load(tensor.dtype, Lane::F32)(
        &value, static_cast<const std::byte*>(tensor.data) + i * static_cast<std::int64_t>(element_size(tensor.dtype)),
        1, 1);
    return value;
  }

  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& weight = context.tensor(0);
    const Tensor& scales = context.tensor(1);
    const Tensor* zeros = context.optional_tensor(2);
    const Tensor& indices = context.tensor(5);
    const Tensor& out = context.tensor(kOut);
    const std::int64_t width = out.sizes[out.rank - 1];
    const std::int64_t groups = scales.rank == 2 ? scales.sizes[1] : 1;
    const std::int64_t group = width / groups;
    const StoreFunction store = find_store(out.dtype, Lane::F32);
    const auto element = static_cast<std::int64_t>(element_size(out.dtype));
    const std::int64_t count = indices.numel();
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t index = indices.dtype == ScalarType::Long ? indices.const_data<std::int64_t>()[k]
                                                                   : indices.const_data<std::int32_t>()[k];
      if (index < 0 || index >= weight.sizes[0]) {
        return context.fail(Error::InvalidArgument, "argument 5 (indices): %lld is out of range for %d rows",
                            static_cast<long long>(index), weight.sizes[0]);
      }
      for (std::int64_t g = 0; g < groups; ++g) {
        const float scale = at(scales, index * groups + g);
        const float zero = zeros == nullptr ? 0.0F : at(*zeros, index * groups + g);
        for (std::int64_t begin = 0; begin < group; begin += kBlock) {
          const std::int64_t n = group - begin < kBlock ? group - begin : kBlock;
          float block[kBlock];
          row(weight, index, g * group + begin, n, scale, zero, block);
          store(static_cast<std::byte*>(out.data) + (k * width + g * group + begin) * element, 1, block, n);
        }
      }
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(quantized_embedding, planned<Embedding<8, false>>("quantized_decomposed::embedding_byte.out"),
           planned<Embedding<8, true>>("quantized_decomposed::embedding_byte.dtype_out"),
           planned<Embedding<4, false>>("quantized_decomposed::embedding_4bit.out"),
           planned<Embedding<4, true>>("quantized_decomposed::embedding_4bit.dtype_out"),
           planned<Embedding<2, false>>("quantized_decomposed::embedding_2bit.out"),
           planned<Embedding<2, true>>("quantized_decomposed::embedding_2bit.dtype_out"))
