#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "emulator/tokens.h"

namespace nightingale::emulator {

// Where the bracket at `open` closes.
size_t closing(
    const std::vector<Token>& tokens,
    size_t open,
    const char* in,
    const char* out);

// Behind the template arguments that begin at `i`; `i` where there are none.
size_t behind_template(const std::vector<Token>& tokens, size_t i);

// A function that is defined in a kernel's header. All are indices of tokens.
struct Function {
  size_t name;
  std::string_view scope; // the struct that it is in
  int parameters;
  size_t begin, end; // of its body
  bool inlined; // METAL_FUNC
  bool of_object; // of a struct, and not static
  bool of_thread; // `thread` behind its parameters
};

std::vector<Function> functions_in(const std::vector<Token>& tokens);

// The name of a function that may call itself, if there is one. Functions are
// told apart by scope, name and number of parameters.
std::optional<size_t> find_recursion(const std::vector<Token>& tokens);

// Functions of the Metal library and of the text that MLX puts before kernels:
// one more of that name may be ambiguous there.
bool is_library_function(std::string_view name);

} // namespace nightingale::emulator
