// Plays files through a fuzz target without libFuzzer: `x_fuzz FILE-OR-FOLDER…`. One line at the
// end, and the name of the file that is being played when the target crashes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace fs = std::filesystem;

int main(int argc, char** argv) {
  std::vector<fs::path> files;
  try {
    for (const std::string& argument : std::vector<std::string>(argv + 1, argv + argc)) {
      if (!fs::is_directory(argument)) {
        files.emplace_back(argument);
        continue;
      }
      for (const auto& entry : fs::directory_iterator(argument)) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      // An exact allocation, so that AddressSanitizer sees a read past the end.
      std::vector<uint8_t> bytes(fs::file_size(file));
      std::ifstream(file, std::ios::binary)
          .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      std::fprintf(stderr, "%s (%zu bytes)\n", file.c_str(), bytes.size());
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::printf("%zu inputs played\n", files.size());
  return files.empty() ? 1 : 0;
}
