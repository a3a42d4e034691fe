// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Capture files of all kinds, as Ethernet frames. */
#include "capture/capture_file.h"
#include "bpf/types.h"
#include "lib_capture.h"
#include "lib_test.h"
#include "lib_witness.h"

enum { ETHER_LEN = 14, IPV4 = 0x0800, IPV6 = 0x86dd, ARP = 0x0806 };

/* A file and what reads it. */
struct reading {
	struct capture capture;
	struct capture_file file;
	struct witness witness;
	struct log log;
};

static void create(struct reading *r)
{
	memset(r, 0, sizeof(*r));
	r->log = witness_log(&r->witness);
	capture_create(&r->capture);
}

static int open_it(struct reading *r)
{
	return capture_file_open(&r->file, r->capture.path, &r->log);
}

static void done(struct reading *r)
{
	capture_file_close(&r->file);
	capture_remove(&r->capture);
	witness_clear(&r->witness);
}

static uint16_t type_of(const struct frame *frame)
{
	return frame->bytes[12] << 8 | frame->bytes[13];
}

/* 802.11: a data frame up to its body, and LLC with SNAP. */
#define WLAN(type, flags) type, flags, [24]
#define SNAP 0xaa, 0xaa, 3, 0, 0, 0
#define DATA4 0x45, 1, 2, 3, 4, 5, 6, 7
#define DATA6 0x60, 1, 2, 3, 4, 5, 6, 7
enum { DATA_LEN = 8 };

/* A link header of @len bytes, and what is behind it. */
#define HEADER(text, link, len, type, ...)             \
	{                                              \
		text, link, len, { __VA_ARGS__ }, type \
	}

static const struct {
	const char *name;
	uint32_t link;
	uint8_t header_len;
	uint8_t bytes[64];
	uint16_t type;
} links[] = {
	HEADER("raw, IPv4", CAPTURE_RAW, 0, IPV4, DATA4),
	HEADER("raw, IPv6", CAPTURE_RAW, 0, IPV6, DATA6),
	HEADER("IPv4", CAPTURE_IPV4, 0, IPV4, DATA4),
	HEADER("IPv6", CAPTURE_IPV6, 0, IPV6, DATA6),
	HEADER("null, IPv4", CAPTURE_NULL, 4, IPV4, 2, 0, 0, 0, DATA4),
	HEADER("null, IPv4, other byte order", CAPTURE_NULL, 4, IPV4, 0, 0, 0,
	       2, DATA4),
	HEADER("null, IPv6 of Linux", CAPTURE_NULL, 4, IPV6, 10, 0, 0, 0, DATA6),
	HEADER("null, IPv6 of OpenBSD", CAPTURE_NULL, 4, IPV6, 24, 0, 0, 0, DATA6),
	HEADER("null, IPv6 of FreeBSD", CAPTURE_NULL, 4, IPV6, 0, 0, 0, 28, DATA6),
	HEADER("null, IPv6 of Darwin", CAPTURE_NULL, 4, IPV6, 30, 0, 0, 0, DATA6),
	HEADER("null, another family", CAPTURE_NULL, 4, 0, 7, 0, 0, 0, DATA4),
	HEADER("loop, IPv4", CAPTURE_LOOP, 4, IPV4, 0, 0, 0, 2, DATA4),
	HEADER("loop, IPv6", CAPTURE_LOOP, 4, IPV6, 0, 0, 0, 30, DATA6),
	HEADER("cooked, IPv4", CAPTURE_SLL, 16, IPV4, [14] = 0x08, 0x00, DATA4),
	HEADER("cooked, IPv6", CAPTURE_SLL, 16, IPV6, [14] = 0x86, 0xdd, DATA6),
	HEADER("cooked, ARP", CAPTURE_SLL, 16, ARP, [14] = 0x08, 0x06, DATA4),
	HEADER("cooked v2, IPv4", CAPTURE_SLL2, 20, IPV4, [0] = 0x08,
	       0x00, [20] = DATA4),
	HEADER("cooked v2, IPv6", CAPTURE_SLL2, 20, IPV6, [0] = 0x86,
	       0xdd, [20] = DATA6),
	HEADER("PPP", 9, 4, IPV4, 0xff, 3, 0, 0x21, DATA4),
	HEADER("PPP without address", 9, 2, IPV6, 0, 0x57, DATA6),
	HEADER("PPP, short protocol", 9, 1, IPV4, 0x21, DATA4),
	HEADER("PPP, serial", 50, 3, IPV6, 0xff, 3, 0x57, DATA6),
	HEADER("PPP, serial of Cisco", 50, 4, IPV6, 0x0f, 0, 0x86, 0xdd, DATA6),
	HEADER("PPP of pppd", 166, 5, IPV4, 1, 0xff, 3, 0, 0x21, DATA4),
	HEADER("PPP with direction", 204, 3, IPV6, 0, 0, 0x57, DATA6),
	HEADER("PPPoE", 51, 0, 0x8864, 0x11, 0, 1, 1, 0, 10, 0, 0x21),
	HEADER("PPPoE, discovery", 51, 0, 0x8863, 0x11, 9, 0, 0, 0, 2, 1, 1),
	HEADER("Cisco HDLC", 104, 4, IPV4, 0x0f, 0, 8, 0, DATA4),
	HEADER("802.11", 105, 32, IPV4, WLAN(8, 1) = SNAP, 8, 0, DATA4),
	HEADER("802.11, bridged", 105, 32, IPV6, WLAN(8, 2) = 0xaa, 0xaa, 3, 0,
	       0, 0xf8, 0x86, 0xdd, DATA6),
	HEADER("802.11, four addresses", 105, 38, IPV4, 8, 3, [30] = SNAP, 8, 0,
	       DATA4),
	HEADER("802.11, QoS", 105, 34, ARP, 0x88, 0, [26] = SNAP, 8, 6, DATA4),
	HEADER("802.11, QoS and HT", 105, 38, IPV4, 0x88, 0x81, [30] = SNAP, 8,
	       0, DATA4),
	HEADER("802.11, first fragment", 105, 32, IPV4, 8,
	       5, [22] = 0x10, [24] = SNAP, 8, 0, DATA4),
	HEADER("radiotap", 127, 41, IPV4, 0, 0, 9, 0, [9] = 8, 1, [33] = SNAP,
	       8, 0, DATA4),
	HEADER("PPI", 192, 40, IPV4, 0, 0, 8, 0, 105, [8] = 8, 1, [32] = SNAP,
	       8, 0, DATA4),
};

/* Without a network header, by what the link header says. */
static const struct {
	uint32_t link;
	uint8_t bytes[48];
	uint8_t reason;
} refused[] = {
	{ 9, { 0xff, 3, 0xc0, 0x21, 1 }, UNPARSED_PPP }, /* LCP */
	{ 9, { 0xc0, 0x21, 1 }, UNPARSED_PPP },
	{ 204, { 1, 0x80, 0x21, 1 }, UNPARSED_PPP },
	{ 105, { 0x80 }, UNPARSED_WLAN },    /* a beacon */
	{ 105, { 0xd4 }, UNPARSED_WLAN },    /* an acknowledgement */
	{ 105, { 0x48, 1 }, UNPARSED_WLAN }, /* no data */
	{ 105, { 8, 0x41 }, UNPARSED_WLAN }, /* encrypted */
	{ 105, { 9, 1 }, UNPARSED_WLAN },    /* another version */
	{ 105, { 8, 1, [22] = 1, 0, SNAP, 8, 0 }, UNPARSED_WLAN }, /* a later fragment */
	{ 105, { 0x88, 1, [24] = 0x80, 0, SNAP, 8, 0 }, UNPARSED_WLAN }, /* aggregated */
	{ 105, { 8, 1, [24] = 0x42, 0x42, 3 }, UNPARSED_WLAN }, /* spanning tree */
	{ 192, { 0, 0, 8, 0, 1 }, UNPARSED_LINK },		/* Ethernet */
};

TEST(link_header_becomes_an_ethernet_header)
{
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		uint32_t skip = links[i].header_len, len = skip + DATA_LEN;
		struct reading r;
		struct frame frame;

		create(&r);
		capture_start(&r.capture, links[i].link);
		capture_packet(&r.capture, 1, 2, links[i].bytes, len, len + 100);
		assert_int_equal(open_it(&r), 0);
		assert_true(capture_file_hides_link(&r.file));
		assert_int_equal(capture_file_next(&r.file, &frame), 1);
		if (type_of(&frame) != links[i].type)
			fail_msg("%s: type %04x", links[i].name, type_of(&frame));
		assert_int_equal(frame.len, ETHER_LEN + DATA_LEN);
		assert_int_equal(frame.wire_len, ETHER_LEN + DATA_LEN + 100);
		assert_memory_equal(frame.bytes + ETHER_LEN,
				    links[i].bytes + skip, DATA_LEN);
		assert_int_equal(capture_file_next(&r.file, &frame), 0);
		done(&r);
	}
}

TEST(link_header_may_say_that_there_is_no_ip)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct reading r;
		struct frame frame;

		create(&r);
		capture_start(&r.capture, refused[i].link);
		capture_packet(&r.capture, 1, 2, refused[i].bytes, 48, 60);
		assert_int_equal(open_it(&r), 0);
		assert_int_equal(capture_file_next(&r.file, &frame), 1);
		if (frame.refused != 1 + refused[i].reason)
			fail_msg("case %zu: refused %d", i, frame.refused);
		assert_int_equal(type_of(&frame), 0);
		assert_int_equal(frame.wire_len, ETHER_LEN + 60);
		done(&r);
	}
}

TEST(link_header_cut_short_is_no_network_header)
{
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		for (uint32_t len = 0; len < links[i].header_len; len++) {
			struct reading r;
			struct frame frame;

			create(&r);
			capture_start(&r.capture, links[i].link);
			capture_packet(&r.capture, 1, 2, links[i].bytes, len, 60);
			assert_int_equal(open_it(&r), 0);
			assert_int_equal(capture_file_next(&r.file, &frame), 1);
			assert_int_equal(type_of(&frame), 0);
			assert_int_equal(frame.len, ETHER_LEN);
			assert_int_equal(frame.refused, 0);
			done(&r);
		}
	}
}

TEST_FIXTURE(struct reading, create, done)

#define CASE(name) TEST_OF(name, struct reading *r, set_up, tear_down)

CASE(ethernet_is_taken_as_it_is)
{
	uint8_t bytes[60];
	struct frame frame;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i + 1;
	capture_start(&r->capture, CAPTURE_ETHERNET);
	capture_packet(&r->capture, 1700000000, 123456, bytes, sizeof(bytes),
		       9000);
	assert_int_equal(open_it(r), 0);
	assert_false(capture_file_hides_link(&r->file));
	assert_int_equal(capture_file_next(&r->file, &frame), 1);
	assert_int_equal(frame.ns, 1700000000123456000LL);
	assert_int_equal(frame.len, sizeof(bytes));
	assert_int_equal(frame.wire_len, 9000);
	assert_memory_equal(frame.bytes, bytes, sizeof(bytes));
	assert_int_equal(r->file.packets, 1);
}

CASE(frames_shorter_than_a_header_stay_short)
{
	static const uint8_t bytes[] = { 1, 2, 3 };
	struct frame frame;

	capture_start(&r->capture, CAPTURE_ETHERNET);
	capture_packet(&r->capture, 1, 0, bytes, sizeof(bytes), sizeof(bytes));
	assert_int_equal(open_it(r), 0);
	memset(&frame, 0xee, sizeof(frame));
	assert_int_equal(capture_file_next(&r->file, &frame), 1);
	assert_int_equal(frame.len, sizeof(bytes));
	assert_int_equal(frame.wire_len, sizeof(bytes));
	assert_memory_equal(frame.bytes, bytes, sizeof(bytes));
}

TEST(long_frames_are_cut)
{
	static const uint32_t kinds[] = { CAPTURE_ETHERNET, CAPTURE_RAW,
					  CAPTURE_SLL2 };
	static uint8_t bytes[9000];

	memset(bytes, 0x45, sizeof(bytes));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct reading r;
		struct frame frame;

		create(&r);
		capture_start(&r.capture, kinds[i]);
		capture_packet(&r.capture, 1, 0, bytes, sizeof(bytes),
			       sizeof(bytes));
		assert_int_equal(open_it(&r), 0);
		assert_int_equal(capture_file_next(&r.file, &frame), 1);
		assert_int_equal(frame.len, FRAME_MAX);
		assert_in_range(frame.wire_len, 8990, 9014);
		done(&r);
	}
}

TEST(times_have_the_files_resolution)
{
	static const uint8_t bytes[] = { DATA4 };
	struct reading r;
	struct frame frame;

	create(&r);
	capture_start_nano(&r.capture, CAPTURE_RAW);
	capture_packet(&r.capture, 5, 123456789, bytes, sizeof(bytes), 60);
	assert_int_equal(open_it(&r), 0);
	assert_int_equal(capture_file_next(&r.file, &frame), 1);
	assert_int_equal(frame.ns, 5123456789LL);
	done(&r);

	create(&r);
	capture_start_ng(&r.capture, CAPTURE_RAW);
	capture_packet_ng(&r.capture, 1700000000654321, bytes, sizeof(bytes), 60);
	capture_packet_ng(&r.capture, 1700000000654322, bytes, 5, 61);
	assert_int_equal(open_it(&r), 0);
	assert_int_equal(capture_file_next(&r.file, &frame), 1);
	assert_int_equal(frame.ns, 1700000000654321000LL);
	assert_int_equal(frame.wire_len, ETHER_LEN + 60);
	assert_int_equal(capture_file_next(&r.file, &frame), 1);
	assert_int_equal(frame.ns, 1700000000654322000LL);
	assert_int_equal(frame.len, ETHER_LEN + 5);
	assert_int_equal(capture_file_next(&r.file, &frame), 0);
	done(&r);
}

TEST(times_beyond_what_nanoseconds_can_count_are_bounded)
{
	static const uint64_t us[] = { UINT64_MAX, INT64_MAX, 1ULL << 60 };
	static const uint8_t bytes[] = { DATA4 };

	for (size_t i = 0; i < ARRAY_SIZE(us); i++) {
		struct reading r;
		struct frame frame;

		create(&r);
		capture_start_ng(&r.capture, CAPTURE_RAW);
		capture_packet_ng(&r.capture, us[i], bytes, sizeof(bytes), 60);
		assert_int_equal(open_it(&r), 0);
		assert_int_equal(capture_file_next(&r.file, &frame), 1);
		assert_int_equal(frame.ns / NSEC_PER_SEC, 9000000000);
		done(&r);
	}
}

TEST(file_that_ends_in_a_packet_is_bad_after_it)
{
	static const uint8_t bytes[] = { DATA4 };

	/* Of the second packet's header and data, up to all but one byte. */
	for (size_t keep = 1; keep < 16 + sizeof(bytes); keep++) {
		struct reading r;
		struct frame frame;

		create(&r);
		capture_start(&r.capture, CAPTURE_RAW);
		capture_packet(&r.capture, 1, 0, bytes, sizeof(bytes), 60);
		capture_packet(&r.capture, 2, 0, bytes, sizeof(bytes), 60);
		assert_int_equal(ftruncate(r.capture.fd,
					   24 + 16 + sizeof(bytes) + keep),
				 0);
		assert_int_equal(open_it(&r), 0);
		assert_int_equal(capture_file_next(&r.file, &frame), 1);
		assert_int_equal(capture_file_next(&r.file, &frame), -EBADMSG);
		assert_int_equal(r.witness.errors, 1);
		assert_true(witness_read(&r.witness, r.capture.path));
		assert_true(witness_read(&r.witness, "after packet 1"));
		done(&r);
	}
}

/* ---- pcapng ----------------------------------------------------------------------------- */

/* A block: its type, then its words, without the lengths. */
static void write_block(struct reading *r, const uint32_t *words, uint32_t n)
{
	const uint32_t length = (n + 2) * sizeof(*words);

	capture_write(&r->capture, words, sizeof(*words));
	capture_write(&r->capture, &length, sizeof(length));
	capture_write(&r->capture, words + 1, (n - 1) * sizeof(*words));
	capture_write(&r->capture, &length, sizeof(length));
}

#define BLOCK(r, ...)                                     \
	write_block(r, (const uint32_t[]){ __VA_ARGS__ }, \
		    sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define OPTION(code, len) ((code) | (len) << 16)

enum { SECTION = 0x0a0d0d0a, MAGIC = 0x1a2b3c4d, IPV4_WORD = 0x01020045 };

static void write_section(struct reading *r)
{
	BLOCK(r, SECTION, MAGIC, 1, UINT32_MAX, UINT32_MAX);
}

/* Interfaces of unlike link types, snapshot lengths and units; all kinds of packets; two sections. */
static void write_mixed(struct reading *r)
{
	write_section(r);
	BLOCK(r, 1, CAPTURE_ETHERNET, 16, OPTION(2, 4), 0x30687465,
	      OPTION(9, 1), 9, 0); /* eth0, nanoseconds */
	BLOCK(r, 1, CAPTURE_RAW, 0, OPTION(9, 1), 0x80 | 4, OPTION(14, 8), 100,
	      0, 0);	     /* 1/16 s, 100 s later */
	BLOCK(r, 1, 147, 0); /* of an unsupported type */
	BLOCK(r, 6, 0, 1, 705032704, 16, 60, 1, 2, 3, 0x0008, OPTION(2, 4),
	      PASSED_OUT, 0);	  /* 5 s */
	BLOCK(r, 0xbad, 1, 2, 3); /* what others may have */
	BLOCK(r, 6, 1, 0, 16 * 7 + 8, 4, 40, IPV4_WORD); /* 7.5 + 100 s */
	BLOCK(r, 6, 2, 0, 0, 4, 4, 7);
	BLOCK(r, 3, 90, 1, 2, 3, 0x0008); /* simple: up to the snapshot length */
	write_section(r);
	BLOCK(r, 1, CAPTURE_RAW, 0);
	BLOCK(r, 2, 0, 0, 1000000, 4, 44, IPV4_WORD); /* the former kind */
}

CASE(interfaces_of_a_file_may_differ)
{
	static const struct {
		int64_t ns;
		uint32_t len, wire_len;
		uint16_t type;
		bool is_bare;
		const char *interface;
	} expected[] = {
		{ 5000000000, 16, 60, IPV4, false, "eth0" },
		{ 107500000000, 18, 54, IPV4, true, NULL },
		{ 0, 18, 18, 0, true, NULL },
		{ 0, 16, 90, IPV4, false, "eth0" },
		{ 1000000000, 18, 58, IPV4, true, NULL },
	};
	struct frame frame;

	write_mixed(r);
	assert_int_equal(open_it(r), 0);
	assert_true(capture_file_hides_link(&r->file));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(capture_file_next(&r->file, &frame), 1);
		assert_int_equal(frame.ns, expected[i].ns);
		assert_int_equal(frame.len, expected[i].len);
		assert_int_equal(frame.wire_len, expected[i].wire_len);
		assert_int_equal(frame.is_bare, expected[i].is_bare);
		assert_int_equal(frame.passed, i ? PASSED_EITHER : PASSED_OUT);
		assert_int_equal(type_of(&frame), expected[i].type);
		if (expected[i].interface)
			assert_string_equal(frame.interface,
					    expected[i].interface);
		else
			assert_null(frame.interface);
	}
	assert_int_equal(capture_file_next(&r->file, &frame), 0);
	assert_int_equal(r->file.packets, ARRAY_SIZE(expected));
	capture_file_report(&r->file);
	assert_true(witness_read(&r->witness,
				 "1 packets are in no flow: link type 147"));
}

/* To the end, or to what is damaged. @return packets; the last result is in @ret_result */
static int read_all(struct reading *r, int *ret_result)
{
	struct frame frame;
	int n = 0;

	*ret_result = open_it(r);
	while (!*ret_result &&
	       (*ret_result = capture_file_next(&r->file, &frame)) == 1) {
		assert_in_range(frame.len, 0, FRAME_MAX);
		*ret_result = 0;
		n++;
	}
	return n;
}

static void copy_with(struct reading *r, const uint8_t *bytes, size_t len,
		      size_t at, uint8_t value)
{
	create(r);
	capture_write(&r->capture, bytes, len);
	if (at < len)
		assert_int_equal(pwrite(r->capture.fd, &value, 1, at), 1);
}

/* Wherever a pcapng file ends or has another byte, it is read up to there or to its end. */
TEST(damaged_pcapng_files_are_harmless)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	uint8_t bytes[1024];
	struct reading r;
	size_t len;
	int result, whole = 0;

	create(&r);
	write_mixed(&r);
	len = pread(r.capture.fd, bytes, sizeof(bytes), 0);
	done(&r);
	for (size_t i = 1; i <= len; i++) {
		copy_with(&r, bytes, i, len, 0);
		assert_in_range(read_all(&r, &result), 0, 5);
		assert_true(result == 0 || result == -EBADMSG);
		assert_int_equal(r.witness.errors, result != 0);
		whole += !result;
		done(&r);
	}
	assert_int_equal(whole,
			 11); /* it ends between blocks, behind an interface */
	for (size_t i = 0; i < len; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			copy_with(&r, bytes, len, i, values[k]);
			read_all(&r, &result);
			assert_true(result == 0 || result == -EBADMSG ||
				    result == -EPROTONOSUPPORT);
			done(&r);
		}
	}
}

TEST(wrong_pcapng_files_say_what_is_wrong)
{
	static const struct {
		uint32_t words[16];
		uint32_t n;
		const char *reason;
	} cases[] = {
		{ { 6, 0x7ffffffc }, 2, "ends in a block" },
		{ { 6, 0xfffffffc }, 2, "ends in a block" },
		{ { 6, 8 }, 2, "length of 8" },
		{ { 6, 33 }, 2, "length of 33" },
		{ { 6, 16, 0, 16 }, 4, "shorter than its contents" },
		{ { 6, 32, 9, 0, 0, 0, 0, 32 }, 8, "interface 9" },
		{ { 6, 32, 0, 0, 0, 4, 4, 32 }, 8, "longer than its block" },
		{ { 6, 32, 0, 0, 0, UINT32_MAX, 0, 32 },
		  8,
		  "longer than its block" },
		{ { 6, 32, 0, 0, 0, 0, 0, 36 },
		  8,
		  "lengths of a pcapng block differ" },
		{ { 1, 32, CAPTURE_RAW, 0, OPTION(9, 1), 20, 0, 32 },
		  8,
		  "time stamps" },
		{ { SECTION, 28, MAGIC, 2, 0, 0, 28 }, 7, "version 2" },
	};
	int result;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct reading r;

		create(&r);
		write_section(&r);
		BLOCK(&r, 1, CAPTURE_RAW, 0);
		BLOCK(&r, 6, 0, 0, 0, 4, 4, IPV4_WORD);
		capture_write(&r.capture, cases[i].words,
			      cases[i].n * sizeof(uint32_t));
		assert_int_equal(read_all(&r, &result), 1);
		assert_int_equal(result, -EBADMSG);
		assert_true(witness_read(&r.witness, "after packet 1: "));
		if (!witness_read(&r.witness, cases[i].reason))
			fail_msg("case %zu: no '%s'", i, cases[i].reason);
		done(&r);
	}
}

TEST(what_is_no_capture_file_is_refused)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ "", 0 },
		{ "\xd4", 1 },
		{ "\xd4\xc3\xb2\xa1\2\0\4\0", 8 },
		{ "this is a text and not a capture file at all", 44 },
		{ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24 },
		{ "\n\r\r\n\x1c\0\0\0\xff\xff\xff\xff\1\0\0\0", 16 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct reading r;

		create(&r);
		capture_write(&r.capture, cases[i].bytes, cases[i].len);
		assert_int_equal(open_it(&r), -EBADMSG);
		assert_int_equal(r.witness.errors, 1);
		assert_true(witness_read(&r.witness, r.capture.path));
		done(&r);
	}
}

TEST(link_types_that_are_not_known_are_named)
{
	static const struct {
		uint32_t link;
		const char *name;
	} cases[] = { { 239, "NFLOG" }, { 119, "PRISM_HEADER" }, { 147, "147" } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct reading r;

		create(&r);
		capture_start(&r.capture, cases[i].link);
		assert_int_equal(open_it(&r), -EPROTONOSUPPORT);
		assert_true(witness_read(&r.witness, cases[i].name));
		done(&r);
	}
}

CASE(file_that_cannot_be_opened_is_named)
{
	assert_int_equal(capture_file_open(&r->file, "/tmp/no/such.pcap", &r->log),
			 -ENOENT);
	assert_true(witness_read(&r->witness, "/tmp/no/such.pcap"));
	capture_file_close(&r->file);
	assert_true(capture_file_open(&r->file, "/tmp", &r->log) < 0);
	assert_int_equal(r->witness.errors, 2);
}

CASE(file_without_packets_ends_at_once)
{
	struct frame frame;

	capture_start(&r->capture, CAPTURE_ETHERNET);
	assert_int_equal(open_it(r), 0);
	assert_int_equal(capture_file_next(&r->file, &frame), 0);
	assert_int_equal(r->file.packets, 0);
	assert_int_equal(r->witness.errors, 0);
}
