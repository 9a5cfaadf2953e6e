#include "nightingale/io/zip_directory.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "nightingale/io/utf8.h"

namespace nightingale {

namespace {

constexpr uint32_t end_signature = 0x06054b50;
constexpr uint32_t end64_signature = 0x06064b50;
constexpr uint32_t locator64_signature = 0x07064b50;
constexpr uint32_t central_signature = 0x02014b50;
constexpr uint32_t local_signature = 0x04034b50;
constexpr uint32_t descriptor_signature = 0x08074b50;

constexpr size_t end_bytes = 22;
constexpr size_t end64_bytes = 56;
constexpr size_t locator64_bytes = 20;
constexpr size_t central_bytes = 46;
constexpr size_t local_bytes = 30;

// A 32-bit field with this value has its real one in the zip64 extra field.
constexpr uint32_t in_zip64 = 0xffffffff;
constexpr uint16_t zip64_extra = 0x0001;

constexpr uint16_t flag_descriptor = 1 << 3;
constexpr uint16_t flag_utf8 = 1 << 11;

constexpr uint64_t max_directory_bytes = 64'000'000;
constexpr uint64_t max_entries = 200'000;

template <typename T>
T load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string quoted(const std::string& name) {
  return "zip entry '" + name + "'";
}

class DirectoryReader {
 public:
  explicit DirectoryReader(const InputFile& file) : file_(file) {}

  std::map<std::string, ZipEntry> read() {
    read_end();
    read_central_directory();
    check_tiling();
    std::map<std::string, ZipEntry> by_name;
    for (ZipEntry& entry : entries_) {
      std::string name = entry.name;
      if (!by_name.emplace(name, std::move(entry)).second) {
        file_.fail(quoted(name) + " appears twice");
      }
    }
    return by_name;
  }

 private:
  std::string read_bytes(uint64_t offset, size_t size, std::string_view what) {
    std::string bytes(size, '\0');
    file_.read(offset, bytes.data(), size, what);
    return bytes;
  }

  [[noreturn]] void fail_end() const {
    file_.fail(
        "the zip directory at the end of the file is missing or damaged; the "
        "file may be truncated");
  }

  // Finds the record that ends the file and, through it, the directory.
  void read_end() {
    size_t tail_size = std::min<uint64_t>(file_.size(), end_bytes + 0xffff);
    uint64_t tail_offset = file_.size() - tail_size;
    std::string tail = read_bytes(tail_offset, tail_size, "the zip directory");
    std::optional<size_t> found;
    for (size_t at = 0; at + end_bytes <= tail.size(); ++at) {
      size_t comment = tail.size() - at - end_bytes;
      if (load<uint32_t>(tail, at) == end_signature &&
          load<uint16_t>(tail, at + 20) == comment) {
        found = at;
      }
    }
    if (!found) {
      fail_end();
    }
    std::string_view end = std::string_view(tail).substr(*found);
    uint64_t end_offset = tail_offset + *found;
    uint64_t directory_end = end_offset;
    uint16_t disk = load<uint16_t>(end, 4);
    uint16_t directory_disk = load<uint16_t>(end, 6);
    uint16_t disk_entries = load<uint16_t>(end, 8);
    entry_count_ = load<uint16_t>(end, 10);
    size_ = load<uint32_t>(end, 12);
    offset_ = load<uint32_t>(end, 16);
    if (disk != 0 || directory_disk != 0 || disk_entries != entry_count_) {
      fail_end();
    }
    if (end_offset >= locator64_bytes + end64_bytes) {
      std::string locator = read_bytes(
          end_offset - locator64_bytes, locator64_bytes, "the zip directory");
      if (load<uint32_t>(locator, 0) == locator64_signature) {
        directory_end = read_end64(locator, end_offset - locator64_bytes);
      }
    }
    if (offset_ > directory_end || size_ != directory_end - offset_ ||
        size_ > max_directory_bytes || entry_count_ > max_entries) {
      fail_end();
    }
  }

  // Replaces what the 32-bit record says; returns where the directory ends.
  uint64_t read_end64(std::string_view locator, uint64_t locator_offset) {
    uint64_t offset = load<uint64_t>(locator, 8);
    if (load<uint32_t>(locator, 4) != 0 || load<uint32_t>(locator, 16) != 1 ||
        offset > locator_offset - end64_bytes) {
      fail_end();
    }
    std::string end = read_bytes(offset, end64_bytes, "the zip directory");
    uint64_t record_size = load<uint64_t>(end, 4);
    uint64_t entry_count = load<uint64_t>(end, 32);
    uint64_t size = load<uint64_t>(end, 40);
    uint64_t directory = load<uint64_t>(end, 48);
    auto agrees = [](uint64_t narrow, uint64_t wide, uint64_t sentinel) {
      return narrow == wide || narrow == sentinel;
    };
    if (load<uint32_t>(end, 0) != end64_signature ||
        record_size != locator_offset - offset - 12 ||
        load<uint32_t>(end, 16) != 0 || load<uint32_t>(end, 20) != 0 ||
        load<uint64_t>(end, 24) != entry_count ||
        !agrees(entry_count_, entry_count, 0xffff) ||
        !agrees(size_, size, in_zip64) ||
        !agrees(offset_, directory, in_zip64)) {
      fail_end();
    }
    entry_count_ = entry_count;
    size_ = size;
    offset_ = directory;
    return offset;
  }

  void read_central_directory() {
    std::string bytes = read_bytes(offset_, size_, "the zip directory");
    std::string_view rest = bytes;
    entries_.reserve(entry_count_);
    for (uint64_t i = 0; i < entry_count_; ++i) {
      entries_.push_back(read_central_record(rest));
    }
    if (!rest.empty()) {
      file_.fail(
          "the zip directory holds more than the " +
          std::to_string(entry_count_) + " entries it announces");
    }
  }

  // Takes one record off the front of `rest`.
  ZipEntry read_central_record(std::string_view& rest) {
    if (rest.size() < central_bytes ||
        load<uint32_t>(rest, 0) != central_signature) {
      file_.fail(
          "the zip directory is damaged: entry " +
          std::to_string(entries_.size()) + " is not where it should be");
    }
    std::string_view record = rest.substr(0, central_bytes);
    size_t name_size = load<uint16_t>(record, 28);
    size_t extra_size = load<uint16_t>(record, 30);
    size_t comment_size = load<uint16_t>(record, 32);
    rest.remove_prefix(central_bytes);
    if (rest.size() < name_size + extra_size + comment_size) {
      file_.fail("the zip directory is damaged: an entry passes its end");
    }

    ZipEntry entry;
    entry.name = rest.substr(0, name_size);
    if (!is_utf8(entry.name)) {
      file_.fail("the name of a zip entry is not valid UTF-8");
    }
    std::string_view extra = rest.substr(name_size, extra_size);
    rest.remove_prefix(name_size + extra_size + comment_size);

    entry.flags = load<uint16_t>(record, 8);
    entry.crc = load<uint32_t>(record, 16);
    uint64_t stored_size = load<uint32_t>(record, 20);
    entry.size = load<uint32_t>(record, 24);
    entry.header = load<uint32_t>(record, 42);
    take_zip64(entry.name, extra, {&entry.size, &stored_size, &entry.header});

    uint16_t method = load<uint16_t>(record, 10);
    if (method != 0) {
      file_.fail(
          quoted(entry.name) + " is compressed (method " +
          std::to_string(method) +
          "), expected stored bytes as torch.save writes them");
    }
    if (entry.flags & ~(flag_descriptor | flag_utf8)) {
      file_.fail(
          quoted(entry.name) + " has flags " + std::to_string(entry.flags) +
          " (encrypted, or not written by torch.save)");
    }
    if (stored_size != entry.size || load<uint16_t>(record, 34) != 0) {
      fail_disagreement(entry);
    }
    return entry;
  }

  [[noreturn]] void fail_disagreement(const ZipEntry& entry) const {
    file_.fail(
        quoted(entry.name) +
        ": its sizes, place or checksum disagree between the zip directory and "
        "the entry itself; the file is damaged");
  }

  // Replaces those of `fields` that hold the sentinel by their 64-bit values,
  // which the extra field lists in the same order.
  void take_zip64(
      const std::string& name,
      std::string_view extra,
      std::initializer_list<uint64_t*> fields) const {
    std::string_view wide;
    while (!extra.empty()) {
      size_t size = extra.size() < 4 ? extra.size() : load<uint16_t>(extra, 2);
      if (extra.size() < 4 + size) {
        file_.fail(quoted(name) + " has a damaged extra field");
      }
      if (load<uint16_t>(extra, 0) == zip64_extra) {
        wide = extra.substr(4, size);
      }
      extra.remove_prefix(4 + size);
    }
    for (uint64_t* field : fields) {
      if (*field != in_zip64) {
        continue;
      }
      if (wide.size() < 8) {
        file_.fail(quoted(name) + " lacks the zip64 field it refers to");
      }
      *field = load<uint64_t>(wide, 0);
      wide.remove_prefix(8);
    }
  }

  // Entries must follow each other without gap from the start of the file to
  // the directory: then no length can be wrong without another one noticing.
  void check_tiling() {
    std::ranges::sort(entries_, {}, &ZipEntry::header);
    uint64_t expected = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      ZipEntry& entry = entries_[i];
      bool last = i + 1 == entries_.size();
      uint64_t next = last ? offset_ : entries_[i + 1].header;
      if (entry.header != expected || next > offset_) {
        fail_disagreement(entry);
      }
      read_local_header(entry, next);
      if (entry.size > next - entry.data) {
        fail_disagreement(entry);
      }
      check_descriptor(entry, next - entry.data - entry.size);
      expected = next;
    }
  }

  // Compares the local header with the directory and finds the data.
  void read_local_header(ZipEntry& entry, uint64_t next) {
    if (next - entry.header < local_bytes) {
      fail_disagreement(entry);
    }
    std::string header = read_bytes(entry.header, local_bytes, "a zip entry");
    size_t name_size = load<uint16_t>(header, 26);
    size_t extra_size = load<uint16_t>(header, 28);
    if (load<uint32_t>(header, 0) != local_signature ||
        name_size != entry.name.size() ||
        load<uint16_t>(header, 6) != entry.flags ||
        load<uint16_t>(header, 8) != 0 ||
        next - entry.header < local_bytes + name_size + extra_size) {
      fail_disagreement(entry);
    }
    std::string rest = read_bytes(
        entry.header + local_bytes, name_size + extra_size, "a zip entry");
    if (rest.compare(0, name_size, entry.name) != 0) {
      fail_disagreement(entry);
    }
    entry.data = entry.header + local_bytes + name_size + extra_size;

    uint32_t crc = load<uint32_t>(header, 14);
    uint64_t stored_size = load<uint32_t>(header, 18);
    uint64_t size = load<uint32_t>(header, 22);
    take_zip64(
        entry.name,
        std::string_view(rest).substr(name_size),
        {&size, &stored_size});
    bool matches =
        crc == entry.crc && size == entry.size && stored_size == entry.size;
    // A writer that streams does not know them yet and leaves zeros here.
    bool deferred = (entry.flags & flag_descriptor) && crc == 0 && size == 0 &&
        stored_size == 0;
    if (!matches && !deferred) {
      fail_disagreement(entry);
    }
  }

  // What stands between an entry's last byte and the next header: nothing, or
  // a descriptor with an optional signature and 32- or 64-bit sizes.
  void check_descriptor(const ZipEntry& entry, uint64_t bytes) {
    if (!(entry.flags & flag_descriptor)) {
      if (bytes != 0) {
        fail_disagreement(entry);
      }
      return;
    }
    if (bytes != 12 && bytes != 16 && bytes != 20 && bytes != 24) {
      fail_disagreement(entry);
    }
    std::string descriptor =
        read_bytes(entry.data + entry.size, bytes, "a zip entry");
    bool is_signed = bytes == 16 || bytes == 24;
    std::string_view fields = descriptor;
    if (is_signed) {
      if (load<uint32_t>(fields, 0) != descriptor_signature) {
        fail_disagreement(entry);
      }
      fields.remove_prefix(4);
    }
    bool wide = fields.size() == 20;
    auto size_at = [&](size_t i) -> uint64_t {
      return wide ? load<uint64_t>(fields, 4 + 8 * i)
                  : load<uint32_t>(fields, 4 + 4 * i);
    };
    if (load<uint32_t>(fields, 0) != entry.crc || size_at(0) != entry.size ||
        size_at(1) != entry.size) {
      fail_disagreement(entry);
    }
  }

  const InputFile& file_;
  uint64_t offset_ = 0; // of the central directory
  uint64_t size_ = 0;
  uint64_t entry_count_ = 0;
  std::vector<ZipEntry> entries_; // by position once checked
};

} // namespace

std::map<std::string, ZipEntry> read_zip_directory(const InputFile& file) {
  return DirectoryReader(file).read();
}

} // namespace nightingale
