# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Texts with lists that are made of the catalogue, src/catalogue.
#
# TEMPLATE.in has @NAME@ where a list belongs. TEMPLATE.lists is C for the preprocessor
# alone: "@NAME =", then string literals, which make up that list, up to the next "@".

file(GLOB catalogue CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/catalogue/*)

# @template without .in -> @output. LISTS: another file than TEMPLATE.lists; further arguments:
# other files of which it is made
function(netobs_catalogue_text template output)
	cmake_parse_arguments(PARSE_ARGV 2 of "" LISTS "")
	if(NOT of_LISTS)
		set(of_LISTS ${template}.lists)
	endif()
	set(lists ${output}.lists)
	add_custom_command(OUTPUT ${output}
		COMMAND ${CMAKE_C_COMPILER} -E -P -I${PROJECT_SOURCE_DIR}/src
			-I${PROJECT_SOURCE_DIR}/include -x c ${of_LISTS} -o ${lists}
		COMMAND ${CMAKE_COMMAND} -DTEMPLATE=${template}.in -DLISTS=${lists}
			-DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/catalogue.cmake
		DEPENDS ${template}.in ${of_LISTS} ${catalogue}
			${PROJECT_SOURCE_DIR}/cmake/catalogue.cmake ${of_UNPARSED_ARGUMENTS}
		BYPRODUCTS ${lists} VERBATIM)
endfunction()
