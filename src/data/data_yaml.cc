// data.yaml, as Ultralytics YOLOv5 reads it (utils/general.py, check_dataset): `path`, `train`,
// `val`, `test`, `nc`, `names`. Nothing is downloaded.
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <filesystem>

#include "data/labels.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxYamlBytes = int64_t{4} << 20;
constexpr int64_t kMaxClasses = 100'000;
constexpr const char* kSplits[] = {"train", "val", "test"};

Result<YAML::Node> load(const std::string& path) {
  FERRY_TRY(text, read_text(path, kMaxYamlBytes));
  try {
    YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) {
      return error(Code::kInvalid,
                   "{}: not a data.yaml: it should say `train:`, `val:` and "
                   "`names:`",
                   path);
    }
    return root;
  } catch (const YAML::Exception& e) {
    return error(Code::kInvalid, "{}: not a yaml: {}", path, e.what());
  }
}

// `names` as a list, or as a map from class numbers; else as many as `nc` says.
Result<std::vector<std::string>> names_of(const YAML::Node& root, const std::string& path) {
  std::vector<std::string> names;
  const YAML::Node given = root["names"], nc = root["nc"];
  if (given && given.IsSequence()) {
    for (const YAML::Node& name : given) names.push_back(name.as<std::string>());
  } else if (given && given.IsMap()) {
    for (const auto& entry : given) {
      const auto id = entry.first.as<int64_t>();
      if (id < 0 || id >= kMaxClasses) {
        return error(Code::kInvalid, "{}: class number {} in `names`: needs 0 to {}", path, id,
                     kMaxClasses - 1);
      }
      if (names.size() <= static_cast<size_t>(id)) names.resize(static_cast<size_t>(id) + 1);
      names[static_cast<size_t>(id)] = entry.second.as<std::string>();
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) names[i] = fmt::format("class{}", i);
    }
  } else if (given && !given.IsNull()) {
    return error(Code::kInvalid, "{}: `names` is neither a list nor a map from class numbers",
                 path);
  }
  if (!nc || nc.IsNull()) return names;
  const auto count = nc.as<int64_t>();
  if (count < 0 || count > kMaxClasses)
    return error(Code::kInvalid, "{}: `nc` is {}: needs 0 to {}", path, count, kMaxClasses);
  if (names.empty()) {
    for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("class{}", i));
  }
  if (static_cast<int64_t>(names.size()) != count) {
    return error(Code::kInvalid, "{}: `nc` is {}, but `names` has {} classes", path, count,
                 names.size());
  }
  return names;
}

// The folders that a split's relative names may start from.
std::vector<fs::path> bases_of(const YAML::Node& root, const fs::path& yaml) {
  const fs::path here = yaml.parent_path();
  std::vector<fs::path> bases;
  if (const YAML::Node path = root["path"]; path && path.IsScalar()) {
    const fs::path said(path.as<std::string>());
    if (said.is_absolute()) {
      bases.push_back(said);
    } else {
      bases.insert(bases.end(),
                   {here / said, here.empty() ? ".." / said : here / ".." / said, said});
    }
  }
  bases.insert(bases.end(), {here, "."});
  return bases;
}

}  // namespace

Result<DataYaml> read_data_yaml(const std::string& path, const std::string& split) {
  FERRY_TRY(root, load(path));
  try {
    DataYaml data;
    FERRY_TRY(names, names_of(root, path));
    data.names = std::move(names);
    const YAML::Node given = root[split];
    std::vector<std::string> wanted;
    if (given && given.IsScalar() && !given.Scalar().empty()) wanted.push_back(given.Scalar());
    if (given && given.IsSequence()) {
      for (const YAML::Node& one : given) wanted.push_back(one.as<std::string>());
    }
    if (wanted.empty()) {
      return error(Code::kNotFound, "{}: has no `{}:`, the pictures of that split", path, split);
    }
    for (const std::string& want : wanted) {
      std::string tried;
      bool found = false;
      std::vector<fs::path> candidates;
      for (const fs::path& base : bases_of(root, path)) candidates.push_back(base / want);
      // Roboflow writes ../valid/images where valid/images is meant; upstream mends it too.
      if (want.starts_with("../"))
        for (const fs::path& base : bases_of(root, path))
          candidates.push_back(base / want.substr(3));
      for (const fs::path& named : candidates) {
        const fs::path candidate = named.lexically_normal();
        std::error_code failure;
        if (fs::exists(candidate, failure)) {
          data.sources.push_back(candidate.string());
          found = true;
          break;
        }
        if (tried.find(candidate.string()) == tried.npos)
          tried += (tried.empty() ? "" : ", ") + candidate.string();
      }
      if (!found) {
        return error(Code::kNotFound,
                     "{}: `{}: {}` is not there; looked for {}. Put the dataset there, or mend "
                     "`path:`",
                     path, split, want, tried);
      }
    }
    return data;
  } catch (const YAML::Exception& e) {
    return error(Code::kInvalid, "{}: {}", path, e.what());
  }
}

Result<std::vector<std::string>> data_yaml_splits(const std::string& path) {
  FERRY_TRY(root, load(path));
  std::vector<std::string> splits;
  for (const char* split : kSplits) {
    const YAML::Node given = root[split];
    if (!given) continue;
    if ((given.IsScalar() && !given.Scalar().empty()) || (given.IsSequence() && given.size() > 0))
      splits.emplace_back(split);
  }
  return splits;
}

}  // namespace ferry::data
