#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nightingale {

// An attention head of the backbone that follows the text while speaking.
struct AlignmentHead {
  int64_t layer;
  int64_t head;
};

// What the tensors cannot say. Built-in values go by the official file name; a
// `nightingale.json` beside the file overrides them, e.g.
//   {"t3": {"analyser": true, "alignment_heads": [[9, 2], [12, 15]],
//           "repetition_penalty": 2.0}}
struct T3Settings {
  std::vector<AlignmentHead> alignment_heads;
  bool analyser = false; // the alignment analyser guards the stop token
  bool stop_at_repeat = true; // it ends speech where a token comes twice
  float repetition_penalty = 1.2f; // default where the caller gives none

  static T3Settings for_file(const std::string& path);
};

} // namespace nightingale
