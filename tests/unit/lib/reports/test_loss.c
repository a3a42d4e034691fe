// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Lost bytes of the service map, from reports of hosts along a way that loses packets. The truth is what the
 * model of the way has dropped. NETOBS_TEST_CASES: how many connections.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include <stdio.h>
#include <string.h>

#include <netobs/services.h>

#include "base/conversation.h"

enum { HOSTS_MAX = 3, SEGMENTS_MAX = 120, LINES_MAX = 4096, LINE_MAX = 640 };
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };

/* A record that a host will write, or a part of its counts. */
struct sums {
	uint64_t packets, bytes, again, samples;
	unsigned int flags;
};

struct line {
	uint32_t host;
	uint64_t again;
	bool is_removed;
	char text[LINE_MAX];
};

struct way {
	uint32_t hosts, header;
	uint32_t loss, copies, again, cut; /* percent */
	bool has_nat; /* the second of three hosts translates the client's address */
	struct sums open[HOSTS_MAX][2];
	bool is_seen[HOSTS_MAX][SEGMENTS_MAX];
	struct line lines[LINES_MAX];
	uint32_t n_lines;
	uint64_t lost, copied, removed_again; /* bytes of data */
};

static bool chance(uint32_t percent)
{
	return test_below(100) < percent;
}

/* ---- What hosts write -------------------------------------------------------------------- */

/* Of the client: itself, or the NAT. */
static const char *const clients[] = { "10.0.0.1", "10.0.2.1" };

/* The members that show what NAT does, as its host has them. */
static const char *nat_members(char *buf, size_t size, int back)
{
	const uint8_t client[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	const uint8_t server[16] = { [10] = 0xff, 0xff, 10, 0, 1, 1 };
	const uint64_t id =
		conversation_id(&(struct conversation){ .src = client,
							.dst = server,
							.src_port = 40000,
							.dst_port = 80,
							.proto = 6 });
	const char *const ends[] = { back ? "10.0.1.1" : clients[1],
				     back ? clients[0] : "10.0.1.1" };

	snprintf(buf, size,
		 ",\"XlatSrcAddr\":\"%s\",\"XlatSrcPort\":%d,\"XlatDstAddr\":\"%s\","
		 "\"XlatDstPort\":%d,\"ConversationId\":\"%016llx\"",
		 ends[0], back ? 80 : 40000, ends[1], back ? 40000 : 80,
		 (unsigned long long)id);
	return buf;
}

/* @back: from the server; @rtt_us: to the receiver */
static void write_line(char *buf, uint32_t host, int back,
		       const struct sums *sums, uint32_t rtt_us,
		       const char *client, const char *more)
{
	static uint64_t time_ms;
	const char *const ends[] = { back ? "10.0.1.1" : client,
				     back ? client : "10.0.1.1" };

	snprintf(buf, LINE_MAX,
		 "{\"HostName\":\"host-%u\",\"SrcAddr\":\"%s\",\"SrcPort\":%d,"
		 "\"DstAddr\":\"%s\",\"DstPort\":%d,\"Proto\":6,\"Packets\":%llu,"
		 "\"Bytes\":%llu,\"BytesRetransmitted\":%llu,\"RttSamples\":%llu,"
		 "\"TimeFlowRttNs\":%u000,\"Flags\":%u,\"TimeFlowStartMs\":%llu%s}",
		 host, ends[0], back ? 80 : 40000, ends[1], back ? 40000 : 80,
		 (unsigned long long)sums->packets,
		 (unsigned long long)sums->bytes, (unsigned long long)sums->again,
		 (unsigned long long)sums->samples, rtt_us, sums->flags,
		 (unsigned long long)++time_ms, more);
}

static void end_record(struct way *way, uint32_t host, int back)
{
	struct sums *sums = &way->open[host][back];
	struct line *line = &way->lines[way->n_lines++];
	const uint32_t hops = back ? host : way->hosts - 1 - host;
	const bool is_behind = way->has_nat && (host == 2 || (host == 1 && back));
	char more[256] = "";

	assert_true(way->n_lines <= LINES_MAX);
	*line = (struct line){ .host = host, .again = sums->again };
	if (way->has_nat && host == 1)
		nat_members(more, sizeof(more), back);
	write_line(line->text, host, back, sums, 50 + 400 * hops,
		   clients[is_behind], more);
	*sums = (struct sums){ 0 };
}

/* ---- The way ----------------------------------------------------------------------------- */

static void observe(struct way *way, uint32_t host, int back, uint32_t segment,
		    uint32_t len, unsigned int flags)
{
	struct sums *sums = &way->open[host][back];

	sums->packets++;
	sums->bytes += way->header + len;
	if (way->is_seen[host][segment])
		sums->again += len;
	way->is_seen[host][segment] |= len > 0;
	sums->samples += len || flags & SYN;
	sums->flags |= flags;
	if (chance(way->cut))
		end_record(way, host, back);
}

/* @return whether it arrives, from the @hop of its sender's host on */
static bool pass(struct way *way, int back, uint32_t hop, uint32_t segment,
		 uint32_t len, unsigned int flags)
{
	bool arrives = false;

	observe(way, back ? way->hosts - 1 - hop : hop, back, segment, len,
		flags);
	if (hop + 1 == way->hosts)
		return true;
	if (chance(way->copies)) {
		way->copied += len;
		arrives = pass(way, back, hop + 1, segment, len, flags);
	}
	if (chance(way->loss)) {
		way->lost += len;
		return arrives;
	}
	return pass(way, back, hop + 1, segment, len, flags) || arrives;
}

/* Send it until it has arrived, and some more often. */
static void deliver(struct way *way, int back, uint32_t segment, uint32_t len,
		    unsigned int flags)
{
	while (!pass(way, back, 0, segment, len, flags) || chance(way->again))
		;
	pass(way, !back, 0, segment, 0, ACK);
}

static void talk(struct way *way)
{
	const uint32_t n = 1 + test_below(SEGMENTS_MAX - 1);
	const uint32_t largest = chance(30) ? 60 : 1448;
	const uint32_t back = test_below(101);

	deliver(way, 0, 0, 0, SYN);
	deliver(way, 1, 0, 0, SYN | ACK);
	for (uint32_t i = 0; i < n; i++)
		deliver(way, chance(back), 1 + i, 1 + test_below(largest), ACK);
	deliver(way, 0, 0, 0, FIN | ACK);
	deliver(way, 1, 0, 0, FIN | ACK);
	for (uint32_t host = 0; host < way->hosts; host++)
		for (int end = 0; end < 2; end++)
			if (way->open[host][end].packets)
				end_record(way, host, end);
}

/* Of each host, a line stays. */
static uint32_t remove_lines(struct way *way)
{
	uint32_t left[HOSTS_MAX] = { 0 }, n = 0;

	for (uint32_t i = 0; i < way->n_lines; i++)
		left[way->lines[i].host]++;
	for (uint32_t tries = way->n_lines ? test_below(4) : 0; tries; tries--) {
		struct line *line = &way->lines[test_below(way->n_lines)];

		if (line->is_removed || left[line->host] == 1)
			continue;
		left[line->host]--;
		line->is_removed = true;
		way->removed_again += line->again;
		n++;
	}
	return n;
}

/* ---- Tests ------------------------------------------------------------------------------- */

static void add_line(struct netobs_services *services, const char *text)
{
	char error[96] = "";

	if (netobs_services_add_json(services, NULL, text, error,
				     sizeof(error)) < 0)
		fail_msg("%s: %s", text, error);
}

static void report_all(struct way *way, struct netobs_services *services)
{
	for (uint32_t i = way->n_lines; i; i--) {
		const uint32_t other = test_below(i);
		const struct line line = way->lines[other];

		way->lines[other] = way->lines[i - 1];
		if (line.is_removed)
			continue;
		add_line(services, line.text);
		if (chance(20))
			add_line(services, line.text);
	}
}

static struct way *make_way(void)
{
	struct way *way = calloc(1, sizeof(*way));

	assert_non_null(way);
	way->hosts = 2 + test_below(2);
	way->has_nat = way->hosts == 3 && chance(50);
	way->header = 40 + 12 * test_below(3);
	way->loss = chance(20) ? 0 : test_below(30);
	way->copies = chance(70) ? 0 : test_below(10);
	way->again = test_below(30);
	way->cut = chance(50) ? 0 : test_below(40);
	return way;
}

static void try_way(uint32_t *known)
{
	struct way *way = make_way();
	struct netobs_services *services = NULL;
	const struct netobs_edge *row;
	uint32_t removed;
	uint64_t unsure;

	talk(way);
	removed = chance(50) ? remove_lines(way) : 0;
	assert_int_equal(netobs_services_new(NULL, &services), 0);
	report_all(way, services);
	assert_int_equal(netobs_services_rows(services, 0), 2);
	row = netobs_services_row(services, 0);
	assert_int_equal(row->hosts, way->hosts);
	if (!removed && !way->copies)
		assert_int_equal(row->loss_conversations, 1);
	if (row->loss_conversations) {
		unsure = way->removed_again + way->copied;
		assert_in_range(row->lost_bytes,
				way->lost > unsure ? way->lost - unsure : 0,
				way->lost + way->removed_again);
	}
	*known += row->loss_conversations && removed;
	netobs_services_free(services);
	free(way);
}

TEST(lost_bytes_are_what_the_way_has_dropped)
{
	const char *cases = getenv("NETOBS_TEST_CASES");
	const int n = cases ? atoi(cases) : 300;
	uint32_t known = 0;

	for (int i = 0; i < n; i++)
		try_way(&known);
	print_message("known of %u connections with missing reports\n", known);
}

/* Two hosts have the same, but 1000 bytes of 3000 that were sent again, and 20 packets without data. */
TEST(what_is_not_known_is_absent)
{
	static const struct {
		const char *more; /* in a record of the second host */
		unsigned int flags, hosts;
		uint64_t missing_bytes, samples;
		bool is_known;
	} cases[] = {
		{ "", SYN | ACK | FIN, 2, 0, 5, true },
		{ ",\"Sampling\":1", SYN | ACK | FIN, 2, 0, 5, true },
		{ ",\"Sampling\":2", SYN | ACK | FIN, 2, 0, 5, false },
		{ ",\"LateUnknown\":1", SYN | ACK | FIN, 2, 0, 5, false },
		{ "", SYN | ACK | FIN, 1, 0, 5, false },
		{ "", SYN | ACK, 2, 0, 5, false },
		{ "", ACK | FIN, 2, 0, 5, false },
		{ "", SYN | ACK | FIN | RST, 2, 0, 5, false },
		{ "", SYN | ACK | FIN, 2, 0, 0, false },
		{ "", SYN | ACK | FIN, 2, 1500, 5, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netobs_services *services = NULL;
		const struct netobs_edge *row;
		char text[NETOBS_EDGE_JSON_MAX];

		assert_int_equal(netobs_services_new(NULL, &services), 0);
		for (uint32_t host = 0; host < 2; host++)
			for (int back = 0; back < 2; back++) {
				struct sums sums = { 200, 100000, 3000,
						     cases[i].samples,
						     cases[i].flags };

				if (host) {
					sums.packets -= 22;
					sums.bytes -= 22 * 52 + 1000 +
						      cases[i].missing_bytes;
					sums.again -= 1000;
				}
				write_line(text, host % cases[i].hosts, back,
					   &sums, host ? 50 : 900, clients[0],
					   host ? cases[i].more : "");
				add_line(services, text);
			}
		netobs_services_rows(services, 0);
		row = netobs_services_row(services, 0);
		assert_int_equal(row->loss_conversations, cases[i].is_known);
		assert_int_equal(row->lost_bytes, cases[i].is_known ? 2000 : 0);
		assert_true(netobs_edge_json(row, 0, 0, text, sizeof(text)) > 0);
		assert_int_equal(!!strstr(text, "\"LostBytes\":2000,"),
				 cases[i].is_known);
		netobs_services_free(services);
	}
}
