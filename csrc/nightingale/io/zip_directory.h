#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "nightingale/io/input_file.h"

namespace nightingale {

struct ZipEntry {
  std::string name;
  uint64_t header = 0; // offset of the local header
  uint64_t data = 0; // offset of the bytes
  uint64_t size = 0;
  uint32_t crc = 0;
  uint16_t flags = 0;
};

// Reads the directory of a zip archive (zip64 too) whose entries are stored,
// not compressed, which is how torch writes them. Central directory, local
// headers and data descriptors must agree and fill the file from its first
// byte to its last, so that damage to any of their fields is an Error.
std::map<std::string, ZipEntry> read_zip_directory(const InputFile& file);

} // namespace nightingale
