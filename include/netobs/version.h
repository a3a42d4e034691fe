/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/** @file version.h  The library's version, and what all headers share. */
#ifndef NETOBS_VERSION_H
#define NETOBS_VERSION_H

#define NETOBS_VERSION_MAJOR 0
#define NETOBS_VERSION_MINOR 1
#define NETOBS_VERSION_PATCH 0
#define NETOBS_VERSION "0.1.0"

/** As netobs_version_number() returns it: 0xMMmmpp. */
#define NETOBS_VERSION_NUMBER                                     \
	(NETOBS_VERSION_MAJOR << 16 | NETOBS_VERSION_MINOR << 8 | \
	 NETOBS_VERSION_PATCH)

#define NETOBS_API __attribute__((visibility("default")))

/** What a buffer for an error text has: char why[NETOBS_ERROR_MAX]. */
#define NETOBS_ERROR_MAX 512

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that is linked at run time, "0.1.0"; static. */
NETOBS_API const char *netobs_version(void);

/** The same as a number that can be compared, such as 0x000100. */
NETOBS_API unsigned int netobs_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
