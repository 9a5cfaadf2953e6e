#pragma once

// CAMPPlus layer by layer in double precision, nothing folded.

#include <string>

#include "nightingale/models/weights.h"
#include "ops/arrays.h"

namespace nightingale::testing {

// Channels of bands of frames; sound without bands has one.
struct Map {
  int channels, bands, frames;
  Values values;

  Map(int channels, int bands, int frames)
      : channels(channels),
        bands(bands),
        frames(frames),
        values(channels * bands * frames) {}

  double& at(int c, int band, int t) {
    return values[(c * bands + band) * frames + t];
  }
  double padded(int c, int band, int t) {
    bool inside = band >= 0 && band < bands && t >= 0 && t < frames;
    return inside ? at(c, band, t) : 0.0;
  }
};

class SpeakerReference {
 public:
  explicit SpeakerReference(Weights& weights) : weights_(weights) {}

  // fbank: [frames, 80]
  Values embedding(const Values& fbank) {
    int frames = fbank.size() / 80;
    Map x(1, 80, frames);
    for (int t = 0; t < frames; ++t) {
      for (int band = 0; band < 80; ++band) {
        x.at(0, band, t) = fbank[t * 80 + band];
      }
    }
    x = head(x);
    // Bands become channels, those of a channel together.
    x.channels *= x.bands;
    x.bands = 1;
    x = conv(x, "xvector.tdnn.linear", 1, 2);
    x = norm(x, "xvector.tdnn.nonlinear.batchnorm");
    for (int b = 1; b <= 3; ++b) {
      std::string number = std::to_string(b);
      x = block(x, "xvector.block" + number + ".tdnnd", b == 1 ? 1 : 2);
      std::string transit = "xvector.transit" + number;
      x = conv(norm(x, transit + ".nonlinear.batchnorm"), transit + ".linear");
    }
    x = pool(norm(x, "xvector.out_nonlinear.batchnorm"));
    x = conv(x, "xvector.dense.linear");
    return norm(x, "xvector.dense.nonlinear.batchnorm", false).values;
  }

 private:
  mx::array take(const std::string& name) {
    std::string whole = "speaker_encoder." + name;
    return weights_.take(whole, weights_.shape(whole));
  }
  bool has(const std::string& name) {
    return weights_.has("speaker_encoder." + name);
  }

  // Padded so that as many bands and frames come out as go in, before strides.
  Map conv(
      Map x,
      const std::string& name,
      int band_stride = 1,
      int stride = 1,
      int dilation = 1) {
    auto w = take(name + ".weight");
    int taps = w.shape(-1), band_taps = w.ndim() == 4 ? w.shape(2) : 1;
    Values kernel = values(w), bias(w.shape(0));
    if (has(name + ".bias")) {
      bias = values(take(name + ".bias"));
    }
    Map y(
        w.shape(0),
        (x.bands - 1) / band_stride + 1,
        (x.frames - 1) / stride + 1);
    for (int o = 0; o < y.channels; ++o) {
      for (int band = 0; band < y.bands; ++band) {
        for (int t = 0; t < y.frames; ++t) {
          double sum = bias[o];
          const double* weight = &kernel[o * x.channels * band_taps * taps];
          for (int c = 0; c < x.channels; ++c) {
            for (int i = 0; i < band_taps; ++i) {
              for (int k = 0; k < taps; ++k) {
                int from = band * band_stride + i - band_taps / 2;
                int when = t * stride + (k - taps / 2) * dilation;
                sum += *weight++ * x.padded(c, from, when);
              }
            }
          }
          y.at(o, band, t) = sum;
        }
      }
    }
    return y;
  }

  // Without `relu` also without a trained scale and shift.
  Map norm(Map x, const std::string& name, bool relu = true) {
    Map y = scaled(x, name, relu);
    return relu ? rectified(y) : y;
  }

  Map scaled(Map x, const std::string& name, bool affine = true) {
    Values mean = values(take(name + ".running_mean"));
    Values variance = values(take(name + ".running_var"));
    Values w(x.channels, 1.0), b(x.channels, 0.0);
    if (affine) {
      w = values(take(name + ".weight"));
      b = values(take(name + ".bias"));
    }
    int each = x.bands * x.frames;
    for (size_t i = 0; i < x.values.size(); ++i) {
      int c = i / each;
      x.values[i] =
          (x.values[i] - mean[c]) / std::sqrt(variance[c] + 1e-5) * w[c] + b[c];
    }
    return x;
  }

  static Map rectified(Map x) {
    for (double& value : x.values) {
      value = std::max(0.0, value);
    }
    return x;
  }

  Map head(Map x) {
    x = norm(conv(x, "head.conv1"), "head.bn1");
    for (std::string layer : {"head.layer1.", "head.layer2."}) {
      for (int i = 0; has(layer + std::to_string(i) + ".conv1.weight"); ++i) {
        std::string name = layer + std::to_string(i) + ".";
        int stride = i == 0 ? 2 : 1;
        Map y = norm(conv(x, name + "conv1", stride), name + "bn1");
        y = scaled(conv(y, name + "conv2"), name + "bn2");
        if (i == 0) {
          x = conv(x, name + "shortcut.0", stride);
          x = scaled(x, name + "shortcut.1");
        }
        for (size_t j = 0; j < y.values.size(); ++j) {
          y.values[j] += x.values[j];
        }
        x = rectified(y);
      }
    }
    return norm(conv(x, "head.conv2", 2), "head.bn2");
  }

  // Each frame's segment of 100 on its own, and all frames.
  static Map context(Map x) {
    Map y = x;
    for (int c = 0; c < x.channels; ++c) {
      for (int t = 0; t < x.frames; ++t) {
        int begin = t / 100 * 100, end = std::min(x.frames, begin + 100);
        double whole = 0, segment = 0;
        for (int i = 0; i < x.frames; ++i) {
          whole += x.at(c, 0, i);
          segment += i >= begin && i < end ? x.at(c, 0, i) : 0;
        }
        y.at(c, 0, t) = whole / x.frames + segment / (end - begin);
      }
    }
    return y;
  }

  Map block(Map x, const std::string& layers, int dilation) {
    for (int i = 1; has(layers + std::to_string(i) + ".linear1.weight"); ++i) {
      std::string name = layers + std::to_string(i) + ".";
      Map y = norm(x, name + "nonlinear1.batchnorm");
      y = norm(conv(y, name + "linear1"), name + "nonlinear2.batchnorm");
      std::string cam = name + "cam_layer.";
      Map mask = rectified(conv(context(y), cam + "linear1"));
      mask = conv(mask, cam + "linear2");
      y = conv(y, cam + "linear_local", 1, 1, dilation);
      for (size_t j = 0; j < y.values.size(); ++j) {
        x.values.push_back(y.values[j] / (1 + std::exp(-mask.values[j])));
      }
      x.channels += y.channels;
    }
    return x;
  }

  static Map pool(Map x) {
    Map y(2 * x.channels, 1, 1);
    for (int c = 0; c < x.channels; ++c) {
      double mean = 0, squares = 0;
      for (int t = 0; t < x.frames; ++t) {
        mean += x.at(c, 0, t) / x.frames;
      }
      for (int t = 0; t < x.frames; ++t) {
        squares += std::pow(x.at(c, 0, t) - mean, 2);
      }
      y.at(c, 0, 0) = mean;
      y.at(x.channels + c, 0, 0) = std::sqrt(squares / (x.frames - 1));
    }
    return y;
  }

  Weights& weights_;
};

} // namespace nightingale::testing
