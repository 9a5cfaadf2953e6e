#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nightingale {

// A JSON value, read strictly (RFC 8259, UTF-8, no duplicate keys). MLX's C++
// library ships no JSON parser and safetensors headers need little of one, so
// this is our own rather than one more dependency.
//
// The typed accessors throw an Error that names the value as `what`.
class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>; // sorted by key

  Json() = default;

  // Parses `text`; errors are prefixed with `source` and give the byte offset.
  static Json parse(std::string_view text, std::string_view source);

  // The value under `key`, or nullptr where there is none or this is not an
  // object.
  const Json* find(std::string_view key) const;

  bool is_null() const {
    return std::holds_alternative<std::nullptr_t>(value_);
  }
  bool boolean(std::string_view what) const {
    return get<bool>("a boolean", what);
  }
  int64_t integer(std::string_view what) const {
    return get<int64_t>("an integer", what);
  }
  double number(std::string_view what) const; // integers too
  const std::string& string(std::string_view what) const {
    return get<std::string>("a string", what);
  }
  const Array& array(std::string_view what) const {
    return get<Array>("an array", what);
  }
  const Object& object(std::string_view what) const {
    return get<Object>("an object", what);
  }

 private:
  friend class JsonParser;

  template <typename T>
  const T& get(std::string_view expected, std::string_view what) const {
    if (auto* value = std::get_if<T>(&value_)) {
      return *value;
    }
    fail(expected, what);
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view what)
      const;

  // Whole numbers that fit are kept exactly: offsets may pass 2^53.
  std::
      variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object>
          value_;
};

struct Json::Member {
  std::string key;
  Json value;
};

} // namespace nightingale
