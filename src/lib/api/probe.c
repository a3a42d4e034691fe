/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds the features that work, by trying them. Attaching is tried on the loopback
 * interface of a network namespace made for it, by a child process: setting up
 * a namespace is not something to do to the caller's thread. It takes
 * CAP_SYS_ADMIN, which flows do not need: see tcx_probe() for the other way.
 */
#include "attach/attach.h"
#include "nat/translations.h"
#include "drops/drop_feed.h"
#include "trace/trace_programs.h"
#include "engine/map.h"
#include "who/sessions.h"
#include "host/netns.h"
#include "flows/pipeline.h"
#include "base/privilege.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <netobs/probe.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

_Static_assert((int)NETOBS_REFUSAL_MAX == (int)LOG_REFUSED_MAX,
	       "a refusal of the log fits into that of a feature");

/* State that the probes share: a loaded datapath when there can be one. */
struct trial {
	struct log log;
	struct store store;
	struct programs programs;
	int errors[NETOBS_FEATURES]; /* of those that are tried together */
	char reasons[NETOBS_FEATURES][NETOBS_REFUSAL_MAX];
};

static int attach_loopback(struct trial *trial, bool use_tcx)
{
	struct attach_options options = {
		.log = &trial->log,
		.use_tcx = use_tcx,
		.use_clsact = !use_tcx,
		.directions = { true, true },
	};
	struct attachment attachment = ATTACHMENT_NONE;
	uint32_t loopback = 1; /* in every namespace */
	int err;

	if (unshare(CLONE_NEWNET))
		return use_tcx ? tcx_probe(trial->programs.fds[0]) :
				 clsact_probe("clsact");
	err = attach(&options, loopback, "lo", &trial->programs, &attachment);
	if (!err)
		detach(&trial->log, &attachment, loopback);
	return err;
}

/* Attach in a child process, in a namespace of its own. */
static int try_attach(struct trial *trial, bool use_tcx)
{
	int status;
	pid_t child;

	if (trial->errors[NETOBS_FEATURE_PROGRAMS])
		return trial->errors[NETOBS_FEATURE_PROGRAMS];
	child = fork();
	if (child < 0)
		return -errno;
	if (!child)
		_exit(-attach_loopback(trial, use_tcx));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int probe_tcx(struct trial *trial)
{
	return try_attach(trial, true);
}

static int probe_clsact(struct trial *trial)
{
	return try_attach(trial, false);
}

static int probe_test_run(struct trial *trial)
{
	static const uint8_t frame[64];
	const struct test_packet packet = { .bytes = frame,
					    .len = sizeof(frame),
					    .wire_len = sizeof(frame),
					    .ns = 1 };
	int err = trial->errors[NETOBS_FEATURE_PROGRAMS];

	return err ?: programs_test_run(trial->programs.fds[0], &packet);
}

static int probe_bpf(struct trial *trial)
{
	cleanup_fd int array = map_make_array(NULL, 8, 16, 0);

	(void)trial;
	return array < 0 ? array : 0;
}

static int probe_btf(struct trial *trial)
{
	cleanup_fd int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);

	(void)trial;
	return fd < 0 ? -errno : 0;
}

static int probe_netns(struct trial *trial)
{
	cleanup_fd int own = netns_open_own();
	int back, err;

	(void)trial;
	if (own < 0)
		return own;
	err = netns_enter(own, &back);
	if (!err)
		netns_leave(back);
	return err;
}

static int probe_expedite(struct trial *trial)
{
	(void)trial;
	return expedite_probe();
}

static int probe_nat(struct trial *trial)
{
	struct nat_layout layout;

	return nat_find_layout(&layout, &trial->log);
}

static int ignore_report(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static int probe_queues(struct trial *trial)
{
	return store_try_leaving(&trial->log);
}

/* The programs are attached for a moment, and their reports are ignored. */
static int probe_connect(struct trial *trial)
{
	struct connects connects;
	int err = connects_open(&connects, ignore_report, NULL);

	(void)trial;
	connects_close(&connects);
	return err;
}

struct probe {
	const char *name;
	const char *description;
	enum netobs_feature_need need;
	uint64_t privileges;
	int (*run)(struct trial *trial); /* NULL: trial->errors has the outcome */
	const char *without;
};

#define PROBE(FEATURE, name, need, privileges, run, description, without) \
	[NETOBS_FEATURE_##                                                \
		FEATURE] = { name,	 description, NETOBS_NEED_##need, \
			     privileges, run,	      without }

static const struct probe probes[NETOBS_FEATURES] = {
	PROBE(BPF, "bpf", REQUIRED, PRIVILEGE_MAPS, probe_bpf,
	      "BPF maps and programs", "nothing works"),
	PROBE(PROGRAMS, "programs", REQUIRED, PRIVILEGE_PROGRAMS, NULL,
	      "flow programs that the kernel accepts, with their maps",
	      "nothing can be observed"),
	PROBE(TCX, "tcx", EITHER, PRIVILEGE_PROGRAMS, probe_tcx, "tcx links",
	      "clsact filters are used: after kill -9 an inert stub stays attached"),
	PROBE(CLSACT, "clsact", EITHER, PRIVILEGE_PROGRAMS, probe_clsact,
	      "clsact qdisc with BPF filters",
	      "there is no way to attach if tcx is missing, too"),
	PROBE(TEST_RUN, "test_run", OPTIONAL, PRIVILEGE_PROGRAMS,
	      probe_test_run, "BPF_PROG_TEST_RUN with a context",
	      "capture files cannot be replayed"),
	PROBE(BTF, "btf", OPTIONAL, 0, probe_btf, "kernel type information (BTF)",
	      "netobsctl sessions, [sessions] of the service and --process cannot run"),
	PROBE(NETNS, "netns", OPTIONAL, PRIVILEGE_NETNS, probe_netns,
	      "access to other network namespaces",
	      "interfaces in other namespaces (netns:...) cannot be observed"),
	PROBE(EXPEDITE, "expedite", OPTIONAL, 0, probe_expedite,
	      "expedited grace periods (/sys/kernel/rcu_expedited)",
	      "attaching to 1,000 interfaces takes half a minute instead of a second, unless by clsact"),
	PROBE(SESSIONS, "sessions", OPTIONAL, PRIVILEGE_PROGRAMS, NULL,
	      "BPF programs that follow TCP sockets",
	      "netobsctl sessions, [sessions] of the service and --process cannot run (the feature came with Linux 5.12, and needs BTF)"),
	PROBE(SESSION_IO, "session_io", OPTIONAL, PRIVILEGE_PROGRAMS, NULL,
	      "tracepoints of sending and receiving",
	      "sockets that change hands belong to the process that opened them, and new ones of UDP to none"),
	PROBE(SESSION_ACCEPT, "session_accept", OPTIONAL, PRIVILEGE_PROGRAMS,
	      NULL, "cgroup v2 hook of accepted connections",
	      "a server's process is known once it sends, receives or closes"),
	PROBE(NAT, "nat", OPTIONAL, 0, probe_nat,
	      "conntrack, and its type information (BTF)",
	      "--nat cannot run; if conntrack is a module, nf_conntrack has to be loaded"),
	PROBE(CONNECT, "connect", OPTIONAL, PRIVILEGE_PROGRAMS, probe_connect,
	      "the addresses that sockets ask for, before BPF programs of others replace them",
	      "--nat does not name services of load balancers at the socket (the feature came with Linux 6.17, or with 6.2 where functions can be traced)"),
	PROBE(DROPS, "drops", OPTIONAL, PRIVILEGE_PROGRAMS, NULL,
	      "tracepoint of dropped packets",
	      "netobsctl drops, --drops, and [drops] of the service cannot run: BTF is needed"),
	PROBE(DROP_REASONS, "drop_reasons", OPTIONAL, PRIVILEGE_PROGRAMS, NULL,
	      "reasons of dropped packets",
	      "only the function that drops a packet is known (the feature came with Linux 5.17)"),
	PROBE(TRACE, "trace", OPTIONAL, PRIVILEGE_PROGRAMS, NULL,
	      "tracepoints of TCP, queueing disciplines and interfaces",
	      "netobsctl trace cannot run (the feature came with Linux 5.12, and needs BTF)"),
	PROBE(TRACE_SOCKETS, "trace_sockets", OPTIONAL, PRIVILEGE_PROGRAMS,
	      NULL, "tracepoints of sockets that are written or readable",
	      "netobsctl trace cannot measure how long bytes wait in sockets (the feature came with Linux 6.3)"),
	PROBE(TRACE_NETFILTER, "trace_netfilter", OPTIONAL, PRIVILEGE_PROGRAMS,
	      NULL, "links of BPF programs to netfilter's hooks",
	      "netobsctl trace --netfilter sees no hooks of netfilter (the feature came with Linux 6.4)"),
	PROBE(SOCKET_LISTS, "socket_lists", OPTIONAL, PRIVILEGE_PROGRAMS, NULL,
	      "BPF iterators over the storage of sockets",
	      "open connections are listed by the files of processes, without those that no process has open"),
	PROBE(QUEUES, "queues", OPTIONAL, PRIVILEGE_PROGRAMS, probe_queues,
	      "tracepoint of packets that leave queueing disciplines",
	      "with --rtt, path RTT and application latency are unknown where data goes out: BTF is needed"),
};

#undef PROBE

#define BIT_OF(FEATURE) (1ULL << NETOBS_FEATURE_##FEATURE)

/* Features whose outcomes come from loading the programs of one part. */
static const uint64_t of_sessions = BIT_OF(SESSIONS) | BIT_OF(SESSION_IO) |
				    BIT_OF(SESSION_ACCEPT) |
				    BIT_OF(SOCKET_LISTS);
static const uint64_t of_drops = BIT_OF(DROPS) | BIT_OF(DROP_REASONS);
static const uint64_t of_trace = BIT_OF(TRACE) | BIT_OF(TRACE_SOCKETS) |
				 BIT_OF(TRACE_NETFILTER);

#undef BIT_OF

/* @err of a feature whose programs were loaded last, with the kernel's reason. */
static void set_outcome(struct trial *trial, enum netobs_feature_id feature,
			int err)
{
	trial->errors[feature] = err;
	if (err)
		snprintf(trial->reasons[feature], NETOBS_REFUSAL_MAX, "%s",
			 log_refused_program());
}

/* The programs are attached for a moment, and their reports are ignored. */
static void try_sessions(struct trial *trial)
{
	const struct session_knobs knobs = { .ring_bytes = 64 << 10 };
	struct session_programs programs;
	int err = session_programs_open(&programs, &knobs, &trial->log);

	set_outcome(trial, NETOBS_FEATURE_SESSIONS, err);
	trial->errors[NETOBS_FEATURE_SOCKET_LISTS] = err ?: programs.list_error;
	trial->errors[NETOBS_FEATURE_SESSION_IO] = err ?: programs.io_error;
	trial->errors[NETOBS_FEATURE_SESSION_ACCEPT] =
		err ?: programs.accept_error;
	session_programs_close(&programs);
}

static void try_drops(struct trial *trial)
{
	struct drop_programs programs;
	int err = drop_programs_open(&programs, false, &trial->log);

	set_outcome(trial, NETOBS_FEATURE_DROPS, err);
	if (!err && !programs.has_reasons)
		trial->errors[NETOBS_FEATURE_DROP_REASONS] = -ENOTSUP;
	else
		trial->errors[NETOBS_FEATURE_DROP_REASONS] = err;
	if (!err)
		drop_programs_close(&programs);
}

static void try_trace(struct trial *trial)
{
	const uint32_t sockets = 1U << TRACE_SENT | 1U << TRACE_READY;
	const struct trace_knobs knobs = { .slots = TRACE_SLOTS_MIN,
					   .ring_bytes = 64 << 10,
					   .max_rate = 1,
					   .wants_netfilter = true };
	struct trace_programs programs;
	int err = trace_programs_open(&programs, &knobs, ignore_report, NULL,
				      &trial->log);

	set_outcome(trial, NETOBS_FEATURE_TRACE, err);
	trial->errors[NETOBS_FEATURE_TRACE_SOCKETS] =
		err ?: (programs.missing & sockets ? -ENOTSUP : 0);
	trial->errors[NETOBS_FEATURE_TRACE_NETFILTER] =
		err ?: programs.netfilter_error;
	trace_programs_close(&programs);
}

/* The programs of features that are all among @disable are not loaded. */
static void trial_open(struct trial *trial, uint64_t disable,
		       const struct log *log)
{
	static const struct netobs_opts opts = { .max_flows = 1024 };
	const struct store_options options = { .opts = &opts,
					       .clock = CLOCK_PACKET };

	int err;

	*trial = (struct trial){ .log = *log, .programs = { { -1, -1 } } };
	err = store_open(&trial->store, &options, &trial->log);
	if (!err)
		err = store_load_programs(&trial->store, NULL, &options.rate, 0,
					  LINK_ETHERNET, &trial->programs);
	set_outcome(trial, NETOBS_FEATURE_PROGRAMS, err);
	if (of_sessions & ~disable)
		try_sessions(trial);
	if (of_drops & ~disable)
		try_drops(trial);
	if (of_trace & ~disable)
		try_trace(trial);
}

static void trial_close(struct trial *trial)
{
	programs_close(&trial->programs);
	store_close(&trial->store);
}

static bool can_run(const struct netobs_feature *features)
{
	bool can_attach = false;

	for (int i = 0; i < NETOBS_FEATURES; i++) {
		if (features[i].need == NETOBS_NEED_REQUIRED &&
		    !features[i].available)
			return false;
		can_attach |= features[i].need == NETOBS_NEED_EITHER &&
			      features[i].available;
	}
	return can_attach;
}

/* Run the probe of feature @i. */
static struct netobs_feature probe_feature(struct trial *trial, int i,
					   bool is_disabled)
{
	const struct probe *probe = &probes[i];
	int err = is_disabled ? -ENOTSUP : trial->errors[i];
	struct netobs_feature feature;

	if (!is_disabled && probe->run)
		err = probe->run(trial);
	feature = (struct netobs_feature){
		.name = probe->name,
		.description = probe->description,
		.without = probe->without,
		.need = probe->need,
		.available = !err,
		.error = err,
		.missing_capabilities = privilege_missing(err, probe->privileges),
	};
	if (!is_disabled)
		memcpy(feature.refusal, trial->reasons[i],
		       sizeof(feature.refusal));
	return feature;
}

int netobs_probe(uint64_t disable,
		 void (*on_log)(int level, const char *message, void *user),
		 void *user, struct netobs_feature *ret_features, size_t n,
		 size_t size)
{
	const struct log log = { .write = on_log, .user = user };
	struct netobs_feature features[NETOBS_FEATURES];
	struct trial trial;

	if (!ret_features)
		return -EINVAL;
	trial_open(&trial, disable, &log);
	for (int i = 0; i < NETOBS_FEATURES; i++)
		features[i] = probe_feature(&trial, i, disable >> i & 1);
	trial_close(&trial);
	memset(ret_features, 0, n * size);
	for (size_t i = 0; i < min_u64(n, NETOBS_FEATURES); i++)
		memcpy((char *)ret_features + i * size, &features[i],
		       min_u64(size, sizeof(features[i])));
	return can_run(features);
}
