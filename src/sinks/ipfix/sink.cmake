# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
include(${PROJECT_SOURCE_DIR}/src/sinks/net/net.cmake)
pkg_check_modules(FIXBUF REQUIRED IMPORTED_TARGET libfixbuf>=2.4.1)

# Files are rotated as those of the library are, by a copy of that.
file(GLOB roll_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/sink/file/roll*.c)
add_library(netobs_roll STATIC ${roll_sources} src/base/dirs.c)
target_link_libraries(netobs_roll PUBLIC netobs_sink_support)
set_target_properties(netobs_roll PROPERTIES POSITION_INDEPENDENT_CODE ON)
netobs_target_flags(netobs_roll)

netobs_sink(ipfix LIBRARIES netobs_net netobs_roll PkgConfig::FIXBUF)
set(NETOBS_FUZZ_FLAGS_ipfix ${FIXBUF_CFLAGS} ${FIXBUF_LDFLAGS})
