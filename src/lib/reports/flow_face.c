/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <netobs/flow.h>

#include "base/text.h"
#include "base/util.h"

/* ---- Single values --------------------------------------------------------------------- */

bool flow_number_read(struct json_value value, uint64_t most, uint64_t *ret_number)
{
	const size_t len = json_length(value);
	const uint64_t number = json_number(value);
	size_t read = 0;

	while (read < len && value.at[read] >= '0' && value.at[read] <= '9')
		read++;
	if (!read || number > most)
		return false;
	if (read < len && value.at[read] == '.')
		do {
			read++;
		} while (read < len && value.at[read] == '0');
	if (read < len)
		return false;
	*ret_number = number;
	return true;
}

bool flow_address_read(struct json_value value, uint8_t ret_ip[16])
{
	char text[NETOBS_ADDR_STR_MAX];

	return ip_read(json_text(value, text, sizeof(text)), ret_ip);
}

/* ---- Times ----------------------------------------------------------------------------- */

/* 2^53: JSON of others has no greater numbers. */
#define TIME_MAX_MS (1LL << 53)

enum { TEXT_MAX = 48 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The part behind the dot: ".709", ".7" or ".709321000". @return what follows */
static const char *read_fraction(const char *text, int *ret_ms)
{
	int weight = 100;

	*ret_ms = 0;
	for (text++; is_digit(*text); text++, weight /= 10)
		*ret_ms += weight * (*text - '0');
	return text;
}

static bool read_number(const char *text, enum time_unit unit,
			struct flow_time *ret_time)
{
	const bool is_number = is_digit(*text);
	uint64_t number = 0;
	int fraction = 0;
	int64_t ms;

	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*text - '0'),
					   &number))
			return false;
	ret_time->is_second = unit == TIME_S && !*text;
	if (*text == '.')
		text = read_fraction(text, &fraction);
	if (!is_number || *text || number > INT64_MAX ||
	    (unit == TIME_S && number > TIME_MAX_MS / 1000 - 1))
		return false;
	ms = unit == TIME_S  ? (int64_t)number * 1000 + fraction :
	     unit == TIME_MS ? (int64_t)number :
	     unit == TIME_US ? (int64_t)number / 1000 :
			       (int64_t)number / NSEC_PER_MSEC;
	ret_time->ms = ms;
	return ms <= TIME_MAX_MS;
}

static bool read_date(const char *text, struct flow_time *ret_time)
{
	struct tm tm = { .tm_isdst = -1 };
	const char *end = strptime(text, "%Y-%m-%d", &tm);
	const char *zone;
	int64_t seconds;
	long offset;
	int ms = 0;

	if (!end || (*end != 'T' && *end != ' '))
		return false;
	end = strptime(end + 1, "%H:%M:%S", &tm);
	if (!end || tm.tm_year < 70)
		return false;
	ret_time->is_second = *end != '.';
	if (*end == '.')
		end = read_fraction(end, &ms);
	zone = *end ? strptime(end, "%z", &tm) : end;
	if (!zone || *zone)
		return false;
	offset = tm.tm_gmtoff; /* timegm(3) changes it */
	seconds = *end ? (int64_t)timegm(&tm) - offset : (int64_t)mktime(&tm);
	ret_time->ms = seconds * 1000 + ms;
	return seconds >= 0 && seconds < TIME_MAX_MS / 1000;
}

bool flow_time_read(struct json_value value, enum time_unit unit,
		    struct flow_time *ret_time)
{
	const size_t len = json_length(value);
	struct flow_time time = { 0 };
	char text[TEXT_MAX] = "";
	bool is_read;

	if (len >= sizeof(text))
		return false;
	if (len && *value.at == '"')
		json_text(value, text, sizeof(text));
	else if (len)
		memcpy(text, value.at, len);
	is_read = strchr(text, ':') ? read_date(text, &time) :
				      read_number(text, unit, &time);
	if (is_read)
		*ret_time = time;
	return is_read;
}

int64_t flow_time_ms(struct json_value value)
{
	struct flow_time time = { 0 };

	flow_time_read(value, TIME_MS, &time);
	return time.ms;
}

/* ---- Tuples ---------------------------------------------------------------------------- */

bool flow_face_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
	       proto == IPPROTO_SCTP || proto == IPPROTO_DCCP ||
	       proto == IPPROTO_UDPLITE;
}

static struct json_value get_other(struct json_value record, const char *prefix,
				   const char *name)
{
	char key[32];

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	return json_get(record, key);
}

/* Read a port, or 0 if the record has none. @return false: it is wrong */
static bool read_other_port(struct json_value record, const char *prefix,
			    const char *name, uint16_t *ret_port)
{
	const struct json_value value = get_other(record, prefix, name);
	uint64_t number = 0;

	if (value.at && !flow_number_read(value, UINT16_MAX, &number))
		return false;
	*ret_port = (uint16_t)number;
	return true;
}

bool flow_face_read_other(struct json_value record, const char *prefix,
			  const struct flow_face *face,
			  struct flow_face *ret_other)
{
	struct flow_face other = { .proto = face->proto };

	if (!flow_address_read(get_other(record, prefix, "SrcAddr"), other.src) ||
	    !flow_address_read(get_other(record, prefix, "DstAddr"), other.dst))
		return false;
	if (flow_face_has_ports(face->proto) &&
	    (!read_other_port(record, prefix, "SrcPort", &other.src_port) ||
	     !read_other_port(record, prefix, "DstPort", &other.dst_port)))
		return false;
	*ret_other = other;
	return true;
}

struct flow_face flow_face_back(const struct flow_face *face)
{
	struct flow_face back = { .src_port = face->dst_port,
				  .dst_port = face->src_port,
				  .proto = face->proto };

	memcpy(back.src, face->dst, sizeof(back.src));
	memcpy(back.dst, face->src, sizeof(back.dst));
	return back;
}

bool flow_face_equal(const struct flow_face *a, const struct flow_face *b)
{
	return !memcmp(a, b, sizeof(*a));
}
