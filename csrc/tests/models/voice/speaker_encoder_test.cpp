#include "nightingale/models/voice/speaker_encoder.h"

#include <doctest/doctest.h>

#include "backends/cpu/thread_count.h"
#include "nightingale/models/voice/features.h"
#include "speaker_reference.h"
#include "tiny_speaker_encoder.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

mx::array recording(int count, uint32_t seed, float level = 0.1f) {
  auto samples = noise(count, seed);
  for (int i = 0; i < count; ++i) {
    samples[i] *= level * (1 + i % 4000 / 1000); // that changes in time
  }
  return array_of(samples, {count});
}

int samples_of(int frames) {
  return 400 + (frames - 1) * 160;
}

Values embedding(const SpeakerEncoder& encoder, const mx::array& samples) {
  auto found = encoder.embedding(samples);
  return {found.begin(), found.end()};
}

Values reference(const TinySpeakerEncoder& tiny, const mx::array& samples) {
  auto weights = tiny.weights();
  return SpeakerReference(weights).embedding(
      values(kaldi_fbank(samples, cpu_stream())));
}

} // namespace

TEST_CASE("a speaker's embedding is that of its layers one by one") {
  TinySpeakerEncoder tiny;
  auto encoder = tiny.load();
  // The blocks see half as many frames, in segments of 100.
  for (int frames : {3, 4, 31, 199, 200, 201, 203, 250}) {
    CAPTURE(frames);
    auto samples = recording(samples_of(frames), frames);
    CHECK(
        relative_error(embedding(encoder, samples), reference(tiny, samples)) <
        1e-5);
  }
}

TEST_CASE("a speaker encoder has the sizes of its file") {
  auto samples = recording(4000, 1);
  for (const auto& tiny :
       {TinySpeakerEncoder{.width = 1, .entry = 4, .layers = {1, 1, 1}},
        TinySpeakerEncoder{.width = 5, .bottleneck = 34, .growth = 18},
        TinySpeakerEncoder{.embedding = 19, .layers = {1, 4, 2}}}) {
    Values expected = reference(tiny, samples);
    CHECK(relative_error(embedding(tiny.load(), samples), expected) < 1e-5);
  }
}

TEST_CASE("how loud a speaker is makes no difference") {
  auto encoder = TinySpeakerEncoder{}.load();
  Values quiet = embedding(encoder, recording(20'000, 1, 0.02f));
  Values loud = embedding(encoder, recording(20'000, 1, 0.2f));
  CHECK(relative_error(quiet, loud) < 1e-4);
  Values other = embedding(encoder, recording(20'000, 2, 0.2f));
  CHECK(relative_error(other, loud) > 1e-3);
}

TEST_CASE("a speaker's embedding does not depend on the number of threads") {
  auto encoder = TinySpeakerEncoder{.width = 6, .bottleneck = 40}.load();
  auto samples = recording(20'000, 1);
  std::vector<float> alone;
  {
    ThreadCount one(1);
    alone = encoder.embedding(samples);
  }
  ThreadCount three(3);
  CHECK(same_bits(encoder.embedding(samples), alone));
}

TEST_CASE("a recording of less than three frames has no speaker") {
  auto encoder = TinySpeakerEncoder{}.load();
  for (int count : {0, 399, samples_of(2), samples_of(3) - 1}) {
    CAPTURE(count);
    auto message =
        argument_error_of([&] { encoder.embedding(recording(count, 1)); });
    CHECK(contains(message, std::to_string(count) + " samples"));
  }
  for (double x : embedding(encoder, recording(samples_of(3), 1))) {
    CHECK(std::isfinite(x));
  }
}

TEST_CASE("a speaker encoder's tensors are refused by name") {
  for (std::string name :
       {"head.conv1.weight",
        "head.bn2.running_var",
        "head.layer1.0.shortcut.0.weight",
        "head.layer2.0.conv1.weight",
        "head.layer2.1.conv2.weight",
        "xvector.tdnn.linear.weight",
        "xvector.tdnn.nonlinear.batchnorm.bias",
        "xvector.block1.tdnnd1.linear1.weight",
        "xvector.block2.tdnnd1.cam_layer.linear_local.weight",
        "xvector.block3.tdnnd2.nonlinear1.batchnorm.running_mean",
        "xvector.block3.tdnnd3.linear1.weight",
        "xvector.block3.tdnnd3.cam_layer.linear2.bias",
        "xvector.transit2.linear.weight",
        "xvector.out_nonlinear.batchnorm.weight",
        "xvector.dense.linear.weight",
        "xvector.dense.nonlinear.batchnorm.running_mean"}) {
    CAPTURE(name);
    TinySpeakerEncoder without{.left_out = name};
    CHECK(contains(error_of([&] { without.load(); }), name));
    TinySpeakerEncoder misshapen{.misshapen = name};
    CHECK(contains(error_of([&] { misshapen.load(); }), name));
  }
}

TEST_CASE("all of a speaker encoder is taken but its training's counters") {
  auto weights = TinySpeakerEncoder{}.weights();
  SpeakerEncoder encoder(weights, cpu_stream());
  for (const auto& name : weights.unused({})) {
    CHECK(name.ends_with(".num_batches_tracked"));
  }
}
