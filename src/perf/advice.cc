// The rules, one function each, and the table of them at the end. Thresholds stand at the top, with
// what they are for; the summaries of the table print them.
#include "perf/advice.h"

#include <fmt/format.h>

#include <algorithm>

namespace ferry::perf {

namespace {

// A stage beside the network is worth work from this part of a picture's time on.
constexpr double kDecodeShare = 0.25;
constexpr double kLetterboxShare = 0.15;
constexpr double kPostShare = 0.15;  // head and NMS
constexpr double kDrawShare = 0.25;
constexpr double kManyBoxes = 1000;  // candidates a picture, from where NMS is what takes the time

// Data that only moves, and layers on the reference loops, as parts of the network's time.
constexpr double kCopyShare = 0.08;
constexpr double kSlowPathShare = 0.01;

// A layer shorter than this that reaches less than this of its roof waits for threads to meet: one
// meeting costs 1 to 5 µs, and both ends of a layer are ragged.
constexpr double kSmallLayerMs = 0.05;
constexpr double kSmallLayerRoof = 0.3;
constexpr double kSmallShare = 0.15;

// Layers limited by memory count when they reach this much of that roof; below, something else
// holds them back.
constexpr double kMemoryRoof = 0.5;
constexpr double kMemoryShare = 0.15;

// A layer limited by arithmetic that stays below this part of the roof, of at least this share.
constexpr double kFarFromRoof = 0.4;
constexpr double kFarShare = 0.03;

// A network that reaches this much of its roofs, and takes this part of a picture's time, is at the
// end of what this arithmetic can do.
constexpr double kNearRoof = 0.6;
constexpr double kNearShare = 0.6;

// Latency varies when the 99th percentile is this far above the median, over enough runs for there
// to be one.
constexpr double kJitter = 1.25;
constexpr int64_t kJitterRuns = 20;
constexpr double kJitterMs = 0.5;  // and by so much: below, one interrupt is enough
// What counts as seen beside the slow runs: this many processors of others' more than beside the
// rest, twice the switches and one a run more, this much time stolen.
constexpr double kOthersMore = 0.1;
constexpr double kSwitchesTimes = 2, kSwitchesMore = 1;
constexpr double kSteal = 1;  // percent
// The same instructions between runs took this much longer at worst than at best.
constexpr double kBurstSpread = 1.1;

// A machine on which others use this many processors all the while measures them too.
constexpr double kBusy = 0.25;

// Growth that is no allocator settling down: steady, and at least this much altogether.
constexpr double kGrowthBytes = 2e6;
constexpr int64_t kGrowthRuns = 20;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// "a; b; and 3 more": the layers that take most of the time, with what `text` says of each.
template <class Text>
std::string heaviest(std::vector<const LayerFact*> layers, const Text& text, size_t most = 3) {
  std::ranges::stable_sort(layers, std::greater(), [](const LayerFact* l) { return l->share; });
  std::string out;
  for (size_t i = 0; i < std::min(most, layers.size()); ++i) {
    out += (i == 0 ? "" : "; ") + text(*layers[i]);
  }
  if (layers.size() > most) out += fmt::format("; and {} more", layers.size() - most);
  return out;
}

template <class Claim>
std::vector<const LayerFact*> layers_that(const Evidence& e, const Claim& claim) {
  std::vector<const LayerFact*> found;
  for (const LayerFact& layer : e.layers) {
    if (claim(layer)) found.push_back(&layer);
  }
  return found;
}

double share_of(const std::vector<const LayerFact*>& layers) {
  double share = 0;
  for (const LayerFact* layer : layers) share += layer->share;
  return share;
}

std::string name_of(const LayerFact& layer) {
  return layer.node.empty() ? layer.op : fmt::format("{} ({})", layer.node, layer.op);
}

// Others use the processors all the while: layers are then slower than they are to blame for.
bool busy(const Evidence& e) { return e.others_rest > kBusy; }

// --- around the network ---

std::optional<Advice> decode_bound(const Evidence& e) {
  if (e.decode <= kDecodeShare) return std::nullopt;
  return Advice{
      .bound = "input: decoding",
      .finding = fmt::format("Decoding takes {} of a picture's {:.1f} ms, the network {}.",
                             percent(e.decode), e.picture_ms, percent(e.network)),
      .remedy = fmt::format(
          "Decode in other threads or processes than the network runs in: one ferry a part of the "
          "pictures, with fewer --threads each. Store pictures smaller: {:.1f} megapixels are "
          "decoded for an input of {:.1f}. From cameras, take the substream.",
          static_cast<double>(e.source_pixels) / 1e6, static_cast<double>(e.input_pixels) / 1e6),
      .weight = e.decode};
}

std::optional<Advice> preprocess_bound(const Evidence& e) {
  if (e.letterbox <= kLetterboxShare) return std::nullopt;
  return Advice{
      .bound = "input: preprocessing",
      .finding = fmt::format("Resizing into the input takes {} of a picture's {:.1f} ms.",
                             percent(e.letterbox), e.picture_ms),
      .remedy = fmt::format(
          "Hand over pictures that are nearer to the input's size: {:.1f} megapixels come in, "
          "{:.1f} are used. At exactly that size nothing is resized.",
          static_cast<double>(e.source_pixels) / 1e6, static_cast<double>(e.input_pixels) / 1e6),
      .weight = e.letterbox};
}

std::optional<Advice> postprocess_bound(const Evidence& e) {
  // What is found in a made-up picture says nothing.
  const double post = e.head + (e.made_up ? 0 : e.nms);
  if (post <= kPostShare) return std::nullopt;
  std::string remedy;
  if (!e.made_up && e.boxes > kManyBoxes && e.nms > e.head) {
    remedy =
        "Fewer candidates: a higher --conf-thres, or --classes for the ones you need. A model "
        "that finds so many is not trained for these pictures.";
  } else if (!e.raw_heads) {
    remedy =
        "Open the .pt itself, or export with raw heads (ferry export --raw-heads): ferry then "
        "decodes only the cells that pass the threshold.";
  } else {
    remedy = "A higher --conf-thres leaves fewer cells to decode; so does a smaller --imgsz.";
  }
  return Advice{
      .bound = "post-processing",
      .finding = fmt::format("Decoding the head takes {} and NMS {} of a picture's {:.1f} ms, with "
                             "{:.0f} candidates a picture.",
                             percent(e.head), percent(e.nms), e.picture_ms, e.boxes),
      .remedy = std::move(remedy),
      .weight = post};
}

std::optional<Advice> draw_bound(const Evidence& e) {
  if (e.made_up || e.draw <= kDrawShare) return std::nullopt;
  return Advice{.bound = "drawing",
                .finding = fmt::format("Drawing boxes takes {} of a picture's {:.1f} ms.",
                                       percent(e.draw), e.picture_ms),
                .remedy =
                    "Leave pictures out where nobody looks at them (--nosave, with --save-txt "
                    "or --json), or labels (--hide-labels).",
                .weight = e.draw};
}

// --- inside the network ---

std::optional<Advice> slow_path(const Evidence& e) {
  const auto slow = layers_that(e, [](const LayerFact& l) { return !l.why_slow.empty(); });
  const double share = share_of(slow);
  if (share <= kSlowPathShare) return std::nullopt;
  const auto text = [](const LayerFact& l) {
    return fmt::format("{} {:.2f} ms, since {}", name_of(l), l.ms, l.why_slow);
  };
  return Advice{
      .bound = "an op off the fast path",
      .finding = fmt::format(
          "{} of the network's time is in {} on the reference loops, on one thread: {}.",
          percent(share), slow.size() == 1 ? "a layer" : fmt::format("{} layers", slow.size()),
          heaviest(slow, text)),
      .remedy =
          "Where such ops come from an exporter, another export has none of them (YOLOv5's "
          "own export.py, ferry export, or the .pt itself). Where they are the model's design, "
          "as attention is, they cost what you see: a smaller --imgsz, or a model without them. "
          "A pass that was left out with --disable-pass may be the cause, too.",
      .weight = share * e.network};
}

std::optional<Advice> copy_bound(const Evidence& e) {
  double share = 0;
  for (const LayerFact& layer : e.layers) share += layer.copy_share;
  if (share <= kCopyShare) return std::nullopt;
  const auto copies = layers_that(e, [](const LayerFact& l) { return l.copy_share > 0; });
  return Advice{
      .bound = "copies",
      .finding = fmt::format("{} of the network's time only moves data: {}.", percent(share),
                             heaviest(copies,
                                      [](const LayerFact& l) {
                                        return fmt::format("{} {:.2f} ms", name_of(l), l.ms);
                                      })),
      .remedy =
          "Slices, transposes and concatenations along other axes than the channels cannot "
          "be placed without a copy. A .pt or an ONNX file from YOLOv5's own exporter has "
          "none of them; `ferry inspect --graph` shows where they come from.",
      .weight = share * e.network};
}

std::optional<Advice> thread_bound(const Evidence& e) {
  if (e.threads <= 1 || e.network_of_roof <= 0 || busy(e)) return std::nullopt;
  const auto small = layers_that(
      e, [](const LayerFact& l) { return l.ms < kSmallLayerMs && l.of_roof < kSmallLayerRoof; });
  const double share = share_of(small);
  if (share <= kSmallShare) return std::nullopt;
  return Advice{
      .bound = "launches and threads",
      .finding = fmt::format(
          "{} of {} layers are shorter than {:.0f} µs and reach less than {} of their roof; they "
          "take {} of the network's time. {} threads meet at the end of each.",
          small.size(), e.layers.size(), 1e3 * kSmallLayerMs, percent(kSmallLayerRoof),
          percent(share), e.threads),
      .remedy = fmt::format(
          "Give each run more work or fewer threads: {}--threads 1 and as many streams or "
          "processes as cores (compare with ferry bench --threads 1 --streams {}).",
          e.batch == 1 ? "--batch-size 4 where latency allows, or " : "", e.threads),
      .weight = share * e.network};
}

std::optional<Advice> memory_bound(const Evidence& e) {
  const auto bound = layers_that(
      e, [](const LayerFact& l) { return l.bound == Bound::kMemory && l.of_roof >= kMemoryRoof; });
  const double share = share_of(bound);
  if (share <= kMemoryShare) return std::nullopt;
  return Advice{
      .bound = "memory bandwidth",
      .finding = fmt::format(
          "{} of the network's time is in layers that move data as fast as memory gives it: {}.",
          percent(share),
          heaviest(bound,
                   [](const LayerFact& l) {
                     return fmt::format("{} {:.2f} ms at {} of the roof", name_of(l), l.ms,
                                        percent(l.of_roof));
                   })),
      .remedy = fmt::format(
          "More threads do not help these. Less data does: {}a smaller --imgsz, a model in fewer "
          "bytes a number (INT8). Other processes that use memory slow them down; see whether the "
          "machine's memory channels are all filled.",
          e.batch > 1 ? "a smaller --batch-size, so that activations stay in the caches, " : ""),
      .weight = share * e.network};
}

std::optional<Advice> far_from_roof(const Evidence& e) {
  if (busy(e)) return std::nullopt;
  const auto far = layers_that(e, [](const LayerFact& l) {
    return l.bound == Bound::kCompute && l.why_slow.empty() && l.share >= kFarShare &&
           l.of_roof > 0 && l.of_roof < kFarFromRoof;
  });
  if (far.empty()) return std::nullopt;
  double gain = 0;
  for (const LayerFact* layer : far) gain += layer->share * (1 - layer->of_roof);
  return Advice{
      .bound = "kernels below the roof",
      .finding = fmt::format(
          "{} of the network's time is in layers with enough arithmetic that reach less than {} "
          "of the roof: {}.",
          percent(share_of(far)), percent(kFarFromRoof),
          heaviest(far,
                   [](const LayerFact& l) {
                     return fmt::format("{} {:.2f} ms at {} by {}", name_of(l), l.ms,
                                        percent(l.of_roof), l.kernel);
                   })),
      .remedy = e.tuned ? "They were tuned already: these shapes suit no kernel well. Channels in "
                          "multiples of 16 and a larger input or batch do."
                        : "Try --tune: it times every kernel on this machine instead of going by "
                          "a rule.",
      .weight = gain * e.network};
}

std::optional<Advice> compute_bound(const Evidence& e) {
  if (e.network < kNearShare || e.network_of_roof < kNearRoof) return std::nullopt;
  return Advice{
      .bound = "arithmetic",
      .finding = fmt::format(
          "The network takes {} of a picture's time and runs at {} of the roof of its layers: "
          "nothing around it is in the way.",
          percent(e.network), percent(e.network_of_roof)),
      .remedy =
          "Only less arithmetic helps: a smaller --imgsz, a smaller model (s to n), pruning, "
          "or cheaper arithmetic (INT8). ferry val says what each costs in accuracy.",
      .weight = e.network * e.network_of_roof};
}

std::optional<Advice> too_many_threads(const Evidence& e) {
  if (e.threads <= e.cores) return std::nullopt;
  return Advice{
      .bound = "more threads than processors",
      .finding = fmt::format("{} threads share {} processors ({}): at the end of every layer some "
                             "wait for a thread that does not run.",
                             e.threads, e.cores, e.processors),
      .remedy = fmt::format("--threads {}.", e.cores),
      .weight = 1};
}

// --- the machine ---

bool varies(const Evidence& e) {
  return e.runs >= kJitterRuns && e.median_ms > 0 && e.p99_ms > kJitter * e.median_ms &&
         e.p99_ms > e.median_ms + kJitterMs;
}

bool burst_varies(const Evidence& e) {
  return e.burst_low > 0 && e.burst_high > kBurstSpread * e.burst_low;
}

bool disturbed(const Evidence& e) {
  return e.others_slow > kBusy || e.others_slow > e.others_rest + kOthersMore ||
         (e.switches_slow > kSwitchesTimes * e.switches_rest &&
          e.switches_slow > e.switches_rest + kSwitchesMore) ||
         e.steal_percent > kSteal;
}

std::string spread_text(const Evidence& e) {
  return fmt::format(
      "The network takes {:.2f} ms in the median, {:.2f} at the 99th percentile, {:.2f} at worst; "
      "{} of {} runs are slower than {:.1f} times the median.",
      e.median_ms, e.p99_ms, e.max_ms, e.slow_runs, e.runs, kSlowRun);
}

std::string beside_text(const Evidence& e) {
  return fmt::format(
      " Beside slow runs others used {:.2f} processors and this process lost its own {:.1f} times "
      "a run; beside the rest {:.2f} and {:.1f} times. {:.1f} % of the time was stolen.",
      e.others_slow, e.switches_slow, e.others_rest, e.switches_rest, e.steal_percent);
}

std::string burst_text(const Evidence& e) {
  if (e.burst_low <= 0) return "";
  return fmt::format(" The same multiply-adds between runs ran at {:.0f} to {:.0f} GFLOP/s.",
                     e.burst_low, e.burst_high);
}

double time_lost(const Evidence& e) { return std::min(1.0, 1 - e.median_ms / e.p99_ms); }

// "`taskset -c 0,1 ferry …`"
std::string pin_text(const Evidence& e) {
  return fmt::format("`taskset -c {} ferry …`", e.processors.empty() ? "0,1" : e.processors);
}

std::optional<Advice> noisy_neighbour(const Evidence& e) {
  if (!varies(e) || !disturbed(e)) return std::nullopt;
  std::string remedy = fmt::format(
      "Keep the processors to yourself: {} and the other programs elsewhere (taskset, cpuset, "
      "systemd's CPUAffinity); `top` names them. One --threads fewer than there are processors "
      "leaves them room.",
      pin_text(e));
  if (e.steal_percent > kSteal) {
    remedy += " Stolen time goes to other virtual machines: only the host can pin or move them.";
  }
  return Advice{.bound = "latency: a noisy neighbour",
                .finding = spread_text(e) + beside_text(e),
                .remedy = std::move(remedy),
                .weight = time_lost(e)};
}

std::optional<Advice> unsteady_frequency(const Evidence& e) {
  if (!varies(e) || disturbed(e) || !burst_varies(e)) return std::nullopt;
  std::string remedy;
  if (!e.governor.empty() && e.governor != "performance") {
    remedy = fmt::format("The frequency governor is '{}': cpupower frequency-set -g performance. ",
                         e.governor);
  } else if (e.governor.empty()) {
    remedy = fmt::format(
        "{}: ask there for a fixed frequency. ",
        e.virtualisation.empty()
            ? "The system does not show its frequency governor; the host or the firmware sets it"
            : fmt::format("Under {} the host sets the frequency", e.virtualisation));
  }
  remedy += fmt::format(
      "Then pin, so that threads do not move to cold processors: {}. Look for heat, power limits, "
      "and a second thread on the same core (lscpu -e).",
      pin_text(e));
  return Advice{.bound = "latency: the processor's own speed",
                .finding = spread_text(e) + burst_text(e) +
                           " Nobody else was seen beside the slow runs: it is the frequency, or "
                           "a thread of somebody else's on the same core.",
                .remedy = std::move(remedy),
                .weight = time_lost(e)};
}

std::optional<Advice> unexplained_jitter(const Evidence& e) {
  if (!varies(e) || disturbed(e) || burst_varies(e)) return std::nullopt;
  return Advice{
      .bound = "latency varies, cause not seen",
      .finding = spread_text(e) + beside_text(e) + burst_text(e),
      .remedy = fmt::format(
          "Pin it and look again: {}. What this process cannot see is left: interrupts on these "
          "processors, a neighbour on the same core or the same caches, the host under a virtual "
          "machine.",
          pin_text(e)),
      .weight = time_lost(e)};
}

std::optional<Advice> busy_machine(const Evidence& e) {
  if (!busy(e)) return std::nullopt;
  return Advice{
      .bound = "a busy machine",
      .finding = fmt::format(
          "Other processes used {:.1f} of the processors all the while: these numbers are theirs "
          "too.",
          e.others_rest),
      .remedy = fmt::format("Measure again when they are gone, or keep apart: {}.", pin_text(e)),
      .weight = std::min(1.0, e.others_rest / std::max(1, e.cores))};
}

std::optional<Advice> memory_grows(const Evidence& e) {
  if (e.runs < kGrowthRuns || !e.grows_steadily || e.growth_bytes < kGrowthBytes)
    return std::nullopt;
  return Advice{
      .bound = "memory that grows",
      .finding =
          fmt::format("Resident memory grew by {:.1f} MB, {:.1f} kB a run, and did not stop.",
                      e.growth_bytes / 1e6, e.growth_per_run / 1e3),
      .remedy =
          "Profile the same without --source: if it stays flat then, the decoder of these "
          "files keeps memory. Otherwise it is a mistake of ferry's: please report it, with "
          "the --json file.",
      .weight = 0.5};
}

constexpr AdviceRule kRules[] = {
    {.name = "decode",
     .summary = "decoding takes more than 25 % of a picture's time",
     .applies = decode_bound},
    {.name = "preprocess",
     .summary = "resizing into the input takes more than 15 % of a picture's time",
     .applies = preprocess_bound},
    {.name = "postprocess",
     .summary = "head decoding and NMS take more than 15 % of a picture's time",
     .applies = postprocess_bound},
    {.name = "draw",
     .summary = "drawing takes more than 25 % of a picture's time",
     .applies = draw_bound},
    {.name = "slow-path",
     .summary = "layers on the reference loops take more than 1 % of the network's time",
     .applies = slow_path},
    {.name = "copies",
     .summary = "moving data takes more than 8 % of the network's time",
     .applies = copy_bound},
    {.name = "threads",
     .summary = "layers under 50 µs and 30 % of their roof take more than 15 % of the network's "
                "time, on several threads of a machine that is not busy",
     .applies = thread_bound},
    {.name = "memory-bound",
     .summary = "layers limited by memory that reach half of that roof take more than 15 % of the "
                "network's time",
     .applies = memory_bound},
    {.name = "far-from-roof",
     .summary = "a layer limited by arithmetic, of 3 % of the network's time, reaches less than "
                "40 % of its roof on a machine that is not busy",
     .applies = far_from_roof},
    {.name = "compute-bound",
     .summary = "the network takes more than 60 % of a picture's time, at more than 60 % of its "
                "roof",
     .applies = compute_bound},
    {.name = "oversubscribed",
     .summary = "more threads than processors",
     .applies = too_many_threads},
    {.name = "noisy-neighbour",
     .summary = "the 99th percentile is 1.25 times the median and 0.5 ms above it, and others or "
                "switches are seen beside the slow runs, or stolen time",
     .applies = noisy_neighbour},
    {.name = "frequency",
     .summary = "the same without others, but the same instructions took 10 % longer at worst",
     .applies = unsteady_frequency},
    {.name = "jitter", .summary = "the same with neither seen", .applies = unexplained_jitter},
    {.name = "busy",
     .summary = "other processes used more than 0.25 processors all the while",
     .applies = busy_machine},
    {.name = "memory-grows",
     .summary = "resident memory rises from quarter to quarter of the runs, by 2 MB or more",
     .applies = memory_grows},
};

}  // namespace

std::span<const AdviceRule> advice_rules() { return kRules; }

std::vector<Advice> advise(const Evidence& evidence) {
  std::vector<Advice> found;
  for (const AdviceRule& rule : kRules) {
    std::optional<Advice> advice = rule.applies(evidence);
    if (!advice) continue;
    advice->rule = rule.name;
    found.push_back(*std::move(advice));
  }
  std::ranges::stable_sort(found, std::greater(), &Advice::weight);
  return found;
}

}  // namespace ferry::perf
