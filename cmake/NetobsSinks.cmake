# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Kinds of sinks that are loaded when one is asked for: src/lib/sinks/KIND becomes
# ${libdir}/netobs/KIND.so, so that programs without that sink do not load its libraries.

set(NETOBS_SINKS "ipfix;kafka;grpc;json_net;http" CACHE STRING "Kinds of sinks to build, of those in src/lib/sinks")

# What the modules have in common with the library, each a copy of its own.
add_library(netobs_sink_support OBJECT
	src/lib/base/hash.c src/lib/base/slots.c src/lib/base/io.c src/lib/base/json.c src/lib/base/log.c src/lib/base/options.c
	src/lib/base/outage.c src/lib/base/spec.c src/lib/base/text.c src/lib/base/worker.c
	src/lib/sink/host_fields.c src/lib/sink/member_names.c src/lib/sinks/batch/batch.c)
target_include_directories(netobs_sink_support PUBLIC include src src/lib)
target_link_libraries(netobs_sink_support PUBLIC Threads::Threads)
set_target_properties(netobs_sink_support PROPERTIES POSITION_INDEPENDENT_CODE ON)
netobs_target_flags(netobs_sink_support)

# netobs_sink(KIND [SOURCES files, else those of src/lib/sinks/KIND] [LIBRARIES targets]).
# The objects are a target of their own, for tests to link.
function(netobs_sink kind)
	cmake_parse_arguments(SINK "" "" "SOURCES;LIBRARIES" ${ARGN})
	if(SINK_SOURCES)
		set(sources ${SINK_SOURCES})
	else()
		file(GLOB sources CONFIGURE_DEPENDS src/lib/sinks/${kind}/*.c)
	endif()
	set(objects netobs_sink_${kind}_objects)
	add_library(${objects} OBJECT ${sources})
	target_link_libraries(${objects} PUBLIC netobs_sink_support ${SINK_LIBRARIES})
	set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
	netobs_target_flags(${objects})

	add_library(netobs_sink_${kind} MODULE
		$<TARGET_OBJECTS:${objects}> $<TARGET_OBJECTS:netobs_sink_support>)
	target_link_libraries(netobs_sink_${kind} PRIVATE ${SINK_LIBRARIES} netobs Threads::Threads)
	target_link_options(netobs_sink_${kind} PRIVATE
		LINKER:--version-script=${PROJECT_SOURCE_DIR}/packaging/sink.map LINKER:--as-needed)
	set_target_properties(netobs_sink_${kind} PROPERTIES
		LINKER_LANGUAGE C PREFIX "" OUTPUT_NAME ${kind}
		LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/netobs
		LINK_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/sink.map)
	netobs_target_flags(netobs_sink_${kind})
	install(TARGETS netobs_sink_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/netobs)
endfunction()

foreach(kind ${NETOBS_SINKS})
	include(${PROJECT_SOURCE_DIR}/src/lib/sinks/${kind}/sink.cmake OPTIONAL)
endforeach()
include(${PROJECT_SOURCE_DIR}/src/lib/sinks/compress/compress.cmake)

option(NETOBS_HTTPD "Build what netobsctl needs to serve metrics over HTTP" ON)
if(NETOBS_HTTPD)
	include(${PROJECT_SOURCE_DIR}/src/service/httpd/httpd.cmake)
endif()
