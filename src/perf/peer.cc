#include "perf/peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace ferry::perf {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr size_t kLogKept = 4096;                   // bytes of standard error
constexpr size_t kLongestAnswer = size_t{1} << 26;  // bytes
constexpr int kSliceMs = 100;                       // between two looks at `cancelled`

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

// The first `count` processors that this process may use.
cpu_set_t first_processors(int count) {
  cpu_set_t allowed, chosen;
  CPU_ZERO(&allowed);
  CPU_ZERO(&chosen);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return chosen;
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&chosen) < count; ++i) {
    if (CPU_ISSET(i, &allowed)) CPU_SET(i, &chosen);
  }
  return chosen;
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

// What a message may hold of what a process said.
std::string shown(std::string_view text, size_t longest) {
  std::string clean;
  for (const char c : text.substr(0, longest)) {
    clean += static_cast<unsigned char>(c) < ' ' && c != '\n' ? ' ' : c;
  }
  return text.size() > longest ? clean + "…" : clean;
}

// The last lines of a log, indented: " It said:\n    …".
std::string last_lines(std::string_view log) {
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.remove_suffix(1);
  if (log.empty()) return {};
  constexpr int kLines = 8;
  size_t begin = log.size();
  for (int i = 0; i < kLines && begin != std::string_view::npos && begin > 0; ++i) {
    begin = log.rfind('\n', begin - 1);
  }
  std::string text = "; its last words:";
  std::string lines = shown(log.substr(begin == std::string_view::npos ? 0 : begin), kLogKept);
  while (lines.starts_with('\n')) lines.erase(0, 1);
  text += "\n    ";
  for (const char c : lines) text += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return text;
}

double number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Result<std::unique_ptr<Peer>> Peer::start(PeerCommand command) {
  std::unique_ptr<Peer> peer(new Peer(std::move(command)));
  FERRY_CHECK_OK(peer->launch());
  return peer;
}

Status Peer::launch() {
  // Standard input is a socket, because writing to a closed one need not raise SIGPIPE.
  int in[2], out[2], err[2], failure[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0 || pipe2(out, O_CLOEXEC) != 0 ||
      pipe2(err, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0) {
    return error(Code::kIo, "{}: cannot make pipes: {}", name(), std::strerror(errno));
  }
  std::vector<char*> arguments;
  for (std::string& word : command_.words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const cpu_set_t processors = first_processors(command_.processors);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {  // only what is safe between fork and exec
    setpgid(0, 0);  // Ctrl-C is for ferry, which then ends this process
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    if (CPU_COUNT(&processors) > 0) sched_setaffinity(0, sizeof processors, &processors);
    dup2(in[1], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    std::signal(SIGPIPE, SIG_DFL);
    execvp(arguments[0], arguments.data());
    const int why = errno;
    [[maybe_unused]] const ssize_t told = write(failure[1], &why, sizeof why);
    _exit(127);
  }
  const int fork_error = errno;
  close(in[1]), close(out[1]), close(err[1]), close(failure[1]);
  input_ = in[0], answers_ = out[0], log_ = err[0];
  int why = 0;
  const bool failed_to_start =
      pid_ < 0 || read(failure[0], &why, sizeof why) == static_cast<ssize_t>(sizeof why);
  close(failure[0]);
  if (pid_ < 0) return error(Code::kIo, "{}: cannot fork: {}", name(), std::strerror(fork_error));
  setpgid(pid_, pid_);  // whoever comes first
  if (failed_to_start) {
    return error(why == ENOENT ? Code::kNotFound : Code::kIo, "{}: cannot start '{}': {}", name(),
                 command_.words[0], std::strerror(why));
  }
  fcntl(log_, F_SETFL, O_NONBLOCK);
  fcntl(answers_, F_SETFL, O_NONBLOCK);
  return {};
}

Peer::~Peer() {
  close_fd(input_);
  if (pid_ > 0 && !wait_for_end(2)) {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close_fd(answers_);
  close_fd(log_);
}

// True once the process has ended; its standard error is read meanwhile.
bool Peer::wait_for_end(double timeout_s) {
  const Clock::time_point start = Clock::now();
  for (;;) {
    drain_stderr();
    if (pid_ <= 0) return true;
    const pid_t ended = waitpid(pid_, &end_status_, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno == ECHILD)) {
      drain_stderr();
      pid_ = -1;
      return true;
    }
    if (seconds_since(start) > timeout_s) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Peer::drain_stderr() {
  char buffer[4096];
  // Bounded, so that a process that writes without end does not hold us.
  for (int i = 0; log_ >= 0 && i < 64; ++i) {
    const ssize_t count = read(log_, buffer, sizeof buffer);
    if (count == 0) close_fd(log_);
    if (count <= 0) return;
    log_tail_.append(buffer, static_cast<size_t>(count));
    if (log_tail_.size() > 2 * kLogKept) log_tail_.erase(0, log_tail_.size() - kLogKept);
  }
}

// Ends the process and says why, with its last words.
Error Peer::failed(Code code, const std::string& why) {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    wait_for_end(5);
  }
  close_fd(input_);
  return error(code, "{}: {}{}", name(), why, last_lines(log_tail_));
}

// The next line of standard output without its end, or `closed`.
Status Peer::await_line(std::string& line, double timeout_s, bool& closed) {
  const Clock::time_point start = Clock::now();
  for (;;) {
    const size_t end = answered_.find('\n');
    if (end != std::string::npos) {
      line = answered_.substr(0, end);
      answered_.erase(0, end + 1);
      return {};
    }
    if (answered_.size() > kLongestAnswer) {
      return failed(Code::kInvalid, "answered more than 64 MB without an end of line");
    }
    if (command_.cancelled && command_.cancelled()) return failed(Code::kCancelled, "interrupted");
    if (seconds_since(start) > timeout_s) {
      return failed(Code::kDevice, fmt::format("gave no answer within {:.0f} s", timeout_s));
    }
    pollfd ready[2] = {{.fd = answers_, .events = POLLIN, .revents = 0},
                       {.fd = log_, .events = POLLIN, .revents = 0}};
    const double left_ms = 1e3 * (timeout_s - seconds_since(start));
    poll(ready, 2, std::clamp(static_cast<int>(left_ms), 1, kSliceMs));
    drain_stderr();
    char buffer[65536];
    const ssize_t count = read(answers_, buffer, sizeof buffer);
    if (count > 0) answered_.append(buffer, static_cast<size_t>(count));
    if (count == 0) {
      closed = true;
      return {};
    }
  }
}

Result<std::string> Peer::ask(std::string_view request, double timeout_s) {
  if (pid_ <= 0 || input_ < 0) return error(Code::kDevice, "{}: has ended", name());
  const std::string line = std::string(request) + "\n";
  // A process that has ended is met below, when it does not answer.
  [[maybe_unused]] const ssize_t sent = send(input_, line.data(), line.size(), MSG_NOSIGNAL);
  std::string answer;
  bool closed = false;
  FERRY_CHECK_OK(await_line(answer, timeout_s, closed));
  if (!closed) return answer;
  if (!wait_for_end(2)) return failed(Code::kDevice, "closed its output");
  return failed(Code::kDevice,
                fmt::format("{} without an answer to '{}'", end_text(end_status_), request));
}

// Calls read(object) with the answer. What is no object, or not of the form that `read` wants, ends
// the process.
template <class Read>
auto Peer::ask_for(const std::string& request, double timeout_s, Read read)
    -> decltype(read(std::declval<const json&>())) {
  FERRY_TRY(answer, ask(request, timeout_s));
  const json object = json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (object.is_object() && object.contains("error")) {
    return failed(Code::kDevice, shown(text(object, "error"), 2000));
  }
  if (object.is_object()) {
    auto result = read(object);
    if (result.ok()) return result;
    return failed(result.error().code, fmt::format("answered '{}' to '{}', {}", shown(answer, 80),
                                                   request, result.error().message));
  }
  return failed(Code::kInvalid, fmt::format("answered '{}' to '{}', which is no JSON object",
                                            shown(answer, 80), request));
}

Result<PeerInfo> Peer::info(double timeout_s) {
  return ask_for("info", timeout_s, [](const json& object) -> Result<PeerInfo> {
    return PeerInfo{.engine = text(object, "engine"),
                    .version = text(object, "version"),
                    .precision = text(object, "precision"),
                    .device = text(object, "device"),
                    .model = text(object, "model"),
                    .threads = static_cast<int>(number(object, "threads")),
                    .load_ms = number(object, "load_ms"),
                    .macs = static_cast<int64_t>(number(object, "macs")),
                    .weight_bytes = static_cast<int64_t>(number(object, "weight_bytes")),
                    .arena_bytes = static_cast<int64_t>(number(object, "arena_bytes"))};
  });
}

Result<PeerRun> Peer::run(int64_t count, double timeout_s) {
  return ask_for(fmt::format("run {}", count), timeout_s,
                 [count](const json& object) -> Result<PeerRun> {
                   PeerRun run;
                   const auto times = object.find("times_ms");
                   if (times != object.end() && times->is_array()) {
                     for (const json& time : *times) {
                       run.times_ms.push_back(time.is_number() ? time.get<double>() : 0);
                     }
                   }
                   if (run.times_ms.size() < static_cast<size_t>(count) ||
                       std::ranges::any_of(run.times_ms, [](double ms) { return !(ms > 0); })) {
                     return error(Code::kInvalid, "which is not {} times", count);
                   }
                   run.wall_ms = number(object, "wall_ms");
                   if (!(run.wall_ms > 0)) {
                     for (const double ms : run.times_ms) run.wall_ms += ms;
                   }
                   return run;
                 });
}

Status Peer::output(const std::string& path, double timeout_s) {
  return ask_for("output " + path, timeout_s, [](const json&) { return Status(); });
}

Result<PeerMemory> Peer::memory(double timeout_s) {
  return ask_for("rss", timeout_s, [](const json& object) -> Result<PeerMemory> {
    return PeerMemory{.rss_mb = number(object, "rss_mb"),
                      .peak_rss_mb = number(object, "peak_rss_mb"),
                      .interpreter_mb = number(object, "python_mb")};
  });
}

Status Peer::finish(double timeout_s) {
  close_fd(input_);
  bool closed = false;
  for (std::string line; !closed;) FERRY_CHECK_OK(await_line(line, timeout_s, closed));
  if (!wait_for_end(2)) return failed(Code::kDevice, "closed its output");
  if (end_status_ == 0) return {};
  return failed(Code::kDevice, end_text(end_status_));
}

Status run_to_end(PeerCommand command, double timeout_s) {
  FERRY_TRY(peer, Peer::start(std::move(command)));
  return peer->finish(timeout_s);
}

}  // namespace ferry::perf
