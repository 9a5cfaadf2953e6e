#include "emulator/source_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "emulator/functions.h"
#include "emulator/kernel_text.h"
#include "emulator/tokens.h"

namespace nightingale::emulator {

namespace {

using Tokens = std::vector<Token>;
using Words = std::set<std::string, std::less<>>;

const std::map<std::string, std::string, std::less<>> kNotInMsl{
    {"double", "double"},
    {"try", "exceptions"},
    {"catch", "exceptions"},
    {"throw", "exceptions"},
    {"new", "new and delete"},
    {"delete", "new and delete"},
    {"virtual", "virtual functions"},
    {"dynamic_cast", "run-time types"},
    {"typeid", "run-time types"},
    {"goto", "goto"},
    {"thread_local", "thread_local"},
    {"asm", "assembler"},
    {"std", "std::"},
};

// What MLX would add to the signature because it finds the word in the body,
// and our kernels do without.
const Words kOtherAttributes{
    "dispatch_quadgroups_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup",
    "dispatch_threads_per_threadgroup",
    "grid_origin",
    "grid_size",
    "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",
    "simdgroups_per_threadgroup",
    "thread_execution_width",
    "thread_index_in_quadgroup",
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "threads_per_grid",
    "threads_per_simdgroup",
    "threads_per_threadgroup"};

const Words kAddressSpaces{"device", "constant", "threadgroup", "thread"};
const Words kQualifiers{"const", "volatile", "unsigned", "signed"};
const Words kTypes{
    "float",   "half",     "bool",     "char",     "short",     "int",
    "long",    "uchar",    "ushort",   "uint",     "float2",    "float4",
    "half2",   "half4",    "int2",     "int4",     "uint2",     "uint3",
    "uint4",   "size_t",   "int8_t",   "int16_t",  "int32_t",   "int64_t",
    "uint8_t", "uint16_t", "uint32_t", "uint64_t", "float16_t", "bfloat16_t"};

[[noreturn]] void reject(const Token& at, const std::string& why) {
  throw std::runtime_error(
      "not MSL: " + why + ", at `" + std::string(at.text) + "` in line " +
      std::to_string(at.line));
}

void check_words(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto& token = tokens[i];
    if (token.kind != Token::Kind::word) {
      continue;
    }
    auto found = kNotInMsl.find(token.text);
    if (found != kNotInMsl.end()) {
      reject(token, "MSL has no " + found->second);
    }
    if (kOtherAttributes.contains(token.text)) {
      reject(token, "kernels do without this attribute");
    }
  }
}

void check_numbers(const Tokens& tokens) {
  for (const auto& token : tokens) {
    auto text = token.text;
    bool hex = text.starts_with("0x") || text.starts_with("0X");
    bool real = text.find('.') != std::string_view::npos ||
        text.find_first_of(hex ? "pP" : "eE") != std::string_view::npos;
    if (token.kind == Token::Kind::number && real && text.back() != 'f') {
      reject(token, "a number that is not float (1.0f) is double");
    }
  }
}

// Types of the language, of the text and among the constants.
Words types_in(
    const Tokens& tokens,
    const std::vector<gpu::Constant>& constants) {
  Words types = kTypes;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].is("typename") || tokens[i].is("class") ||
        tokens[i].is("struct") || tokens[i].is("using")) {
      types.emplace(tokens[i + 1].text);
    }
  }
  for (const auto& [name, value] : constants) {
    if (std::holds_alternative<mx::Dtype>(value)) {
      types.insert(name);
    }
  }
  return types;
}

// The `<` of the template arguments that end at `close`.
size_t arguments_begin(const Tokens& tokens, size_t close) {
  int depth = 0;
  for (size_t t = close + 1; t-- > 0 && !tokens[t].is(";");) {
    depth += tokens[t].is(">");
    depth -= tokens[t].is("<");
    if (depth == 0) {
      return t;
    }
  }
  return close;
}

// Clang lets a cast change the address space; Metal does not, and asks for one
// in every pointer and reference.
void check_address_spaces(const Tokens& tokens, const Words& types) {
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (!tokens[i].is("*") && !tokens[i].is("&")) {
      continue;
    }
    bool to_array = tokens[i - 1].is("(") && i + 3 < tokens.size() &&
        tokens[i + 2].is(")") && tokens[i + 3].is("["); // T (*name)[8]
    bool type = false;
    bool space = false;
    for (size_t t = to_array ? i - 1 : i; t-- > 0;) {
      if (tokens[t].is(">")) {
        t = arguments_begin(tokens, t);
        continue;
      }
      auto word = tokens[t].text;
      bool is_type = types.contains(word);
      bool is_space = kAddressSpaces.contains(word);
      if (!is_type && !is_space && !kQualifiers.contains(word)) {
        break;
      }
      type |= is_type;
      space |= is_space;
    }
    if (type && !space) {
      reject(tokens[i - 1], "a pointer or reference needs an address space");
    }
  }
}

void check_brackets(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is("[")) {
      bool subscript = i > 0 &&
          (tokens[i - 1].is("]") || tokens[i - 1].is(")") ||
           (tokens[i - 1].kind == Token::Kind::word &&
            !tokens[i - 1].is("return")));
      if (!subscript) {
        reject(tokens[i], "MSL has no lambdas");
      }
    }
    bool pointer_to_function = i + 4 < tokens.size() && tokens[i].is("(") &&
        tokens[i + 1].is("*") && tokens[i + 2].kind == Token::Kind::word &&
        tokens[i + 3].is(")") && tokens[i + 4].is("(");
    if (pointer_to_function) {
      reject(tokens[i + 2], "kernels do without function pointers");
    }
  }
}

// The MSL specification has no derived structs.
void check_base_clauses(const Tokens& tokens) {
  for (size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].is("struct") && !tokens[i].is("class")) {
      continue;
    }
    size_t behind = behind_template(tokens, i + 2);
    if (behind < tokens.size() && tokens[behind].is(":")) {
      reject(tokens[i + 1], "structs have no base classes");
    }
  }
}

void check_header(const Tokens& tokens) {
  for (const auto& token : tokens) {
    if (is_attribute(token.text)) {
      reject(token, "only the kernel's body has attributes");
    }
  }
  for (const auto& function : functions_in(tokens)) {
    const auto& name = tokens[function.name];
    if (!function.inlined) {
      reject(name, "helpers are METAL_FUNC");
    }
    if (is_library_function(name.text)) {
      reject(name, "Metal or MLX has a function of this name");
    }
    // From MSL 4.1 on, `this` would be a generic pointer without it.
    if (function.of_object && !function.of_thread) {
      reject(name, "functions of structs are `thread` or `const thread`");
    }
    for (size_t i = function.begin; i < function.end; ++i) {
      bool declares = tokens[i].is("threadgroup") &&
          (tokens[i - 1].is(";") || tokens[i - 1].is("{") ||
           tokens[i - 1].is("}"));
      if (declares) {
        reject(tokens[i], "only the kernel's body has threadgroup memory");
      }
      if (tokens[i].is("static")) {
        reject(tokens[i], "functions have no static variables");
      }
    }
  }
  if (auto recursive = find_recursion(tokens)) {
    reject(tokens[*recursive], "MSL has no recursion");
  }
}

void check_body(const Tokens& tokens) {
  int depth = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    depth += tokens[i].is("{");
    depth -= tokens[i].is("}");
    if (tokens[i].is("static")) {
      reject(tokens[i], "functions have no static variables");
    }
    bool starts = i == 0 || tokens[i - 1].is(";") || tokens[i - 1].is("{") ||
        tokens[i - 1].is("}");
    if (!tokens[i].is("threadgroup") || !starts) {
      continue;
    }
    if (depth > 0) {
      reject(tokens[i], "threadgroup memory is declared at the top level");
    }
    for (size_t t = i;
         t < tokens.size() && !tokens[t].is(";") && !tokens[t].is("[");
         ++t) {
      if (tokens[t].is("*") || tokens[t].is("&")) {
        reject(tokens[i], "CUDA would share this pointer: make it `auto`");
      }
    }
  }
}

} // namespace

void check_source(
    const gpu::KernelSource& source,
    const std::vector<gpu::Constant>& constants) {
  auto whole = source.header + source.body;
  auto all = tokens_of(whole);
  check_words(all);
  check_numbers(all);
  check_address_spaces(all, types_in(all, constants));
  check_brackets(all);
  check_base_clauses(all);
  check_header(tokens_of(source.header));
  check_body(tokens_of(source.body));
}

} // namespace nightingale::emulator
