#include "nightingale/backends/gpu/metal_text.h"

#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include "nightingale/backends/gpu/text_lines.h"

namespace nightingale::gpu {

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool is_operator(char c) {
  return std::string_view("+-*/%&|^<>=!:").find(c) != std::string_view::npos;
}

using Words = std::set<std::string, std::less<>>;

void add_words(std::string_view text, Words& words) {
  for (size_t i = 0; i < text.size(); ++i) {
    size_t begin = i;
    while (i < text.size() && is_word(text[i])) {
      ++i;
    }
    if (i > begin) {
      words.emplace(text.substr(begin, i - begin));
    }
  }
}

// Behind the angle brackets that open at `i`.
size_t behind_brackets(std::string_view text, size_t i) {
  int depth = 0;
  for (; i < text.size(); ++i) {
    depth += text[i] == '<';
    depth -= text[i] == '>';
    if (depth == 0) {
      return i + 1;
    }
  }
  return i;
}

std::string_view first_word(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_word(text[end])) {
    ++end;
  }
  return text.substr(0, end);
}

// What a declaration without its `template <...>` declares; nothing where that
// is not a struct, a type or a function.
std::string_view declared_name(std::string_view text) {
  for (std::string_view kind : {"struct ", "using "}) {
    if (text.starts_with(kind)) {
      return first_word(text.substr(kind.size()));
    }
  }
  std::string_view name;
  for (size_t i = 0; i < text.size() && text[i] != '('; ++i) {
    if (text[i] == '<') {
      i = behind_brackets(text, i) - 1;
    } else if (is_word(text[i]) && (i == 0 || !is_word(text[i - 1]))) {
      name = first_word(text.substr(i));
    }
  }
  return text.find('(') == std::string_view::npos ? std::string_view{} : name;
}

struct Declaration {
  std::string text;
  std::string name;
  bool used = false;
};

// The declarations of a header, and its directives.
std::vector<Declaration> declarations(std::string_view header) {
  std::vector<Declaration> all;
  std::string text;
  int depth = 0;
  for_each_line(header, [&](std::string_view line) {
    text.append(line).append("\n");
    for (char c : line) {
      depth += c == '{' || c == '(';
      depth -= c == '}' || c == ')';
    }
    bool directive = line.starts_with("#");
    if (depth > 0 ||
        !(directive || line.ends_with("}") || line.ends_with(";"))) {
      return;
    }
    std::string_view declared = text;
    if (declared.starts_with("template")) {
      declared.remove_prefix(behind_brackets(declared, declared.find('<')));
    }
    auto name =
        directive ? std::string_view{} : declared_name(trimmed(declared));
    all.push_back({text, std::string(name), name.empty()});
    text.clear();
  });
  return all;
}

// What kernels repeat most, and names for it that no kernel has.
constexpr std::pair<std::string_view, std::string_view> kShortPhrases[] = {
    {"METAL_FUNC", "FN"},
    {"const device", "CD"},
    {"thread float", "TF"},
    {"simd_shuffle_xor", "SX"}};

// `text` with `by` in place of every `phrase` that is not a part of a word.
std::string
replaced(std::string_view text, std::string_view phrase, std::string_view by) {
  std::string result;
  size_t from = 0;
  for (size_t at; (at = text.find(phrase, from)) != text.npos;) {
    size_t end = at + phrase.size();
    bool whole = (at == 0 || !is_word(text[at - 1])) &&
        (end == text.size() || !is_word(text[end]));
    result.append(text.substr(from, at - from)).append(whole ? by : phrase);
    from = end;
  }
  return result.append(text.substr(from));
}

} // namespace

std::string without_unused(std::string_view header, std::string_view body) {
  auto all = declarations(header);
  Words words;
  add_words(body, words);
  for (const auto& one : all) {
    if (one.used) {
      add_words(one.text, words);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& one : all) {
      if (!one.used && words.contains(one.name)) {
        one.used = changed = true;
        add_words(one.text, words);
      }
    }
  }
  std::string kept;
  for (const auto& one : all) {
    kept += one.used ? one.text : "";
  }
  return kept;
}

std::string without_spaces(std::string_view text) {
  std::string result;
  bool after_code = false;
  for_each_line(text, [&](std::string_view line) {
    bool directive = line.starts_with("#");
    if (after_code && line.find_first_not_of("};") == std::string_view::npos) {
      result.pop_back(); // closes what the line before ends
    }
    after_code = !directive;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == ' ' && !directive) {
        // Lines begin and end with something else.
        char before = line[i - 1], after = line[i + 1];
        bool separates = (is_word(before) && is_word(after)) ||
            (is_operator(before) && is_operator(after));
        if (!separates) {
          continue;
        }
      }
      result += line[i];
    }
    result += '\n';
  });
  return result;
}

KernelText with_short_phrases(KernelText text) {
  for (const auto& [phrase, in_short] : kShortPhrases) {
    auto define = std::string("#define ").append(in_short) + " ";
    define.append(phrase).append("\n");
    KernelText shorter{
        replaced(text.header, phrase, in_short),
        replaced(text.body, phrase, in_short)};
    size_t before = text.header.size() + text.body.size();
    if (define.size() + shorter.header.size() + shorter.body.size() < before) {
      text = {define + shorter.header, shorter.body};
    }
  }
  return text;
}

std::string writable_state(const KernelSource& source) {
  std::string lines;
  for (const auto& name : source.state) {
    lines += "auto " + name + " = writable(" + state_input(name) + ");\n";
  }
  return lines;
}

KernelText metal_text(const KernelSource& source) {
  static const auto words = embedded_header("metal.h");
  static const auto tiles = embedded_header("metal_tiles.h");
  auto body = writable_state(source) + source.body;
  auto uses = [&](const char* word) {
    return source.header.find(word) != std::string::npos ||
        body.find(word) != std::string::npos;
  };
  bool has_tiles = uses("multiply_tiles");
  auto header =
      without_unused(words + (has_tiles ? tiles : "") + source.header, body);
  return with_short_phrases({without_spaces(header), without_spaces(body)});
}

} // namespace nightingale::gpu
