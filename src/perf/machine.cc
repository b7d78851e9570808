// Reads /proc and /sys. What the system does not say stays empty.
#include "perf/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace ferry::perf {

namespace {

// Of all the flags of a processor, those that matter to a detector.
constexpr std::string_view kFlags[] = {
    "avx",      "avx2",        "fma",        "f16c",        "avx_vnni",    "avx512f",  "avx512bw",
    "avx512vl", "avx512_vnni", "avx512vbmi", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
    "amx_int8", "asimd",       "asimddp",    "i8mm",        "bf16",        "sve"};

std::string read_text(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

// The next word of `text`, which loses it.
std::string_view next_word(std::string_view& text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  const size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

int64_t to_int(std::string_view word) {
  int64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

// The value of the first line `key : value`; empty when there is none.
std::string_view field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == key) {
      return trim(line.substr(colon + 1));
    }
  }
  return {};
}

// The hypervisor's own name for itself (leaf 0x40000000), where there is one.
std::string hypervisor() {
#if defined(__x86_64__)
  std::array<uint32_t, 3> words = {};
  uint32_t leaf = 0x40000000;
  asm volatile("cpuid" : "+a"(leaf), "=b"(words[0]), "=c"(words[1]), "=d"(words[2]) : "2"(0));
  std::array<char, 13> name = {};
  std::memcpy(name.data(), words.data(), 12);
  const std::string_view signature(name.data());
  if (signature.starts_with("KVM")) return "kvm";
  if (signature.starts_with("Microsoft")) return "hyper-v";
  if (signature.starts_with("VMware")) return "vmware";
  if (signature.starts_with("Xen")) return "xen";
  if (signature.starts_with("TCG")) return "qemu";
#endif
  return "unknown hypervisor";
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

Machine machine_of(std::string_view cpuinfo, std::string_view meminfo) {
  Machine machine;
  std::string_view name = field(cpuinfo, "model name");
  if (name.empty()) name = field(cpuinfo, "Processor");
  if (name.empty()) name = "unknown processor";
  machine.cpu = name;
  const std::string_view family = field(cpuinfo, "cpu family"), model = field(cpuinfo, "model");
  if (!family.empty() && !model.empty()) {
    machine.cpu += fmt::format(" (family {}, model {})", family, model);
  }
  std::string_view flags = field(cpuinfo, "flags");
  if (flags.empty()) flags = field(cpuinfo, "Features");
  bool virtualised = false;
  for (std::string_view flag = next_word(flags); !flag.empty(); flag = next_word(flags)) {
    virtualised |= flag == "hypervisor";
    if (std::ranges::find(kFlags, flag) != std::end(kFlags)) machine.flags.emplace_back(flag);
  }
  if (virtualised) machine.virtualisation = "unknown hypervisor";
  machine.memory_bytes = to_int(field(meminfo, "MemTotal")) * 1024;
  return machine;
}

Machine this_machine() {
  Machine machine = machine_of(read_text("/proc/cpuinfo"), read_text("/proc/meminfo"));
  machine.cores = allowed_cores();
  machine.governor = trim(read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  if (!machine.virtualisation.empty()) machine.virtualisation = hypervisor();
  utsname system;
  if (uname(&system) == 0) machine.kernel = fmt::format("{} {}", system.sysname, system.release);
  return machine;
}

CpuClock cpu_clock_of(std::string_view proc_stat, double ticks_per_second) {
  std::string_view line = proc_stat.substr(0, proc_stat.find('\n'));
  if (next_word(line) != "cpu") return {};
  // user nice system idle iowait irq softirq steal; what follows is counted among those already
  std::array<double, 8> seconds = {};
  CpuClock clock;
  for (double& one : seconds) {
    one = static_cast<double>(to_int(next_word(line))) / ticks_per_second;
    clock.total_s += one;
  }
  clock.idle_s = seconds[3] + seconds[4];
  clock.steal_s = seconds[7];
  return clock;
}

double process_seconds_of(std::string_view pid_stat, double ticks_per_second) {
  const size_t name_end = pid_stat.rfind(')');  // the name before it may hold anything
  if (name_end == std::string_view::npos) return 0;
  std::string_view rest = pid_stat.substr(name_end + 1);
  int64_t ticks = 0;
  for (int column = 3; column <= 15; ++column) {
    const std::string_view word = next_word(rest);
    if (column >= 14) ticks += to_int(word);  // utime, stime
  }
  return static_cast<double>(ticks) / ticks_per_second;
}

CpuClock read_cpu_clock(std::span<const int> children) {
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  CpuClock clock = cpu_clock_of(read_text("/proc/stat"), ticks_per_second);
  clock.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    getrusage(who, &usage);
    clock.own_s += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    if (who == RUSAGE_SELF) clock.involuntary_switches = usage.ru_nivcsw;
  }
  for (const int pid : children) {
    clock.own_s +=
        process_seconds_of(read_text(fmt::format("/proc/{}/stat", pid).c_str()), ticks_per_second);
  }
  return clock;
}

CpuClock read_cpu_clock() { return read_cpu_clock({}); }

Disturbance between(const CpuClock& begin, const CpuClock& end) {
  const double wall = end.wall_s - begin.wall_s, total = end.total_s - begin.total_s;
  const double stolen = end.steal_s - begin.steal_s;
  const double busy = total - (end.idle_s - begin.idle_s) - stolen;
  const double others = busy - (end.own_s - begin.own_s);
  Disturbance disturbance;
  if (wall > 0) disturbance.others_cores = std::max(0.0, others / wall);
  if (total > 0) disturbance.steal_percent = std::max(0.0, 100 * stolen / total);
  disturbance.involuntary_switches = end.involuntary_switches - begin.involuntary_switches;
  return disturbance;
}

Resident resident_of(std::string_view status) {
  return {.now = to_int(field(status, "VmRSS")) * 1024,
          .peak = to_int(field(status, "VmHWM")) * 1024};
}

Resident resident_memory() { return resident_of(read_text("/proc/self/status")); }

}  // namespace ferry::perf
