// Completes keys and values of a sweep file, as the command line has them: key=v1,v2.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/text/json_document.h"
#include "tools/completion/candidate.h"

namespace sweep {

/// A sweep file as far as it can be read; nothing of it has to be right.
class SweepKeys {
 public:
  /// Reads `file`, and its network file where it names one. A file that cannot be read counts as empty.
  explicit SweepKeys(const std::filesystem::path& file);

  /// Adds what `word` can become: "optimizer=" and "network." for "", "optimizer=adam" for "optimizer=a".
  /// After a comma, values of a list: "lr=0.1,0.01". Axes of the file come first.
  void complete(const std::string& word, Candidates& candidates) const;
  /// Keys of its axes.
  std::vector<std::string> axes() const;

 private:
  void add_keys(Candidates& candidates) const;
  void add_parts(const std::vector<std::string>& path, const std::string& prefix,
                 Candidates& candidates) const;
  void add_network_parts(const std::vector<std::string>& path, const std::string& prefix,
                         Candidates& candidates) const;
  std::vector<std::string> values(const std::string& key, bool& files) const;
  std::vector<std::string> given_types(const std::string& key) const;

  JsonNode root_;
};

}  // namespace sweep
