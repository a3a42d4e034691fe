# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# How files can be compressed; each is loaded when it is asked for, like a kind of sink.

set(NETOBS_COMPRESS "gzip;zstd" CACHE STRING "Kinds of compression to build, of gzip and zstd")

if("gzip" IN_LIST NETOBS_COMPRESS)
	pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
	netobs_sink(gzip SOURCES src/lib/sinks/compress/gzip.c LIBRARIES PkgConfig::ZLIB)
endif()
if("zstd" IN_LIST NETOBS_COMPRESS)
	pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
	netobs_sink(zstd SOURCES src/lib/sinks/compress/zstd.c LIBRARIES PkgConfig::ZSTD)
endif()
