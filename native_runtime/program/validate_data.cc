#include "program/program.h"
#include "program/validate.h"

namespace wb {
namespace {

using ull = unsigned long long;

Error check_segments(const fb::Program& root, const ExtendedHeader& header, Diagnostic& diagnostic) {
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < count(root.segments()); ++i) {
    const fb::DataSegment* segment = root.segments()->Get(i);
    const std::uint64_t offset = segment->offset();
    const std::uint64_t size = segment->size();
    if (offset > header.segment_size || size > header.segment_size - offset) {
      diagnostic.add("segment %u: %llu bytes at %llu, but all segments together have %llu bytes", i,
                     static_cast<ull>(size), static_cast<ull>(offset), static_cast<ull>(header.segment_size));
      return Error::InvalidProgram;
    }
    if (size != 0 && offset < end) {
      diagnostic.add("segment %u begins at %llu, inside the one before it, which ends at %llu", i,
                     static_cast<ull>(offset), static_cast<ull>(end));
      return Error::InvalidProgram;
    }
    if (size != 0) end = offset + size;
  }
  return Error::Ok;
}

Error check_offsets(const fb::Program& root, const fb::SubsegmentOffsets& offsets, const char* what,
                    Diagnostic& diagnostic) {
  if (count(offsets.offsets()) == 0) return Error::Ok;
  if (!is_aligned(offsets.offsets())) {
    diagnostic.add("%s: its offsets are not aligned to 8 bytes", what);
    return Error::InvalidProgram;
  }
  if (offsets.segment_index() >= count(root.segments())) {
    diagnostic.add("%s: segment %u of %u", what, offsets.segment_index(), count(root.segments()));
    return Error::InvalidProgram;
  }
  const std::uint64_t size = root.segments()->Get(offsets.segment_index())->size();
  for (std::uint32_t i = 0; i < count(offsets.offsets()); ++i) {
    if (offsets.offsets()->Get(i) > size) {
      diagnostic.add("%s: entry %u begins at %llu, behind the %llu bytes of its segment", what, i,
                     static_cast<ull>(offsets.offsets()->Get(i)), static_cast<ull>(size));
      return Error::InvalidProgram;
    }
  }
  return Error::Ok;
}

Error check_named(const fb::Program& root, Diagnostic& diagnostic) {
  for (std::uint32_t i = 0; i < count(root.named_data()); ++i) {
    const fb::NamedData* entry = root.named_data()->Get(i);
    if (entry->key() == nullptr || entry->segment_index() >= count(root.segments())) {
      diagnostic.add("named data %u: no key, or segment %u of %u", i, entry->segment_index(), count(root.segments()));
      return Error::InvalidProgram;
    }
  }
  return Error::Ok;
}

Error check_method_names(const fb::Program& root, Diagnostic& diagnostic) {
  const std::uint32_t methods = count(root.execution_plan());
  if (methods == 0) {
    diagnostic.add("the program has no methods");
    return Error::InvalidProgram;
  }
  for (std::uint32_t i = 0; i < methods; ++i) {
    const std::string_view name = view(root.execution_plan()->Get(i)->name());
    if (name.empty()) {
      diagnostic.add("method %u has no name", i);
      return Error::InvalidProgram;
    }
    for (std::uint32_t j = 0; j < i; ++j) {
      if (view(root.execution_plan()->Get(j)->name()) == name) {
        diagnostic.add("two methods have the name %.*s", static_cast<int>(name.size()), name.data());
        return Error::InvalidProgram;
      }
    }
  }
  return Error::Ok;
}

}  // namespace

Error validate_data(const Program& program, const ExtendedHeader& header, Diagnostic& diagnostic) {
  const fb::Program& root = program.root();
  if (root.version() != 0) {
    diagnostic.add("expected schema version 0, found %u", root.version());
    return Error::NotSupported;
  }
  // A file without segment data has no extended header; segments that it names all the same are empty, which
  // check_segments sees to.
  WB_TRY(check_segments(root, header, diagnostic));
  if (root.constant_segment() != nullptr) {
    WB_TRY(check_offsets(root, *root.constant_segment(), "constant_segment", diagnostic));
  }
  for (std::uint32_t i = 0; i < count(root.mutable_data_segments()); ++i) {
    WB_TRY(check_offsets(root, *root.mutable_data_segments()->Get(i), "mutable_data_segments", diagnostic));
  }
  WB_TRY(check_named(root, diagnostic));
  return check_method_names(root, diagnostic);
}

}  // namespace wb
