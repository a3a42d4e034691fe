// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Captures through the public API: packets, interfaces, statistics, files, and their ends. */
#include "lib_context.h"
#include "lib_test.h"
#include "lib_wait.h"
#include "capture/capture.h"
#include "filter/filter.h"

#include <netobs/capture.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum { LO = 1, PORT = 40000, PACKETS = 50, FRAME = LAB_BYTES + 14 };

struct fixture {
	struct lab lab;
	struct netobs *capture;
	struct netobs_packet_writer *writer;
	uint32_t packets[NETOBS_DIRECTIONS]; /* [NETOBS_BOTH]: all */
	uint32_t wrong;			     /* of another length */
	uint32_t unordered;
	int64_t last_ns;
	int result;	 /* of on_packet() */
	uint32_t ending; /* the only packet with that result; 0: all have it */
	size_t written;	 /* bytes */
	uint64_t lost;	 /* as the latest statistics block has it */
	char error[NETOBS_ERROR_MAX];
};

static int on_packet(const struct netobs_packet *packet, void *user)
{
	struct fixture *f = user;

	f->packets[packet->direction]++;
	f->packets[NETOBS_BOTH]++;
	f->unordered += packet->time_ns < f->last_ns;
	f->last_ns = packet->time_ns;
	f->wrong += packet->length != FRAME || packet->captured != FRAME ||
		    packet->bytes[12] != 0x08;
	if (f->writer && netobs_packet_writer_add(f->writer, packet))
		return -EIO;
	return !f->ending || f->packets[NETOBS_BOTH] == f->ending ? f->result : 0;
}

/* The option of a statistics block that has the packets that the kernel lost. */
static uint64_t find_lost(const uint8_t *block, size_t len)
{
	enum { OPTIONS_AT = 20, OS_DROPPED = 7 };
	uint64_t lost = 0;
	uint16_t option[2];

	for (size_t at = OPTIONS_AT; at + sizeof(option) + sizeof(lost) < len;
	     at += sizeof(option) + (option[1] + 3) / 4 * 4) {
		memcpy(option, block + at, sizeof(option));
		if (option[0] == OS_DROPPED)
			memcpy(&lost, block + at + sizeof(option), sizeof(lost));
	}
	return lost;
}

static int take_bytes(const void *bytes, size_t len, void *user)
{
	enum { STATISTICS = 5 };
	struct fixture *f = user;
	uint32_t type;

	assert_non_null(bytes);
	memcpy(&type, bytes, sizeof(type));
	if (type == STATISTICS)
		f->lost = find_lost(bytes, len);
	f->written += len;
	return 0;
}

static void open_fixture(struct fixture *f)
{
	lab_enter(&f->lab);
}

static void close_fixture(struct fixture *f)
{
	netobs_packet_writer_free(f->writer);
	netobs_free(f->capture);
	lab_leave(&f->lab);
}

TEST_FIXTURE(struct fixture, open_fixture, close_fixture)

static struct netobs_capture_opts options(struct fixture *f)
{
	static const char *const interfaces[] = { "lo", NULL };

	return (struct netobs_capture_opts){
		.sz = sizeof(struct netobs_capture_opts),
		.interfaces = interfaces,
		/* Not the errors that come back from a port where nothing listens. */
		.filter = "udp dst port 40000",
		.on_packet = on_packet,
		.user = f,
		.error = &f->error,
	};
}

static void start(struct fixture *f)
{
	const struct netobs_capture_opts opts = options(f);

	assert_int_equal(netobs_capture_new(&opts, &f->capture), 0);
	assert_int_equal(netobs_start(f->capture), 0);
}

static void end(struct fixture *f)
{
	context_stop(f->capture);
	assert_int_equal(netobs_dispatch(f->capture), -ECANCELED);
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(packets_are_delivered_and_counted)
{
	struct netobs_capture_interface interface = { .sz = sizeof(interface) };
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };

	start(f);
	lab_send(PORT, PACKETS);
	end(f);
	assert_int_equal(f->packets[NETOBS_INGRESS], PACKETS);
	assert_int_equal(f->packets[NETOBS_EGRESS], PACKETS);
	assert_int_equal(f->wrong, 0);
	assert_int_equal(netobs_capture_stats_get(f->capture, &stats), 0);
	assert_int_equal(stats.matched, 2 * PACKETS);
	assert_int_equal(stats.captured, 2 * PACKETS);
	assert_int_equal(stats.lost + stats.limited, 0);
	assert_int_equal(stats.interfaces, 1);
	assert_int_equal(stats.attached, 0);
	assert_int_equal(netobs_capture_interface(f->capture, 0, &interface), 0);
	assert_string_equal(interface.name, "lo");
	assert_int_equal(interface.ifindex, LO);
	assert_int_equal(interface.link_type, NETOBS_LINK_ETHERNET);
	assert_int_equal(interface.matched, 2 * PACKETS);
	assert_int_equal(netobs_capture_interface(f->capture, 1, &interface),
			 -ENOENT);
	lab_await_bare("lo");
}

CASE(a_callback_ends_the_call)
{
	int ret = 0;

	f->result = -EDOM;
	start(f);
	lab_send(PORT, PACKETS);
	await_by(ret, ret = netobs_poll(f->capture, 100));
	assert_int_equal(ret, -EDOM);
	assert_int_equal(f->packets[NETOBS_BOTH], 1);
	f->result = 0;
	end(f);
	assert_int_equal(f->packets[NETOBS_BOTH], 2 * PACKETS);
}

/* Those that come while programs are taken away are captured and counted, or neither. */
CASE(stops_amid_packets_with_all_accounted_for)
{
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };
	struct netobs_capture_opts opts = options(f);
	pid_t sender;

	opts.disable_features = 1 << NETOBS_FEATURE_TCX;
	assert_int_equal(netobs_capture_new(&opts, &f->capture), 0);
	assert_int_equal(netobs_start(f->capture), 0);
	sender = fork();
	if (!sender) {
		alarm(10);
		for (;;)
			lab_send(PORT, PACKETS);
	}
	await_by(f->packets[NETOBS_BOTH], netobs_poll(f->capture, 100));
	end(f);
	assert_int_equal(netobs_capture_stats_get(f->capture, &stats), 0);
	assert_true(stats.captured > 0);
	assert_int_equal(stats.matched,
			 stats.captured + stats.limited + stats.lost);
	usleep(20000);
	assert_int_equal(netobs_capture_stats_get(f->capture, &stats), 0);
	assert_int_equal(stats.matched,
			 stats.captured + stats.limited + stats.lost);
	kill(sender, SIGKILL);
	waitpid(sender, NULL, 0);
}

CASE(a_result_ends_reading_in_the_middle)
{
	static const int results[] = { -EDOM, -EAGAIN, 7 };

	start(f);
	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		uint32_t before = f->packets[NETOBS_BOTH];
		int ret = 0;

		f->ending = before + PACKETS / 2;
		f->result = results[i];
		lab_send(PORT, PACKETS);
		await_by(ret == results[i], ret = netobs_poll(f->capture, 100));
		assert_int_equal(f->packets[NETOBS_BOTH], f->ending);
		await_by(f->packets[NETOBS_BOTH] >= before + 2 * PACKETS,
			 assert_true(netobs_poll(f->capture, 100) >= 0));
		assert_int_equal(f->packets[NETOBS_BOTH], before + 2 * PACKETS);
	}
	end(f);
}

CASE(a_file_is_written_in_whole_blocks)
{
	NETOBS_OPTS(netobs_packet_writer_opts, opts, .write = take_bytes,
		    .user = f);
	size_t before;

	assert_int_equal(netobs_packet_writer_new(&opts, &f->writer), -EINVAL);
	start(f);
	opts.capture = f->capture;
	opts.format = 7;
	assert_int_equal(netobs_packet_writer_new(&opts, &f->writer), -EINVAL);
	opts.format = NETOBS_PCAPNG;
	assert_int_equal(netobs_packet_writer_new(&opts, &f->writer), 0);
	before = f->written;
	assert_int_equal(before % 4, 0);
	lab_send(PORT, PACKETS);
	end(f);
	assert_true(f->written >= before + 2 * PACKETS * FRAME);
	assert_int_equal(f->written % 4, 0);
	before = f->written;
	assert_int_equal(netobs_packet_writer_stats(f->writer), 0);
	assert_true(f->written > before);
}

/* Losses of the time between the end of one file and the beginning of the next one. */
CASE(losses_between_two_files_are_in_the_second)
{
	struct netobs_capture_opts opts = options(f);
	NETOBS_OPTS(netobs_packet_writer_opts, writer, .write = take_bytes,
		    .user = f);
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };
	uint64_t before;

	opts.buffer_bytes = 1 << 20;
	assert_int_equal(netobs_capture_new(&opts, &f->capture), 0);
	assert_int_equal(netobs_start(f->capture), 0);
	writer.capture = f->capture;
	assert_int_equal(netobs_packet_writer_new(&writer, &f->writer), 0);
	while (!stats.lost) { /* nothing is read */
		lab_send(PORT, PACKETS);
		netobs_capture_stats_get(f->capture, &stats);
	}
	assert_int_equal(netobs_packet_writer_stats(f->writer), 0);
	before = f->lost;
	assert_true(before > 0);
	lab_send(PORT, PACKETS);
	assert_int_equal(netobs_packet_writer_restart(f->writer), 0);
	lab_send(PORT, PACKETS);
	end(f);
	assert_int_equal(netobs_packet_writer_stats(f->writer), 0);
	assert_int_equal(netobs_capture_stats_get(f->capture, &stats), 0);
	assert_int_equal(before + f->lost, stats.lost);
	assert_int_equal(f->lost, 4 * PACKETS);
	assert_int_equal(netobs_packet_writer_restart(NULL), -EINVAL);
}

static int move_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* A host with one CPU has one ring buffer: it still has the order. */
CASE(packets_of_several_cpus_are_in_order)
{
	cpu_set_t all;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	start(f);
	for (int i = 0; i < PACKETS; i++) {
		move_to_cpu(i % 2);
		lab_send(PORT, 1);
	}
	sched_setaffinity(0, sizeof(all), &all);
	end(f);
	assert_int_equal(f->packets[NETOBS_BOTH], 2 * PACKETS);
	assert_int_equal(f->unordered, 0);
}

CASE(packets_of_one_cpu_may_fill_the_buffer)
{
	enum {
		BUFFER = 4 << 20,
		RECORD = 264, /* of such a packet, with headers */
	};
	struct netobs_capture_opts opts = options(f);
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };
	cpu_set_t all;

	opts.buffer_bytes = BUFFER;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(netobs_capture_new(&opts, &f->capture), 0);
	assert_int_equal(netobs_start(f->capture), 0);
	move_to_cpu(0);
	while (!stats.lost) { /* nothing is read */
		lab_send(PORT, PACKETS);
		netobs_capture_stats_get(f->capture, &stats);
	}
	sched_setaffinity(0, sizeof(all), &all);
	end(f);
	assert_int_equal(netobs_capture_stats_get(f->capture, &stats), 0);
	assert_in_range(stats.captured, BUFFER / RECORD * 9 / 10,
			BUFFER / RECORD);
	assert_int_equal(stats.matched, stats.captured + stats.lost);
	assert_int_equal(f->unordered, 0);
}

/* Where each takes a grace period that is not expedited, which is the case with tcx. */
CASE(a_start_that_is_to_stop_waits_for_no_more_interfaces)
{
	/* COMPAT(<6.6): filters do not wait. */
	const int pairs = !lab_has_tcx() ? 1 : lab_shrink() > 1 ? 8 : 32;
	struct netobs_capture_opts opts = options(f);
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };

	for (int i = 0; i < pairs; i++)
		lab_run("ip link add v%d type veth peer name w%d", i, i);
	opts.interfaces = NULL;
	opts.disable_features = 1 << NETOBS_FEATURE_EXPEDITE;
	assert_int_equal(netobs_capture_new(&opts, &f->capture), 0);
	netobs_stop(f->capture);
	assert_int_equal(netobs_start(f->capture), 0);
	assert_int_equal(netobs_capture_stats_get(f->capture, &stats), 0);
	if (lab_has_tcx())
		assert_in_range(stats.attached, 0, 2 * pairs - 1);
	end(f);
	assert_int_equal(netobs_capture_stats_get(f->capture, &stats), 0);
	assert_int_equal(stats.matched, 0);
	/* It may be detached in the background, one interface after the other. */
	lab_await_bare("v0");
}

CASE(wrong_options_are_refused)
{
	const struct {
		const char *name;
		struct netobs_capture_opts opts;
	} cases[] = {
		{ "on_packet", { .on_packet = NULL } },
		{ "direction",
		  { .on_packet = on_packet, .direction = NETOBS_DIRECTIONS } },
		{ "attach_order", { .on_packet = on_packet, .attach_order = 2 } },
		{ "snap_length",
		  { .on_packet = on_packet, .snap_length = 262145 } },
		{ "buffer_bytes", { .on_packet = on_packet, .buffer_bytes = 1 } },
		{ "flags", { .on_packet = on_packet, .flags = 2 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netobs_capture_opts opts = cases[i].opts;

		opts.sz = sizeof(opts);
		opts.error = &f->error;
		assert_int_equal(netobs_capture_new(&opts, &f->capture), -EINVAL);
		assert_non_null(strstr(f->error, cases[i].name));
	}
	assert_int_equal(netobs_capture_new(NULL, &f->capture), -EINVAL);
	assert_int_equal(netobs_start(NULL), -EINVAL);
	assert_int_equal(netobs_dispatch(NULL), -EINVAL);
	netobs_stop(NULL);
	netobs_free(NULL);
}

CASE(interfaces_that_are_not_there_are_errors)
{
	static const char *const nothing[] = { "nosuch0", NULL };
	struct netobs_capture_opts opts = options(f);

	opts.interfaces = nothing;
	assert_int_equal(netobs_capture_new(&opts, &f->capture), 0);
	assert_int_equal(netobs_dispatch(f->capture), -EINVAL);
	assert_int_equal(netobs_start(f->capture), -ENODEV);
	assert_non_null(strstr(netobs_last_error(f->capture), "nosuch0"));
	assert_int_equal(netobs_start(f->capture), -EALREADY);
}

CASE(nothing_is_left_open)
{
	int before = lab_count_fds();

	start(f);
	lab_send(PORT, PACKETS);
	netobs_free(TAKE_PTR(f->capture));
	lab_await_fds(before);
	lab_await_bare("lo");
}

/* With and without a filter. */
TEST(programs_of_other_directions_are_not_loaded)
{
	static const bool has[NETOBS_DIRECTIONS][2] = {
		[NETOBS_BOTH] = { true, true },
		[NETOBS_INGRESS] = { true, false },
		[NETOBS_EGRESS] = { false, true },
	};
	char error[FILTER_ERROR_MAX];
	struct filter *filters[2] = { NULL };
	const struct log silent = { 0 };

	assert_int_equal(filter_new("udp", &filters[1], &error), 0);
	for (int i = 0; i < 2 * NETOBS_DIRECTIONS; i++) {
		const struct packets_options options = {
			.snap_length = CAPTURE_SNAP_MAX,
			.buffer_bytes = 1 << 20,
			.direction = i / 2,
			.filter = filters[i % 2],
		};
		struct programs programs;
		struct packets packets;

		assert_int_equal(
			packets_open(&packets, &options, NULL, NULL, &silent), 0);
		assert_int_equal(packets_load_programs(&packets, 0,
						       LINK_ETHERNET, &programs),
				 0);
		for (int d = INGRESS; d <= EGRESS; d++)
			assert_int_equal(programs.fds[d] >= 0, has[i / 2][d]);
		programs_close(&programs);
		packets_close(&packets);
	}
	filter_free(filters[1]);
}
