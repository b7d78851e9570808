// Options that several commands share, and checks of their values: what is wrong on the command
// line is said before any work (exit code 2).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::cli {

// `--imgsz`: one side, or height and width.
void add_image_size(CLI::App& app, std::vector<int64_t>& imgsz);
// `--device`.
void add_device(CLI::App& app, std::string& device);
// `--threads`; 0 means all processors.
void add_threads(CLI::App& app, int& threads);
// `--cfg`: a file that exists.
void add_cfg(CLI::App& app, std::string& cfg);
// `--project`, `--name`, `--exist-ok`: run_folder.h.
void add_run_folder(CLI::App& app, std::string& project, std::string& name, bool& exist_ok);

CLI::Validator fraction();   // a number from 0 to 1; nan is none
CLI::Validator pass_name();  // a graph pass, `all` or `help`

// Fails when `output` is the same file as one of `inputs`, which it would replace.
std::string overwrites(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace ferry::cli
