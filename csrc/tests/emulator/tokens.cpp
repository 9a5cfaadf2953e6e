#include "emulator/tokens.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace nightingale::emulator {

namespace {

constexpr std::array<std::string_view, 21> kLongSymbols{
    "<<=", ">>=", "...", "::", "->", "++", "--", "+=", "-=", "*=", "/=",
    "%=",  "&=",  "|=",  "^=", "==", "!=", "<=", ">=", "&&", "||"};

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  std::vector<Token> read() {
    while (skip_space()) {
      char c = source_[at_];
      if (c == '#') {
        take(Token::Kind::directive, line_length());
      } else if (starts_number()) {
        take(Token::Kind::number, number_length());
      } else if (in_word(c)) {
        take(Token::Kind::word, word_length());
      } else {
        take(Token::Kind::symbol, symbol_length());
      }
    }
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const {
    return source_.substr(at_);
  }

  void skip(size_t length) {
    line_ +=
        std::count(source_.begin() + at_, source_.begin() + at_ + length, '\n');
    at_ += length;
  }

  bool skip_space() {
    for (;;) {
      auto left = rest();
      if (left.empty()) {
        return false;
      }
      if (left.starts_with("//")) {
        skip(std::min(left.find('\n'), left.size()));
      } else if (left.starts_with("/*")) {
        auto end = left.find("*/", 2);
        skip(end == std::string_view::npos ? left.size() : end + 2);
      } else if (std::isspace(static_cast<unsigned char>(left[0]))) {
        skip(1);
      } else {
        return true;
      }
    }
  }

  bool starts_number() const {
    auto left = rest();
    return is_digit(left[0]) ||
        (left[0] == '.' && left.size() > 1 && is_digit(left[1]));
  }

  size_t line_length() const {
    auto left = rest();
    size_t end = left.find('\n');
    while (end != std::string_view::npos && end > 0 && left[end - 1] == '\\') {
      end = left.find('\n', end + 1);
    }
    return std::min(end, left.size());
  }

  size_t number_length() const {
    auto left = rest();
    bool hex = left.starts_with("0x") || left.starts_with("0X");
    size_t n = 1;
    while (n < left.size()) {
      char before = left[n - 1];
      bool exponent =
          hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E';
      bool sign = exponent && (left[n] == '+' || left[n] == '-');
      if (!in_word(left[n]) && left[n] != '.' && !sign) {
        break;
      }
      ++n;
    }
    return n;
  }

  size_t word_length() const {
    auto left = rest();
    return std::find_if_not(left.begin(), left.end(), in_word) - left.begin();
  }

  size_t symbol_length() const {
    auto left = rest();
    for (auto symbol : kLongSymbols) {
      if (left.starts_with(symbol)) {
        return symbol.size();
      }
    }
    return 1;
  }

  void take(Token::Kind kind, size_t length) {
    tokens_.push_back({kind, source_.substr(at_, length), line_});
    skip(length);
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

bool starts_statement(const std::vector<Token>& tokens, size_t i) {
  return i == 0 || tokens[i - 1].is(";") || tokens[i - 1].is("{") ||
      tokens[i - 1].is("}") || tokens[i - 1].kind == Token::Kind::directive;
}

} // namespace

std::vector<Token> tokens_of(std::string_view source) {
  return Reader(source).read();
}

std::vector<SharedDeclaration> shared_declarations(std::string_view body) {
  auto tokens = tokens_of(body);
  std::vector<SharedDeclaration> declarations;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is("threadgroup") || !starts_statement(tokens, i)) {
      continue;
    }
    size_t end = i;
    size_t name = 0;
    bool pointer = false;
    while (end < tokens.size() && !tokens[end].is(";")) {
      bool declarator = tokens[end].is("[") || tokens[end].is(",");
      if (declarator && name == 0) {
        name = end - 1;
      }
      pointer |= name == 0 && (tokens[end].is("*") || tokens[end].is("&"));
      ++end;
    }
    if (end == tokens.size() || pointer) {
      continue;
    }
    if (name == 0) {
      name = end - 1;
    }
    auto offset = [&](size_t token) {
      return static_cast<size_t>(tokens[token].text.data() - body.data());
    };
    SharedDeclaration found{{}, {}, offset(i), offset(end) + 1};
    for (size_t t = i + 1; t < name; ++t) {
      found.type += std::string(tokens[t].text) + " ";
    }
    for (size_t t = name; t < end; ++t) {
      if (t == name || tokens[t - 1].is(",")) {
        found.names.push_back({std::string(tokens[t].text), ""});
      } else if (!tokens[t].is(",")) {
        found.names.back().extents += tokens[t].text;
      }
    }
    declarations.push_back(found);
    i = end;
  }
  return declarations;
}

} // namespace nightingale::emulator
