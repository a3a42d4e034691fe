/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flow_face.h"

#include <string.h>
#include <time.h>

#include "base/util.h"

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

/* Read "Z", "+01:00" or "+0100". @return false: it is none of these */
static bool read_zone(const char *text, int64_t *ret_seconds)
{
	const int sign = *text == '-' ? -1 : 1;
	int digits[4], n = 0;

	*ret_seconds = 0;
	if (!strcmp(text, "Z"))
		return true;
	if (*text != '+' && *text != '-')
		return false;
	for (text++; *text; text++) {
		if (*text == ':' && n == 2)
			continue;
		if (!is_digit(*text) || n == 4)
			return false;
		digits[n++] = *text - '0';
	}
	if (n != 4)
		return false;
	*ret_seconds = sign * (digits[0] * 36000 + digits[1] * 3600 +
			       digits[2] * 600 + digits[3] * 60);
	return true;
}

static bool read_date(const char *text, struct flow_time *ret_time)
{
	struct tm tm = { .tm_isdst = -1 };
	const char *end = strptime(text, "%Y-%m-%d", &tm);
	int64_t offset = 0, seconds;
	int ms = 0;

	if (!end || (*end != 'T' && *end != ' '))
		return false;
	end = strptime(end + 1, "%H:%M:%S", &tm);
	if (!end || tm.tm_year < 70)
		return false;
	ret_time->is_second = *end != '.';
	if (*end == '.')
		end = read_fraction(end, &ms);
	if (*end && !read_zone(end, &offset))
		return false;
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
