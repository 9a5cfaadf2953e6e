#include "nightingale/models/t3/backbone_weights.h"

#include "nightingale/ops/rotary.h"

namespace nightingale {

namespace {

constexpr float kNormEps = 1e-5f;

// Reads the layers of one kind of backbone.
struct Reader {
  Weights& weights;
  const T3Config& config;
  int bits;
  mx::Dtype vectors;
  mx::Stream stream;

  mx::array vector(const std::string& name, int size) const {
    return weights.take(name, {size}, vectors);
  }
  ops::Norm rms_norm(const std::string& name) const {
    return {vector(name + ".weight", config.hidden), kNormEps};
  }
  ops::Norm layer_norm(const std::string& name) const {
    auto norm = rms_norm(name);
    norm.b = vector(name + ".bias", config.hidden);
    return norm;
  }
  ops::Matrix matrix(
      const std::vector<std::string>& names,
      const mx::Shape& each) const {
    return weights.take_matrix(names, each, t3_bits(names[0], bits), stream);
  }
  // GPT-2's: a bias, and floats that are transposed in the file.
  ops::Projection conv1d(const std::string& name, int outputs, int inputs)
      const {
    std::string w = name + ".weight";
    return {
        weights.take_transposed(w, {outputs, inputs}, t3_bits(w, bits), stream),
        vector(name + ".bias", outputs)};
  }

  ops::DecoderLayer llama_layer(int index) const {
    int hidden = config.hidden, ffn = config.ffn;
    std::string layer = "tfmr.layers." + std::to_string(index) + ".";
    std::string attention = layer + "self_attn.", mlp = layer + "mlp.";
    return {
        rms_norm(layer + "input_layernorm"),
        matrix(
            {attention + "q_proj.weight",
             attention + "k_proj.weight",
             attention + "v_proj.weight"},
            {hidden, hidden}),
        matrix({attention + "o_proj.weight"}, {hidden, hidden}),
        rms_norm(layer + "post_attention_layernorm"),
        matrix(
            {mlp + "gate_proj.weight", mlp + "up_proj.weight"}, {ffn, hidden}),
        matrix({mlp + "down_proj.weight"}, {hidden, ffn})};
  }

  ops::DecoderLayer gpt2_layer(int index) const {
    int hidden = config.hidden, ffn = config.ffn;
    std::string layer = "tfmr.h." + std::to_string(index) + ".";
    return {
        layer_norm(layer + "ln_1"),
        conv1d(layer + "attn.c_attn", 3 * hidden, hidden),
        conv1d(layer + "attn.c_proj", hidden, hidden),
        layer_norm(layer + "ln_2"),
        conv1d(layer + "mlp.c_fc", ffn, hidden),
        conv1d(layer + "mlp.c_proj", hidden, ffn),
        ops::Activation::gelu_tanh};
  }
};

} // namespace

BackboneWeights BackboneWeights::read(
    Weights& weights,
    const T3Config& config,
    int bits,
    mx::Dtype vectors,
    mx::Stream s) {
  Reader reader{weights, config, bits, vectors, s};
  bool gpt2 = config.backbone == BackboneKind::gpt2;
  BackboneWeights made{
      {},
      gpt2 ? reader.layer_norm("tfmr.ln_f") : reader.rms_norm("tfmr.norm"),
      std::nullopt};
  if (!gpt2) {
    made.frequencies = ops::rotary_frequencies(kHeadDim, ops::RotaryScaling{});
  }
  for (int i = 0; i < config.layers; ++i) {
    made.layers.push_back(gpt2 ? reader.gpt2_layer(i) : reader.llama_layer(i));
  }
  return made;
}

} // namespace nightingale
