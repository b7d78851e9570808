// conv2d -> a convolution tactic. Which one: the rule of choose_conv_tactic(), or, when tuning, the
// fastest of those that accept the problem, timed here on dummy pictures.
#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/lowering.h"

namespace ferry::cpu {
namespace {

constexpr std::string_view kOps[] = {"conv2d"};
constexpr size_t kX = 0, kWeight = 1, kBias = 2, kResidual = 3;

std::optional<Residual> residual_of(std::string_view mode) {
  if (mode == "none") return Residual::kNone;
  if (mode == "after") return Residual::kAfterActivation;
  if (mode == "before") return Residual::kBeforeActivation;
  if (mode == "before_up2") return Residual::kBeforeActivationUpsampled2x;
  return std::nullopt;
}

// Weights must be kept as the kernels of the input's storage have them.
bool pairs(const ferry_value& x, const ferry_value& weight) {
  if (x.storage == FERRY_U8) return weight.storage == FERRY_I8;
  return x.storage == FERRY_F32 || weight.storage == x.storage;
}

bool accepts(const NodeRef& node) {
  const ferry_value* weight = node.input(kWeight);
  const ferry_value* bias = node.input(kBias);
  const ferry_value* residual = node.input(kResidual);
  return is_picture(*node.input(kX)) && is_picture(node.output(0)) && is_constant(*weight) &&
         weight->dtype == FERRY_F32 && pairs(*node.input(kX), *weight) &&
         (bias == nullptr || (is_constant(*bias) && bias->dtype == FERRY_F32)) &&
         (residual == nullptr || is_picture(*residual)) &&
         activation_of(node.string("activation"), node.real("alpha")).has_value() &&
         residual_of(node.string("residual")).has_value();
}

int in_place(const NodeRef& node) {
  return node.string("residual") == "after" ? static_cast<int>(kResidual) : -1;
}

class ConvStep final : public Step {
 public:
  ConvStep(const ConvTactic& tactic, const ConvProblem& problem, PictureRef x, PictureRef y,
           std::optional<PictureRef> residual, std::shared_ptr<const AlignedBytes> packed,
           int threads)
      : tactic_(tactic),
        problem_(problem),
        x_(x),
        y_(y),
        residual_(residual),
        packed_(std::move(packed)),
        prepared_(tactic.prepare ? tactic.prepare(problem) : nullptr) {
    const Isa used = problem.weight == DType::kS8     ? std::min(problem.isa, Isa::kAvx512Vnni)
                     : problem.weight == DType::kBf16 ? problem.isa
                                                      : float_isa(problem.isa);
    constexpr const char* kTypes[] = {"", " bf16", "", " int8"};
    kernel = fmt::format("{}{} {}", tactic.name, kTypes[static_cast<int>(problem.weight)],
                         isa_name(used));
    scratch_bytes = tactic.scratch_bytes(problem, threads);
  }

  void run(const RunArgs& args) const override {
    tactic_.run(problem_,
                {.input = args.arena + x_.offset,
                 .packed = packed_->data(),
                 .output = args.arena + y_.offset,
                 .residual = residual_ ? args.arena + residual_->offset : nullptr,
                 .scratch = args.scratch,
                 .prepared = prepared_.get()},
                args.pool);
  }

  int64_t weight_bytes() const override { return static_cast<int64_t>(packed_->size()); }

 private:
  const ConvTactic& tactic_;
  ConvProblem problem_;
  PictureRef x_, y_;
  std::optional<PictureRef> residual_;
  std::shared_ptr<const AlignedBytes> packed_;
  std::shared_ptr<const void> prepared_;
};

ConvProblem problem_of(const NodeRef& node, const LowerContext& context) {
  const PictureRef x = context.picture(node.inputs()[kX]);
  const PictureRef y = context.picture(node.outputs()[0]);
  const auto kernel = dims(*node.input(kWeight)).subspan(2);
  const auto strides = node.integers("strides"), pads = node.integers("pads"),
             dilations = node.integers("dilations");
  ConvProblem problem{
      .shape = {.batch = x.batch,
                .in_h = x.h,
                .in_w = x.w,
                .in_c = x.c,
                .out_h = y.h,
                .out_w = y.w,
                .out_c = y.c,
                .kernel_h = kernel[0],
                .kernel_w = kernel[1],
                .stride_h = strides[0],
                .stride_w = strides[1],
                .pad_top = pads[0],
                .pad_left = pads[1],
                .dilation_h = dilations[0],
                .dilation_w = dilations[1],
                .groups = node.integer("groups")},
      .epilogue = {*activation_of(node.string("activation"), node.real("alpha")),
                   *residual_of(node.string("residual"))},
      .in_stride = x.stride,
      .out_stride = y.stride,
      .isa = context.isa(),
      .input = x.storage,
      .output = y.storage,
  };
  if (x.storage.dtype == DType::kU8) {
    problem.weight = DType::kS8;
    problem.weight_scales = node.input(kWeight)->scales;
  } else {
    problem.weight = x.storage.dtype;
  }
  if (node.input(kResidual)) {
    const PictureRef residual = context.picture(node.inputs()[kResidual]);
    problem.residual_stride = residual.stride;
    problem.residual = residual.storage;
  }
  return problem;
}

// Everything that packed weights depend on. Our own tactics pack by channels and kernel alone, so
// that plans for other picture sizes share them; a foreign library may look at everything.
std::string weights_key(const NodeRef& node, const ConvTactic& tactic, const ConvProblem& p) {
  const ferry_value* bias = node.input(kBias);
  const ConvShape& s = p.shape;
  std::string key = fmt::format("{} {} {} {} {} {} {} {} {}", tactic.name, isa_name(p.isa),
                                node.input(kWeight)->identity, bias ? bias->identity : 0, s.in_c,
                                s.out_c, s.kernel_h, s.kernel_w, s.groups);
  key += fmt::format(" {} {} {}", static_cast<int>(p.weight), p.input.scale, p.input.zero_point);
  if (tactic.foreign) {
    key += fmt::format(" {} {} {} {} {} {} {} {} {} {} {} {} {}", s.batch, s.in_h, s.in_w, s.out_h,
                       s.out_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w, p.in_stride,
                       p.out_stride, p.residual_stride, static_cast<int>(p.epilogue.residual));
  }
  return key;
}

std::shared_ptr<const AlignedBytes> pack(const NodeRef& node, const ConvTactic& tactic,
                                         const ConvProblem& problem, WeightCache& cache) {
  const auto* weights = static_cast<const float*>(node.input(kWeight)->data);
  const ferry_value* bias = node.input(kBias);
  return cache.get(weights_key(node, tactic, problem), tactic.packed_bytes(problem),
                   [&](std::byte* packed) {
                     tactic.pack(problem, weights,
                                 bias ? static_cast<const float*>(bias->data) : nullptr, packed);
                   });
}

// The fastest of three runs on pictures of zeros, in seconds; no more than the first (which warms
// up) when that is far slower than `record`.
double time_step(const Step& step, std::byte* arena, ThreadPool& pool, double record) {
  constexpr double kHopeless = 5;
  AlignedBytes scratch(step.scratch_bytes);
  if (scratch.data() == nullptr) return std::numeric_limits<double>::infinity();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 4; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step.run({arena, scratch.data(), pool});
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (i > 0) best = std::min(best, time.count());
    if (time.count() > kHopeless * record) return time.count();
  }
  return best;
}

// The same picture at the start of a private arena, for timing.
PictureRef moved(PictureRef picture, int64_t& end) {
  picture.offset = end;
  end += (picture.batch * picture.h * picture.w * picture.stride *
              element_bytes(picture.storage.dtype) +
          63) /
         64 * 64;
  return picture;
}

std::unique_ptr<Step> lower(const NodeRef& node, LowerContext& context) {
  const ConvProblem problem = problem_of(node, context);
  const PictureRef x = context.picture(node.inputs()[kX]), y = context.picture(node.outputs()[0]);
  std::optional<PictureRef> residual;
  if (node.input(kResidual)) residual = context.picture(node.inputs()[kResidual]);
  const int threads = context.pool().threads();
  const auto make = [&](const ConvTactic& tactic, PictureRef in, PictureRef out,
                        std::optional<PictureRef> add) -> std::unique_ptr<Step> {
    auto packed = pack(node, tactic, problem, context.weights());
    return packed ? std::make_unique<ConvStep>(tactic, problem, in, out, add, std::move(packed),
                                               threads)
                  : nullptr;
  };

  const ConvTactic* chosen = &choose_conv_tactic(problem, threads);
  if (context.tune()) {
    int64_t end = 0;
    const PictureRef tx = moved(x, end), ty = moved(y, end);
    std::optional<PictureRef> tr;
    if (residual) tr = moved(*residual, end);
    const AlignedBytes arena(static_cast<size_t>(end));
    double best = std::numeric_limits<double>::infinity();
    for (const ConvTactic* tactic : conv_tactics()) {
      if (arena.data() == nullptr || tactic->refuse(problem) != nullptr) continue;
      // A rule that expects a tenfold time is right enough not to try it.
      if (tactic->cost(problem, threads) > 10 * chosen->cost(problem, threads)) continue;
      const auto step = make(*tactic, tx, ty, tr);
      const double time = step ? time_step(*step, arena.data(), context.pool(), best) : best;
      if (time < best) {
        best = time;
        chosen = tactic;
      }
    }
  }
  return make(*chosen, x, y, residual);
}

}  // namespace

extern const Lowering lowering_conv2d;
const Lowering lowering_conv2d = {
    .ops = kOps, .accepts = accepts, .in_place = in_place, .lower = lower};

}  // namespace ferry::cpu
