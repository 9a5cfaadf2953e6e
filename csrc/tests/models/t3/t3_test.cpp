#include "nightingale/models/t3/t3.h"

#include <doctest/doctest.h>

#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::vector<int> kText{5, 6, 7, 8, 9, 10, 30};
const std::vector<int>
    kSpeech{kStartSpeech, 12, 900, 4, 6000, 12, 12, 77, 1, 3210};

// Row `row` of [rows, T, C].
Values row_of_batch(const mx::array& x, int row) {
  auto s = cpu_stream();
  return values(
      mx::slice(x, {row, 0, 0}, {row + 1, x.shape(1), x.shape(2)}, s));
}

} // namespace

TEST_CASE("T3 reads its sizes off the tensors") {
  TinyT3 tiny;
  auto model = tiny_t3();
  const T3Config& config = model->config();
  CHECK(config.layers == tiny.layers);
  CHECK(config.hidden == tiny.hidden);
  CHECK(config.heads() == 2);
  CHECK(config.ffn == tiny.ffn);
  CHECK(config.text_vocabulary == tiny.text_vocabulary);
  CHECK(config.speech_vocabulary == tiny.speech_vocabulary);
  CHECK(config.text_positions == tiny.text_positions);
  CHECK(config.speech_positions == tiny.speech_positions);
  CHECK(config.speaker_size == tiny.speaker_size);
  CHECK(config.perceiver_queries == tiny.perceiver_queries);
  size_t layer = 4 * 128 * 128 + 3 * 128 * 192;
  CHECK(model->step_bytes() == (2 * layer + 6565 * 128) * sizeof(float));
}

TEST_CASE("logits step by step equal logits all at once") {
  for (mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
    auto model = TinyT3{}.load(dtype);
    Values whole = values(model->logits(kText, kSpeech, tiny_condition(), 0));
    CHECK(whole.size() == 2 * kSpeech.size() * 6565);
    for (int chunk : {1, 3, 9, 100}) {
      CAPTURE(chunk);
      auto stepwise = model->logits(kText, kSpeech, tiny_condition(), chunk);
      // With a half cache, keys an ulp apart may round to neighbours.
      double tolerance = dtype == mx::float32 ? 1e-5 : 1e-2;
      CHECK(relative_error(stepwise, whole) < tolerance);
    }
  }
}

TEST_CASE("logits of a prefix do not depend on what follows it") {
  auto model = tiny_t3();
  auto s = cpu_stream();
  auto whole = model->logits(kText, kSpeech, tiny_condition(), 1);
  std::vector<int> prefix(kSpeech.begin(), kSpeech.begin() + 4);
  auto expected = mx::slice(whole, {0, 0, 0}, {2, 4, 6565}, s);
  CHECK(same_bits(model->logits(kText, prefix, tiny_condition(), 1), expected));
}

TEST_CASE("half weights change the logits by their rounding only") {
  Values exact = values(tiny_t3()->logits(kText, kSpeech, tiny_condition(), 1));
  auto half = TinyT3{}.load(mx::float16);
  CHECK(half->dtype() == mx::float16);
  CHECK(half->weight_bytes() < 0.51 * tiny_t3()->weight_bytes());
  auto rounded = half->logits(kText, kSpeech, half->condition(tiny_voice()), 1);
  double error = relative_error(rounded, exact);
  CHECK(error > 0.0);
  CHECK(error < 1e-2);
}

TEST_CASE("quantized weights change the logits by their rounding only") {
  Values exact = values(tiny_t3()->logits(kText, kSpeech, tiny_condition(), 1));
  for (auto [bits, most] : {std::pair{8, 0.03}, {4, 0.5}}) {
    CAPTURE(bits);
    auto model = TinyT3{}.load(std::nullopt, bits);
    auto voice = model->condition(tiny_voice());
    double error =
        relative_error(model->logits(kText, kSpeech, voice, 1), exact);
    CHECK(error > 1e-4);
    CHECK(error < most);
    // A byte or half of one for a weight, four for the scale and bias of 64;
    // the head has 8 bits always, and rows to fill its last tile.
    size_t layers = 2 * (4 * 128 * 128 + 3 * 128 * 192);
    size_t head = (6565 + 27) * 128;
    CHECK(
        model->step_bytes() == layers * bits / 8 + head + (layers + head) / 16);
  }
}

TEST_CASE("with quantized weights logits have the same bits in any chunks") {
  for (int bits : {8, 4}) {
    auto model = TinyT3{}.load(std::nullopt, bits);
    auto voice = model->condition(tiny_voice());
    auto one_by_one = model->logits(kText, kSpeech, voice, 1);
    for (int chunk = 2; chunk <= 8; ++chunk) {
      CAPTURE(chunk);
      auto chunked = model->logits(kText, kSpeech, voice, chunk);
      CHECK(same_bits(chunked, one_by_one));
    }
  }
}

TEST_CASE("the guidance rows of a prompt differ only by the text") {
  auto model = tiny_t3();
  auto prompt = model->prompt(kText, tiny_condition(), 2);
  CHECK(prompt.shape() == mx::Shape{2, 9 + 1, 128});
  Values row0 = row_of_batch(prompt, 0);
  Values row1 = row_of_batch(prompt, 1);
  for (int t = 0; t < 10; ++t) {
    CAPTURE(t);
    bool is_text = t < 9;
    bool equal = std::equal(
        row0.begin() + t * 128,
        row0.begin() + (t + 1) * 128,
        row1.begin() + t * 128);
    CHECK(equal != is_text);
  }
  CHECK(values(model->prompt(kText, tiny_condition(), 1)) == row0);
}

TEST_CASE("the unconditioned row sees the length of the text, not its words") {
  auto model = tiny_t3();
  auto other_text = kText;
  other_text[2] = 200;
  auto a = model->logits(kText, kSpeech, tiny_condition(), 0);
  auto b = model->logits(other_text, kSpeech, tiny_condition(), 0);
  CHECK(row_of_batch(a, 1) == row_of_batch(b, 1));
  CHECK(row_of_batch(a, 0) != row_of_batch(b, 0));
}

TEST_CASE("every part of a voice is heard") {
  auto model = tiny_t3();
  auto voice = tiny_voice();
  Values before =
      values(model->logits(kText, {kStartSpeech}, model->condition(voice), 0));
  auto differs = [&](const T3Voice& other) {
    return values(model->logits(
               kText, {kStartSpeech}, model->condition(other), 0)) != before;
  };
  CHECK_FALSE(differs(voice));
  auto other = voice;
  other.speaker[3] += 1.0f;
  CHECK(differs(other));
  other = voice;
  other.emotion = 0.9f;
  CHECK(differs(other));
  other = voice;
  other.prompt_tokens[1] = 5;
  CHECK(differs(other));
  other.prompt_tokens.clear();
  CHECK(differs(other));
  // Speaker and emotion, and between them four perceiver queries or none.
  CHECK(model->condition(other).length == 2);
  CHECK(model->condition(voice).length == 6);
}

TEST_CASE("a cache that was trimmed speaks on as if it had never gone on") {
  auto model = tiny_t3();
  auto s = cpu_stream();
  auto cache = model->begin(model->condition(tiny_voice()), 2, 40);
  mx::eval(model->forward(model->prompt(kText, cache, 2), cache, 1, nullptr));
  int length = cache.length;
  KvCache earlier = cache;
  auto next = [&](KvCache& from, int token) {
    auto x = model->inputs().speech(mx::array({token}), {0, from.length}, 2);
    return floats(model->forward(x, from, 1, nullptr));
  };
  auto expected = next(cache, 100);
  CHECK(cache.length == length + 1);
  CHECK(earlier.length == length);
  next(cache, 200);
  cache.trim(length);
  next(cache, 300);
  cache.trim(length);
  CHECK(same_bits(next(cache, 100), expected));
  CHECK(same_bits(next(earlier, 100), expected));
  mx::synchronize(s);
}

TEST_CASE("a cache too small says what it holds and what is needed") {
  auto model = tiny_t3();
  auto x = model->prompt(kText, tiny_condition(), 2);
  auto cache = model->begin(model->condition(tiny_voice()), 2, 9);
  CHECK(error_of([&] {
          model->forward(x, cache, 1, nullptr);
        }) == "the KV cache holds 15 positions; 16 are needed");
}

TEST_CASE("T3 refuses tokens and voices it cannot take, and says why") {
  auto model = tiny_t3();
  auto voice = tiny_voice();
  auto logits_error = [&](const std::vector<int>& text,
                          const std::vector<int>& speech,
                          const T3Voice& v) {
    return argument_error_of(
        [&] { model->logits(text, speech, model->condition(v), 0); });
  };
  CHECK(logits_error(kText, kSpeech, voice) == "");
  CHECK(
      logits_error({}, kSpeech, voice) == "there are no text tokens to speak");
  CHECK(
      logits_error({5, 260}, kSpeech, voice) ==
      "text_tokens[1] is 260; this model has ids 0 to 259");
  CHECK(
      logits_error({-1}, kSpeech, voice) ==
      "text_tokens[0] is -1; this model has ids 0 to 259");
  CHECK(logits_error(std::vector<int>(38, 5), kSpeech, voice) == "");
  CHECK(
      logits_error(std::vector<int>(39, 5), kSpeech, voice) ==
      "the text has 39 tokens; this model takes 38 at a time: split it into "
      "sentences");
  CHECK(
      logits_error(kText, {}, voice) ==
      "speech_tokens is empty; its first entry should be 6561");
  CHECK(
      logits_error(kText, {kStartSpeech, 6565}, voice) ==
      "speech_tokens[1] is 6565; this model has ids 0 to 6564");
  CHECK(
      logits_error(kText, std::vector<int>(1101, 1), voice) ==
      "1101 speech tokens; this model has positions for 1100");

  auto bad = voice;
  bad.speaker.pop_back();
  CHECK(
      logits_error(kText, kSpeech, bad) ==
      "the voice's speaker embedding has 15 values; this model expects 16");
  bad = voice;
  bad.speaker[2] = NAN;
  CHECK(
      logits_error(kText, kSpeech, bad) ==
      "the voice's speaker embedding holds values that are not finite");
  bad = voice;
  bad.emotion = -1.0f;
  CHECK(
      logits_error(kText, kSpeech, bad) ==
      "exaggeration must be 0 or more, not -1.000000");
  bad = voice;
  bad.prompt_tokens.push_back(7000);
  CHECK(
      logits_error(kText, kSpeech, bad) ==
      "the voice's prompt_tokens[5] is 7000; this model has ids 0 to 6564");
  bad.prompt_tokens.assign(1101, 1);
  CHECK(
      logits_error(kText, kSpeech, bad) ==
      "the voice's prompt has 1101 tokens; this model takes 1100");
}

TEST_CASE("T3 refuses a chunk size below 0") {
  auto model = tiny_t3();
  std::string message = argument_error_of(
      [&] { model->logits(kText, kSpeech, tiny_condition(), -1); });
  CHECK(contains(message, "chunk"));
  CHECK(contains(message, "-1"));
}

TEST_CASE("checkpoints that make no T3 say what is missing") {
  auto load_error = [](auto change) {
    TinyT3 tiny;
    change(tiny);
    return error_of([&] { tiny.load(); });
  };
  CHECK(contains(
      load_error([](auto& tiny) { tiny.layers = 0; }),
      "it has no tensors named tfmr.layers.* or tfmr.h.*"));
  CHECK(contains(
      load_error([](auto& tiny) { tiny.hidden = 96; }),
      "hidden size 96 is not a multiple of the head size 64"));
  CHECK(contains(
      load_error([](auto& tiny) { tiny.text_vocabulary = 255; }),
      "text vocabulary 255 has no start token 255"));
  CHECK(contains(
      load_error([](auto& tiny) { tiny.speech_vocabulary = 6562; }),
      "speech vocabulary 6562 has no stop token 6562"));
  CHECK(contains(
      load_error([](auto& tiny) {
        tiny.settings = R"({"t3": {"alignment_heads": [[2, 0]]}})";
      }),
      "alignment head [2, 0] does not exist: the model has 2 layers of 2 "
      "heads"));
  CHECK(contains(
      load_error(
          [](auto& tiny) { tiny.settings = R"({"t3": {"analyser": true}})"; }),
      "t3.analyser is on but t3.alignment_heads is empty"));
}
