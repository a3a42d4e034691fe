/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/networks.h>

#include "base/util.h"
#include "service_config.h"

/* The last key of each network, which counts. */
static bool is_cidr(const struct conf *conf, const struct conf_entry *entry)
{
	return entry->key && *entry->value &&
	       !strcmp(entry->section, "network") &&
	       !strcmp(entry->key, "cidr") &&
	       conf_find(conf, "network", entry->name, "cidr") == entry;
}

/* The network that an error begins with. */
static uint32_t find_wrong(const struct netobs_network *list, uint32_t n,
			   const char *error)
{
	uint32_t wrong = 0;
	size_t most = 0;

	for (uint32_t i = 0; i < n; i++) {
		const size_t len = strlen(list[i].name);

		if (len >= most && !strncmp(error, list[i].name, len) &&
		    !strncmp(error + len, ": ", 2)) {
			most = len;
			wrong = i;
		}
	}
	return wrong;
}

static void make_networks(struct service_config *config,
			  const struct netobs_network *list, uint32_t n,
			  const struct conf_entry *const *entries)
{
	char error[NETOBS_ERROR_MAX] = "";

	if (netobs_networks_new(list, n, &error, &config->networks) < 0)
		conf_complain(&config->conf,
			      &entries[find_wrong(list, n, error)]->value_place,
			      "cidr: %s", error);
}

static void write_text(struct service_config *config,
		       const struct netobs_network *list, uint32_t n)
{
	size_t len;
	FILE *text = open_memstream(&config->networks_text, &len);

	if (!text)
		return;
	for (uint32_t i = 0; i < n; i++)
		fprintf(text, "%s=%s\n", list[i].name, list[i].cidr);
	if (fclose(text))
		free(TAKE_PTR(config->networks_text));
}

void network_config_take(struct service_config *config)
{
	const struct conf *conf = &config->conf;
	cleanup_free struct netobs_network *list =
		calloc(conf->n + 1, sizeof(*list));
	cleanup_free const struct conf_entry **entries =
		calloc(conf->n + 1, sizeof(*entries));
	uint32_t n = 0;

	for (size_t i = 0; list && entries && i < conf->n; i++) {
		const struct conf_entry *entry = &conf->entries[i];

		if (!is_cidr(conf, entry))
			continue;
		entries[n] = entry;
		list[n++] = (struct netobs_network){ sizeof(*list), entry->name,
						     entry->value };
	}
	if (!n)
		return;
	make_networks(config, list, n, entries);
	write_text(config, list, n);
}
