#pragma once

// Writers of small safetensors files, with room for the ways in which a file
// can be wrong.

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "nightingale/error.h"

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

} // namespace nightingale::testing
