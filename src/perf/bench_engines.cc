#include "perf/bench_engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace ferry::perf {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOwnProgram = "/proc/self/exe";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string first_existing(const std::vector<fs::path>& candidates) {
  std::error_code ignored;
  for (const fs::path& path : candidates) {
    if (!path.empty() && fs::exists(path, ignored)) return path.string();
  }
  return {};
}

// The words that both the run and the conversion have.
std::vector<std::string> common_words(const PeerFiles& files, const std::string& engine,
                                      const EngineJob& job) {
  const size_t colon = std::min(engine.find(':'), engine.size());
  std::vector<std::string> words = {files.python,
                                    files.script,
                                    "--engine",
                                    engine.substr(0, colon),
                                    "--model",
                                    job.model,
                                    "--threads",
                                    fmt::format("{}", job.threads),
                                    "--batch",
                                    fmt::format("{}", job.batch),
                                    "--size",
                                    fmt::format("{}", job.height),
                                    fmt::format("{}", job.width)};
  if (!job.single.empty()) words.insert(words.end(), {"--single", job.single});
  if (colon < engine.size()) words.insert(words.end(), {"--option", engine.substr(colon + 1)});
  return words;
}

}  // namespace

Result<PeerFiles> find_peers(const std::string& python) {
  std::error_code failed;
  const fs::path program = fs::read_symlink(kOwnProgram, failed).parent_path();
  const fs::path root = program.parent_path();
  const std::string folder = environment("FERRY_PEERS");
  PeerFiles files;
  files.script = folder.empty()
                     ? first_existing({root / "bench/peers/run_peer.py", "bench/peers/run_peer.py"})
                     : first_existing({fs::path(folder) / "run_peer.py"});
  if (files.script.empty()) {
    return error(Code::kNotFound,
                 "bench/peers/run_peer.py is not found{}: run in ferry's source tree, or name the "
                 "folder that holds it in FERRY_PEERS",
                 folder.empty() ? "" : fmt::format(" in {}", folder));
  }
  files.python = python.empty() ? environment("FERRY_PEERS_PYTHON") : python;
  if (!files.python.empty()) return files;
  files.python =
      first_existing({program / "peers-venv/bin/python", root / "build/peers-venv/bin/python",
                      "build/peers-venv/bin/python"});
  if (files.python.empty()) {
    return error(Code::kNotFound,
                 "the other engines are not installed: run `make bench-peers`, or name a Python "
                 "that has them with --python or FERRY_PEERS_PYTHON");
  }
  return files;
}

PeerCommand peer_command(const PeerFiles& files, const std::string& engine, const EngineJob& job) {
  return {.name = engine, .words = common_words(files, engine, job), .processors = job.threads};
}

PeerCommand peer_conversion(const PeerFiles& files, const std::string& engine,
                            const EngineJob& job) {
  PeerCommand command{.name = engine, .words = common_words(files, engine, job)};
  command.words.emplace_back("--convert");
  return command;
}

PeerCommand worker_command(const std::string& name, const WorkerOptions& o) {
  std::error_code failed;
  const fs::path program = fs::read_symlink(kOwnProgram, failed);
  std::vector<std::string> words = {failed ? kOwnProgram : program.string(),
                                    "bench",
                                    "--worker",
                                    "--weights",
                                    o.weights,
                                    "--batch-size",
                                    fmt::format("{}", o.batch),
                                    "--threads",
                                    fmt::format("{}", o.threads),
                                    "--streams",
                                    fmt::format("{}", o.streams)};
  if (o.height > 0) {
    words.insert(words.end(), {"--imgsz", fmt::format("{}", o.height), fmt::format("{}", o.width)});
  }
  if (!o.cfg.empty()) words.insert(words.end(), {"--cfg", o.cfg});
  if (!o.source.empty()) words.insert(words.end(), {"--end-to-end", "--source", o.source});
  if (o.tune) words.emplace_back("--tune");
  if (o.raw) words.emplace_back("--raw");
  for (const std::string& pass : o.disable_passes) {
    words.insert(words.end(), {"--disable-pass", pass});
  }
  return {.name = name, .words = std::move(words), .processors = o.threads * o.streams};
}

}  // namespace ferry::perf
