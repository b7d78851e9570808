// `runs/<command>/exp`: where a command leaves its files, numbered as Ultralytics does.
#pragma once

#include <string>

#include "base/result.h"

namespace ferry::cli {

enum class IfExists { kNumber, kReuse };

// Makes `project/name`; where it exists already, `project/name2`, `name3`, … (the first that is
// free), or with kReuse the same again.
Result<std::string> make_run_folder(const std::string& project, const std::string& name,
                                    IfExists if_exists);

Status make_folder(const std::string& path);  // with its parents; fine when it exists

}  // namespace ferry::cli
