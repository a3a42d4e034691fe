# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# What netobsctl loads to serve metrics.
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.60)

netobs_sink(httpd SOURCES src/service/httpd/httpd_module.c LIBRARIES PkgConfig::MICROHTTPD)
