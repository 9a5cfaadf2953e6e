#pragma once

#include "nightingale/io/tensor_file.h"
#include "tiny_t3.h"

// A GPT-2 in float64 loops, as the formulas have it.

namespace nightingale::testing {

class Gpt2Reference {
 public:
  Gpt2Reference(const TensorFile& file, const TinyT3& sizes)
      : file_(file), sizes_(sizes) {}

  Values tensor(const std::string& name) const {
    std::vector<float> numbers(file_.info(name).size);
    file_.read(name, mx::float32, numbers.data());
    return Values(numbers.begin(), numbers.end());
  }

  // x · w + b of a Conv1D. x: [T, inputs]; w: [inputs, outputs]
  Values conv1d(const Values& x, const std::string& name) const {
    auto w = tensor(name + ".weight"), b = tensor(name + ".bias");
    size_t outputs = b.size(), inputs = w.size() / outputs;
    Values y;
    for (size_t row = 0; row < x.size() / inputs; ++row) {
      Values sums = b;
      for (size_t i = 0; i < inputs; ++i) {
        for (size_t o = 0; o < outputs; ++o) {
          sums[o] += x[row * inputs + i] * w[i * outputs + o];
        }
      }
      y.insert(y.end(), sums.begin(), sums.end());
    }
    return y;
  }

  // x · wᵀ + b of a Linear. w: [outputs, inputs]
  Values linear(const Values& x, const std::string& name) const {
    auto w = tensor(name + ".weight"), b = tensor(name + ".bias");
    size_t outputs = b.size(), inputs = w.size() / outputs;
    Values y;
    for (size_t row = 0; row < x.size() / inputs; ++row) {
      for (size_t o = 0; o < outputs; ++o) {
        double sum = b[o];
        for (size_t i = 0; i < inputs; ++i) {
          sum += x[row * inputs + i] * w[o * inputs + i];
        }
        y.push_back(sum);
      }
    }
    return y;
  }

  Values norm(Values x, const std::string& name) const {
    auto w = tensor(name + ".weight"), b = tensor(name + ".bias");
    size_t count = w.size();
    for (size_t row = 0; row < x.size(); row += count) {
      double mean = 0.0, square = 0.0;
      for (size_t i = 0; i < count; ++i) {
        mean += x[row + i] / count;
      }
      for (size_t i = 0; i < count; ++i) {
        square += std::pow(x[row + i] - mean, 2) / count;
      }
      for (size_t i = 0; i < count; ++i) {
        double& value = x[row + i];
        value = (value - mean) / std::sqrt(square + 1e-5) * w[i] + b[i];
      }
    }
    return x;
  }

  Values attention(const Values& qkv) const {
    int hidden = sizes_.hidden, length = qkv.size() / (3 * hidden);
    Values out(size_t(length) * hidden);
    auto at = [&](int t, int part, int channel) {
      return qkv[(size_t(t) * 3 + part) * hidden + channel];
    };
    for (int t = 0; t < length; ++t) {
      for (int head = 0; head < hidden / 64; ++head) {
        double total = 0.0;
        Values weights(t + 1);
        for (int u = 0; u <= t; ++u) {
          for (int c = head * 64; c < (head + 1) * 64; ++c) {
            weights[u] += at(t, 0, c) * at(u, 1, c) / 8.0;
          }
          total += weights[u] = std::exp(weights[u]);
        }
        for (int c = head * 64; c < (head + 1) * 64; ++c) {
          for (int u = 0; u <= t; ++u) {
            out[size_t(t) * hidden + c] += weights[u] / total * at(u, 2, c);
          }
        }
      }
    }
    return out;
  }

  // x: [T, hidden], positions added → the same, after the last norm
  Values run(Values x) const {
    auto add = [&](const Values& more) {
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] += more[i];
      }
    };
    for (int i = 0; i < sizes_.layers; ++i) {
      std::string layer = "tfmr.h." + std::to_string(i) + ".";
      auto qkv = conv1d(norm(x, layer + "ln_1"), layer + "attn.c_attn");
      add(conv1d(attention(qkv), layer + "attn.c_proj"));
      auto hidden = conv1d(norm(x, layer + "ln_2"), layer + "mlp.c_fc");
      for (double& h : hidden) {
        double inner = std::sqrt(2.0 / M_PI) * (h + 0.044715 * h * h * h);
        h = 0.5 * h * (1.0 + std::tanh(inner));
      }
      add(conv1d(hidden, layer + "mlp.c_proj"));
    }
    return norm(x, "tfmr.ln_f");
  }

 private:
  const TensorFile& file_;
  const TinyT3& sizes_;
};

// Teacher-forced logits of the speech tokens: [n, vocabulary]
inline Values gpt2_logits(
    const TensorFile& file,
    const T3Voice& voice,
    const std::vector<int>& text,
    const std::vector<int>& speech,
    const TinyT3& sizes) {
  Gpt2Reference model(file, sizes);
  size_t hidden = sizes.hidden;
  Values speaker(voice.speaker.begin(), voice.speaker.end());
  Values x = model.linear(speaker, "cond_enc.spkr_enc");
  auto append = [&](const std::string& table, const std::vector<int>& ids) {
    auto rows = model.tensor(table);
    for (int id : ids) {
      x.insert(
          x.end(),
          rows.begin() + id * hidden,
          rows.begin() + (id + 1) * hidden);
    }
  };
  append("speech_emb.weight", voice.prompt_tokens);
  append("text_emb.weight", text);
  append("speech_emb.weight", speech);
  auto positions = model.tensor("tfmr.wpe.weight");
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] += positions[i];
  }
  auto y = model.run(x);
  Values last(y.end() - speech.size() * hidden, y.end());
  return model.linear(last, "speech_head");
}

} // namespace nightingale::testing
