#include "nightingale/io/json.h"

#include <doctest/doctest.h>

#include "file_writers.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

std::string parse_error(std::string_view text) {
  return error_of([&] { Json::parse(text, "test"); });
}

} // namespace

TEST_CASE("json reads every kind of value") {
  Json json = Json::parse(
      R"( {"a": [1, -2.5e2, true, false, null], "b": {"c": "x"}} )", "test");
  auto& items = json.find("a")->array("a");
  REQUIRE(items.size() == 5);
  CHECK(items[0].integer("a") == 1);
  CHECK(items[0].number("a") == 1.0);
  CHECK(items[1].number("a") == -250.0);
  CHECK(items[2].boolean("a"));
  CHECK_FALSE(items[3].boolean("a"));
  CHECK(items[4].is_null());
  CHECK(json.find("b")->find("c")->string("c") == "x");
  CHECK(json.find("d") == nullptr);
}

TEST_CASE("json keeps 64-bit integers exact") {
  Json json = Json::parse("[9007199254740993, -9223372036854775808]", "test");
  CHECK(json.array("")[0].integer("") == 9007199254740993);
  CHECK(json.array("")[1].integer("") == INT64_MIN);
}

TEST_CASE("json decodes escapes and surrogate pairs to UTF-8") {
  Json json = Json::parse(R"("\"\\\/\b\f\n\r\té\u20ac\ud83d\ude00")", "t");
  CHECK(json.string("") == "\"\\/\b\f\n\r\té€😀");
}

TEST_CASE("json errors give the byte offset and what was expected") {
  CHECK(
      parse_error("{\"a\": 1") == "test: invalid JSON at byte 7: expected '}'");
  CHECK(contains(parse_error("{\"a\":1,\"a\":2}"), "'a' appears twice"));
  CHECK(contains(parse_error("[1] x"), "byte 4: expected the end"));
  CHECK(contains(parse_error("\"\\ud800\""), "unpaired surrogate"));
  CHECK(contains(parse_error("\"\xc0\xaf\""), "not valid UTF-8"));
  CHECK(contains(parse_error("\"\x01\""), "control character"));
  CHECK(contains(parse_error("1e999"), "out of range"));
}

TEST_CASE("json refuses what the grammar does not have") {
  for (auto text :
       {"",
        "{",
        "[1,]",
        "{,}",
        "{\"a\" 1}",
        "{a:1}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "NaN",
        "tru",
        "'a'",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"a"}) {
    CAPTURE(text);
    CHECK(contains(parse_error(text), "invalid JSON at byte"));
  }
}

TEST_CASE("json bounds nesting") {
  CHECK(parse_error(std::string(64, '[') + std::string(64, ']')) == "");
  CHECK(contains(
      parse_error(std::string(1'000'000, '[')), "deeper than 64 levels"));
}

TEST_CASE("json accessors name the value and both kinds") {
  Json json = Json::parse("{\"steps\": \"ten\"}", "test");
  CHECK(error_of([&] {
          json.find("steps")->integer("nightingale.json: steps");
        }) == "nightingale.json: steps: expected an integer, found a string");
}
