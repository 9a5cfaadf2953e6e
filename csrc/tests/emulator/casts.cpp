#include "emulator/casts.h"

#include <optional>
#include <vector>

#include "emulator/functions.h"
#include "emulator/tokens.h"

namespace nightingale::emulator {

namespace {

using Tokens = std::vector<Token>;

bool is_address_space(const Token& token) {
  return token.is("device") || token.is("constant") ||
      token.is("threadgroup") || token.is("thread");
}

// Behind the cast to a pointer that begins at the parenthesis `i`.
std::optional<size_t> behind_cast(const Tokens& tokens, size_t i) {
  bool space = false;
  for (size_t t = i + 1; t + 1 < tokens.size(); ++t) {
    if (tokens[t].is("*") && tokens[t + 1].is(")")) {
      return space ? std::optional(t + 2) : std::nullopt;
    }
    if (tokens[t].kind != Token::Kind::word) {
      return std::nullopt;
    }
    space |= is_address_space(tokens[t]);
  }
  return std::nullopt;
}

// Behind what a cast at the left of `i` applies to.
size_t behind_operand(const Tokens& tokens, size_t i) {
  while (i < tokens.size() &&
         (tokens[i].is("*") || tokens[i].is("&") || tokens[i].is("-"))) {
    ++i;
  }
  if (i >= tokens.size()) {
    return i;
  }
  if (tokens[i].is("(")) {
    if (auto inner = behind_cast(tokens, i)) {
      return behind_operand(tokens, *inner);
    }
    i = closing(tokens, i, "(", ")");
  }
  ++i;
  while (i < tokens.size()) {
    if (tokens[i].is("(")) {
      i = closing(tokens, i, "(", ")") + 1;
    } else if (tokens[i].is("[")) {
      i = closing(tokens, i, "[", "]") + 1;
    } else if (tokens[i].is(".") || tokens[i].is("->") || tokens[i].is("::")) {
      i += 2;
    } else if (behind_template(tokens, i) > i) {
      i = behind_template(tokens, i);
    } else {
      break;
    }
  }
  return i;
}

size_t offset(const std::string& source, const Token& token) {
  return token.text.data() - source.data();
}

} // namespace

std::string with_checked_casts(const std::string& source) {
  auto tokens = tokens_of(source);
  // What to put in before an offset of the source; 1: instead of a character.
  struct Change {
    size_t at;
    size_t instead;
    std::string text;
  };
  std::vector<Change> changes;
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto behind = tokens[i].is("(") ? behind_cast(tokens, i) : std::nullopt;
    // A parameter's type, in a declaration without names, has nothing behind.
    if (!behind || *behind >= tokens.size()) {
      continue;
    }
    const auto& next = tokens[*behind];
    bool operand = next.kind == Token::Kind::word || next.is("(") ||
        next.is("*") || next.is("&");
    if (!operand) {
      continue;
    }
    size_t end = behind_operand(tokens, *behind);
    const auto& last = tokens[end - 1];
    changes.push_back({offset(source, tokens[i]), 1, "reinterpret_cast<"});
    changes.push_back({offset(source, tokens[*behind - 1]), 1, ">("});
    changes.push_back({offset(source, last) + last.text.size(), 0, ")"});
  }
  std::string text;
  std::vector<std::string> before(source.size() + 1);
  std::vector<bool> dropped(source.size() + 1);
  for (const auto& change : changes) {
    before[change.at] += change.text;
    dropped[change.at] = dropped[change.at] || change.instead == 1;
  }
  for (size_t i = 0; i <= source.size(); ++i) {
    text += before[i];
    if (i < source.size() && !dropped[i]) {
      text += source[i];
    }
  }
  return text;
}

} // namespace nightingale::emulator
