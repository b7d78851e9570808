#include "perf/trace.h"

#include <nlohmann/json.hpp>

namespace ferry::perf {

namespace {

using nlohmann::json;

constexpr int kProcess = 1;  // one process, whatever its number was

double microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

json name_event(const char* kind, int thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", kind}, {"pid", kProcess}, {"tid", thread}, {"args", {{"name", name}}}};
}

json span_event(const Span& span) {
  json event = {{"ph", "X"},
                {"name", span.name},
                {"cat", span.category},
                {"ts", microseconds(span.start_ns)},
                {"dur", microseconds(span.duration_ns)},
                {"pid", kProcess},
                {"tid", span.thread}};
  json args = json::object();
  for (const auto& [key, text] : span.texts) args[key] = text;
  for (const auto& [key, number] : span.numbers) args[key] = number;
  if (!args.empty()) event["args"] = std::move(args);
  return event;
}

json counter_event(const Counter& counter) {
  return {{"ph", "C"},
          {"name", counter.name},
          {"ts", microseconds(counter.time_ns)},
          {"pid", kProcess},
          {"args", {{counter.name, counter.value}}}};
}

}  // namespace

std::string trace_json(const Trace& trace) {
  json events = json::array();
  events.push_back(name_event("process_name", 0, trace.process));
  for (const auto& [thread, name] : trace.threads) {
    events.push_back(name_event("thread_name", thread, name));
  }
  for (const Span& span : trace.spans) events.push_back(span_event(span));
  for (const Counter& counter : trace.counters) events.push_back(counter_event(counter));
  const json whole = {
      {"displayTimeUnit", "ms"}, {"otherData", trace.about}, {"traceEvents", std::move(events)}};
  return whole.dump(0, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace ferry::perf
