#pragma once

#include <memory>

#include "io/noise_checkpoint.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "nightingale/models/t3/t3.h"

namespace nightingale::testing {

// A checkpoint of the official tensor names with random weights, small enough
// to speak a thousand tokens in a second.
struct TinyT3 {
  BackboneKind backbone = BackboneKind::llama;
  int hidden = 128, layers = 2, ffn = 192;
  int text_vocabulary = 260, speech_vocabulary = 6565;
  int text_positions = 40, speech_positions = 1100;
  int positions = 2200; // of a GPT-2
  int speaker_size = 16, perceiver_queries = 4;
  // Makes the stop token the most likely one after anything.
  bool stops_at_once = false;
  std::string left_out; // a tensor that is missing
  std::string settings; // the content of nightingale.json, "" for none

  std::shared_ptr<const T3> load(
      std::optional<mx::Dtype> dtype = std::nullopt,
      std::optional<int> bits = std::nullopt,
      mx::Stream s = cpu_stream()) const {
    TempDir dir;
    if (!settings.empty()) {
      dir.write("nightingale.json", settings);
    }
    std::string path = dir.write("tiny.safetensors", checkpoint());
    return std::make_shared<const T3>(
        T3::load(TensorFile::open(path), dtype, bits, s, nullptr));
  }

  std::string checkpoint() const {
    return backbone == BackboneKind::gpt2 ? gpt2_checkpoint()
                                          : llama_checkpoint();
  }

 private:
  std::vector<float> head() const {
    auto head = noise(size_t(speech_vocabulary) * hidden, 99);
    for (float& x : head) {
      x *= 2.0f / std::sqrt(float(hidden));
    }
    return head;
  }

  std::string gpt2_checkpoint() const {
    NoiseCheckpoint file(left_out);
    auto linear = [&](const std::string& name, int inputs, int outputs) {
      float scale = 1.7f / std::sqrt(float(inputs));
      file.add(name + ".weight", {inputs, outputs}, scale);
      file.add(name + ".bias", {outputs}, 0.1f);
    };
    auto norm = [&](const std::string& name) {
      file.add(name + ".weight", {hidden}, 0.1f, 1.0f);
      file.add(name + ".bias", {hidden}, 0.1f);
    };
    file.add("text_emb.weight", {text_vocabulary, hidden}, 0.5f);
    file.add("speech_emb.weight", {speech_vocabulary, hidden}, 0.5f);
    file.add("tfmr.wpe.weight", {positions, hidden}, 0.5f);
    file.add("tfmr.wte.weight", {8, hidden}, 0.5f);
    file.add("speech_head.weight", {speech_vocabulary, hidden}, head());
    auto bias = noise(speech_vocabulary, 98);
    bias[kStopSpeech] = stops_at_once ? 100.0f : 0.0f;
    file.add("speech_head.bias", {speech_vocabulary}, bias);
    file.add("cond_enc.spkr_enc.weight", {hidden, speaker_size}, 0.3f);
    file.add("cond_enc.spkr_enc.bias", {hidden}, 0.1f);
    for (int i = 0; i < layers; ++i) {
      std::string layer = "tfmr.h." + std::to_string(i) + ".";
      norm(layer + "ln_1");
      linear(layer + "attn.c_attn", hidden, 3 * hidden);
      linear(layer + "attn.c_proj", hidden, hidden);
      norm(layer + "ln_2");
      linear(layer + "mlp.c_fc", hidden, ffn);
      linear(layer + "mlp.c_proj", ffn, hidden);
    }
    norm("tfmr.ln_f");
    return file.finish();
  }

  std::string llama_checkpoint() const {
    NoiseCheckpoint file(left_out);
    auto add = [&](const std::string& name,
                   const std::vector<int>& shape,
                   float scale,
                   float offset = 0.0f) {
      file.add(name, shape, scale, offset);
    };

    float matrix = 1.0f / std::sqrt(float(hidden));
    add("text_emb.weight", {text_vocabulary, hidden}, 0.5f);
    add("text_pos_emb.emb.weight", {text_positions, hidden}, 0.5f);
    add("speech_emb.weight",
        {speech_vocabulary, hidden},
        0.5f,
        stops_at_once ? 3.0f : 0.0f);
    add("speech_pos_emb.emb.weight", {speech_positions, hidden}, 0.5f);
    auto rows = head();
    if (stops_at_once) {
      // Every speech embedding has this direction in it: see above.
      std::fill_n(rows.begin() + kStopSpeech * hidden, hidden, 1.0f);
    }
    file.add("speech_head.weight", {speech_vocabulary, hidden}, rows);
    add("cond_enc.spkr_enc.weight", {hidden, speaker_size}, 0.3f);
    add("cond_enc.spkr_enc.bias", {hidden}, 0.1f);
    add("cond_enc.emotion_adv_fc.weight", {hidden, 1}, 0.5f);
    std::string perceiver = "cond_enc.perceiver.";
    add(perceiver + "pre_attention_query",
        {1, perceiver_queries, hidden},
        0.5f);
    add(perceiver + "attn.norm.weight", {hidden}, 0.1f, 1.0f);
    add(perceiver + "attn.norm.bias", {hidden}, 0.1f);
    for (std::string part : {"to_q", "to_k", "to_v", "proj_out"}) {
      add(perceiver + "attn." + part + ".weight", {hidden, hidden}, matrix);
      add(perceiver + "attn." + part + ".bias", {hidden}, 0.1f);
    }
    for (int i = 0; i < layers; ++i) {
      std::string layer = "tfmr.layers." + std::to_string(i) + ".";
      add(layer + "input_layernorm.weight", {hidden}, 0.1f, 1.0f);
      add(layer + "post_attention_layernorm.weight", {hidden}, 0.1f, 1.0f);
      for (std::string part : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
        add(layer + "self_attn." + part + ".weight", {hidden, hidden}, matrix);
      }
      add(layer + "mlp.gate_proj.weight", {ffn, hidden}, matrix);
      add(layer + "mlp.up_proj.weight", {ffn, hidden}, matrix);
      add(layer + "mlp.down_proj.weight", {hidden, ffn}, matrix);
    }
    add("tfmr.norm.weight", {hidden}, 0.1f, 1.0f);
    return file.finish();
  }
};

// A GPT-2 of the same sizes.
inline TinyT3 tiny_gpt2() {
  TinyT3 tiny;
  tiny.backbone = BackboneKind::gpt2;
  return tiny;
}

// One model for the tests that need nothing special of it.
inline std::shared_ptr<const T3> tiny_t3() {
  static const auto model = TinyT3{}.load();
  return model;
}

inline T3Voice tiny_voice() {
  return {
      .speaker = noise(TinyT3{}.speaker_size, 77),
      .prompt_tokens = {17, 4000, 6560, 3, 900},
      .emotion = 0.5f};
}

// The tiny model's cache of that voice.
inline const KvCache& tiny_condition() {
  static const KvCache cache = tiny_t3()->condition(tiny_voice());
  return cache;
}

// Everything that a model says.
inline std::vector<int> tokens_of(
    std::shared_ptr<const T3> model,
    const SpeechRequest& request) {
  SpeechTokens speech(std::move(model), request);
  std::vector<int> tokens;
  while (auto token = speech.next()) {
    tokens.push_back(*token);
  }
  return tokens;
}

} // namespace nightingale::testing
