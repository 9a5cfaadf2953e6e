#include "nightingale/io/utf8.h"

#include <cstddef>

namespace nightingale {

bool is_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint8_t lead = text[i++];
    if (lead < 0x80) {
      continue;
    }
    int continuations = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < size_t(continuations)) {
      return false;
    }
    // Only the first continuation byte can make a form overlong, a surrogate
    // or too large.
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (int k = 0; k < continuations; ++k) {
      uint8_t byte = text[i++];
      if (byte < low || byte > high) {
        return false;
      }
      low = 0x80;
      high = 0xbf;
    }
  }
  return true;
}

void append_utf8(std::string& text, uint32_t code_point) {
  auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  auto put_continuation = [&](int shift) {
    put(0x80 | ((code_point >> shift) & 0x3f));
  };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | (code_point >> 6));
    put_continuation(0);
  } else if (code_point < 0x10000) {
    put(0xe0 | (code_point >> 12));
    put_continuation(6);
    put_continuation(0);
  } else {
    put(0xf0 | (code_point >> 18));
    put_continuation(12);
    put_continuation(6);
    put_continuation(0);
  }
}

} // namespace nightingale
