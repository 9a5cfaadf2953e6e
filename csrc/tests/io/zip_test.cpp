#include "nightingale/io/zip.h"

#include <doctest/doctest.h>

#include "file_writers.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// Opens the archive and reads every entry.
std::map<std::string, std::string> read_all(const std::string& bytes) {
  TempDir dir;
  InputFile file(dir.write("archive.zip", bytes));
  ZipFile zip(file);
  std::map<std::string, std::string> contents;
  for (auto& [name, entry] : zip.entries()) {
    contents[name] = zip.read(entry, 1'000'000);
  }
  return contents;
}

std::string read_error(const std::string& bytes) {
  return error_of([&] { read_all(bytes); });
}

std::string archive(bool descriptors) {
  return ZipWriter(descriptors)
      .add("a/one", "first")
      .add("a/two", std::string(300, 'x'))
      .add("a/none", "")
      .finish();
}

std::vector<size_t> find_all(std::string_view bytes, std::string_view what) {
  std::vector<size_t> places;
  for (size_t at = bytes.find(what); at != std::string_view::npos;
       at = bytes.find(what, at + 1)) {
    places.push_back(at);
  }
  return places;
}

} // namespace

TEST_CASE("zip entries read back with and without descriptors") {
  for (bool descriptors : {true, false}) {
    auto contents = read_all(archive(descriptors));
    CHECK(contents.size() == 3);
    CHECK(contents["a/one"] == "first");
    CHECK(contents["a/two"] == std::string(300, 'x'));
    CHECK(contents["a/none"].empty());
  }
}

TEST_CASE("damage to a sum or a length in a zip is always an error") {
  struct Field {
    std::string record;
    size_t offset;
    size_t size;
  };
  // Signature, sums, sizes, lengths and places of each kind of record.
  const std::vector<Field> fields = {
      {"PK\3\4", 0, 4},
      {"PK\3\4", 14, 16},
      {"PK\1\2", 0, 4},
      {"PK\1\2", 16, 18},
      {"PK\1\2", 42, 4},
      {"PK\7\x8", 0, 16},
      {"PK\6\6", 0, 12},
      {"PK\6\6", 24, 32},
      {"PK\6\7", 0, 20},
      {"PK\5\6", 0, 22}};
  for (bool descriptors : {true, false}) {
    std::string good = archive(descriptors);
    int accepted = 0;
    int tried = 0;
    for (auto& field : fields) {
      for (size_t record : find_all(good, field.record)) {
        for (size_t bit = 0; bit < 8 * field.size; ++bit) {
          std::string bad = good;
          bad[record + field.offset + bit / 8] ^= char(1 << bit % 8);
          accepted += read_error(bad).empty();
          ++tried;
        }
      }
    }
    CHECK(accepted == 0);
    CHECK(tried > 1700);
  }
}

TEST_CASE("damage to a zip entry's bytes is found when it is read") {
  std::string bytes = archive(true);
  bytes[bytes.find("first")] = 'F';
  CHECK(contains(read_error(bytes), "the checksum of zip entry 'a/one' is"));
}

TEST_CASE("no flipped bit in a zip changes what is read without an error") {
  std::string good = archive(true);
  auto expected = read_all(good);
  int changed = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= char(1 << i % 8);
    error_of([&] { changed += read_all(bad) != expected; });
  }
  CHECK(changed == 0);
}

TEST_CASE("a zip cut off anywhere is an error") {
  std::string good = archive(true);
  int accepted = 0;
  for (size_t size = 0; size < good.size(); ++size) {
    accepted += read_error(good.substr(0, size)).empty();
  }
  CHECK(accepted == 0);
}

TEST_CASE("zip entries may be neither compressed nor repeated nor hidden") {
  CHECK(contains(
      read_error(ZipWriter().add("a", "x", 8).finish()),
      "zip entry 'a' is compressed (method 8), expected stored bytes"));
  CHECK(contains(
      read_error(ZipWriter().add("a", "x").add("a", "y").finish()),
      "zip entry 'a' appears twice"));
  CHECK(contains(read_error("junk before" + archive(true)), "zip directory"));
  CHECK(contains(
      read_error(ZipWriter().add("\xff", "x").finish()), "not valid UTF-8"));
}

TEST_CASE("an entry larger than asked for is not read") {
  TempDir dir;
  InputFile file(dir.write("archive.zip", archive(true)));
  ZipFile zip(file);
  CHECK(contains(
      error_of([&] { zip.read(*zip.find("a/two"), 299); }),
      "zip entry 'a/two' has 300 bytes, expected at most 299"));
}
