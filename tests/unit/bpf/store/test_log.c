// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The log against a model: random appends, flips, reads and overflows. */
#include "lib_seed.h"
#include "host.h"
#include "lib_test.h"

#include "bpf/store/log.h"

enum { SLOTS = 64, STEPS = 200000, MODEL = SLOTS + 1 };

/* A log must return all records, in order, with their generations. */
struct fixture {
	struct cpu_state cpu;
	struct log_slot slots[SLOTS];
	struct record {
		struct flow_entry entry;
		uint32_t generation;
		uint32_t n_slots;
	} model[MODEL];
	uint32_t first, n; /* of the model */
	uint32_t n_slots;  /* that the model's records take */
	uint32_t generation;
	uint32_t refused, read, woken;
};

static void fill_random(void *to, size_t size)
{
	uint8_t *bytes = to;

	for (size_t i = 0; i < size; i++)
		bytes[i] = test_random();
}

/* Whatever a parser may find. */
static struct packet random_packet(bool is_short)
{
	struct packet pkt = { .attrs = { .marks = test_random() & 0x1fffff } };
	uint64_t *lanes = (uint64_t *)&pkt.key;

	fill_random(&pkt.key, sizeof(pkt.key));
	pkt.key.vlan &= VLAN_PRESENT | VLAN_ID_MASK;
	pkt.key.outer_vlan &= VLAN_PRESENT | VLAN_ID_MASK;
	pkt.key.tunnel = is_short ? TUNNEL_NONE : test_random() % TUNNEL_MAX;
	pkt.attrs.dscp = test_random() & 63;
	pkt.attrs.ttl_min = pkt.attrs.ttl_max = test_random();
	pkt.attrs.has_mac = test_random() & 1;
	if (!is_short)
		return pkt;
	pkt.key.flags &= ~KEY_IPV6;
	lanes[0] = lanes[2] = lanes[6] = 0;
	lanes[1] = (lanes[1] & ~0xffffffffULL) | 0xffff0000;
	lanes[3] = (lanes[3] & ~0xffffffffULL) | 0xffff0000;
	return pkt;
}

static struct flow_entry entry_of(const struct packet *pkt,
				  const struct wire_size *size, uint64_t ns)
{
	struct flow_entry entry = {
		.key = pkt->key,
		.tally = {
			.packets = size->packets,
			.bytes = size->bytes,
			.l2_bytes = size->l2_bytes,
			.first_ns = ns,
			.last_ns = ns,
			.attrs = pkt->attrs,
		},
	};

	if (pkt->attrs.has_mac)
		fill_random(entry.tally.macs, sizeof(entry.tally.macs));
	return entry;
}

static void expect(struct fixture *f, const struct flow_entry *entry,
		   uint32_t n_slots)
{
	f->model[(f->first + f->n++) % MODEL] = (struct record){
		.entry = *entry,
		.generation = f->generation,
		.n_slots = n_slots,
	};
	f->n_slots += n_slots;
	assert_in_range(f->n_slots, 1, SLOTS);
}

static void publish(struct fixture *f, uint32_t n)
{
	uint64_t quarter = f->cpu.log_head / (SLOTS / LOG_WAKE_SHARE);
	bool wakes = log_publish(&f->cpu, n, SLOTS);

	assert_int_equal(wakes,
			 f->cpu.log_head / (SLOTS / LOG_WAKE_SHARE) != quarter);
	f->woken += wakes;
}

/* The reader's position may have moved on without the writer's knowledge. */
static bool has_room(struct fixture *f, uint32_t n)
{
	bool room = log_has_room(&f->cpu, n, SLOTS);

	assert_int_equal(room, f->n_slots + n <= SLOTS);
	f->refused += !room;
	return room;
}

static void append_packet(struct fixture *f)
{
	struct packet pkt = random_packet(true);
	struct wire_size size = { test_random() & 0xffff, (uint32_t)test_random(),
				  (uint32_t)test_random() };
	uint64_t ns = test_random(), hash = hash_key(&pkt.key, &host_secret);
	struct flow_entry entry = entry_of(&pkt, &size, ns);
	struct log_slot *slot = &f->slots[f->cpu.log_head % SLOTS];
	struct log_macs macs = { 0 };

	assert_true(is_log_short(&pkt, &size));
	if (!has_room(f, 1))
		return;
	memcpy(&macs.low, entry.tally.macs, 4);
	memcpy(&macs.high, entry.tally.macs + 4, 8);
	log_write_packet(slot, &pkt, &size, &macs, hash, ns,
			 log_generation_flag(f->generation) |
				 (pkt.attrs.has_mac ? LOG_HAS_MAC : 0));
	assert_int_equal(slot->hash, hash >> 32);
	publish(f, 1);
	expect(f, &entry, 1);
}

static void append_entry(struct fixture *f)
{
	struct packet pkt = random_packet(false);
	struct wire_size size = { test_random(), test_random(), test_random() };
	struct flow_entry entry = entry_of(&pkt, &size, test_random());

	entry.outer_check = test_random();
	entry.tally.first_ns -= test_random() % 1000;
	if (!has_room(f, 2))
		return;
	log_write_entry(&f->slots[f->cpu.log_head % SLOTS],
			&f->slots[(f->cpu.log_head + 1) % SLOTS], &entry,
			f->generation);
	publish(f, 2);
	expect(f, &entry, 2);
}

static void read_one(struct fixture *f)
{
	uint64_t tail = f->cpu.log_tail;
	const struct log_slot pair[] = { f->slots[tail % SLOTS],
					 f->slots[(tail + 1) % SLOTS] };
	const struct record *record = &f->model[f->first % MODEL];
	struct flow_entry entry;

	if (!f->n) {
		assert_int_equal(tail, f->cpu.log_head);
		return;
	}
	assert_int_equal(log_read(pair, &entry), record->n_slots);
	assert_int_equal(log_generation(pair), record->generation);
	assert_memory_equal(&entry, &record->entry, sizeof(entry));
	f->cpu.log_tail += record->n_slots;
	f->n_slots -= record->n_slots;
	f->first++;
	f->n--;
	f->read++;
}

/* Phases in which more is written than read, and the other way round. */
TEST(log_gives_back_what_it_took)
{
	static struct fixture f;

	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t readers = step / 1000 % 2 ? 3 : 7;
		uint32_t choice = test_random() % 10;

		if (test_random() % 50 == 0)
			f.generation ^= 1;
		if (choice < readers)
			read_one(&f);
		else if (test_random() % 3)
			append_packet(&f);
		else
			append_entry(&f);
	}
	assert_true(f.refused > STEPS / 100);
	assert_true(f.read > STEPS / 10);
	assert_true(f.woken > STEPS / 100);
	while (f.n)
		read_one(&f);
	read_one(&f);
}

TEST(packet_that_does_not_fit_takes_two_slots)
{
	struct packet pkt = random_packet(true);
	const struct wire_size fits = { 0xffff, UINT32_MAX, UINT32_MAX };
	struct wire_size size = fits;

	assert_true(is_log_short(&pkt, &size));
	size.packets++;
	assert_false(is_log_short(&pkt, &size));
	size = fits;
	size.bytes++;
	assert_false(is_log_short(&pkt, &size));
	size = fits;
	size.l2_bytes++;
	assert_false(is_log_short(&pkt, &size));
	pkt.key.flags |= KEY_IPV6;
	assert_false(is_log_short(&pkt, &fits));
	pkt = random_packet(true);
	pkt.key.tunnel = TUNNEL_GRE;
	assert_false(is_log_short(&pkt, &fits));
}
