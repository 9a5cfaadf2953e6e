#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nightingale::emulator {

// A word, number, symbol or preprocessor line of MSL.
struct Token {
  enum class Kind { word, number, symbol, directive };
  Kind kind;
  std::string_view text; // points into the source
  int line;

  bool is(std::string_view other) const {
    return text == other;
  }
};

// Comments are left out. `source` must outlive the tokens.
std::vector<Token> tokens_of(std::string_view source);

// One `threadgroup T name[N], ...;` of a kernel's body.
struct SharedDeclaration {
  struct Name {
    std::string name;
    std::string extents; // "[4][32]", or nothing
  };
  std::string type;
  std::vector<Name> names;
  size_t begin, end; // in the body, from `threadgroup` to behind the semicolon
};

std::vector<SharedDeclaration> shared_declarations(std::string_view body);

} // namespace nightingale::emulator
