// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trouble.h"

#include <stdio.h>

/* The same, by the words that a broker and librdkafka have for it. */
static rd_kafka_resp_err_t common_name(rd_kafka_resp_err_t err)
{
	return err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
			       err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ?
		       RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART :
		       err;
}

static bool was_told(const struct trouble *trouble, rd_kafka_resp_err_t err)
{
	for (size_t i = 0; i < trouble->n_told; i++)
		if (trouble->told[i] == err)
			return true;
	return trouble->n_told == TROUBLE_KINDS;
}

void trouble_tell(struct trouble *trouble, rd_kafka_resp_err_t err,
		  const char *text)
{
	/* It follows from others, which say more. */
	if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && trouble->n_told)
		return;
	err = common_name(err);
	if (was_told(trouble, err))
		return;
	trouble->told[trouble->n_told++] = err;
	log_error(trouble->log, "kafka: %s: %s; trying again", trouble->name,
		  text);
}

void trouble_note(struct trouble *trouble, rd_kafka_resp_err_t err,
		  const char *text)
{
	if (trouble->n_told || !trouble->has_worked) {
		trouble_tell(trouble, err, text);
		return;
	}
	if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && trouble->text[0])
		return;
	trouble->last = err;
	snprintf(trouble->text, sizeof(trouble->text), "%s", text);
}

void trouble_stuck(struct trouble *trouble)
{
	if (trouble_waits(trouble))
		trouble_tell(trouble, trouble->last, trouble->text);
}

void trouble_over(struct trouble *trouble)
{
	if (trouble->n_told)
		log_info(trouble->log, "kafka: %s accepts records again",
			 trouble->name);
	trouble->n_told = 0;
	trouble->text[0] = '\0';
	trouble->has_worked = true;
}
