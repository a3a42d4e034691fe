// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs with default options, round-trip times and translations. */
#define CONFIG_RTT true
#define CONFIG_NAT

#include "flows.bpf.c"
