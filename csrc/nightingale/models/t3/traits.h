#pragma once

namespace nightingale {

// What a T3 is built on. The tensors say it.
enum class BackboneKind {
  llama, // English and multilingual
  gpt2, // Turbo and Nano
};

// What the models of one backbone have in common and no tensor says.
struct T3Traits {
  const char* name;
  bool guidance; // a second row without the text
  bool emotion;
  int prompt_tokens; // of a voice, as the reference makes them
  int text_frame; // tokens that start and stop add to a text
  int speech_starts; // starts of speech before the first token
  // Texts of very few tokens, which are characters, get bounds of their own.
  bool bounds_short_texts;
  // The order of sampling, and its defaults.
  bool penalty_last;
  int top_k; // 0: all
  double top_p;
  double min_p;

  static const T3Traits& of(BackboneKind kind);
};

} // namespace nightingale
