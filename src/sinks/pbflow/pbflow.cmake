# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Flow records as protobuf, for the kinds of sinks that send them:
# include() this, and link netobs_pbflow.
include_guard(GLOBAL)

set(pbflow_dir ${PROJECT_SOURCE_DIR}/src/sinks/pbflow)
set(pbflow_generated ${PROJECT_BINARY_DIR}/pbflow)
file(MAKE_DIRECTORY ${pbflow_generated})

file(GLOB pbflow_sources CONFIGURE_DEPENDS ${pbflow_dir}/*.c)
add_library(netobs_pbflow STATIC ${pbflow_sources})
add_library(netobs_sink_pbflow_objects ALIAS netobs_pbflow) # for tests/sinks/pbflow
target_link_libraries(netobs_pbflow PUBLIC netobs_sink_support)
set_target_properties(netobs_pbflow PROPERTIES POSITION_INDEPENDENT_CODE ON)
netobs_target_flags(netobs_pbflow)

# For those who read what is sent.
netobs_catalogue_text(${pbflow_dir}/flow.proto ${pbflow_generated}/flow.proto)
add_custom_target(flow_proto ALL DEPENDS ${pbflow_generated}/flow.proto)
install(FILES ${pbflow_generated}/flow.proto DESTINATION ${CMAKE_INSTALL_DATADIR}/netobs)

# Tests read it with protobuf-c, which knows flow.proto alone.
if(NETOBS_TESTS)
	pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
	find_program(NETOBS_PROTOC_C NAMES protoc-c)
	if(NOT NETOBS_PROTOC_C)
		message(FATAL_ERROR "protoc-c was not found (Debian: apt-get install protobuf-c-compiler)")
	endif()
	add_custom_command(
		OUTPUT ${pbflow_generated}/flow.pb-c.c ${pbflow_generated}/flow.pb-c.h
		COMMAND ${NETOBS_PROTOC_C} --proto_path=${pbflow_generated} --c_out=${pbflow_generated} flow.proto
		DEPENDS flow_proto ${pbflow_generated}/flow.proto VERBATIM)
	add_library(netobs_pbflow_reader STATIC ${pbflow_generated}/flow.pb-c.c)
	target_include_directories(netobs_pbflow_reader SYSTEM PUBLIC ${pbflow_generated})
	target_link_libraries(netobs_pbflow_reader PUBLIC PkgConfig::PROTOBUF_C)

	# A fuzzer is one file, which includes the generated one.
	set(NETOBS_FUZZ_FLAGS_pbflow -isystem ${pbflow_generated} ${PROTOBUF_C_CFLAGS} ${PROTOBUF_C_LDFLAGS})
	set(NETOBS_FUZZ_DEPENDS_pbflow ${pbflow_generated}/flow.pb-c.c)
endif()
