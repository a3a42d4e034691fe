/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* daemon FILE: the service by this configuration, as a program of its own without a terminal. */
#include "service/service.h"

int main(int argc, char **argv)
{
	return argc == 2 ? service_run(argv[1]) : EXIT_USAGE;
}
