# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/otlp/otlp.cmake)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl>=7.87)

# What it shares with the library: compression.
add_library(netobs_packer STATIC src/lib/sink/pack/packer.c src/lib/base/shared_object.c)
target_compile_definitions(netobs_packer PRIVATE NETOBS_MODULE_DIR="${module_dir}")
target_link_libraries(netobs_packer PUBLIC netobs_sink_support ${CMAKE_DL_LIBS})
set_target_properties(netobs_packer PROPERTIES POSITION_INDEPENDENT_CODE ON)
netobs_target_flags(netobs_packer)

netobs_sink(http LIBRARIES netobs_otlp netobs_packer PkgConfig::CURL)
