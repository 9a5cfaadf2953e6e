#include "emulator/kernel_text.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>

#include "emulator/casts.h"
#include "emulator/tokens.h"

namespace nightingale::emulator {

namespace {

// MLX hands smaller inputs in as `constant`.
bool is_constant(const mx::array& input) {
  return input.size() < 8;
}

struct Attribute {
  std::string_view name, type, value; // of Position
};

constexpr std::array<Attribute, 5> kAttributes{{
    {"simdgroup_index_in_threadgroup", "uint", "at.thread_index / 32"},
    {"thread_index_in_simdgroup", "uint", "at.thread_index % 32"},
    {"thread_index_in_threadgroup", "uint", "at.thread_index"},
    {"threadgroup_position_in_grid",
     "uint3",
     "uint3{at.group.x, at.group.y, at.group.z}"},
    {"threadgroups_per_grid",
     "uint3",
     "uint3{at.groups.x, at.groups.y, at.groups.z}"},
}};

std::string type_name(mx::Dtype dtype) {
  switch (dtype.val()) {
    case mx::Dtype::Val::float32:
      return "float";
    case mx::Dtype::Val::float16:
      return "float16_t";
    case mx::Dtype::Val::bfloat16:
      return "bfloat16_t";
    case mx::Dtype::Val::bool_:
      return "bool";
    case mx::Dtype::Val::int8:
      return "int8_t";
    case mx::Dtype::Val::int16:
      return "int16_t";
    case mx::Dtype::Val::int32:
      return "int32_t";
    case mx::Dtype::Val::int64:
      return "int64_t";
    case mx::Dtype::Val::uint8:
      return "uint8_t";
    case mx::Dtype::Val::uint16:
      return "uint16_t";
    case mx::Dtype::Val::uint32:
      return "uint32_t";
    case mx::Dtype::Val::uint64:
      return "uint64_t";
    default:
      throw std::runtime_error("Metal has no such type of numbers");
  }
}

struct ConstantText {
  std::string kind, name, value;
};

ConstantText constant_text(const gpu::Constant& constant) {
  const auto& [name, value] = constant;
  if (auto number = std::get_if<int>(&value)) {
    return {"int", name, std::to_string(*number)};
  }
  if (auto flag = std::get_if<bool>(&value)) {
    return {"bool", name, *flag ? "true" : "false"};
  }
  return {"typename", name, type_name(std::get<mx::Dtype>(value))};
}

struct Parameter {
  std::string type, name, argument;
};

std::vector<Parameter> parameters(
    const gpu::KernelSource& source,
    const std::vector<mx::array>& inputs,
    const std::vector<mx::array>& outputs) {
  auto names = source.inputs;
  for (const auto& name : source.state) {
    names.push_back(name + "_const");
  }
  if (names.size() != inputs.size() ||
      source.outputs.size() != outputs.size()) {
    throw std::runtime_error(
        "has " + std::to_string(names.size()) + " inputs and " +
        std::to_string(source.outputs.size()) + " outputs, but is given " +
        std::to_string(inputs.size()) + " and " +
        std::to_string(outputs.size()));
  }
  std::vector<Parameter> all;
  auto add_buffer = [&](const std::string& type, const std::string& name) {
    auto argument = "(" + type + ")buffers[" + std::to_string(all.size()) + "]";
    all.push_back({type, name, argument});
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string space = is_constant(inputs[i]) ? "constant" : "device";
    add_buffer(
        "const " + space + " " + type_name(inputs[i].dtype()) + "*", names[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    add_buffer(
        "device " + type_name(outputs[i].dtype()) + "*", source.outputs[i]);
  }
  for (const auto& attribute : kAttributes) {
    if (source.body.find(attribute.name) != std::string::npos) {
      all.push_back(
          {std::string(attribute.type),
           std::string(attribute.name),
           std::string(attribute.value)});
    }
  }
  return all;
}

template <typename Items, typename Text>
std::string joined(const Items& items, const Text& text) {
  std::string all;
  for (const auto& item : items) {
    all += (all.empty() ? "" : ", ") + text(item);
  }
  return all;
}

// `threadgroup float a[8];` where a function may have it: memory that is not of
// one call.
std::string with_shared_memory(const std::string& body, bool typed) {
  std::string text;
  size_t at = 0;
  int site = 0;
  for (const auto& declaration : shared_declarations(body)) {
    text += body.substr(at, declaration.begin - at);
    auto original =
        body.substr(declaration.begin, declaration.end - declaration.begin);
    at = declaration.end;
    if (typed) {
      text += "static " + original;
      continue;
    }
    for (const auto& [name, extents] : declaration.names) {
      auto storage = name + "_storage";
      text += "using " + storage + " = " + declaration.type + extents +
          "; auto& " + name + " = *msl::storage<" + storage + ", " +
          std::to_string(site++) + ">(); ";
    }
    text.append(std::count(original.begin(), original.end(), '\n'), '\n');
  }
  return text + body.substr(at);
}

// Loops stay loops where the kernel runs: they compile faster.
std::string without_pragmas(const std::string& source) {
  std::istringstream lines(source);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    text += (line.starts_with("#pragma") ? "" : line) + "\n";
  }
  return text;
}

} // namespace

bool is_attribute(std::string_view word) {
  return std::any_of(
      kAttributes.begin(), kAttributes.end(), [&](const auto& attribute) {
        return attribute.name == word;
      });
}

std::string kernel_key(
    const gpu::KernelSource& source,
    const std::vector<gpu::Constant>& constants,
    const std::vector<mx::array>& inputs,
    const std::vector<mx::array>& outputs) {
  std::string key;
  auto add_type = [&](mx::Dtype dtype) {
    key += std::to_string(static_cast<int>(dtype.val())) + " ";
  };
  for (const auto& constant : constants) {
    auto [kind, name, value] = constant_text(constant);
    key += name + "=" + value + " ";
  }
  for (const auto& input : inputs) {
    add_type(input.dtype());
    key += is_constant(input) ? "c" : "d";
  }
  for (const auto& output : outputs) {
    add_type(output.dtype());
  }
  return key + source.header + source.body;
}

std::string kernel_text(
    const gpu::KernelSource& source,
    const std::vector<gpu::Constant>& constants,
    const std::vector<mx::array>& inputs,
    const std::vector<mx::array>& outputs,
    bool typed) {
  std::vector<ConstantText> values;
  for (const auto& constant : constants) {
    values.push_back(constant_text(constant));
  }
  auto arguments = parameters(source, inputs, outputs);

  std::string text = "#include \"msl.h\"\n" +
      (typed ? with_checked_casts(source.header)
             : without_pragmas(source.header));
  if (typed) {
    text += "template <" +
        joined(values,
               [](const auto& value) {
                 return value.kind + " " + value.name;
               }) +
        ">";
  }
  text += "\n__attribute__((noinline)) void kernel(" +
      joined(arguments,
             [](const auto& argument) {
               return argument.type + " " + argument.name;
             }) +
      ") {\n";
  for (const auto& [kind, name, value] : values) {
    if (!typed) {
      text += kind == "typename" ? "using " + name
                                 : "constexpr " + kind + " " + name;
      text += " = " + value + "; ";
    }
  }
  text += "\n";
  for (const auto& name : source.state) {
    text += "auto " + name + " = writable(" + name + "_const);\n";
  }
  auto body = with_shared_memory(source.body, typed);
  text += (typed ? with_checked_casts(body) : without_pragmas(body)) + "\n}\n";
  if (typed) {
    auto name = "kernel<" +
        joined(values, [](const auto& value) { return value.value; }) + ">";
    return text + "template decltype(" + name + ") " + name + ";\n";
  }
  return text +
      "extern \"C\" MSL_EXPORT MSL_HOOK void emulator_run(void* const* "
      "buffers, "
      "const nightingale::emulator::Position& at) {\nkernel(" +
      joined(arguments,
             [](const auto& argument) { return argument.argument; }) +
      ");\n}\n";
}

} // namespace nightingale::emulator
