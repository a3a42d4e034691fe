# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/net/net.cmake)
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/pbflow/pbflow.cmake)
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/otlp/otlp.cmake)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
netobs_sink(grpc LIBRARIES netobs_net netobs_otlp netobs_pbflow PkgConfig::NGHTTP2)
