/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/** @file version.h  The library's version, and the export macro. */
#ifndef NETOBS_VERSION_H
#define NETOBS_VERSION_H

#define NETOBS_VERSION_MAJOR 0
#define NETOBS_VERSION_MINOR 1
#define NETOBS_VERSION_PATCH 0
#define NETOBS_VERSION "0.1.0"

#define NETOBS_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that is linked at run time, "0.1.0"; static. */
NETOBS_API const char *netobs_version(void);

#ifdef __cplusplus
}
#endif

#endif
