#include "program/source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace wb {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

DataSource& DataSource::operator=(DataSource&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(owned_, other.owned_);
  return *this;
}

DataSource::~DataSource() {
  if (mapped_) ::munmap(const_cast<std::byte*>(data_), size_);
  if (owned_) std::free(const_cast<std::byte*>(data_));
}

Result<DataSource> DataSource::map_file(const char* path, Diagnostic& diagnostic) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    diagnostic.add("can't open %s: %s", path, std::strerror(errno));
    return errno == ENOENT ? Error::NotFound : Error::AccessFailed;
  }
  struct stat info = {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    diagnostic.add("%s is not a regular file", path);
    ::close(file);
    return Error::AccessFailed;
  }
  DataSource source;
  source.size_ = static_cast<std::size_t>(info.st_size);
  if (source.size_ == 0) {
    diagnostic.add("%s is empty", path);
    ::close(file);
    return Error::InvalidProgram;
  }
  void* mapped = ::mmap(nullptr, source.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  const int mmap_errno = errno;
  ::close(file);
  if (mapped == MAP_FAILED) {
    diagnostic.add("can't map %s: %s", path, std::strerror(mmap_errno));
    source.size_ = 0;
    return Error::AccessFailed;
  }
  source.data_ = static_cast<const std::byte*>(mapped);
  source.mapped_ = true;
  return source;
}

Result<DataSource> DataSource::borrow(std::span<const std::byte> bytes, Diagnostic& diagnostic) {
  DataSource source;
  source.size_ = bytes.size();
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 16 == 0) {
    source.data_ = bytes.data();
    return source;
  }
  const std::size_t padded = (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  void* copy = std::aligned_alloc(kAlignment, padded == 0 ? kAlignment : padded);
  if (copy == nullptr) {
    diagnostic.add("no memory for a copy of %zu bytes", bytes.size());
    return Error::MemoryAllocationFailed;
  }
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  source.data_ = static_cast<const std::byte*>(copy);
  source.owned_ = true;
  return source;
}

void DataSource::release(std::span<const std::byte> part) const {
  if (!mapped_ || part.empty()) return;
  const auto at = reinterpret_cast<std::uintptr_t>(part.data());
  const auto first = reinterpret_cast<std::uintptr_t>(data_);
  if (at < first || at - first > size_ || part.size() > size_ - (at - first)) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace wb
