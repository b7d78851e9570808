// The machine a measurement ran on, and who else was using it meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::perf {

struct Machine {
  std::string cpu;                 // "Intel(R) Xeon(R) Processor (family 6, model 207)"
  std::vector<std::string> flags;  // of those that matter here: avx2, avx512f, avx512_vnni, …
  int cores = 0;                   // that this process may use
  std::string governor;            // frequency governor; empty where the system does not say
  std::string virtualisation;      // "kvm"; empty on bare metal or unknown
  int64_t memory_bytes = 0;
  std::string kernel;  // "Linux 6.1.0"
};

Machine this_machine();

// Processor time since some moment, of the whole machine and of this process.
struct CpuClock {
  double total_s = 0, idle_s = 0, steal_s = 0;  // all processors together
  double own_s = 0;                             // this process, its children that have ended too
  double wall_s = 0;
  int64_t involuntary_switches = 0;  // of this process
};
CpuClock read_cpu_clock();
// The same; these processes, children that still run, count as own.
CpuClock read_cpu_clock(std::span<const int> children);

// What happened between two readings.
struct Disturbance {
  double others_cores = 0;   // mean number of processors that other processes used
  double steal_percent = 0;  // of the time of all processors, taken by the hypervisor
  int64_t involuntary_switches = 0;
};
Disturbance between(const CpuClock& begin, const CpuClock& end);

// Bytes resident now, and at most so far (VmRSS, VmHWM).
struct Resident {
  int64_t now = 0, peak = 0;
};
Resident resident_memory();

// What the functions above read, as text: /proc/cpuinfo and /proc/meminfo, /proc/stat,
// /proc/PID/stat, /proc/self/status. Pure; for them and for tests.
Machine machine_of(std::string_view cpuinfo, std::string_view meminfo);
CpuClock cpu_clock_of(std::string_view proc_stat, double ticks_per_second);
double process_seconds_of(std::string_view pid_stat, double ticks_per_second);
Resident resident_of(std::string_view status);

}  // namespace ferry::perf
