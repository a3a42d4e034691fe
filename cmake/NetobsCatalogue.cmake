# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Texts with lists of fields, which are made of the catalogue, src/catalogue/fields.def.
#
# TEMPLATE.in has @NAME@ where a list belongs. TEMPLATE.lists is C for the preprocessor
# alone: "@NAME =", then string literals, which make up that list, up to the next "@".

# @template without .in -> @output; further arguments: other files of which it is made
function(netobs_catalogue_text template output)
	set(lists ${output}.lists)
	add_custom_command(OUTPUT ${output}
		COMMAND ${CMAKE_C_COMPILER} -E -P -I${PROJECT_SOURCE_DIR}/src
			-I${PROJECT_SOURCE_DIR}/include -x c ${template}.lists -o ${lists}
		COMMAND ${CMAKE_COMMAND} -DTEMPLATE=${template}.in -DLISTS=${lists}
			-DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/catalogue.cmake
		DEPENDS ${template}.in ${template}.lists
			${PROJECT_SOURCE_DIR}/src/catalogue/fields.def
			${PROJECT_SOURCE_DIR}/src/catalogue/fields.h
			${PROJECT_SOURCE_DIR}/src/catalogue/columns.def
			${PROJECT_SOURCE_DIR}/cmake/catalogue.cmake ${ARGN}
		BYPRODUCTS ${lists} VERBATIM)
endfunction()
