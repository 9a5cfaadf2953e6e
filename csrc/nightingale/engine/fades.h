#pragma once

#include <vector>

// Arithmetic on samples and on the frames of a mel, [frames, mels], where two
// solutions meet and where a sentence begins and ends.

namespace nightingale {

// `fresh`, faded in over the rows of `old`, which are not more; `width` values
// a row.
std::vector<float> cross_fade(
    const std::vector<float>& old,
    std::vector<float> fresh,
    int width = 1);

// `mel` up to the frame `settled`, then `fresh`, which takes over within two
// frames from what `mel` had there.
std::vector<float>
blend(const std::vector<float>& mel, std::vector<float> fresh, int settled);

// 20 ms of silence and 20 ms of fade-in: what spills over from the voice's
// prompt goes. begin: which sample of the sentence the first is.
void fade_in(std::vector<float>& samples, int begin = 0);

// Fades the last 10 ms out.
void fade_out(std::vector<float>& samples);

// Frames that a mel has at another speed.
int stretched_length(int frames, double speed);

// How many of the stretched frames these determine, whatever follows them.
int determined_length(int frames, double speed);

// Frames [begin, end) of a mel at another speed, linear between those there
// are. first: which of its frames is the first in `mel`.
std::vector<float> stretch(
    const std::vector<float>& mel,
    double speed,
    int begin,
    int end,
    int first = 0);

} // namespace nightingale
