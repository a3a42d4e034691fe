# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
pkg_check_modules(FIXBUF REQUIRED IMPORTED_TARGET libfixbuf>=2.4.1)
pkg_check_modules(OPENSSL REQUIRED IMPORTED_TARGET openssl>=3.0)
netobs_sink(ipfix SHARED net LIBRARIES PkgConfig::FIXBUF PkgConfig::OPENSSL)
set(NETOBS_FUZZ_FLAGS_ipfix -I${PROJECT_SOURCE_DIR}/src/sinks -I${PROJECT_SOURCE_DIR}/src/lib/sink
	${FIXBUF_CFLAGS} ${FIXBUF_LDFLAGS})
