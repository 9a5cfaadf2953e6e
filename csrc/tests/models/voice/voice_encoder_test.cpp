#include "nightingale/models/voice/voice_encoder.h"

#include <doctest/doctest.h>

#include "backends/cpu/thread_count.h"
#include "nightingale/models/voice/features.h"
#include "ops/lstm_reference.h"
#include "tiny_voice_encoder.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

Values normalised(Values x) {
  double squares = 0;
  for (double value : x) {
    squares += value * value;
  }
  for (double& value : x) {
    value /= std::sqrt(squares);
  }
  return x;
}

// The embedding of one part. part: [160, 40]
Values
embed_reference(Weights& weights, const TinyVoiceEncoder& tiny, Values part) {
  auto take = [&](const std::string& name) {
    return weights.take(name, weights.shape(name));
  };
  for (int i = 0; i < tiny.layers; ++i) {
    std::string layer = "_l" + std::to_string(i);
    auto bias = mx::add(
        take("lstm.bias_ih" + layer),
        take("lstm.bias_hh" + layer),
        cpu_stream());
    part = lstm_reference(
        part,
        1,
        160,
        take("lstm.weight_ih" + layer),
        take("lstm.weight_hh" + layer),
        bias);
  }
  Values w = values(take("proj.weight")), y = values(take("proj.bias"));
  const double* last = part.data() + 159 * tiny.units;
  for (int e = 0; e < tiny.embedding; ++e) {
    for (int u = 0; u < tiny.units; ++u) {
      y[e] += w[e * tiny.units + u] * last[u];
    }
    y[e] = std::max(0.0, y[e]);
  }
  return normalised(y);
}

// Of a recording that is loud from end to end.
Values reference(
    const TinyVoiceEncoder& tiny,
    const std::vector<float>& samples) {
  int count = samples.size();
  Values mel =
      values(voice_mel(mx::array(samples.begin(), {count}), cpu_stream()));
  int frames = mel.size() / 40;
  int reach = std::max(0, frames - 160 + 77), parts = reach / 77;
  if (parts == 0 || (reach % 77 + 83) / 160.0 >= 0.8) {
    ++parts;
  }
  mel.resize((160 + 77 * parts) * 40);
  auto weights = tiny.weights();
  Values sum(tiny.embedding);
  for (int i = 0; i < parts; ++i) {
    auto begin = mel.begin() + i * 77 * 40;
    Values part = embed_reference(weights, tiny, {begin, begin + 160 * 40});
    std::ranges::transform(sum, part, sum.begin(), std::plus<>());
  }
  return normalised(sum);
}

Values embedding(
    const VoiceEncoder& encoder,
    const std::vector<float>& samples) {
  auto found = encoder.embedding(samples);
  return {found.begin(), found.end()};
}

} // namespace

TEST_CASE("a voice's embedding is the mean over its parts") {
  TinyVoiceEncoder tiny;
  auto encoder = tiny.load();
  // A part that is not whole counts from 128 frames on, and if it is the only
  // one: 160 + 44 and 160 + 45 frames, and so on.
  for (int frames : {20, 159, 160, 161, 204, 205, 237, 281, 282, 520}) {
    CAPTURE(frames);
    auto samples = noise_recording((frames - 1) * 160, frames);
    CHECK(
        relative_error(embedding(encoder, samples), reference(tiny, samples)) <
        1e-5);
  }
}

TEST_CASE("a voice encoder has as many layers as its file") {
  auto samples = noise_recording(9000, 1);
  for (int layers : {1, 3}) {
    TinyVoiceEncoder tiny{.units = 9, .layers = layers, .embedding = 5};
    Values expected = reference(tiny, samples);
    CHECK(relative_error(embedding(tiny.load(), samples), expected) < 1e-5);
  }
}

TEST_CASE("silence around a voice does not change its embedding") {
  auto encoder = TinyVoiceEncoder{}.load();
  auto voice = noise_recording(20'000, 1);
  auto between = [&](int before, int after) {
    std::vector<float> samples(before);
    samples.insert(samples.end(), voice.begin(), voice.end());
    samples.resize(samples.size() + after);
    return encoder.embedding(samples);
  };
  auto expected = between(4096, 4096);
  CHECK(same_bits(between(40'960, 4096), expected));
  CHECK(same_bits(between(4096, 30'000), expected));
}

TEST_CASE("a voice's embedding does not depend on the number of threads") {
  auto encoder = TinyVoiceEncoder{.units = 70}.load();
  auto samples = noise_recording(70'000, 1);
  std::vector<float> alone;
  {
    ThreadCount one(1);
    alone = encoder.embedding(samples);
  }
  ThreadCount three(3);
  CHECK(same_bits(encoder.embedding(samples), alone));
}

TEST_CASE("a recording without a voice is refused") {
  auto deaf = TinyVoiceEncoder{.proj_offset = -100.0f}.load();
  auto message =
      argument_error_of([&] { deaf.embedding(noise_recording(20'000, 1)); });
  CHECK(contains(message, "no voice"));
  auto encoder = TinyVoiceEncoder{}.load();
  message = argument_error_of([&] { encoder.embedding({}); });
  CHECK(contains(message, "0 samples"));
}

TEST_CASE("a voice encoder's tensors are refused by name") {
  for (std::string name :
       {"lstm.weight_ih_l0",
        "lstm.weight_ih_l1",
        "lstm.weight_hh_l1",
        "lstm.bias_ih_l0",
        "lstm.bias_hh_l1",
        "proj.weight",
        "proj.bias"}) {
    CAPTURE(name);
    TinyVoiceEncoder without{.left_out = name};
    CHECK(contains(error_of([&] { without.load(); }), name));
    TinyVoiceEncoder misshapen{.misshapen = name};
    CHECK(contains(error_of([&] { misshapen.load(); }), name));
  }
}

TEST_CASE("what only training needs of a voice encoder is not taken") {
  auto weights = TinyVoiceEncoder{}.weights();
  VoiceEncoder encoder(weights, cpu_stream());
  CHECK(
      weights.unused({}) ==
      std::vector<std::string>{"similarity_bias", "similarity_weight"});
}
