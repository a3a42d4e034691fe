// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "conn_parts.h"

#include "base/util.h"
#include "bpf/alert.h"
#include "map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum {
	BITS_USUAL = 10, /* 0.9 MiB, with rules 1.3 */
	PARTS_MAX_BITS = 12,
	RESERVE_PART = 4, /* one in so many of the bodies in use, at least, is free */
	PARTS_AT_ONCE = 4,
	LOOKS = 40, /* whether the programs see a part */
	LOOK_US = 50,
	FIRST_TRIES = 100,
};

/* ---- Parts -------------------------------------------------------------------------- */

uint32_t conn_parts_bits(uint32_t places, bool at_once)
{
	uint32_t bits = 0, least = BITS_USUAL;

	while (1U << bits < places)
		bits++;
	if (bits > PARTS_MAX_BITS)
		least = max_u64(least, bits - PARTS_MAX_BITS);
	return at_once ? bits : min_u64(bits, least);
}

int conn_part_make(uint32_t bits, bool has_states, struct conn_part *ret_part)
{
	struct conn_part part = CONN_PART_NONE;

	part.bodies = map_make_array("conn_bodies", sizeof(struct conn_body),
				     1U << bits, BPF_F_MMAPABLE);
	if (part.bodies < 0)
		return part.bodies;
	if (has_states)
		part.states = map_make_array("alert_states",
					     sizeof(struct alert_state),
					     1U << bits, 0);
	if (has_states && part.states < 0) {
		int err = part.states;

		close_fd(&part.bodies);
		return err;
	}
	*ret_part = part;
	return 0;
}

void conn_part_close(struct conn_part *part)
{
	close_fd(&part->bodies);
	close_fd(&part->states);
}

static size_t part_size(const struct conn_parts *parts)
{
	return sizeof(struct conn_body) << parts->bits;
}

int conn_parts_offer(const struct conn_parts *parts, uint32_t body)
{
	return bpf_map_update_elem(parts->free_fd, NULL, &body, BPF_ANY);
}

/* ---- Growth ------------------------------------------------------------------------- */

/* What a thread begins to do may have to be begun again, if the kernel had no memory. */
static int show_map(int outer_fd, uint32_t index, int inner_fd)
{
	return map_has(outer_fd, index) ?
		       0 :
		       map_update_begin(outer_fd, index, inner_fd);
}

static bool is_visible(const struct conn_parts *parts)
{
	return map_has(parts->bodies_fd, parts->n) &&
	       (parts->states_fd < 0 || map_has(parts->states_fd, parts->n));
}

/* Have the programs see the next part. */
static int show_next(const struct conn_parts *parts)
{
	const struct timespec step = { .tv_nsec = LOOK_US * 1000 };
	int err = parts->states_fd < 0 ? 0 :
					 show_map(parts->states_fd, parts->n,
						  parts->next.states);

	err = err ?: show_map(parts->bodies_fd, parts->n, parts->next.bodies);
	for (int i = 0; !err && i < LOOKS; i++) {
		if (is_visible(parts))
			return 0;
		nanosleep(&step, NULL);
	}
	return err ?: -EAGAIN;
}

static int offer_next(struct conn_parts *parts)
{
	const uint32_t first = (uint32_t)conn_parts_count(parts) + 1;
	const struct conn_body *bodies =
		map_mmap(parts->next.bodies, 0, part_size(parts));
	int err = 0;

	if (!bodies)
		return -errno;
	conn_part_close(&parts->next);
	parts->bodies[parts->n++] = bodies;
	for (uint32_t i = 0; !err && i < 1U << parts->bits; i++)
		err = conn_parts_offer(parts, first + i);
	return err;
}

static int add_part(struct conn_parts *parts)
{
	int err = parts->next.bodies >= 0 ?
			  0 :
			  conn_part_make(parts->bits, parts->states_fd >= 0,
					 &parts->next);

	err = err ?: show_next(parts);
	return err ?: offer_next(parts);
}

/* Half a part at least, for connections that come until this is called again. */
static bool is_wanted(const struct conn_parts *parts, uint64_t used)
{
	const uint64_t reserve =
		max_u64((1ULL << parts->bits) / 2, used / RESERVE_PART);

	return parts->n < parts->n_max &&
	       used + reserve > conn_parts_count(parts);
}

int conn_parts_grow(struct conn_parts *parts, uint64_t used)
{
	int err = 0;

	for (int i = 0; !err && i < PARTS_AT_ONCE && is_wanted(parts, used); i++)
		err = add_part(parts);
	return err;
}

/* ---- All of them -------------------------------------------------------------------- */

int conn_parts_open(struct conn_parts *parts, const struct program_set *maps,
		    struct conn_part *first, uint32_t bits, uint32_t places)
{
	const bool has_states = first->states >= 0;
	int err = -EAGAIN;

	*parts = (struct conn_parts){
		.bits = bits,
		.n_max = places >> bits,
		.bodies_fd = program_set_map_fd(maps, "conn_bodies"),
		.states_fd = has_states ?
				     program_set_map_fd(maps, "alert_states") :
				     -1,
		.free_fd = program_set_map_fd(maps, "conn_free"),
		.next = *first,
	};
	*first = CONN_PART_NONE;
	parts->bodies = calloc(parts->n_max, sizeof(*parts->bodies));
	for (int i = 0; parts->bodies && err == -EAGAIN && i < FIRST_TRIES; i++)
		err = add_part(parts);
	if (err)
		conn_parts_close(parts);
	return err == -EAGAIN ? -ENOMEM : err;
}

void conn_parts_close(struct conn_parts *parts)
{
	for (uint32_t i = 0; i < parts->n; i++)
		map_munmap(parts->bodies[i], part_size(parts));
	if (parts->n_max)
		conn_part_close(&parts->next);
	free(parts->bodies);
	*parts = (struct conn_parts){ 0 };
}

static uint64_t bytes_of(const struct conn_parts *parts, uint32_t n)
{
	const uint64_t each =
		sizeof(struct conn_body) +
		(parts->states_fd >= 0 ? sizeof(struct alert_state) : 0);

	return ((uint64_t)n << parts->bits) * each;
}

uint64_t conn_parts_bytes(const struct conn_parts *parts)
{
	const bool is_adding = parts->n_max && parts->next.bodies >= 0;

	return bytes_of(parts, parts->n + is_adding);
}

uint64_t conn_parts_bytes_most(const struct conn_parts *parts)
{
	return bytes_of(parts, parts->n_max);
}
