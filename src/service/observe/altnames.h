/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Altnames of the interfaces of this network namespace, which if_nametoindex(3) does not know. */
#ifndef NETOBS_SERVICE_OBSERVE_ALTNAMES_H
#define NETOBS_SERVICE_OBSERVE_ALTNAMES_H

#include <net/if.h>
#include <stdbool.h>

/** Call @p take for each altname. @return 0 or -errno */
int altnames_each(void (*take)(const char *name, const char *altname, void *arg),
		  void *arg);

/** @return whether an interface is called @p text, by its name or an altname */
bool altnames_find(const char *text, char (*ret_name)[IF_NAMESIZE]);

#endif
