/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/util.h"
#include "cli/view/print.h"
#include "service/options/args.h"
#include "service/service_config.h"

enum { OUTPUT_TABLE, OUTPUT_JSON };

struct options {
	int output;
	struct args_list operands; /* the action, and the file */
};

static const struct args_option options[] = {
#define SELECT_config OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "config",
	.operands = "check|show [FILE]",
	.summary = "Check or show the configuration of the service",
	.options = options,
	.operand_list = offsetof(struct options, operands),
	.notes = "check: print each error as FILE:LINE:COLUMN: MESSAGE.\n"
		 "show: print all keys with their values and where these come from.\n"
		 "Without FILE: " SERVICE_CONFIG_FILE ".\n",
};

/* ---- Entries -------------------------------------------------------------------------- */

struct printer {
	bool is_json, is_begun;
	const char *section, *name; /* of the last printed header */
	bool has_failed;
};

static void print_entry_json(const struct printer *printer,
			     const struct conf_entry *entry, const char *origin)
{
	print_json_member(printer->is_begun ? ",\n {" : "[{", "section",
			  entry->section);
	if (*entry->name)
		print_json_member(",", "name", entry->name);
	print_json_member(",", "key", entry->key);
	print_json_member(",", "value", entry->value);
	print_json_member(",", "origin", origin);
	putchar('}');
}

static void print_header(struct printer *printer, const struct conf_entry *entry)
{
	if (printer->section && !strcmp(printer->section, entry->section) &&
	    !strcmp(printer->name, entry->name))
		return;
	printer->section = entry->section;
	printer->name = entry->name;
	printf("%s[%s%s%s%s]\n", printer->is_begun ? "\n" : "", entry->section,
	       *entry->name ? " \"" : "", entry->name, *entry->name ? "\"" : "");
}

/* ---- Secrets --------------------------------------------------------------------- */

#define HIDDEN "(hidden)"

static bool ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* A key of a sink whose value may be one, and not the name of a file with it. */
static bool is_secret(const char *key)
{
	static const char *const words[] = { "password",
					     "secret",
					     "token",
					     "authorization",
					     "oauthbearer.config",
					     "api-key",
					     "apikey",
					     "api_key",
					     "cookie",
					     ".pem" };

	if (ends_with(key, "_file") || ends_with(key, ".location"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasestr(key, words[i]))
			return true;
	return false;
}

/*
 * @return @value, or @buf, which is as large as @value and HIDDEN, with a copy that has no password:
 *         http://USER:PASSWORD@HOST
 */
static const char *hide_secret(const char *key, const char *value, char *buf)
{
	const char *host = strstr(value, "://"), *at;

	if (is_secret(key))
		return HIDDEN;
	host = host ? host + strlen("://") : "";
	at = host + strcspn(host, "/?#@");
	if (*at != '@')
		return value;
	sprintf(buf, "%.*s" HIDDEN "%s", (int)(host - value), value, at);
	return buf;
}

static void print_entry(struct printer *printer, const struct conf_entry *entry)
{
	char origin[PATH_MAX + 32] = "default";
	cleanup_free char *buf = malloc(strlen(entry->value) + sizeof(HIDDEN));
	struct conf_entry shown = *entry;

	if (!buf) {
		printer->has_failed = true;
		return;
	}
	if (!strcmp(entry->section, "sink"))
		shown.value = hide_secret(entry->key, entry->value, buf);

	if (entry->place.file)
		snprintf(origin, sizeof(origin), "%s:%u", entry->place.file,
			 entry->place.line);
	if (printer->is_json) {
		print_entry_json(printer, &shown, origin);
	} else {
		print_header(printer, entry);
		if (entry->place.file)
			printf("# %s\n", origin);
		printf("%s = %s\n", entry->key, shown.value);
	}
	printer->is_begun = true;
}

/* Values of a list, from the last empty one on. */
static bool print_list(struct printer *printer, const struct conf *conf,
		       const struct service_key *key)
{
	size_t n = 0, first = 0;

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = first; i < conf->n; i++) {
			const struct conf_entry *entry = &conf->entries[i];

			if (!entry->key || strcmp(entry->section, key->section) ||
			    strcmp(entry->key, key->option.name))
				continue;
			n = *entry->value ? n + 1 : 0;
			if (pass)
				print_entry(printer, entry);
			else if (!*entry->value)
				first = i + 1;
		}
	}
	return n;
}

static void print_key(struct printer *printer, const struct conf *conf,
		      const struct service_key *key)
{
	const struct conf_entry *entry =
		conf_find(conf, key->section, "", key->option.name);
	bool is_list = key->option.type == ARGS_LIST;

	if (is_list && print_list(printer, conf, key))
		return;
	if (!is_list && entry && *entry->value)
		print_entry(printer, entry);
	else
		print_entry(printer, &(struct conf_entry){
					     .section = key->section,
					     .name = "",
					     .key = key->option.name,
					     .value = key->option.otherwise });
}

/*
 * Entries of @section, with @name unless that is NULL, which no later one replaces. Other keys of [host]
 * than these are in the catalogue.
 */
static void print_section(struct printer *printer, const struct conf *conf,
			  const char *section, const char *name)
{
	for (size_t i = 0; i < conf->n; i++) {
		const struct conf_entry *entry = &conf->entries[i];

		if (entry->key && *entry->value &&
		    !strcmp(entry->section, section) &&
		    (strcmp(section, "host") || sink_spec_is_host_field(entry)) &&
		    (!name || !strcmp(entry->name, name)) &&
		    conf_find(conf, section, entry->name, entry->key) == entry)
			print_entry(printer, entry);
	}
}

/* @return the key itself, if no key before it is of its section */
static const struct service_key *first_of_section(const struct service_key *key)
{
	const struct service_key *first = service_keys;

	while (strcmp(first->section, key->section))
		first++;
	return first;
}

/* Print keys by section, in the order of the catalogue. */
static void print_keys(struct printer *printer, const struct conf *conf)
{
	for (const struct service_key *first = service_keys; first->section;
	     first++)
		for (const struct service_key *key = first;
		     first_of_section(first) == first && key->section; key++)
			if (!strcmp(key->section, first->section))
				print_key(printer, conf, key);
}

/* Print each key with its value and where that comes from: as a file that has the same effect, but for secrets, or as JSON. */
static int print_config(const struct service_config *config, bool is_json)
{
	struct printer printer = { .is_json = is_json };
	const struct conf *conf = &config->conf;

	print_keys(&printer, conf);
	print_section(&printer, conf, "host", NULL);
	for (size_t i = 0; i < config->n_filters; i++)
		print_section(&printer, conf, "filter", config->filters[i].name);
	for (size_t i = 0; i < config->n_alerts; i++)
		print_section(&printer, conf, "alert", config->alerts[i].name);
	print_section(&printer, conf, "network", NULL);
	for (size_t i = 0; i < config->n_groups; i++)
		print_section(&printer, conf, "group", config->groups[i].name);
	for (size_t i = 0; i < config->n_sinks; i++)
		print_section(&printer, conf, "sink", config->sinks[i].name);
	if (is_json)
		puts("]");
	return printer.has_failed ? -ENOMEM : 0;
}

/* ---- The verb --------------------------------------------------------------------------- */

static void print_error(const char *line, void *user)
{
	(void)user;
	fprintf(stderr, "%s\n", line);
}

static int check_config(const char *path)
{
	struct service_config config;
	unsigned int errors =
		service_config_read(&config, path, false, print_error, NULL);

	if (errors > CONF_ERRORS_MAX)
		fprintf(stderr, "and %u more errors\n", errors - CONF_ERRORS_MAX);
	service_config_clear(&config);
	return errors ? EXIT_FAILED : EXIT_FINE;
}

static int show_config(const char *path, bool is_json)
{
	struct service_config config;
	int r = service_config_read(&config, path, false, print_error, NULL) ?
			-1 :
			0;

	if (r == 0)
		r = print_config(&config, is_json);
	service_config_clear(&config);
	return r < 0 ? EXIT_FAILED : EXIT_FINE;
}

static int refuse_word(const char *word)
{
	struct suggestion suggestion = suggestion_for(word, strlen(word));
	const char *best;

	suggestion_offer(&suggestion, "check");
	suggestion_offer(&suggestion, "show");
	best = suggestion_best(&suggestion);
	args_complain(&command, "'%s' is not check or show%s%s%s", word,
		      best ? "; did you mean '" : "", best ?: "",
		      best ? "'?" : "");
	return EXIT_USAGE;
}

static int run_config(const struct options *wanted)
{
	const struct args_list *operands = &wanted->operands;
	const char *path = operands->n > 1 ? operands->items[1] : NULL;

	if (!operands->n || operands->n > 2) {
		args_complain(&command, operands->n ?
						"there is more than one FILE" :
						"check or show?");
		return EXIT_USAGE;
	}
	if (!strcmp(operands->items[0], "show"))
		return show_config(path, wanted->output == OUTPUT_JSON);
	if (wanted->output >= 0) {
		args_complain(&command, "-o: it is for show");
		return EXIT_USAGE;
	}
	if (!strcmp(operands->items[0], "check"))
		return check_config(path);
	return refuse_word(operands->items[0]);
}

int cmd_config(int argc, char **argv)
{
	struct options wanted = { .output = -1 };
	enum args_result result = args_parse(&command, argc, argv, &wanted);
	int status = result == ARGS_RUN ? run_config(&wanted) : (int)result;

	args_list_clear(&wanted.operands);
	return status;
}
