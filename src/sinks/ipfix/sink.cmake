# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
include(${PROJECT_SOURCE_DIR}/src/sinks/net/net.cmake)
pkg_check_modules(FIXBUF REQUIRED IMPORTED_TARGET libfixbuf>=2.4.1)
netobs_sink(ipfix LIBRARIES netobs_net PkgConfig::FIXBUF)
set(NETOBS_FUZZ_FLAGS_ipfix -I${PROJECT_SOURCE_DIR}/src/sinks -I${PROJECT_SOURCE_DIR}/src/lib/sink
	${FIXBUF_CFLAGS} ${FIXBUF_LDFLAGS})
