// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Answers of any server to a _bulk request. The first byte says where they are cut in two. */
#include "lib_fuzz.h"
#include "sinks/http/http.h"

struct items {
	unsigned int n, sum;
};

static void count_item(void *ctx, int status, const char *reason)
{
	struct items *items = ctx;

	items->n++;
	items->sum += (unsigned int)status + (unsigned int)strlen(reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bulk_answer answer;
	struct items whole = { 0 }, parts = { 0 };
	const char *bytes = (const char *)data;
	size_t cut = size ? data[0] % size : 0;

	bulk_answer_begin(&answer, count_item, &whole);
	bulk_answer_read(&answer, bytes, size);
	bulk_answer_begin(&answer, count_item, &parts);
	bulk_answer_read(&answer, bytes, cut);
	bulk_answer_read(&answer, bytes + cut, size - cut);
	check(whole.n == parts.n && whole.sum == parts.sum);
	return 0;
}
