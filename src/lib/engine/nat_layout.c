// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "store.h"

#include "base/hash.h"
#include "base/util.h"

#include <bpf/btf.h>
#include <errno.h>
#include <string.h>

static void free_btf(struct btf **btf)
{
	btf__free(*btf);
}

#define cleanup_btf __attribute__((cleanup(free_btf)))

struct found {
	uint32_t type;
	uint32_t offset; /* in bytes, in the outermost struct */
};

static const struct btf_type *skip_modifiers(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	while (type && (btf_is_typedef(type) || btf_is_mod(type)))
		type = btf__type_by_id(btf, type->type);
	return type;
}

/* Members of structs and unions without a name belong to the struct around them. */
static bool find_member(const struct btf *btf, const struct btf_type *type,
			uint32_t base, const char *name, struct found *ret_found)
{
	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *its_name = btf__name_by_offset(btf, member->name_off);
		const struct btf_type *inner = skip_modifiers(btf, member->type);
		uint32_t offset = base + btf_member_bit_offset(type, i) / 8;

		if (its_name && !strcmp(its_name, name)) {
			*ret_found = (struct found){ member->type, offset };
			return true;
		}
		if ((!its_name || !*its_name) && inner &&
		    btf_is_composite(inner) &&
		    find_member(btf, inner, offset, name, ret_found))
			return true;
	}
	return false;
}

static int find_in_struct(const struct btf *btf, const char *name,
			  const char *member, struct found *ret_found)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	if (id < 0)
		return -ENOENT;
	return find_member(btf, btf__type_by_id(btf, (uint32_t)id), 0, member,
			   ret_found) ?
		       0 :
		       -EPROTO;
}

/* @return whether struct nat_tuple has the layout of the kernel's */
static bool is_known_tuple(const struct btf *btf)
{
	static const char *const name = "nf_conntrack_tuple";
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
	struct found src, dst, family, proto;
	const struct btf_type *type;

	if (id < 0 ||
	    btf__resolve_size(btf, (uint32_t)id) != sizeof(struct nat_tuple) ||
	    find_in_struct(btf, name, "src", &src) ||
	    find_in_struct(btf, name, "dst", &dst) ||
	    find_in_struct(btf, "nf_conntrack_man", "l3num", &family))
		return false;
	type = skip_modifiers(btf, dst.type);
	return type && btf_is_composite(type) &&
	       find_member(btf, type, dst.offset, "protonum", &proto) &&
	       src.offset == 0 &&
	       family.offset == offsetof(struct nat_tuple, family) &&
	       dst.offset == offsetof(struct nat_tuple, dst) &&
	       proto.offset == offsetof(struct nat_tuple, proto);
}

/* nf_conn.tuplehash is an array of structs, each of which has a tuple. */
static int find_tuples(const struct btf *btf, struct nat_layout *layout)
{
	struct found hashes, tuple;
	const struct btf_type *array;
	int64_t size;
	int err = find_in_struct(btf, "nf_conn", "tuplehash", &hashes);

	if (!err)
		err = find_in_struct(btf, "nf_conntrack_tuple_hash", "tuple",
				     &tuple);
	if (err)
		return err;
	array = skip_modifiers(btf, hashes.type);
	if (!array || !btf_is_array(array) ||
	    btf_array(array)->nelems != NAT_DIRECTIONS || !is_known_tuple(btf))
		return -EPROTO;
	size = btf__resolve_size(btf, btf_array(array)->type);
	if (size < (int64_t)sizeof(struct nat_tuple))
		return -EPROTO;
	for (uint32_t dir = 0; dir < NAT_DIRECTIONS; dir++)
		layout->tuples[dir] =
			hashes.offset + dir * (uint32_t)size + tuple.offset;
	return 0;
}

static int read_layout(const struct btf *btf, struct nat_layout *layout)
{
	struct found found;
	int err = find_in_struct(btf, "sk_buff", "_nfct", &found);

	if (err)
		return -ENOENT; /* CONFIG_NF_CONNTRACK is off */
	layout->skb_nfct = found.offset;
	err = find_tuples(btf, layout);
	if (err)
		return err;
	layout->has_zone = !find_in_struct(btf, "nf_conn", "zone", &found);
	layout->zone = layout->has_zone ? found.offset : 0;
	return 0;
}

/* The id is the first member of struct nf_conntrack_zone. */
int nat_find_layout(struct nat_layout *ret_layout, const struct log *log)
{
	struct nat_layout layout = { 0 };
	cleanup_btf struct btf *kernel = NULL, *module = NULL;
	int err;

	log_borrow_libbpf(log);
	kernel = btf__load_vmlinux_btf();
	err = kernel ? read_layout(kernel, &layout) : -errno;
	if (err == -ENOENT && kernel) {
		module = btf__load_module_btf("nf_conntrack", kernel);
		err = module ? read_layout(module, &layout) : -ENOENT;
	}
	log_return_libbpf();
	if (err)
		return err;
	layout.has_cast = btf__find_by_name_kind(kernel, "bpf_cast_to_kern_ctx",
						 BTF_KIND_FUNC) > 0;
	secret_fill(layout.secret, sizeof(layout.secret));
	*ret_layout = layout;
	return 0;
}
