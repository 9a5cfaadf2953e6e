#include "nightingale/backends/gpu/kernel_source.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "nightingale/backends/gpu/text_lines.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

// Generated from metal/ by embed_kernels.cmake.
struct EmbeddedText {
  const char* name;
  const char* text;
};
extern const EmbeddedText kEmbeddedTexts[];
extern const int kEmbeddedTextCount;

namespace {

constexpr std::string_view kSuffix = ".metal";
constexpr std::string_view kBody = "//: kernel";

// `line` without a comment at its end.
std::string_view code_of(std::string_view line) {
  return trimmed(line.substr(0, line.find("//")));
}

std::vector<std::string> words(std::string_view list) {
  std::istringstream in{std::string(list)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  return words;
}

// Adds the names that `word`, a name or a list `name[count]`, stands for.
void add_names(
    const std::string& word,
    KernelSource& source,
    std::vector<std::string>& names) {
  size_t bracket = word.find('[');
  auto name = word.substr(0, bracket);
  names.push_back(name);
  if (bracket == word.npos) {
    return;
  }
  int count = std::stoi(word.substr(bracket + 1));
  source.lists.emplace_back(name, count);
  for (int i = 1; i < count; ++i) {
    names.push_back(name + std::to_string(i));
  }
}

// "// inputs: x y" → "x y" for "inputs".
std::string_view list_of(std::string_view line, std::string_view name) {
  std::string start = "// " + std::string(name) + ":";
  return line.starts_with(start) ? line.substr(start.size())
                                 : std::string_view{};
}

// The file that `#include "file"` names, or nothing.
std::string_view included(std::string_view line) {
  constexpr std::string_view start = "#include \"";
  if (!line.starts_with(start)) {
    return {};
  }
  auto name = line.substr(start.size());
  return name.substr(0, name.find('"'));
}

void append_header(
    std::string_view text,
    FindText find,
    std::vector<std::string>& seen,
    std::string& header) {
  for_each_line(text, [&](std::string_view line) {
    auto file = included(line);
    if (file.empty()) {
      auto code = code_of(line);
      if (!code.empty() && code != "#pragma once") {
        header.append(code).append("\n");
      }
      return;
    }
    if (std::find(seen.begin(), seen.end(), file) != seen.end()) {
      return;
    }
    seen.emplace_back(file);
    auto more = find(file);
    if (more.data() == nullptr) {
      throw Error("metal/ has no " + std::string(file));
    }
    append_header(more, find, seen, header);
  });
}

std::vector<KernelSource> embedded_kernels() {
  std::vector<KernelSource> kernels;
  for (int i = 0; i < kEmbeddedTextCount; ++i) {
    std::string_view name = kEmbeddedTexts[i].name;
    if (name.ends_with(kSuffix)) {
      name.remove_suffix(kSuffix.size());
      kernels.push_back(
          parse_kernel(name, kEmbeddedTexts[i].text, embedded_text));
    }
  }
  return kernels;
}

// Whether the condition of an #if holds.
bool holds(
    std::string_view condition,
    const KernelNumbers& numbers,
    const std::string& kernel) {
  auto parts = words(condition);
  bool negated = !parts.empty() && parts[0].starts_with("!");
  std::string name = parts.empty() ? "" : parts[0].substr(negated);
  auto found =
      std::find_if(numbers.begin(), numbers.end(), [&](const auto& number) {
        return number.first == name;
      });
  bool plain = parts.size() == 1;
  auto operation = parts.size() == 3 && !negated ? parts[1] : "";
  bool compares = operation == "<" || operation == ">" || operation == "==";
  if (found == numbers.end() || !(plain || compares)) {
    throw Error(
        kernel + ".metal: cannot decide #if " + std::string(condition) +
        ": expected a number that the kernel is compiled for");
  }
  if (plain) {
    return (found->second != 0) != negated;
  }
  int right = std::stoi(parts[2]);
  return operation == "<" ? found->second < right
      : operation == ">"  ? found->second > right
                          : found->second == right;
}

// The lines of `text` outside of conditions that do not hold.
std::string chosen_lines(
    std::string_view text,
    const KernelNumbers& numbers,
    const std::string& kernel) {
  std::string lines;
  std::vector<bool> conditions; // of the #if lines that are open
  for_each_line(text, [&](std::string_view line) {
    bool taken = std::find(conditions.begin(), conditions.end(), false) ==
        conditions.end();
    if (line.starts_with("#if ")) {
      // In a part that is left out, numbers may be missing.
      conditions.push_back(taken && holds(line.substr(4), numbers, kernel));
    } else if (line == "#else") {
      conditions.back() = !conditions.back();
    } else if (line == "#endif") {
      conditions.pop_back();
    } else if (taken) {
      lines.append(line).append("\n");
    }
  });
  return lines;
}

} // namespace

std::string_view embedded_text(std::string_view name) {
  for (int i = 0; i < kEmbeddedTextCount; ++i) {
    if (name == kEmbeddedTexts[i].name) {
      return kEmbeddedTexts[i].text;
    }
  }
  return {};
}

KernelSource
parse_kernel(std::string_view name, std::string_view text, FindText find) {
  auto split = text.find(kBody);
  if (split == std::string_view::npos) {
    throw Error(std::string(name) + ".metal has no line \"//: kernel\"");
  }
  KernelSource source;
  source.name = name;
  auto head = text.substr(0, split);
  for_each_line(head, [&](std::string_view line) {
    auto add = [&](std::string_view list, std::vector<std::string>& names) {
      for (const auto& word : words(list_of(line, list))) {
        add_names(word, source, names);
      }
    };
    add("inputs", source.inputs);
    add("state", source.state);
    add("outputs", source.outputs);
  });
  std::vector<std::string> seen;
  append_header(head, find, seen, source.header);
  for_each_line(text.substr(split + kBody.size()), [&](std::string_view line) {
    auto code = code_of(line);
    if (!code.empty()) {
      source.body.append(code).append("\n");
    }
  });
  return source;
}

KernelSource without(
    KernelSource source,
    const std::vector<std::string>& absent) {
  std::string aliases;
  for (const auto& name : absent) {
    for (auto* names : {&source.inputs, &source.outputs}) {
      if (std::erase(*names, name)) {
        aliases += "auto " + name + " = " + names->at(0) + ";\n";
      }
    }
  }
  source.body = aliases + source.body;
  source.absent = absent;
  return source;
}

namespace {

bool has_word(const std::string& text, const std::string& word, size_t from) {
  auto is_part = [&](size_t at) {
    return at < text.size() && (std::isalnum(text[at]) || text[at] == '_');
  };
  for (size_t at = text.find(word, from); at != std::string::npos;
       at = text.find(word, at + 1)) {
    if (!(at > 0 && is_part(at - 1)) && !is_part(at + word.size())) {
      return true;
    }
  }
  return false;
}

// Leaves the first LISTED of every list, or one.
void shorten_lists(KernelSource& source, const KernelNumbers& numbers) {
  auto listed = std::ranges::find(
      numbers, "LISTED", [](const auto& number) { return number.first; });
  int count = listed == numbers.end() ? 1 : listed->second;
  for (const auto& [name, size] : source.lists) {
    for (int i = count; i < size; ++i) {
      std::erase(source.inputs, name + std::to_string(i));
      std::erase(source.state, name + std::to_string(i));
    }
  }
}

} // namespace

KernelSource specialized(KernelSource source, const KernelNumbers& numbers) {
  shorten_lists(source, numbers);
  for (auto* text : {&source.header, &source.body}) {
    *text = chosen_lines(*text, numbers, source.name);
  }
  // What is left out needs no alias where the chosen lines do not name it.
  for (const auto& name : source.absent) {
    size_t begin = source.body.find("auto " + name + " = ");
    size_t end = source.body.find('\n', begin) + 1;
    if (begin != std::string::npos && !has_word(source.body, name, end)) {
      source.body.erase(begin, end - begin);
    }
  }
  return source;
}

std::string embedded_header(std::string_view name) {
  std::string text(embedded_text(name));
  return parse_kernel(name, text.append(kBody), embedded_text).header;
}

const std::vector<KernelSource>& kernel_sources() {
  static const auto* kernels = new auto(embedded_kernels());
  return *kernels;
}

const KernelSource& kernel_source(std::string_view name) {
  const auto& all = kernel_sources();
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& kernel) {
    return kernel.name == name;
  });
  if (found == all.end()) {
    throw Error("there is no kernel called " + std::string(name));
  }
  return *found;
}

} // namespace nightingale::gpu
