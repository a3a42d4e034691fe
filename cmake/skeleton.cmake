# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# bpftool gen skeleton OBJECT name NAME > SKELETON, without a shell, and without
# leaving half a header behind when it fails.
execute_process(
	COMMAND ${BPFTOOL} gen skeleton ${OBJECT} name ${NAME}
	OUTPUT_FILE ${SKELETON}.tmp RESULT_VARIABLE result)
if(NOT result EQUAL 0)
	file(REMOVE ${SKELETON}.tmp)
	message(FATAL_ERROR "bpftool gen skeleton ${OBJECT}: ${result}")
endif()
file(RENAME ${SKELETON}.tmp ${SKELETON})
