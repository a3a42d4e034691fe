# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# How C is compiled here: language, warnings, hardening; sanitizers in Debug.

set(NETOBS_WARNINGS
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
	-Wold-style-definition -Wpointer-arith -Wwrite-strings -Wundef -Wvla
	-Wformat-security -Wredundant-decls -Wimplicit-fallthrough)

set(NETOBS_SANITIZERS -fsanitize=address,undefined -fno-sanitize-recover=all)

# Language and warnings, for whatever is written here.
function(netobs_target_language target)
	set_target_properties(${target} PROPERTIES
		C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
		C_VISIBILITY_PRESET hidden)
	# Empty, so that a file may say it too.
	target_compile_definitions(${target} PRIVATE _GNU_SOURCE=)
	# Keys are compared and hashed as 64-bit lanes, as in the kernel.
	target_compile_options(${target} PRIVATE ${NETOBS_WARNINGS} -fno-strict-aliasing
		-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
		$<$<BOOL:${NETOBS_WERROR}>:-Werror>)
endfunction()

# The same, and sanitizers or hardening, for the product and its tests.
function(netobs_target_flags target)
	netobs_target_language(${target})
	target_compile_options(${target} PRIVATE
		$<$<CONFIG:Debug>:-Og -fno-omit-frame-pointer ${NETOBS_SANITIZERS}>
		$<$<NOT:$<CONFIG:Debug>>:-fstack-protector-strong>)
	target_link_options(${target} PRIVATE
		$<$<CONFIG:Debug>:${NETOBS_SANITIZERS}>
		$<$<NOT:$<CONFIG:Debug>>:LINKER:-z,defs>
		LINKER:-z,relro LINKER:-z,now)
endfunction()
