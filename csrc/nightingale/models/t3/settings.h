#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nightingale {

// An attention head of the backbone that follows the text while speaking.
struct AlignmentHead {
  int64_t layer;
  int64_t head;

  bool operator==(const AlignmentHead&) const = default;
};

// What the tensors cannot say.
struct T3Settings {
  std::vector<AlignmentHead> alignment_heads;
  bool analyser = false; // the alignment analyser guards the stop token
  bool stop_at_repeat = true; // it ends speech where a token comes twice
  float repetition_penalty = 1.2f; // default where the caller gives none

  // Those of a T3 file. Two presets differ in what multilingual models do:
  // "chatterbox-0.1.7" has the analyser and a repetition penalty of 2,
  // "upstream" no analyser and 1.2. The preset of the file's name is the first,
  // for v1 and v2, or the second. A `nightingale.json` beside the file may name
  // another and override single settings, e.g.
  //   {"preset": "upstream", "t3": {"alignment_heads": [[9, 2], [12, 15]]}}
  // `preset`, where it is given, wins over both.
  static T3Settings for_file(
      const std::string& path,
      bool multilingual,
      const std::optional<std::string>& preset = std::nullopt);
};

// Whether a Llama T3 speaks many languages: its vocabulary tells, or where that
// is of no member of the family, the name of its file.
bool is_multilingual(const std::string& path, int text_vocabulary);

} // namespace nightingale
