// The fuzzers' targets with their seeds, and with every seed cut off anywhere
// or with a byte changed.

#include <doctest/doctest.h>

#include "io/fuzz/targets.h"

using namespace nightingale::testing;

TEST_CASE("fuzz targets read each of their seeds") {
  for (const auto& target : fuzz_targets()) {
    for (const auto& seed : target.seeds()) {
      CAPTURE(target.name);
      CAPTURE(seed);
      CHECK(target.accepts(seed));
    }
  }
}

TEST_CASE("fuzz targets read a changed seed or throw an Error") {
  for (const auto& target : fuzz_targets()) {
    int accepted = 0, refused = 0;
    for (const auto& seed : target.seeds()) {
      for (size_t place = 0; place < seed.size(); ++place) {
        for (char byte : {'9', '\xff'}) {
          std::string changed = seed;
          changed[place] = byte;
          ++(target.accepts(changed) ? accepted : refused);
        }
        ++(target.accepts(seed.substr(0, place)) ? accepted : refused);
      }
    }
    CAPTURE(target.name);
    CHECK(accepted > 50); // names, elements and numbers may be others
    CHECK(refused > 200);
  }
}

TEST_CASE("settings are read up to their limits only") {
  const auto& settings = fuzz_target("settings");
  auto with_heads = [](int count) {
    std::string heads = "[0,0]";
    for (int i = 1; i < count; ++i) {
      heads += ",[0,0]";
    }
    return R"({"t3":{"alignment_heads":[)" + heads + "]}}";
  };
  CHECK(settings.accepts(with_heads(64)));
  CHECK_FALSE(settings.accepts(with_heads(65)));
  CHECK(settings.accepts("{}" + std::string((1 << 20) - 2, ' ')));
  CHECK_FALSE(settings.accepts("{}" + std::string((1 << 20) - 1, ' ')));
}
