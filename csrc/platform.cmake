# Says plainly what a build needs where the machine does not have it.

include(CheckCXXSourceCompiles)

if(APPLE)
  # The oldest systems that MLX's Metal kernels run on.
  if(IOS)
    set(system iOS)
    set(oldest 17.0)
  else()
    set(system macOS)
    set(oldest 14.0)
  endif()
  if(NOT CMAKE_OSX_DEPLOYMENT_TARGET)
    set(CMAKE_OSX_DEPLOYMENT_TARGET ${oldest})
  endif()
  if(CMAKE_OSX_DEPLOYMENT_TARGET VERSION_LESS ${oldest})
    message(FATAL_ERROR "Nightingale needs ${system} ${oldest} or later; the "
                        "deployment target is ${CMAKE_OSX_DEPLOYMENT_TARGET}.")
  endif()
  # Cross-compiled, the architectures asked for say what the processor is.
  if(CMAKE_OSX_ARCHITECTURES)
    set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_OSX_ARCHITECTURES})
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "arm64")
    message(FATAL_ERROR "Nightingale needs Apple silicon (arm64), not "
                        "'${CMAKE_SYSTEM_PROCESSOR}': MLX has no other build. "
                        "For iOS set CMAKE_OSX_ARCHITECTURES to arm64.")
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
  message(FATAL_ERROR "Nightingale builds for macOS, iOS and Linux; this is "
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
