#include "nightingale/models/t3/proposal_length.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace nightingale;

namespace {

// What a machine and a draft are like, in seconds.
struct Machine {
  double draft = 0.1; // a token
  double pass = 1.0; // of one position
  double position = 0.02; // each more
  double choice = 0.01;

  // A round of `asked`, of which `right` in a row are right.
  SpeculationRound round(int asked, int right) const {
    SpeculationRound r;
    r.asked = r.proposed = asked;
    r.accepted = right < asked ? right : asked;
    r.draft_seconds = asked * draft;
    r.pass_seconds = pass + asked * position;
    r.choice_seconds = (r.accepted + 1) * choice;
    return r;
  }
};

// The lengths of `count` rounds of a draft that is right `right` times.
std::vector<int> lengths(const Machine& machine, int right, int count) {
  ProposalLength length(std::nullopt);
  std::vector<int> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(length.next());
    length.learn(machine.round(all.back(), right));
  }
  return all;
}

} // namespace

TEST_CASE("a fixed length stays") {
  ProposalLength length(5);
  for (int i = 0; i < 10; ++i) {
    CHECK(length.next() == 5);
    length.learn(Machine{}.round(5, 0));
  }
}

TEST_CASE("the first step is plain: the others are measured by it") {
  CHECK(lengths({}, 7, 1) == std::vector<int>{0});
}

TEST_CASE("a good and cheap draft is asked for as much as may be checked") {
  auto all = lengths({}, 7, 60);
  CHECK(all[1] > 0);
  CHECK(all.back() == ProposalLength::kMost);
}

TEST_CASE("a draft that is wrong is left alone, but for a try now and then") {
  auto all = lengths({}, 0, 400);
  int tries = 0, first_plain = 0;
  for (int i = 1; i < 400; ++i) {
    if (all[i] > 0 && i > 100) {
      ++tries;
      CHECK(all[i] == 1);
    }
    if (all[i] == 0 && first_plain == 0) {
      first_plain = i;
    }
  }
  CHECK(first_plain > 1);
  CHECK(first_plain < 40);
  CHECK(tries >= 3);
  CHECK(tries <= 6);
}

TEST_CASE("a draft that is right every other time soon gains what it can") {
  // As measured of a full-size T3 in float32 and a small one that was trained
  // for it; eight rows of a pass are dear.
  Machine machine{.draft = 0.02, .position = 0.07, .choice = 0.0};
  auto seconds = [&](std::optional<int> fixed) {
    ProposalLength length(fixed);
    std::minstd_rand random(1);
    double total = 0.0;
    for (int tokens = 0; tokens < 300;) {
      int asked = length.next(), right = 0;
      while (right < asked && random() % 100 < 55) {
        ++right;
      }
      auto round = machine.round(asked, right);
      round.pass_seconds += asked >= 3 ? 0.25 : 0.0;
      length.learn(round);
      total += round.draft_seconds + round.pass_seconds;
      tokens += right + 1;
    }
    return total;
  };
  double best = seconds(2);
  CHECK(best < 0.7 * seconds(0));
  CHECK(seconds(std::nullopt) < 1.1 * best);
}

TEST_CASE("a draft as slow as the model is not worth its time") {
  auto all = lengths({.draft = 1.0}, 7, 100);
  CHECK(all.back() == 0);
}

TEST_CASE("where every position costs a pass, none is checked ahead") {
  auto all = lengths({.draft = 0.0, .position = 1.0}, 2, 100);
  CHECK(all.back() == 0);
}

TEST_CASE("a plain step measured in a bad moment keeps no bad draft on") {
  ProposalLength length(std::nullopt);
  length.learn(Machine{.pass = 50.0}.round(0, 0));
  for (int i = 0; i < 100; ++i) {
    length.learn(Machine{.draft = 0.0}.round(length.next(), 0));
  }
  CHECK(length.next() == 0);
}

TEST_CASE("a draft that becomes right is found out") {
  ProposalLength length(std::nullopt);
  Machine machine;
  auto run = [&](int right, int rounds) {
    int asked = 0;
    for (int i = 0; i < rounds; ++i) {
      asked = length.next();
      length.learn(machine.round(asked, right));
    }
    return asked;
  };
  CHECK(run(0, 100) == 0);
  CHECK(run(7, 2000) > 1);
}

TEST_CASE("a draft that has nothing to say costs no proposals") {
  ProposalLength length(std::nullopt);
  Machine machine;
  length.learn(machine.round(0, 0));
  for (int i = 0; i < 100; ++i) {
    auto silent = machine.round(0, 0);
    silent.asked = length.next();
    CHECK(silent.asked > 0); // it has not been wrong yet
    length.learn(silent);
  }
}
