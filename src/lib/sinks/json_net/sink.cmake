# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/net/net.cmake)
netobs_sink(json_net LIBRARIES netobs_net)
