#include "perf/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ferry::perf {
namespace {

using nlohmann::json;

Trace small_trace() {
  return {.process = "ferry profile",
          .threads = {{1, "pictures"}},
          .about = {{"model", "tiny.pt"}},
          .spans = {{.name = "network", .category = "stage", .start_ns = 1500, .duration_ns = 3000},
                    {.name = "model.0",
                     .category = "node",
                     .start_ns = 1500,
                     .duration_ns = 1001,
                     .texts = {{"op", "conv2d"}},
                     .numbers = {{"MB", 0.5}}},
                    {.name = "model.1", .category = "node", .start_ns = 2501, .duration_ns = 1999}},
          .counters = {{"resident MB", 4500, 12.5}}};
}

json event_of(const json& trace, const std::string& name) {
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == name) return event;
  }
  return {};
}

TEST(Trace, SpansAreCompleteEventsInMicroseconds) {
  const json trace = json::parse(trace_json(small_trace()));
  const json node = event_of(trace, "model.0");
  EXPECT_EQ(node["ph"], "X");
  EXPECT_EQ(node["cat"], "node");
  EXPECT_DOUBLE_EQ(node["ts"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(node["dur"].get<double>(), 1.001);
  EXPECT_EQ(node["args"]["op"], "conv2d");
  EXPECT_DOUBLE_EQ(node["args"]["MB"].get<double>(), 0.5);
  EXPECT_FALSE(event_of(trace, "model.1").contains("args"));
}

TEST(Trace, NamesItsProcessAndThreads) {
  const json trace = json::parse(trace_json(small_trace()));
  EXPECT_EQ(event_of(trace, "process_name")["args"]["name"], "ferry profile");
  const json thread = event_of(trace, "thread_name");
  EXPECT_EQ(thread["ph"], "M");
  EXPECT_EQ(thread["tid"], 1);
  EXPECT_EQ(thread["args"]["name"], "pictures");
  EXPECT_EQ(trace["otherData"]["model"], "tiny.pt");
}

TEST(Trace, CountersHoldTheirValue) {
  const json counter = event_of(json::parse(trace_json(small_trace())), "resident MB");
  EXPECT_EQ(counter["ph"], "C");
  EXPECT_DOUBLE_EQ(counter["ts"].get<double>(), 4.5);
  EXPECT_DOUBLE_EQ(counter["args"]["resident MB"].get<double>(), 12.5);
}

TEST(Trace, ChildrenThatEndWithTheirParentStayInside) {
  const json trace = json::parse(trace_json(small_trace()));
  const auto end = [&](const char* name) {
    const json event = event_of(trace, name);
    return event["ts"].get<double>() + event["dur"].get<double>();
  };
  EXPECT_NEAR(end("model.1"), end("network"), 1e-9);
  EXPECT_NEAR(end("model.0"), event_of(trace, "model.1")["ts"].get<double>(), 1e-9);
}

TEST(Trace, NamesThatAreNoUtf8AreReplacedNotThrown) {
  Trace trace = small_trace();
  trace.spans[0].name = "caf\xe9";
  EXPECT_FALSE(json::parse(trace_json(trace), nullptr, false).is_discarded());
}

}  // namespace
}  // namespace ferry::perf
