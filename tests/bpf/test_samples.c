// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The programs in the kernel make of each sample, whole and cut to each length,
 * what the parser built for the host makes of the same bytes.
 */

#include "bpf/parse/wire.h"
#include "host.h"
#include "lib_test.h"
#include "prog.h"
#include "prog_skeleton.h"
#include "samples.h"

#include <bpf/bpf.h>

enum { LOOPBACK = 1, REPEAT = 3 };

#define VERDICT_NEXT UINT32_MAX

static struct prog progs[2]; /* by link kind */
static struct prog_flows flows;

static int setup(void **state)
{
	struct prog_options options = { .has_egress = true };
	int err = prog_pin(0);

	(void)state;
	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++) {
		options.link = link;
		err = err ?: prog_open(&progs[link], &options);
	}
	return err;
}

static int teardown(void **state)
{
	(void)state;
	prog_close(&progs[LINK_ETHERNET]);
	prog_close(&progs[LINK_NONE]);
	return 0;
}

/* What the programs know before they parse. */
static struct packet packet_before(bool egress)
{
	struct packet start = {};

	start.key.ifindex = LOOPBACK;
	start.key.flags = egress ? KEY_EGRESS : 0;
	return start;
}

/* A later fragment's first one is not seen by a program that is just loaded. */
static void expect_no_transport(struct packet *pkt)
{
	if (pkt->fragment == FRAGMENT_LATER)
		pkt->key.flags |= KEY_NO_TRANSPORT;
}

static void assert_tally(const struct flow_tally *got, const struct outcome *want,
			 const struct wire_size *size, __u32 runs)
{
	const struct packet *pkt = &want->pkt;

	assert_int_equal(got->packets, size->packets * runs);
	assert_int_equal(got->bytes, size->bytes * runs);
	assert_int_equal(got->l2_bytes,
			 pkt->attrs.has_mac ? size->l2_bytes * runs : 0);
	assert_memory_equal(&got->attrs, &pkt->attrs, sizeof(got->attrs));
	if (pkt->attrs.has_mac) {
		assert_memory_equal(got->macs, packet_dst_mac, 6);
		assert_memory_equal(got->macs + 6, packet_src_mac, 6);
	}
}

static void assert_outer(struct prog *prog, const struct flow_entry *got,
			 const struct packet *pkt)
{
	struct tunnel_key key = { got->key.outer_hash, got->outer_check };
	struct tunnel_addrs addrs;

	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(prog->skel->maps.tunnel_addrs),
				    &key, &addrs),
		0);
	assert_memory_equal(&addrs.src, &pkt->outer_src, 16);
	assert_memory_equal(&addrs.dst, &pkt->outer_dst, 16);
	assert_int_equal(got->outer_src_port, pkt->outer_src_port);
	assert_int_equal(got->outer_dst_port, pkt->outer_dst_port);
}

/*
 * What bpf_prog_test_run_skb() may refuse, depending on the kernel: frames
 * without anything behind the Ethernet header, or with half an IP header.
 */
static bool too_short_for_kernel(const uint8_t *bytes, size_t len)
{
	unsigned int type;

	if (len <= 14)
		return true;
	type = bytes[12] << 8 | bytes[13];
	return len < 14u + (type == ETHERTYPE_IPV4 ? 20 :
			    type == ETHERTYPE_IPV6 ? 40 :
						     0);
}

static void run_is_what_the_host_says(struct prog *prog, const void *bytes,
				      size_t len, bool egress)
{
	struct outcome want = host_parse_from(packet_before(egress),
					      prog->options.link, bytes, len);
	struct buffer buf = { .len = len };
	struct wire_size size = wire_size(&want.pkt, &buf);
	struct prog_packet packet = {
		.bytes = bytes, .len = len, .egress = egress, .repeat = REPEAT
	};
	struct counters counters;
	struct count missing;
	__u32 verdict = 0;
	int err;

	expect_no_transport(&want.pkt);
	prog_reset(prog);
	err = prog_run(prog, &packet, &verdict);
	if (err == -EINVAL && too_short_for_kernel(bytes, len))
		return;
	assert_int_equal(err, 0);
	assert_int_equal(verdict, VERDICT_NEXT);
	assert_int_equal(prog_flows(prog, 0, &flows), 0);
	counters = prog_counters(prog, 0);
	missing = prog_unaccounted(&counters, &flows);
	assert_int_equal(missing.packets, 0);
	assert_int_equal(missing.bytes, 0);
	assert_int_equal(counters.seen.packets, REPEAT);
	assert_int_equal(counters.seen.bytes, size.bytes * REPEAT);
	if (want.ret) {
		enum unparsed_reason reason = reject_reason(want.ret);

		assert_int_equal(flows.n, 0);
		assert_int_equal(counters.unparsed[reason].packets, REPEAT);
		return;
	}
	assert_int_equal(flows.n, 1);
	assert_memory_equal(&flows.entries[0].key, &want.pkt.key,
			    sizeof(want.pkt.key));
	assert_tally(&flows.entries[0].tally, &want, &size, REPEAT);
	if (want.pkt.key.tunnel)
		assert_outer(prog, &flows.entries[0], &want.pkt);
}

static void whole_packet_is_what_the_host_says(void **state)
{
	const struct sample *sample = *state;
	struct packet_bytes packet;

	packet_build(sample->layers, &packet);
	for (int egress = 0; egress < 2; egress++)
		run_is_what_the_host_says(&progs[sample->link], packet.bytes,
					  packet.len, egress);
}

static void every_truncation_is_what_the_host_says(void **state)
{
	const struct sample *sample = *state;
	struct packet_bytes packet;

	packet_build(sample->layers, &packet);
	for (size_t len = 0; len < packet.len; len++)
		run_is_what_the_host_says(&progs[sample->link], packet.bytes,
					  len, false);
}

enum { MAX_CASES = 512 };

int main(void)
{
	static struct CMUnitTest cases[MAX_CASES];
	static char names[MAX_CASES][96];
	size_t n = 0;

	for (size_t i = 0; i < n_samples; i++) {
		snprintf(names[n], sizeof(names[n]), "%s: whole",
			 samples[i].name);
		cases[n].test_func = whole_packet_is_what_the_host_says;
		cases[n].initial_state = (void *)&samples[i];
		cases[n].name = names[n];
		n++;
		snprintf(names[n], sizeof(names[n]), "%s: truncated",
			 samples[i].name);
		cases[n].test_func = every_truncation_is_what_the_host_says;
		cases[n].initial_state = (void *)&samples[i];
		cases[n].name = names[n];
		n++;
	}
	return _cmocka_run_group_tests("samples", cases, n, setup, teardown);
}
