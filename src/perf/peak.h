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
  std::string isa;             // what the bursts used: "avx512"
  double f32_gflops = 0;       // fused multiply-adds
  double bf16_gflops = 0;      // dot products of bf16 pairs; 0: this processor has none
  double int8_gops = 0;        // dot products of bytes (VNNI, else pmaddubsw + pmaddwd); 0: none
  double memory_gb_s = 0;      // read, of a buffer far larger than the caches
  double amx_bf16_gflops = 0;  // the same arithmetic in matrix tiles; 0: this processor has none
  double amx_int8_gops = 0;
};

// Takes about `seconds` in all.
Peak measure_peak(int threads, double seconds = 0.8);

// Fused multiply-adds only, in a short burst: what is left of the peak at this moment.
double f32_burst_gflops(int threads, double seconds = 0.01);

// Nanoseconds that a cache line takes to another processor and back; 0 where there is only one.
// Engines that synchronise often depend on where a hypervisor put the two.
double cache_line_round_trip_ns();

}  // namespace ferry::perf
