/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "keys.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/util.h"

enum {
	PREFIXES_MAX = 4096,
	ADDRESS_BITS = 128,
	V4_BITS = 96, /* of the prefix ::ffff:0:0/96 of IPv4 */
};

/* Addresses are numbers. */
struct prefix {
	unsigned __int128 first, last;
	const char *name;
	uint8_t len;
	bool is_own; /* from the caller's list, and not built in */
};

/* Addresses from @first to the next boundary are of this network. */
struct boundary {
	unsigned __int128 first;
	const char *name;
};

struct netobs_networks {
	unsigned int users;
	char (*names)[NETOBS_NETWORK_NAME_MAX]; /* of the list */
	struct boundary *boundaries;
	size_t n;
};

struct prefixes {
	struct prefix *list;
	uint32_t n, capacity;
};

static const char internet[] = "internet";

static const struct netobs_network builtin[] = {
	{ sizeof(*builtin), "private",
	  "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7" },
	{ sizeof(*builtin), "loopback", "127.0.0.0/8 ::1" },
	{ sizeof(*builtin), "link-local", "169.254.0.0/16 fe80::/10" },
	{ sizeof(*builtin), "multicast", "224.0.0.0/4 ff00::/8" },
	{ sizeof(*builtin), "broadcast", "255.255.255.255" },
	{ sizeof(*builtin), "unspecified", "0.0.0.0/8 ::" },
};

/* ---- Addresses ------------------------------------------------------------------------ */

static unsigned __int128 address_of(const uint8_t bytes[16])
{
	uint64_t halves[2];

	memcpy(halves, bytes, sizeof(halves));
	return (unsigned __int128)be64toh(halves[0]) << 64 | be64toh(halves[1]);
}

/* ---- Prefixes ------------------------------------------------------------------------- */

/* @return why it is no prefix; NULL: it is one */
static const char *parse_prefix(char *text, struct prefix *ret_prefix)
{
	char *slash = strchr(text, '/'), *end = NULL;
	uint8_t bytes[16];
	unsigned long len;
	unsigned __int128 host;
	const bool is_v4 = !strchr(text, ':');

	if (slash)
		*slash = '\0';
	if (!ip_read(text, bytes)) {
		if (slash)
			*slash = '/';
		return "is not an address or a prefix";
	}
	len = is_v4 ? 32 : ADDRESS_BITS;
	if (slash) {
		*slash = '/';
		if (!slash[1] ||
		    strspn(slash + 1, "0123456789") != strlen(slash + 1) ||
		    strlen(slash + 1) > 3 || strtoul(slash + 1, &end, 10) > len)
			return "has a wrong length of its prefix";
		len = strtoul(slash + 1, NULL, 10);
	}
	ret_prefix->len = (uint8_t)(len + (is_v4 ? V4_BITS : 0));
	host = ret_prefix->len < ADDRESS_BITS ?
		       ~(unsigned __int128)0 >> ret_prefix->len :
		       0;
	ret_prefix->first = address_of(bytes);
	if (ret_prefix->first & host)
		return "has bits behind its prefix";
	ret_prefix->last = ret_prefix->first | host;
	return NULL;
}

static int add_prefix(struct prefixes *all, const struct prefix *prefix)
{
	if (all->n == PREFIXES_MAX)
		return -E2BIG;
	if (!array_reserve(&all->list, all->n, &all->capacity, sizeof(*prefix),
			   64))
		return -ENOMEM;
	all->list[all->n++] = *prefix;
	return 0;
}

static int add_network(struct prefixes *all, const char *name, const char *cidr,
		       bool is_own, const struct log *log)
{
	cleanup_free char *copy = strdup(cidr);
	char *rest = copy, *text;
	const size_t before = all->n;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (text = strsep(&rest, ", \t"))) {
		struct prefix prefix = { .name = name, .is_own = is_own };
		const char *wrong = *text ? parse_prefix(text, &prefix) : NULL;

		if (!*text)
			continue;
		if (wrong) {
			log_error(log, "%s: '%s' %s", name, text, wrong);
			return -EINVAL;
		}
		err = add_prefix(all, &prefix);
	}
	if (!err && all->n == before) {
		log_error(log, "%s: it has no prefix", name);
		return -EINVAL;
	}
	return err;
}

/* Sort by the first address; prefixes with equal ones by length, the longest last. */
static int compare_prefixes(const void *a, const void *b)
{
	const struct prefix *left = a, *right = b;

	if (left->first != right->first)
		return left->first < right->first ? -1 : 1;
	if (left->len != right->len)
		return left->len - right->len;
	return left->is_own - right->is_own;
}

static int check_twins(const struct prefixes *all, const struct log *log)
{
	for (size_t i = 1; i < all->n; i++) {
		const struct prefix *left = &all->list[i - 1],
				    *right = &all->list[i];

		if (!left->is_own || !right->is_own || left->len != right->len ||
		    left->first != right->first || left->name == right->name)
			continue;
		log_error(log, "%s: it has a prefix that %s has, too",
			  right->name, left->name);
		return -EINVAL;
	}
	return 0;
}

/* ---- Boundaries ----------------------------------------------------------------------- */

static void add_boundary(struct netobs_networks *networks,
			 unsigned __int128 first, const char *name)
{
	struct boundary *last = networks->boundaries + networks->n - 1;

	if (networks->n && last->first == first)
		last->name = name;
	else
		networks->boundaries[networks->n++] =
			(struct boundary){ first, name };
}

/* After the end of the innermost prefix, its parent continues. */
static void leave_prefix(struct netobs_networks *networks,
			 const struct prefix *const *open, size_t n_open)
{
	const unsigned __int128 next = open[n_open - 1]->last + 1;

	if (next)
		add_boundary(networks, next,
			     n_open > 1 ? open[n_open - 2]->name : internet);
}

static void fill_boundaries(struct netobs_networks *networks,
			    const struct prefixes *all)
{
	/* One prefix of each length, and a built-in one with the same address. */
	const struct prefix *open[2 * (ADDRESS_BITS + 1)];
	size_t n_open = 0;

	add_boundary(networks, 0, internet);
	for (size_t i = 0; i < all->n; i++) {
		const struct prefix *prefix = &all->list[i];

		while (n_open && open[n_open - 1]->last < prefix->first)
			leave_prefix(networks, open, n_open--);
		/* One of two equal prefixes is enough. */
		if (n_open && open[n_open - 1]->len == prefix->len)
			n_open--;
		open[n_open++] = prefix;
		add_boundary(networks, prefix->first, prefix->name);
	}
	while (n_open)
		leave_prefix(networks, open, n_open--);
}

/* ---- Life ----------------------------------------------------------------------------- */

/* Names that are shown alike must be equal, or they would be two values with one text. */
static bool is_printable(const char *name)
{
	char copy[NETOBS_NETWORK_NAME_MAX];

	strcpy(copy, name);
	safe_line(copy);
	return !strcmp(copy, name);
}

static int take_list(struct netobs_networks *networks, struct prefixes *all,
		     const struct netobs_network *list, uint32_t n,
		     const struct log *log)
{
	const size_t sz = n ? list->sz : 0;
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		const struct netobs_network *network =
			(const void *)((const char *)list + i * sz);
		char *name = networks->names[i];

		if (sz < sizeof(*network) || !network->name ||
		    !*network->name || !network->cidr ||
		    strlen(network->name) >= NETOBS_NETWORK_NAME_MAX) {
			log_error(log, "%s: a name has 1 to %d bytes",
				  sz >= sizeof(*network) && network->name ?
					  network->name :
					  "",
				  NETOBS_NETWORK_NAME_MAX - 1);
			return -EINVAL;
		}
		if (!is_printable(network->name)) {
			log_error(log, "%s: the name is not printable UTF-8",
				  network->name);
			return -EINVAL;
		}
		strcpy(name, network->name);
		err = add_network(all, name, network->cidr, true, log);
	}
	for (size_t i = 0; i < ARRAY_SIZE(builtin) && !err; i++)
		err = add_network(all, builtin[i].name, builtin[i].cidr, false,
				  log);
	return err;
}

static int fill_networks(struct netobs_networks *networks,
			 const struct netobs_network *list, uint32_t n,
			 const struct log *log)
{
	struct prefixes all = { 0 };
	int err;

	networks->users = 1;
	networks->names = calloc(n + 1, sizeof(*networks->names));
	err = networks->names ? take_list(networks, &all, list, n, log) : -ENOMEM;
	if (!err) {
		qsort(all.list, all.n, sizeof(*all.list), compare_prefixes);
		err = check_twins(&all, log);
	}
	if (!err) {
		networks->boundaries =
			calloc(2 * all.n + 1, sizeof(*networks->boundaries));
		err = networks->boundaries ? 0 : -ENOMEM;
	}
	if (!err)
		fill_boundaries(networks, &all);
	free(all.list);
	return err;
}

int netobs_networks_new(const struct netobs_network *list, uint32_t n,
			char (*error)[NETOBS_ERROR_MAX],
			struct netobs_networks **ret_networks)
{
	struct log_error text = { 0 };
	const struct log log = { .error = &text };
	struct netobs_networks *networks;
	int err;

	if ((n && !list) || !ret_networks)
		return -EINVAL;
	networks = calloc(1, sizeof(*networks));
	err = networks ? fill_networks(networks, list, n, &log) : -ENOMEM;
	err = log_keep_error(&log, "networks", err);
	if (err < 0) {
		log_copy_error(&log, error);
		netobs_networks_free(networks);
	} else {
		*ret_networks = networks;
	}
	return err;
}

struct netobs_networks *networks_share(struct netobs_networks *networks)
{
	networks->users++;
	return networks;
}

void netobs_networks_free(struct netobs_networks *networks)
{
	if (!networks || --networks->users)
		return;
	free(networks->names);
	free(networks->boundaries);
	free(networks);
}

const char *netobs_networks_find(const struct netobs_networks *networks,
				 const uint8_t addr[16])
{
	unsigned __int128 address;
	size_t low = 0, high;

	if (!networks || !addr)
		return NULL;
	address = address_of(addr);
	high = networks->n;
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (networks->boundaries[middle].first <= address)
			low = middle;
		else
			high = middle;
	}
	return networks->boundaries[low].name;
}
