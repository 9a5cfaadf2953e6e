#include "nightingale/models/t3/draft.h"

namespace nightingale {

std::vector<int> rehearse(
    const ops::Sampler& sampler,
    int count,
    const std::function<mx::array(const mx::array& token, int position)>&
        logits_after,
    mx::Stream s) {
  auto rehearsal = sampler.rehearsal(s);
  std::vector<int> tokens;
  while (static_cast<int>(tokens.size()) < count) {
    auto logits = logits_after(rehearsal.token, rehearsal.position);
    rehearsal = ops::choose_token(logits, {}, std::move(rehearsal), s);
    int token = rehearsal.token.item<int>();
    if (token == sampler.rules.stop_token) {
      break;
    }
    tokens.push_back(token);
  }
  return tokens;
}

} // namespace nightingale
