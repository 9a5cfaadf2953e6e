#include "nightingale/models/voice/filterbank.h"

#include <doctest/doctest.h>

#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

struct Filters {
  Values weights;
  int mels, bins;

  Filters(const mx::array& x)
      : weights(values(x)), mels(x.shape(0)), bins(x.shape(1)) {}

  double at(int mel, int bin) const {
    return weights[mel * bins + bin];
  }
  int highest(int mel) const {
    auto row = weights.begin() + mel * bins;
    return std::max_element(row, row + bins) - row;
  }
};

} // namespace

TEST_CASE("Slaney's filters are librosa's") {
  Filters prompt = slaney_filters(24000, 1920, 80);
  CHECK(prompt.mels == 80);
  CHECK(prompt.bins == 961);
  CHECK(prompt.at(0, 3) == doctest::Approx(0.02666536).epsilon(1e-6));
  CHECK(prompt.at(79, 620) == doctest::Approx(0.002804744).epsilon(1e-6));
  CHECK(prompt.highest(10) == 33);
  CHECK(prompt.highest(40) == 138);
  CHECK(prompt.highest(79) == 616);
  Filters tokenizer = slaney_filters(16000, 400, 128);
  CHECK(tokenizer.at(0, 1) == doctest::Approx(0.012373987).epsilon(1e-6));
  CHECK(tokenizer.at(127, 197) == doctest::Approx(0.0033428406).epsilon(1e-6));
  Filters voice = slaney_filters(16000, 400, 40);
  CHECK(voice.at(20, 43) == doctest::Approx(0.00550284).epsilon(1e-6));
  CHECK(voice.at(39, 190) == doctest::Approx(0.001215154).epsilon(1e-6));
}

TEST_CASE("Slaney's filters have unit area and end at 8 kHz") {
  Filters filters = slaney_filters(24000, 1920, 80);
  double hz_per_bin = 24000.0 / 1920;
  for (int mel = 0; mel < 80; ++mel) {
    double area = 0.0;
    for (int bin = 0; bin < filters.bins; ++bin) {
      area += filters.at(mel, bin) * hz_per_bin;
      if (bin * hz_per_bin >= 8000) {
        REQUIRE(filters.at(mel, bin) < 1e-15);
      }
    }
    // Sampled every 12.5 Hz: the narrowest triangles are three bins to a side.
    CHECK(area == doctest::Approx(1.0).epsilon(0.03));
  }
}

TEST_CASE("Kaldi's filters are torchaudio's") {
  Filters filters = kaldi_filters(16000, 512, 80);
  CHECK(filters.mels == 80);
  CHECK(filters.bins == 257);
  const std::tuple<int, int, double> known[] = {
      {0, 1, 0.50398165},
      {1, 2, 0.8642771},
      {2, 3, 0.8300763},
      {40, 59, 0.9724244},
      {79, 248, 0.9477642}};
  for (auto [mel, bin, weight] : known) {
    CAPTURE(mel);
    CHECK(filters.highest(mel) == bin);
    CHECK(filters.at(mel, bin) == doctest::Approx(weight).epsilon(2e-5));
  }
}

TEST_CASE("Kaldi's filters share every bin between the outermost centres") {
  Filters filters = kaldi_filters(16000, 512, 80);
  auto sum = [&](int bin) {
    double total = 0.0;
    for (int mel = 0; mel < 80; ++mel) {
      total += filters.at(mel, bin);
    }
    return total;
  };
  for (int bin = 2; bin <= 247; ++bin) {
    CHECK(sum(bin) == doctest::Approx(1.0).epsilon(1e-4));
  }
  CHECK(sum(0) == 0.0); // below 20 Hz
  CHECK(sum(256) == 0.0); // 8 kHz
}
