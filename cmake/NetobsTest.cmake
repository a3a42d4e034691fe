# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# The tests: what is in tests/ is found by its name, see CONTRIBUTING.md.

set(tests_dir ${PROJECT_SOURCE_DIR}/tests)

if(NOT NETOBS_PYTHON)
	message(FATAL_ERROR "python3 was not found (Debian: apt-get install python3)")
endif()
find_package(Threads REQUIRED)

# Costs and memory are looked at without sanitizers, and so is the installed package.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
	set(default_release_dir ${PROJECT_BINARY_DIR}/release)
else()
	set(default_release_dir ${PROJECT_BINARY_DIR})
endif()
set(NETOBS_RELEASE_DIR ${default_release_dir} CACHE PATH
	"Build directory without sanitizers, for the tests that need one")

set(NETOBS_TEST_TIMEOUT 900 CACHE STRING "Seconds that an end-to-end test may take")
set(NETOBS_FUZZ_SECONDS 3 CACHE STRING "Seconds that each fuzzer runs")

set(test_environment
	ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
	UBSAN_OPTIONS=print_stacktrace=1
	PYTHONPYCACHEPREFIX=${PROJECT_SOURCE_DIR}/build/pycache
	LC_ALL=C.UTF-8
	NETOBS_SOURCE=${PROJECT_SOURCE_DIR}
	NETOBS_RELEASE=${NETOBS_RELEASE_DIR}
	NETOBSCTL_RELEASE=${NETOBS_RELEASE_DIR}/netobsctl
	NETOBS_TOOLS=${PROJECT_BINARY_DIR}/tools
	CC=${CMAKE_C_COMPILER} CMAKE=${CMAKE_COMMAND}
	NETOBSCTL=$<TARGET_FILE:netobsctl>)

# add_test() with what all of them share.
function(netobs_test name label timeout)
	add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
	set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout}
		SKIP_RETURN_CODE 77 ENVIRONMENT "${test_environment}")
endfunction()

# The files in tests/ that match; their paths go to @ret_sources.
macro(netobs_test_sources ret_sources pattern)
	file(GLOB_RECURSE ${ret_sources} CONFIGURE_DEPENDS ${tests_dir}/${pattern})
endmacro()

# tests/unit/lib/base/test_json.c -> json; tests/unit/cli/view/test_row.c -> cli_row, and so for
# the other parts that are no library.
function(netobs_test_stem source ret_stem)
	get_filename_component(stem ${source} NAME_WE)
	string(REGEX REPLACE "^(test|fuzz)_" "" stem ${stem})
	if(source MATCHES "/unit/(cli|service|bench)/")
		string(PREPEND stem ${CMAKE_MATCH_1}_)
	endif()
	set(${ret_stem} ${stem} PARENT_SCOPE)
endfunction()

# ---- C: unit and BPF tests, over a harness they share ----------------------

function(netobs_test_harness)
	netobs_test_sources(sources harness/*.c)
	pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
	if(sources)
		add_library(harness STATIC ${sources})
		set(scope PUBLIC)
		target_include_directories(harness PRIVATE
			${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/lib)
		target_include_directories(harness SYSTEM PRIVATE ${NETOBS_SKELETON_DIR})
		add_dependencies(harness bpf_skeletons)
		netobs_target_flags(harness)
	else()
		add_library(harness INTERFACE)
		set(scope INTERFACE)
	endif()
	target_include_directories(harness ${scope} ${tests_dir}/harness)
	target_link_libraries(harness ${scope}
		PkgConfig::CMOCKA PkgConfig::LIBBPF PkgConfig::LIBPCAP Threads::Threads m)
endfunction()

# A linker takes from an archive what a program uses: with all objects, each program has 18 MB.
add_library(netobs_archive STATIC $<TARGET_OBJECTS:netobs_objects>)
target_link_libraries(netobs_archive PUBLIC netobs_objects)

# netobs_c_program(TARGET SOURCE DIRECTORY LIBRARIES...): the library's objects, in an archive or not,
# and what else it links.
function(netobs_c_program target source directory)
	add_executable(${target} ${source})
	target_link_libraries(${target} PRIVATE harness)
	add_dependencies(${target} bpf_skeletons test_skeletons)
	set_target_properties(${target} PROPERTIES
		RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${directory})
	# Of other parts than libnetobs, those that it includes headers of; all before what they use.
	set(parts_of_cli netobs_cli netobs_view netobs_service)
	set(parts_of_service netobs_service)
	set(parts_of_bench netobs_bench)
	foreach(part cli service bench)
		file(STRINGS ${source} includes REGEX "#include \"${part}/")
		if(includes)
			target_link_libraries(${target} PRIVATE ${parts_of_${part}})
		endif()
	endforeach()
	target_link_libraries(${target} PRIVATE ${ARGN})
	netobs_target_flags(${target})
	netobs_wrap_calls(${target} ${source})
endfunction()

# Programs that include lib_disk.h or lib_clock.h, or declare __wrap_CALL, get these calls instead of the
# C library's.
function(netobs_wrap_calls target source)
	file(STRINGS ${source} calls REGEX "__wrap_[a-z_]+\\(")
	list(TRANSFORM calls REPLACE ".*__wrap_([a-z_]+)\\(.*" "\\1")
	list(REMOVE_DUPLICATES calls)
	file(STRINGS ${source} includes REGEX "lib_disk\\.h|lib_crash\\.h")
	if(includes)
		list(APPEND calls openat write pread pwrite ftruncate fdatasync fsync renameat unlinkat)
	endif()
	file(STRINGS ${source} includes REGEX "lib_clock\\.h")
	if(includes)
		list(APPEND calls clock_gettime poll timerfd_settime)
	endif()
	foreach(call ${calls})
		target_link_options(${target} PRIVATE -Wl,--wrap=${call})
	endforeach()
endfunction()

# What is loaded is looked for beside the program.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
file(CREATE_LINK ${PROJECT_BINARY_DIR}/netobs ${PROJECT_BINARY_DIR}/tests/netobs SYMBOLIC)

function(netobs_c_tests label timeout)
	netobs_test_sources(sources ${label}/test_*.c)
	foreach(source ${sources})
		netobs_test_stem(${source} stem)
		netobs_c_program(${label}_${stem} ${source} tests netobs_archive)
		# A model beside it.
		get_filename_component(folder ${source} DIRECTORY)
		file(GLOB models CONFIGURE_DEPENDS ${folder}/sim_*.c)
		target_sources(${label}_${stem} PRIVATE ${models})
		netobs_test(${label}.${stem} ${label} ${timeout} ${label}_${stem})
	endforeach()
endfunction()

# ---- Sinks that are loaded: tests/sinks/KIND, over the objects of the kind ----

function(netobs_sink_tests)
	netobs_test_sources(sources sinks/*/test_*.c)
	foreach(source ${sources})
		get_filename_component(directory ${source} DIRECTORY)
		get_filename_component(kind ${directory} NAME)
		if(NOT TARGET netobs_sink_${kind}_objects)
			continue()
		endif()
		netobs_test_stem(${source} stem)
		set(target sinks_${kind}_${stem})
		netobs_test_sources(shared sinks/${kind}/lib_*.c)
		# The archives of sinks need the library's objects, and do not say so.
		netobs_c_program(${target} ${source} tests netobs_objects netobs_sink_${kind}_objects)
		target_sources(${target} PRIVATE ${shared})
		if(TARGET netobs_pbflow_reader)
			target_link_libraries(${target} PRIVATE netobs_pbflow_reader)
		endif()
		netobs_test(sinks.${kind}_${stem} unit 120 ${target})
	endforeach()
endfunction()

# ---- Fuzzing: libFuzzer is clang's, whatever compiles the rest -------------

# What fuzz_X.c drives, from the top of the tree or where it was made; sinks add their own:
# NETOBS_FUZZ_SOURCES_X, NETOBS_FUZZ_FLAGS_X and NETOBS_FUZZ_LIBRARIES_X.
file(GLOB spool_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} src/lib/sink/spool/*.c)
set(NETOBS_FUZZ_SOURCES_alert_rule src/lib/alerts/rule.c src/lib/base/log.c src/lib/base/options.c
	src/lib/base/text.c)
set(NETOBS_FUZZ_SOURCES_annotate src/lib/reports/flow_face.c src/lib/reports/layouts.c
	src/lib/reports/record_find.c src/lib/reports/record_index.c
	src/cli/annotate/record_input.c src/service/signals.c src/lib/reports/record_news.c
	src/lib/base/hash.c src/lib/base/json_reader.c src/lib/base/slots.c src/lib/base/text.c)
set(NETOBS_FUZZ_SOURCES_bulk_answer src/lib/sinks/http/bulk_answer.c)
set(NETOBS_FUZZ_SOURCES_conf src/service/conf.c src/lib/base/io.c src/lib/base/text.c)
set(NETOBS_FUZZ_SOURCES_container_facts src/lib/who/container_facts.c src/lib/base/json_reader.c)
set(NETOBS_FUZZ_SOURCES_otlp src/lib/sinks/otlp/answer.c src/lib/sinks/grpc/status.c)
set(NETOBS_FUZZ_SOURCES_parse tests/harness/host.c tests/harness/packet.c tests/harness/samples.c)
set(NETOBS_FUZZ_SOURCES_pcapng src/lib/capture/pcapng_file.c)
set(NETOBS_FUZZ_SOURCES_record_parse src/lib/record/any.c src/lib/record/record_json.c
	src/lib/record/record_parse.c src/lib/base/json.c src/lib/base/json_reader.c src/lib/base/text.c)
set(NETOBS_FUZZ_SOURCES_spool ${spool_sources} src/lib/base/hash.c src/lib/base/io.c
	src/lib/base/outage.c src/lib/base/text.c src/lib/base/worker.c)

set(fuzz_sanitizers -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)

function(netobs_fuzzer stem fuzzer)
	set(objects)
	foreach(source tests/fuzz/fuzz_${stem}.c ${NETOBS_FUZZ_SOURCES_${stem}})
		get_filename_component(name ${source} NAME_WE)
		set(object ${PROJECT_BINARY_DIR}/fuzz/objects/${stem}/${name}.o)
		set(warnings ${NETOBS_WARNINGS})
		if(IS_ABSOLUTE ${source})
			set(warnings -w) # another program wrote it
		endif()
		get_filename_component(source ${source} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
		add_custom_command(OUTPUT ${object}
			COMMAND ${NETOBS_BPF_CLANG} -std=gnu11 -fno-strict-aliasing -D_GNU_SOURCE= -g -O1
				${warnings} ${fuzz_sanitizers}
				-I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
				-I${PROJECT_SOURCE_DIR}/src/lib -I${tests_dir}/harness ${NETOBS_FUZZ_FLAGS_${stem}}
				-MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
			DEPENDS ${source} ${NETOBS_FUZZ_DEPENDS_${stem}} DEPFILE ${object}.d VERBATIM)
		list(APPEND objects ${object})
	endforeach()
	file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz/objects/${stem})
	add_custom_command(OUTPUT ${fuzzer}
		COMMAND ${NETOBS_BPF_CLANG} ${fuzz_sanitizers} ${objects} -o ${fuzzer} ${NETOBS_FUZZ_LIBRARIES_${stem}}
		DEPENDS ${objects} VERBATIM)
	add_custom_target(fuzz_${stem} ALL DEPENDS ${fuzzer})
endfunction()

# A fuzzer is the same in each build directory: only that of the debug build has them.
function(netobs_fuzz_tests)
	if(NETOBS_RELEASE_DIR STREQUAL PROJECT_BINARY_DIR)
		return()
	endif()
	math(EXPR timeout "${NETOBS_FUZZ_SECONDS} + 90")
	netobs_test_sources(sources fuzz/fuzz_*.c)
	foreach(source ${sources})
		netobs_test_stem(${source} stem)
		if((stem STREQUAL "pbflow" AND NOT TARGET netobs_pbflow) OR
			(stem STREQUAL "otlp" AND NOT TARGET netobs_otlp) OR
			(stem STREQUAL "ipfix" AND NOT TARGET netobs_sink_ipfix))
			continue() # no kind of sink that is built has it
		endif()
		set(fuzzer ${PROJECT_BINARY_DIR}/fuzz/fuzz_${stem})
		set(corpus ${PROJECT_BINARY_DIR}/fuzz/corpus_${stem})
		set(seeds ${tests_dir}/fuzz/corpus/${stem})
		file(MAKE_DIRECTORY ${corpus})
		if(NOT EXISTS ${seeds})
			set(seeds)
		endif()
		netobs_fuzzer(${stem} ${fuzzer})
		# Its usual exit code for a crash, 77, would count as a test that is skipped.
		netobs_test(fuzz.${stem} fuzz ${timeout} ${fuzzer}
			-max_total_time=${NETOBS_FUZZ_SECONDS} -timeout=10
			-error_exitcode=1 -timeout_exitcode=1 -print_final_stats=1 -artifact_prefix=${corpus}/../ ${corpus} ${seeds})
	endforeach()
endfunction()

# ---- The verifier: what programs cost it must not jump unnoticed -----------

function(netobs_verifier_test)
	add_executable(verifier ${tests_dir}/verifier/verifier.c)
	target_link_libraries(verifier PRIVATE PkgConfig::LIBBPF)
	netobs_target_flags(verifier)
	netobs_test(bpf.verifier bpf 300 ${NETOBS_PYTHON} ${tests_dir}/verifier/check.py
		$<TARGET_FILE:verifier> ${NETOBS_BPF_CLANG_VERSION} ${NETOBS_BPF_OBJECTS})
	netobs_test(bpf.stack bpf 60 ${NETOBS_PYTHON} ${tests_dir}/verifier/test_stack.py
		${NETOBS_BPF_CLANG_VERSION} ${NETOBS_BPF_CLANG} ${NETOBS_BPF_FLAGS})
	set_target_properties(matrix PROPERTIES EXCLUDE_FROM_ALL OFF)
	set(compilers ${NETOBS_PYTHON} ${tests_dir}/verifier/compilers.py --build ${PROJECT_BINARY_DIR})
	netobs_test(bpf.compilers bpf 900 ${compilers} --ends)
	# Guests build nothing.
	netobs_test(bpf.compilers_built guest 900 ${compilers} --built)
endfunction()

# ---- Scripts: end to end, and the ABI --------------------------------------

# Tests of a folder run side by side: each makes namespaces of its own. A script with a line
# "# Alone: why" runs beside none, since it measures, and those with the same "# Lock: NAME, why"
# not beside each other. A line "# Label: NAME" gives it another label than its folder. Those
# with a line "# Cost: SECONDS" start first, the longest of them at once; of the others, ctest
# knows how long they took in this build directory.
function(netobs_script_tests label timeout)
	netobs_test_sources(scripts ${label}/test_*.py)
	netobs_test_sources(shell_scripts ${label}/test_*.sh)
	foreach(script ${scripts} ${shell_scripts})
		netobs_test_stem(${script} stem)
		set(interpreter ${NETOBS_PYTHON})
		if(script MATCHES "\\.sh$")
			set(interpreter bash)
		endif()
		set(own_label ${label})
		file(STRINGS ${script} line REGEX "^# Label: ")
		if(line)
			string(REPLACE "# Label: " "" own_label ${line})
		endif()
		netobs_test(${label}.${stem} ${own_label} ${timeout} ${interpreter} ${script})
		set_tests_properties(${label}.${stem} PROPERTIES FIXTURES_REQUIRED release)
		file(STRINGS ${script} cost REGEX "^# Cost: [0-9]+$")
		if(cost)
			string(REPLACE "# Cost: " "" cost ${cost})
			set_tests_properties(${label}.${stem} PROPERTIES COST ${cost})
		endif()
		file(STRINGS ${script} alone REGEX "^# Alone: ")
		if(alone)
			set_tests_properties(${label}.${stem} PROPERTIES RUN_SERIAL ON COST -1)
		endif()
		file(STRINGS ${script} lock REGEX "^# Lock: [a-z]+, ")
		if(lock)
			string(REGEX REPLACE "^# Lock: ([a-z]+), .*" "\\1" lock ${lock})
			set_tests_properties(${label}.${stem} PROPERTIES RESOURCE_LOCK ${lock})
		endif()
	endforeach()
endfunction()

# ---- Other kernels: tests of the build without sanitizers, in QEMU ---------

# Tests of what a kernel can change get a second label, which guests select: whether it takes
# the programs, what its maps, helpers and hooks do, and VLANs, which the machine may lack.
function(netobs_kernel_tests)
	foreach(name ${ARGN})
		set_property(TEST ${name} APPEND PROPERTY LABELS kernel)
	endforeach()
endfunction()

function(netobs_vm_test kernel)
	# A guest that hangs is stopped, and reported on, before ctest kills both.
	netobs_test(vm.${kernel} vm 2400 ${NETOBS_PYTHON} ${tests_dir}/vm/vm.py
		--build ${NETOBS_RELEASE_DIR} --limit 2300 --quick ${kernel})
	# A guest keeps one of this machine's CPUs busy, for longer than any other test.
	set_tests_properties(vm.${kernel} PROPERTIES
		RESOURCE_LOCK vm FIXTURES_REQUIRED release COST 1000)
endfunction()

# Where this build has sanitizers, one without is made first.
function(netobs_release_fixture)
	if(NETOBS_RELEASE_DIR STREQUAL PROJECT_BINARY_DIR)
		return()
	endif()
	netobs_test(release.configure release 120 ${CMAKE_COMMAND}
		-S ${PROJECT_SOURCE_DIR} -B ${NETOBS_RELEASE_DIR} -G ${CMAKE_GENERATOR}
		-DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
		-DNETOBS_TESTS=ON -DNETOBS_UNIT_TESTS=OFF -DNETOBS_WERROR=${NETOBS_WERROR}
		-DNETOBS_BPF_SHARED=${NETOBS_BPF_SHARED})
	netobs_test(release.build release 1200 ${CMAKE_COMMAND} --build ${NETOBS_RELEASE_DIR})
	set_tests_properties(release.configure release.build PROPERTIES FIXTURES_SETUP release)
	set_tests_properties(release.build PROPERTIES DEPENDS release.configure)
endfunction()

# Programs that tests load beside the library's.
netobs_bpf_skeletons(tests/bpf test_skeletons)
add_custom_target(test_skeletons DEPENDS ${test_skeletons})

# Parts of the benchmarks that have tests.
add_library(netobs_bench STATIC ${PROJECT_SOURCE_DIR}/bench/packets.c
	${PROJECT_SOURCE_DIR}/bench/interval.c)
target_include_directories(netobs_bench PUBLIC ${PROJECT_SOURCE_DIR} PRIVATE
	${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/lib)
netobs_target_flags(netobs_bench)

netobs_test_harness()
if(NETOBS_UNIT_TESTS)
	netobs_c_tests(unit 300)
	netobs_sink_tests()
endif()
netobs_c_tests(bpf 600)
netobs_verifier_test()
netobs_release_fixture()
netobs_fuzz_tests()
netobs_script_tests(abi 600)
netobs_script_tests(e2e ${NETOBS_TEST_TIMEOUT})
netobs_script_tests(package 1800)
netobs_kernel_tests(bpf.capture_packets bpf.cgroups bpf.configurations bpf.drain
	bpf.drops bpf.filter bpf.flow_store bpf.fragments bpf.generation bpf.map
	bpf.nonlinear bpf.overflow bpf.owner_events bpf.probe bpf.program_set bpf.samples
	bpf.sessions bpf.threads bpf.verifier bpf.compilers_built e2e.exact e2e.exact_tunnel e2e.once_vlan)
if(NETOBS_VMLINUX_ARCH STREQUAL "x86_64")
	netobs_vm_test(5.10)
	netobs_vm_test(6.12)
endif()
