#pragma once

#include <algorithm>
#include <string_view>

namespace nightingale::gpu {

inline std::string_view trimmed(std::string_view line) {
  auto begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {};
  }
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

// Calls `line` with every line of `text`, without the spaces around it.
template <typename Line>
void for_each_line(std::string_view text, const Line& line) {
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size());
    line(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

} // namespace nightingale::gpu
