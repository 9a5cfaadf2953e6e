#pragma once

// What all models of the family have in common and no tensor says.

namespace nightingale {

constexpr int kHeadDim = 64;

// Text tokens of multilingual v1, and of all later multilingual models.
constexpr int kV1TextVocabulary = 2352;
constexpr int kMultilingualTextVocabulary = 2454;

constexpr int kStartText = 255;
constexpr int kStopText = 0;
constexpr int kStartSpeech = 6561; // ids below are sound
constexpr int kStopSpeech = 6562;

constexpr int kMels = 80;
constexpr int kFramesPerToken = 2;
constexpr int kLookaheadTokens = 3; // that the token encoder looks ahead

} // namespace nightingale
