// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_programs.h"

#include "base/util.h"
#include "engine/map.h"
#include "engine/store.h"
#include "bpf/queues.h"
#include "bpf/parse/tunnel.h"
#include "bpf/store/hash.h"
#include "trace.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <netobs/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Ids of connections that user space adds; those of programs are lower. */
#define OWN_IDS (1ULL << 62)

static const struct log silent;

/* Marks rows that all layers need: where connections begin and end, and their processes. */
#define ANY_LAYER UINT32_MAX

#define ONLY(layer) (1U << NETOBS_TRACE_LAYER_##layer)

/* Tracepoints to attach to; some kernels lack some of them. */
static const struct row {
	const char *program;
	const char *tracepoint;
	uint32_t point; /* the point that it reports; TRACE_CLOSES: also points for user space alone */
	bool is_only;	 /* no other program reports that point */
	uint32_t layers; /* 1 << enum netobs_trace_layer: only these need it */
	uint32_t n_args; /* the least number; the kernel's tracepoints have one more, for themselves */
	uint32_t n_args_max; /* 0: any */
} rows[] = {
	{ "netobs_tr_send", "tcp_sendmsg_locked", TRACE_SEND, true, ANY_LAYER,
	  2, 0 },
	{ "netobs_tr_sent", "sock_send_length", TRACE_SENT, true, ANY_LAYER, 2,
	  0 },
	{ "netobs_tr_recv", "sock_recv_length", TRACE_READ, false, ANY_LAYER, 3,
	  0 },
	{ "netobs_tr_read", "tcp_rcv_space_adjust", TRACE_READ, true, ANY_LAYER,
	  1, 0 },
	{ "netobs_tr_ready", "sk_data_ready", TRACE_READY, true, ONLY(SOCKET),
	  1, 0 },
	{ "netobs_tr_ready2", "sk_data_ready", TRACE_READY, true, ONLY(SOCKET),
	  1, 0 },
	{ "netobs_tr_again", "tcp_retransmit_skb", TRACE_RETRANSMIT, true,
	  ONLY(TCP), 2, 0 },
	{ "netobs_tr_segm", "tcp_probe", TRACE_SEGMENT, true, ONLY(TCP), 2, 0 },
	{ "netobs_tr_segm2", "tcp_probe", TRACE_SEGMENT, true, ONLY(TCP), 2, 0 },
	{ "netobs_tr_state", "inet_sock_set_state", TRACE_CLOSES, false,
	  ANY_LAYER, 3, 0 },
	{ "netobs_tr_queue", "net_dev_queue", TRACE_QUEUE, true, ANY_LAYER, 1, 0 },
	{ "netobs_tr_enq", "qdisc_enqueue", TRACE_ENQUEUE, true, ONLY(QDISC), 3,
	  0 },
	{ "netobs_tr_deq", "qdisc_dequeue", TRACE_DEQUEUE, true, ONLY(QDISC), 4,
	  0 },
	{ "netobs_tr_xmit", "net_dev_start_xmit", TRACE_TRANSMIT, true,
	  ONLY(DEVICE), 2, 0 },
	{ "netobs_tr_busy", "net_dev_xmit", TRACE_BUSY, true, ONLY(DEVICE), 3, 0 },
	{ "netobs_tr_rx", "netif_rx", TRACE_ARRIVE, false, ONLY(DEVICE), 1, 0 },
	{ "netobs_tr_gro", "napi_gro_receive_entry", TRACE_ARRIVE, false,
	  ONLY(DEVICE), 1, 0 },
	{ "netobs_tr_recvd", "netif_receive_skb", TRACE_RECEIVE, true,
	  ANY_LAYER, 1, 0 },
	{ "netobs_tr_why", "kfree_skb", TRACE_DROP, false, ONLY(DEVICE), 3, 0 },
	{ "netobs_tr_why2", "kfree_skb", TRACE_DROP, false, ONLY(DEVICE), 3, 0 },
	{ "netobs_tr_drop", "kfree_skb", TRACE_DROP, false, ONLY(DEVICE), 2, 2 },
};

/* Programs in front of all others at a hook of netfilter, and behind them. */
static const char *const hook_programs[] = { "netobs_tr_nf", "netobs_tr_nfend" };

/* The last one is for queues. */
static const char *const iterators[] = { "netobs_tr_list", "netobs_tr_init",
					 "netobs_tr_owner" };

_Static_assert(TRACE_HOOK_LINKS ==
		       2 * ARRAY_SIZE(hook_programs) * NF_INET_NUMHOOKS,
	       "both sides of each hook of IPv4 and IPv6");
_Static_assert(ARRAY_SIZE(rows) + ARRAY_SIZE(iterators) <= PROGRAM_SET_POINTS_MAX,
	       "there is room");

/* ---- What the kernel has -------------------------------------------------------------- */

/* @return how many arguments the tracepoint gives to programs; 0: there is none */
static uint32_t count_args(const struct btf *btf, const char *tracepoint)
{
	const struct btf_type *type;
	char name[64];
	int id;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	type = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
	type = type ? btf__type_by_id(btf, type->type) : NULL;
	if (!type || !btf_is_ptr(type))
		return 0;
	type = btf__type_by_id(btf, type->type);
	return type && btf_is_func_proto(type) && btf_vlen(type) ?
		       btf_vlen(type) - 1 :
		       0;
}

static bool has_row(const struct btf *btf, const struct row *row)
{
	const uint32_t n = count_args(btf, row->tracepoint);

	return n >= row->n_args && (!row->n_args_max || n <= row->n_args_max);
}

static int find_points(struct trace_programs *programs)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct program_set *set = &programs->set;
	const uint32_t layers = programs->knobs.layers;

	if (!btf)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (layers && !(rows[i].layers & layers))
			continue;
		if (!has_row(btf, &rows[i])) {
			if (rows[i].is_only)
				programs->missing |= 1U << rows[i].point;
			continue;
		}
		programs->points[set->n_points++].program = rows[i].program;
		programs->has_reasons |=
			!strcmp(rows[i].program, "netobs_tr_why");
	}
	for (size_t i = 0;
	     i < ARRAY_SIZE(iterators) - !programs->knobs.wants_queues; i++)
		programs->points[set->n_points++] =
			(struct attach_point){ .program = iterators[i],
					       .kind = ATTACH_ITERATOR };
	programs->has_cast = btf__find_by_name_kind(btf, "bpf_rdonly_cast",
						    BTF_KIND_FUNC) > 0;
	btf__free(btf);
	return 0;
}

static bool is_wanted(const struct trace_programs *programs,
		      const struct bpf_program *program)
{
	const struct program_set *set = &programs->set;
	const char *name = bpf_program__name(program);

	for (size_t i = 0; i < set->n_points; i++)
		if (!strcmp(name, set->points[i].program))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(hook_programs); i++)
		if (!strcmp(name, hook_programs[i]))
			return !programs->netfilter_error;
	return false;
}

/* @return the points of the wanted layers, and those for user space alone */
static uint32_t wanted_points(const struct trace_knobs *knobs)
{
	return (knobs->points ?: UINT32_MAX) | UINT32_MAX << TRACE_OPENS;
}

/* ---- Loading -------------------------------------------------------------------------- */

static int size_map(struct bpf_object *object, const char *name, uint32_t n)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__set_max_entries(map, n) : -ENOENT;
}

static void choose_programs(const struct trace_programs *programs,
			    struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, is_wanted(programs, program));
	for (size_t i = 0; i < ARRAY_SIZE(hook_programs); i++)
		netfilter_set_type(bpf_object__find_program_by_name(
			object, hook_programs[i]));
}

static int size_queue_maps(struct bpf_object *object)
{
	int err = size_map(object, "trace_left", QUEUES * QUEUE_BUCKETS);

	err = err ?: size_map(object, "trace_arrived", UPLINKS * UPLINK_BUCKETS);
	return err ?: size_map(object, "trace_senders", QUEUE_SENDERS);
}

static int prepare_trace(struct bpf_object *object, void *ctx)
{
	struct trace_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct trace_programs *programs = ctx;
	const struct trace_knobs *knobs = &programs->knobs;
	int err;

	if (!rodata)
		return -ENOENT;
	rodata->config_slot_mask = knobs->slots - 1;
	rodata->config_max_rate = knobs->max_rate;
	rodata->config_ring_bytes = knobs->ring_bytes;
	rodata->config_points = wanted_points(knobs);
	rodata->config_has_spaces = knobs->n_spaces;
	rodata->config_wants_netfilter = knobs->wants_netfilter;
	rodata->config_wants_acks = knobs->wants_acks;
	rodata->config_wants_limits = knobs->wants_limits;
	rodata->config_wants_opening = !knobs->is_idle;
	rodata->config_wants_datagrams = knobs->wants_datagrams;
	rodata->config_has_cast = programs->has_cast;
	rodata->config_has_nat = programs->has_nat;
	memcpy((void *)&rodata->config_nat, &programs->nat,
	       sizeof(programs->nat));
	rodata->config_wants_queues = knobs->wants_queues;
	if (knobs->wants_queues &&
	    getrandom((void *)rodata->config_queue_secret,
		      sizeof(rodata->config_queue_secret), 0) < 0)
		return -errno;
	choose_programs(programs, object);
	err = knobs->wants_queues ? size_queue_maps(object) : 0;
	err = err ?: size_map(object, "trace_events", knobs->ring_bytes);
	err = err ?: size_map(object, "trace_conns", knobs->slots);
	if (knobs->n_spaces)
		err = err ?: size_map(object, "trace_spaces", knobs->n_spaces);
	if (!knobs->wants_datagrams)
		err = err ?: size_map(object, "trace_refused", 1);
	return err ?: size_map(object, "trace_faces", knobs->slots * TRACE_FACES);
}

/* Until then, no event is wanted. */
static int name_spaces(const struct trace_programs *programs)
{
	const int fd = program_set_map_fd(&programs->set, "trace_spaces");
	const struct trace_knobs *knobs = &programs->knobs;
	int err = 0;

	for (uint32_t i = 0; !err && i < knobs->n_spaces; i++)
		err = bpf_map_update_elem(fd, &knobs->spaces[i],
					  &(uint8_t){ 1 }, BPF_ANY);
	return err;
}

static int open_maps(struct trace_programs *programs,
		     ring_buffer_sample_fn on_report, void *ctx)
{
	const struct program_set *set = &programs->set;

	programs->conns = program_set_mmap(set, "trace_conns",
					   programs->knobs.slots *
						   sizeof(*programs->conns));
	programs->ports = program_set_mmap(
		set, "trace_ports", TRACE_PORTS * sizeof(*programs->ports));
	if (!programs->conns || !programs->ports)
		return -errno;
	programs->ring = ring_buffer__new(
		program_set_map_fd(set, "trace_events"), on_report, ctx, NULL);
	if (!programs->ring)
		return -errno;
	programs->faces_fd = program_set_map_fd(set, "trace_faces");
	programs->refused_fd = program_set_map_fd(set, "trace_refused");
	programs->counts_fd = program_set_map_fd(set, "trace_counts");
	programs->functions_fd = program_set_map_fd(set, "trace_functions");
	return 0;
}

/* Load the programs, without those of netfilter if the kernel refuses them. */
static int load_programs(struct trace_programs *programs)
{
	const struct log *log = programs->set.log;

	if (!programs->netfilter_error) {
		programs->set.log = &silent;
		programs->netfilter_error = program_set_ref(&programs->set);
		programs->set.log = log;
		if (!programs->netfilter_error)
			return 0;
	}
	return program_set_ref(&programs->set);
}

int trace_programs_open(struct trace_programs *programs,
			const struct trace_knobs *knobs,
			ring_buffer_sample_fn on_report, void *ctx,
			const struct log *log)
{
	int err;

	*programs = (struct trace_programs){
		.knobs = *knobs,
		.set = { .name = "trace_bpf",
			 .elf = trace_bpf__elf_bytes,
			 .doing = "load BPF programs of the tracer",
			 .log = log ?: &silent,
			 .points = programs->points,
			 .is_idle = knobs->is_idle,
			 .prepare = prepare_trace,
			 .ctx = programs },
	};
	log_borrow_libbpf(programs->set.log);
	err = find_points(programs);
	log_return_libbpf();
	if (err)
		return err;
	programs->has_nat = !nat_find_layout(&programs->nat, &silent);
	programs->netfilter_error = knobs->wants_netfilter ? netfilter_probe() :
							     -ENOTSUP;
	err = load_programs(programs);
	if (err) {
		*programs = (struct trace_programs){ 0 };
		return err;
	}
	err = name_spaces(programs) ?: open_maps(programs, on_report, ctx);
	if (err)
		trace_programs_close(programs);
	return err;
}

bool trace_programs_name(const struct trace_programs *programs, uint64_t place,
			 char name[TRACE_FUNCTION_LEN])
{
	return !bpf_map_lookup_elem(programs->functions_fd, &place, name) &&
	       *name;
}

int trace_programs_attach(struct trace_programs *programs)
{
	return program_set_attach(&programs->set);
}

void trace_programs_detach(struct trace_programs *programs)
{
	program_set_detach_all(&programs->set);
}

/* @link: below TRACE_HOOK_LINKS; links of one family and side are adjacent */
static int open_hook_link(const struct trace_programs *programs, uint32_t link)
{
	static const uint32_t families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };
	const uint32_t group = link / NF_INET_NUMHOOKS;
	const bool is_behind = group % 2;
	const struct bpf_program *program = bpf_object__find_program_by_name(
		programs->set.object, hook_programs[is_behind]);

	return netfilter_attach_outside(bpf_program__fd(program),
					families[group / 2],
					link % NF_INET_NUMHOOKS, is_behind);
}

int trace_programs_hook(const struct trace_programs *programs, uint32_t *first,
			int ret_links[TRACE_HOOK_LINKS])
{
	int links[TRACE_HOOK_LINKS];
	int err = programs->netfilter_error;
	uint32_t n = 0;

	while (!err && n < TRACE_HOOK_LINKS) {
		const uint32_t link = (*first + n) % TRACE_HOOK_LINKS;

		links[n] = open_hook_link(programs, link);
		if (links[n] >= 0) {
			n++;
			continue;
		}
		err = links[n];
		*first = link;
	}
	if (err) {
		while (n)
			close(links[--n]);
		return err;
	}
	memcpy(ret_links, links, sizeof(links));
	return 0;
}

void trace_programs_close(struct trace_programs *programs)
{
	if (!programs->set.object)
		return;
	ring_buffer__free(programs->ring);
	if (programs->ports)
		map_munmap(programs->ports,
			   TRACE_PORTS * sizeof(*programs->ports));
	if (programs->conns)
		map_munmap(programs->conns,
			   programs->knobs.slots * sizeof(*programs->conns));
	program_set_unref(&programs->set);
	*programs = (struct trace_programs){ 0 };
}

/* ---- Use ------------------------------------------------------------------------------ */

/* The ring is read meanwhile: it has no room for all sockets of a busy host. */
static int visit_sockets(const struct trace_programs *programs,
			 const char *iterator)
{
	int fd = program_set_open_iterator(&programs->set, iterator);
	int r = fd < 0 ? fd : 0;
	char none;
	ssize_t n;

	while (r >= 0) {
		n = read(fd, &none, sizeof(none));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			r = -errno;
		else
			r = trace_programs_read(programs);
		if (!n)
			break;
	}
	if (fd >= 0)
		close(fd);
	return r < 0 ? r : 0;
}

int trace_programs_list(const struct trace_programs *programs)
{
	return visit_sockets(programs, "netobs_tr_list");
}

int trace_programs_init(const struct trace_programs *programs)
{
	return visit_sockets(programs, "netobs_tr_init");
}

int trace_programs_read(const struct trace_programs *programs)
{
	return ring_buffer__consume(programs->ring);
}

int trace_programs_fd(const struct trace_programs *programs)
{
	return ring_buffer__epoll_fd(programs->ring);
}

static void count_ports(const struct trace_programs *programs,
			const struct trace_tuple *tuple, uint64_t one)
{
	uint32_t index = trace_ports_index(tuple->ports[0], tuple->ports[1]);

	__atomic_add_fetch(&programs->ports[index], one, __ATOMIC_RELAXED);
}

/* @return whether the socket of a TCP connection is connected to itself */
static bool is_self(const struct trace_tuple *tuple)
{
	return tuple->proto == IPPROTO_TCP &&
	       trace_is_self(&tuple->addrs[0], tuple->ports[0],
			     &tuple->addrs[1], tuple->ports[1]);
}

struct trace_conn *trace_programs_conn(const struct trace_programs *programs,
				       uint64_t id)
{
	return &programs->conns[id & (programs->knobs.slots - 1)];
}

/* Add a connection as netobs_trace_claim() and add_conn() of trace/events.h do. */
int trace_programs_add(struct trace_programs *programs,
		       const struct trace_tuple *tuple, bool is_turned,
		       uint64_t *ret_id)
{
	const uint32_t mask = programs->knobs.slots - 1;

	for (uint32_t i = 0; i < programs->knobs.slots; i++) {
		const uint64_t id = OWN_IDS | ++programs->last_id;
		struct trace_conn *conn = trace_programs_conn(programs, id);
		const struct trace_face face = { .id = id,
						 .slot = (uint32_t)id & mask,
						 .is_turned = is_turned };

		if (__sync_val_compare_and_swap(&conn->is_used, 0, 1))
			continue;
		memset(&conn->is_rejected, 0,
		       sizeof(*conn) - offsetof(struct trace_conn, is_rejected));
		if (is_self(tuple))
			conn->ends = TRACE_ENDS_SELF;
		conn->id = id;
		if (!bpf_map_update_elem(programs->faces_fd, tuple, &face,
					 BPF_NOEXIST)) {
			count_ports(programs, tuple, 1);
			*ret_id = id;
			return 0;
		}
		trace_programs_release(programs, id);
		return -errno;
	}
	return -ENOSPC;
}

void trace_programs_release(const struct trace_programs *programs, uint64_t id)
{
	struct trace_conn *conn = trace_programs_conn(programs, id);

	conn->id = 0;
	__atomic_store_n(&conn->is_used, 0, __ATOMIC_RELEASE);
}

uint64_t trace_programs_find(const struct trace_programs *programs,
			     const struct trace_tuple *tuple)
{
	struct trace_face face;

	return bpf_map_lookup_elem(programs->faces_fd, tuple, &face) ? 0 :
								       face.id;
}

void trace_programs_forget(const struct trace_programs *programs,
			   const struct trace_tuple *tuple, uint64_t id)
{
	if (trace_programs_find(programs, tuple) == id &&
	    !bpf_map_delete_elem(programs->faces_fd, tuple))
		count_ports(programs, tuple, UINT64_MAX);
}

void trace_programs_refuse(const struct trace_programs *programs,
			   const struct trace_tuple *tuple)
{
	bpf_map_update_elem(programs->refused_fd, tuple, &(uint64_t){ 1 },
			    BPF_ANY);
}

static bool is_second(const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);

	return name[strlen(name) - 1] == '2';
}

/* @return whether the program reports a point of a wanted layer */
static bool is_counted(const struct trace_programs *programs,
		       const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(name, rows[i].program))
			return wanted_points(&programs->knobs) >> rows[i].point &
			       1;
	return true;
}

/* @return runs of first programs that were missed and that second programs have not seen */
static uint64_t count_misses(const struct trace_programs *programs,
			     uint64_t nested)
{
	struct bpf_program *program;
	uint64_t misses = 0;

	bpf_object__for_each_program(program, programs->set.object)
		if (!is_second(program) && is_counted(programs, program))
			misses += program_misses(program);
	return misses > nested ? misses - nested : 0;
}

struct trace_counts trace_programs_count(const struct trace_programs *programs)
{
	struct trace_counts sum = { 0 };

	if (!programs->set.object)
		return sum;
	map_sum_cpus(programs->counts_fd, &sum, sizeof(sum));
	sum.missed += count_misses(programs, sum.nested);
	return sum;
}
