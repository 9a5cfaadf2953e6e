#pragma once

#include <vector>

namespace nightingale {

// The text position of each query, never going back, that has most of the
// attention. weights: [queries, text]. Begins at the start of the text; to_end:
// ends at its end, else anywhere.
std::vector<int>
monotonic_path(const std::vector<float>& weights, int text, bool to_end);

} // namespace nightingale
