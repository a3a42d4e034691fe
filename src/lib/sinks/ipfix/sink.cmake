# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/net/net.cmake)
pkg_check_modules(FIXBUF REQUIRED IMPORTED_TARGET libfixbuf>=2.4.1)

# Files are rotated as those of the library are, by a copy of that.
add_library(netobs_rotate STATIC src/lib/sink/file/rotate.c src/lib/sink/pack/pieces.c)
target_link_libraries(netobs_rotate PUBLIC netobs_sink_support)
set_target_properties(netobs_rotate PROPERTIES POSITION_INDEPENDENT_CODE ON)
netobs_target_flags(netobs_rotate)

netobs_sink(ipfix LIBRARIES netobs_net netobs_rotate PkgConfig::FIXBUF)
set(NETOBS_FUZZ_SOURCES_ipfix src/lib/base/text.c src/lib/sinks/ipfix/encoder.c src/lib/sinks/ipfix/layout.c
	src/lib/sinks/ipfix/record.c)
set(NETOBS_FUZZ_FLAGS_ipfix ${FIXBUF_CFLAGS})
set(NETOBS_FUZZ_LIBRARIES_ipfix ${FIXBUF_LDFLAGS})
