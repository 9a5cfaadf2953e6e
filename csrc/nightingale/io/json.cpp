#include "nightingale/io/json.h"

#include <algorithm>
#include <charconv>
#include <locale>
#include <sstream>

#include "nightingale/error.h"

namespace nightingale {

namespace {

// Whether `text` is well-formed UTF-8: no overlong encodings, no surrogates,
// nothing above U+10FFFF.
bool is_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint8_t lead = text[i++];
    if (lead < 0x80) {
      continue;
    }
    int continuations = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < size_t(continuations)) {
      return false;
    }
    // Only the first continuation byte can make a form overlong, a surrogate
    // or too large.
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (int k = 0; k < continuations; ++k) {
      uint8_t byte = text[i++];
      if (byte < low || byte > high) {
        return false;
      }
      low = 0x80;
      high = 0xbf;
    }
  }
  return true;
}

// Appends one code point, which must be a Unicode scalar value.
void append_utf8(std::string& text, uint32_t code_point) {
  int continuations =
      (code_point >= 0x80) + (code_point >= 0x800) + (code_point >= 0x10000);
  constexpr uint32_t leads[] = {0, 0xc0, 0xe0, 0xf0};
  int shift = 6 * continuations;
  text.push_back(char(leads[continuations] | (code_point >> shift)));
  while (shift > 0) {
    shift -= 6;
    text.push_back(char(0x80 | ((code_point >> shift) & 0x3f)));
  }
}

constexpr int max_depth = 64;
constexpr size_t max_bytes = 100'000'000;
// A value takes some fifty bytes in memory but may take two in the text.
constexpr size_t max_values = 2'000'000;

} // namespace

class JsonParser {
 public:
  JsonParser(std::string_view text, std::string_view source)
      : text_(text), source_(source) {}

  Json parse_document() {
    if (text_.size() > max_bytes) {
      fail(
          "the text is " + std::to_string(text_.size()) +
          " bytes long, expected at most " + std::to_string(max_bytes));
    }
    Json value = parse_value(0);
    skip_space();
    if (at_ != text_.size()) {
      fail("expected the end of the text");
    }
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(
        std::string(source_) + ": invalid JSON at byte " + std::to_string(at_) +
        ": " + message);
  }

  bool peek(char c) const {
    return at_ < text_.size() && text_[at_] == c;
  }

  bool accept(char c) {
    if (!peek(c)) {
      return false;
    }
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) {
      fail(std::string("expected '") + c + "'");
    }
  }

  void skip_space() {
    while (peek(' ') || peek('\t') || peek('\n') || peek('\r')) {
      ++at_;
    }
  }

  Json parse_value(int depth) {
    if (depth > max_depth) {
      fail("nested deeper than " + std::to_string(max_depth) + " levels");
    }
    if (++values_ > max_values) {
      fail("more than " + std::to_string(max_values) + " values");
    }
    skip_space();
    Json json;
    if (peek('{')) {
      json.value_ = parse_object(depth);
    } else if (peek('[')) {
      json.value_ = parse_array(depth);
    } else if (peek('"')) {
      json.value_ = parse_string();
    } else if (accept_word("true")) {
      json.value_ = true;
    } else if (accept_word("false")) {
      json.value_ = false;
    } else if (accept_word("null")) {
      json.value_ = nullptr;
    } else {
      parse_number(json);
    }
    return json;
  }

  bool accept_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  // What stands between `open` and `close`, with commas between the items.
  template <typename ParseItem>
  void parse_list(char open, char close, ParseItem parse_item) {
    expect(open);
    skip_space();
    if (accept(close)) {
      return;
    }
    do {
      parse_item();
      skip_space();
    } while (accept(','));
    expect(close);
  }

  Json::Object parse_object(int depth) {
    Json::Object members;
    parse_list('{', '}', [&] {
      skip_space();
      std::string key = parse_string();
      skip_space();
      expect(':');
      members.push_back({std::move(key), parse_value(depth + 1)});
    });
    std::ranges::sort(members, {}, &Json::Member::key);
    auto duplicate =
        std::ranges::adjacent_find(members, {}, &Json::Member::key);
    if (duplicate != members.end()) {
      fail("the key '" + duplicate->key + "' appears twice in one object");
    }
    return members;
  }

  Json::Array parse_array(int depth) {
    Json::Array items;
    parse_list('[', ']', [&] { items.push_back(parse_value(depth + 1)); });
    return items;
  }

  std::string parse_string() {
    expect('"');
    std::string result;
    while (!accept('"')) {
      size_t run = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') {
        if (static_cast<uint8_t>(text_[at_]) < 0x20) {
          fail("control character in a string");
        }
        ++at_;
      }
      std::string_view plain = text_.substr(run, at_ - run);
      if (!is_utf8(plain)) {
        fail("a string is not valid UTF-8");
      }
      result += plain;
      if (at_ == text_.size()) {
        fail("unterminated string");
      }
      if (accept('\\')) {
        parse_escape(result);
      }
    }
    return result;
  }

  void parse_escape(std::string& result) {
    constexpr std::string_view escapes = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (accept('u')) {
      append_utf8(result, parse_escaped_code_point());
      return;
    }
    size_t which =
        at_ < text_.size() ? escapes.find(text_[at_]) : std::string_view::npos;
    if (which == std::string_view::npos) {
      fail("unknown escape in a string");
    }
    ++at_;
    result.push_back(meanings[which]);
  }

  uint32_t parse_escaped_code_point() {
    uint32_t unit = parse_hex4();
    bool is_high = unit >= 0xd800 && unit < 0xdc00;
    bool is_low = unit >= 0xdc00 && unit < 0xe000;
    if (!is_high && !is_low) {
      return unit;
    }
    if (is_high && accept_word("\\u")) {
      uint32_t low = parse_hex4();
      if (low >= 0xdc00 && low < 0xe000) {
        return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
      }
    }
    fail("unpaired surrogate in a string");
  }

  uint32_t parse_hex4() {
    std::string_view digits = text_.substr(at_, 4);
    uint32_t unit = 0;
    const char* end = digits.data() + digits.size();
    auto [stop, status] = std::from_chars(digits.data(), end, unit, 16);
    if (digits.size() != 4 || status != std::errc() || stop != end) {
      fail("expected four hexadecimal digits");
    }
    at_ += 4;
    return unit;
  }

  bool skip_digits() {
    size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      ++at_;
    }
    return at_ != start;
  }

  void parse_number(Json& json) {
    size_t start = at_;
    accept('-');
    bool leads_with_zero = peek('0');
    size_t first_digit = at_;
    if (!skip_digits()) {
      fail("expected a value");
    }
    if (leads_with_zero && at_ - first_digit > 1) {
      fail("a number starts with 0");
    }
    bool whole = true;
    if (accept('.')) {
      whole = false;
      if (!skip_digits()) {
        fail("expected digits after the decimal point");
      }
    }
    if (accept('e') || accept('E')) {
      whole = false;
      if (!accept('+')) {
        accept('-');
      }
      if (!skip_digits()) {
        fail("expected digits in the exponent");
      }
    }
    std::string_view digits = text_.substr(start, at_ - start);
    if (whole) {
      int64_t integer = 0;
      auto result = std::from_chars(
          digits.data(), digits.data() + digits.size(), integer);
      if (result.ec == std::errc()) {
        json.value_ = integer;
        return;
      }
    }
    json.value_ = parse_real(digits);
  }

  // Through a stream because libc++ has no std::from_chars for doubles and
  // strtod follows the locale of the process.
  double parse_real(std::string_view digits) const {
    std::istringstream stream{std::string(digits)};
    stream.imbue(std::locale::classic());
    double number = 0;
    if (!(stream >> number)) {
      fail("a number is out of range");
    }
    return number;
  }

  std::string_view text_;
  std::string_view source_;
  size_t at_ = 0;
  size_t values_ = 0;
};

Json Json::parse(std::string_view text, std::string_view source) {
  return JsonParser(text, source).parse_document();
}

const Json* Json::find(std::string_view key) const {
  auto* members = std::get_if<Object>(&value_);
  if (!members) {
    return nullptr;
  }
  auto found = std::ranges::lower_bound(*members, key, {}, &Member::key);
  return found != members->end() && found->key == key ? &found->value : nullptr;
}

void Json::fail(std::string_view expected, std::string_view what) const {
  constexpr std::string_view kinds[] = {
      "null",
      "a boolean",
      "an integer",
      "a number",
      "a string",
      "an array",
      "an object"};
  throw Error(
      std::string(what) + ": expected " + std::string(expected) + ", found " +
      std::string(kinds[value_.index()]));
}

double Json::number(std::string_view what) const {
  if (auto* integer = std::get_if<int64_t>(&value_)) {
    return static_cast<double>(*integer);
  }
  return get<double>("a number", what);
}

} // namespace nightingale
