// An engine in a process of its own, told what to do line by line: bench/peers/run_peer.py, or
// ferry itself (bench_worker.h). A request is a line on its standard input, the answer one JSON
// object on a line of its standard output:
//
//   info         {"engine": .., "version": .., "threads": .., "precision": .., "load_ms": ..}
//   run K        {"times_ms": [..]}        K runs; with several streams also "wall_ms"
//   output PATH  {"output": PATH}          the output of the one fixed input, as .npy
//   rss          {"rss_mb": .., "peak_rss_mb": .., "python_mb": ..}
//   quit         ends it; so does the end of its input
//
// An answer may be {"error": ".."} instead. What the process writes to standard error is kept, and
// its end is shown when it dies, hangs or answers something else. It never outlives this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ferry::perf {

struct PeerCommand {
  std::string name;                      // for messages: "onnxruntime"
  std::vector<std::string> words;        // program and arguments
  int processors = 0;                    // pinned to the first so many that are allowed; 0: to none
  std::function<bool()> cancelled = {};  // (optional) looked at while waiting
};

struct PeerInfo {
  std::string engine, version, precision;
  std::string device;  // for people, where the engine says: "cpu: avx512, 2 threads"
  std::string model;   // the same: "YOLOv5 v6.0 or newer, …"
  int threads = 0;
  double load_ms = 0;        // from the file to a finished first run, or what the engine calls so
  int64_t macs = 0;          // multiply-adds of one run; 0: not told
  int64_t weight_bytes = 0;  // packed; 0: not told
  int64_t arena_bytes = 0;   // activations of all streams; 0: not told
};

struct PeerRun {
  std::vector<double> times_ms;
  double wall_ms = 0;  // of all streams together
};

struct PeerMemory {
  double rss_mb = 0, peak_rss_mb = 0;
  double interpreter_mb = 0;  // of these, before the engine was loaded: Python and numpy
};

class Peer {
 public:
  static Result<std::unique_ptr<Peer>> start(PeerCommand command);
  ~Peer();  // asks it to end; kills it when it does not
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& name() const { return command_.name; }
  int pid() const { return pid_; }

  // Each waits `timeout_s` at most. A failure is the end of the process: further requests fail.
  Result<PeerInfo> info(double timeout_s);
  Result<PeerRun> run(int64_t count, double timeout_s);
  Status output(const std::string& path, double timeout_s);
  Result<PeerMemory> memory(double timeout_s);

  // One request and the line that answers it, of any content.
  Result<std::string> ask(std::string_view request, double timeout_s);
  // The end of its input: it should end too. Fails when it exits with anything but 0.
  Status finish(double timeout_s);

 private:
  template <class Read>
  auto ask_for(const std::string& request, double timeout_s, Read read)
      -> decltype(read(std::declval<const nlohmann::json&>()));
  explicit Peer(PeerCommand command) : command_(std::move(command)) {}
  Status launch();
  Status await_line(std::string& line, double timeout_s, bool& closed);
  void drain_stderr();
  bool wait_for_end(double timeout_s);
  Error failed(Code code, const std::string& why);

  PeerCommand command_;
  int pid_ = -1;
  int end_status_ = 0;                        // of waitpid
  int input_ = -1, answers_ = -1, log_ = -1;  // ours of the child's standard streams
  std::string answered_;                      // not yet a whole line
  std::string log_tail_;
};

// Runs a command to its end, treated as a Peer is: pinned, watched, killed with this process. Fails
// when it exits with anything but 0.
Status run_to_end(PeerCommand command, double timeout_s);

}  // namespace ferry::perf
