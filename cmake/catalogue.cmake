# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# cmake -DTEMPLATE= -DLISTS= -DOUTPUT= -P catalogue.cmake: see NetobsCatalogue.cmake.

file(READ ${TEMPLATE} text)
file(READ ${LISTS} lists)

string(REGEX MATCHALL "@[A-Z_]+@" names "${text}")
foreach(name ${names})
	string(REPLACE "@" "" name ${name})
	if(NOT lists MATCHES "@${name} =([^@]*)@")
		message(FATAL_ERROR "${LISTS} has no list ${name}")
	endif()
	string(STRIP "${CMAKE_MATCH_1}" list)
	string(REGEX REPLACE "\"[ \t\n]*\"" "" list "${list}")
	string(REGEX REPLACE "^\"|\"$" "" list "${list}")
	string(REPLACE "\\n" "\n" list "${list}")
	string(REPLACE "\\t" "\t" list "${list}")
	string(REPLACE "@${name}@" "${list}" text "${text}")
endforeach()
file(WRITE ${OUTPUT} "${text}")
