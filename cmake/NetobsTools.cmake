# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Programs that make traffic, for tests and benchmarks: never with sanitizers.

find_package(Threads REQUIRED)

file(GLOB tool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tools/*.c)
list(FILTER tool_sources EXCLUDE REGEX "\\.bpf\\.c$")
foreach(source ${tool_sources})
	get_filename_component(name ${source} NAME_WE)
	add_executable(tool_${name} ${source})
	target_compile_options(tool_${name} PRIVATE -O2)
	target_link_libraries(tool_${name} PRIVATE Threads::Threads)
	set_target_properties(tool_${name} PROPERTIES OUTPUT_NAME ${name}
		RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tools)
	netobs_target_language(tool_${name})
	if(EXISTS ${PROJECT_SOURCE_DIR}/tests/tools/${name}.bpf.c)
		netobs_bpf_skeleton(${PROJECT_SOURCE_DIR}/tests/tools/${name}.bpf.c ${name})
		target_sources(tool_${name} PRIVATE ${NETOBS_SKELETON_DIR}/${name}.skel.h)
		target_include_directories(tool_${name} PRIVATE ${NETOBS_SKELETON_DIR})
		target_link_libraries(tool_${name} PRIVATE PkgConfig::LIBBPF)
	endif()
	file(STRINGS ${source} uses_library REGEX "include <netobs/")
	if(uses_library) # it is built as that is
		target_link_libraries(tool_${name} PRIVATE netobs)
		netobs_target_flags(tool_${name})
	endif()
endforeach()

# What tests preload into programs.
file(GLOB preload_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/preload/*.c)
foreach(source ${preload_sources})
	get_filename_component(name ${source} NAME_WE)
	add_library(preload_${name} MODULE ${source})
	set_target_properties(preload_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
		LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tools)
	netobs_target_language(preload_${name})
	set_target_properties(preload_${name} PROPERTIES C_VISIBILITY_PRESET default)
endforeach()

# The method of netobs-bench, for the benchmarks that are written in Python.
add_library(bench_method MODULE ${PROJECT_SOURCE_DIR}/bench/interval.c
	${PROJECT_SOURCE_DIR}/bench/others.c)
target_include_directories(bench_method PRIVATE ${PROJECT_SOURCE_DIR}/src/lib)
target_link_libraries(bench_method PRIVATE m)
set_target_properties(bench_method PROPERTIES PREFIX "" OUTPUT_NAME method
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tools)
netobs_target_language(bench_method)
set_target_properties(bench_method PROPERTIES C_VISIBILITY_PRESET default)
