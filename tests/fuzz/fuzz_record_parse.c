// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records in JSON of any bytes: one that is read can be written and read again. */
#include "lib_fuzz.h"

#include "record/any.h"

/* Flows are elsewhere. */
int flow_record_json(const struct netobs_record *record, char *buf, size_t size)
{
	(void)record;
	(void)buf;
	(void)size;
	return -EINVAL;
}

void process_json(struct json *json, const struct netobs_process *src,
		  const struct netobs_process *dst)
{
	(void)json;
	(void)src;
	(void)dst;
}

static void check_record(const union any_record *any, int len)
{
	static char text[RECORD_JSON_MAX];
	union any_record again;

	check((size_t)len == any->record.sz);
	check(any->record.type >= NETOBS_RECORD_TURN &&
	      any->record.type <= NETOBS_RECORD_VERDICT);
	check(netobs_record_json(&any->record, text, sizeof(text)) > 0);
	check(netobs_record_parse(text, &again, sizeof(again)) == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	union any_record any;
	int len = netobs_record_parse(text, &any, sizeof(any));

	if (len > 0)
		check_record(&any, len);
	else
		check(len == -EBADMSG || len == -ENOTSUP);
	free(text);
	return 0;
}
