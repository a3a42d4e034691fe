// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "base/slots.h"

enum { ITEMS = 5000, KEY_SIZE = 100 /* of no whole blocks, nor words */ };

struct item {
	char key[KEY_SIZE];
	uint32_t value;
};

static struct item make_key(uint32_t i)
{
	struct item item = { .key = "a key" };

	memcpy(item.key + KEY_SIZE - sizeof(i), &i, sizeof(i));
	return item;
}

static uint32_t get(struct slots *slots, uint32_t i)
{
	const struct item key = make_key(i);

	return slots_get(slots, key.key, KEY_SIZE, sizeof(struct item));
}

static uint32_t find_value(const struct slots *slots, uint32_t i)
{
	const struct item key = make_key(i);
	const uint32_t index = slots_find(slots, key.key);

	return index == SLOT_NONE ?
		       0 :
		       ((const struct item *)slots_at(slots, index))->value;
}

static int by_value_down(const void *a, const void *b)
{
	const struct item *one = a, *two = b;

	return one->value < two->value ? 1 : -1;
}

TEST(items_are_found_by_all_of_their_keys)
{
	struct slots slots = { 0 };

	(void)state;
	assert_int_equal(find_value(&slots, 0), 0);
	for (uint32_t i = 0; i < ITEMS; i++) {
		struct item *item;

		assert_int_equal(get(&slots, i), i);
		item = slots_at(&slots, i);
		assert_int_equal(item->value, 0);
		item->value = i + 1;
	}
	for (uint32_t i = 0; i < ITEMS; i++) {
		assert_int_equal(get(&slots, i), i);
		assert_int_equal(find_value(&slots, i), i + 1);
	}
	assert_int_equal(find_value(&slots, ITEMS), 0);
	assert_int_equal(slots.n, ITEMS);
	slots_free(&slots);
}

TEST(items_that_moved_are_found_and_those_that_went_are_not)
{
	struct slots slots = { 0 };

	(void)state;
	for (uint32_t i = 0; i < ITEMS; i++)
		((struct item *)slots_at(&slots, get(&slots, i)))->value = i + 1;
	qsort(slots.items, slots.n, sizeof(struct item), by_value_down);
	slots.n /= 2;
	slots_rehash(&slots);
	for (uint32_t i = 0; i < ITEMS; i++)
		assert_int_equal(find_value(&slots, i),
				 i < ITEMS / 2 ? 0 : i + 1);
	slots_clear(&slots);
	assert_int_equal(find_value(&slots, ITEMS - 1), 0);
	assert_int_equal(get(&slots, ITEMS - 1), 0);
	slots_free(&slots);
}

TEST(removal_leaves_all_other_pointers)
{
	struct slots slots = { 0 };
	uint64_t keys[ITEMS + 1] = { 0 };

	(void)state;
	assert_null(slots_pointer(&slots, &keys[0]));
	for (uint64_t i = 0; i <= ITEMS; i++)
		keys[i] = i;
	for (uint32_t i = 0; i < ITEMS; i++)
		assert_true(slots_set_pointer(&slots, &keys[i], sizeof(*keys),
					      &keys[i]));
	slots_remove(&slots, &keys[ITEMS]); /* never there */
	for (uint32_t gone = 0; gone < ITEMS; gone++) {
		slots_remove(&slots, &keys[gone]);
		assert_null(slots_pointer(&slots, &keys[gone]));
		for (uint32_t i = gone % 61; i < ITEMS; i += 61)
			assert_ptr_equal(slots_pointer(&slots, &keys[i]),
					 i <= gone ? NULL : &keys[i]);
		assert_int_equal(slots.n, ITEMS - gone - 1);
	}
	slots_free(&slots);
}
