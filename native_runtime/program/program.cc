#include "program/program.h"

#include <new>

#include "program/validate.h"

namespace wb {

Result<std::unique_ptr<Program>> Program::open(const char* path, Diagnostic& diagnostic) {
  WB_ASSIGN(DataSource source, DataSource::map_file(path, diagnostic));
  return load(std::move(source), diagnostic);
}

Result<std::unique_ptr<Program>> Program::from_bytes(std::span<const std::byte> bytes, Diagnostic& diagnostic) {
  WB_ASSIGN(DataSource source, DataSource::borrow(bytes, diagnostic));
  return load(std::move(source), diagnostic);
}

Result<std::unique_ptr<Program>> Program::load(DataSource source, Diagnostic& diagnostic) {
  std::unique_ptr<Program> program(new (std::nothrow) Program());
  if (program == nullptr) return Error::MemoryAllocationFailed;
  program->source_ = std::move(source);
  const std::span<const std::byte> file = program->source_.bytes();
  WB_ASSIGN(program->header_, read_program_header(file, diagnostic));

  const auto* data = reinterpret_cast<const std::uint8_t*>(file.data());
  const auto size = static_cast<std::size_t>(program->header_.flatbuffer_size);
  if (size < 8 || !flatbuffers::BufferHasIdentifier(data, fb::ProgramIdentifier())) {
    diagnostic.add("not a program: expected the identifier %s at byte 4", fb::ProgramIdentifier());
    return Error::InvalidProgram;
  }
  flatbuffers::Verifier::Options options;
  options.max_depth = 64;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(size / 4 < 1U << 30 ? size / 4 + 64 : 1U << 30);
  options.max_size = size + 1;
  flatbuffers::Verifier verifier(data, size, options);
  if (!fb::VerifyProgramBuffer(verifier)) {
    diagnostic.add("the flatbuffer of %zu bytes is damaged: an offset or a size in it points outside", size);
    return Error::InvalidProgram;
  }
  program->root_ = fb::GetProgram(data);
  WB_TRY(validate_data(*program, program->header_, diagnostic));
  for (std::size_t i = 0; i < program->method_count(); ++i) WB_TRY(validate_method(*program, i, diagnostic));
  return program;
}

std::size_t Program::method_count() const { return count(root_->execution_plan()); }

const fb::ExecutionPlan& Program::method_at(std::size_t index) const {
  return *root_->execution_plan()->Get(static_cast<flatbuffers::uoffset_t>(index));
}

const fb::ExecutionPlan* Program::method(std::string_view name) const {
  for (std::size_t i = 0; i < method_count(); ++i) {
    if (view(method_at(i).name()) == name) return &method_at(i);
  }
  return nullptr;
}

std::size_t Program::segment_count() const { return count(root_->segments()); }

std::span<const std::byte> Program::segment(std::uint32_t index) const {
  const fb::DataSegment& segment = *root_->segments()->Get(index);
  return source_.bytes().subspan(static_cast<std::size_t>(header_.segment_base + segment.offset()),
                                 static_cast<std::size_t>(segment.size()));
}

std::span<const std::byte> Program::constant(std::uint32_t data_buffer_idx) const {
  if (count(root_->constant_buffer()) != 0) {
    const auto* storage = root_->constant_buffer()->Get(data_buffer_idx)->storage();
    if (storage == nullptr) return {};
    return {reinterpret_cast<const std::byte*>(storage->data()), storage->size()};
  }
  const fb::SubsegmentOffsets& constants = *root_->constant_segment();
  return segment(constants.segment_index())
      .subspan(static_cast<std::size_t>(constants.offsets()->Get(data_buffer_idx)));
}

std::span<const std::byte> Program::mutable_data(std::uint64_t segments_idx, std::uint32_t data_buffer_idx) const {
  const auto& offsets = *root_->mutable_data_segments()->Get(static_cast<flatbuffers::uoffset_t>(segments_idx));
  return segment(offsets.segment_index()).subspan(static_cast<std::size_t>(offsets.offsets()->Get(data_buffer_idx)));
}

std::span<const std::byte> Program::delegate_data(const fb::BackendDelegate& delegate) const {
  const fb::BackendDelegateDataReference& reference = *delegate.processed();
  if (reference.location() == fb::DataLocation::SEGMENT) return segment(reference.index());
  const auto* data = root_->backend_delegate_data()->Get(reference.index())->data();
  if (data == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(data->data()), data->size()};
}

Result<std::span<const std::byte>> Program::get(std::string_view key) const {
  for (std::uint32_t i = 0; i < count(root_->named_data()); ++i) {
    const fb::NamedData& entry = *root_->named_data()->Get(i);
    if (view(entry.key()) == key) return segment(entry.segment_index());
  }
  return Error::NotFound;
}

std::size_t Program::named_count() const { return count(root_->named_data()); }

std::string_view Program::named_key(std::size_t index) const {
  return view(root_->named_data()->Get(static_cast<flatbuffers::uoffset_t>(index))->key());
}

}  // namespace wb
