// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Programs on interfaces: attached, detached, and following interfaces that come and go. */
#include "attach/attach.h"
#include "api/context.h"
#include "lib_context.h"
#include "lib_test.h"
#include "lib_wait.h"
#include "lib_witness.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netobs/probe.h>
#include <sys/ioctl.h>

static const struct rate all_packets;

enum { LO = 1, PORT = 40000, LONG_MS = 60000, PATIENCE_MS = 100 };

struct fixture {
	struct lab lab;
	struct witness witness;
	struct log log;
	struct store store;
	struct programs programs;
	struct netobs *ctx;
};

/* Once: it takes seconds in an emulated machine. */
static int load(void **state)
{
	static const struct netobs_opts opts = { .max_flows = 1000 };
	const struct store_options options = { .opts = &opts };
	static struct fixture f;
	int err;

	*state = &f;
	f.log = witness_log(&f.witness);
	err = store_open(&f.store, &options, &f.log);
	return err ? err :
		     store_load_programs(&f.store, NULL, &all_packets, 0,
					 LINK_ETHERNET, &f.programs);
}

static int unload(void **state)
{
	struct fixture *f = *state;

	programs_close(&f->programs);
	store_close(&f->store);
	return 0;
}

static int setup(void **state)
{
	struct fixture *f = *state;

	lab_enter(&f->lab);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	netobs_free(TAKE_PTR(f->ctx));
	witness_clear(&f->witness);
	lab_leave(&f->lab);
	return 0;
}

static uint64_t seen(const struct fixture *f)
{
	struct counters counters;

	store_read_counters(&f->store, 0, &counters);
	return counters.seen.packets;
}

static const struct {
	bool tcx, clsact, ingress, egress;
} ways[] = {
	{ true, false, true, true },  { true, false, true, false },
	{ true, false, false, true }, { false, true, true, true },
	{ false, true, true, false }, { false, true, false, true },
	{ true, true, true, true },
};

/* COMPAT(<6.6): tcx alone is no way then. */
static bool is_possible(size_t way)
{
	return ways[way].clsact || lab_has_tcx();
}

static struct attach_options options_of(const struct fixture *f, size_t way)
{
	return (struct attach_options){
		.log = &f->log,
		.use_tcx = ways[way].tcx,
		.use_clsact = ways[way].clsact,
		.directions = { ways[way].ingress, ways[way].egress },
	};
}

#define CASE(name) TEST_OF(name, struct fixture *f, setup, teardown)

CASE(attached_programs_see_the_directions_asked_for)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct attach_options options = options_of(f, i);
		struct attachment attachment = ATTACHMENT_NONE;
		uint64_t before = seen(f), expected;

		if (!is_possible(i))
			continue;
		assert_false(is_attached(&attachment));
		assert_int_equal(
			attach(&options, LO, "lo", &f->programs, &attachment), 0);
		assert_true(is_attached(&attachment));
		lab_send(PORT, 10);
		/* Nobody listens: each may be answered by ICMP, both ways too. */
		expected = 10 * (ways[i].ingress + ways[i].egress);
		assert_in_range(seen(f) - before, expected, 2 * expected);
		detach(&f->log, &attachment, LO);
		assert_false(is_attached(&attachment));
		assert_true(lab_is_bare("lo"));
		before = seen(f);
		lab_send(PORT, 10);
		assert_int_equal(seen(f), before);
	}
	assert_int_equal(f->witness.errors, 0);
}

CASE(attach_to_no_interface_leaves_nothing)
{
	uint32_t tried = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct attach_options options = options_of(f, i);
		struct attachment attachment = ATTACHMENT_NONE;

		if (!is_possible(i))
			continue;
		assert_int_equal(attach(&options, 4711, "ghost0", &f->programs,
					&attachment),
				 -ENODEV);
		assert_false(is_attached(&attachment));
		tried++;
	}
	assert_int_equal(f->witness.errors, tried);
	assert_true(witness_read(&f->witness, "ghost0"));
}

/* The second direction cannot be attached: the first must not stay. */
CASE(attach_that_fails_half_way_leaves_nothing)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct attach_options options = options_of(f, i);
		struct attachment attachment = ATTACHMENT_NONE;
		struct programs broken = { { f->programs.fds[0], -1 } };

		if (!ways[i].egress)
			continue;
		assert_true(attach(&options, LO, "lo", &broken, &attachment) < 0);
		assert_false(is_attached(&attachment));
		assert_true(lab_is_bare("lo"));
	}
}

CASE(clsact_of_somebody_else_stays)
{
	struct attach_options options = options_of(f, 3);
	struct attachment attachment = ATTACHMENT_NONE;
	char shown[1024];

	lab_run("tc qdisc add dev lo clsact");
	assert_int_equal(attach(&options, LO, "lo", &f->programs, &attachment),
			 0);
	detach(&f->log, &attachment, LO);
	lab_read("tc qdisc show dev lo", shown, sizeof(shown));
	assert_non_null(strstr(shown, "clsact"));
	lab_read("tc filter show dev lo ingress", shown, sizeof(shown));
	assert_string_equal(shown, "");
}

CASE(several_observers_share_a_clsact)
{
	enum { OBSERVERS = 3 };
	struct attach_options options = options_of(f, 3);

	/* In whatever order they leave, the last one tidies up. */
	for (int first = 0; first < OBSERVERS; first++) {
		struct attachment attachments[OBSERVERS];
		uint64_t before;

		for (int i = 0; i < OBSERVERS; i++) {
			attachments[i] = ATTACHMENT_NONE;
			assert_int_equal(attach(&options, LO, "lo",
						&f->programs, &attachments[i]),
					 0);
		}
		before = seen(f);
		lab_send(PORT, 1);
		assert_true(seen(f) - before >= 2 * OBSERVERS);
		for (int i = 0; i < OBSERVERS; i++) {
			assert_false(lab_is_bare("lo"));
			detach(&f->log, &attachments[(first + i) % OBSERVERS],
			       LO);
		}
		assert_true(lab_is_bare("lo"));
	}
	assert_int_equal(f->witness.errors, 0);
}

CASE(dropped_attachment_of_a_vanished_interface)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct attach_options options = options_of(f, i);
		struct attachment attachment = ATTACHMENT_NONE;
		uint32_t ifindex;

		if (!is_possible(i))
			continue;
		lab_run("ip link add v0 type veth peer name v1");
		ifindex = if_nametoindex("v0");
		assert_int_equal(attach(&options, ifindex, "v0", &f->programs,
					&attachment),
				 0);
		lab_run("ip link del v0");
		if (i % 2)
			attachment_drop(&attachment);
		else
			detach(&f->log, &attachment, ifindex);
		assert_false(is_attached(&attachment));
	}
	assert_int_equal(f->witness.errors, 0);
}

static void observe(struct fixture *f, const char *const *interfaces,
		    const char *const *exclude, uint64_t disable)
{
	NETOBS_OPTS(netobs_opts, opts);

	opts.interfaces = interfaces;
	opts.exclude = exclude;
	opts.interval_ms = LONG_MS;
	opts.max_flows = 1000;
	opts.disable_features = disable;
	witness_listen(&f->witness, &opts);
	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	assert_int_equal(netobs_start(f->ctx), 0);
}

/* One more message after the one that matters: it has been read. */
static void settle(struct fixture *f)
{
	lab_run("ip link set lo mtu 60000");
	lab_run("ip link set lo mtu 65536");
	while (netobs_poll(f->ctx, PATIENCE_MS) > 0)
		;
}

/* Whether they all are there in time depends on the kernel, and its load. */
CASE(interfaces_that_follow_later_are_announced)
{
	const uint32_t pairs = 60 / lab_shrink(), all = 2 * pairs + 1;

	for (uint32_t i = 0; i < pairs; i++)
		lab_run("ip link add v%u type veth peer name w%u", i, i);
	observe(f, NULL, NULL, 1 << NETOBS_FEATURE_EXPEDITE);
	assert_int_equal(witness_read(&f->witness, "in the background"),
			 context_interfaces(f->ctx) < all);
	context_await_interfaces(f->ctx, all);
}

/* A tun device that claims to be of @hardware, until its descriptor is closed. */
static int make_tun(const char *name, int hardware)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, TUNSETIFF, &request), 0);
	assert_int_equal(ioctl(fd, TUNSETLINK, hardware), 0);
	return fd;
}

CASE(link_type_that_is_not_supported_is_logged_once)
{
	cleanup_fd int tun = make_tun("t0", ARPHRD_IEEE80211_RADIOTAP);

	observe(f, NULL, NULL, 0);
	assert_int_equal(f->witness.warnings, 1);
	assert_true(witness_read(&f->witness, "t0: link type 803"));
	for (int mtu = 1000; mtu < 1005; mtu++) {
		lab_run("ip link set t0 mtu %d", mtu);
		settle(f);
	}
	assert_int_equal(f->witness.warnings, 1);
	/* Another one is another matter. */
	assert_int_equal(ioctl(tun, TUNSETLINK, ARPHRD_IEEE80211), 0);
	lab_run("ip link set t0 mtu 1200");
	settle(f);
	assert_true(witness_read(&f->witness, "t0: link type 801"));
	assert_int_equal(f->witness.warnings, 2);
}

/* Also what a thread was still about to attach when the time for detaching was over. */
CASE(what_is_attached_during_a_stop_is_detached)
{
	enum { PAIRS = 8 };
	struct observation *observation;
	char name[IF_NAMESIZE];
	int ret;

	for (int tcx = 0; tcx < 2; tcx++) {
		observe(f, NULL, NULL,
			1 << (tcx ? NETOBS_FEATURE_EXPEDITE : NETOBS_FEATURE_TCX));
		observation = &f->ctx->observation;
		for (int i = 0; i < PAIRS; i++)
			lab_run("ip link add v%d type veth peer name w%d", i, i);
		await_by(observation->attacher.batch,
			 assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0));
		observation->leave_ns = clock_boot_ns(); /* it is over at once */
		ret = 0;
		netobs_stop(f->ctx);
		await_by(ret == -ECANCELED,
			 ret = netobs_poll(f->ctx, PATIENCE_MS));
		for (int i = 0; i < PAIRS; i++) {
			snprintf(name, sizeof(name), "v%d", i);
			lab_await_bare(name);
			lab_run("ip link del %s", name);
		}
		netobs_free(TAKE_PTR(f->ctx));
	}
	assert_int_equal(f->witness.errors, 0);
}

/* A program of another that ends the chain, first of all. */
static int load_foreign(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "foreign", "GPL", code,
			     ARRAY_SIZE(code), NULL);
}

static void add_foreign_filter(int program, uint32_t priority)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = LO,
		    .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, filter, .prog_fd = program,
		    .priority = priority);

	assert_int_equal(bpf_tc_hook_create(&hook), 0);
	assert_int_equal(bpf_tc_attach(&hook, &filter), 0);
}

static void assert_shadowed(struct fixture *f, const struct netobs_opts *opts,
			    uint32_t expected)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_new(opts, &f->ctx), 0);
	assert_int_equal(netobs_start(f->ctx), 0);
	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_int_equal(stats.shadowed, expected);
	netobs_free(TAKE_PTR(f->ctx));
}

CASE(programs_before_ours_are_counted)
{
	cleanup_fd int program = load_foreign(), link = -1;
	NETOBS_OPTS(netobs_opts, opts);

	assert_true(program >= 0);
	if (!lab_has_tcx()) /* COMPAT(<6.6): then there is none that could be */
		return assert_shadowed(f, &opts, 0);
	link = tcx_link(program, LO, EGRESS, NETOBS_ATTACH_FIRST);
	assert_true(link >= 0);
	opts.attach_order = NETOBS_ATTACH_FIRST;
	assert_shadowed(f, &opts, 0);
	opts.attach_order = NETOBS_ATTACH_LAST;
	assert_shadowed(f, &opts, 1);
}

CASE(filters_before_ours_are_counted)
{
	cleanup_fd int program = load_foreign();
	NETOBS_OPTS(netobs_opts, opts);

	assert_true(program >= 0);
	opts.disable_features = 1 << NETOBS_FEATURE_TCX;
	assert_shadowed(f, &opts, 0);
	add_foreign_filter(program, 1);
	assert_shadowed(f, &opts, 1);
}

static const struct netif *netif_of(const struct fixture *f, uint32_t ifindex)
{
	const struct netif *netif = host_find(&f->ctx->host, 0, ifindex);

	assert_non_null(netif);
	return netif;
}

/* A bridge with one port, v0, whose peer is v1. */
static void observe_bridge(struct fixture *f, uint32_t *ret_bridge,
			   uint32_t *ret_port)
{
	lab_run("ip link add br0 type bridge");
	lab_run("ip link add v0 type veth peer name v1");
	lab_run("ip link set v0 master br0");
	observe(f, NULL, NULL, 0);
	*ret_bridge = if_nametoindex("br0");
	*ret_port = if_nametoindex("v0");
	assert_int_equal(netif_of(f, *ret_port)->stack,
			 netif_of(f, *ret_bridge)->stack);
	assert_int_not_equal(netif_of(f, if_nametoindex("v1"))->stack,
			     netif_of(f, *ret_bridge)->stack);
	assert_int_equal(netif_of(f, *ret_bridge)->level, 1);
}

/* Or its count would be added to the bridge's count of the same packets. */
CASE(interface_that_went_away_stays_in_its_stack)
{
	uint32_t bridge, port;

	observe_bridge(f, &bridge, &port);
	lab_run("ip link del v0");
	context_await_interfaces(f->ctx, 2);
	assert_int_equal(netif_of(f, port)->stack, netif_of(f, bridge)->stack);
	assert_int_equal(netif_of(f, bridge)->level, 1);
	assert_string_equal(netif_of(f, port)->name, "v0");
}

CASE(master_that_went_away_keeps_its_stack)
{
	uint32_t bridge, port;

	observe_bridge(f, &bridge, &port);
	lab_run("ip link del br0");
	context_await_interfaces(f->ctx, 3);
	assert_int_equal(netif_of(f, port)->stack, netif_of(f, bridge)->stack);
	assert_true(netif_of(f, bridge)->level > netif_of(f, port)->level);
}

CASE(ports_that_change_bridges_follow)
{
	uint32_t bridge, port;

	observe(f, NULL, NULL, 0);
	lab_run("ip link add br0 type bridge");
	lab_run("ip link add v0 type veth peer name v1");
	context_await_interfaces(f->ctx, 4);
	bridge = if_nametoindex("br0");
	port = if_nametoindex("v0");
	assert_int_not_equal(netif_of(f, port)->stack,
			     netif_of(f, bridge)->stack);
	lab_run("ip link set v0 master br0");
	settle(f);
	assert_int_equal(netif_of(f, port)->stack, netif_of(f, bridge)->stack);
}

int main(void)
{
	return tests_run(load, unload);
}
