# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# What ./dev bench compares netobs with, over the library's objects.

set(bench_dir ${PROJECT_SOURCE_DIR}/bench/live)

netobs_bpf_skeleton(${bench_dir}/baseline.bpf.c baseline)
# netobs_bench_live(NAME SOURCE...): the program bench/NAME
function(netobs_bench_live name)
	list(TRANSFORM ARGN PREPEND ${bench_dir}/)
	add_executable(bench_${name} ${ARGN})
	target_link_libraries(bench_${name} PRIVATE netobs_objects)
	set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
		RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
	netobs_target_flags(bench_${name})
endfunction()

netobs_bench_live(baseline baseline.c flow_sums.c round_trips.c)
target_sources(bench_baseline PRIVATE ${NETOBS_SKELETON_DIR}/baseline.skel.h)
netobs_bench_live(tracepoints tracepoints.c)
