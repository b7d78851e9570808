// Convolutions by oneDNN (2.6 and later of version 2), as one more provider and as the yardstick of
// ours. Built where the library is found (FERRY_HAVE_ONEDNN).
//
// Its own threads stay out of it: every call runs with one OpenMP thread, and slabs of output rows
// are dealt to our pool. A primitive fits one slab only, so prepare() makes those for one thread,
// two, and as many as the machine has; a run uses the largest division that its pool can serve.
// Residuals become oneDNN's sum into the output, after a copy when the residual lies elsewhere.
// Unlike our tactics a run allocates: oneDNN's handles for its operands.
#if defined(FERRY_HAVE_ONEDNN)
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/cpu/kernels/conv_tactics.h"
#include "backends/cpu/kernels/eltwise.h"
#include "backends/cpu/kernels/pool.h"

namespace ferry::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Primitive = dnnl::convolution_forward;

// One OpenMP thread while it lives; afterwards what the calling thread had before.
class OneOmpThread {
 public:
  OneOmpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOmpThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Adds the activation to the chain; false where oneDNN has none like it.
bool append_activation(dnnl::post_ops& ops, Activation a) {
  const auto append = [&](algorithm kind, float alpha) {
    ops.append_eltwise(1.0f, kind, alpha, 0.0f);
  };
  switch (a.kind) {
    case ActivationKind::kNone:
      return true;
    case ActivationKind::kRelu:
      append(algorithm::eltwise_relu, 0.0f);
      return true;
    case ActivationKind::kRelu6:
      append(algorithm::eltwise_bounded_relu, 6.0f);
      return true;
    case ActivationKind::kLeakyRelu:
      append(algorithm::eltwise_relu, a.alpha);
      return true;
    case ActivationKind::kSigmoid:
      append(algorithm::eltwise_logistic, 0.0f);
      return true;
    case ActivationKind::kSilu:
      append(algorithm::eltwise_swish, 1.0f);
      return true;
    case ActivationKind::kHardSwish:
      append(algorithm::eltwise_hardswish, 0.0f);
      return true;
    case ActivationKind::kHardSigmoid:
      return false;
    case ActivationKind::kMish:
      append(algorithm::eltwise_mish, 0.0f);
      return true;
    case ActivationKind::kGelu:
      append(algorithm::eltwise_gelu_erf, 0.0f);
      return true;
    case ActivationKind::kTanh:
      append(algorithm::eltwise_tanh, 0.0f);
      return true;
    case ActivationKind::kExp:
      append(algorithm::eltwise_exp, 0.0f);
      return true;
  }
  return false;
}

// NHWC pixels as oneDNN's NCHW with strides; `full_h` rows lie in memory, `h` of them are meant.
memory::desc pixels_desc(int64_t n, int64_t c, int64_t h, int64_t w, int64_t full_h,
                         int64_t stride) {
  return memory::desc({n, c, h, w}, memory::data_type::f32,
                      {full_h * w * stride, 1, w * stride, stride});
}

memory::dims weights_dims(const ConvShape& s) {
  if (s.groups == 1) return {s.out_c, s.in_c, s.kernel_h, s.kernel_w};
  return {s.groups, s.out_c / s.groups, s.in_c / s.groups, s.kernel_h, s.kernel_w};
}

memory::desc plain_weights_desc(const ConvShape& s) {
  const auto tag = s.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw;
  return memory::desc(weights_dims(s), memory::data_type::f32, tag);
}

memory::desc any_weights_desc(const ConvShape& s) {
  return memory::desc(weights_dims(s), memory::data_type::f32, memory::format_tag::any);
}

// Output rows [begin, end) and the input rows they see.
struct Rows {
  int64_t begin, end, in_begin, in_end, pad_top, pad_bottom;
};

Rows rows_of(const ConvShape& s, int64_t begin, int64_t end) {
  const int64_t first = begin * s.stride_h - s.pad_top;
  const int64_t last = (end - 1) * s.stride_h - s.pad_top + (s.kernel_h - 1) * s.dilation_h + 1;
  const int64_t in_begin = std::clamp<int64_t>(first, 0, s.in_h),
                in_end = std::clamp<int64_t>(last, 0, s.in_h);
  return {begin, end, in_begin, in_end, in_begin - first, last - in_end};
}

// Throws dnnl::error when oneDNN has no kernel for it.
Primitive::primitive_desc describe(const ConvProblem& p, const Rows& r,
                                   const memory::desc& weights) {
  const ConvShape& s = p.shape;
  const int64_t right =
      (s.out_w - 1) * s.stride_w - s.pad_left + (s.kernel_w - 1) * s.dilation_w + 1 - s.in_w;
  const memory::desc bias({s.out_c}, memory::data_type::f32, memory::format_tag::x);
  const Primitive::desc desc(
      dnnl::prop_kind::forward_inference, algorithm::convolution_direct,
      pixels_desc(s.batch, s.in_c, r.in_end - r.in_begin, s.in_w, s.in_h, p.in_stride), weights,
      bias, pixels_desc(s.batch, s.out_c, r.end - r.begin, s.out_w, s.out_h, p.out_stride),
      {s.stride_h, s.stride_w}, {s.dilation_h - 1, s.dilation_w - 1}, {r.pad_top, s.pad_left},
      {r.pad_bottom, right});
  dnnl::post_ops ops;
  const bool before = p.epilogue.residual == Residual::kBeforeActivation ||
                      p.epilogue.residual == Residual::kBeforeActivationUpsampled2x;
  if (before) ops.append_sum(1.0f);
  append_activation(ops, p.epilogue.activation);
  if (p.epilogue.residual == Residual::kAfterActivation) ops.append_sum(1.0f);
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  Primitive::primitive_desc found(desc, attr, cpu_engine());
  // Its reference loops are hundreds of times slower than any kernel.
  if (std::string_view(found.impl_info_str()).starts_with("ref"))
    throw dnnl::error(dnnl_unimplemented, "only reference loops");
  return found;
}

std::optional<Primitive::primitive_desc> describe_whole(const ConvProblem& p) {
  const OneOmpThread one;
  try {
    return describe(p, rows_of(p.shape, 0, p.shape.out_h), any_weights_desc(p.shape));
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
}

struct Slab {
  Rows rows;
  Primitive::primitive_desc desc;
  Primitive primitive;
};

struct Prepared {
  memory::desc weights;
  size_t scratch_per_thread = 0;
  std::vector<std::vector<Slab>> divisions;  // each into more slabs than the one before
};

const char* refuse(const ConvProblem& p) {
  if (const char* why = refuse_not_f32(p)) return why;
  if (p.isa != detected_isa()) return "oneDNN chooses its instruction set itself";
  dnnl::post_ops ops;
  if (!append_activation(ops, p.epilogue.activation)) return "oneDNN has no such activation";
  return describe_whole(p) ? nullptr : "oneDNN has no kernel for this";
}

double cost(const ConvProblem& p, int threads) {
  return static_cast<double>(p.shape.macs()) / 32 / threads;
}

size_t bias_bytes(const ConvProblem& p) {
  return static_cast<size_t>(round_up(p.shape.out_c, 16)) * sizeof(float);
}

size_t packed_bytes(const ConvProblem& p) {
  return bias_bytes(p) + describe_whole(p)->weights_desc().get_size();
}

void pack(const ConvProblem& p, const float* weights, const float* bias, void* packed) {
  const OneOmpThread one;
  const ConvShape& s = p.shape;
  float* to = static_cast<float*>(packed);
  for (int64_t o = 0; o < round_up(s.out_c, 16); ++o) to[o] = bias && o < s.out_c ? bias[o] : 0.0f;
  memory from_memory(plain_weights_desc(s), cpu_engine(), const_cast<float*>(weights));
  memory to_memory(describe_whole(p)->weights_desc(), cpu_engine(),
                   static_cast<char*>(packed) + bias_bytes(p));
  dnnl::stream stream(cpu_engine());
  dnnl::reorder(from_memory, to_memory).execute(stream, from_memory, to_memory);
  stream.wait();
}

// An upper bound for the slabs of any division: they are the whole's work or less.
size_t scratch_per_thread(const ConvProblem& p) {
  return static_cast<size_t>(
             round_up(static_cast<int64_t>(describe_whole(p)->scratchpad_desc().get_size()), 64)) +
         4096;
}

size_t scratch_bytes(const ConvProblem& p, int threads) {
  return scratch_per_thread(p) * static_cast<size_t>(threads);
}

// The output rows as `count` slabs; none when oneDNN has no kernel for one of them.
std::vector<Slab> slabs_of(const ConvProblem& p, const Prepared& prepared, int count) {
  std::vector<Slab> slabs;
  try {
    for (int i = 0; i < count; ++i) {
      const Rows rows = rows_of(p.shape, ThreadPool::range_begin(p.shape.out_h, count, i),
                                ThreadPool::range_begin(p.shape.out_h, count, i + 1));
      Primitive::primitive_desc desc = describe(p, rows, prepared.weights);
      if (desc.scratchpad_desc().get_size() > prepared.scratch_per_thread) return {};
      Primitive primitive(desc);
      slabs.push_back({rows, std::move(desc), std::move(primitive)});
    }
  } catch (const dnnl::error&) {
    return {};
  }
  return slabs;
}

// REQUIRES: refuse(p) is null: the whole picture as one slab has a kernel.
std::shared_ptr<const void> prepare(const ConvProblem& p) {
  const OneOmpThread one;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  auto prepared = std::make_shared<Prepared>();
  prepared->weights = describe_whole(p)->weights_desc();
  prepared->scratch_per_thread = scratch_per_thread(p);
  for (int threads : std::set<int>{1, 2, std::min(cores, ThreadPool::kMaxThreads)}) {
    if (threads > p.shape.out_h) break;
    if (std::vector<Slab> slabs = slabs_of(p, *prepared, threads); !slabs.empty())
      prepared->divisions.push_back(std::move(slabs));
  }
  return prepared;
}

// Brings the residual to where oneDNN's sum expects it.
void place_residual(const ConvProblem& p, const ConvArgs& args, ThreadPool& pool) {
  if (p.epilogue.residual == Residual::kNone || args.residual == args.output) return;
  const ConvShape& s = p.shape;
  const StoredView output = {
      static_cast<std::byte*>(args.output), s.batch, s.out_h, s.out_w, s.out_c, p.out_stride, {}};
  StoredView residual = output;
  residual.data = static_cast<std::byte*>(const_cast<void*>(args.residual));  // only read
  residual.stride = p.residual_stride;
  if (p.epilogue.residual != Residual::kBeforeActivationUpsampled2x) {
    convert(residual, nullptr, {}, output, p.isa, pool);
    return;
  }
  residual.h = ceil_div(s.out_h, 2);
  residual.w = ceil_div(s.out_w, 2);
  pool.parallel_for(s.batch * s.out_h, [&](int64_t row, int) {
    for (int64_t x = 0; x < s.out_w; ++x) {
      std::memcpy(output.pixel(0, row, x), residual.pixel(row / s.out_h, row % s.out_h / 2, x / 2),
                  static_cast<size_t>(s.out_c) * sizeof(float));
    }
  });
}

void run(const ConvProblem& p, const ConvArgs& args, ThreadPool& pool) {
  const Prepared& prepared = *static_cast<const Prepared*>(args.prepared);
  size_t division = 0;
  while (division + 1 < prepared.divisions.size() &&
         prepared.divisions[division + 1].size() <= static_cast<size_t>(pool.threads())) {
    ++division;
  }
  const std::vector<Slab>& slabs = prepared.divisions[division];
  place_residual(p, args, pool);
  const size_t scratch = prepared.scratch_per_thread;
  pool.parallel_for(static_cast<int64_t>(slabs.size()), [&](int64_t i, int worker) {
    const OneOmpThread one;
    const Slab& slab = slabs[static_cast<size_t>(i)];
    const auto wrap = [](const memory::desc& desc, const void* data) {
      return memory(desc, cpu_engine(), const_cast<void*>(data));
    };
    const ConvShape& s = p.shape;
    const char* packed = static_cast<const char*>(args.packed);
    dnnl::stream stream(cpu_engine());
    slab.primitive.execute(
        stream,
        {{DNNL_ARG_SRC, wrap(slab.desc.src_desc(), static_cast<const float*>(args.input) +
                                                       slab.rows.in_begin * s.in_w * p.in_stride)},
         {DNNL_ARG_WEIGHTS, wrap(prepared.weights, packed + bias_bytes(p))},
         {DNNL_ARG_BIAS, wrap(slab.desc.bias_desc(), packed)},
         {DNNL_ARG_DST, wrap(slab.desc.dst_desc(), static_cast<float*>(args.output) +
                                                       slab.rows.begin * s.out_w * p.out_stride)},
         {DNNL_ARG_SCRATCHPAD,
          wrap(slab.desc.scratchpad_desc(),
               static_cast<char*>(args.scratch) + static_cast<size_t>(worker) * scratch)}});
    stream.wait();
  });
}

}  // namespace

const ConvTactic conv_onednn = {
    .name = "onednn",
    .foreign = true,
    .refuse = refuse,
    .cost = cost,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .prepare = prepare,
    .run = run,
};

}  // namespace ferry::cpu
#endif  // FERRY_HAVE_ONEDNN
