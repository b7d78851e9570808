#include "perf/peer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "perf/test_peers.h"

namespace ferry::perf {
namespace {

bool holds(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

constexpr double kLong = 60;  // seconds; nothing here takes so long unless it hangs

std::unique_ptr<Peer> started(PeerCommand command) {
  auto peer = Peer::start(std::move(command));
  EXPECT_TRUE(peer.ok()) << (peer.ok() ? "" : peer.error().message);
  return peer.ok() ? *std::move(peer) : nullptr;
}

template <class T>
std::string why(const Result<T>& result) {
  return result.ok() ? "it worked" : result.error().message;
}

TEST(Peer, AnswersWhatItIsAsked) {
  const auto peer = started(good_peer(2.5));
  const auto info = peer->info(kLong);
  ASSERT_TRUE(info.ok()) << why(info);
  EXPECT_EQ(info->engine, "fake");
  EXPECT_EQ(info->version, "1.5");
  EXPECT_EQ(info->load_ms, 12.5);
  EXPECT_EQ(info->macs, 1000);
  EXPECT_EQ(info->arena_bytes, 0);
  const auto run = peer->run(3, kLong);
  ASSERT_TRUE(run.ok()) << why(run);
  EXPECT_EQ(run->times_ms, (std::vector<double>{2.5, 2.5, 2.5}));
  EXPECT_EQ(run->wall_ms, 7.5);
  const auto memory = peer->memory(kLong);
  ASSERT_TRUE(memory.ok()) << why(memory);
  EXPECT_EQ(memory->peak_rss_mb, 30);
  EXPECT_EQ(memory->interpreter_mb, 9);
  EXPECT_TRUE(peer->finish(kLong).ok());
}

TEST(Peer, AProgramThatIsNotThereIsNamed) {
  const auto peer = Peer::start({.name = "ghost", .words = {"/no/such/program"}});
  ASSERT_FALSE(peer.ok());
  EXPECT_EQ(peer.error().code, Code::kNotFound);
  EXPECT_EQ(peer.error().message,
            "ghost: cannot start '/no/such/program': No such file or directory");
}

TEST(Peer, OneThatDiesIsReportedWithItsLastWords) {
  const auto peer =
      started(python_peer("sys.stderr.write('loading\\nno such model\\n'); sys.exit(3)"));
  const auto info = peer->info(kLong);
  ASSERT_FALSE(info.ok());
  EXPECT_PRED2(holds, info.error().message, "ended with exit code 3 without an answer to 'info'");
  EXPECT_PRED2(holds, info.error().message, "no such model");
  EXPECT_PRED2(holds, why(peer->run(1, kLong)), "has ended");
}

TEST(Peer, OneThatIsKilledIsReportedWithTheSignal) {
  const auto peer = started(python_peer("os.kill(os.getpid(), 11)"));
  EXPECT_PRED2(holds, why(peer->info(kLong)), "was ended by signal 11");
}

TEST(Peer, OneThatHangsIsEnded) {
  const auto peer =
      started(python_peer("sys.stderr.write('thinking'); sys.stderr.flush()\n"
                          "time.sleep(1000)"));
  const int pid = peer->pid();
  const auto info = peer->info(1.5);
  ASSERT_FALSE(info.ok());
  EXPECT_PRED2(holds, info.error().message, "gave no answer within");
  EXPECT_PRED2(holds, info.error().message, "thinking");
  EXPECT_NE(kill(pid, 0), 0) << "the process still lives";
}

TEST(Peer, GarbageIsShownAndIsItsEnd) {
  const auto peer = started(python_peer("print('Hello\\tworld', flush=True)"));
  const auto info = peer->info(kLong);
  ASSERT_FALSE(info.ok());
  EXPECT_PRED2(holds, info.error().message,
               "answered 'Hello world' to 'info', which is no JSON object");
  EXPECT_LT(peer->pid(), 0);
}

TEST(Peer, AnswersOfTheWrongFormAreRefused) {
  EXPECT_PRED2(holds, why(started(python_peer("answer = [1]"))->info(kLong)),
               "which is no JSON object");
  EXPECT_PRED2(holds, why(started(python_peer("answer = {'times_ms': 'fast'}"))->run(2, kLong)),
               "which is not 2 times");
  EXPECT_PRED2(holds, why(started(python_peer("answer = {'times_ms': [1.0]}"))->run(2, kLong)),
               "which is not 2 times");
  EXPECT_PRED2(holds,
               why(started(python_peer("answer = {'times_ms': [1.0, -1.0]}"))->run(2, kLong)),
               "which is not 2 times");
  EXPECT_PRED2(holds, why(started(python_peer("answer = {'times_ms': [None, 1]}"))->run(2, kLong)),
               "which is not 2 times");
}

TEST(Peer, AnErrorThatItTellsIsPassedOn) {
  const auto peer = started(python_peer("answer = {'error': 'op Foo is not known'}"));
  EXPECT_EQ(why(peer->info(kLong)), "fake: op Foo is not known");
}

TEST(Peer, FieldsOfTheWrongTypeCountAsAbsent) {
  const auto peer = started(python_peer("answer = {'engine': 7, 'threads': 'two', 'load_ms': []}"));
  const auto info = peer->info(kLong);
  ASSERT_TRUE(info.ok()) << why(info);
  EXPECT_EQ(info->engine, "");
  EXPECT_EQ(info->threads, 0);
  EXPECT_EQ(info->load_ms, 0);
}

TEST(Peer, AFloodOnStandardErrorHoldsNobody) {
  const auto peer =
      started(python_peer("for _ in range(3000): sys.stderr.write('x' * 1000 + '\\n')\n"
                          "sys.stderr.write('the end\\n')\n"
                          "answer = {'engine': 'loud'}"));
  const auto info = peer->info(kLong);
  ASSERT_TRUE(info.ok()) << why(info);
  EXPECT_EQ(info->engine, "loud");
}

TEST(Peer, OfAFloodTheEndIsShown) {
  const auto peer =
      started(python_peer("for i in range(3000): sys.stderr.write('line %d\\n' % i)\n"
                          "sys.exit(1)"));
  const std::string message = why(peer->info(kLong));
  EXPECT_PRED2(holds, message, "line 2999");
  EXPECT_FALSE(holds(message, "line 2000\n"));
  EXPECT_LT(message.size(), 6000U);
}

TEST(Peer, AnAnswerMayBeLong) {
  const auto peer = started(good_peer(1));
  const auto run = peer->run(200000, kLong);
  ASSERT_TRUE(run.ok()) << why(run);
  EXPECT_EQ(run->times_ms.size(), 200000U);
}

TEST(Peer, InterruptedIsItsEnd) {
  PeerCommand command = python_peer("time.sleep(1000)");
  command.cancelled = [] { return true; };
  const auto peer = started(std::move(command));
  const int pid = peer->pid();
  const auto info = peer->info(kLong);
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code, Code::kCancelled);
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(Peer, OneThatIgnoresTheEndOfItsInputIsEndedToo) {
  int pid = 0;
  {
    const auto peer = started(python_peer("", "while True: time.sleep(1)"));
    pid = peer->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(Peer, IsPinnedToTheFirstProcessor) {
  PeerCommand command = python_peer("answer = {'threads': len(os.sched_getaffinity(0))}");
  command.processors = 1;
  const auto info = started(std::move(command))->info(kLong);
  ASSERT_TRUE(info.ok()) << why(info);
  EXPECT_EQ(info->threads, 1);
}

TEST(RunToEnd, SaysHowItEnded) {
  EXPECT_TRUE(run_to_end({.name = "true", .words = {"true"}}, kLong).ok());
  const Status failed =
      run_to_end({.name = "convert", .words = {"sh", "-c", "echo lost >&2; exit 4"}}, kLong);
  ASSERT_FALSE(failed.ok());
  EXPECT_PRED2(holds, failed.error().message, "convert: ended with exit code 4");
  EXPECT_PRED2(holds, failed.error().message, "lost");
  EXPECT_FALSE(run_to_end({.name = "slow", .words = {"sleep", "1000"}}, 0.1).ok());
}

}  // namespace
}  // namespace ferry::perf
