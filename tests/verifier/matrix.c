/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * matrix [--few|--all] OBJECTS [OTHERS]: loads each program set as the library does, with the
 * options that users can combine, and prints a line for each combination. OBJECTS is the
 * directory of the objects that are built in, OTHERS has those of another compiler, which are
 * loaded instead.
 *
 * Each two values of two options are together in a combination; --few: each value is in one; --all: there
 * are all combinations. Exits with 1 if the kernel refuses one, with 77 if it loads no BPF programs for this process.
 */
#include "base/util.h"
#include "bpf/parse/tunnel.h" /* a knob of programs */
#include "capture/capture.h"
#include "alerts/alerts.h"
#include "nat/translations.h"
#include "drops/drop_feed.h"
#include "who/sessions.h"
#include "engine/store.h"
#include "trace/threads.h"
#include "trace/trace_programs.h"
#include "filter/filter.h"
#include "iterators.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <netobs/probe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
	OBJECTS_MAX = 32,
	PROGRAMS_MAX = 64,
	LOG_SIZE = 4 << 20, /* of a program; memory only as far as it is written */
	LOG_SHOWN = 3000,
	NAME_SIZE = 32,
	WORDS_SIZE = 256,
	SKIPPED = 77,
	/* From this Linux on, there is all that programs attach to. */
	WHOLE_MAJOR = 6,
	WHOLE_MINOR = 17,
	FLOWS_MAX = 1000,
	CONNECTIONS = 1024,
	RING_BYTES = 1 << 20,
};

static const struct log silent;

/* ---- Objects of another compiler -------------------------------------------------- */

struct object {
	char name[NAME_SIZE];
	void *bytes; /* mapped */
	size_t size;
	void *other_bytes; /* likewise; NULL: there is none */
	size_t other_size;
	bool was_opened;
};

static struct object objects[OBJECTS_MAX];
static size_t n_objects;
static bool has_others, are_others; /* whether they are there, and loaded now */
static const char *left_object;	    /* that is not to be opened; NULL: none */

static void *map_file(const char *path, size_t *ret_size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *bytes;

	if (fd < 0 || fstat(fd, &stat))
		return NULL;
	bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	*ret_size = (size_t)stat.st_size;
	return bytes == MAP_FAILED ? NULL : bytes;
}

static bool add_object(const char *path, const char *others)
{
	struct object *object = &objects[n_objects];
	const char *file = strrchr(path, '/') + 1;
	char other[PATH_MAX];

	object->bytes = map_file(path, &object->size);
	snprintf(object->name, sizeof(object->name), "%.*s",
		 (int)strcspn(file, "."), file);
	if (!object->bytes || n_objects == OBJECTS_MAX - 1)
		return false;
	n_objects++;
	if (!others)
		return true;
	snprintf(other, sizeof(other), "%s/%s", others, file);
	object->other_bytes = map_file(other, &object->other_size);
	return true;
}

static bool find_objects(const char *directory, const char *others)
{
	char pattern[PATH_MAX];
	bool good = true;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*.bpf.o", directory);
	if (glob(pattern, 0, NULL, &found)) {
		fprintf(stderr, "%s: no objects\n", pattern);
		return false;
	}
	for (size_t i = 0; good && i < found.gl_pathc; i++)
		good = add_object(found.gl_pathv[i], others);
	globfree(&found);
	return good;
}

static struct object *find_object(const void *bytes, size_t size)
{
	for (size_t i = 0; i < n_objects; i++)
		if (objects[i].size == size &&
		    !memcmp(objects[i].bytes, bytes, size))
			return &objects[i];
	return NULL;
}

/* ---- What the kernel says of what is loaded ---------------------------------------- */

/* Of a combination: what was loaded, and the first complaint of the verifier. */
static struct said {
	char sets[WORDS_SIZE];
	char program[NAME_SIZE]; /* "": it has not complained */
	char line[WORDS_SIZE];	 /* the last one that it said */
} said;

static char *logs; /* PROGRAMS_MAX of them, and one for programs with a filter */

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void note_set(const char *name)
{
	const char *at = strstr(said.sets, name);
	const size_t len = strlen(said.sets);

	if (at && !at[strlen(name)])
		return;
	snprintf(said.sets + len, sizeof(said.sets) - len, "%s%s",
		 len ? "+" : "", name);
}

/* The last lines are "processed N insns" and, before it, what is wrong. */
static void take_complaint(const char *program, char *log)
{
	char *end = strstr(log, "\nprocessed ");
	const char *line;

	if (!end && starts(log, "processed "))
		return; /* it is not the verifier that refuses */
	end = end ?: log + strlen(log);
	while (end > log && end[-1] == '\n')
		end--;
	*end = '\0';
	line = strrchr(log, '\n');
	line = line ? line + 1 : log;
	/* COMPAT: arguments that this kernel's tracepoints do not have; the library tries others. */
	if (*said.program || starts(line, "invalid bpf_context access"))
		return;
	snprintf(said.program, sizeof(said.program), "%s", program);
	snprintf(said.line, sizeof(said.line), "%s", line);
	if (end - log > LOG_SHOWN)
		log = end - LOG_SHOWN;
	fprintf(stderr, "%s, the verifier's last words:\n%s\n", program, log);
}

struct bpf_object *
__real_bpf_object__open_mem(const void *bytes, size_t size,
			    const struct bpf_object_open_opts *opts);
struct bpf_object *
__wrap_bpf_object__open_mem(const void *bytes, size_t size,
			    const struct bpf_object_open_opts *opts);

struct bpf_object *
__wrap_bpf_object__open_mem(const void *bytes, size_t size,
			    const struct bpf_object_open_opts *opts)
{
	struct object *object = find_object(bytes, size);

	if (!object || (are_others && !object->other_bytes) ||
	    (left_object && !strcmp(object->name, left_object))) {
		errno = ENOENT;
		return NULL;
	}
	object->was_opened = true;
	note_set(object->name);
	return are_others ?
		       __real_bpf_object__open_mem(object->other_bytes,
						   object->other_size, opts) :
		       __real_bpf_object__open_mem(bytes, size, opts);
}

static bool leaves_out; /* iterators that the kernel refuses, whatever they do */
static char left_out[WORDS_SIZE];

static void leave_out(struct bpf_program *program)
{
	const char *name = bpf_program__name(program);
	const size_t len = strlen(left_out);

	if (!bpf_program__autoload(program) || is_to_be_had(program))
		return;
	bpf_program__set_autoload(program, false);
	if (!strstr(left_out, name))
		snprintf(left_out + len, sizeof(left_out) - len, " %s", name);
}

int __real_bpf_object__load(struct bpf_object *object);
int __wrap_bpf_object__load(struct bpf_object *object);

/* A program has a log of its own, which libbpf asks for where it is refused. */
int __wrap_bpf_object__load(struct bpf_object *object)
{
	struct bpf_program *program;
	char *log = logs;
	int err;

	bpf_object__for_each_program(program, object) {
		if (leaves_out)
			leave_out(program);
		*log = '\0';
		bpf_program__set_log_buf(program, log, LOG_SIZE);
		log += LOG_SIZE;
	}
	err = __real_bpf_object__load(object);
	log = logs;
	bpf_object__for_each_program(program, object) {
		if (err && *log)
			take_complaint(bpf_program__name(program), log);
		log += LOG_SIZE;
	}
	return err;
}

struct bpf_link *
__real_bpf_program__attach_iter(const struct bpf_program *program,
				const struct bpf_iter_attach_opts *opts);
struct bpf_link *
__wrap_bpf_program__attach_iter(const struct bpf_program *program,
				const struct bpf_iter_attach_opts *opts);

/* Of what is left out, an error, which libbpf takes for a link to close. */
struct bpf_link *
__wrap_bpf_program__attach_iter(const struct bpf_program *program,
				const struct bpf_iter_attach_opts *opts)
{
	return leaves_out && !is_to_be_had(program) ?
		       (struct bpf_link *)-1L :
		       __real_bpf_program__attach_iter(program, opts);
}

int __real_bpf_prog_load(enum bpf_prog_type type, const char *name,
			 const char *license, const struct bpf_insn *insns,
			 size_t n, const struct bpf_prog_load_opts *opts);
int __wrap_bpf_prog_load(enum bpf_prog_type type, const char *name,
			 const char *license, const struct bpf_insn *insns,
			 size_t n, const struct bpf_prog_load_opts *opts);

/* A program with a filter, which the library loads without libbpf's loader. */
int __wrap_bpf_prog_load(enum bpf_prog_type type, const char *name,
			 const char *license, const struct bpf_insn *insns,
			 size_t n, const struct bpf_prog_load_opts *opts)
{
	const int fd = __real_bpf_prog_load(type, name, license, insns, n, opts);
	const int err = errno;
	struct bpf_prog_load_opts more = *opts;

	if (fd >= 0 || !starts(name, "netobs_"))
		return fd;
	more.log_level = 1;
	more.log_buf = logs;
	more.log_size = LOG_SIZE;
	*logs = '\0';
	__real_bpf_prog_load(type, name, license, insns, n, &more);
	take_complaint(name, logs);
	errno = err;
	return fd;
}

/* ---- Combinations ------------------------------------------------------------------ */

enum { FACTORS_MAX = 8, VALUES_MAX = 8 };

/* An option, and what it may be. */
struct factor {
	const char *name;
	const char *values[VALUES_MAX];
};

struct choice {
	uint8_t of[FACTORS_MAX]; /* values, by factor */
};

struct kind {
	struct factor factors[FACTORS_MAX];
	bool (*is_possible)(const struct choice *choice); /* NULL: all are */
	bool (*is_first)(const struct choice *choice); /* always among those loaded */
	/* @return 0, or -errno */
	int (*load)(const struct choice *choice);
	bool is_optional; /* the kernel may lack what it attaches to */
};

static uint32_t count_values(const struct factor *factor)
{
	uint32_t n = 0;

	while (n < VALUES_MAX && factor->values[n])
		n++;
	return n;
}

static uint32_t count_factors(const struct kind *kind)
{
	uint32_t n = 0;

	while (n < FACTORS_MAX && kind->factors[n].name)
		n++;
	return n;
}

static bool choose_next(const struct kind *kind, struct choice *choice)
{
	for (uint32_t i = count_factors(kind); i--;) {
		if (++choice->of[i] < count_values(&kind->factors[i]))
			return true;
		choice->of[i] = 0;
	}
	return false;
}

/* Pairs of values that have been in a combination. */
struct pairs {
	bool seen[FACTORS_MAX][VALUES_MAX][FACTORS_MAX][VALUES_MAX];
};

enum extent { FEW, PAIRS, ALL };

static enum extent extent = PAIRS;

static uint32_t count_new(const struct kind *kind, struct pairs *pairs,
			  const struct choice *choice, bool marks)
{
	const uint32_t n_factors = count_factors(kind);
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_factors; i++)
		for (uint32_t j = i; j < (extent == FEW ? i + 1 : n_factors);
		     j++) {
			bool *seen =
				&pairs->seen[i][choice->of[i]][j][choice->of[j]];

			n += !*seen;
			*seen |= marks;
		}
	return n;
}

static bool is_possible(const struct kind *kind, const struct choice *choice)
{
	return !kind->is_possible || kind->is_possible(choice);
}

/* The one with the most new pairs. @return false: there are no more */
static bool choose_best(const struct kind *kind, struct pairs *pairs,
			struct choice *ret_choice)
{
	struct choice choice = { 0 };
	uint32_t most = 0;

	do {
		uint32_t n = is_possible(kind, &choice) ?
				     count_new(kind, pairs, &choice, false) :
				     0;

		if (n > most) {
			most = n;
			*ret_choice = choice;
		}
	} while (choose_next(kind, &choice));
	if (most)
		count_new(kind, pairs, ret_choice, true);
	return most;
}

static struct totals {
	uint32_t loaded, refused, absent;
} totals;

static bool is_whole_kernel; /* which has all that programs attach to */

static void print_choice(const struct kind *kind, const struct choice *choice)
{
	const uint32_t n = count_factors(kind);

	for (uint32_t i = 0; i < n; i++)
		printf("%s%s", i ? ", " : "",
		       kind->factors[i].values[choice->of[i]]);
}

/* With iterators that the kernel refuses in any case, or else without. */
static int load_once(const struct kind *kind, const struct choice *choice)
{
	int err;

	leaves_out = false;
	said = (struct said){ 0 };
	err = kind->load(choice);
	if (!err || *said.program)
		return err;
	leaves_out = true;
	said = (struct said){ 0 };
	return kind->load(choice);
}

/* What a kernel lacks, it lacks for the programs of each compiler. */
static bool is_lacking(const struct kind *kind, const struct choice *choice)
{
	bool lacks;

	if (!kind->is_optional || is_whole_kernel)
		return false;
	are_others = false;
	lacks = load_once(kind, choice);
	are_others = has_others;
	return lacks;
}

static void load(const struct kind *kind, const struct choice *choice)
{
	const bool lacks = is_lacking(kind, choice);
	const int err = lacks && !has_others ? -ENOTSUP : load_once(kind, choice);

	printf("%-16s ", said.sets);
	print_choice(kind, choice);
	if (!err && !*said.program) {
		totals.loaded++;
		printf(": loaded\n");
	} else if (lacks || (kind->is_optional && !*said.program)) {
		totals.absent++;
		printf(": not to be had on this kernel: %s\n", strerror(-err));
	} else {
		totals.refused++;
		printf(": refused: %s%s%s\n", said.program,
		       *said.program ? ": " : "",
		       *said.line ? said.line : strerror(-err));
	}
	fflush(stdout);
}

static void load_kind(const struct kind *kind)
{
	struct choice choice = { 0 };
	struct pairs pairs = { 0 };

	do {
		if (!is_possible(kind, &choice) ||
		    !(extent == ALL ||
		      (kind->is_first && kind->is_first(&choice))))
			continue;
		count_new(kind, &pairs, &choice, true);
		load(kind, &choice);
	} while (choose_next(kind, &choice));
	while (choose_best(kind, &pairs, &choice))
		load(kind, &choice);
}

/* ---- Flows -------------------------------------------------------------------------- */

enum { FILTER_NONE, FILTER_ONE, FILTER_INNER, FILTER_LIST };
enum { SAMPLING_OFF, SAMPLING_PACKETS, SAMPLING_FLOWS };
enum { NAT_OFF, NAT_CAST, NAT_NO_CAST };
enum { RTT_OFF, RTT_ON, RTT_NO_QUEUES };
enum {
	FLOW_LINK,
	FLOW_CLOCK,
	FLOW_LANES,
	FLOW_FILTER,
	FLOW_SAMPLING,
	FLOW_RTT,
	FLOW_ALERTS,
	FLOW_NAT,
};

/* By link: others than Ethernet have no VLANs. */
static const char *const expressions[][2] = {
	[FILTER_ONE] = { "tcp port 443 or vlan 7 and host 10.1.0.1",
			 "tcp port 443 or host 10.1.0.1" },
	[FILTER_INNER] = { "udp and inner (tcp or ip6 host 2001:db8::1)",
			   "udp and inner (tcp or ip6 host 2001:db8::1)" },
};

static bool has_nat; /* conntrack is there */

static struct rate rate_chosen(uint8_t sampling)
{
	return sampling == SAMPLING_OFF ? (struct rate){ 0 } :
	       sampling == SAMPLING_PACKETS ?
					  (struct rate){ 10, SAMPLE_PACKETS } :
					  (struct rate){ 10, SAMPLE_FLOWS };
}

static int make_list(uint8_t link, const struct rate *rate,
		     struct filter **ret_filter)
{
	const struct filter_rule rules[] = {
		{ expressions[FILTER_ONE][link], true, *rate },
		{ expressions[FILTER_INNER][link], true, { 0 } },
		{ "ip6 or arp", false, { 0 } },
	};
	const struct filter_rules list = { .rules = rules,
					   .n = ARRAY_SIZE(rules),
					   .accepts_others = true,
					   .rate = *rate };
	char error[FILTER_ERROR_MAX];

	return filter_new_list(&list, ret_filter, &error);
}

static int make_filter(uint8_t kind, uint8_t link, const struct rate *rate,
		       struct filter **ret_filter)
{
	char error[FILTER_ERROR_MAX];
	int err;

	*ret_filter = NULL;
	if (kind == FILTER_NONE)
		return 0;
	if (kind == FILTER_LIST)
		return make_list(link, rate, ret_filter);
	err = filter_new(expressions[kind][link], ret_filter, &error);
	if (!err)
		filter_sample(*ret_filter, rate);
	return err;
}

/* Rules are about connections, and kernels with lanes have none with a filter. */
static bool flows_are_possible(const struct choice *choice)
{
	return (choice->of[FLOW_RTT] || !choice->of[FLOW_ALERTS]) &&
	       (has_nat || !choice->of[FLOW_NAT]);
}

/* Those that have programs for one configuration, with each kind of filter. */
static bool flows_are_first(const struct choice *choice)
{
	return (extent != FEW || choice->of[FLOW_FILTER] == FILTER_NONE) &&
	       choice->of[FLOW_LINK] == LINK_ETHERNET &&
	       choice->of[FLOW_CLOCK] == CLOCK_HOST && !choice->of[FLOW_LANES] &&
	       choice->of[FLOW_FILTER] != FILTER_LIST &&
	       !choice->of[FLOW_SAMPLING] && !choice->of[FLOW_ALERTS] &&
	       choice->of[FLOW_NAT] != NAT_NO_CAST;
}

static int load_flows_of(struct store *store, const struct choice *choice,
			 const struct filter *filter, const struct rate *rate)
{
	struct programs programs;
	int err;

	if (choice->of[FLOW_NAT] == NAT_NO_CAST)
		store->nat.has_cast = false;
	else if (choice->of[FLOW_NAT] && !store->nat.has_cast)
		return 0;  /* COMPAT(<6.2): it is the same as without */
	*said.sets = '\0'; /* maps are those of "flows" */
	err = store_load_programs(store, filter, rate, 0,
				  (enum link_kind)choice->of[FLOW_LINK],
				  &programs);
	if (!err)
		programs_close(&programs);
	return err;
}

static int load_flows(const struct choice *choice)
{
	const struct rate rate = rate_chosen(choice->of[FLOW_SAMPLING]);
	const struct netobs_opts opts = {
		.max_flows = FLOWS_MAX,
		.rtt = choice->of[FLOW_RTT] != 0,
		.max_connections = CONNECTIONS,
		.disable_features = choice->of[FLOW_RTT] == RTT_NO_QUEUES ?
					    1ULL << NETOBS_FEATURE_QUEUES :
					    0,
		.flags = choice->of[FLOW_NAT] != NAT_OFF ? NETOBS_NAT : 0,
	};
	struct store_options options = {
		.opts = &opts,
		.clock = (enum clock_kind)choice->of[FLOW_CLOCK],
		.lanes = choice->of[FLOW_LANES] ? LANES_MAX : 1,
		.rate = rate,
		.has_alerts = choice->of[FLOW_ALERTS],
	};
	struct filter *filter;
	struct store store = { 0 };
	int err = make_filter(choice->of[FLOW_FILTER], choice->of[FLOW_LINK],
			      &rate, &filter);

	options.filter = filter;
	err = err ?: store_open(&store, &options, &silent);
	err = err ?: load_flows_of(&store, choice, filter, &rate);
	store_close(&store);
	filter_free(filter);
	return err;
}

static const struct kind flows = {
	.factors = {
		{ "link", { "Ethernet", "IP" } },
		{ "clock", { "of the host", "of packets" } },
		{ "lanes", { "1 lane", "4 lanes" } },
		{ "filter", { "all", "filter", "inner filter", "rules" } },
		{ "sampling",
		  { "not sampled", "sampled packets", "sampled flows" } },
		{ "rtt", { "no rtt", "rtt", "rtt without queues" } },
		{ "alerts", { "no alerts", "alerts" } },
		{ "nat", { "no nat", "nat", "nat without casts" } },
	},
	.is_possible = flows_are_possible,
	.is_first = flows_are_first,
	.load = load_flows,
};

/* ---- Filters of alerts --------------------------------------------------------------- */

static void ignore_alert(void *ctx, const struct alert_event *event)
{
	(void)ctx;
	(void)event;
}

static int set_filter(struct store *store, const struct filter *filter)
{
	struct alerts alerts;
	int err = alerts_open(&alerts, store, ignore_alert, NULL, &silent);

	*said.sets = '\0';
	if (err)
		return err;
	err = alerts_set_filter(&alerts, filter, 1);
	alerts_close(&alerts);
	return err;
}

static int load_alerts(const struct choice *choice)
{
	static const struct netobs_opts opts = {
		.max_flows = FLOWS_MAX,
		.rtt = 1,
		.max_connections = CONNECTIONS,
	};
	const struct store_options options = {
		.opts = &opts,
		.clock = choice->of[0] ? CLOCK_PACKET : CLOCK_HOST,
		.lanes = 1,
		.has_alerts = true,
	};
	struct filter_rule rules[FILTER_RULES_MAX];
	const struct filter_rules list = {
		.rules = rules, .n = choice->of[1] ? ARRAY_SIZE(rules) : 1
	};
	char error[FILTER_ERROR_MAX];
	struct filter *filter = NULL;
	struct store store = { 0 };
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		rules[i] = (struct filter_rule){
			expressions[i % 2 ? FILTER_INNER : FILTER_ONE][LINK_ETHERNET],
			true,
			{ 0 }
		};
	err = filter_new_list(&list, &filter, &error);
	err = err ?: store_open(&store, &options, &silent);
	err = err ?: set_filter(&store, filter);
	store_close(&store);
	filter_free(filter);
	return err;
}

static const struct kind alerts_kind = {
	.factors = { { "clock", { "coarse", "of packets" } },
		     { "rules", { "one rule", "64 rules" } } },
	.load = load_alerts,
};

/* ---- Capture, drops, sessions, connections, the tracer ------------------------------- */

static int ignore_packet(void *ctx, const struct capture_packet *packet)
{
	(void)ctx;
	(void)packet;
	return 0;
}

static int load_capture(const struct choice *choice)
{
	const struct rate all = { 0 };
	struct packets packets = { 0 };
	struct programs programs;
	struct filter *filter;
	int err = make_filter(choice->of[1], choice->of[0], &all, &filter);
	const struct packets_options options = {
		.snap_length = choice->of[2] ? 96 : 65535,
		.rate = choice->of[3] ? 50 : 0,
		.buffer_bytes = RING_BYTES,
		.filter = filter,
	};

	err = err ?: packets_open(&packets, &options, ignore_packet, NULL, &silent);
	if (!err)
		err = packets_load_programs(
			&packets, 0, (enum link_kind)choice->of[0], &programs);
	if (!err)
		programs_close(&programs);
	packets_close(&packets);
	filter_free(filter);
	return err;
}

static const struct kind capture = {
	.factors = { { "link", { "Ethernet", "IP" } },
		     { "filter", { "all", "filter", "inner filter" } },
		     { "length", { "whole packets", "beginnings" } },
		     { "rate", { "any rate", "a rate" } } },
	.load = load_capture,
};

static int load_stub(const struct choice *choice)
{
	const struct object *stub = objects;
	struct bpf_object *object;
	int err;

	(void)choice;
	while (stub < objects + n_objects && strcmp(stub->name, "stub"))
		stub++;
	if (stub == objects + n_objects)
		return -ENOENT;
	object = __wrap_bpf_object__open_mem(stub->bytes, stub->size, NULL);
	err = object ? __wrap_bpf_object__load(object) : -errno;
	bpf_object__close(object);
	return err;
}

static const struct kind stub_kind = {
	.factors = { { "attached by", { "clsact" } } },
	.load = load_stub,
};

static int load_leaving(const struct choice *choice)
{
	(void)choice;
	return store_try_leaving(&silent);
}

static const struct kind leaving = {
	.factors = { { "queues", { "of this host" } } },
	.load = load_leaving,
	.is_optional = true,
};

static int load_drops(const struct choice *choice)
{
	struct drop_programs programs = { 0 };
	int err = drop_programs_open(&programs, choice->of[0], &silent);

	drop_programs_close(&programs);
	return err;
}

static const struct kind drops = {
	.factors = { { "reasons", { "reasons", "no reasons" } } },
	.load = load_drops,
	.is_optional = true,
};

static int load_sessions(const struct choice *choice)
{
	const struct session_knobs knobs = { .ring_bytes = RING_BYTES,
					     .wants_owners = choice->of[0] };
	struct session_programs programs;
	int err = session_programs_open(&programs, &knobs, &silent);

	if (err)
		return err;
	err = programs.io_error ?: programs.accept_error;
	session_programs_close(&programs);
	return err;
}

static const struct kind sessions = {
	.factors = { { "owners", { "sessions", "owners" } } },
	.load = load_sessions,
	.is_optional = true,
};

static int ignore_report(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

/* COMPAT(<6.17): others than on this kernel. */
static int load_connects(const struct choice *choice)
{
	struct connects connects = { 0 };
	int err;

	left_object = choice->of[0] ? "connect" : NULL;
	err = connects_open(&connects, ignore_report, NULL);
	connects_close(&connects);
	left_object = NULL;
	return err;
}

static const struct kind connects_kind = {
	.factors = { { "by", { "control groups", "traced functions" } } },
	.load = load_connects,
	.is_optional = true,
};

enum { TRACE_LAYER, TRACE_ACKS, TRACE_DATAGRAMS, TRACE_NETFILTER, TRACE_IDLE };

static int load_trace(const struct choice *choice)
{
	const uint8_t layer = choice->of[TRACE_LAYER];
	const struct trace_knobs knobs = {
		.slots = CONNECTIONS,
		.ring_bytes = RING_BYTES,
		.max_rate = 1000,
		.layers = layer ? 1U << (layer - 1) : 0,
		.wants_acks = choice->of[TRACE_ACKS],
		.wants_datagrams = choice->of[TRACE_DATAGRAMS],
		.wants_netfilter = choice->of[TRACE_NETFILTER],
		.is_idle = choice->of[TRACE_IDLE],
	};
	struct trace_programs programs = { 0 };
	int err = trace_programs_open(&programs, &knobs, ignore_report, NULL,
				      &silent);

	if (!err && knobs.wants_netfilter)
		err = programs.netfilter_error;
	trace_programs_close(&programs);
	return err;
}

static const struct kind trace = {
	.factors = {
		{ "layers",
		  { "all layers", "socket", "tcp", "qdisc", "device", "ip" } },
		{ "acknowledgements", { "data", "acknowledgements" } },
		{ "datagrams", { "streams", "datagrams" } },
		{ "netfilter", { "no netfilter", "netfilter" } },
		{ "connections", { "all connections", "added connections" } },
	},
	.load = load_trace,
	.is_optional = true,
};

static int load_threads(const struct choice *choice)
{
	struct threads *threads = NULL;
	int err;

	(void)choice;
	err = threads_open(&threads, NULL, NULL, &silent);
	threads_close(threads);
	return err;
}

static const struct kind threads_kind = {
	.factors = { { "threads", { "of traced connections" } } },
	.load = load_threads,
	.is_optional = true,
};

/* ---- All of it ---------------------------------------------------------------------- */

static const struct kind *const kinds[] = {
	&flows, &alerts_kind, &capture,	      &stub_kind, &leaving,
	&drops, &sessions,    &connects_kind, &trace,	  &threads_kind,
};

static void look_at_kernel(void)
{
	int major = 0, minor = 0;
	struct nat_layout layout;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	is_whole_kernel = major > WHOLE_MAJOR ||
			  (major == WHOLE_MAJOR && minor >= WHOLE_MINOR);
	has_nat = !nat_find_layout(&layout, &silent);
	probe_iterators();
	printf("Linux %s%s\n", name.release,
	       has_nat ? "" : ", without conntrack: no nat");
}

/* Maps and a program, with all of a verifier that others than root do not get. */
static bool may_load(void)
{
	const struct choice plain = { 0 };

	return geteuid() == 0 && load_capture(&plain) != -EPERM;
}

static int print_totals(void)
{
	size_t n_sets = 0;

	for (size_t i = 0; i < n_objects; i++)
		n_sets += objects[i].was_opened;
	printf("%u combinations of %zu objects: %u loaded, %u refused, %u not to be had on this kernel\n",
	       totals.loaded + totals.refused + totals.absent, n_sets,
	       totals.loaded, totals.refused, totals.absent);
	if (*left_out)
		printf("the kernel has no such iterators:%s\n", left_out);
	return totals.refused || !totals.loaded;
}

int main(int argc, char **argv)
{
	char **directories = argv + 1;

	if (argc > 1 && !strcmp(argv[1], "--few"))
		extent = FEW;
	if (argc > 1 && !strcmp(argv[1], "--all"))
		extent = ALL;
	directories += extent != PAIRS;
	if (!directories[0] || (directories[1] && directories[2])) {
		fprintf(stderr, "usage: matrix [--few|--all] OBJECTS [OTHERS]\n");
		return 2;
	}
	libbpf_set_print(NULL);
	logs = mmap(NULL, (size_t)PROGRAMS_MAX * LOG_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (logs == MAP_FAILED || !find_objects(directories[0], directories[1]))
		return 1;
	if (!may_load()) {
		fprintf(stderr,
			"matrix: this process may not load BPF programs\n");
		return SKIPPED;
	}
	has_others = are_others = directories[1];
	look_at_kernel();
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		load_kind(kinds[i]);
	return print_totals();
}
