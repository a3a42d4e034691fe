# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# man/PAGE.SECTION.scd -> man/PAGE.SECTION, with scdoc. A .scd.in has lists of the
# catalogue's, and becomes a .scd first. Pages of section 3 have lists of the headers' members,
# which members.awk makes.

file(GLOB man_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.scd)
file(GLOB man_templates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.scd.in)
if(NOT NETOBS_MAN OR NOT man_sources)
	return()
endif()

find_program(NETOBS_SCDOC NAMES scdoc DOC "scdoc, which makes the manual pages")
# The archive of a release has them.
file(GLOB man_pages ${PROJECT_SOURCE_DIR}/man/pages/*.[1-9])
if(NOT NETOBS_SCDOC AND man_pages)
	foreach(page ${man_pages})
		string(REGEX MATCH "[0-9]$" section ${page})
		install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
	endforeach()
	return()
endif()
set(man_pages)
if(NOT NETOBS_SCDOC)
	message(FATAL_ERROR "scdoc was not found (Debian: apt-get install scdoc); "
		"-DNETOBS_MAN=OFF builds without manual pages")
endif()

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)
file(GLOB man_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/netobs/*.h)
set(man_members ${PROJECT_SOURCE_DIR}/cmake/members.awk)
set(man_page ${PROJECT_SOURCE_DIR}/cmake/page.sh)
foreach(template ${man_templates})
	string(REGEX REPLACE "\\.in$" "" template ${template})
	get_filename_component(name ${template} NAME)
	netobs_catalogue_text(${template} ${PROJECT_BINARY_DIR}/man/${name})
	list(APPEND man_sources ${PROJECT_BINARY_DIR}/man/${name})
endforeach()
foreach(source ${man_sources})
	get_filename_component(page ${source} NAME_WLE)
	string(REGEX MATCH "[0-9]$" section ${page})
	set(output ${PROJECT_BINARY_DIR}/man/${page})
	set(complete ${source})
	if(section EQUAL 3)
		set(complete ${output}.text)
		add_custom_command(OUTPUT ${complete}
			COMMAND awk -f ${man_members} ${man_headers} ${source} > ${complete}
			DEPENDS ${source} ${man_members} ${man_headers} VERBATIM)
	endif()
	add_custom_command(OUTPUT ${output}
		COMMAND ${man_page} ${NETOBS_SCDOC} ${complete} ${output}
		DEPENDS ${complete} ${man_page} VERBATIM)
	list(APPEND man_pages ${output})
	install(FILES ${output} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
add_custom_target(man ALL DEPENDS ${man_pages})
