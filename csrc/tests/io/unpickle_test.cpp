#include "nightingale/io/unpickle.h"

#include <doctest/doctest.h>

#include "file_writers.h"
#include "nightingale/io/tensor_file.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

std::string error_in(const std::string& pickle) {
  return error_of([&] { Pickle(pickle, "test"); });
}

std::string error_in(const PickleWriter& writer) {
  return error_in(writer.finish());
}

// For what only shows when the containers are walked.
std::string archive_error(const PickleWriter& writer) {
  TempDir dir;
  std::string path = dir.write("x.pt", torch_archive(writer.finish(), {}));
  return error_of([&] { TensorFile::open(path); });
}

std::string refusal_of(const std::string& name) {
  return "refuses to load '" + name +
      "': only tensors and plain containers are allowed";
}

} // namespace

TEST_CASE("a pickle builds plain values") {
  auto writer = PickleWriter().raw("(");
  writer.raw("N\x88\x89").integer(-5).raw("J\xfe\xff\xff\xff");
  writer.raw("K\xff").raw("M\xff\xff").raw(std::string("\x8a\0", 2));
  writer.raw("\x8a\x01\x80").text("né").raw("](K\1K\2e").raw("K\3\x85t");
  std::string bytes = writer.finish();
  Pickle pickle(bytes, "test");
  auto& items = std::get<PickleTuple*>(pickle.value())->items;
  REQUIRE(items.size() == 12);
  CHECK(std::holds_alternative<PickleNone>(items[0]));
  CHECK(std::get<bool>(items[1]));
  CHECK_FALSE(std::get<bool>(items[2]));
  CHECK(std::get<int64_t>(items[3]) == -5);
  CHECK(std::get<int64_t>(items[4]) == -2);
  CHECK(std::get<int64_t>(items[5]) == 255);
  CHECK(std::get<int64_t>(items[6]) == 65535);
  CHECK(std::get<int64_t>(items[7]) == 0);
  CHECK(std::get<int64_t>(items[8]) == -128);
  CHECK(*std::get<const std::string*>(items[9]) == "né");
  CHECK(std::get<PickleList*>(items[10])->items.size() == 2);
  CHECK(std::get<PickleTuple*>(items[11])->items.size() == 1);
}

TEST_CASE("a memo entry used twice is one object") {
  std::string bytes = PickleWriter().raw("]q\1h\1K\7ah\1\x86").finish();
  CHECK(contains(error_in(bytes), "left over"));

  bytes = PickleWriter().raw("(]q\1h\1K\7at").finish();
  Pickle pickle(bytes, "test");
  auto& items = std::get<PickleTuple*>(pickle.value())->items;
  CHECK(std::get<PickleList*>(items[0]) == std::get<PickleList*>(items[1]));
  CHECK(std::get<PickleList*>(items[0])->items.size() == 1);
}

TEST_CASE("a state dict's _metadata is dropped") {
  auto writer = PickleWriter().global("collections", "OrderedDict").raw(")R");
  writer.raw("}").text("_metadata").raw("}sb");
  std::string bytes = writer.finish();
  Pickle pickle(bytes, "test");
  CHECK(std::get<PickleDict*>(pickle.value())->items.empty());
}

TEST_CASE("a pickle cannot import or call code") {
  auto system = PickleWriter().global("os", "system").text("true").raw("\x85R");
  CHECK(error_in(system) == "test: pickle byte 2: " + refusal_of("os.system"));

  auto eval = PickleWriter().text("builtins").text("eval").raw("\x93");
  eval.text("1").raw("\x85R");
  CHECK(contains(error_in(eval), refusal_of("builtins.eval")));

  auto inst = PickleWriter().raw("(").text("true").raw("ios\nsystem\n");
  CHECK(contains(error_in(inst), refusal_of("os.system")));

  auto object = PickleWriter().raw("(").global("subprocess", "Popen");
  CHECK(contains(
      error_in(object.text("true").raw("o")), refusal_of("subprocess.Popen")));

  // The class of NEWOBJ and OBJ may be one we know: still nothing is made.
  auto dict = PickleWriter().global("collections", "OrderedDict");
  CHECK(contains(
      error_in(PickleWriter(dict).raw(")\x81")),
      refusal_of("pickle opcode 129")));
  CHECK(contains(
      error_in(PickleWriter(dict).raw(")}\x92")),
      refusal_of("pickle opcode 146")));
  CHECK(contains(
      error_in(PickleWriter().raw("(").raw("ccollections\nOrderedDict\no")),
      refusal_of("pickle opcode 111")));
}

TEST_CASE("near misses of the allowed names are refused too") {
  for (auto& [module, name] : std::vector<std::pair<std::string, std::string>>{
           {"torch", "load"},
           {"torch", "_utils._rebuild_tensor"},
           {"torch._utils", "_rebuild_tensor_v2.__globals__"},
           {"collections", "OrderedDict.fromkeys"},
           {"collections", "defaultdict"},
           {"", "collections.OrderedDict"},
           {"torch.storage", "_load_from_bytes"},
           {"torch", "QInt8Storage"}}) {
    CHECK(contains(
        error_in(PickleWriter().global(module, name)),
        refusal_of(module + "." + name)));
  }
  CHECK(contains(
      error_in(PickleWriter()
                   .text("a\x01"
                         "b")
                   .text("é")
                   .raw("\x93")),
      refusal_of("a?b.??")));
}

TEST_CASE("extension codes are refused") {
  CHECK(contains(
      error_in(PickleWriter().raw("\x82\x05")), refusal_of("extension 5")));
  CHECK(contains(
      error_in(PickleWriter().raw(std::string("\x83\x05\0", 3))),
      refusal_of("extension 5")));
  CHECK(contains(
      error_in(PickleWriter().raw(std::string("\x84\x05\0\0\0", 5))),
      refusal_of("extension 5")));
}

TEST_CASE("state is set on nothing but an OrderedDict") {
  std::string refusal =
      refusal_of("attributes of an object other than OrderedDict");
  CHECK(contains(error_in(PickleWriter().raw("]}b")), refusal));
  CHECK(contains(error_in(PickleWriter().raw("}}b")), refusal));
  auto tensor = PickleWriter();
  tensor.tensor("FloatStorage", "0", 1, 0, {1}, {1}).raw("}");
  tensor.text("__setstate__").raw("Nsb");
  CHECK(contains(error_in(tensor), refusal));
  auto state = PickleWriter().global("collections", "OrderedDict").raw(")R");
  CHECK(contains(
      error_in(state.raw("]b")), "expected the attributes of an OrderedDict"));
}

TEST_CASE("calls take exactly what torch passes") {
  auto call = [](const std::string& module, const std::string& name) {
    return PickleWriter().global(module, name);
  };
  CHECK(contains(
      error_in(call("collections", "OrderedDict").raw("]\x85R")),
      "a call has 1 arguments, expected 0"));
  CHECK(contains(
      error_in(call("torch._utils", "_rebuild_tensor_v2").raw(")R")),
      "a call has 0 arguments"));
  CHECK(contains(
      error_in(call("torch", "FloatStorage").raw(")R")),
      "expected a function"));
  CHECK(contains(
      error_in(call("torch.storage", "UntypedStorage").raw(")R")),
      "a storage type is not a function"));
  CHECK(contains(error_in(PickleWriter().raw("K\1)R")), "expected a function"));
}

TEST_CASE("a persistent id names a storage by number and nothing else") {
  auto storage = [](const std::string& key, int64_t size) {
    return error_in(PickleWriter().storage("FloatStorage", key, size));
  };
  CHECK(storage("12", 3) == "");
  for (auto key : {"../data.pkl", "/etc/passwd", "0/../1", "", "-1", " 1"}) {
    CHECK(contains(storage(key, 3), "a storage key is not a number"));
  }
  CHECK(contains(storage(std::string(21, '9'), 3), "not a number"));
  CHECK(contains(storage("0", -1), "a storage has -1 elements"));
  CHECK(contains(
      error_in(PickleWriter().text("module").raw("Q")),
      "expected a storage's tuple"));
  CHECK(contains(
      error_in(PickleWriter().raw("(").text("module").raw("NNNNtQ")),
      "not a storage of five fields"));
  CHECK(contains(
      error_in(PickleWriter().raw("Pmodule\n")),
      refusal_of("pickle opcode 80")));
}

TEST_CASE("lengths past the end of the pickle are errors") {
  CHECK(contains(
      error_in(PickleWriter().raw("X\xff\xff\xff\xff")),
      "needs 4294967295 bytes, 1 are left"));
  CHECK(contains(
      error_in(PickleWriter().raw("\x8d").raw(std::string(8, '\xff'))),
      "needs 18446744073709551615 bytes"));
  CHECK(contains(
      error_in(PickleWriter().raw("\x95").raw(std::string(8, '\x7f'))),
      "a frame passes the end"));
  CHECK(contains(
      error_in(PickleWriter().raw("\x8a\xff").raw(std::string(255, '\x7f'))),
      "an integer has 255 bytes, expected at most 8"));
  CHECK(contains(
      error_in(PickleWriter().raw("\x8b\xff\xff\xff\x7f")),
      refusal_of("pickle opcode 139")));
  CHECK(contains(error_in(PickleWriter().raw("cos")), "a name has no end"));
}

TEST_CASE("a pickle that misuses its stack is an error") {
  for (std::string_view body :
       {"",       "t",      "u",       "e",    "a",       "s",
        "R",      "b",      "Q",       "q\1",  "(",       "K\1K\2",
        "\x85",   "\x93",   "(K\1q\1", "(q\1", "K\1K\2s", "K\1K\2a",
        "](K\1u", "}(K\1u", "h\7",     "X\1"}) {
    CAPTURE(body);
    CHECK(contains(error_in(PickleWriter().raw(body)), "pickle byte"));
  }
  CHECK(contains(error_in("N."), "protocol 2 to 5"));
  CHECK(contains(error_in("\x80\x09N."), "protocol 9, expected 2 to 5"));
  CHECK(contains(error_in("\x80\x02N"), "needs 1 bytes, 0 are left"));
  CHECK(contains(error_in("\x80\x02N.N"), "left over"));
}

TEST_CASE("a memo bomb ends in an error, not in 2^64 visits") {
  // Each tuple holds the one before it twice.
  auto nested = PickleWriter().raw("}").text("a").raw("]");
  for (int level = 1; level < 60; ++level) {
    std::string memo(1, char(level));
    nested.raw("q" + memo + "h" + memo + "\x86");
  }
  CHECK(contains(archive_error(nested.raw("s")), "repeat without end"));
}

TEST_CASE("containers nested too deep or in themselves are errors") {
  auto deep = PickleWriter().raw("}").text("a").raw("N");
  for (int level = 0; level < 100'000; ++level) {
    deep.raw("\x85");
  }
  CHECK(contains(archive_error(deep.raw("s")), "nest deeper than 64 levels"));

  auto self = PickleWriter().raw("}q\1").text("a").raw("h\1s");
  CHECK(contains(archive_error(self), "contain themselves"));

  auto list = PickleWriter().raw("}").text("a").raw("]q\1h\1as");
  CHECK(contains(archive_error(list), "contain themselves"));
}

TEST_CASE("opcodes and dimensions are bounded") {
  CHECK(contains(
      error_in(PickleWriter().raw(std::string(3'000'000, '('))),
      "more than 2000000 opcodes"));
  auto tensor = PickleWriter();
  tensor.tensor("FloatStorage", "0", 1, 0, std::vector<int64_t>(9, 1), {1});
  CHECK(contains(
      error_in(tensor), "a tensor has 9 dimensions, expected at most 8"));
}

TEST_CASE("a long key repeated by nesting is an error") {
  auto writer = PickleWriter().raw("}").text(std::string(2000, 'k'));
  CHECK(contains(
      archive_error(writer.raw("K\1s")),
      "name is 2000 bytes long, expected at most 1024"));
}

TEST_CASE("keys must be strings") {
  CHECK(contains(
      archive_error(PickleWriter().raw("}K\1K\2s")), "is not a string"));
  CHECK(contains(
      archive_error(PickleWriter().raw("]")),
      "expected a dictionary of tensors"));
}
