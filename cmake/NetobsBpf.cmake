# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# src/bpf/NAME.bpf.c -> bpf/NAME.bpf.o -> skel/NAME.skel.h

# The majors of clang whose programs are known to be loaded: by ./dev compilers, which reads this.
set(NETOBS_BPF_CLANGS 14 15 16 17 18 19)

get_filename_component(bpf_top ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(clang_names ${NETOBS_BPF_CLANGS})
list(REVERSE clang_names)
list(TRANSFORM clang_names PREPEND clang-)
find_program(NETOBS_BPF_CLANG NAMES clang ${clang_names}
	DOC "Compiler of the BPF programs: clang 14 or newer")
find_program(NETOBS_BPFTOOL NAMES bpftool PATHS /usr/sbin /usr/local/sbin
	DOC "bpftool, which makes the skeletons")
foreach(tool NETOBS_BPF_CLANG NETOBS_BPFTOOL)
	if(NOT ${tool})
		message(FATAL_ERROR "${tool} was not found (Debian: apt-get install clang bpftool)")
	endif()
endforeach()

execute_process(COMMAND ${NETOBS_BPF_CLANG} -dumpversion
	OUTPUT_VARIABLE clang_version COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "^[0-9]+" clang_version ${clang_version})
set(NETOBS_BPF_CLANG_VERSION ${clang_version} CACHE INTERNAL "Its major version")
list(GET NETOBS_BPF_CLANGS 0 clang_oldest)
if(clang_version VERSION_LESS clang_oldest)
	message(FATAL_ERROR "${NETOBS_BPF_CLANG} has version ${clang_version}: the BPF programs need "
		"clang ${clang_oldest} or newer; -DNETOBS_BPF_CLANG=PATH names another one")
elseif(NOT clang_version IN_LIST NETOBS_BPF_CLANGS)
	list(JOIN NETOBS_BPF_CLANGS ", " clangs)
	message(WARNING "The BPF programs were never built with clang ${clang_version}, but with ${clangs}: "
		"the kernel may refuse them. To see that, build the target `matrix`, and run it: "
		"matrix bpf/")
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
	set(NETOBS_BPF_ARCH x86)
	set(NETOBS_VMLINUX_ARCH x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
	set(NETOBS_BPF_ARCH arm64)
	set(NETOBS_VMLINUX_ARCH arm64)
else()
	message(FATAL_ERROR "There is no vmlinux/${CMAKE_SYSTEM_PROCESSOR}/vmlinux.h; "
		"run ./dev vmlinux there, and name the architecture in ${CMAKE_CURRENT_LIST_FILE}")
endif()

set(NETOBS_BPF_DIR ${PROJECT_BINARY_DIR}/bpf)
set(NETOBS_SKELETON_DIR ${PROJECT_BINARY_DIR}/skel)
file(MAKE_DIRECTORY ${NETOBS_BPF_DIR} ${NETOBS_SKELETON_DIR})

set(NETOBS_BPF_FLAGS
	-g -O2 -std=gnu11 -fno-strict-aliasing -target bpf -mcpu=v3 -D__TARGET_ARCH_${NETOBS_BPF_ARCH}
	-Wall -Wextra -Wno-unused-parameter -Wno-missing-declarations
	$<$<BOOL:${NETOBS_WERROR}>:-Werror>
	# Lines have paths in BTF, which is shipped: not those of this machine.
	-ffile-prefix-map=${bpf_top}/= -fdebug-compilation-dir=.
	-I${bpf_top}/src
	-isystem ${bpf_top}/vmlinux/${NETOBS_VMLINUX_ARCH})
foreach(dir ${LIBBPF_INCLUDE_DIRS})
	list(APPEND NETOBS_BPF_FLAGS -isystem ${dir})
endforeach()

find_program(NETOBS_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH DOC "Python 3.9 or newer")
find_program(NETOBS_PYTHON NAMES python3)

set(NETOBS_BPF_SHARED "" CACHE PATH
	"Where build directories share compiled BPF programs, which have the same bytes in each; empty: they do not")

# Compile one program. Linking it alone drops the DWARF and keeps the BTF.
function(netobs_bpf_skeleton source name)
	set(compiled ${NETOBS_BPF_DIR}/${name}.o)
	set(object ${NETOBS_BPF_DIR}/${name}.bpf.o)
	set(skeleton ${NETOBS_SKELETON_DIR}/${name}.skel.h)
	if(NETOBS_PYTHON) # without it, the bytes depend on the directory
		set(order COMMAND ${NETOBS_PYTHON} ${bpf_top}/cmake/order_btf.py ${compiled})
	endif()

	set(compile ${NETOBS_BPF_CLANG} ${NETOBS_BPF_FLAGS} ${source})
	if(NETOBS_BPF_SHARED)
		list(PREPEND compile ${bpf_top}/cmake/compile_bpf.sh ${NETOBS_BPF_SHARED} ${compiled})
	else()
		list(APPEND compile -MD -MF ${compiled}.d -MT ${compiled} -c -o ${compiled})
	endif()

	add_custom_command(OUTPUT ${compiled}
		COMMAND ${compile}
		${order}
		DEPENDS ${source} ${bpf_top}/cmake/order_btf.py ${bpf_top}/cmake/compile_bpf.sh
		DEPFILE ${compiled}.d
		COMMENT "Compiling BPF programs ${name}" VERBATIM COMMAND_EXPAND_LISTS)
	add_custom_command(OUTPUT ${object}
		COMMAND ${NETOBS_BPFTOOL} gen object ${object} ${compiled}
		DEPENDS ${compiled} VERBATIM)
	add_custom_command(OUTPUT ${skeleton}
		COMMAND ${CMAKE_COMMAND} -DBPFTOOL=${NETOBS_BPFTOOL} -DOBJECT=${object}
			-DNAME=${name}_bpf -DSKELETON=${skeleton}
			-P ${bpf_top}/cmake/skeleton.cmake
		DEPENDS ${object} ${bpf_top}/cmake/skeleton.cmake VERBATIM)
endfunction()

# All in @directory; the skeletons' paths go to @ret_skeletons. The objects of
# src/bpf, which make up the library, are NETOBS_BPF_OBJECTS.
function(netobs_bpf_skeletons directory ret_skeletons)
	file(GLOB sources CONFIGURE_DEPENDS ${bpf_top}/${directory}/*.bpf.c)
	foreach(source ${sources})
		get_filename_component(name ${source} NAME)
		string(REPLACE ".bpf.c" "" name ${name})
		netobs_bpf_skeleton(${source} ${name})
		list(APPEND skeletons ${NETOBS_SKELETON_DIR}/${name}.skel.h)
	endforeach()
	if(directory STREQUAL "src/bpf")
		list(TRANSFORM skeletons REPLACE ".*/(.+).skel.h$" "${NETOBS_BPF_DIR}/\\1.bpf.o"
			OUTPUT_VARIABLE objects)
		add_custom_target(bpf_skeletons DEPENDS ${skeletons})
		add_custom_target(bpf_objects DEPENDS ${objects})
		set(NETOBS_BPF_OBJECTS ${objects} PARENT_SCOPE)
	endif()
	set(${ret_skeletons} ${skeletons} PARENT_SCOPE)
endfunction()
