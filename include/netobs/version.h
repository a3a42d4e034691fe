/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/** @file version.h  The library's version, and macros that all headers use. */
#ifndef NETOBS_VERSION_H
#define NETOBS_VERSION_H

#define NETOBS_VERSION_MAJOR 0
#define NETOBS_VERSION_MINOR 2
#define NETOBS_VERSION_PATCH 0
#define NETOBS_VERSION "0.2.0"

/** As netobs_version_number() returns it: 0xMMmmpp. */
#define NETOBS_VERSION_NUMBER                                     \
	(NETOBS_VERSION_MAJOR << 16 | NETOBS_VERSION_MINOR << 8 | \
	 NETOBS_VERSION_PATCH)

/** Parsers of C that know no attributes define it as nothing. */
#ifndef NETOBS_API
#define NETOBS_API __attribute__((visibility("default")))
#endif

/** Before structs without a name in others, which C++ has as an extension. */
#ifdef __cplusplus
#define NETOBS_UNNAMED __extension__
#else
#define NETOBS_UNNAMED
#endif

/** Size of a buffer for an error text: char why[NETOBS_ERROR_MAX]. */
#define NETOBS_ERROR_MAX 512

/**
 * Declare a struct of options, with its size set, the members that follow, and all others
 * zero: NETOBS_OPTS(netobs_sink_opts, opts, .user = &state). C++ has members set by
 * statements: NETOBS_OPTS(netobs_sink_opts, opts); opts.user = &state.
 */
#ifdef __cplusplus
#define NETOBS_OPTS(type, name) \
	struct type name = {};  \
	name.sz = sizeof(name)
#else
#define NETOBS_OPTS(...) NETOBS_OPTS_OF(__VA_ARGS__, )
#define NETOBS_OPTS_OF(type, name, ...) \
	struct type name = { .sz = sizeof(struct type), __VA_ARGS__ }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that is linked at run time, "0.2.0"; static. */
NETOBS_API const char *netobs_version(void);

/** The version of the library as a number that can be compared, such as 0x000200. */
NETOBS_API unsigned int netobs_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
