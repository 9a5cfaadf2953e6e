#include "nightingale/io/unpickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "nightingale/error.h"
#include "nightingale/io/torch_globals.h"
#include "nightingale/io/utf8.h"

namespace nightingale {

namespace {

// A checkpoint of three thousand tensors runs about 10^5 opcodes. Each of them
// makes at most one small object, so this bounds memory too.
constexpr size_t max_opcodes = 2'000'000;

enum Opcode : uint8_t {
  op_proto = 0x80,
  op_frame = 0x95,
  op_stop = '.',
  op_mark = '(',
  op_none = 'N',
  op_true = 0x88,
  op_false = 0x89,
  op_int4 = 'J',
  op_uint1 = 'K',
  op_uint2 = 'M',
  op_long1 = 0x8a,
  op_float8 = 'G',
  op_unicode1 = 0x8c,
  op_unicode4 = 'X',
  op_unicode8 = 0x8d,
  op_empty_tuple = ')',
  op_tuple1 = 0x85,
  op_tuple2 = 0x86,
  op_tuple3 = 0x87,
  op_tuple = 't',
  op_empty_list = ']',
  op_append = 'a',
  op_appends = 'e',
  op_empty_dict = '}',
  op_setitem = 's',
  op_setitems = 'u',
  op_put1 = 'q',
  op_put4 = 'r',
  op_memoize = 0x94,
  op_get1 = 'h',
  op_get4 = 'j',
  op_global = 'c',
  op_stack_global = 0x93,
  op_inst = 'i',
  op_ext1 = 0x82,
  op_ext2 = 0x83,
  op_ext4 = 0x84,
  op_persistent_id = 'Q',
  op_reduce = 'R',
  op_build = 'b',
};

[[noreturn]] void refuse(std::string_view name) {
  constexpr size_t max_shown = 200;
  std::string shown(name.substr(0, max_shown));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  throw Error(
      "refuses to load '" + shown +
      "': only tensors and plain containers are allowed");
}

} // namespace

class Unpickler {
 public:
  Unpickler(Pickle& pickle, std::string_view bytes)
      : pickle_(pickle), bytes_(bytes) {}

  size_t opcode_at() const {
    return opcode_at_;
  }

  PickleValue run() {
    if (take<uint8_t>() != op_proto) {
      throw Error("expected a pickle of protocol 2 to 5");
    }
    uint8_t protocol = take<uint8_t>();
    if (protocol < 2 || protocol > 5) {
      throw Error(
          "the pickle has protocol " + std::to_string(protocol) +
          ", expected 2 to 5");
    }
    for (size_t count = 0;; ++count) {
      if (count == max_opcodes) {
        throw Error("more than " + std::to_string(max_opcodes) + " opcodes");
      }
      opcode_at_ = at_;
      auto opcode = take<uint8_t>();
      if (opcode == op_stop) {
        break;
      }
      execute(opcode);
    }
    PickleValue value = pop();
    if (!stack_.empty() || !marks_.empty() || at_ != bytes_.size()) {
      throw Error("the pickle ends with values or bytes left over");
    }
    return value;
  }

 private:
  std::string_view take_bytes(uint64_t size) {
    if (size > bytes_.size() - at_) {
      throw Error(
          "needs " + std::to_string(size) + " bytes, " +
          std::to_string(bytes_.size() - at_) + " are left");
    }
    std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }

  void push(PickleValue value) {
    stack_.push_back(value);
  }

  PickleValue pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      throw Error("the stack is empty");
    }
    PickleValue value = stack_.back();
    stack_.pop_back();
    return value;
  }

  std::vector<PickleValue> pop_to_mark() {
    if (marks_.empty()) {
      throw Error("there is no mark on the stack");
    }
    auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  void execute(uint8_t opcode) {
    switch (opcode) {
      case op_frame:
        if (take<uint64_t>() > bytes_.size() - at_) {
          throw Error("a frame passes the end of the pickle");
        }
        break;
      case op_mark:
        marks_.push_back(stack_.size());
        break;
      case op_none:
        return push(PickleNone{});
      case op_true:
        return push(true);
      case op_false:
        return push(false);
      case op_int4:
        return push(int64_t(take<int32_t>()));
      case op_uint1:
        return push(int64_t(take<uint8_t>()));
      case op_uint2:
        return push(int64_t(take<uint16_t>()));
      case op_long1:
        return push_long(take<uint8_t>());
      case op_float8:
        return push_float();
      case op_unicode1:
        return push_string(take<uint8_t>());
      case op_unicode4:
        return push_string(take<uint32_t>());
      case op_unicode8:
        return push_string(take<uint64_t>());
      case op_empty_tuple:
        return push_tuple({});
      case op_tuple1:
        return push_small_tuple(1);
      case op_tuple2:
        return push_small_tuple(2);
      case op_tuple3:
        return push_small_tuple(3);
      case op_tuple:
        return push_tuple(pop_to_mark());
      case op_empty_list:
        return push(&pickle_.lists_.emplace_back());
      case op_append:
        return append({pop()});
      case op_appends:
        return append(pop_to_mark());
      case op_empty_dict:
        return push(&pickle_.dicts_.emplace_back());
      case op_setitem: {
        PickleValue value = pop();
        return set_items({pop(), value});
      }
      case op_setitems:
        return set_items(pop_to_mark());
      case op_put1:
        return memoize(take<uint8_t>());
      case op_put4:
        return memoize(take<uint32_t>());
      case op_memoize:
        return memoize(memo_.size());
      case op_get1:
        return recall(take<uint8_t>());
      case op_get4:
        return recall(take<uint32_t>());
      case op_global: {
        std::string module = take_line();
        return push_global(module + "." + take_line());
      }
      case op_stack_global: {
        auto name = pickled<const std::string*>(pop(), "a name");
        auto module = pickled<const std::string*>(pop(), "a module");
        return push_global(*module + "." + *name);
      }
      case op_inst: {
        std::string module = take_line();
        refuse(module + "." + take_line());
      }
      case op_ext1:
        refuse("extension " + std::to_string(take<uint8_t>()));
      case op_ext2:
        refuse("extension " + std::to_string(take<uint16_t>()));
      case op_ext4:
        refuse("extension " + std::to_string(take<uint32_t>()));
      case op_persistent_id: {
        auto* id = pickled<PickleTuple*>(pop(), "a storage's tuple");
        return push(&pickle_.storages_.emplace_back(make_storage(*id)));
      }
      case op_reduce:
        return reduce();
      case op_build:
        return build();
      default:
        // NEWOBJ, OBJ and the like make objects; the rest is what torch.save
        // never writes.
        refuse("pickle opcode " + std::to_string(opcode));
    }
  }

  void push_long(size_t size) {
    if (size > sizeof(int64_t)) {
      throw Error(
          "an integer has " + std::to_string(size) +
          " bytes, expected at most 8");
    }
    std::string_view bytes = take_bytes(size);
    bool negative = size > 0 && (bytes.back() & 0x80);
    int64_t value = negative ? -1 : 0;
    std::memcpy(&value, bytes.data(), size);
    push(value);
  }

  void push_float() {
    char bytes[8];
    std::ranges::reverse_copy(take_bytes(8), bytes); // it is big-endian
    push(std::bit_cast<double>(bytes));
  }

  void push_string(uint64_t size) {
    std::string_view text = take_bytes(size);
    if (!is_utf8(text)) {
      throw Error("a string is not valid UTF-8");
    }
    push(&pickle_.strings_.emplace_back(text));
  }

  void push_tuple(std::vector<PickleValue> items) {
    push(&pickle_.tuples_.emplace_back(PickleTuple{std::move(items)}));
  }

  void push_small_tuple(size_t size) {
    std::vector<PickleValue> items(size);
    for (size_t i = size; i-- > 0;) {
      items[i] = pop();
    }
    push_tuple(std::move(items));
  }

  void append(std::vector<PickleValue> items) {
    auto* list = pickled<PickleList*>(pop(), "a list to append to");
    list->items.insert(list->items.end(), items.begin(), items.end());
    push(list);
  }

  void set_items(std::vector<PickleValue> items) {
    auto* dict = pickled<PickleDict*>(pop(), "a dictionary to set items of");
    if (items.size() % 2 != 0) {
      throw Error("a dictionary's keys and values do not pair up");
    }
    for (size_t i = 0; i < items.size(); i += 2) {
      dict->items.emplace_back(items[i], items[i + 1]);
    }
    push(dict);
  }

  void memoize(size_t index) {
    PickleValue value = pop();
    memo_[index] = value;
    push(value);
  }

  void recall(size_t index) {
    auto found = memo_.find(index);
    if (found == memo_.end()) {
      throw Error("memo " + std::to_string(index) + " was never set");
    }
    push(found->second);
  }

  std::string take_line() {
    size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) {
      throw Error("a name has no end");
    }
    std::string line(take_bytes(end - at_));
    ++at_;
    return line;
  }

  void push_global(const std::string& name) {
    auto global = find_global(name);
    if (!global) {
      refuse(name);
    }
    push(*global);
  }

  void reduce() {
    auto& arguments = pickled<PickleTuple*>(pop(), "arguments")->items;
    auto callable = pickled<PickleGlobal>(pop(), "a function");
    switch (callable) {
      case PickleGlobal::ordered_dict: {
        check_count(arguments, 0, 0);
        auto& dict = pickle_.dicts_.emplace_back();
        dict.ordered = true;
        return push(&dict);
      }
      case PickleGlobal::size:
        check_count(arguments, 1, 1);
        return push(pickled<PickleTuple*>(arguments[0], "a shape"));
      case PickleGlobal::rebuild_parameter:
        check_count(arguments, 3, 3);
        return push(pickled<const PickleTensor*>(arguments[0], "a tensor"));
      case PickleGlobal::rebuild_tensor_v2:
        check_count(arguments, 6, 7);
        return push(&pickle_.tensors_.emplace_back(make_tensor_v2(arguments)));
      case PickleGlobal::rebuild_tensor_v3:
        check_count(arguments, 7, 8);
        return push(&pickle_.tensors_.emplace_back(make_tensor_v3(arguments)));
      case PickleGlobal::untyped_storage:
        throw Error("a storage type is not a function");
    }
  }

  static void check_count(
      const std::vector<PickleValue>& arguments,
      size_t least,
      size_t most) {
    if (arguments.size() < least || arguments.size() > most) {
      throw Error(
          "a call has " + std::to_string(arguments.size()) +
          " arguments, expected " + std::to_string(most));
    }
  }

  // torch sets `_metadata`, the versions of its modules, on a state dict.
  void build() {
    pickled<PickleDict*>(pop(), "the attributes of an OrderedDict");
    PickleValue object = pop();
    auto* dict = std::get_if<PickleDict*>(&object);
    if (!dict || !(*dict)->ordered) {
      refuse("attributes of an object other than OrderedDict");
    }
    push(object);
  }

  Pickle& pickle_;
  std::string_view bytes_;
  size_t at_ = 0;
  size_t opcode_at_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<size_t, PickleValue> memo_;
};

Pickle::Pickle(std::string_view bytes, std::string_view source) {
  Unpickler unpickler(*this, bytes);
  try {
    value_ = unpickler.run();
  } catch (const Error& error) {
    throw Error(
        std::string(source) + ": pickle byte " +
        std::to_string(unpickler.opcode_at()) + ": " + error.what());
  }
}

} // namespace nightingale
