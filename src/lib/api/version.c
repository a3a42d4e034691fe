/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <netobs/version.h>

const char *netobs_version(void)
{
	return NETOBS_VERSION;
}

unsigned int netobs_version_number(void)
{
	return NETOBS_VERSION_NUMBER;
}
