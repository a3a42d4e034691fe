# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# What ./dev bench compares netobs with, over the library's objects.

set(bench_dir ${PROJECT_SOURCE_DIR}/bench/live)

netobs_bpf_skeleton(${bench_dir}/baseline.bpf.c baseline)
add_executable(bench_baseline ${bench_dir}/baseline.c
	${NETOBS_SKELETON_DIR}/baseline.skel.h)
target_link_libraries(bench_baseline PRIVATE netobs_objects)
set_target_properties(bench_baseline PROPERTIES OUTPUT_NAME baseline
	RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
netobs_target_flags(bench_baseline)
