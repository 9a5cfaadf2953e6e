#include "nightingale/models/hift/vocoder.h"

#include <doctest/doctest.h>

#include "models/s3gen/tiny_s3gen.h"
#include "nightingale/backends/cpu/threads.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

mx::array tiny_mel(int frames) {
  return noise_array({frames, kMels}, 31);
}

mx::array whole(const mx::array& mel, const SourceDraws& draws = {}) {
  auto vocoder = tiny_vocoder();
  auto state = vocoder->begin(draws);
  return vocoder->feed(state, mel, true);
}

std::vector<float>
in_chunks(const mx::array& mel, int size, const SourceDraws& draws = {}) {
  auto vocoder = tiny_vocoder();
  auto state = vocoder->begin(draws);
  std::vector<float> samples;
  int frames = mel.shape(0);
  for (int begin = 0; begin < frames; begin += size) {
    int end = std::min(frames, begin + size);
    auto chunk = mx::slice(mel, {begin, 0}, {end, kMels}, cpu_stream());
    auto fresh = floats(vocoder->feed(state, chunk, end == frames));
    samples.insert(samples.end(), fresh.begin(), fresh.end());
    if (end < frames) {
      // No frame is later than promised, and none comes before it can.
      int due = ops::kSamplesPerFrame * std::max(0, end - kVocoderLookahead);
      CHECK(static_cast<int>(samples.size()) >= due);
      CHECK(static_cast<int>(samples.size()) < ops::kSamplesPerFrame * end);
    }
  }
  return samples;
}

} // namespace

TEST_CASE("a mel frame makes 480 samples within the limits") {
  for (int frames : {1, 2, 5, 33}) {
    auto samples = floats(whole(tiny_mel(frames)));
    CHECK(samples.size() == frames * 480u);
    for (float sample : samples) {
      REQUIRE(std::abs(sample) <= 0.99f);
    }
  }
}

TEST_CASE("chunks of a mel sound as the whole") {
  auto mel = tiny_mel(75);
  auto expected = values(whole(mel));
  for (int size : {1, 3, 10, 25, 74, 75}) {
    CAPTURE(size);
    auto samples = in_chunks(mel, size);
    REQUIRE(samples.size() == expected.size());
    Values actual(samples.begin(), samples.end());
    CHECK(relative_error(actual, expected) < 1e-3);
  }
}

TEST_CASE("the last chunk may be empty") {
  auto vocoder = tiny_vocoder();
  auto mel = tiny_mel(9);
  auto state = vocoder->begin({});
  auto samples = floats(vocoder->feed(state, mel, false));
  auto none = mx::zeros({0, kMels}, mx::float32, cpu_stream());
  auto rest = floats(vocoder->feed(state, none, true));
  samples.insert(samples.end(), rest.begin(), rest.end());
  Values actual(samples.begin(), samples.end());
  CHECK(relative_error(actual, values(whole(mel))) < 1e-3);
}

TEST_CASE("a copied state goes its own way") {
  auto vocoder = tiny_vocoder();
  auto mel = tiny_mel(40);
  auto s = cpu_stream();
  auto state = vocoder->begin({});
  vocoder->feed(state, mx::slice(mel, {0, 0}, {30, kMels}, s), false);
  auto copy = state;
  auto rest = mx::slice(mel, {30, 0}, {40, kMels}, s);
  auto first = vocoder->feed(state, rest, true);
  CHECK(same_bits(vocoder->feed(copy, rest, true), first));
}

TEST_CASE("the source's draws go by the seed or are given") {
  auto mel = tiny_mel(12);
  auto audio = whole(mel, {.seed = 1});
  CHECK(same_bits(whole(mel, {.seed = 1}), audio));
  CHECK_FALSE(same_bits(whole(mel, {.seed = 2}), audio));
  CHECK_FALSE(same_bits(whole(mel, {.seed = 1, .sentence = 1}), audio));
  SourceDraws given{.phase = std::array<float, 9>{}};
  given.noise = noise_array({12 * 480, 9}, 8);
  auto quiet = whole(mel, given);
  CHECK_FALSE(same_bits(quiet, audio));
  given.seed = 77;
  CHECK(same_bits(whole(mel, given), quiet));
}

TEST_CASE("audio does not depend on the number of threads") {
  auto mel = tiny_mel(30);
  auto before = cpu::threads();
  cpu::set_threads(1);
  auto alone = whole(mel);
  mx::eval(alone);
  cpu::set_threads(3);
  CHECK(same_bits(whole(mel), alone));
  cpu::set_threads(before);
}

TEST_CASE("both namings of weight normalisation are folded") {
  auto old = TinyS3Gen{.old_weight_norm = true}.load_vocoder();
  auto mel = tiny_mel(6);
  auto state = old->begin({});
  CHECK(same_bits(old->feed(state, mel, true), whole(mel)));
}

TEST_CASE("a file without a vocoder is refused by name") {
  for (std::string name :
       {"mel2wav.conv_pre.bias",
        "mel2wav.resblocks.4.convs2.1.bias",
        "mel2wav.f0_predictor.condnet.4.parametrizations.weight.original1"}) {
    auto message =
        error_of([&] { TinyS3Gen{.left_out = name}.load_vocoder(); });
    CHECK(contains(message, name));
  }
}
