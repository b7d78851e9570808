// What this machine can do at most, measured: multiply-adds a second in each arithmetic that its
// processor has, and bytes a second from memory. The roof under which every other figure stands.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace ferry::perf {

// Best of several bursts, on `threads` threads at once. Operations count two a multiply-add.
struct Peak {
  int threads = 1;
  std::string isa;           // what the bursts used: "avx512"
  double f32_gflops = 0;     // fused multiply-adds
  double bf16_gflops = 0;    // dot products of bf16 pairs; 0: this processor has none
  double int8_gops = 0;      // dot products of bytes (VNNI, else pmaddubsw + pmaddwd); 0: none
  double memory_gb_s = 0;    // read, of a buffer far larger than the caches
};

// Takes about `seconds` in all.
Peak measure_peak(int threads, double seconds = 0.8);

}  // namespace ferry::perf
