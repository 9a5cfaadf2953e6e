// Sessions that run beside others say what they say alone.

#include "nightingale/engine/scheduler.h"

#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "backends/cpu/thread_count.h"
#include "backends/gpu/emulated_gpu.h"
#include "nightingale/ops/lanes.h"
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

// The tiny model as a GPU runs it, while an EmulatedGpu lives.
std::shared_ptr<const Model> gpu_model() {
  auto s = kernel_stream();
  return std::make_shared<Model>(Model{
      TinyT3{}.load(mx::float32, std::nullopt, s),
      TinyS3Gen{}.load_flow(mx::float32, s),
      TinyS3Gen{}.load_vocoder(s)});
}

// Whose sound is not finite.
std::shared_ptr<const FlowVoice> loud_voice() {
  FlowVoice voice = tiny_request(1).voice;
  std::fill(voice.prompt_mel.begin(), voice.prompt_mel.end(), 1e38f);
  return std::make_shared<FlowVoice>(voice);
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

// How sessions come, go and are cancelled at random.
struct Traffic {
  int sessions;
  int begins_in; // steps, on average
  int cancels_in;
};

struct Ended {
  int compared = 0, cancelled = 0, failed = 0;
};

// Compares sessions of as many texts as are expected, none from one that fails,
// with what each says alone.
template <typename Begin>
Ended check_at_random(
    int seed,
    Traffic traffic,
    const std::vector<std::optional<Said>>& expected,
    Begin begin) {
  std::mt19937 random(seed);
  std::vector<Running> running;
  Ended ended;
  int begun = 0;
  while (begun < traffic.sessions || !running.empty()) {
    if (begun < traffic.sessions &&
        (running.empty() || random() % traffic.begins_in == 0)) {
      int number = begun++ % expected.size();
      running.push_back({number, begin(number), {}});
    }
    size_t chosen = random() % running.size();
    auto& one = running[chosen];
    bool fails = false, cancels = random() % traffic.cancels_in == 0;
    try {
      one.step();
    } catch (const NotFinite&) {
      fails = true;
      CHECK_FALSE(expected[one.number]);
      ++ended.failed;
    }
    if (one.session->done()) {
      CHECK(joined(one.chunks) == expected[one.number]);
      ++ended.compared;
    }
    if (one.session->done() || fails || cancels) {
      ended.cancelled += !one.session->done() && !fails;
      running.erase(running.begin() + chosen);
    }
  }
  CHECK(ended.compared + ended.cancelled + ended.failed == traffic.sessions);
  return ended;
}

using Solutions = std::vector<std::shared_ptr<Solution>>;

// One for each of different_requests(), known to the scheduler.
Solutions solutions(const Model& model) {
  Solutions all;
  for (const auto& request : different_requests()) {
    all.push_back(std::make_shared<Solution>(
        Solution{model.flow, model.flow->begin(request)}));
    model.scheduler->join(all.back());
  }
  return all;
}

std::vector<int> steps_done(const Solutions& solutions) {
  std::vector<int> done;
  for (const auto& each : solutions) {
    done.push_back(each->state.done);
  }
  return done;
}

// Makes the steps that are left; the mel is that of `request`, solved alone.
void check_rest(
    const Model& model,
    const std::shared_ptr<Solution>& solution,
    const MelRequest& request) {
  while (!solution->state.finished()) {
    model.scheduler->advance(solution);
    REQUIRE_FALSE(solution->failure);
  }
  auto mel = model.flow->finish(std::move(solution->state));
  CHECK(same_bits(mel, solve(*model.flow, request)));
}

} // namespace

TEST_CASE("sessions that come and go at random say what they say alone") {
  std::vector<std::optional<Said>> expected(alone().begin(), alone().end());
  for (int seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    auto model = tiny_model(false);
    auto begin = [&](int number) { return session(model, number); };
    auto ended = check_at_random(seed, {16, 12, 150}, expected, begin);
    CHECK(ended.compared >= 8);
    CHECK(ended.cancelled >= 1);
    const auto& scheduler = *model->scheduler;
    CHECK(scheduler.steps() > 2 * scheduler.passes());
    CHECK(scheduler.flow_steps() == scheduler.flow_groups());
    CHECK(scheduler.chunks_aside() == 0);
  }
}

TEST_CASE("sessions whose sound is made in lanes say what they say alone") {
  ThreadCount two(2);
  std::vector<std::optional<Said>> expected(alone().begin(), alone().end());
  expected.push_back(std::nullopt);
  for (int seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    auto model = tiny_model();
    auto begin = [&](int number) {
      if (number < kTexts) {
        return session(model, number);
      }
      auto manner = tiny_manner(5);
      manner->flow_voice = loud_voice();
      auto made = std::make_unique<Session>(model, SessionOptions{});
      made->add(segment(manner, 3));
      return made;
    };
    check_at_random(seed, {21, 12, 2000}, expected, begin);
    CHECK(model->scheduler->chunks_aside() > 0);
    CHECK(model->scheduler->steps() > model->scheduler->passes());
  }
  ops::wait_for_lanes();
}

TEST_CASE("on a GPU sessions share solutions and say what they say alone") {
  tiny_condition(); // of the CPU's model
  EmulatedGpu gpu;
  auto model = gpu_model();
  auto voice = model->t3->condition(tiny_voice());
  auto begin = [&](int number) {
    auto manner = tiny_manner(number == 1 ? std::optional(2) : std::nullopt);
    manner->voice = voice;
    manner->options.max_tokens = number == 1 ? 6 : 3;
    manner->options.steps = 8;
    if (number == 2) {
      manner->flow_voice = loud_voice();
    }
    auto made = std::make_unique<Session>(model, SessionOptions{});
    made->add(segment(manner, number));
    return made;
  };
  std::vector<std::optional<Said>> expected;
  for (int number : {0, 1}) {
    expected.push_back(joined(rest_of(*begin(number))));
  }
  expected.push_back(std::nullopt);
  const auto& scheduler = *model->scheduler;
  auto groups = scheduler.flow_groups(), steps = scheduler.flow_steps();
  CHECK(steps == groups);
  auto ended = check_at_random(1, {6, 4, 60}, expected, begin);
  CHECK(ended.compared >= 2);
  CHECK(ended.cancelled >= 1);
  CHECK(ended.failed >= 1);
  groups = scheduler.flow_groups() - groups;
  steps = scheduler.flow_steps() - steps;
  CHECK(steps > groups + groups / 4);
}

TEST_CASE("on a GPU solutions that are due first make a step with another") {
  EmulatedGpu gpu;
  auto model = gpu_model();
  auto& scheduler = *model->scheduler;
  auto all = solutions(*model);
  for (size_t count : {4, 2}) {
    auto more = solutions(*model);
    all.insert(all.end(), more.begin(), more.begin() + count);
  }
  Solution other{
      TinyS3Gen{}.load_flow(mx::float32, kernel_stream()),
      model->flow->begin(tiny_request(2))};
  auto of_another_flow = std::make_shared<Solution>(std::move(other));
  scheduler.join(of_another_flow);
  auto now = Clock::now();
  int due[] = {60, 40, 10, 50, 30, 20, 45, 55, 15, 5};
  for (size_t i = 0; i < all.size(); ++i) {
    all[i]->due = now + std::chrono::seconds(due[i]);
  }
  scheduler.advance(all[0]);
  CHECK(steps_done(all) == std::vector{1, 1, 1, 0, 1, 1, 1, 0, 1, 1});
  scheduler.advance(all[1]);
  CHECK(steps_done(all) == std::vector{1, 2, 2, 1, 2, 2, 2, 0, 2, 2});
  CHECK(all[2]->state.finished());
  CHECK(all[6]->state.finished());
  scheduler.advance(all[3]);
  CHECK(steps_done(all) == std::vector{2, 3, 2, 2, 3, 3, 2, 1, 3, 3});
  CHECK(scheduler.flow_groups() == 3);
  CHECK(scheduler.flow_steps() == 24);
  // Nobody waits for another's chunk that is not due soon.
  now = Clock::now();
  all[0]->due = now - std::chrono::seconds(1);
  all[3]->due = now + std::chrono::milliseconds(300);
  all[9]->due = now + std::chrono::milliseconds(1500);
  scheduler.advance(all[0]);
  CHECK(steps_done(all) == std::vector{3, 3, 2, 3, 3, 3, 2, 1, 3, 3});
  CHECK(scheduler.flow_steps() == 26);
  CHECK(of_another_flow->state.done == 0);
}

TEST_CASE("a solution that fails or is dropped disturbs no other") {
  EmulatedGpu gpu;
  auto model = gpu_model();
  auto requests = different_requests();
  for (size_t broken : {0, 2}) {
    CAPTURE(broken);
    auto all = solutions(*model);
    // No kernel takes a vector without dimensions.
    for (auto& shift : all[broken]->state.times.shifts[0].levels) {
      shift = mx::array(0.0f);
    }
    model->scheduler->advance(all[0]);
    CHECK_THROWS_AS(std::rethrow_exception(all[broken]->failure), Error);
    std::vector<int> expected(4, 1);
    expected[broken] = 0;
    CHECK(steps_done(all) == expected);
    model->scheduler->advance(all[1]);
    all[3].reset();
    for (size_t i : {0, 1, 2}) {
      if (i != broken) {
        check_rest(*model, all[i], requests[i]);
      }
    }
    CHECK(all[broken]->state.done == 0);
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
  loud->flow_voice = loud_voice();
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
