// A profile as text for people, CSV and JSON.
#pragma once

#include <cstdint>
#include <string>

#include "perf/profile.h"

namespace ferry::perf {

enum class SortBy : unsigned char { kTime, kOrder };
enum class GroupBy : unsigned char { kNode, kOp, kKernel };

struct ProfileTextOptions {
  int64_t top = 20;  // rows of the table; 0: all
  SortBy sort = SortBy::kTime;
  GroupBy group = GroupBy::kNode;
};

std::string profile_text(const Profile& profile, const ProfileTextOptions& options);
std::string profile_csv(const Profile& profile);   // a line for each step, in order
std::string profile_json(const Profile& profile);  // everything but the trace

}  // namespace ferry::perf
