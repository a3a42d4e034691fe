/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* State that a context leaves pinned for the next one. */
#include "context.h"

#include "attach/attach.h"
#include "base/options.h"
#include "base/util.h"
#include "host/netns.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <netobs/persist.h>
#include <string.h>

int context_keep_persist(const struct netobs_opts *opts, char **ret_path)
{
	if (opts->persist && strlen(opts->persist) >= PINNED_PATH_MAX / 2)
		return -EINVAL;
	return copy_optional(opts->persist, ret_path);
}

/* ---- Namespaces and interfaces --------------------------------------------------- */

/* @return whether its name still means it, and it is selected */
static bool is_followed(const struct netobs *ctx, const struct pinned_netns *netns)
{
	const char *name = *netns->name ? netns->name : NULL;
	uint32_t inode;

	return !netns_find(name, &inode) && inode == netns->inode &&
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

	/* Namespaces with longer names are not listed: waiting flows lose theirs. */
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
	bool is_link_known = netif->is_link_known;
	struct pinned_netif value = {
		.master = netif->master,
		.link = netif->link,
		.link_nsid = netif->link_nsid,
		.link_netns = is_link_known ? netif->link_netns : NETNS_NONE,
		.type = netif->type,
		.hardware = netif->hardware,
		.vlan_id = netif->vlan_id,
		.observed = netif->observed,
	};

	memcpy(value.name, netif->name, sizeof(value.name));
	bpf_map_update_elem(pinned->netifs_fd, &key, &value, BPF_ANY);
}

static void on_persisted_netif(void *arg, struct netns *netns,
			       struct netif *netif, enum host_event event)
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

static void put_netifs(const struct netobs *ctx, bool with_gone)
{
	struct netns *netns;

	host_for_each_netif(&ctx->host, netns, netif)
		if (with_gone || !netif->gone_ns)
			put_netif(&ctx->pinned, netns, netif);
}

/* ---- The context ----------------------------------------------------------------- */

static void warn_not_persisted(const struct netobs *ctx, int err, const char *why)
{
	log_warning(
		&ctx->life.log,
		"persist: %s: %s; packets that pass between two runs will not be counted",
		ctx->persist,
		err == -ENOTSUP ? "not in a BPF file system (mount -t bpf)" :
		*why		? why :
				  strerror(-err));
}

int context_open_pinned(struct netobs *ctx)
{
	char why[PINNED_WHY_MAX] = "";
	int err;

	if (!ctx->persist)
		return 0;
	err = pinned_open(&ctx->pinned, ctx->persist, &ctx->life.log, why);
	if (err == -EBUSY || err == -ENOMEM)
		return err;
	if (err) {
		warn_not_persisted(ctx, err, why);
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
	struct rule_count totals[RULE_SLOTS], reported = { 0 };
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
	for (int i = 0; i < RULE_SLOTS; i++)
		counters_add(&reported, &totals[i], sizeof(reported));
	if (state->has_rules)
		reported.decided = state->seen_drained;
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
		(struct host_listener){ .on_netif = on_persisted_netif,
					.ctx = ctx };
	host_subscribe(&ctx->host, &ctx->pinned_listener);
	former = pinned_count_former(&ctx->pinned);
	pipeline_abandon(&ctx->pipeline, &former);
}

bool context_leaves(const struct netobs *ctx)
{
	return ctx->pinned.dir_fd >= 0 &&
	       (ctx->life.state != LIFE_FAILED || ctx->pinned.had_links);
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

static void count_waiting(const struct pinned *pinned,
			  struct netobs_persisted *persisted)
{
	struct count waiting = { 0 };

	if (pinned->state)
		waiting = pinned_count_waiting(pinned);
	persisted->waiting.packets = waiting.packets;
	persisted->waiting.bytes = waiting.bytes;
}

/* @return 1: a process uses it; 0; or -errno */
static int look_at_pin(const char *path, struct pinned *pinned,
		       struct netobs_persisted *ret_persisted)
{
	struct netobs_persisted persisted = { 0 };
	bool is_locked;
	int n, err = pinned_look(pinned, path ?: NETOBS_PERSIST_DIR, &is_locked);

	if (err)
		return err;
	n = link_pins_each(pinned->links, ignore_pin, NULL);
	if (n < 0)
		return n;
	persisted.links = n;
	persisted.is_readable = pinned_is_readable(pinned);
	if (pinned->state) {
		persisted.owner = is_locked ? pinned->state->owner : 0;
		memcpy(persisted.version, pinned->state->version,
		       sizeof(persisted.version) - 1);
	}
	count_waiting(pinned, &persisted);
	*ret_persisted = persisted;
	return is_locked;
}

int netobs_persisted_get(const char *path, struct netobs_persisted *ret_persisted)
{
	struct netobs_persisted persisted;
	struct pinned pinned;
	int r;

	if (!ret_persisted)
		return -EINVAL;
	r = look_at_pin(path, &pinned, &persisted);
	pinned_close(&pinned);
	return r < 0 ? r :
		       sized_fill(ret_persisted, &persisted, sizeof(persisted));
}

struct removal {
	const struct pinned *pinned;
	int err;
};

static int delete_filter_here(struct link_pin *pin)
{
	struct clsact_filter *filter = &pin->hook.filter;

	if (!clsact_is_there(pin->ifindex, pin->direction, filter))
		return 0;
	clsact_delete(pin->ifindex, pin->direction, filter);
	return clsact_is_there(pin->ifindex, pin->direction, filter) ? -EPERM : 0;
}

/* If the filter's namespace is not found, the filter stays, and does nothing. */
static int delete_filter(const struct pinned *pinned, struct link_pin *pin)
{
	struct pinned_netns netns;
	cleanup_fd int fd = -1;
	uint32_t inode;
	int back, err;

	if (!pinned_get_netns(pinned, pin->netns, &netns))
		return 0;
	if (!netns_find(NULL, &inode) && inode == netns.inode)
		return delete_filter_here(pin);
	if (!*netns.name || netns_find(netns.name, &inode) || inode != netns.inode)
		return 0;
	fd = netns_open(netns.name);
	err = fd < 0 ? fd : netns_enter(fd, &back);
	if (err)
		return err;
	err = delete_filter_here(pin);
	netns_leave(back);
	return err;
}

/* Detach and unpin; what cannot be detached stays pinned, for another try. */
static void remove_pin(void *ctx, struct link_pin *pin)
{
	struct attachment attachment = ATTACHMENT_NONE;
	struct removal *removal = ctx;
	int err = 0;

	attachment.hooks[pin->direction] = pin->hook;
	if (pin->hook.filter.jump_fd >= 0)
		err = delete_filter(removal->pinned, pin);
	if (err) {
		removal->err = err;
		return;
	}
	link_pins_remove(removal->pinned->links, pin->netns, pin->ifindex,
			 &attachment);
	attachment.hooks[pin->direction].filter = CLSACT_FILTER_NONE;
	close_fd(&pin->hook.filter.jump_fd);
	pin->hook.link_fd = -1;
	detach(&silent, &attachment, pin->ifindex);
}

/* Detach all programs before packets are counted, and tables are removed. */
static int remove_set(struct pinned *pinned, struct netobs_persisted *persisted)
{
	struct removal removal = { .pinned = pinned };
	int n;

	log_borrow_libbpf(&silent);
	n = link_pins_each(pinned->links, remove_pin, &removal);
	log_return_libbpf();
	if (n < 0 || removal.err)
		return removal.err ?: n;
	count_waiting(pinned, persisted);
	return pinned_remove(pinned);
}

int netobs_persisted_remove(const char *path,
			    struct netobs_persisted *ret_persisted)
{
	struct netobs_persisted persisted = { 0 };
	struct pinned pinned;
	int r;

	if (ret_persisted && ret_persisted->sz < sizeof(ret_persisted->sz))
		return -EINVAL;
	r = look_at_pin(path, &pinned, &persisted);
	if (r == 0)
		r = remove_set(&pinned, &persisted);
	pinned_close(&pinned);
	if (r >= 0 && ret_persisted)
		sized_fill(ret_persisted, &persisted, sizeof(persisted));
	return r > 0 ? -EBUSY : r;
}
