// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs with default options and round-trip times. */
#define CONFIG_RTT true

#include "flows.bpf.c"
