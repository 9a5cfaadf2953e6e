#include "nightingale/models/t3/draft.h"

namespace nightingale {

std::vector<int> propose_tokens(
    const ops::Sampler& sampler,
    int count,
    const std::function<mx::array(const mx::array& token, int position)>&
        logits_after,
    mx::Stream s) {
  auto fork = sampler.fork_for_draft(s);
  std::vector<int> tokens;
  while (static_cast<int>(tokens.size()) < count) {
    auto logits = logits_after(fork.token, fork.position);
    fork = ops::choose_token(logits, {}, std::move(fork), s);
    int token = fork.token.item<int>();
    if (token == sampler.rules.stop_token) {
      break;
    }
    tokens.push_back(token);
  }
  return tokens;
}

} // namespace nightingale
