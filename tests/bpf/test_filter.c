// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The filter is tcpdump's filter: a program translated to eBPF says in the kernel what
 * libpcap's interpreter says of the same bytes. Expressions of every kind, random
 * combinations of them, and random classic programs; frames of every sample, cut and
 * changed at random, with the VLAN tag in the frame and beside it.
 * NETOBS_TEST_SEED repeats a run, NETOBS_TEST_PROGRAMS makes it longer.
 */
#include "lib_lab.h"
#include "lib_seed.h"
#include "lib_test.h"

#include "bpf/parse/headers.h"
#include "filter/code.h"
#include "filter_expressions.h"
#include "samples.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/filter.h>

enum {
	FRAME_MIN = 15, /* of BPF_PROG_TEST_RUN */
	FRAME_MAX = 3000,
	TAG_AT = 12,
	TAG_LEN = 4,
	PROGRAMS = 1000,
	COMBINATIONS = 300,
	FRAMES = 8, /* that a random program is run on */
	STRIDE = 4, /* between primitives that slow guests try */
	LOG_SIZE = 1 << 24,
	REASON = 700, /* of its end are shown */
};

/* ---- Programs in the kernel ---------------------------------------------------- */

/* A tag as the kernel keeps it; proto 0: none. */
struct tag {
	uint16_t proto;
	uint16_t tci;
};

static void add_push(struct code *code, struct tag tag)
{
	code_add(code, code_alu64_reg(BPF_MOV, BPF_REG_6, BPF_REG_1));
	code_add(code, code_alu32_imm(BPF_MOV, BPF_REG_2, htons(tag.proto)));
	code_add(code, code_alu32_imm(BPF_MOV, BPF_REG_3, tag.tci));
	code_add(code, code_call(BPF_FUNC_skb_vlan_push));
	code_add(code, code_alu64_reg(BPF_MOV, BPF_REG_1, BPF_REG_6));
}

static int load(const struct code *code, char *log, size_t log_size)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log,
		    .log_size = log_size, .log_level = log ? 1 : 0);

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "filter", "GPL",
			     code->insns, code->n, &opts);
}

static void print_program(const struct classic *classic)
{
	for (uint32_t i = 0; i < classic->n; i++)
		print_error("%3u { %#x, %u, %u, %#x }\n", i,
			    classic->insns[i].code, classic->insns[i].jt,
			    classic->insns[i].jf, classic->insns[i].k);
}

static int add_program(const struct classic *classic, enum link_kind link,
		       struct code *code)
{
	uint32_t untagged;

	frame_start(code, classic_reach(classic),
		    offsetof(struct __sk_buff, len), NULL);
	if (link == LINK_ETHERNET) {
		untagged = frame_start_tagged(code);
		if (translate(classic, FRAME_TAGGED, code))
			return -EINVAL;
		code_add(code, code_exit());
		code_place(code, untagged);
	}
	if (translate(classic, FRAME_BUFFER, code))
		return -EINVAL;
	code_add(code, code_exit());
	return 0;
}

/* The program has the same result as @classic. -E2BIG: it is too large. */
static int make_program(const struct classic *classic, enum link_kind link,
			struct tag tag)
{
	static char log[LOG_SIZE];
	struct code code = { 0 };
	const char *end;
	int fd;

	if (tag.proto)
		add_push(&code, tag);
	assert_int_equal(add_program(classic, link, &code), 0);
	fd = code_link(&code);
	if (fd) {
		assert_int_equal(fd, -E2BIG);
		assert_true(code.n > INT16_MAX);
		code_done(&code);
		return fd;
	}
	fd = load(&code, NULL, 0);
	if (fd < 0) {
		log[0] = '\0';
		load(&code, log, sizeof(log));
		print_program(classic);
		end = log + strlen(log);
		fail_msg("the verifier: %s",
			 end - log > REASON ? end - REASON : log);
	}
	code_done(&code);
	return fd;
}

static uint32_t run(int fd, const void *frame, uint32_t len)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .data_size_in = len);

	assert_int_equal(bpf_prog_test_run_opts(fd, &opts), 0);
	return opts.retval;
}

/* ---- Frames ---------------------------------------------------------------------- */

struct frame {
	uint8_t bytes[FRAME_MAX + TAG_LEN];
	uint32_t len;
};

/* As on the wire. */
static struct frame with_tag(const struct frame *frame, struct tag tag)
{
	const uint16_t wire[2] = { htons(tag.proto), htons(tag.tci) };
	struct frame tagged = { .len = frame->len + TAG_LEN };

	memcpy(tagged.bytes, frame->bytes, TAG_AT);
	memcpy(tagged.bytes + TAG_AT, wire, TAG_LEN);
	memcpy(tagged.bytes + TAG_AT + TAG_LEN, frame->bytes + TAG_AT,
	       frame->len - TAG_AT);
	return tagged;
}

static struct frame sample_frame(const struct sample *sample)
{
	struct packet_bytes packet;
	struct frame frame;

	packet_build(sample->layers, &packet);
	frame.len = (uint32_t)(packet.len < FRAME_MIN ? FRAME_MIN :
			       packet.len > FRAME_MAX ? FRAME_MAX :
							packet.len);
	memset(packet.bytes + packet.len, 0, sizeof(packet.bytes) - packet.len);
	memcpy(frame.bytes, packet.bytes, frame.len);
	return frame;
}

/* BPF_PROG_TEST_RUN refuses IP packets without a whole header. */
static bool can_run(const struct frame *frame)
{
	uint16_t type = (uint16_t)(frame->bytes[12] << 8 | frame->bytes[13]);

	return frame->len >= FRAME_MIN + (type == ETHERTYPE_IPV4 ? 20u :
					  type == ETHERTYPE_IPV6 ? 40u :
								   0u);
}

static struct frame draw_frame(enum link_kind link)
{
	const struct sample *sample;
	struct frame frame;

	do {
		sample = &samples[test_below(n_samples)];
	} while (sample->link != link);
	frame = sample_frame(sample);
	if (!test_below(3))
		frame.len = FRAME_MIN + test_below(frame.len - FRAME_MIN + 1);
	for (uint32_t changes = test_below(4); changes; changes--)
		frame.bytes[test_below(frame.len)] = (uint8_t)test_random();
	return frame;
}

static struct frame random_frame(enum link_kind link)
{
	struct frame frame;

	do {
		frame = draw_frame(link);
	} while (!can_run(&frame));
	return frame;
}

/* ---- The comparison ---------------------------------------------------------------- */

static const struct tag tags[] = {
	{ 0, 0 },
	{ ETHERTYPE_8021Q, 3 << 13 | 10 },
	{ ETHERTYPE_8021AD, 200 },
};

/* @return the verdict, which is libpcap's */
static uint32_t assert_same(int fd, const struct classic *classic,
			    const struct frame *frame, struct tag tag,
			    const char *what)
{
	struct frame wire = tag.proto ? with_tag(frame, tag) : *frame;
	uint32_t expected = classic_run(classic, wire.bytes, wire.len, wire.len);
	uint32_t verdict = run(fd, frame->bytes, frame->len);

	if (verdict != expected) {
		print_program(classic);
		fail_msg("%s, tag %#x: %u, libpcap says %u of %u bytes", what,
			 tag.proto, verdict, expected, wire.len);
	}
	return verdict;
}

/* Of all samples. @return how many matched */
static uint32_t compare_samples(const struct classic *classic,
				enum link_kind link, struct tag tag,
				const char *what)
{
	int fd = make_program(classic, link, tag);
	uint32_t matched = 0;

	assert_true(fd >= 0);
	for (size_t i = 0; i < n_samples; i++) {
		struct frame frame;

		if (samples[i].link != link)
			continue;
		frame = sample_frame(&samples[i]);
		if (!can_run(&frame))
			continue;
		matched += assert_same(fd, classic, &frame, tag, what) > 0;
	}
	close(fd);
	return matched;
}

/* @return whether the program is not too large */
static bool compare_random(const struct classic *classic, enum link_kind link,
			   struct tag tag, const char *what)
{
	int fd = make_program(classic, link, tag);

	if (fd < 0)
		return false;
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct frame frame = random_frame(link);

		assert_same(fd, classic, &frame, tag, what);
	}
	close(fd);
	return true;
}

/* ---- Expressions --------------------------------------------------------------------- */

static bool compile(const char *expression, enum link_kind link,
		    struct classic *ret_classic)
{
	char error[256];
	int err = classic_compile(expression, link, ret_classic, error,
				  sizeof(error));

	if (err && link == LINK_ETHERNET)
		fail_msg("%s: %s", expression, error);
	return !err;
}

static void compare_expression(const char *expression)
{
	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++) {
		struct classic classic;

		if (!compile(expression, link, &classic))
			continue; /* it is of link addresses, which there are none of */
		for (size_t i = 0; i < (link || lab_shrink() > 1 ? 1 : 3); i++) {
			compare_samples(&classic, link, tags[i], expression);
			assert_true(compare_random(&classic, link, tags[i],
						   expression));
		}
		classic_done(&classic);
	}
}

/* In slow guests one of several, by the seed. */
TEST(every_primitive_is_libpcaps)
{
	const uint32_t stride = lab_shrink() > 1 ? STRIDE : 1;

	for (size_t i = test_below(stride); i < n_filter_expressions; i += stride)
		compare_expression(filter_expressions[i]);
}

/*
 * libpcap reads memory that it has not set in some combinations with geneve: its
 * interpreter then goes by what is on the stack, and we, as Linux, by zeros.
 */
static bool reads_unset_memory(const struct classic *classic)
{
	uint16_t set[FILTER_CLASSIC_MAX];

	memset(set, 0xff, sizeof(set));
	set[0] = 0;
	for (uint32_t i = 0; i + 1 < classic->n; i++) {
		const struct classic_insn *insn = &classic->insns[i];
		uint16_t after = set[i];

		if (BPF_CLASS(insn->code) == BPF_JMP) {
			set[i + 1 + insn->jt] &= after;
			set[i + 1 + insn->jf] &= after;
			continue;
		}
		if (BPF_CLASS(insn->code) <= BPF_LDX &&
		    BPF_MODE(insn->code) == BPF_MEM && !(after >> insn->k & 1))
			return true;
		if (insn->code == BPF_ST || insn->code == BPF_STX)
			after |= (uint16_t)(1 << insn->k);
		if (!(BPF_CLASS(insn->code) == BPF_RET))
			set[i + 1] &= after;
	}
	return false;
}

/* Of two to five primitives. */
static void combine(char *ret_text, size_t size)
{
	static const char *const joints[] = { " and ", " or ", " and not ",
					      " or not " };
	int len = 0;

	for (uint32_t n = 2 + test_below(4), i = 0; i < n; i++)
		len += snprintf(ret_text + len, size - (size_t)len, "%s(%s)",
				i	      ? joints[test_below(4)] :
				test_below(4) ? "" :
						"not ",
				filter_expressions[test_below(
					(uint32_t)n_filter_expressions)]);
}

TEST(combinations_are_libpcaps)
{
	uint32_t n = 0;
	char text[16384], error[256];

	for (uint32_t i = 0; i < COMBINATIONS / lab_shrink(); i++) {
		struct tag tag = tags[test_below(3)];
		struct classic classic;

		combine(text, sizeof(text));
		if (strstr(text, "protochain"))
			continue; /* loops, of which the verifier bears one */
		if (classic_compile(text, LINK_ETHERNET, &classic, error,
				    sizeof(error)))
			continue; /* such as "expression rejects all packets" */
		if (!reads_unset_memory(&classic))
			n += compare_random(&classic, LINK_ETHERNET, tag, text);
		classic_done(&classic);
	}
	assert_true(n > COMBINATIONS / lab_shrink() / 2);
}

TEST(expressions_match_what_they_are_for)
{
	static const struct {
		const char *expression;
		struct tag tag;
		bool some;
	} cases[] = {
		{ "tcp", { 0 }, true },
		{ "vlan 10", { ETHERTYPE_8021Q, 10 }, true },
		{ "vlan 11", { ETHERTYPE_8021Q, 10 }, false },
		{ "vlan 10 and tcp", { ETHERTYPE_8021Q, 10 }, true },
		{ "ether proto 0x88a8", { ETHERTYPE_8021AD, 5 }, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct classic classic;

		compile(cases[i].expression, LINK_ETHERNET, &classic);
		assert_int_equal(compare_samples(&classic, LINK_ETHERNET,
						 cases[i].tag,
						 cases[i].expression) > 0,
				 cases[i].some);
		classic_done(&classic);
	}
}

/* ---- Random programs -------------------------------------------------------------------- */

/* Mostly where frames have something. */
static uint32_t random_offset(void)
{
	switch (test_below(16)) {
	case 0:
		return (uint32_t)test_random();
	case 1:
		return test_below(70000);
	default:
		return test_below(90);
	}
}

static uint32_t random_value(void)
{
	return test_below(3) ? test_below(64) : (uint32_t)test_random();
}

static struct classic_insn random_load(void)
{
	static const uint16_t codes[] = {
		BPF_LD | BPF_W | BPF_ABS,  BPF_LD | BPF_H | BPF_ABS,
		BPF_LD | BPF_B | BPF_ABS,  BPF_LD | BPF_W | BPF_IND,
		BPF_LD | BPF_H | BPF_IND,  BPF_LD | BPF_B | BPF_IND,
		BPF_LDX | BPF_B | BPF_MSH,
	};

	return (struct classic_insn){ codes[test_below(7)], 0, 0,
				      random_offset() };
}

static struct classic_insn random_move(void)
{
	static const uint16_t codes[] = {
		BPF_LD | BPF_IMM,	  BPF_LDX | BPF_IMM,
		BPF_LD | BPF_W | BPF_LEN, BPF_LDX | BPF_W | BPF_LEN,
		BPF_MISC | BPF_TAX,	  BPF_MISC | BPF_TXA,
	};
	static const uint16_t memory[] = { BPF_LD | BPF_MEM, BPF_LDX | BPF_MEM,
					   BPF_ST, BPF_STX };

	if (test_below(2))
		return (struct classic_insn){ memory[test_below(4)], 0, 0,
					      test_below(BPF_MEMWORDS) };
	return (struct classic_insn){ codes[test_below(6)], 0, 0, random_value() };
}

static struct classic_insn random_alu(void)
{
	uint16_t op = (uint16_t)(test_below(11) << 4),
		 x = test_below(2) ? BPF_X : BPF_K;
	uint32_t k = random_value();

	if (op == BPF_NEG)
		x = BPF_K;
	if (op == BPF_DIV || op == BPF_MOD)
		k = k ?: 1;
	if (op == BPF_LSH || op == BPF_RSH)
		k &= 31;
	return (struct classic_insn){ BPF_ALU | op | x, 0, 0, k };
}

static struct classic_insn random_jump(uint32_t left)
{
	uint16_t op = (uint16_t)(test_below(5) << 4),
		 x = test_below(3) ? BPF_K : BPF_X;
	uint32_t most = left < 255 ? left : 255;

	if (op == BPF_JA)
		return (struct classic_insn){ BPF_JMP | BPF_JA, 0, 0,
					      test_below(left < 5 ? left : 5) };
	return (struct classic_insn){ BPF_JMP | op | x, (uint8_t)test_below(most),
				      (uint8_t)test_below(most), random_value() };
}

/* libpcap's memory starts with what was there before, so all of it is set first. */
static uint32_t random_program(struct classic_insn *insns, uint32_t body)
{
	uint32_t n = 0, end = BPF_MEMWORDS + body;

	while (n < BPF_MEMWORDS) {
		insns[n] = (struct classic_insn){ BPF_ST, 0, 0, n };
		n++;
	}
	while (n < end) {
		uint32_t left = end - n, kind = test_below(16);

		insns[n++] = kind < 5  ? random_load() :
			     kind < 9  ? random_move() :
			     kind < 12 ? random_alu() :
			     kind < 15 ? random_jump(left) :
					 (struct classic_insn){ BPF_RET | BPF_A,
								0, 0, 0 };
	}
	insns[n++] =
		(struct classic_insn){ BPF_RET | (test_below(2) ? BPF_A : BPF_K),
				       0, 0, (uint32_t)test_random() };
	return n;
}

TEST(random_programs_are_libpcaps)
{
	const char *given = getenv("NETOBS_TEST_PROGRAMS");
	uint32_t programs = given ? (uint32_t)atoi(given) :
				    PROGRAMS / lab_shrink(),
		 matched = 0;

	for (uint32_t i = 0; i < programs; i++) {
		struct classic_insn insns[128];
		struct classic classic = {
			insns, random_program(insns, 1 + test_below(60))
		};
		int link = test_below(4) ? LINK_ETHERNET : LINK_NONE;
		struct frame frame = random_frame(link);

		assert_true(compare_random(&classic, link,
					   link ? tags[0] : tags[test_below(3)],
					   "a random program"));
		matched += classic_run(&classic, frame.bytes, frame.len,
				       frame.len) > 0;
	}
	assert_in_range(matched, 1, programs - 1);
}

/* ---- Bad input ------------------------------------------------------------------------------ */

static void assert_refused(struct classic_insn insn)
{
	struct classic_insn insns[] = { insn, { BPF_RET | BPF_K, 0, 0, 1 } };
	struct classic classic = { insns, 2 };
	struct code code = { 0 };

	assert_int_equal(translate(&classic, FRAME_BUFFER, &code), -EINVAL);
	code_done(&code);
}

TEST(what_is_not_a_program_is_refused)
{
	static const struct classic_insn bad[] = {
		{ BPF_LD | BPF_MEM, 0, 0, BPF_MEMWORDS },
		{ BPF_STX, 0, 0, UINT32_MAX },
		{ BPF_ALU | BPF_DIV | BPF_K, 0, 0, 0 },
		{ BPF_ALU | BPF_MOD | BPF_K, 0, 0, 0 },
		{ BPF_ALU | 0xb0, 0, 0, 0 },
		{ BPF_JMP | BPF_JA, 0, 0, 1 },
		{ BPF_JMP | BPF_JA, 0, 0, (uint32_t)-2 },
		{ BPF_JMP | BPF_JEQ, 1, 0, 0 },
		{ BPF_JMP | BPF_JEQ, 0, 1, 0 },
	};
	struct classic_insn load = { BPF_LD | BPF_IMM, 0, 0, 1 };
	struct classic open_end = { &load, 1 }, empty = { &load, 0 };
	struct code none = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(bad[i]);
	assert_int_equal(translate(&open_end, FRAME_BUFFER, &none), -EINVAL);
	assert_int_equal(translate(&empty, FRAME_BUFFER, &none), -EINVAL);
	code_done(&none);
}
