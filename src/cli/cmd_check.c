/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include <netobs/flow.h>
#include <netobs/persist.h>
#include <netobs/probe.h>
#include <netobs/version.h>

#include "base/privilege.h"
#include "base/text.h"
#include "service/options/args.h"
#include "service/observe/flows_config.h"
#include "cli/view/print.h"

struct check_config {
	int output, attach; /* index of the choice */
	const char *persist_dir;
	uint32_t verbose;
};

enum { OUTPUT_TABLE, OUTPUT_JSON };

static const struct args_option options[] = {
#define SELECT_check OPTION_SELECTED
#define OPTIONS_STRUCT struct check_config
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "check",
	.summary = "Check what the kernel and the privileges allow, and what is missing",
	.options = options,
	.positional = "check takes no operands",
	.notes = "The exit status is 0 if 'netobsctl flows' can run here, otherwise 1.\n",
};

/* ---- The report ----------------------------------------------------------------- */

/* The findings, which both output forms print. */
struct findings {
	struct utsname kernel;
	uint64_t held; /* capabilities */
	struct netobs_feature features[NETOBS_FEATURES];
	uint64_t disabled;  /* features */
	bool is_namespaced; /* by a user namespace */
	bool bpffs;
	bool can_run;
	const char *persist_dir;
	bool is_persisted;
	struct netobs_persisted persisted;
};

static bool has_bpffs(void)
{
	struct statfs fs;

	return statfs("/sys/fs/bpf", &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

static void print_log(int level, const char *message, void *user)
{
	(void)level;
	(void)user;
	fprintf(stderr, "netobsctl check: %s\n", message);
}

static int find_out(struct findings *findings, bool is_verbose)
{
	int r = capability_read_held(&findings->held);

	if (r < 0)
		return r;
	findings->is_namespaced = capability_is_namespaced();
	uname(&findings->kernel);
	findings->bpffs = has_bpffs();
	findings->persisted.sz = sizeof(findings->persisted);
	findings->is_persisted = !netobs_persisted_get(findings->persist_dir,
						       &findings->persisted);
	r = netobs_probe(findings->disabled, is_verbose ? print_log : NULL,
			 NULL, findings->features, NETOBS_FEATURES,
			 sizeof(findings->features[0]));
	if (r < 0)
		return r;
	findings->can_run = r > 0;
	return 0;
}

static bool is_held(const struct findings *findings, int i)
{
	return capability_is_held(&capabilities[i], findings->held);
}

static const char *need_name(uint8_t need)
{
	switch (need) {
	case NETOBS_NEED_REQUIRED:
		return "required";
	case NETOBS_NEED_EITHER:
		return "either";
	default:
		return "optional";
	}
}

/* Print the capabilities of @mask that are needed for flows, and missing. */
static void print_capabilities(uint64_t mask, const char *before,
			       const char *quote)
{
	for (int i = 0; i < CAPABILITIES; i++) {
		if (!(mask >> capabilities[i].number & 1))
			continue;
		printf("%s%s%s%s", before, quote, capabilities[i].name, quote);
		before = *quote ? "," : ", ";
	}
}

static void print_feature(const struct netobs_feature *feature)
{
	const uint64_t missing = feature->missing_capabilities;

	printf("  %-15s %-4s %s", feature->name,
	       feature->available ? "yes" :
	       missing		  ? "?" :
				    "no",
	       feature->description);
	print_capabilities(missing, ": needs ", "");
	putchar('\n');
	if (feature->available || missing)
		return;
	if (feature->error)
		printf("  %-19s why: %s%s%s\n", "", strerror(-feature->error),
		       *feature->refusal ? ": the kernel refused " : "",
		       feature->refusal);
	if (feature->without)
		printf("  %-19s without it: %s\n", "", feature->without);
}

static void print_verdict(const struct findings *findings)
{
	uint64_t missing = 0;

	if (findings->can_run) {
		puts("\nnetobsctl flows can run here.");
		return;
	}
	for (int i = 0; i < NETOBS_FEATURES; i++)
		if (findings->features[i].need != NETOBS_NEED_OPTIONAL)
			missing |= findings->features[i].missing_capabilities;
	printf("\nnetobsctl flows cannot run here.");
	if (missing && findings->is_namespaced) {
		puts(" This process is in a user namespace, whose capabilities do not count for BPF: run it as root of the host.");
		return;
	}
	print_capabilities(missing, " This process lacks ", "");
	puts(missing ? ": run it as root." : "");
}

/* ---- Programs that run before netobs on the interfaces of this host -------------- */

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

static void shadows_print_table(uint64_t disable)
{
	puts("\nBefore netobs, and may hide packets from it");
	if (netobs_shadows(disable, shadow_print_row, NULL) <= 0)
		puts("  nothing");
}

static void shadow_print_object(const struct netobs_shadow *shadow, void *user)
{
	int *n = user;

	print_json_member((*n)++ ? ",{" : "{", "interface", shadow->interface);
	printf(",\"direction\":\"%s\",\"kind\":\"%s\",\"program_id\":%u,"
	       "\"priority\":%u,\"others\":%u,",
	       shadow_way(shadow), shadow_kind(shadow), shadow->program_id,
	       shadow->priority, shadow->others);
	print_json_member("", "name", shadow->name);
	putchar('}');
}

/* An array. */
static void shadows_print_json(uint64_t disable)
{
	int n = 0;

	putchar('[');
	netobs_shadows(disable, shadow_print_object, &n);
	putchar(']');
}

/* ---- All of it ------------------------------------------------------------------ */

static void print_persisted(const struct findings *findings)
{
	const struct netobs_persisted *set = &findings->persisted;

	printf("\nLeft in the kernel by netobs %s: programs at %u hooks\n",
	       *set->version ? set->version : "(unknown)", set->links);
	if (set->owner)
		printf("  used by process %u\n", set->owner);
	else
		printf("  used by no process, %" PRIu64
		       " packets wait: 'netobsctl detach' removes it\n",
		       set->waiting.packets);
}

static void print_check_table(const struct findings *findings)
{
	printf("netobs %s on %s %s (%s)\n\nPrivileges\n", netobs_version(),
	       findings->kernel.sysname, findings->kernel.release,
	       findings->kernel.machine);
	for (int i = 0; i < CAPABILITIES; i++)
		printf("  %-19s %-4s %s\n", capabilities[i].name,
		       is_held(findings, i) ? "yes" : "no",
		       capabilities[i].purpose);
	if (findings->is_namespaced)
		printf("  %-19s %-4s %s\n", "user namespace", "yes",
		       "capabilities in it do not count for BPF, only those of the initial one do");
	puts("\nKernel");
	for (int i = 0; i < NETOBS_FEATURES; i++)
		print_feature(&findings->features[i]);
	printf("  %-15s %-4s %s\n", "bpffs", findings->bpffs ? "yes" : "no",
	       "BPF file system at /sys/fs/bpf: needed by persist (netobs.conf)");
	if (findings->is_persisted)
		print_persisted(findings);
	shadows_print_table(findings->disabled);
	print_verdict(findings);
}

static void print_json_feature(const struct netobs_feature *feature)
{
	print_json_member("{", "name", feature->name);
	print_json_member(",", "description", feature->description);
	print_json_member(",", "need", need_name(feature->need));
	printf(",\"available\":%s", feature->available ? "true" : "false");
	if (!feature->available) {
		printf(",\"errno\":%d,", -feature->error);
		print_json_member("", "error", strerror(-feature->error));
		if (feature->missing_capabilities) {
			print_capabilities(feature->missing_capabilities,
					   ",\"missing_capabilities\":[", "\"");
			putchar(']');
		}
		if (*feature->refusal) {
			print_json_member(",", "refusal", feature->refusal);
		}
		if (feature->without) {
			print_json_member(",", "without", feature->without);
		}
	}
	putchar('}');
}

static void print_check_json(const struct findings *findings)
{
	print_json_member("{", "version", netobs_version());
	print_json_member(",", "kernel", findings->kernel.release);
	printf(",\"can_run\":%s,\"bpffs\":%s,\"privileges\":{",
	       findings->can_run ? "true" : "false",
	       findings->bpffs ? "true" : "false");
	for (int i = 0; i < CAPABILITIES; i++)
		printf("%s\"%s\":%s", i ? "," : "", capabilities[i].name,
		       is_held(findings, i) ? "true" : "false");
	printf("},\"user_namespace\":%s,\"features\":[",
	       findings->is_namespaced ? "true" : "false");
	for (int i = 0; i < NETOBS_FEATURES; i++) {
		if (i)
			putchar(',');
		print_json_feature(&findings->features[i]);
	}
	putchar(']');
	if (findings->is_persisted)
		printf(",\"persisted\":{\"version\":\"%s\",\"owner\":%u,\"links\":%u,"
		       "\"readable\":%s,\"waiting\":{\"packets\":%" PRIu64
		       ",\"bytes\":%" PRIu64 "}}",
		       findings->persisted.version, findings->persisted.owner,
		       findings->persisted.links,
		       findings->persisted.is_readable ? "true" : "false",
		       findings->persisted.waiting.packets,
		       findings->persisted.waiting.bytes);
	fputs(",\"shadowed\":", stdout);
	shadows_print_json(findings->disabled);
	puts("}");
}

int cmd_check(int argc, char **argv)
{
	struct check_config config = { .output = OUTPUT_TABLE };
	struct findings findings = { 0 };
	enum args_result result = args_parse(&command, argc, argv, &config);
	int r;

	if (result != ARGS_RUN)
		return result;
	findings.persist_dir = config.persist_dir;
	findings.disabled = flows_attachment_disables(config.attach);
	r = find_out(&findings, config.verbose);
	if (r < 0) {
		fprintf(stderr, "netobsctl check: cannot probe the kernel: %s\n",
			strerror(-r));
		return EXIT_FAILED;
	}
	if (config.output == OUTPUT_JSON)
		print_check_json(&findings);
	else
		print_check_table(&findings);
	return findings.can_run ? EXIT_FINE : EXIT_FAILED;
}
