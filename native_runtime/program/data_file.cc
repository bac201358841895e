#include "program/data_file.h"

#include <new>

#include "core/scalar_type.h"
#include "core/tensor.h"

namespace wb {
namespace {

namespace ft = ::workbench::flat_tensor;
using ull = unsigned long long;

std::string_view view(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view{} : std::string_view{text->c_str(), text->size()};
}

template <typename T>
std::uint32_t length(const flatbuffers::Vector<T>* items) {
  return items == nullptr ? 0 : items->size();
}

// Bytes of a tensor with this layout; false when the layout makes no sense.
bool layout_bytes(const ft::TensorLayout& layout, std::uint64_t* bytes) {
  const auto dtype = static_cast<ScalarType>(layout.scalar_type());
  const std::uint32_t rank = length(layout.sizes());
  if (!is_valid(dtype) || rank > static_cast<std::uint32_t>(kMaxRank) || length(layout.dim_order()) != rank)
    return false;
  std::uint64_t product = element_size(dtype);
  std::uint32_t seen = 0;
  bool empty = false;
  for (std::uint32_t d = 0; d < rank; ++d) {
    const std::int32_t size = layout.sizes()->Get(d);
    const std::uint32_t dim = layout.dim_order()->Get(d);
    if (size < 0 || dim >= rank || (seen & (1U << dim)) != 0) return false;
    seen |= 1U << dim;
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product)) {
      return false;
    }
  }
  *bytes = empty ? 0 : product;
  return true;
}

}  // namespace

Result<std::unique_ptr<DataFile>> DataFile::open(const char* path, Diagnostic& diagnostic) {
  WB_ASSIGN(DataSource source, DataSource::map_file(path, diagnostic));
  return load(std::move(source), diagnostic);
}

Result<std::unique_ptr<DataFile>> DataFile::from_bytes(std::span<const std::byte> bytes, Diagnostic& diagnostic) {
  WB_ASSIGN(DataSource source, DataSource::borrow(bytes, diagnostic));
  return load(std::move(source), diagnostic);
}

Result<std::unique_ptr<DataFile>> DataFile::load(DataSource source, Diagnostic& diagnostic) {
  std::unique_ptr<DataFile> file(new (std::nothrow) DataFile());
  if (file == nullptr) return Error::MemoryAllocationFailed;
  file->source_ = std::move(source);
  const std::span<const std::byte> bytes = file->source_.bytes();
  WB_ASSIGN(file->header_, read_data_header(bytes, diagnostic));
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  // Offsets of the root table count from the start of the file: the header stands inside the flatbuffer's prefix.
  const auto size = static_cast<std::size_t>(file->header_.flatbuffer_offset + file->header_.flatbuffer_size);
  if (size < 8 || !flatbuffers::BufferHasIdentifier(data, ft::FlatTensorIdentifier())) {
    diagnostic.add("not a data file: expected the identifier %s at byte 4", ft::FlatTensorIdentifier());
    return Error::InvalidExternalData;
  }
  flatbuffers::Verifier::Options options;
  options.max_tables = 1U << 28;
  options.max_size = size + 1;
  flatbuffers::Verifier verifier(data, size, options);
  if (!ft::VerifyFlatTensorBuffer(verifier)) {
    diagnostic.add("the flatbuffer of the data file is damaged: an offset or a size in it points outside");
    return Error::InvalidExternalData;
  }
  file->root_ = ft::GetFlatTensor(data);
  WB_TRY(file->validate(diagnostic));
  return file;
}

Error DataFile::validate(Diagnostic& diagnostic) const {
  if (root_->version() != 0) {
    diagnostic.add("data file: expected schema version 0, found %u", root_->version());
    return Error::NotSupported;
  }
  for (std::uint32_t i = 0; i < length(root_->segments()); ++i) {
    const ft::DataSegment& segment = *root_->segments()->Get(i);
    if (segment.offset() > header_.segment_size || segment.size() > header_.segment_size - segment.offset()) {
      diagnostic.add("data file: segment %u has %llu bytes at %llu, but all segments together have %llu bytes", i,
                     static_cast<ull>(segment.size()), static_cast<ull>(segment.offset()),
                     static_cast<ull>(header_.segment_size));
      return Error::InvalidExternalData;
    }
  }
  for (std::uint32_t i = 0; i < length(root_->named_data()); ++i) {
    const ft::NamedData& entry = *root_->named_data()->Get(i);
    if (entry.key() == nullptr || entry.segment_index() >= length(root_->segments())) {
      diagnostic.add("data file: entry %u has no key, or is in segment %u of %u", i, entry.segment_index(),
                     length(root_->segments()));
      return Error::InvalidExternalData;
    }
    const std::uint64_t size = root_->segments()->Get(entry.segment_index())->size();
    std::uint64_t needed = 0;
    if (entry.tensor_layout() == nullptr) continue;
    if (!layout_bytes(*entry.tensor_layout(), &needed) || needed > size) {
      diagnostic.add("data file: the layout of %s makes no sense, or needs more than its %llu bytes",
                     entry.key()->c_str(), static_cast<ull>(size));
      return Error::InvalidExternalData;
    }
  }
  return Error::Ok;
}

const ft::NamedData* DataFile::find(std::string_view key) const {
  for (std::uint32_t i = 0; i < length(root_->named_data()); ++i) {
    const ft::NamedData* entry = root_->named_data()->Get(i);
    if (view(entry->key()) == key) return entry;
  }
  return nullptr;
}

Result<std::span<const std::byte>> DataFile::get(std::string_view key) const {
  const ft::NamedData* entry = find(key);
  if (entry == nullptr) return Error::NotFound;
  const ft::DataSegment& segment = *root_->segments()->Get(entry->segment_index());
  return source_.bytes().subspan(static_cast<std::size_t>(header_.segment_base + segment.offset()),
                                 static_cast<std::size_t>(segment.size()));
}

const ft::TensorLayout* DataFile::layout(std::string_view key) const {
  const ft::NamedData* entry = find(key);
  return entry == nullptr ? nullptr : entry->tensor_layout();
}

std::size_t DataFile::count() const { return length(root_->named_data()); }

std::string_view DataFile::key(std::size_t index) const {
  return view(root_->named_data()->Get(static_cast<flatbuffers::uoffset_t>(index))->key());
}

}  // namespace wb
