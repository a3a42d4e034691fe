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
