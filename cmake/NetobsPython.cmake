# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# The Python binding: build/.../python/netobs is the whole package, for PYTHONPATH and for those who
# package it. `cmake --install ... --component python` installs it; without that, it is left out.

if(NOT NETOBS_PYTHON)
	return()
endif()

set(NETOBS_PYTHON_DIR lib/python3/dist-packages CACHE STRING "Where the component python is installed")
set(python_source ${PROJECT_SOURCE_DIR}/python)
set(python_package ${PROJECT_BINARY_DIR}/python/netobs)
file(GLOB python_headers CONFIGURE_DEPENDS include/netobs/*.h)
foreach(name __init__.py py.typed)
	configure_file(${python_source}/netobs/${name} ${python_package}/${name} COPYONLY)
endforeach()
add_custom_command(OUTPUT ${python_package}/netobs.cdef
	COMMAND ${NETOBS_PYTHON} ${python_source}/declarations.py ${PROJECT_SOURCE_DIR}/include
		> ${python_package}/netobs.cdef
	DEPENDS ${python_source}/declarations.py ${python_headers} VERBATIM)
add_custom_target(python ALL DEPENDS ${python_package}/netobs.cdef)
install(DIRECTORY ${python_package} DESTINATION ${NETOBS_PYTHON_DIR}
	COMPONENT python EXCLUDE_FROM_ALL PATTERN "__pycache__" EXCLUDE)
