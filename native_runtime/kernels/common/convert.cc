// Loads and stores for each (element type, lane).
#include "kernels/common/convert.h"

namespace wb::kernels::WB_ISA {
namespace {

template <typename To, typename From>
inline To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<std::int32_t>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, std::uint32_t>) {
    return static_cast<To>(static_cast<std::int64_t>(value));  // wraps, as PyTorch on x86 does
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, std::uint64_t>) {
    return value < From{9223372036854775808.0} ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value))
                                               : static_cast<std::uint64_t>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void load(void* dst, const void* src, std::int64_t stride, std::int64_t n) {
  To* out = static_cast<To*>(dst);
  const From* in = static_cast<const From*>(src);
  if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
  } else if (stride == 0) {
    const To value = convert<To>(*in);
    for (std::int64_t i = 0; i < n; ++i) out[i] = value;
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i * stride]);
  }
}

template <typename To, typename From>
void store(void* dst, std::int64_t stride, const void* src, std::int64_t n) {
  To* out = static_cast<To*>(dst);
  const From* in = static_cast<const From*>(src);
  if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i * stride] = convert<To>(in[i]);
  }
}

struct Row {
  LoadFunction load[kComputeLanes];
  StoreFunction store[kComputeLanes];
};

template <typename T>
constexpr Row row() {
  return {{load<T, float>, load<T, double>, load<T, std::int64_t>, load<T, bool>},
          {store<T, float>, store<T, double>, store<T, std::int64_t>, store<T, bool>}};
}

// Indexed by the dtype's wire value; types that are only moved have no row.
constexpr Row kByte = row<std::uint8_t>();
constexpr Row kChar = row<std::int8_t>();
constexpr Row kShort = row<std::int16_t>();
constexpr Row kInt = row<std::int32_t>();
constexpr Row kLong = row<std::int64_t>();
constexpr Row kHalf = row<Half>();
constexpr Row kFloat = row<float>();
constexpr Row kDouble = row<double>();
constexpr Row kBool = row<bool>();
constexpr Row kBFloat16 = row<BFloat16>();
constexpr Row kUInt16 = row<std::uint16_t>();
constexpr Row kUInt32 = row<std::uint32_t>();
constexpr Row kUInt64 = row<std::uint64_t>();

const Row* find_row(ScalarType type) {
  switch (type) {
    case ScalarType::Byte: return &kByte;
    case ScalarType::Char: return &kChar;
    case ScalarType::Short: return &kShort;
    case ScalarType::Int: return &kInt;
    case ScalarType::Long: return &kLong;
    case ScalarType::Half: return &kHalf;
    case ScalarType::Float: return &kFloat;
    case ScalarType::Double: return &kDouble;
    case ScalarType::Bool: return &kBool;
    case ScalarType::BFloat16: return &kBFloat16;
    case ScalarType::UInt16: return &kUInt16;
    case ScalarType::UInt32: return &kUInt32;
    case ScalarType::UInt64: return &kUInt64;
    default: return nullptr;
  }
}

template <typename Pick>
auto pick_raw(Lane lane, Pick pick) {
  switch (lane) {
    case Lane::Raw8: return pick(std::uint8_t{});
    case Lane::Raw16: return pick(std::uint16_t{});
    case Lane::Raw32: return pick(std::uint32_t{});
    default: return pick(std::uint64_t{});
  }
}

}  // namespace

LoadFunction find_load(ScalarType type, Lane lane) {
  if (static_cast<int>(lane) >= kComputeLanes) {
    if (element_size(type) != lane_size(lane)) return nullptr;
    return pick_raw(lane, [](auto bits) -> LoadFunction { return load<decltype(bits), decltype(bits)>; });
  }
  const Row* row = find_row(type);
  return row == nullptr ? nullptr : row->load[static_cast<int>(lane)];
}

StoreFunction find_store(ScalarType type, Lane lane) {
  if (static_cast<int>(lane) >= kComputeLanes) {
    if (element_size(type) != lane_size(lane)) return nullptr;
    return pick_raw(lane, [](auto bits) -> StoreFunction { return store<decltype(bits), decltype(bits)>; });
  }
  const Row* row = find_row(type);
  return row == nullptr ? nullptr : row->store[static_cast<int>(lane)];
}

// Not a family of kernels: the build expects a table of each file.
extern const KernelTable table_common_convert;
const KernelTable table_common_convert = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
