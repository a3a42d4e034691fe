# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Records as OTLP, for the kinds of sinks that send them: include() this, and link netobs_otlp.
include_guard(GLOBAL)

file(GLOB otlp_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/lib/sinks/otlp/*.c)
add_library(netobs_otlp STATIC ${otlp_sources})
add_library(netobs_sink_otlp_objects ALIAS netobs_otlp) # for tests/sinks/otlp
target_link_libraries(netobs_otlp PUBLIC netobs_sink_support)
set_target_properties(netobs_otlp PROPERTIES POSITION_INDEPENDENT_CODE ON)
netobs_target_flags(netobs_otlp)
