#include "emulator/functions.h"

#include <algorithm>
#include <set>
#include <string>

namespace nightingale::emulator {

namespace {

using Tokens = std::vector<Token>;

const std::set<std::string_view> kLibrary{
    "abs",         "absdiff",       "acos",          "acosh",
    "addsat",      "all",           "any",           "asin",
    "asinh",       "atan",          "atan2",         "atanh",
    "ceil",        "clamp",         "clz",           "copysign",
    "cos",         "cosh",          "cospi",         "cross",
    "ctz",         "degrees",       "determinant",   "distance",
    "dot",         "exp",           "exp10",         "exp2",
    "fabs",        "fast",          "fdim",          "floor",
    "fma",         "fmax",          "fmax3",         "fmedian3",
    "fmin",        "fmin3",         "fmod",          "fract",
    "frexp",       "hadd",          "ilogb",         "isfinite",
    "isinf",       "isnan",         "isnormal",      "isordered",
    "ldexp",       "length",        "log",           "log10",
    "log1p",       "log2",          "mad24",         "madhi",
    "madsat",      "max",           "max3",          "median3",
    "min",         "min3",          "mix",           "modf",
    "mul24",       "mulhi",         "nextafter",     "normalize",
    "popcount",    "pow",           "powr",          "precise",
    "radians",     "reflect",       "refract",       "reverse_bits",
    "rhadd",       "rint",          "rotate",        "round",
    "rsqrt",       "saturate",      "select",        "sign",
    "signbit",     "sin",           "sincos",        "sinh",
    "sinpi",       "smoothstep",    "sqrt",          "step",
    "subsat",      "tan",           "tanh",          "tanpi",
    "transpose",   "trunc",         "vec",           "ceildiv",
    "elem_to_loc", "elem_to_loc_1", "elem_to_loc_2", "elem_to_loc_3"};

// How many arguments stand between the parentheses at `open`.
int arguments(const Tokens& tokens, size_t open) {
  size_t end = closing(tokens, open, "(", ")");
  if (end == open + 1) {
    return 0;
  }
  int count = 1;
  int depth = 0;
  for (size_t i = open + 1; i < end; ++i) {
    bool opens = tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{");
    bool closes = tokens[i].is(")") || tokens[i].is("]") || tokens[i].is("}");
    depth += opens - closes;
    if (tokens[i].kind == Token::Kind::word) {
      size_t behind = behind_template(tokens, i + 1);
      if (behind < end) {
        i = behind - 1;
      }
    }
    count += depth == 0 && tokens[i].is(",");
  }
  return count;
}

struct Scan {
  const Tokens& tokens;
  std::vector<Function> functions;

  // Declarations between `i` and `end`, which are in the struct `scope`.
  void declarations(size_t i, size_t end, std::string_view scope) {
    while (i < end) {
      size_t stop = i;
      size_t parenthesis = 0;
      std::string_view type;
      while (stop < end && !tokens[stop].is(";") && !tokens[stop].is("{")) {
        if (tokens[stop].is("template")) {
          stop = behind_template(tokens, stop + 1);
          continue;
        }
        if (tokens[stop].is("struct") && stop + 1 < end) {
          type = tokens[stop + 1].text;
        }
        if (tokens[stop].is("(")) {
          parenthesis = parenthesis == 0 ? stop : parenthesis;
          stop = closing(tokens, stop, "(", ")");
        }
        ++stop;
      }
      if (stop >= end || tokens[stop].is(";")) {
        i = stop + 1;
        continue;
      }
      size_t close = closing(tokens, stop, "{", "}");
      if (parenthesis != 0) {
        add_function(i, parenthesis, stop, close, scope);
      } else if (!type.empty()) {
        declarations(stop + 1, close, type);
      }
      i = close + 1;
    }
  }

  void add_function(
      size_t first,
      size_t parenthesis,
      size_t begin,
      size_t end,
      std::string_view scope) {
    size_t name = parenthesis - 1;
    while (name > first && tokens[name].kind != Token::Kind::word) {
      --name;
    }
    auto has = [&](size_t from, size_t to, std::string_view word) {
      return std::any_of(
          tokens.begin() + from, tokens.begin() + to, [&](const Token& token) {
            return token.is(word);
          });
    };
    functions.push_back(
        {.name = name,
         .scope = scope,
         .parameters = arguments(tokens, parenthesis),
         .begin = begin,
         .end = end,
         .inlined = has(first, parenthesis, "METAL_FUNC"),
         .of_object = !scope.empty() && !has(first, parenthesis, "static"),
         .of_thread =
             has(closing(tokens, parenthesis, "(", ")"), begin, "thread")});
  }
};

// The struct before `::` at `i`, or nothing.
std::string_view qualifier(const Tokens& tokens, size_t i) {
  if (i == 0 || !tokens[i].is("::")) {
    return {};
  }
  size_t at = i - 1;
  int depth = 0;
  while (at > 0) {
    depth += tokens[at].is(">");
    depth -= tokens[at].is("<");
    if (depth == 0 && tokens[at].kind == Token::Kind::word) {
      return tokens[at].text;
    }
    --at;
  }
  return {};
}

} // namespace

size_t
closing(const Tokens& tokens, size_t open, const char* in, const char* out) {
  int depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    depth += tokens[i].is(in);
    depth -= tokens[i].is(out);
    if (depth == 0) {
      return i;
    }
  }
  return tokens.size();
}

size_t behind_template(const Tokens& tokens, size_t i) {
  size_t first = i;
  if (i >= tokens.size() || !tokens[i].is("<")) {
    return first;
  }
  int depth = 0;
  for (; i < tokens.size(); ++i) {
    depth += tokens[i].is("<");
    depth -= tokens[i].is(">");
    if (depth == 0) {
      return i + 1;
    }
    if (tokens[i].is(";") || tokens[i].is("{") || tokens[i].is(")") ||
        tokens[i].is("&&") || tokens[i].is("||")) {
      break; // it was "less than"
    }
  }
  return first;
}

std::vector<Function> functions_in(const Tokens& tokens) {
  Scan scan{tokens, {}};
  scan.declarations(0, tokens.size(), "");
  return scan.functions;
}

std::optional<size_t> find_recursion(const Tokens& tokens) {
  auto functions = functions_in(tokens);
  size_t count = functions.size();
  // calls[a][b]: a reaches b.
  std::vector<std::vector<bool>> calls(count, std::vector<bool>(count));
  for (size_t a = 0; a < count; ++a) {
    for (size_t i = functions[a].begin; i < functions[a].end; ++i) {
      size_t open = behind_template(tokens, i + 1);
      if (tokens[i].kind != Token::Kind::word || open >= tokens.size() ||
          !tokens[open].is("(")) {
        continue;
      }
      auto scope = qualifier(tokens, i - 1);
      for (size_t b = 0; b < count; ++b) {
        bool in_scope = functions[b].scope == scope ||
            (scope.empty() && functions[b].scope == functions[a].scope);
        calls[a][b] = calls[a][b] ||
            (tokens[functions[b].name].is(tokens[i].text) && in_scope &&
             functions[b].parameters == arguments(tokens, open));
      }
    }
  }
  for (size_t via = 0; via < count; ++via) {
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b < count; ++b) {
        calls[a][b] = calls[a][b] || (calls[a][via] && calls[via][b]);
      }
    }
  }
  for (size_t a = 0; a < count; ++a) {
    if (calls[a][a]) {
      return functions[a].name;
    }
  }
  return std::nullopt;
}

bool is_library_function(std::string_view name) {
  return kLibrary.contains(name) || name.starts_with("simd_") ||
      name.starts_with("quad_") || name.starts_with("atomic_");
}

} // namespace nightingale::emulator
