#include "backends/cpu/weights.h"

#include <cstring>
#include <new>

namespace ferry::cpu {
namespace {
constexpr std::align_val_t kAlignment{64};
}

AlignedBytes::AlignedBytes(size_t size)
    : data_(static_cast<std::byte*>(::operator new(size + (size == 0), kAlignment, std::nothrow))),
      size_(size) {
  if (data_ != nullptr) std::memset(data_, 0, size);
}

AlignedBytes::~AlignedBytes() {
  if (data_ != nullptr) ::operator delete(data_, kAlignment);
}

std::shared_ptr<const AlignedBytes> WeightCache::get(const std::string& key, size_t bytes,
                                                     const std::function<void(std::byte*)>& fill) {
  const std::scoped_lock lock(mutex_);
  std::weak_ptr<const AlignedBytes>& entry = entries_[key];
  if (auto found = entry.lock()) return found;
  auto made = std::make_shared<AlignedBytes>(bytes);
  if (made->data() == nullptr) return nullptr;
  fill(made->data());
  entry = made;
  return made;
}

}  // namespace ferry::cpu
