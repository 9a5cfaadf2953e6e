#include "nightingale/backends/cpu/eviction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace nightingale::cpu {

namespace {

// How many positions are looked at: from 1 to `count`.
double breadth(const float* mass, int count) {
  double total = 0.0, entropy = 0.0;
  for (int i = 0; i < count; ++i) {
    total += mass[i] > 0.0f ? mass[i] : 0.0f;
  }
  if (!(total > 0.0) || !std::isfinite(total)) {
    return count;
  }
  for (int i = 0; i < count; ++i) {
    if (mass[i] > 0.0f) {
      double p = mass[i] / total;
      entropy -= p * std::log(p);
    }
  }
  return std::exp(entropy);
}

// The `count` places of most mass among [begin, end), in order; of equals the
// later.
std::vector<int> heaviest(const float* mass, int begin, int end, int count) {
  std::vector<int> places(end - begin);
  std::iota(places.begin(), places.end(), begin);
  auto weight = [&](int place) { // NaN has no order
    return mass[place] > 0.0f ? mass[place] : 0.0f;
  };
  std::nth_element(
      places.begin(), places.begin() + count, places.end(), [&](int a, int b) {
        return weight(a) != weight(b) ? weight(a) > weight(b) : a > b;
      });
  places.resize(count);
  std::sort(places.begin(), places.end());
  return places;
}

// Leaves `count` of the places [begin, end) and what follows them.
void compact(const EvictedHead& head, int begin, int end, int count) {
  auto places = heaviest(head.mass, begin, end, count);
  int to = begin;
  auto move = [&](int from, int places) {
    for (char* rows : {head.keys, head.values}) {
      std::memmove(
          rows + to * head.bytes,
          rows + from * head.bytes,
          places * head.bytes);
    }
    std::memmove(head.mass + to, head.mass + from, places * sizeof(*head.mass));
    to += places;
  };
  for (int from : places) {
    move(from, 1);
  }
  move(end, head.filled - end);
}

} // namespace

bool evicts(int past, int length, int kept) {
  auto steps = [&](int at) { return std::max(0, at - kept) / kEvictionStep; };
  return steps(length) > steps(past);
}

std::vector<int> share(
    int pool,
    const std::vector<double>& weights,
    const std::vector<int>& most) {
  if (pool >= std::accumulate(most.begin(), most.end(), 0)) {
    return most;
  }
  std::vector<int> shares(weights.size(), -1);
  double left = pool;
  // Who can take less than a fair share leaves more to the others.
  for (bool again = true; again;) {
    again = false;
    double total = 0.0;
    for (size_t i = 0; i < weights.size(); ++i) {
      total += shares[i] < 0 ? weights[i] : 0.0;
    }
    double fair = total > 0.0 ? left / total : 0.0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (shares[i] < 0 && weights[i] * fair >= most[i]) {
        shares[i] = most[i];
        left -= most[i];
        again = true;
      }
    }
    if (!again) {
      for (size_t i = 0; i < weights.size(); ++i) {
        if (shares[i] < 0) {
          shares[i] = static_cast<int>(weights[i] * fair);
        }
      }
    }
  }
  return shares;
}

std::vector<int> evict(
    const std::vector<EvictedHead>& heads,
    int kept,
    int length,
    float budget) {
  int count = length - kept;
  int mean = std::max(
      kLeastRecent,
      static_cast<int>(std::ceil(static_cast<double>(budget) * count)));
  int recent = std::max(kLeastRecent, mean / 2);
  std::vector<double> weights;
  std::vector<int> candidates;
  for (const auto& head : heads) {
    candidates.push_back(std::max(0, head.filled - kept - recent));
    weights.push_back(breadth(head.mass + kept, candidates.back()));
  }
  // Half evenly: a head that looks at one place needs that place.
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) {
    weight = total > 0.0 ? weight / total + 1.0 / heads.size() : 0.0;
  }
  int pool = (mean - recent) * static_cast<int>(heads.size());
  auto shares = share(pool, weights, candidates);
  std::vector<int> dropped;
  for (size_t i = 0; i < heads.size(); ++i) {
    dropped.push_back(candidates[i] - shares[i]);
    if (dropped.back() > 0) {
      compact(heads[i], kept, kept + candidates[i], shares[i]);
    }
  }
  return dropped;
}

} // namespace nightingale::cpu
