// Packed weights, shared: by the contexts of a plan, and by the plans of one model for different
// picture sizes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ferry::cpu {

// Bytes on a 64-byte boundary.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t size);  // zeroed; data() is null when memory ran out
  ~AlignedBytes();
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

// Safe to use from several threads; the cache keeps nothing alive by itself.
class WeightCache {
 public:
  // The bytes made for `key` before, if somebody still holds them, else `fill`ed new ones. The key
  // must say everything that the bytes depend on. Null when memory ran out.
  std::shared_ptr<const AlignedBytes> get(const std::string& key, size_t bytes,
                                          const std::function<void(std::byte*)>& fill);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const AlignedBytes>> entries_;  // guarded by mutex_
};

}  // namespace ferry::cpu
