/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "shadows.h"

#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>
#include <netobs/probe.h>

#include "human.h"

static const char *kind_of(const struct netobs_shadow *shadow)
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

static const char *way_of(const struct netobs_shadow *shadow)
{
	return shadow->direction == NETOBS_EGRESS ? "egress" : "ingress";
}

static void print_row(const struct netobs_shadow *shadow, void *user)
{
	char name[sizeof(shadow->name)];

	(void)user;
	memcpy(name, shadow->name, sizeof(name));
	human_clean(name);
	printf("  %-15s %-7s %s '%s'", shadow->interface, way_of(shadow),
	       kind_of(shadow), name);
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
	if (netobs_shadows(disable, print_row, NULL) <= 0)
		puts("  nothing");
}

/* Names of programs may have letters, digits, '_' and '.' only; interfaces, more. */
static void print_string(const char *key, const char *value)
{
	printf("\"%s\":\"", key);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\' || (unsigned char)*value < ' ')
			printf("\\u%04x", (unsigned char)*value);
		else
			putchar(*value);
	}
	putchar('"');
}

static void print_object(const struct netobs_shadow *shadow, void *user)
{
	int *n = user;

	printf("%s{", (*n)++ ? "," : "");
	print_string("interface", shadow->interface);
	printf(",\"direction\":\"%s\",\"kind\":\"%s\",\"program_id\":%u,"
	       "\"priority\":%u,\"others\":%u,",
	       way_of(shadow), kind_of(shadow), shadow->program_id,
	       shadow->priority, shadow->others);
	print_string("name", shadow->name);
	putchar('}');
}

void shadows_print_json(uint64_t disable)
{
	int n = 0;

	putchar('[');
	netobs_shadows(disable, print_object, &n);
	putchar(']');
}
