// What a shell can put where the cursor is.
#pragma once

#include <string>
#include <vector>

namespace sweep {

struct Candidate {
  std::string text;       // the whole word; one that ends with "=", "." or "/" goes on
  std::string help = {};  // a few words; may be empty
};

struct Candidates {
  std::vector<Candidate> list;
  bool files = false;  // names of files, too, which shells know best

  void add(std::string text, std::string help = "") { list.push_back({std::move(text), std::move(help)}); }
};

}  // namespace sweep
