# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Records as protobuf, for the kinds of sinks that send them:
# include() this, and link netobs_pbflow.
include_guard(GLOBAL)

set(pbflow_dir ${PROJECT_SOURCE_DIR}/src/lib/sinks/pbflow)
set(pbflow_generated ${PROJECT_BINARY_DIR}/pbflow)
file(MAKE_DIRECTORY ${pbflow_generated})

file(GLOB pbflow_sources CONFIGURE_DEPENDS ${pbflow_dir}/*.c)
add_library(netobs_pbflow STATIC ${pbflow_sources})
add_library(netobs_sink_pbflow_objects ALIAS netobs_pbflow) # for tests/sinks/pbflow
target_link_libraries(netobs_pbflow PUBLIC netobs_sink_support)
set_target_properties(netobs_pbflow PROPERTIES POSITION_INDEPENDENT_CODE ON)
netobs_target_flags(netobs_pbflow)

# For those who read what is sent.
set(pbflow_schemas ${pbflow_generated}/flow.proto ${pbflow_generated}/netobs.proto)
netobs_catalogue_text(${pbflow_dir}/flow.proto ${pbflow_generated}/flow.proto)
netobs_catalogue_text(${pbflow_dir}/netobs.proto ${pbflow_generated}/netobs.proto)
add_custom_target(pbflow_schemas ALL DEPENDS ${pbflow_schemas})
install(FILES ${pbflow_schemas} DESTINATION ${CMAKE_INSTALL_DATADIR}/netobs)

# Tests read it with protobuf-c, which knows these schemas alone.
if(NETOBS_TESTS)
	pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
	find_program(NETOBS_PROTOC_C NAMES protoc-c)
	if(NOT NETOBS_PROTOC_C)
		message(FATAL_ERROR "protoc-c was not found (Debian: apt-get install protobuf-c-compiler)")
	endif()
	foreach(schema flow netobs)
		list(APPEND pbflow_reader ${pbflow_generated}/${schema}.pb-c.c)
		add_custom_command(
			OUTPUT ${pbflow_generated}/${schema}.pb-c.c ${pbflow_generated}/${schema}.pb-c.h
			COMMAND ${NETOBS_PROTOC_C} --proto_path=${pbflow_generated} --c_out=${pbflow_generated} ${schema}.proto
			DEPENDS pbflow_schemas ${pbflow_generated}/${schema}.proto VERBATIM)
	endforeach()
	add_library(netobs_pbflow_reader STATIC ${pbflow_reader})
	target_include_directories(netobs_pbflow_reader SYSTEM PUBLIC ${pbflow_generated})
	target_link_libraries(netobs_pbflow_reader PUBLIC PkgConfig::PROTOBUF_C)

	set(NETOBS_FUZZ_SOURCES_pbflow src/lib/sinks/pbflow/pbflow.c src/lib/sinks/pbflow/pbnetobs.c ${pbflow_reader})
	set(NETOBS_FUZZ_FLAGS_pbflow -isystem ${pbflow_generated} ${PROTOBUF_C_CFLAGS})
	set(NETOBS_FUZZ_LIBRARIES_pbflow ${PROTOBUF_C_LDFLAGS})
	set(NETOBS_FUZZ_DEPENDS_pbflow ${pbflow_reader})
endif()
