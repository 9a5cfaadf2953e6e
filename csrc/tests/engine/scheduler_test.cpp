// Sessions that run beside others say what they say alone.

#include "nightingale/engine/scheduler.h"

#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "tiny_session.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kTexts = 6;

// One that differs from the others in text, seed, length and chunks.
std::unique_ptr<Session> session(
    std::shared_ptr<const Model> model,
    int number,
    const KvCache& voice = tiny_condition()) {
  auto manner =
      tiny_manner(number % 3 ? std::optional(4 + number) : std::nullopt);
  manner->voice = voice;
  manner->options.seed = number;
  manner->options.max_tokens = 12 + 5 * number;
  manner->options.cfg_weight = number % 4 ? 0.5f : 0.0f;
  auto made = std::make_unique<Session>(std::move(model), SessionOptions{});
  made->add(segment(manner, number));
  return made;
}

const std::vector<Said>& alone() {
  static const auto all = [] {
    std::vector<Said> said;
    for (int number = 0; number < kTexts; ++number) {
      said.push_back(joined(rest_of(*session(tiny_model(), number))));
    }
    return said;
  }();
  return all;
}

// A session under way.
struct Running {
  int number;
  std::unique_ptr<Session> session;
  std::vector<SpokenChunk> chunks;

  void step() {
    if (auto chunk = session->step()) {
      chunks.push_back(std::move(*chunk));
    }
  }
};

} // namespace

TEST_CASE("sessions that come and go at random say what they say alone") {
  for (int seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto model = tiny_model();
    std::vector<Running> running;
    int begun = 0, cancelled = 0, compared = 0;
    while (begun < 16 || !running.empty()) {
      if (begun < 16 && (running.empty() || random() % 12 == 0)) {
        running.push_back({begun % kTexts, session(model, begun % kTexts), {}});
        ++begun;
      }
      size_t chosen = random() % running.size();
      auto& one = running[chosen];
      one.step();
      bool cancels = random() % 150 == 0;
      if (one.session->done()) {
        CHECK(joined(one.chunks) == alone()[one.number]);
        ++compared;
      }
      if (one.session->done() || cancels) {
        cancelled += !one.session->done();
        running.erase(running.begin() + chosen);
      }
    }
    CHECK(compared + cancelled == 16);
    CHECK(compared >= 8);
    CHECK(cancelled >= 1);
    CHECK(model->scheduler->steps() > 2 * model->scheduler->passes());
  }
}

TEST_CASE("a session that nobody listens to is one chunk's tokens ahead") {
  auto model = tiny_model();
  Running left{4, session(model, 4), {}};
  for (int step = 0; step < 5; ++step) {
    left.step();
  }
  auto passes = model->scheduler->passes(), steps = model->scheduler->steps();
  CHECK(steps == passes);
  CHECK(joined(rest_of(*session(model, 5))) == alone()[5]);
  passes = model->scheduler->passes() - passes;
  steps = model->scheduler->steps() - steps;
  CHECK(passes >= 20);
  CHECK(steps == passes + 6); // it had 5 of 8 and the look-ahead
  while (!left.session->done()) {
    left.step();
  }
  CHECK(joined(left.chunks) == alone()[4]);
}

TEST_CASE("a session far ahead of its listener leaves a new one alone") {
  for (int seconds : {0, 600}) {
    auto model = tiny_model();
    Session ahead(model, {});
    ahead.add({nullptr, {}, 0, {}, int64_t(seconds) * kSampleRate + 1});
    rest_of(ahead);
    ahead.add(segment(tiny_manner(8), 4));
    for (int step = 0; step < 5; ++step) {
      ahead.step();
    }
    auto passes = model->scheduler->passes(), steps = model->scheduler->steps();
    // Not divided, so that it has no sound before its end.
    CHECK(joined(rest_of(*session(model, 3))) == alone()[3]);
    passes = model->scheduler->passes() - passes;
    steps = model->scheduler->steps() - steps;
    CHECK(passes >= 20);
    CHECK(steps == passes + (seconds == 0 ? 6 : 0));
  }
}

TEST_CASE("a session that fails disturbs no other") {
  auto model = tiny_model();
  // Its sound is not finite.
  auto loud = tiny_manner(5);
  auto voice = *loud->flow_voice;
  std::fill(voice.prompt_mel.begin(), voice.prompt_mel.end(), 1e38f);
  loud->flow_voice = std::make_shared<FlowVoice>(voice);
  // Its cache cannot be written.
  auto strange = tiny_manner(5);
  auto& values = strange->voice.layers[1].values;
  values = mx::astype(values, mx::float16, cpu_stream());
  // Attention over it fails while it runs.
  auto unreadable = tiny_manner(5);
  auto& layer = unreadable->voice.layers[1];
  layer.keys = mx::astype(layer.keys, mx::int32, cpu_stream());
  layer.values = mx::astype(layer.values, mx::int32, cpu_stream());
  std::vector<Session> failing;
  for (const auto& manner : {loud, strange, unreadable}) {
    failing.emplace_back(model, SessionOptions{});
    failing.back().add(segment(manner, 3));
  }
  std::vector<Running> running;
  for (int number = 0; number < 3; ++number) {
    running.push_back({number, session(model, number), {}});
  }
  int failures = 0;
  while (!running.empty()) {
    std::erase_if(failing, [&](Session& each) {
      try {
        each.step();
        return false;
      } catch (const Error&) {
        ++failures;
        return true;
      }
    });
    for (auto& each : running) {
      each.step();
    }
    std::erase_if(running, [](Running& each) {
      if (each.session->done()) {
        CHECK(joined(each.chunks) == alone()[each.number]);
      }
      return each.session->done();
    });
  }
  CHECK(failures == 3);
}

TEST_CASE("sessions of several threads say what they say alone") {
  auto stream = mx::new_thread_unsafe_stream(mx::Device::cpu);
  auto model = std::make_shared<Model>(Model{
      TinyT3{}.load(std::nullopt, std::nullopt, stream),
      TinyS3Gen{}.load_flow(std::nullopt, stream),
      TinyS3Gen{}.load_vocoder(stream)});
  auto voice = model->t3->condition(tiny_voice());
  alone();
  std::vector<Said> said(4);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (int repeat = 0; repeat < 3; ++repeat) {
        auto dropped = session(model, number, voice);
        dropped->step();
        dropped.reset();
        said[number] = joined(rest_of(*session(model, number, voice)));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (int number = 0; number < 4; ++number) {
    CHECK(said[number] == alone()[number]);
  }
}
