#pragma once

// Writers of small checkpoints, byte for byte as safetensors and torch.save
// lay them out, with room for the ways in which a file can be wrong.

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nightingale/error.h"
#include "nightingale/io/crc32.h"

namespace nightingale::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern =
        std::filesystem::temp_directory_path() / "nightingale-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }

  ~TempDir() {
    std::filesystem::remove_all(path_);
  }

  std::string write(const std::string& name, std::string_view bytes) const {
    std::string path = path_ / name;
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  std::string path() const {
    return path_.string();
  }

 private:
  std::filesystem::path path_;
};

// The message of the Error `body` throws, "" where it throws none. Any other
// exception passes through and fails the test.
template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::string safetensors(std::string_view header, std::string_view data) {
  return little_endian(uint64_t(header.size())) + std::string(header) +
      std::string(data);
}

class SafetensorsWriter {
 public:
  SafetensorsWriter& add(
      const std::string& name,
      const std::string& dtype,
      const std::string& shape,
      const std::string& bytes) {
    header_ += header_.empty() ? "{" : ",";
    header_ += "\"" + name + "\":{\"dtype\":\"" + dtype +
        "\",\"shape\":" + shape + ",\"data_offsets\":[" +
        std::to_string(data_.size()) + "," +
        std::to_string(data_.size() + bytes.size()) + "]}";
    data_ += bytes;
    return *this;
  }

  std::string finish() const {
    return safetensors(header_ + "}", data_);
  }

 private:
  std::string header_;
  std::string data_;
};

class ZipWriter {
 public:
  // With descriptors, sums and sizes follow the bytes, as torch writes them;
  // without, they are in the local header, as most others do.
  explicit ZipWriter(bool descriptors = true) : descriptors_(descriptors) {}

  ZipWriter&
  add(const std::string& name, const std::string& bytes, uint16_t method = 0) {
    uint32_t crc = crc32(0, bytes.data(), bytes.size());
    auto size = uint32_t(bytes.size());
    uint16_t flags = descriptors_ ? 0x0808 : 0x0800;
    std::string sums =
        little_endian(crc) + little_endian(size) + little_endian(size);
    std::string common =
        little_endian(flags) + little_endian(method) + std::string(4, '\0');
    auto offset = uint32_t(bytes_.size());
    std::string extra = std::string("FB\x05\0", 4) + "ZZZZZ";

    bytes_ += std::string("PK\3\4\0\0", 6) + common;
    bytes_ += descriptors_ ? std::string(12, '\0') : sums;
    bytes_ += little_endian(uint16_t(name.size()));
    bytes_ += little_endian(uint16_t(extra.size())) + name + extra + bytes;
    if (descriptors_) {
      bytes_ += "PK\7\x8" + sums;
    }
    directory_ += std::string("PK\1\2\0\0\0\0", 8) + common + sums;
    directory_ += little_endian(uint16_t(name.size())) + std::string(12, '\0');
    directory_ += little_endian(offset) + name;
    ++entries_;
    return *this;
  }

  std::string finish() const {
    auto offset = uint64_t(bytes_.size());
    auto size = uint64_t(directory_.size());
    auto count = uint64_t(entries_);
    std::string end64 = "PK\6\6" + little_endian(uint64_t(44));
    end64 += std::string("\x1e\x03-\0", 4) + std::string(8, '\0');
    end64 += little_endian(count) + little_endian(count) + little_endian(size) +
        little_endian(offset);
    std::string locator = "PK\6\7" + std::string(4, '\0') +
        little_endian(offset + size) + little_endian(uint32_t(1));
    std::string end = "PK\5\6" + std::string(4, '\0') +
        little_endian(uint16_t(count)) + little_endian(uint16_t(count)) +
        little_endian(uint32_t(size)) + little_endian(uint32_t(offset)) +
        std::string(2, '\0');
    return bytes_ + directory_ + end64 + locator + end;
  }

 private:
  bool descriptors_;
  std::string bytes_;
  std::string directory_;
  size_t entries_ = 0;
};

// Opcodes of protocol 2, plus `raw` for everything a pickle should not say.
class PickleWriter {
 public:
  PickleWriter& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }

  PickleWriter& global(const std::string& module, const std::string& name) {
    return raw("c" + module + "\n" + name + "\n");
  }

  PickleWriter& text(const std::string& value) {
    return raw("X" + little_endian(uint32_t(value.size())) + value);
  }

  PickleWriter& integer(int64_t value) {
    return raw("\x8a\x08" + little_endian(value));
  }

  PickleWriter& integers(const std::vector<int64_t>& values) {
    raw("(");
    for (int64_t value : values) {
      integer(value);
    }
    return raw("t");
  }

  PickleWriter&
  storage(const std::string& type, const std::string& key, int64_t size) {
    raw("(").text("storage").global("torch", type).text(key).text("cpu");
    return integer(size).raw("tQ");
  }

  PickleWriter& tensor(
      const std::string& type,
      const std::string& key,
      int64_t storage_size,
      int64_t offset,
      const std::vector<int64_t>& shape,
      const std::vector<int64_t>& strides) {
    global("torch._utils", "_rebuild_tensor_v2").raw("(");
    storage(type, key, storage_size).integer(offset);
    integers(shape).integers(strides).raw("\x89");
    return global("collections", "OrderedDict").raw(")RtR");
  }

  std::string finish() const {
    return "\x80\x02" + bytes_ + ".";
  }

 private:
  std::string bytes_;
};

inline std::string torch_archive(
    const std::string& pickle,
    const std::map<std::string, std::string>& storages,
    bool descriptors = true) {
  ZipWriter zip(descriptors);
  zip.add("archive/data.pkl", pickle).add("archive/byteorder", "little");
  for (auto& [key, bytes] : storages) {
    zip.add("archive/data/" + key, bytes);
  }
  return zip.add("archive/version", "3\n").finish();
}

} // namespace nightingale::testing
