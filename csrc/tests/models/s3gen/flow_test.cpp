#include "nightingale/models/s3gen/flow.h"

#include <doctest/doctest.h>

#include <limits>

#include "mlx/memory.h"
#include "nightingale/backends/cpu/buffers.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/ops/noise.h"
#include "tiny_s3gen.h"

using namespace nightingale;
using namespace nightingale::testing;

TEST_CASE("the flow reads its sizes off the tensors") {
  TinyS3Gen tiny;
  const auto& config = tiny_flow()->config();
  CHECK(config.width == tiny.width);
  CHECK(config.ffn == tiny.ffn);
  CHECK(config.layers == tiny.layers);
  CHECK(config.upper_layers == tiny.upper_layers);
  CHECK(config.channels == tiny.channels);
  CHECK(config.attention == tiny.attention);
  CHECK(config.transformers == tiny.transformers);
  CHECK(config.middle_levels == tiny.middle_levels);
  CHECK(config.speaker_size == tiny.speaker_size);
  CHECK_FALSE(config.meanflow);
}

TEST_CASE("a mel has two frames for each new token") {
  for (int tokens : {1, 2, 7, 40}) {
    for (int prompt : {0, 2, 20, 21}) {
      CAPTURE(tokens);
      CAPTURE(prompt);
      auto request = tiny_request(tokens, prompt);
      int odd = prompt % 2; // an odd prompt's last frame is of the first token
      CHECK(tiny_flow()->new_frames(request) == 2 * tokens - odd);
      auto mel = solve(*tiny_flow(), request);
      CHECK(mel.shape() == mx::Shape{2 * tokens - odd, kMels});
      for (float value : values(mel)) {
        REQUIRE(std::isfinite(value));
      }
      request.finalize = false;
      int left = std::max(0, 2 * tokens - 6 - odd);
      CHECK(tiny_flow()->new_frames(request) == left);
    }
  }
}

TEST_CASE("with more to follow, the last three tokens are only context") {
  auto request = tiny_request(12);
  request.finalize = false;
  auto frames = values(tiny_flow()->encode(request));
  request.tokens.back() = 17;
  auto others = values(tiny_flow()->encode(request));
  CHECK(frames.size() == (20 + 18) * kMels);
  CHECK(relative_error(others, frames) > 1e-6);
}

TEST_CASE("noise is a function of seed and frame") {
  auto flow = tiny_flow();
  auto request = tiny_request(6);
  request.seed = 3;
  auto seeded = solve(*flow, request);
  auto draw = [&](DrawStage stage, int rows) {
    return floats(ops::normal_noise({3, stage, 0}, rows, kMels, cpu_stream()));
  };
  auto noise = draw(DrawStage::flow_prompt, 20);
  auto fresh = draw(DrawStage::flow_frame, 12);
  noise.insert(noise.end(), fresh.begin(), fresh.end());
  request.seed = 4;
  request.noise = noise;
  CHECK(same_bits(solve(*flow, request), seeded));
  request.noise.reset();
  CHECK_FALSE(same_bits(solve(*flow, request), seeded));
}

TEST_CASE("the mel does not depend on the number of threads") {
  auto request = tiny_request(30);
  auto before = cpu::threads();
  cpu::set_threads(1);
  auto alone = solve(*tiny_flow(), request);
  mx::eval(alone);
  for (int threads : {2, 3}) {
    cpu::set_threads(threads);
    CHECK(same_bits(solve(*tiny_flow(), request), alone));
  }
  cpu::set_threads(before);
}

TEST_CASE("solutions stepped together are those stepped alone") {
  for (bool meanflow : {false, true}) {
    CAPTURE(meanflow);
    auto flow = TinyS3Gen{.meanflow = meanflow}.load_flow();
    auto requests = different_requests();
    auto mels = solve_together(*flow, requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(mels[i], solve(*flow, requests[i])));
    }
  }
}

TEST_CASE("no step after the first allocates") {
  for (int tokens : {10, 60}) {
    CAPTURE(tokens);
    auto request = tiny_request(tokens);
    request.steps = 6;
    auto state = tiny_flow()->begin(request);
    mx::reset_peak_memory();
    tiny_flow()->step(state);
    size_t peak = mx::get_peak_memory(), cache = mx::get_cache_memory();
    uint64_t allocations = cpu::system_allocations();
    while (!state.finished()) {
      tiny_flow()->step(state);
      CHECK(mx::get_peak_memory() == peak);
      CHECK(mx::get_cache_memory() == cache);
      CHECK(cpu::system_allocations() == allocations);
    }
  }
}

TEST_CASE("calls of varying lengths leave memory flat") {
  size_t active = 0;
  for (int i = 0; i < 60; ++i) {
    solve(*tiny_flow(), tiny_request(1 + i * 7 % 40));
    mx::synchronize(cpu_stream());
    if (i == 20) {
      active = mx::get_active_memory();
    }
  }
  CHECK(mx::get_active_memory() <= active * 1.02);
}

TEST_CASE("a meanflow is solved without guidance in even steps") {
  auto flow = TinyS3Gen{.meanflow = true}.load_flow();
  CHECK(flow->config().meanflow);
  CHECK(flow->config().default_steps() == 2);
  auto request = tiny_request(5);
  request.steps = 2;
  auto state = flow->begin(request);
  CHECK(state.ode.input.shape(0) == 1);
  CHECK(state.times.spans == std::vector<float>{0.5f, 0.5f});
  CHECK(solve(*flow, request).shape() == mx::Shape{10, kMels});
}

TEST_CASE("a flow is refused when a request does not fit") {
  auto flow = tiny_flow();
  auto message = [&](auto change) {
    auto request = tiny_request(4);
    change(request);
    return argument_error_of([&] { flow->begin(request); });
  };
  CHECK(contains(message([](auto& r) { r.tokens = {}; }), "no speech tokens"));
  CHECK(contains(message([](auto& r) { r.tokens[1] = 6561; }), "6561"));
  CHECK(contains(message([](auto& r) { r.tokens[1] = -1; }), "-1"));
  CHECK(contains(
      message([](auto& r) { r.voice.prompt_tokens[0] = 7000; }), "7000"));
  CHECK(contains(message([](auto& r) { r.steps = 0; }), "steps is 0"));
  CHECK(contains(
      message([](auto& r) { r.voice.speaker.pop_back(); }), "11 values"));
  CHECK(contains(
      message([](auto& r) { r.voice.prompt_mel.pop_back(); }), "prompt_feat"));
  CHECK(contains(
      message([](auto& r) {
        r.voice.prompt_mel[3] = std::numeric_limits<float>::quiet_NaN();
      }),
      "not finite"));
  CHECK(contains(
      message([](auto& r) { r.voice.prompt_tokens = {}; }), "more than its"));
  CHECK(contains(
      message([](auto& r) { r.noise = std::vector<float>(kMels); }),
      "expected 28"));
}

TEST_CASE("an incomplete S3Gen checkpoint is refused by name") {
  for (std::string name :
       {"flow.encoder.encoders.1.norm_ff.bias",
        "flow.decoder.estimator.mid_blocks.0.1.0.ff.net.2.weight",
        "flow.input_embedding.weight"}) {
    auto message = error_of([&] { TinyS3Gen{.left_out = name}.load_flow(); });
    CHECK(contains(message, name));
  }
}

TEST_CASE("sound is what stands between start and stop") {
  auto sound = [](std::vector<int> tokens) { return sound_tokens(tokens); };
  CHECK(sound({1, 2, 3}).tokens == std::vector{1, 2, 3});
  CHECK(sound({9, 6561, 1, 2, 6562, 3}).tokens == std::vector{1, 2});
  CHECK(sound({1, 2, 6562}).tokens == std::vector{1, 2});
  auto strange = sound({6561, 5, 7000, -1, 6, 8193, 6562});
  CHECK(strange.tokens == std::vector{5, 6});
  CHECK(strange.dropped == 3);
  CHECK(sound({6561, 6562}).tokens.empty());
  CHECK(sound({}).tokens.empty());
}
