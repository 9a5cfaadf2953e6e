#pragma once

#include <memory>
#include <vector>

#include "nightingale/models/t3/conditioning.h"
#include "nightingale/models/t3/config.h"

namespace nightingale {

// Where speech tokens stand.
struct SpeechPlace {
  int spoken; // speech tokens before them, starts that the prompt has aside
  int past; // positions of the whole sequence before them
};

// What enters the backbone: voice, text and speech as rows of numbers. Models
// of other backbones differ here.
class T3Inputs {
 public:
  virtual ~T3Inputs() = default;

  static std::shared_ptr<const T3Inputs>
  read(Weights& weights, const T3Config& config, mx::Stream s);

  // The voice's own positions, which come first: [1, at least 1, hidden]
  virtual mx::array voice(const T3Voice& voice) const = 0;

  // The positions between the voice, which takes `past`, and the speech.
  // → [rows, text or more, hidden]
  virtual mx::array text(const std::vector<int>& tokens, int past, int rows)
      const = 0;

  // tokens: [n] int32, the first of them at `place`, the same for every row
  // → [rows, n, hidden]
  virtual mx::array speech(const mx::array& tokens, SpeechPlace place, int rows)
      const = 0;

  // One drawn token on its way into the next step: [rows, 1, hidden] float32
  virtual mx::array
  next_speech(const mx::array& token, SpeechPlace place, int rows) const = 0;
};

} // namespace nightingale
