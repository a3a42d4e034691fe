// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_names.h"

#include "base/util.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SUBSYSTEM_SHIFT = 16, /* SKB_DROP_REASON_SUBSYS_SHIFT */
	NAMES_MAX = 4096,
	SYMBOL_LEN = 60,
};

#define SUBSYSTEM_PREFIX "SKB_DROP_REASON_SUBSYS_"

struct kernel_symbol {
	uint64_t address;
	char name[SYMBOL_LEN];
};

/* ---- Reasons ------------------------------------------------------------------------ */

static const struct btf_type *find_enum(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_ENUM);

	return id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
}

/* The names of an enumeration, each at its number. */
static char **read_enum(const struct btf *btf, const char *name, size_t *ret_n)
{
	const struct btf_type *type = find_enum(btf, name);
	char **names = type ? calloc(NAMES_MAX, sizeof(*names)) : NULL;

	*ret_n = names ? NAMES_MAX : 0;
	for (uint32_t i = 0; names && i < btf_vlen(type); i++) {
		const struct btf_enum *value = &btf_enum(type)[i];

		if (value->val < 0 || value->val >= NAMES_MAX ||
		    names[value->val])
			continue;
		names[value->val] =
			strdup(btf__name_by_offset(btf, value->name_off) ?: "");
	}
	return names;
}

static bool has_function(const struct btf *btf, const char *name)
{
	size_t n;
	char **functions = read_enum(btf, "bpf_func_id", &n);
	bool has = false;

	for (size_t i = 0; i < n; i++) {
		has |= functions[i] && !strcmp(functions[i], name);
		free(functions[i]);
	}
	free(functions);
	return has;
}

void drop_names_add(struct drop_names *names, const struct btf *btf,
		    const char *enumeration)
{
	const struct btf_type *type = find_enum(btf, enumeration);

	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		const struct btf_enum *value = &btf_enum(type)[i];
		const char *name = btf__name_by_offset(btf, value->name_off);

		/* Markers of the beginning and the end, and results that are no drops. */
		if (!name || *name == '_' ||
		    !((uint32_t)value->val >> SUBSYSTEM_SHIFT) ||
		    !array_reserve(&names->reasons, names->n_reasons,
				   &names->reasons_capacity,
				   sizeof(*names->reasons), 64))
			continue;
		names->reasons[names->n_reasons++] =
			(struct named_reason){ (uint32_t)value->val,
					       strdup(name) };
	}
}

/* Read the reasons of modules that are loaded now, or built into the kernel. */
static void read_subsystems(struct drop_names *names, struct btf *btf)
{
	static const struct {
		const char *module, *enumeration;
	} known[] = {
		{ "mac80211", "mac80211_drop_reason" },
		{ "openvswitch", "ovs_drop_reason" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct btf *module = btf__load_module_btf(known[i].module, btf);

		drop_names_add(names, module ?: btf, known[i].enumeration);
		btf__free(module);
	}
}

static const char *find_reason(const struct drop_names *names, uint32_t reason)
{
	for (uint32_t i = 0; i < names->n_reasons; i++)
		if (names->reasons[i].number == reason)
			return names->reasons[i].name;
	return NULL;
}

void drop_names_cause(const struct drop_names *names, uint32_t reason, char *to,
		      size_t size)
{
	const uint32_t subsystem = reason >> SUBSYSTEM_SHIFT;
	const uint32_t number = reason & ((1U << SUBSYSTEM_SHIFT) - 1);
	const size_t prefix = sizeof(SUBSYSTEM_PREFIX) - 1;
	const char *name;

	if (!subsystem && number < names->n_causes && names->causes[number]) {
		snprintf(to, size, "%s", names->causes[number]);
		return;
	}
	name = subsystem ? find_reason(names, reason) : NULL;
	if (name) {
		snprintf(to, size, "%s", name);
		return;
	}
	name = subsystem < names->n_subsystems ? names->subsystems[subsystem] :
						 NULL;
	if (name && subsystem && !strncmp(name, SUBSYSTEM_PREFIX, prefix))
		snprintf(to, size, "%s_%" PRIu32, name + prefix, number);
	else
		snprintf(to, size, "SKB_DROP_REASON_%" PRIu32, reason);
}

/* ---- Functions ---------------------------------------------------------------------- */

/* Leave out what a compiler appends to the name of a variant: "name.constprop.0", "name.isra.0". */
static void copy_function(const char *name, size_t len, char *to, size_t size)
{
	const char *dot = memchr(name, '.', len);

	snprintf(to, size, "%.*s", (int)(dot ? (size_t)(dot - name) : len), name);
}

bool drop_names_split(const char *text, char *function, size_t size,
		      uint32_t *ret_offset)
{
	const char *plus = strchr(text, '+');
	unsigned int offset;

	if (!plus || plus == text || sscanf(plus, "+%x", &offset) != 1)
		return false;
	copy_function(text, (size_t)(plus - text), function, size);
	*ret_offset = offset;
	return true;
}

/* "ffffffff81000000 T name", and behind the name of a module's function, its module. */
static bool read_symbol(const char *line, struct kernel_symbol *ret_symbol)
{
	char kind;

	return sscanf(line, "%" SCNx64 " %c %59s", &ret_symbol->address, &kind,
		      ret_symbol->name) == 3 &&
	       (kind == 't' || kind == 'T') && ret_symbol->address;
}

static int compare_symbols(const void *one, const void *other)
{
	const struct kernel_symbol *a = one, *b = other;

	return (a->address > b->address) - (a->address < b->address);
}

/* COMPAT(<5.13): programs cannot ask for names. Addresses are 0 without CAP_SYSLOG on some hosts. */
static void read_symbols(struct drop_names *names, const struct log *log)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	struct kernel_symbol symbol;
	char line[512];

	while (file && fgets(line, sizeof(line), file) &&
	       array_reserve(&names->symbols, names->n_symbols,
			     &names->symbols_capacity, sizeof(symbol), 16384))
		if (read_symbol(line, &symbol))
			names->symbols[names->n_symbols++] = symbol;
	if (file)
		fclose(file);
	qsort(names->symbols, names->n_symbols, sizeof(*names->symbols),
	      compare_symbols);
	if (!names->n_symbols)
		log_warning(
			log,
			"functions that drop packets have no names: /proc/kallsyms shows no addresses (kernel.kptr_restrict)");
}

bool drop_names_find(const struct drop_names *names, uint64_t address,
		     char *function, size_t size, uint32_t *ret_offset)
{
	size_t low = 0, high = names->n_symbols;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (names->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	copy_function(names->symbols[low - 1].name,
		      strlen(names->symbols[low - 1].name), function, size);
	*ret_offset = (uint32_t)(address - names->symbols[low - 1].address);
	return true;
}

/* ---- Both --------------------------------------------------------------------------- */

void drop_names_open(struct drop_names *names, bool wants_reasons,
		     const struct log *log)
{
	struct btf *btf;

	*names = (struct drop_names){ 0 };
	log_borrow_libbpf(log);
	btf = btf__load_vmlinux_btf();
	if (btf && wants_reasons) {
		names->causes =
			read_enum(btf, "skb_drop_reason", &names->n_causes);
		names->subsystems = read_enum(btf, "skb_drop_reason_subsys",
					      &names->n_subsystems);
		read_subsystems(names, btf);
	}
	log_return_libbpf();
	if (wants_reasons && !names->n_causes)
		log_warning(
			log,
			"reasons of drops are numbers: the kernel's type information has no names for them");
	if (!btf || !has_function(btf, "BPF_FUNC_snprintf"))
		read_symbols(names, log);
	btf__free(btf);
}

static void free_names(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void drop_names_close(struct drop_names *names)
{
	free_names(names->causes, names->n_causes);
	free_names(names->subsystems, names->n_subsystems);
	for (uint32_t i = 0; i < names->n_reasons; i++)
		free(names->reasons[i].name);
	free(names->reasons);
	free(names->symbols);
	*names = (struct drop_names){ 0 };
}

/* ---- Words ---------------------------------------------------------------------------- */

/* @return whether one of @words, between blanks, is @name, or the beginning of it */
static bool is_among(const char *name, const char *words, bool may_go_on)
{
	for (size_t len; *words; words += len + (words[len] == ' ')) {
		len = strcspn(words, " ");
		if (!strncmp(name, words, len) && (may_go_on || !name[len]))
			return true;
	}
	return false;
}

/* ---- Kinds -------------------------------------------------------------------------- */

/*
 * include/net/dropreason-core.h explains each. Data of TCP that had arrived before, or that a merged
 * segment has; segments whose effect was taken; packets for others, in promiscuous mode; fragments that came
 * twice; what a socket had not read when it was closed; copies for packet sockets.
 */
static const char benign_causes[] =
	"CONSUMED TCP_OLD_DATA TCP_OFOMERGE TCP_OLD_ACK TCP_RESET OTHERHOST DUP_FRAG SOCKET_CLOSE "
	"SKB_CONSUMED PACKET_SOCK_ERROR";

/* Parts of a buffer are freed after it, with its reason. */
static const char benign_functions[] = "skb_release_data __kfree_skb";

/* They state no reason, and lose nothing: sockets that end, copies, tests of BPF programs. */
static const char benign_unspecified[] =
	"udp_destruct_common ip6_mc_input bpf_prog_test_run_skb";

/* The queue that QUEUE_PURGE empties is a socket's. Others, as of neighbours, lose packets. */
static const char socket_prefixes[] =
	"sk_stream_kill_queues inet_sock_destruct inet6_sock_destruct inet_csk_ tcp_ mptcp_ udp_ raw_ "
	"rawv6_ packet_ netlink_ unix_ skb_queue_purge";

static const char *without_prefix(const char *cause)
{
	const size_t len = sizeof(DROP_CAUSE_PREFIX) - 1;

	return strncmp(cause, DROP_CAUSE_PREFIX, len) ? cause : cause + len;
}

enum netobs_drop_kind drop_kind(const char *cause, const char *function)
{
	const char *name = without_prefix(cause);
	const bool is_specified = *name && strcmp(name, "NOT_SPECIFIED") != 0;

	if (!strcmp(name, "QUEUE_PURGE") &&
	    is_among(function, socket_prefixes, true))
		return NETOBS_DROP_BENIGN;
	if (!is_specified && is_among(function, benign_unspecified, false))
		return NETOBS_DROP_BENIGN;
	if (is_among(name, benign_causes, false) ||
	    is_among(function, benign_functions, false))
		return NETOBS_DROP_BENIGN;
	return is_specified ? NETOBS_DROP_LOSS : NETOBS_DROP_UNSPECIFIED;
}

/* ---- Layers ------------------------------------------------------------------------- */

struct layer_prefixes {
	enum netobs_drop_layer layer;
	const char *words;
};

/* The first one that fits. */
static const struct layer_prefixes by_cause[] = {
	{ NETOBS_DROP_LAYER_NETFILTER, "NETFILTER" },
	{ NETOBS_DROP_LAYER_XFRM, "XFRM" },
	{ NETOBS_DROP_LAYER_CAN, "CAN_RX CANFD_RX CANXL_RX" },
	{ NETOBS_DROP_LAYER_SOCKET, "NO_SOCKET SOCKET PROTO_MEM PACKET_SOCK" },
	{ NETOBS_DROP_LAYER_TCP, "TCP" },
	{ NETOBS_DROP_LAYER_UDP, "UDP" },
	{ NETOBS_DROP_LAYER_ICMP, "ICMP" },
	{ NETOBS_DROP_LAYER_NEIGHBOUR, "NEIGH ARP IPV6_NDISC" },
	{ NETOBS_DROP_LAYER_TUNNEL, "IP_TUNNEL TUNNEL VXLAN" },
	{ NETOBS_DROP_LAYER_IP,
	  "IP OTHERHOST UNICAST_IN_L2 PKT_TOO_BIG FRAG DUP_FRAG" },
	{ NETOBS_DROP_LAYER_BRIDGE, "BRIDGE NO_TX_TARGET" },
	{ NETOBS_DROP_LAYER_TC, "QDISC TC_ FQ_ CAKE" },
	{ NETOBS_DROP_LAYER_XDP, "XDP" },
	{ NETOBS_DROP_LAYER_DEVICE,
	  "CPU_BACKLOG FULL_RING DEV_ VLAN UNHANDLED_PROTO MAC_ LOCAL_MAC TAP_" },
};

static const struct layer_prefixes by_function[] = {
	{ NETOBS_DROP_LAYER_NETFILTER, "nf_ nft_ ipt_" },
	{ NETOBS_DROP_LAYER_XFRM, "xfrm __xfrm esp ah_ ah4_ ah6_ ipcomp" },
	{ NETOBS_DROP_LAYER_CAN,
	  "can_ canfd_ canxl_ vcan_ vxcan_ bcm_ isotp_ j1939_" },
	{ NETOBS_DROP_LAYER_TCP, "tcp_ __tcp" },
	{ NETOBS_DROP_LAYER_UDP, "udp __udp" },
	{ NETOBS_DROP_LAYER_ICMP, "icmp ping_" },
	{ NETOBS_DROP_LAYER_NEIGHBOUR, "neigh_ __neigh_ arp_ ndisc_" },
	{ NETOBS_DROP_LAYER_BRIDGE, "br_ __br_" },
	{ NETOBS_DROP_LAYER_TUNNEL, "vxlan_ geneve_ ip_tunnel ip6_tnl ipgre" },
	{ NETOBS_DROP_LAYER_IP, "ip __ip" },
	{ NETOBS_DROP_LAYER_SOCKET,
	  "inet sk_ sock_ __sk raw_ rawv6_ packet_ tpacket_ skb_queue_purge" },
	{ NETOBS_DROP_LAYER_TC, "tcf_ sch_ qdisc_ tbf_ htb_ fq_ __dev_xmit_skb" },
	{ NETOBS_DROP_LAYER_XDP,
	  "do_xdp xdp_ netif_receive_generic_xdp veth_xdp" },
	{ NETOBS_DROP_LAYER_DEVICE,
	  "netif_ __netif_ enqueue_to_backlog dev_ __dev_ validate_xmit veth_ tun_ macvlan_" },
};

static enum netobs_drop_layer
layer_by(const char *name, const struct layer_prefixes *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_among(name, list[i].words, true))
			return list[i].layer;
	return NETOBS_DROP_LAYER_OTHER;
}

/* Frames of CAN, CAN FD and CAN XL: include/uapi/linux/if_ether.h. */
static bool is_can(uint16_t ethertype)
{
	enum { FIRST = 0x000c, LAST = 0x000e };

	return ethertype >= FIRST && ethertype <= LAST;
}

/* Sockets of CAN and of IP have functions of the same names, such as raw_rcv(). */
enum netobs_drop_layer drop_layer(const char *cause, const char *function,
				  uint16_t ethertype)
{
	const char *name = without_prefix(cause);
	enum netobs_drop_layer layer =
		layer_by(name, by_cause, ARRAY_SIZE(by_cause));

	if (layer == NETOBS_DROP_LAYER_OTHER)
		layer = layer_by(function, by_function, ARRAY_SIZE(by_function));
	if (is_can(ethertype) && (layer == NETOBS_DROP_LAYER_OTHER ||
				  layer == NETOBS_DROP_LAYER_SOCKET))
		return NETOBS_DROP_LAYER_CAN;
	return layer;
}
