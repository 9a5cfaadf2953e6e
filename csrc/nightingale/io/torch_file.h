#pragma once

#include <memory>

#include "nightingale/io/input_file.h"
#include "nightingale/io/tensor_file.h"

namespace nightingale {

// Opens a zip archive of torch.save. Nested dictionaries become dotted names
// ("t3.speaker_emb"), plain numbers become scalars, None and strings are left
// out; a {"model": ...} or {"state_dict": ...} around the whole is taken off.
std::shared_ptr<const TensorFile> open_torch_file(
    std::unique_ptr<const InputFile> file);

} // namespace nightingale
