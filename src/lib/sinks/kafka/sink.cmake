# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/pbflow/pbflow.cmake)
pkg_check_modules(RDKAFKA REQUIRED IMPORTED_TARGET rdkafka)

netobs_sink(kafka LIBRARIES PkgConfig::RDKAFKA netobs_pbflow)
