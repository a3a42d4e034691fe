// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs with default options: no lists of rules, sampling, round-trip times or alerts. */
#define CONFIG_RTT false

#include "flows.bpf.c"
