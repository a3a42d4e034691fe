/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "print.h"

#include <netobs/flow.h>
#include <netobs/probe.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char *shadow_kind(const struct netobs_shadow *shadow)
{
	switch (shadow->kind) {
	case NETOBS_SHADOW_XDP:
		return "xdp";
	case NETOBS_SHADOW_TCX:
		return "tcx";
	default:
		return "clsact";
	}
}

static const char *shadow_way(const struct netobs_shadow *shadow)
{
	return shadow->direction == NETOBS_EGRESS ? "egress" : "ingress";
}

static void shadow_print_row(const struct netobs_shadow *shadow, void *user)
{
	char name[sizeof(shadow->name)];

	(void)user;
	memcpy(name, shadow->name, sizeof(name));
	safe_cell(name);
	printf("  %-15s %-7s %s '%s'", shadow->interface, shadow_way(shadow),
	       shadow_kind(shadow), name);
	if (shadow->program_id)
		printf(", program %u", shadow->program_id);
	if (shadow->priority)
		printf(", priority %u", shadow->priority);
	if (shadow->others)
		printf(", and %u more", shadow->others);
	putchar('\n');
}

void shadows_print_table(uint64_t disable)
{
	puts("\nBefore netobs, and may hide packets from it");
	if (netobs_shadows(disable, shadow_print_row, NULL) <= 0)
		puts("  nothing");
}

static void shadow_print_object(const struct netobs_shadow *shadow, void *user)
{
	int *n = user;

	printf("%s{", (*n)++ ? "," : "");
	print_json_member("interface", shadow->interface);
	printf(",\"direction\":\"%s\",\"kind\":\"%s\",\"program_id\":%u,"
	       "\"priority\":%u,\"others\":%u,",
	       shadow_way(shadow), shadow_kind(shadow), shadow->program_id,
	       shadow->priority, shadow->others);
	print_json_member("name", shadow->name);
	putchar('}');
}

void shadows_print_json(uint64_t disable)
{
	int n = 0;

	putchar('[');
	netobs_shadows(disable, shadow_print_object, &n);
	putchar(']');
}
