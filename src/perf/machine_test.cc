#include "perf/machine.h"

#include <gtest/gtest.h>

namespace ferry::perf {
namespace {

constexpr const char* kCpuinfo =
    "processor\t: 0\n"
    "vendor_id\t: GenuineIntel\n"
    "cpu family\t: 6\n"
    "model\t\t: 207\n"
    "model name\t: Intel(R) Xeon(R) Processor\n"
    "flags\t\t: fpu avx fma avx2 hypervisor avx512f avx512_vnni amx_int8\n"
    "\n"
    "processor\t: 1\n"
    "model name\t: another\n";

TEST(Machine, IsReadFromCpuinfo) {
  const Machine machine = machine_of(kCpuinfo, "MemTotal:       24684092 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(machine.cpu, "Intel(R) Xeon(R) Processor (family 6, model 207)");
  EXPECT_EQ(machine.flags,
            (std::vector<std::string>{"avx", "fma", "avx2", "avx512f", "avx512_vnni", "amx_int8"}));
  EXPECT_EQ(machine.virtualisation, "unknown hypervisor");
  EXPECT_EQ(machine.memory_bytes, int64_t{24684092} * 1024);
}

TEST(Machine, AnArmProcessorSaysItsFeatures) {
  const Machine machine = machine_of(
      "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd aes asimddp i8mm bf16\n", "");
  EXPECT_EQ(machine.cpu, "unknown processor");
  EXPECT_EQ(machine.flags, (std::vector<std::string>{"asimd", "asimddp", "i8mm", "bf16"}));
  EXPECT_EQ(machine.virtualisation, "");
  EXPECT_EQ(machine.memory_bytes, 0);
}

TEST(Machine, NothingKnownIsNoFailure) {
  EXPECT_EQ(machine_of("", "").cpu, "unknown processor");
  EXPECT_EQ(machine_of(":::\n: \n\n", "MemTotal: lots\n").memory_bytes, 0);
}

TEST(Machine, ThisOneHasACoreAndMemory) {
  const Machine machine = this_machine();
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory_bytes, 0);
  EXPECT_GT(resident_memory().peak, 0);
  EXPECT_GE(resident_memory().peak, resident_memory().now);
}

// user nice system idle iowait irq softirq steal guest guest_nice, in ticks
TEST(CpuClock, IsReadFromProcStat) {
  const CpuClock clock = cpu_clock_of("cpu  100 20 30 1000 50 1 9 40 7 3\ncpu0 1 1 1\n", 100);
  EXPECT_DOUBLE_EQ(clock.total_s, 12.5);  // guests are among user and nice already
  EXPECT_DOUBLE_EQ(clock.idle_s, 10.5);
  EXPECT_DOUBLE_EQ(clock.steal_s, 0.4);
}

TEST(CpuClock, GarbageIsZero) {
  EXPECT_EQ(cpu_clock_of("", 100).total_s, 0);
  EXPECT_EQ(cpu_clock_of("intr 1 2 3\n", 100).total_s, 0);
  EXPECT_EQ(cpu_clock_of("cpu", 100).total_s, 0);
}

TEST(CpuClock, AProcessMayBeCalledAnything) {
  const char* stat = "8491 (a) R (b) S 1 8491 0 0 -1 4194304 102 0 0 0 250 50 7 7 20 0 1 0 35\n";
  EXPECT_DOUBLE_EQ(process_seconds_of(stat, 100), 3.0);
  EXPECT_EQ(process_seconds_of("", 100), 0);
  EXPECT_EQ(process_seconds_of("12 (x) R", 100), 0);
}

TEST(Disturbance, IsWhatNeitherWeNorIdlenessUsed) {
  const CpuClock begin{.total_s = 100,
                       .idle_s = 50,
                       .steal_s = 1,
                       .own_s = 7,
                       .wall_s = 1000,
                       .involuntary_switches = 5};
  // Ten seconds of two processors: 4 idle, 1 stolen, 9 ours, 6 of others.
  const CpuClock end{.total_s = 120,
                     .idle_s = 54,
                     .steal_s = 2,
                     .own_s = 16,
                     .wall_s = 1010,
                     .involuntary_switches = 8};
  const Disturbance disturbance = between(begin, end);
  EXPECT_DOUBLE_EQ(disturbance.others_cores, 0.6);
  EXPECT_DOUBLE_EQ(disturbance.steal_percent, 5);
  EXPECT_EQ(disturbance.involuntary_switches, 3);
}

TEST(Disturbance, IsNeverNegative) {
  const CpuClock begin{.total_s = 1, .idle_s = 1, .steal_s = 0, .own_s = 0, .wall_s = 1};
  const CpuClock end{.total_s = 1, .idle_s = 1, .steal_s = 0, .own_s = 0.005, .wall_s = 1.01};
  EXPECT_EQ(between(begin, end).others_cores, 0);
  EXPECT_EQ(between(begin, begin).steal_percent, 0);
}

TEST(Resident, IsReadFromStatus) {
  const Resident resident = resident_of("Name:\tferry\nVmHWM:\t    1760 kB\nVmRSS:\t 1000 kB\n");
  EXPECT_EQ(resident.peak, 1760 * 1024);
  EXPECT_EQ(resident.now, 1000 * 1024);
}

}  // namespace
}  // namespace ferry::perf
