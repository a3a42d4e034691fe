// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "connections.h"

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
	RESERVE_PART = 4, /* keep 1/4 of the bodies in use free, at least */
	NOTICE_BODIES = 256,
	FIRST_MS = 2000, /* the programs see the first part much sooner */
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

int conn_parts_offer(struct conn_parts *parts, uint32_t body)
{
	const bool gives_notice = !((parts->n_offered + 1) % NOTICE_BODIES);
	const uint32_t value = body | (gives_notice ? CONN_BODY_NOTICE : 0);
	const int err =
		bpf_map_update_elem(parts->free_fd, NULL, &value, BPF_ANY);

	parts->n_offered += !err;
	return err;
}

/* ---- Growth ------------------------------------------------------------------------- */

/* Have the programs see a map of the next part. If the thread failed, a later call starts it again. */
static int show_map(struct conn_parts *parts, int outer_fd, int inner_fd)
{
	int err;

	if (map_has(outer_fd, parts->n)) {
		if (parts->showing_in == outer_fd)
			map_grace_abandon(TAKE_PTR(parts->showing));
		return 0;
	}
	if (parts->showing)
		return map_grace_result(&parts->showing) ?: -EAGAIN;
	parts->showing_in = outer_fd;
	err = map_update_begin(outer_fd, parts->n, inner_fd, &parts->showing);
	/* If no thread can be started, wait here. */
	return err ? map_update(outer_fd, parts->n, inner_fd) : -EAGAIN;
}

static int show_next(struct conn_parts *parts)
{
	int err = parts->states_fd < 0 ?
			  0 :
			  show_map(parts, parts->states_fd, parts->next.states);

	return err ?: show_map(parts, parts->bodies_fd, parts->next.bodies);
}

/* The programs see the next part: map it, and add it to the parts. */
static int take_next(struct conn_parts *parts)
{
	const struct conn_body *bodies =
		map_mmap(parts->next.bodies, 0, part_size(parts));

	if (!bodies)
		return -errno;
	conn_part_close(&parts->next);
	parts->bodies[parts->n++] = bodies;
	return 0;
}

static int add_part(struct conn_parts *parts)
{
	int err = parts->next.bodies >= 0 ?
			  0 :
			  conn_part_make(parts->bits, parts->states_fd >= 0,
					 &parts->next);

	err = err ?: show_next(parts);
	return err ?: take_next(parts);
}

static int offer_new(struct conn_parts *parts)
{
	int err = 0;

	while (!err && parts->n_new < conn_parts_count(parts)) {
		err = conn_parts_offer(parts, parts->n_new + 1);
		parts->n_new += !err;
	}
	return err;
}

/* The reserve is half a part at least, for new connections until the next call. */
static bool is_wanted(const struct conn_parts *parts, uint64_t used)
{
	const uint64_t reserve =
		max_u64((1ULL << parts->bits) / 2, used / RESERVE_PART);

	return parts->n < parts->n_max &&
	       used + reserve > conn_parts_count(parts);
}

int conn_parts_grow(struct conn_parts *parts, uint64_t used)
{
	int err = is_wanted(parts, used) ? add_part(parts) : 0;

	err = err ?: offer_new(parts);
	return err ?: is_wanted(parts, used) ? -EAGAIN : 0;
}

/* ---- All of them -------------------------------------------------------------------- */

int conn_parts_open(struct conn_parts *parts, const struct program_set *maps,
		    struct conn_part *first, uint32_t bits, uint32_t places)
{
	const struct timespec step = { .tv_nsec = NSEC_PER_MSEC };
	const bool has_states = first->states >= 0;
	int err = -ENOMEM;

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
	if (parts->bodies)
		err = conn_parts_grow(parts, 0);
	for (int i = 0; err == -EAGAIN && i < FIRST_MS; i++) {
		nanosleep(&step, NULL);
		err = conn_parts_grow(parts, 0);
	}
	if (err)
		conn_parts_close(parts);
	return err;
}

void conn_parts_close(struct conn_parts *parts)
{
	for (uint32_t i = 0; i < parts->n; i++)
		map_munmap(parts->bodies[i], part_size(parts));
	if (parts->n_max)
		conn_part_close(&parts->next);
	map_grace_abandon(parts->showing);
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
	return bytes_of(parts, parts->n);
}

uint64_t conn_parts_bytes_most(const struct conn_parts *parts)
{
	return bytes_of(parts, parts->n_max);
}
