#pragma once

#include <string>

namespace nightingale::gpu {

// Writes a file that appears whole or not at all. → whether it is there
bool write_whole(const std::string& path, const std::string& bytes);

// A line that includes `text`, for a compiler that takes #include: from a file
// in `folder` whose name says what is in it, so that it is the same line
// whenever the text is. The text itself where the folder has none and takes
// none.
std::string include_line(
    const std::string& folder,
    const std::string& name,
    const std::string& text);

} // namespace nightingale::gpu
