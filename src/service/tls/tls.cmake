# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# What netobsctl loads to listen beyond this host.
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/net/net.cmake)

netobs_sink(tls SOURCES src/service/tls/tls_module.c LIBRARIES netobs_net)
