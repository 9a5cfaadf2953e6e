# Says plainly what a build needs where the machine does not have it.

include(CheckCXXSourceCompiles)

if(APPLE)
  if(NOT CMAKE_OSX_DEPLOYMENT_TARGET)
    set(CMAKE_OSX_DEPLOYMENT_TARGET 14.0)
  endif()
  if(CMAKE_OSX_DEPLOYMENT_TARGET VERSION_LESS 14.0)
    message(FATAL_ERROR "Nightingale needs macOS 14 or later; the deployment "
                        "target is ${CMAKE_OSX_DEPLOYMENT_TARGET}.")
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
    message(FATAL_ERROR "Nightingale needs Apple silicon (arm64): MLX has no "
                        "build for Intel Macs.")
  endif()
elseif(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(CMAKE_REQUIRED_FLAGS "")
  check_cxx_source_compiles(
    "#include <features.h>
     #if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 35)
     #error
     #endif
     int main() {}"
    NIGHTINGALE_GLIBC_IS_NEW)
  if(NOT NIGHTINGALE_GLIBC_IS_NEW)
    message(FATAL_ERROR "Nightingale needs glibc 2.35 or later (Ubuntu 22.04, "
                        "Debian 12, Fedora 36): MLX's Linux library does.")
  endif()
else()
  message(FATAL_ERROR "Nightingale builds on macOS and Linux; this is "
                      "${CMAKE_SYSTEM_NAME}.")
endif()

set(CMAKE_REQUIRED_FLAGS "-std=c++20")
check_cxx_source_compiles(
  "#include <bit>
   #include <concepts>
   #include <numbers>
   template <std::integral T> T turn(T x) { return std::rotl(x, 3); }
   int main() { return turn(1u) > std::numbers::pi ? 0 : 1; }"
  NIGHTINGALE_CXX20_WORKS)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT NIGHTINGALE_CXX20_WORKS)
  message(FATAL_ERROR
    "Nightingale needs a C++20 compiler (GCC 11, Clang 14 or Xcode 15, or "
    "later); found ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}.")
endif()
