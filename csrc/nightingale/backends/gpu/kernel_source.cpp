#include "nightingale/backends/gpu/kernel_source.h"

#include <algorithm>
#include <cctype>
#include <sstream>

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

std::string_view trimmed(std::string_view line) {
  auto begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {};
  }
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

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

template <typename Line>
void for_each_line(std::string_view text, const Line& line) {
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size());
    line(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
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
      auto found = words(list_of(line, list));
      names.insert(names.end(), found.begin(), found.end());
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
