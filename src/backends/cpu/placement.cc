#include "backends/cpu/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace ferry::cpu {
namespace {

// When a value comes to be and when it is read for the last time, in step indices.
struct Life {
  int defined = std::numeric_limits<int>::max();
  int last = -2;
  int written =
      -2;  // the step whose kernel stores its bytes; -2: none (a split's output, a concat's)
  int in_place = -1;  // the value that its writer may overwrite
};

// Values that lie in one buffer, each at a channel offset.
struct Group {
  struct Member {
    int value;
    int64_t channel;
  };
  std::vector<Member> members;
  int64_t low = 0, high = 0;  // channels covered
};

class Placer {
 public:
  Placer(const std::vector<PlacedValue>& values, const std::vector<PlacedStep>& steps)
      : values_(values), steps_(steps), lives_(values.size()), group_of_(values.size(), -1) {}

  Placement run() {
    find_lives();
    for (size_t v = 0; v < values_.size(); ++v) {
      if (!values_[v].needed) continue;
      group_of_[v] = static_cast<int>(groups_.size());
      groups_.push_back({{{static_cast<int>(v), 0}}, 0, values_[v].channels});
    }
    place_splits();
    place_concats();
    place_in_place();
    return pack();
  }

 private:
  void find_lives() {
    const int end = static_cast<int>(steps_.size());
    for (size_t v = 0; v < values_.size(); ++v) {
      if (values_[v].input) lives_[v].defined = lives_[v].written = -1;
      if (values_[v].output || values_[v].input)
        lives_[v].last = end;  // inputs may be run again as they are
    }
    for (int s = 0; s < end; ++s) {
      const PlacedStep& step = steps_[static_cast<size_t>(s)];
      for (const int v : step.reads) life(v).last = std::max(life(v).last, s);
      for (const int v : step.writes) {
        life(v).defined = s;
        life(v).last = std::max(life(v).last, s);
        // Until a merge has made them views, concat and split copy: they write like any other step.
        life(v).written = s;
        life(v).in_place = step.in_place;
      }
    }
  }

  void place_splits() {
    for (const PlacedStep& step : steps_) {
      if (step.kind != PlacedStep::Kind::kSplit) continue;
      int64_t channel = 0;
      for (const int part : step.writes) {
        const int copied_at =
            std::exchange(life(part).written, -2);  // a view: written with the whole
        if (!merge(part, step.reads[0], channel)) life(part).written = copied_at;
        channel += value(part).channels;
      }
    }
  }

  void place_concats() {
    for (size_t s = 0; s < steps_.size(); ++s) {
      const PlacedStep& step = steps_[s];
      if (step.kind != PlacedStep::Kind::kConcat) continue;
      const int whole = step.writes[0];
      const std::vector<Group> groups_before = groups_;
      const std::vector<int> group_of_before = group_of_;
      life(whole).written = -2;  // the writers of its parts write it
      std::vector<Group::Member> copied;
      int64_t channel = 0;
      for (const int part : step.reads) {
        if (!merge(part, whole, channel)) copied.push_back({part, channel});
        channel += value(part).channels;
      }
      if (copied.empty()) continue;
      // The step copies these parts itself; should that destroy anything that lies in the same
      // buffer, all are copied.
      life(whole).written = static_cast<int>(s);
      for (const Group::Member& part : copied) {
        if (!copy_is_safe(whole, part, static_cast<int>(s))) {
          groups_ = groups_before;
          group_of_ = group_of_before;
          break;
        }
      }
    }
  }

  bool copy_is_safe(int whole, const Group::Member& part, int step) {
    const int64_t low = channel_in_group(whole) + part.channel,
                  high = low + value(part.value).channels;
    for (const Group::Member& member :
         groups_[static_cast<size_t>(group_of_[static_cast<size_t>(whole)])].members) {
      const bool apart =
          member.channel + value(member.value).channels <= low || high <= member.channel;
      if (apart || member.value == whole) continue;
      if (life(member.value).defined <= step && step <= life(member.value).last) return false;
    }
    return true;
  }

  void place_in_place() {
    for (const PlacedStep& step : steps_) {
      if (step.in_place >= 0 && step.kind == PlacedStep::Kind::kCompute)
        merge(step.writes[0], step.in_place, 0);
    }
  }

  // Puts the group of `inner` into the group of `outer`, with `inner` `channel` channels behind
  // `outer`'s first. Nothing changes, and false, when they must stay apart.
  bool merge(int inner, int outer, int64_t channel) {
    if (!mergeable(inner) || !mergeable(outer)) return false;
    if (value(inner).pixels != value(outer).pixels) return false;
    if (value(inner).storage != value(outer).storage) return false;
    const int from = group_of_[static_cast<size_t>(inner)],
              to = group_of_[static_cast<size_t>(outer)];
    const int64_t delta = channel_in_group(outer) + channel - channel_in_group(inner);
    if (from == to) return delta == 0;
    Group& a = groups_[static_cast<size_t>(from)];
    Group& b = groups_[static_cast<size_t>(to)];
    const int64_t low = std::min(a.low + delta, b.low), high = std::max(a.high + delta, b.high);
    if (high - low > std::max(a.high - a.low, b.high - b.low))
      return false;  // one must contain the other
    for (const Group::Member& x : a.members) {
      for (const Group::Member& y : b.members) {
        if (conflict({x.value, x.channel + delta}, y)) return false;
      }
    }
    for (const Group::Member& x : a.members) {
      b.members.push_back({x.value, x.channel + delta});
      group_of_[static_cast<size_t>(x.value)] = to;
    }
    b.low = low;
    b.high = high;
    a.members.clear();
    return true;
  }

  bool mergeable(int v) const { return value(v).picture && value(v).needed && !value(v).pinned; }

  int64_t channel_in_group(int v) const {
    const Group& group = groups_[static_cast<size_t>(group_of_[static_cast<size_t>(v)])];
    for (const Group::Member& member : group.members) {
      if (member.value == v) return member.channel;
    }
    return 0;
  }

  // Would writing one of them destroy the other while it is still read?
  bool conflict(const Group::Member& x, const Group::Member& y) const {
    if (x.channel + value(x.value).channels <= y.channel ||
        y.channel + value(y.value).channels <= x.channel) {
      return false;
    }
    return overwrites(x, y) || overwrites(y, x);
  }

  bool overwrites(const Group::Member& writer, const Group::Member& victim) const {
    const Life& w = lives_[static_cast<size_t>(writer.value)];
    const Life& v = lives_[static_cast<size_t>(victim.value)];
    if (w.written < -1 || w.written <= v.defined || w.written > v.last) {
      // Two writes at one step into the same channels collide too (a step's several outputs).
      return w.written >= 0 && w.written == v.defined && v.written == w.written;
    }
    if (w.written < v.last) return true;
    // The victim is read for the last time by the very step that writes: only element by element in
    // the same place.
    return !(w.in_place == victim.value && writer.channel == victim.channel &&
             value(writer.value).channels == value(victim.value).channels);
  }

  Placement pack() {
    Placement out;
    out.spots.resize(values_.size());
    struct Buffer {
      int64_t bytes = 0;
      int first = std::numeric_limits<int>::max(), last = -2;
      int64_t offset = -1;
    };
    std::vector<Buffer> buffers;
    for (const Group& group : groups_) {
      if (group.members.empty()) continue;
      Buffer buffer;
      for (const Group::Member& member : group.members) {
        const PlacedValue& v = value(member.value);
        const Life& l = lives_[static_cast<size_t>(member.value)];
        const int64_t stride = group.high - group.low;
        out.spots[static_cast<size_t>(member.value)] = {static_cast<int>(buffers.size()),
                                                        v.picture ? member.channel - group.low : 0,
                                                        v.picture ? stride : 0};
        buffer.bytes = v.picture ? v.pixels * stride * v.element_bytes : v.bytes;
        buffer.first = std::min(buffer.first, l.defined);
        buffer.last = std::max(buffer.last, l.last);
      }
      buffer.bytes = (std::max<int64_t>(buffer.bytes, 1) + kArenaAlignment - 1) / kArenaAlignment *
                     kArenaAlignment;
      buffers.push_back(buffer);
    }
    // Largest first, each at the lowest offset where it meets no buffer that lives at the same
    // time.
    std::vector<size_t> order(buffers.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
    std::vector<size_t> placed;  // sorted by offset
    for (const size_t i : order) {
      Buffer& buffer = buffers[i];
      int64_t offset = 0;
      for (const size_t j : placed) {
        const Buffer& other = buffers[j];
        if (other.last < buffer.first || buffer.last < other.first) continue;
        if (offset + buffer.bytes <= other.offset) break;
        offset = std::max(offset, other.offset + other.bytes);
      }
      buffer.offset = offset;
      placed.insert(std::upper_bound(
                        placed.begin(), placed.end(), i,
                        [&](size_t a, size_t b) { return buffers[a].offset < buffers[b].offset; }),
                    i);
      out.arena_bytes = std::max(out.arena_bytes, offset + buffer.bytes);
    }
    for (const Buffer& buffer : buffers) out.buffer_offsets.push_back(buffer.offset);
    for (int s = -1; s <= static_cast<int>(steps_.size()); ++s) {
      int64_t live = 0;
      for (const Buffer& buffer : buffers)
        live += buffer.first <= s && s <= buffer.last ? buffer.bytes : 0;
      out.peak_bytes = std::max(out.peak_bytes, live);
    }
    return out;
  }

  const PlacedValue& value(int v) const { return values_[static_cast<size_t>(v)]; }
  Life& life(int v) { return lives_[static_cast<size_t>(v)]; }

  const std::vector<PlacedValue>& values_;
  const std::vector<PlacedStep>& steps_;
  std::vector<Life> lives_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
};

}  // namespace

Placement place(const std::vector<PlacedValue>& values, const std::vector<PlacedStep>& steps) {
  return Placer(values, steps).run();
}

}  // namespace ferry::cpu
