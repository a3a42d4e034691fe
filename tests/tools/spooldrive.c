// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Gives a sink records at a rate, as a drain would, and looks at what that takes:
 *
 *   spooldrive SPEC RATE
 *
 * Until SIGTERM; then what is pending is sent. Each tenth of a second is a line: the
 * longest and the sum of the times that the calls took, in microseconds of the
 * clock; records written in all and pending; memory in bytes. The last is what became of the
 * records.
 * Record n, from 0, has n + 1 bytes.
 */
#include <netobs/netobs.h>
#include <netobs/sink.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TENTH_NS = 100000000, NS = 1000000000, DRAIN_MS = 120000 };

struct drive {
	struct netobs_sink *sink;
	int64_t rate, written;
	int64_t longest, sum; /* of the calls in this tenth */
};

static volatile sig_atomic_t is_over;

static void end(int number)
{
	(void)number;
	is_over = 1;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (int64_t)NS + now.tv_nsec;
}

static void print_line(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_INFO)
		fprintf(stderr, "%s\n", message);
}

static void took(struct drive *drive, int64_t since)
{
	int64_t time = now_ns() - since;

	drive->sum += time;
	if (time > drive->longest)
		drive->longest = time;
}

static void write_next(struct drive *drive)
{
	static const struct netobs_point point = { .ifindex = 2,
						   .direction = NETOBS_INGRESS,
						   .name = "eth0" };
	const struct netobs_flow flow = {
		.sz = sizeof(flow),
		.has = NETOBS_HAS_PORTS,
		.start_ns = NS,
		.end_ns = NS,
		.packets = 1,
		.bytes = (uint64_t)drive->written + 1,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.ethertype = 0x0800,
		.proto = 17,
		.n_points = 1,
		.point_size = sizeof(struct netobs_point),
		.points = &point,
	};

	netobs_sink_write(drive->sink, &flow.record);
	drive->written++;
}

/* The records of one interval, in one go. */
static void drain(struct drive *drive, int64_t until)
{
	int64_t since = now_ns();

	while (drive->written < until)
		write_next(drive);
	netobs_sink_flush(drive->sink);
	took(drive, since);
}

static long resident(void)
{
	long pages = 0, unused;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%ld %ld", &unused, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void tell(struct drive *drive)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	netobs_sink_stats_get(drive->sink, &stats);
	printf("{\"longest_us\":%lld,\"sum_us\":%lld,\"written\":%lld,\"pending\":%llu,\"memory\":%ld}\n",
	       (long long)drive->longest / 1000, (long long)drive->sum / 1000,
	       (long long)drive->written,
	       (unsigned long long)stats.pending.records, resident());
	fflush(stdout);
	drive->longest = drive->sum = 0;
}

static void run(struct drive *drive)
{
	int64_t start = now_ns(), next = start;

	for (int64_t tenth = 1; !is_over; tenth++) {
		next += TENTH_NS;
		while (now_ns() < next && !is_over) {
			struct pollfd fd = { .fd = netobs_sink_fd(drive->sink),
					     .events = POLLIN };
			int64_t since;

			if (poll(&fd, 1, 1) <= 0)
				continue;
			since = now_ns();
			netobs_sink_dispatch(drive->sink);
			took(drive, since);
		}
		drain(drive, drive->rate * tenth / 10);
		tell(drive);
	}
}

int main(int argc, char **argv)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .on_log = print_line);
	struct drive drive = { .rate = argc == 3 ? atoll(argv[2]) : 0 };
	char stats[8192];

	if (drive.rate <= 0 || netobs_sink_open(argv[1], &opts, &drive.sink))
		return 2;
	signal(SIGTERM, end);
	run(&drive);
	netobs_sink_wait(drive.sink, DRAIN_MS);
	netobs_sink_stats_json(drive.sink, stats, sizeof(stats));
	printf("%s\n", stats);
	netobs_sink_close(drive.sink);
	return 0;
}
