/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "network_config.h"

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

/* Those before were fine: what is wrong is this one. */
static void try_networks(struct service_config *config,
			 const struct netobs_network *list, uint32_t n,
			 const struct conf_entry *last)
{
	char error[NETOBS_ERROR_MAX] = "";

	netobs_networks_free(TAKE_PTR(config->networks));
	if (netobs_networks_new(list, n, &error, &config->networks) < 0)
		conf_complain(&config->conf, &last->value_place, "cidr: %s",
			      error);
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
	uint32_t n = 0;

	for (size_t i = 0; list && i < conf->n; i++) {
		const struct conf_entry *entry = &conf->entries[i];

		if (!is_cidr(conf, entry))
			continue;
		list[n++] = (struct netobs_network){ sizeof(*list), entry->name,
						     entry->value };
		try_networks(config, list, n, entry);
	}
	if (n)
		write_text(config, list, n);
}
