/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a context leaves to the next one. */
#include "context.h"

#include "attach/link_pins.h"
#include "base/sized.h"
#include "base/util.h"
#include "host/netns.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <netobs/persist.h>
#include <string.h>

int context_keep_persist(const struct netobs_opts *opts, char **ret_path)
{
	if (!opts->persist)
		return 0;
	if (strlen(opts->persist) >= PINNED_PATH_MAX / 2)
		return -EINVAL;
	*ret_path = strdup(opts->persist);
	return *ret_path ? 0 : -ENOMEM;
}

/* ---- Namespaces and interfaces --------------------------------------------------- */

static int find_inode(const char *name, uint32_t *ret_inode)
{
	cleanup_fd int own = -1;

	if (name)
		return netns_find(name, ret_inode);
	own = netns_open_own();
	return own < 0 ? own : netns_inode(own, ret_inode);
}

/* @return whether its name still means it, and it is selected */
static bool is_followed(const struct netobs *ctx, const struct pinned_netns *netns)
{
	const char *name = *netns->name ? netns->name : NULL;
	uint32_t inode;

	return !find_inode(name, &inode) && inode == netns->inode &&
	       selection_find(&ctx->observation.selection, name);
}

static uint32_t count_netns(const struct pinned *pinned)
{
	uint32_t index, *last = NULL, n = 0;

	if (pinned_is_readable(pinned))
		n = pinned->state->n_netns;
	while (pinned->netns_fd >= 0 &&
	       !bpf_map_get_next_key(pinned->netns_fd, last, &index)) {
		last = &index;
		n = max_u64(n, index + 1ULL);
	}
	return min_u64(n, NETNS_NONE);
}

static int restore_netns(struct netobs *ctx)
{
	uint32_t n = count_netns(&ctx->pinned);
	int err = 0;

	for (uint32_t i = 0; !err && i < n; i++) {
		struct pinned_netns netns = { 0 };
		bool follows = pinned_get_netns(&ctx->pinned, i, &netns) &&
			       is_followed(ctx, &netns);

		err = host_restore_netns(&ctx->host,
					 *netns.name ? netns.name : NULL,
					 netns.inode, follows);
	}
	return err;
}

static void restore_netif(struct netobs *ctx, const struct pinned_netif_key *key,
			  const struct pinned_netif *from)
{
	struct netif *netif;

	if (key->netns >= ctx->host.n_netns)
		return;
	netif = host_restore_netif(&ctx->host, key->netns, key->ifindex);
	if (!netif)
		return;
	memcpy(netif->name, from->name, sizeof(netif->name));
	netif->master = from->master;
	netif->link = from->link;
	netif->link_nsid = from->link_nsid;
	netif->link_netns = from->link_netns;
	netif->is_link_known = true;
	netif->type = from->type;
	netif->hardware = from->hardware;
	netif->vlan_id = from->vlan_id;
	netif->observed = from->observed;
}

/* The list is empty then: context_list_pinned() fills it again. */
static void restore_netifs(struct netobs *ctx)
{
	int fd = ctx->pinned.netifs_fd;
	struct pinned_netif_key key;
	struct pinned_netif netif;

	while (fd >= 0 && !bpf_map_get_next_key(fd, NULL, &key)) {
		if (!bpf_map_lookup_elem(fd, &key, &netif))
			restore_netif(ctx, &key, &netif);
		if (bpf_map_delete_elem(fd, &key))
			return;
	}
}

static void put_netns(const struct pinned *pinned, const struct netns *netns)
{
	struct pinned_netns value = { .inode = netns->inode };
	uint32_t index = netns->index;

	/* Of a longer name, flows that wait belong to no known namespace. */
	if (netns->name && strlen(netns->name) >= sizeof(value.name))
		return;
	if (netns->name)
		memcpy(value.name, netns->name, strlen(netns->name));
	bpf_map_update_elem(pinned->netns_fd, &index, &value, BPF_ANY);
}

static void put_netif(const struct pinned *pinned, const struct netns *netns,
		      const struct netif *netif)
{
	const struct pinned_netif_key key = { netns->index, netif->ifindex };
	struct pinned_netif value = {
		.master = netif->master,
		.link = netif->link,
		.link_nsid = netif->link_nsid,
		.link_netns = netif->is_link_known ? netif->link_netns :
						     NETNS_NONE,
		.type = netif->type,
		.hardware = netif->hardware,
		.vlan_id = netif->vlan_id,
		.observed = netif->observed,
	};

	memcpy(value.name, netif->name, sizeof(value.name));
	bpf_map_update_elem(pinned->netifs_fd, &key, &value, BPF_ANY);
}

static void on_netif(void *arg, struct netns *netns, struct netif *netif,
		     enum host_event event)
{
	const struct pinned_netif_key key = { netns->index, netif->ifindex };
	const struct netobs *ctx = arg;

	if (event == HOST_GONE) {
		bpf_map_delete_elem(ctx->pinned.netifs_fd, &key);
		return;
	}
	if (event == HOST_CAME)
		put_netns(&ctx->pinned, netns);
	put_netif(&ctx->pinned, netns, netif);
}

static void on_settled(void *ctx)
{
	(void)ctx;
}

static void put_netifs(const struct netobs *ctx, bool with_gone)
{
	for (uint32_t i = 0; i < ctx->host.n_netns; i++) {
		const struct netns *netns = &ctx->host.netns[i];

		for (uint32_t k = 0; k < netns->netifs.count; k++)
			if (with_gone || !netns->netifs.items[k].gone_ns)
				put_netif(&ctx->pinned, netns,
					  &netns->netifs.items[k]);
	}
}

/* ---- The context ----------------------------------------------------------------- */

static void warn(const struct netobs *ctx, int err)
{
	log_warning(
		&ctx->log,
		"persist: %s: %s; packets that pass between two runs will not be counted",
		ctx->persist,
		err == -ENOTSUP ? "not in a BPF file system (mount -t bpf)" :
				  strerror(-err));
}

int context_open_pinned(struct netobs *ctx)
{
	int err;

	if (!ctx->persist)
		return 0;
	err = pinned_open(&ctx->pinned, ctx->persist, &ctx->log);
	if (err == -EBUSY || err == -ENOMEM)
		return err;
	if (err) {
		warn(ctx, err);
		return 0;
	}
	err = restore_netns(ctx);
	restore_netifs(ctx);
	return err;
}

int context_adopt_slots(struct netobs *ctx)
{
	struct pinned_state *state = ctx->pinned.state;
	const struct store *store = &ctx->pipeline.store;
	struct count totals[RULE_SLOTS], reported = { 0 };
	int err;

	if (!state) {
		pinned_close(&ctx->pinned); /* its maps cannot be pinned */
		return 0;
	}
	if (!ctx->filter || !filter_is_list(ctx->filter)) {
		state->has_rules = false;
		return 0;
	}
	err = flow_rules_read(&store->maps, store->n_cpus, totals);
	if (err)
		return err;
	for (int i = 0; i < RULE_SLOTS; i++) {
		reported.packets += totals[i].packets;
		reported.bytes += totals[i].bytes;
	}
	if (state->has_rules)
		reported = state->seen_drained;
	filter_adopt(ctx->filter, state->next_rule_slot, &reported, totals);
	context_note_slots(ctx, ctx->filter);
	return 0;
}

void context_note_slots(struct netobs *ctx, const struct filter *filter)
{
	if (ctx->pinned.state)
		ctx->pinned.state->next_rule_slot = filter_next_slot(filter);
}

void context_list_pinned(struct netobs *ctx)
{
	struct count former;

	if (!ctx->pinned.state)
		return;
	for (uint32_t i = 0; i < ctx->host.n_netns; i++)
		if (!ctx->host.netns[i].is_retired)
			put_netns(&ctx->pinned, &ctx->host.netns[i]);
	put_netifs(ctx, false);
	ctx->pinned_listener =
		(struct host_listener){ on_netif, on_settled, ctx, NULL };
	host_subscribe(&ctx->host, &ctx->pinned_listener);
	former = pinned_count_former(&ctx->pinned);
	pipeline_abandon(&ctx->pipeline, &former);
}

bool context_leaves(const struct netobs *ctx)
{
	return ctx->pinned.dir_fd >= 0 &&
	       (ctx->state != CONTEXT_FAILED || ctx->pinned.had_links);
}

void context_leave(struct netobs *ctx)
{
	observation_leave(&ctx->observation);
	if (ctx->pinned.state)
		put_netifs(ctx, true);
}

void context_undo_start(struct netobs *ctx)
{
	bool leaves = context_leaves(ctx);

	if (leaves)
		context_leave(ctx);
	observation_done(&ctx->observation);
	host_done(&ctx->host);
	if (!leaves && ctx->pinned.dir_fd >= 0)
		pinned_remove(&ctx->pinned);
}

/* ---- Without a context ----------------------------------------------------------- */

static const struct log silent;

static void ignore_pin(void *ctx, struct link_pin *pin)
{
	(void)ctx;
	(void)pin;
}

static int look(const char *path, struct pinned *pinned,
		struct netobs_persisted *ret_persisted)
{
	struct netobs_persisted persisted = { 0 };
	bool is_locked;
	int n, err = pinned_look(pinned, path ?: NETOBS_PERSIST_DIR, &is_locked);

	if (err)
		return err;
	n = link_pins_each(pinned->links, ignore_pin, NULL);
	persisted.links = n < 0 ? 0 : n;
	persisted.is_readable = pinned_is_readable(pinned);
	if (pinned->state) {
		persisted.owner = is_locked ? pinned->state->owner : 0;
		memcpy(persisted.version, pinned->state->version,
		       sizeof(persisted.version) - 1);
		persisted.waiting.packets = pinned_count_waiting(pinned).packets;
		persisted.waiting.bytes = pinned_count_waiting(pinned).bytes;
	}
	if (ret_persisted)
		err = sized_fill(ret_persisted, &persisted, sizeof(persisted));
	return err ?: is_locked;
}

int netobs_persisted_get(const char *path, struct netobs_persisted *ret_persisted)
{
	struct pinned pinned;
	int r;

	if (!ret_persisted)
		return -EINVAL;
	r = look(path, &pinned, ret_persisted);
	pinned_close(&pinned);
	return r < 0 ? r : 0;
}

/* Without the filter's namespace, the filter is left, and does nothing. */
static void delete_filter(const struct pinned *pinned, struct link_pin *pin)
{
	struct pinned_netns netns;
	cleanup_fd int fd = -1;
	uint32_t inode;
	int back = -1;

	if (!pinned_get_netns(pinned, pin->netns, &netns))
		return;
	if (find_inode(NULL, &inode) || inode != netns.inode) {
		if (!*netns.name || netns_find(netns.name, &inode) ||
		    inode != netns.inode)
			return;
		fd = netns_open(netns.name);
		if (fd < 0 || netns_enter(fd, &back))
			return;
	}
	if (clsact_is_there(pin->ifindex, pin->direction, &pin->hook.filter))
		clsact_delete(pin->ifindex, pin->direction, &pin->hook.filter);
	if (back >= 0)
		netns_leave(back);
}

static void remove_pin(void *ctx, struct link_pin *pin)
{
	const struct pinned *pinned = ctx;
	struct attachment attachment = ATTACHMENT_NONE;

	attachment.hooks[pin->direction] = pin->hook;
	link_pins_remove(pinned->links, pin->netns, pin->ifindex, &attachment);
	if (pin->hook.filter.jump_fd >= 0)
		delete_filter(pinned, pin);
}

int netobs_persisted_remove(const char *path,
			    struct netobs_persisted *ret_persisted)
{
	struct pinned pinned;
	int r = look(path, &pinned, ret_persisted);

	if (r == 0) {
		log_borrow_libbpf(&silent);
		link_pins_each(pinned.links, remove_pin, &pinned);
		log_return_libbpf();
		pinned_remove(&pinned);
	}
	pinned_close(&pinned);
	return r > 0 ? -EBUSY : r;
}
