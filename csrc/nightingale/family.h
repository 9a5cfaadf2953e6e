#pragma once

// What all models of the family have in common and no tensor says.

namespace nightingale {

constexpr int kHeadDim = 64;

constexpr int kStartText = 255;
constexpr int kStopText = 0;
constexpr int kStartSpeech = 6561; // ids below are sound
constexpr int kStopSpeech = 6562;

constexpr int kMels = 80;
constexpr int kFramesPerToken = 2;
constexpr int kLookaheadTokens = 3; // that the token encoder looks ahead

} // namespace nightingale
