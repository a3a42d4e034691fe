# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Connections over TCP and TLS, for the kinds of sinks that make them themselves:
# include() this, and link netobs_net.
include_guard(GLOBAL)

pkg_check_modules(OPENSSL REQUIRED IMPORTED_TARGET openssl>=3.0)

file(GLOB net_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/lib/sinks/net/*.c)
add_library(netobs_net STATIC ${net_sources})
add_library(netobs_sink_net_objects ALIAS netobs_net) # for tests/sinks/net
target_link_libraries(netobs_net PUBLIC netobs_sink_support PkgConfig::OPENSSL)
set_target_properties(netobs_net PROPERTIES POSITION_INDEPENDENT_CODE ON)
netobs_target_flags(netobs_net)
