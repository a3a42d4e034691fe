// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "alerts.h"

#include "base/options.h"
#include "base/util.h"
#include "bpf/connection.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	HOLD_DEFAULT_S = 10,
	LIMIT_DEFAULT = 10, /* a second */
	LIMIT_MAX = 1000000,
	MILLION = 1000000,
	SHARE_MAX = MILLION - 1, /* no sample is over 100 % */
	INTEGER_DIGITS = 9,
	FRACTION_DIGITS = 6,
	RATIO_MAX = 1000000,
};

struct unit {
	const char *name;
	uint64_t scale;
};

static const struct unit times[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "m", 60 * NSEC_PER_SEC },
	{ "h", 3600 * NSEC_PER_SEC },
	{ 0 },
};

static const struct unit rates[] = {
	{ "bit", 1 },
	{ "kbit", 1000 },
	{ "Mbit", 1000000 },
	{ "Gbit", 1000000000 },
	{ 0 },
};

static const struct unit shares[] = { { "%", MILLION / 100 }, { 0 } };

static const struct unit packets[] = { { 0 } };

static const uint64_t window_ns = (uint64_t)CONN_RATE_WINDOW << CONN_TICK_SHIFT;

static const struct metric {
	const char *name;
	const struct unit *units;
	const char *kind; /* of its amounts, for messages */
	bool has_baseline;
	uint64_t max;
	const char *max_text;
} metrics[ALERT_RULE_METRICS] = {
	[ALERT_RTT] = { "rtt", times, "a time, such as 50ms", true,
			(uint64_t)CONN_LATENCY_MAX << CONN_LATENCY_SHIFT, "274s" },
	[ALERT_APP_LATENCY] = { "app_latency", times, "a time, such as 50ms", true,
				(uint64_t)CONN_LATENCY_MAX << CONN_LATENCY_SHIFT,
				"274s" },
	[ALERT_RETRANSMITS] = { "retransmits", shares, "a share, such as 1%",
				false, SHARE_MAX, "99.9999%" },
	[ALERT_RATE] = { "rate", rates, "a rate, such as 100Mbit", false,
			 UINT64_C(340000000000), "340Gbit" },
	[ALERT_DROPS] = { "drops", packets,
			  "a number of packets, or a share, such as 1%", false,
			  0, NULL },
	/* Drops as a share: it has no word, which ends the list of words. */
	[ALERT_DROP_SHARE] = { NULL, shares, "a share, such as 1%", false,
			       SHARE_MAX, "99.9999%" },
};

/* ---- Words ------------------------------------------------------------------------ */

struct reader {
	const char *text;
	const char *pos;
	char *why;
	size_t why_size;
};

/* Report what is wrong with the text at @at. */
__attribute__((format(printf, 3, 4))) static int
refuse_rule(const struct reader *reader, const char *at, const char *format, ...)
{
	int len = snprintf(reader->why, reader->why_size,
			   "column %zu: ", (size_t)(at - reader->text) + 1);
	va_list args;

	if (len < 0 || (size_t)len >= reader->why_size)
		return -EINVAL;
	va_start(args, format);
	vsnprintf(reader->why + len, reader->why_size - (size_t)len, format,
		  args);
	va_end(args);
	return -EINVAL;
}

static void skip_blanks(struct reader *reader)
{
	reader->pos += strspn(reader->pos, " \t\r\n");
}

static bool is_letter(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool is_digit(char c)
{
	return isdigit((unsigned char)c);
}

/* Take a word, or nothing. @return its length */
static size_t read_word(struct reader *reader, const char **ret_word)
{
	skip_blanks(reader);
	*ret_word = reader->pos;
	while (is_letter(*reader->pos))
		reader->pos++;
	return (size_t)(reader->pos - *ret_word);
}

static bool is_word(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(word, name, len);
}

/* Take a sign of one character. */
static bool take_sign(struct reader *reader, char sign)
{
	skip_blanks(reader);
	if (*reader->pos != sign)
		return false;
	reader->pos++;
	return true;
}

/* @return the length of the word, number or character at @at, to be shown in messages */
static int shown_len(const char *at)
{
	int len = 0;

	while (len < 32 && (is_letter(at[len]) || is_digit(at[len]) ||
			    (at[len] == '.' && len)))
		len++;
	return len || !*at ? len : 1;
}

static int complain_instead(const struct reader *reader, const char *at,
			    const char *expected)
{
	if (!*at)
		return refuse_rule(reader, at,
				   "the rule ends too early: it lacks %s",
				   expected);
	return refuse_rule(reader, at, "'%.*s' is there, and %s is expected",
			   shown_len(at), at, expected);
}

/* @kind: "metric" */
static int complain_word(const struct reader *reader,
			 const struct suggestion *suggestion, const char *at,
			 const char *kind, const char *expected)
{
	const char *best = suggestion_best(suggestion);

	return refuse_rule(reader, at, "there is no %s '%.*s'; %s%s%s", kind,
			   (int)min_u64(suggestion->len, 32), at,
			   best ? "did you mean '" : "", best ?: expected,
			   best ? "'?" : " is expected");
}

/*
 * Find what was read in a table of things that begin with their names, up to one without.
 *
 * @param size      of each
 * @param kind      of the word, and
 * @param expected  what may be there, for messages
 * @return its index, or -EINVAL
 */
static int choose_word(const struct reader *reader, const char *word,
		       size_t len, const void *table, size_t size,
		       const char *kind, const char *expected)
{
	struct suggestion suggestion = suggestion_for(word, len);
	const char *name;

	for (int i = 0;; i++) {
		memcpy(&name, (const char *)table + (size_t)i * size,
		       sizeof(name));
		if (!name)
			break;
		if (is_word(word, len, name))
			return i;
		suggestion_offer(&suggestion, name);
	}
	return len ? complain_word(reader, &suggestion, word, kind, expected) :
		     complain_instead(reader, word, expected);
}

/* ---- Numbers ---------------------------------------------------------------------- */

/* Read a decimal number, in millionths. */
static int read_rule_number(struct reader *reader, const char *expected,
			    uint64_t *ret_millionths)
{
	uint64_t value = 0, unit = MILLION;
	const char *at;
	int n = 0;

	skip_blanks(reader);
	at = reader->pos;
	for (; is_digit(*reader->pos); reader->pos++, n++)
		value = n < INTEGER_DIGITS ?
				value * 10 + (uint64_t)(*reader->pos - '0') :
				value;
	if (!n)
		return complain_instead(reader, at, expected);
	if (n > INTEGER_DIGITS)
		return refuse_rule(reader, at,
				   "the number has more than %d digits",
				   INTEGER_DIGITS);
	value *= MILLION;
	if (*reader->pos == '.') {
		reader->pos++;
		for (n = 0; is_digit(*reader->pos); reader->pos++, n++) {
			unit /= 10;
			value += unit * (uint64_t)(*reader->pos - '0');
		}
		if (!n)
			return complain_instead(reader, reader->pos, "a digit");
		if (n > FRACTION_DIGITS)
			return refuse_rule(reader, at,
					   "the number has more than %d decimals",
					   FRACTION_DIGITS);
	}
	*ret_millionths = value;
	return 0;
}

static int read_whole(struct reader *reader, uint64_t least, uint64_t most,
		      uint32_t *ret_number)
{
	const char *at;
	uint64_t value = 0;
	int err;

	skip_blanks(reader);
	at = reader->pos;
	err = read_rule_number(reader, "a number", &value);
	if (err)
		return err;
	if (value % MILLION || value / MILLION < least || value / MILLION > most)
		return refuse_rule(reader, at,
				   "the number has to be from %llu to %llu",
				   (unsigned long long)least,
				   (unsigned long long)most);
	*ret_number = (uint32_t)(value / MILLION);
	return 0;
}

/* @return 0, or -EINVAL: it does not fit */
static int scale_value(uint64_t millionths, uint64_t scale, uint64_t *ret_value)
{
	uint64_t whole;

	if (__builtin_mul_overflow(millionths / MILLION, scale, &whole) ||
	    __builtin_add_overflow(whole, millionths % MILLION * scale / MILLION,
				   ret_value))
		return -EINVAL;
	return 0;
}

static const struct unit *read_unit(struct reader *reader,
				    const struct unit *units)
{
	const char *word;
	size_t len = read_word(reader, &word);
	int i;

	if (!len && *word == '%') {
		reader->pos++;
		len = 1;
	}
	i = choose_word(reader, word, len, units, sizeof(*units), "unit",
			units == times ? "a unit (ns, us, ms, s, m or h)" :
			units == rates ? "a unit (bit, kbit, Mbit or Gbit)" :
					 "%");
	return i < 0 ? NULL : &units[i];
}

/* Read a number with a unit. */
static int read_amount(struct reader *reader, const struct unit *units,
		       const char *kind, uint64_t max, const char *max_text,
		       uint64_t *ret_value)
{
	const struct unit *unit;
	uint64_t millionths = 0;
	const char *at;
	int err;

	skip_blanks(reader);
	at = reader->pos;
	err = read_rule_number(reader, kind, &millionths);
	if (err)
		return err;
	unit = read_unit(reader, units);
	if (!unit)
		return -EINVAL;
	if (units == rates && *reader->pos == '/') { /* "100Mbit/s" */
		reader->pos++;
		if (!take_sign(reader, 's'))
			return complain_instead(reader, reader->pos, "s");
	}
	if (scale_value(millionths, unit->scale, ret_value) || *ret_value > max)
		return refuse_rule(reader, at, "the most is %s", max_text);
	if (units == shares && millionths % (MILLION / unit->scale))
		return refuse_rule(reader, at,
				   "shares are multiples of 0.0001%%");
	return 0;
}

/* ---- Parts of a rule -------------------------------------------------------------- */

static int read_metric(struct reader *reader, struct alert_spec *spec)
{
	const char *word;
	size_t len = read_word(reader, &word);
	int i = choose_word(
		reader, word, len, metrics, sizeof(*metrics), "metric",
		"one of rtt, app_latency, retransmits, rate and drops");

	if (i < 0)
		return i;
	spec->metric = (unsigned int)i;
	return 0;
}

/* Read what follows "NUMBER *". */
static int read_baseline(struct reader *reader, const char *at,
			 uint64_t millionths, struct alert_spec *spec)
{
	static const char *const names[] = { "baseline", NULL };
	const struct metric *metric = &metrics[spec->metric];
	const char *word;
	size_t len = read_word(reader, &word);

	if (choose_word(reader, word, len, names, sizeof(*names), "word",
			"baseline") < 0)
		return -EINVAL;
	if (!metric->has_baseline)
		return refuse_rule(reader, word, "%s has no baseline",
				   metric->name);
	if (millionths < MILLION || millionths / MILLION > RATIO_MAX)
		return refuse_rule(reader, at, "a multiple is from 1 to %d",
				   RATIO_MAX);
	spec->is_ratio = true;
	spec->threshold = (millionths << ALERT_RATIO_SHIFT) / MILLION;
	return 0;
}

/* Take the number as packets, unless a '%' makes it a share. @return whether it is packets */
static bool read_packets(struct reader *reader, uint64_t millionths,
			 struct alert_spec *spec)
{
	const char *after = reader->pos;

	if (take_sign(reader, '%')) {
		spec->metric = ALERT_DROP_SHARE;
		return false;
	}
	reader->pos = after;
	spec->threshold = millionths / MILLION;
	return true;
}

static int read_threshold(struct reader *reader, struct alert_spec *spec)
{
	const struct metric *metric = &metrics[spec->metric];
	uint64_t millionths = 0;
	const char *at;
	int err;

	if (!take_sign(reader, '>'))
		return complain_instead(reader, reader->pos, "'>'");
	skip_blanks(reader);
	at = reader->pos;
	err = read_rule_number(reader, metric->kind, &millionths);
	if (err)
		return err;
	if (take_sign(reader, '*'))
		return read_baseline(reader, at, millionths, spec);
	if (metric->units == packets) {
		if (read_packets(reader, millionths, spec))
			return millionths % MILLION ?
				       refuse_rule(reader, at,
						   "packets are whole numbers") :
				       0;
		metric = &metrics[spec->metric];
	}
	reader->pos = at;
	return read_amount(reader, metric->units, metric->kind, metric->max,
			   metric->max_text, &spec->threshold);
}

static int read_for(struct reader *reader, struct alert_spec *spec)
{
	const char *word, *at;
	size_t len;
	int err;

	skip_blanks(reader);
	at = reader->pos;
	err = read_whole(reader, 1, ALERT_SAMPLES_MAX, &spec->needed);
	if (err)
		return err;
	len = read_word(reader, &word);
	if (!is_word(word, len, "of"))
		return complain_instead(reader, word, "'of'");
	err = read_whole(reader, 1, ALERT_SAMPLES_MAX, &spec->among);
	if (!err && spec->needed > spec->among)
		return refuse_rule(reader, at, "%u of %u cannot be",
				   spec->needed, spec->among);
	return err;
}

static int read_hold(struct reader *reader, struct alert_spec *spec)
{
	return read_amount(reader, times, "a time, such as 30s",
			   ALERT_HOLD_MAX_S * NSEC_PER_SEC, "24h",
			   &spec->hold_ns);
}

static int read_limit(struct reader *reader, struct alert_spec *spec)
{
	const char *before = reader->pos, *word;
	size_t len = read_word(reader, &word);
	int err;

	if (is_word(word, len, "none")) {
		spec->limit = 0;
		return 0;
	}
	reader->pos = before;
	err = read_whole(reader, 1, LIMIT_MAX, &spec->limit);
	if (err)
		return err;
	if (!take_sign(reader, '/'))
		return complain_instead(reader, reader->pos,
					"'/s', '/m' or '/h'");
	len = read_word(reader, &word);
	if (len == 1 && strchr("smh", *word)) {
		spec->limit_period_ns = *word == 's' ? NSEC_PER_SEC :
					*word == 'm' ? 60 * NSEC_PER_SEC :
						       3600 * NSEC_PER_SEC;
		return 0;
	}
	return complain_instead(reader, word, "s, m or h");
}

/* Read the rest of the text. */
static int read_where(struct reader *reader, struct alert_spec *spec)
{
	skip_blanks(reader);
	if (!*reader->pos)
		return complain_instead(reader, reader->pos, "an expression");
	spec->filter = reader->pos;
	reader->pos += strlen(reader->pos);
	return 0;
}

static int read_options(struct reader *reader, struct alert_spec *spec)
{
	static const struct {
		const char *name;
		int (*read)(struct reader *reader, struct alert_spec *spec);
	} options[] = {
		{ "for", read_for },
		{ "hold", read_hold },
		{ "limit", read_limit },
		{ "where", read_where },
		{ 0 },
	};
	bool is_given[ARRAY_SIZE(options)] = { false };

	for (;;) {
		const char *word;
		size_t len = read_word(reader, &word);
		int err, i;

		if (!*word)
			return 0;
		i = choose_word(reader, word, len, options, sizeof(*options),
				"option", "for, hold, limit or where");
		if (i < 0)
			return i;
		if (is_given[i])
			return refuse_rule(reader, word, "'%s' is there twice",
					   options[i].name);
		is_given[i] = true;
		err = options[i].read(reader, spec);
		if (err)
			return err;
	}
}

int alert_rule_parse(const char *text, struct alert_spec *ret_spec,
		     char *ret_why, size_t size)
{
	struct reader reader = { text, text, ret_why, size };
	struct alert_spec spec = {
		.needed = 1,
		.among = 1,
		.hold_ns = HOLD_DEFAULT_S * NSEC_PER_SEC,
		.limit = LIMIT_DEFAULT,
		.limit_period_ns = NSEC_PER_SEC,
	};
	int err;

	if (strlen(text) >= ALERT_TEXT_MAX)
		return refuse_rule(&reader, text,
				   "the rule is longer than %d bytes",
				   ALERT_TEXT_MAX - 1);
	err = read_metric(&reader, &spec);
	err = err ?: read_threshold(&reader, &spec);
	err = err ?: read_options(&reader, &spec);
	if (!err)
		*ret_spec = spec;
	return err;
}

/* ---- As programs compare it -------------------------------------------------------- */

static uint32_t threshold_of(const struct alert_spec *spec)
{
	if (spec->is_ratio)
		return (uint32_t)spec->threshold;
	switch (spec->metric) {
	case ALERT_RTT:
	case ALERT_APP_LATENCY:
		return (uint32_t)(spec->threshold >> CONN_LATENCY_SHIFT);
	case ALERT_RATE:
		/* Bits per second to bytes: up to 340 * 10^9 bits. */
		return (uint32_t)(spec->threshold / 8 * (window_ns / 1000) /
				  MILLION);
	default:
		return (uint32_t)spec->threshold;
	}
}

struct alert_rule alert_rule_compile(const struct alert_spec *spec)
{
	struct alert_rule rule = {
		.hold = (uint32_t)(spec->hold_ns >> CONN_TICK_SHIFT),
		.threshold = threshold_of(spec),
		.needed = (uint8_t)spec->needed,
		.among = (uint8_t)spec->among,
	};

	if (spec->hold_ns && !rule.hold)
		rule.hold = 1;
	if (spec->limit) {
		rule.period_ns = spec->limit_period_ns / spec->limit;
		rule.burst_ns = rule.period_ns * (spec->limit - 1);
	}
	return rule;
}

uint64_t alert_value(unsigned int metric, uint32_t sample)
{
	switch (metric) {
	case ALERT_RTT:
	case ALERT_APP_LATENCY:
		return (uint64_t)sample << CONN_LATENCY_SHIFT;
	case ALERT_RATE:
		return (uint64_t)sample * 8 * NSEC_PER_SEC / window_ns;
	default:
		return sample;
	}
}
