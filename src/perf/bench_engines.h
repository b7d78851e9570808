// How the engines of a comparison are started: ferry's worker, and bench/peers/run_peer.py in its
// virtual environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "perf/bench_worker.h"
#include "perf/peer.h"

namespace ferry::perf {

// What an engine reads, and how it is to run.
struct EngineJob {
  std::string model;   // ONNX, of `batch` pictures
  std::string single;  // the same for one picture, for engines that have no batches
  int64_t batch = 1, height = 0, width = 0;
  int threads = 1;
};

// Where run_peer.py and the Python that runs it are. Looked for, in this order: what the user said,
// the environment (FERRY_PEERS, a folder, and FERRY_PEERS_PYTHON), beside the program as it lies in
// a build tree, the current folder.
struct PeerFiles {
  std::string script, python;
};
Result<PeerFiles> find_peers(const std::string& python);

// `engine` is "name" or "name:option", as `ferry bench --peers` takes them.
PeerCommand peer_command(const PeerFiles& files, const std::string& engine, const EngineJob& job);
// Makes what the engine reads from the job's files, or says why it cannot run at all.
PeerCommand peer_conversion(const PeerFiles& files, const std::string& engine,
                            const EngineJob& job);

// This program as a worker.
PeerCommand worker_command(const std::string& name, const WorkerOptions& options);

}  // namespace ferry::perf
