// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "prog_test.h"

#include "bpf/store/hash.h"
#include "host.h"

static struct prog opened;
static struct prog_flows read_back;

/* Loading takes longer than all else: programs with the same knobs are used again. */
struct prog *prog_test_open(const struct prog_options *options)
{
	static struct prog_options last;

	assert_int_equal(prog_pin(0), 0);
	if (opened.skel && !memcmp(options, &last, sizeof(last))) {
		assert_int_equal(prog_reset(&opened), 0);
		return &opened;
	}
	if (opened.skel)
		prog_close(&opened);
	memcpy(&last, options, sizeof(last));
	assert_int_equal(prog_open(&opened, options), 0);
	return &opened;
}

void prog_test_layers(struct prog *prog, const struct layer *layers)
{
	struct packet_bytes bytes;
	struct prog_packet packet = { .bytes = bytes.bytes };

	packet_build(layers, &bytes);
	packet.len = bytes.len;
	assert_int_equal(prog_run(prog, &packet, NULL), 0);
}

static void build_tcp(uint16_t src_port, uint8_t flags,
		      struct packet_bytes *ret_bytes)
{
	const struct layer layers[] = { ETH,
					IP4,
					TCP(flags),
					POKE(0, src_port >> 8),
					POKE(1, src_port & 0xff),
					{} };

	packet_build(layers, ret_bytes);
}

void prog_test_tcp(struct prog *prog, uint16_t src_port, uint8_t flags)
{
	struct packet_bytes bytes;
	struct prog_packet packet = { .bytes = bytes.bytes };

	build_tcp(src_port, flags, &bytes);
	packet.len = bytes.len;
	assert_int_equal(prog_run(prog, &packet, NULL), 0);
}

struct flow_key prog_test_tcp_key(uint16_t src_port)
{
	struct packet_bytes bytes;
	struct outcome parsed;

	build_tcp(src_port, 0, &bytes);
	parsed = host_parse(LINK_ETHERNET, bytes.bytes, bytes.len);
	parsed.pkt.key.ifindex = 1; /* where the kernel says test runs are */
	return parsed.pkt.key;
}

static uint32_t set_of(const struct prog *prog, uint16_t src_port)
{
	struct flow_key key = prog_test_tcp_key(src_port);

	uint64_t hash = hash_key(&key, &host_secret);

	return scale_hash(hash >> 32, prog->options.l1_buckets) * BUCKET_SLOTS +
	       l1_way(hash);
}

uint16_t prog_test_rival(const struct prog *prog, unsigned int n)
{
	uint32_t set = set_of(prog, 1);
	uint16_t port = 2;

	while (set_of(prog, port) != set || n--)
		port++;
	return port;
}

const struct prog_flows *prog_test_flows(struct prog *prog, uint32_t generation)
{
	struct counters counters = prog_counters(prog, generation);
	struct count missing;

	assert_int_equal(prog_flows(prog, generation, &read_back), 0);
	missing = prog_unaccounted(&counters, &read_back);
	assert_int_equal(missing.packets, 0);
	assert_int_equal(missing.bytes, 0);
	return &read_back;
}

const struct flow_tally *prog_test_tally(const struct prog_flows *flows,
					 const struct flow_key *key)
{
	const struct flow_entry *entry = prog_find(flows, key);

	assert_non_null(entry);
	return &entry->tally;
}

struct connection prog_test_connection(struct prog *prog,
				       const struct flow_key *key)
{
	struct connection conn = prog_connection(prog, key);

	assert_non_null(conn.head);
	return conn;
}
