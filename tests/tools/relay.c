// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A link with delay and loss, for kernels without netem:
 *
 *   relay [-d DELAY_US] [-l LOSS_PPM] [-r LATE_PPM] [-s SEED] [-w FILE] NETNS_A NETNS_B INTERFACE
 *
 * makes a TAP device of that name in both namespaces (names of ip-netns(8)), and passes each
 * frame from one to the other after DELAY_US, the same in both directions. LOSS_PPM of a
 * million frames are dropped, and written to FILE, as pcap. LATE_PPM take LATE_MS longer, so that
 * others overtake them. It prints "ready" when both devices are up, and runs until it is killed,
 * which removes them.
 */
#define _GNU_SOURCE
#include "tun.h"

#include <poll.h>

enum { LATE_MS = 10, WAYS = 4 /* to and fro; then those of late frames */ };
enum { FRAME_MAX = 2048, BURST = 64, QUEUE_MAX = 1 << 17 };

struct frame {
	struct frame *next;
	int64_t due_ns;
	size_t len;
	uint8_t bytes[FRAME_MAX];
};

/* Frames on their way to a device, in order. */
struct way {
	int from, to;
	struct frame *first, **last;
	unsigned int n;
};

static int64_t delay_ns;
static uint32_t loss_ppm, late_ppm;
static FILE *dropped; /* NULL: they are not written */

static void write_words(FILE *file, const uint32_t *words, size_t n)
{
	if (fwrite(words, sizeof(*words), n, file) != n)
		fail("cannot write");
}

static FILE *open_pcap(const char *path)
{
	/* Nanoseconds, version 2.4, UTC, whole frames, Ethernet */
	const uint32_t header[] = { 0xa1b23c4d, 4 << 16 | 2, 0, 0, FRAME_MAX, 1 };
	FILE *file = fopen(path, "we");

	if (!file)
		fail(path);
	write_words(file, header, sizeof(header) / sizeof(*header));
	if (fflush(file)) /* it is read while this runs */
		fail("cannot write");
	return file;
}

static void write_dropped(const uint8_t *bytes, size_t len)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	const uint32_t header[] = { (uint32_t)now.tv_sec, (uint32_t)now.tv_nsec,
				    (uint32_t)len, (uint32_t)len };

	write_words(dropped, header, sizeof(header) / sizeof(*header));
	if (fwrite(bytes, 1, len, dropped) != len || fflush(dropped))
		fail("cannot write");
}

static void add_frame(struct way *way, struct frame *frame, int64_t wait_ns)
{
	frame->due_ns = now_ns(CLOCK_MONOTONIC) + wait_ns;
	frame->next = NULL;
	*way->last = frame;
	way->last = &frame->next;
	way->n++;
}

/* @late: for frames that take longer */
static void take_frames(struct way *way, struct way *late)
{
	for (int i = 0; i < BURST && way->n < QUEUE_MAX; i++) {
		struct frame *frame = malloc(sizeof(*frame));
		ssize_t len = frame ? read(way->from, frame->bytes,
					   sizeof(frame->bytes)) :
				      -1;

		if (len <= 0 || next_random() % 1000000 < loss_ppm) {
			if (len > 0 && dropped)
				write_dropped(frame->bytes, (size_t)len);
			free(frame);
			if (len <= 0)
				return;
			continue;
		}
		frame->len = (size_t)len;
		if (late_ppm && next_random() % 1000000 < late_ppm)
			add_frame(late, frame, delay_ns + LATE_MS * 1000000LL);
		else
			add_frame(way, frame, delay_ns);
	}
}

/* @return the way of the frame that is due first; NULL: there is no frame */
static struct way *find_next(struct way ways[WAYS])
{
	struct way *next = NULL;

	for (int i = 0; i < WAYS; i++)
		if (ways[i].first &&
		    (!next || ways[i].first->due_ns < next->first->due_ns))
			next = &ways[i];
	return next;
}

static void pass_frame(struct way *way)
{
	struct frame *frame = way->first;

	/* A frame for which the device has no room is lost, as on a real link. */
	if (write(way->to, frame->bytes, frame->len) < 0 && dropped)
		write_dropped(frame->bytes, frame->len);
	way->first = frame->next;
	if (!way->first)
		way->last = &way->first;
	way->n--;
	free(frame);
}

static void pass_frames(struct way ways[WAYS])
{
	const int64_t now = now_ns(CLOCK_MONOTONIC);
	struct way *next;

	while ((next = find_next(ways)) && next->first->due_ns <= now)
		pass_frame(next);
}

/* Until a frame is due; < 0: there is none */
static int64_t wait_ns(struct way ways[WAYS])
{
	const struct way *next = find_next(ways);
	const int64_t ns =
		next ? next->first->due_ns - now_ns(CLOCK_MONOTONIC) : -1;

	return next && ns < 0 ? 0 : ns;
}

static void relay(int a, int b)
{
	struct way ways[WAYS] = { { .from = a, .to = b },
				  { .from = b, .to = a },
				  { .to = b },
				  { .to = a } };
	struct pollfd fds[2] = { { .fd = a, .events = POLLIN },
				 { .fd = b, .events = POLLIN } };

	for (int i = 0; i < WAYS; i++)
		ways[i].last = &ways[i].first;
	for (;;) {
		int64_t ns = wait_ns(ways);
		struct timespec wait = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

		if (ppoll(fds, 2, ns < 0 ? NULL : &wait, NULL) < 0)
			fail("ppoll");
		for (int i = 0; i < 2; i++)
			take_frames(&ways[i], &ways[i + 2]);
		pass_frames(ways);
	}
}

int main(int argc, char **argv)
{
	int option, a, b;

	while ((option = getopt(argc, argv, "d:l:r:s:w:")) >= 0) {
		long long value = optarg ? atoll(optarg) : 0;

		if (option == 'd')
			delay_ns = value * 1000;
		else if (option == 'l')
			loss_ppm = (uint32_t)value;
		else if (option == 'r')
			late_ppm = (uint32_t)value;
		else if (option == 's')
			random_state = (uint64_t)value;
		else if (option == 'w')
			dropped = open_pcap(optarg);
		else
			return 2;
	}
	if (argc - optind != 3) {
		fprintf(stderr, "relay: see the head of relay.c\n");
		return 2;
	}
	be_a_link();
	a = make_tun(argv[optind], argv[optind + 2], IFF_TAP);
	b = make_tun(argv[optind + 1], argv[optind + 2], IFF_TAP);
	puts("ready");
	fflush(stdout);
	relay(a, b);
	return 0;
}
