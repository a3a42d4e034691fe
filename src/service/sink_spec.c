/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service_config.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* Characters without a meaning in a spec; all others are written as %XX. */
static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c && strchr("-._~/:,@", c));
}

static void write_option(FILE *spec, char before, const struct conf_entry *entry)
{
	fprintf(spec, "%c%s=", before, entry->key);
	for (const char *at = entry->value; *at; at++)
		fprintf(spec, is_plain(*at) ? "%c" : "%%%02x",
			(unsigned char)*at);
}

/* Kinds that send JSON or OTLP. */
static bool has_fields(const struct conf *conf, const struct conf_entry *output)
{
	static const char *const kinds[] = { "json", "http",	  "https",
					     "otlp", "otlp+http", "otlp+https" };
	const char *kind = output->value;
	const size_t len = strcspn(kind, ":?");
	const struct conf_entry *encoding =
		conf_find(conf, "sink", output->name, "encoding");
	const char *inside = output_spec_option(kind, "encoding=");

	if (len == 5 && !memcmp(kind, "kafka", len))
		return encoding ? !strcmp(encoding->value, "json") :
				  inside && !strncmp(inside, "encoding=json",
						     strcspn(inside, "&"));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i]) == len && !memcmp(kind, kinds[i], len))
			return true;
	return false;
}

bool sink_spec_is_host_field(const struct conf_entry *entry)
{
	static const char prefix[] = "field.";

	return entry->key && !strcmp(entry->section, "host") &&
	       !strncmp(entry->key, prefix, sizeof(prefix) - 1);
}

/* @return whether a member of [host] is used by a sink, which may override or remove it */
static bool is_of_host(const struct conf *conf, const struct conf_entry *entry,
		       const struct conf_entry *output)
{
	char own[128];

	if (!sink_spec_is_host_field(entry) || !has_fields(conf, output) ||
	    conf_find(conf, "host", "", entry->key) != entry)
		return false;
	snprintf(own, sizeof(own), "%s=", entry->key);
	return !conf_find(conf, "sink", output->name, entry->key) &&
	       !output_spec_option(output->value, own);
}

static bool is_option_of(const struct conf *conf, const struct conf_entry *entry,
			 const struct conf_entry *output)
{
	const char *name = output->name;

	if (!entry->key || !*entry->value)
		return false;
	if (is_of_host(conf, entry, output))
		return true;
	return !strcmp(entry->section, "sink") && !strcmp(entry->name, name) &&
	       strcmp(entry->key, "output") &&
	       conf_find(conf, "sink", name, entry->key) == entry;
}

char *sink_spec_make(const struct conf *conf, const struct conf_entry *output)
{
	char before = strchr(output->value, '?') ? '&' : '?', *text;
	size_t len;
	FILE *spec = open_memstream(&text, &len);

	if (!spec)
		return NULL;
	fputs(output->value, spec);
	for (size_t i = 0; i < conf->n; i++) {
		if (!is_option_of(conf, &conf->entries[i], output))
			continue;
		write_option(spec, before, &conf->entries[i]);
		before = '&';
	}
	return fclose(spec) ? NULL : text;
}

struct conf_place sink_spec_place(const struct conf *conf,
				  const struct conf_entry *output,
				  const char *message)
{
	for (size_t i = 0; i < conf->n; i++) {
		const struct conf_entry *entry = &conf->entries[i];
		char unknown[128], wrong[128];

		if (!is_option_of(conf, entry, output))
			continue;
		snprintf(unknown, sizeof(unknown), "option '%s'", entry->key);
		snprintf(wrong, sizeof(wrong), "option %s:", entry->key);
		if (strstr(message, unknown))
			return entry->place;
		if (strstr(message, wrong))
			return entry->value_place;
	}
	return output->value_place;
}
