#pragma once

#include <cmath>
#include <complex>

#include "io/noise_checkpoint.h"
#include "nightingale/io/tensor_file.h"
#include "ops/attention_reference.h"
#include "ops/epilogue_reference.h"

namespace nightingale::testing {

// The speech tokenizer's encoder in double precision, read off a checkpoint.
class TokenizerReference {
 public:
  explicit TokenizerReference(const std::string& checkpoint) {
    TempDir dir;
    file_ = TensorFile::open(dir.write("reference.safetensors", checkpoint));
    width_ = file_->info(kEncoder + "conv1.weight").shape[0];
  }

  // mel: [frames, 128] → [tokens, 8]
  Values code(const Values& mel, int layers) const {
    Values x = halved(mel, 128, "conv1");
    x = halved(x, width_, "conv2");
    for (int i = 0; i < layers; ++i) {
      x = block(x, kEncoder + "blocks." + std::to_string(i) + ".");
    }
    x = linear(x, "tokenizer.quantizer._codebook.project_down");
    for (double& value : x) {
      value = std::tanh(value) * 0.9990000128746033;
    }
    return x;
  }

 private:
  inline static const std::string kEncoder = "tokenizer.encoder.";

  Values tensor(const std::string& name) const {
    std::vector<float> numbers(file_->info(name).size);
    file_->read(name, mx::float32, numbers.data());
    return {numbers.begin(), numbers.end()};
  }

  static Values gelu(Values x) {
    for (double& value : x) {
      value = activated(value, ops::Activation::gelu);
    }
    return x;
  }

  static Values sum(Values a, const Values& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] += b[i];
    }
    return a;
  }

  // A layer without ".bias" has none.
  Values linear(const Values& x, const std::string& name) const {
    Values w = tensor(name + ".weight");
    bool has_bias = file_->contains(name + ".bias");
    int outputs = file_->info(name + ".weight").shape[0];
    int inputs = w.size() / outputs;
    Values b = has_bias ? tensor(name + ".bias") : Values(outputs), y;
    for (size_t at = 0; at < x.size(); at += inputs) {
      for (int o = 0; o < outputs; ++o) {
        double value = b[o];
        for (int i = 0; i < inputs; ++i) {
          value += w[o * inputs + i] * x[at + i];
        }
        y.push_back(value);
      }
    }
    return y;
  }

  // Every second of the frames under three taps, one of them before the first.
  Values halved(const Values& x, int channels, const std::string& name) const {
    Values w = tensor(kEncoder + name + ".weight"), y;
    Values b = tensor(kEncoder + name + ".bias");
    int length = x.size() / channels;
    for (int t = 0; t < length; t += 2) {
      for (int o = 0; o < width_; ++o) {
        double value = b[o];
        for (int tap = 0; tap < 3; ++tap) {
          int from = t + tap - 1;
          for (int c = 0; c < channels && from >= 0 && from < length; ++c) {
            value += w[(o * channels + c) * 3 + tap] * x[from * channels + c];
          }
        }
        y.push_back(value);
      }
    }
    return gelu(y);
  }

  Values normed(const Values& x, const std::string& name) const {
    Values w = tensor(name + ".weight"), b = tensor(name + ".bias"), y;
    for (size_t at = 0; at < x.size(); at += width_) {
      double mean = 0.0, variance = 0.0;
      for (int c = 0; c < width_; ++c) {
        mean += x[at + c] / width_;
      }
      for (int c = 0; c < width_; ++c) {
        variance += (x[at + c] - mean) * (x[at + c] - mean) / width_;
      }
      for (int c = 0; c < width_; ++c) {
        double value = (x[at + c] - mean) / std::sqrt(variance + 1e-5);
        y.push_back(value * w[c] + b[c]);
      }
    }
    return y;
  }

  // Channels (i, i + 32) of every head of 64 are turned by the position.
  Values turned(Values x) const {
    for (size_t head = 0; head < x.size(); head += 64) {
      int position = head / width_;
      for (int i = 0; i < 32; ++i) {
        double& first = x[head + i];
        double& second = x[head + 32 + i];
        auto pair = std::complex(first, second) *
            std::polar(1.0, position * std::pow(10000.0, -i / 32.0));
        first = pair.real();
        second = pair.imag();
      }
    }
    return x;
  }

  // 31 taps around every frame of each channel, and the frame itself.
  Values memory(const Values& v, const std::string& name) const {
    Values w = tensor(name + ".weight"), y = v;
    int length = v.size() / width_;
    for (int t = 0; t < length; ++t) {
      for (int tap = 0; tap < 31; ++tap) {
        int from = t + tap - 15;
        for (int c = 0; c < width_ && from >= 0 && from < length; ++c) {
          y[t * width_ + c] += w[c * 31 + tap] * v[from * width_ + c];
        }
      }
    }
    return y;
  }

  Values block(const Values& x, const std::string& name) const {
    Values h = normed(x, name + "attn_ln");
    Values v = linear(h, name + "attn.value");
    auto rows = [&](const Values& values) {
      std::vector<float> numbers(values.begin(), values.end());
      int length = values.size() / width_;
      return Rows(array_of(numbers, {1, length, width_}));
    };
    Values attended = attention_reference(
        rows(turned(linear(h, name + "attn.query"))),
        rows(turned(linear(h, name + "attn.key"))),
        rows(v),
        width_ / 64,
        false);
    Values y = sum(x, linear(attended, name + "attn.out"));
    y = sum(y, memory(v, name + "attn.fsmn_block"));
    h = gelu(linear(normed(y, name + "mlp_ln"), name + "mlp.0"));
    return sum(y, linear(h, name + "mlp.2"));
  }

  std::shared_ptr<const TensorFile> file_;
  int width_;
};

} // namespace nightingale::testing
