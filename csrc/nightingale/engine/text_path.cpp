#include "nightingale/engine/text_path.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nightingale {

namespace {

constexpr double kSkip = 0.5; // nats of attention for a text token passed over
constexpr double kFloor = 1e-3; // a head that looks away is not lost

} // namespace

std::vector<int>
monotonic_path(const std::vector<float>& weights, int text, bool to_end) {
  int queries = weights.size() / text;
  auto gain = [&](int query, int place) {
    return std::log(double(weights[size_t(query) * text + place]) + kFloor);
  };
  std::vector<double> best(text), ahead(text);
  for (int place = 0; place < text; ++place) {
    best[place] = gain(0, place) - kSkip * place;
  }
  std::vector<int> came_from(weights.size(), 0);
  for (int query = 1; query < queries; ++query) {
    for (int place = 0; place < text; ++place) {
      ahead[place] = best[place] + kSkip * place;
    }
    // Of all earlier positions the best one to come from, each text token
    // between at its cost.
    int leader = 0;
    for (int place = 0; place < text; ++place) {
      double moved = place == 0 ? -std::numeric_limits<double>::infinity()
                                : ahead[leader] - kSkip * (place - 1);
      bool moves = moved > best[place];
      came_from[size_t(query) * text + place] = moves ? leader : place;
      if (ahead[place] >= ahead[leader]) {
        leader = place;
      }
      best[place] = (moves ? moved : best[place]) + gain(query, place);
    }
  }
  if (to_end) {
    for (int place = 0; place < text; ++place) {
      best[place] += kSkip * place;
    }
  }
  std::vector<int> path(queries);
  path.back() = std::ranges::max_element(best) - best.begin();
  for (int query = queries - 1; query > 0; --query) {
    path[query - 1] = came_from[size_t(query) * text + path[query]];
  }
  return path;
}

} // namespace nightingale
