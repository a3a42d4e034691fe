/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What -i can name. */
#ifndef NETOBS_SERVICE_OPTIONS_INTERFACES_H
#define NETOBS_SERVICE_OPTIONS_INTERFACES_H

/* Print the interfaces, and the network namespaces that have names. 0 or -errno. */
int interfaces_print(void);

#endif
