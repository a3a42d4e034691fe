// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spec.h"

#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void spec_refuse(struct spec *spec, const char *format, ...)
{
	char text[512];
	va_list args;

	if (spec->is_wrong)
		return;
	spec->is_wrong = true;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_error(spec->log, "%s: %s", spec->kind ?: "sink", text);
}

/* ---- Parsing ------------------------------------------------------------------- */

/* Decode in place. False: there is a % that two hex digits do not follow, or %00. */
static bool decode_text(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int high, low;

		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		high = hex_digit(from[1]);
		low = high < 0 ? -1 : hex_digit(from[2]);
		if (low < 0 || !(high | low))
			return false;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	return true;
}

static void add_option(struct spec *spec, char *text)
{
	char *value = strchr(text, '=');

	if (!value || value == text) {
		spec_refuse(spec, "'%s' is not NAME=VALUE", text);
		return;
	}
	*value++ = '\0';
	if (!decode_text(text) || !decode_text(value)) {
		spec_refuse(spec,
			    "option %s: %% must be followed by two hexadecimal digits",
			    text);
		return;
	}
	for (size_t i = 0; i < spec->n_options; i++) {
		if (!strcmp(spec->options[i].name, text)) {
			spec_refuse(spec, "option %s is given twice", text);
			return;
		}
	}
	if (spec->n_options == SPEC_OPTIONS_MAX) {
		spec_refuse(spec, "more than %d options", SPEC_OPTIONS_MAX);
		return;
	}
	spec->options[spec->n_options++] =
		(struct spec_option){ text, value, false,
				      suggestion_for(text, strlen(text)) };
}

static void add_options(struct spec *spec, char *text)
{
	char *rest = text, *part;

	while ((part = strsep(&rest, "&")))
		add_option(spec, part);
}

int spec_parse(struct spec *spec, const char *text, const struct log *log)
{
	char *target, *options;

	*spec = (struct spec){ .log = log, .text = strdup(text) };
	if (!spec->text)
		return -ENOMEM;
	options = strchr(spec->text, '?');
	if (options)
		*options++ = '\0';
	target = strchr(spec->text, ':');
	if (target)
		*target++ = '\0';
	if (!*spec->text)
		spec_refuse(spec, "'%s' does not start with the kind of sink",
			    text);
	spec->kind = spec->text;
	if (target && !decode_text(target))
		spec_refuse(spec,
			    "'%s': %% must be followed by two hexadecimal digits",
			    target);
	if (target && !*target)
		spec_refuse(spec, "nothing follows the colon");
	spec->target = target;
	if (options)
		add_options(spec, options);
	if (!spec->is_wrong)
		return 0;
	spec_free(spec);
	return -EINVAL;
}

void spec_free(struct spec *spec)
{
	free(spec->text);
	*spec = (struct spec){ 0 };
}

/* ---- Options ------------------------------------------------------------------- */

static const char *find_option(struct spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->n_options; i++) {
		suggestion_offer(&spec->options[i].suggestion, name);
		if (strcmp(spec->options[i].name, name))
			continue;
		spec->options[i].is_known = true;
		return spec->options[i].value;
	}
	return NULL;
}

const char *spec_string(struct spec *spec, const char *name, const char *otherwise)
{
	return find_option(spec, name) ?: otherwise;
}

static uint64_t get_number(struct spec *spec, enum value_kind kind,
			   const char *name, uint64_t least, uint64_t most,
			   uint64_t otherwise)
{
	const char *text = find_option(spec, name);
	char from[32], to[32];
	uint64_t number;

	if (!text)
		return otherwise;
	if (!value_parse(kind, text, least, most, &number))
		return number;
	value_format(kind, least, from, sizeof(from));
	value_format(kind, most, to, sizeof(to));
	spec_refuse(spec, "option %s: '%s' is not from %s to %s", name, text,
		    from, to);
	return otherwise;
}

uint64_t spec_number(struct spec *spec, const char *name, uint64_t least,
		     uint64_t most, uint64_t otherwise)
{
	return get_number(spec, VALUE_NUMBER, name, least, most, otherwise);
}

uint64_t spec_size(struct spec *spec, const char *name, uint64_t least,
		   uint64_t most, uint64_t otherwise)
{
	return get_number(spec, VALUE_BYTES, name, least, most, otherwise);
}

uint64_t spec_duration_ms(struct spec *spec, const char *name, uint64_t least,
			  uint64_t most, uint64_t otherwise)
{
	return get_number(spec, VALUE_DURATION, name, least, most, otherwise);
}

unsigned int spec_mode(struct spec *spec, const char *name, unsigned int otherwise)
{
	const char *text = find_option(spec, name);

	if (!text)
		return otherwise;
	if (*text && strlen(text) <= 4 &&
	    strspn(text, "01234567") == strlen(text) &&
	    strtoul(text, NULL, 8) & 0777 && strtoul(text, NULL, 8) <= 0777)
		return (unsigned int)strtoul(text, NULL, 8);
	spec_refuse(spec,
		    "option %s: '%s' is not permissions in octal, such as 640",
		    name, text);
	return otherwise;
}

int spec_choice(struct spec *spec, const char *name, const char *const *choices,
		int otherwise)
{
	const char *text = find_option(spec, name);
	char all[256] = "";
	int choice;

	if (!text)
		return otherwise;
	choice = value_choice(choices, text);
	if (choice >= 0)
		return choice;
	for (int i = 0; choices[i]; i++) {
		size_t used = strlen(all);

		snprintf(all + used, sizeof(all) - used, "%s%s", i ? "|" : "",
			 choices[i]);
	}
	spec_refuse(spec, "option %s: '%s' is not %s", name, text, all);
	return otherwise;
}

const struct spec_option *spec_next(struct spec *spec, const char *prefix,
				    size_t *position)
{
	while (*position < spec->n_options) {
		struct spec_option *option = &spec->options[(*position)++];

		if (strncmp(option->name, prefix, strlen(prefix)))
			continue;
		option->is_known = true;
		return option;
	}
	return NULL;
}

static void refuse_unknown(struct spec *spec, const struct spec_option *option)
{
	const char *best = suggestion_best(&option->suggestion);

	spec_refuse(spec, "unknown option '%s'%s%s%s", option->name,
		    best ? "; did you mean '" : "", best ?: "", best ? "'?" : "");
}

int spec_finish(struct spec *spec)
{
	for (size_t i = 0; i < spec->n_options; i++)
		if (!spec->options[i].is_known)
			refuse_unknown(spec, &spec->options[i]);
	if (spec->is_wrong)
		return -EINVAL;
	return spec->is_trial ? -ECANCELED : 0;
}
