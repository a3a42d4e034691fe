// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "ipfix.h"

#include "base/util.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum {
	HEADER_LEN = 16,
	SEQUENCE_AT = 8, /* in the header */
	SET_HEADER_LEN = 4,
	TEMPLATE_SET = 2,
	OPTIONS_TEMPLATE_SET = 3,
	LEAST_DATA_SET = 256,
};

/*
 * A refusal of libfixbuf is a mistake of ours: it is never asked how much room there is,
 * since it may leave a set without records where there is too little.
 */
static int clear_refusal(GError **error)
{
	g_clear_error(error);
	return -EIO;
}

int encoder_open(uint32_t domain, const struct layout_options *options,
		 struct encoder **ret_encoder)
{
	struct encoder *encoder = calloc(1, sizeof(*encoder));
	int err;

	if (!encoder)
		return -ENOMEM;
	encoder->domain = domain;
	layout_open(&encoder->layout, options);
	err = encoder_start(encoder, ENCODER_SIZE_MAX, 0);
	if (err) {
		encoder_free(encoder);
		return err;
	}
	*ret_encoder = encoder;
	return 0;
}

static void end_session(struct encoder *encoder)
{
	if (encoder->fbuf)
		fBufFree(encoder->fbuf); /* with session and exporter */
	encoder->fbuf = NULL;
}

void encoder_free(struct encoder *encoder)
{
	if (!encoder)
		return;
	end_session(encoder);
	layout_close(&encoder->layout);
	free(encoder);
}

int encoder_start(struct encoder *encoder, size_t size, uint32_t sequence)
{
	fbSession_t *session = fbSessionAlloc(encoder->layout.model);
	fbExporter_t *exporter;

	end_session(encoder);
	/* Templates are of a domain, and without a buffer they are not sent yet. */
	fbSessionSetDomain(session, encoder->domain);
	if (layout_add_to(&encoder->layout, session)) {
		fbSessionFree(session);
		return -EIO;
	}
	exporter = fbExporterAllocBuffer(encoder->bytes, sizeof(encoder->bytes));
	encoder->fbuf = fBufAllocForExport(session, exporter);
	fBufSetAutomaticMode(encoder->fbuf, FALSE);
	encoder->size = size;
	encoder->used = encoder->set = 0;
	encoder->records = 0;
	encoder->sequence = sequence;
	return 0;
}

/* Room for so many bytes in that kind of set. */
static bool has_room(const struct encoder *encoder, uint16_t set, size_t len)
{
	size_t used = encoder->used ?: HEADER_LEN;
	bool has_templates = encoder->set && encoder->set < LEAST_DATA_SET;

	if (has_templates && set >= LEAST_DATA_SET)
		return false;
	return used + len + (set == encoder->set ? 0 : SET_HEADER_LEN) <=
	       encoder->size;
}

static void note_added(struct encoder *encoder, uint16_t set, size_t len)
{
	encoder->used = (encoder->used ?: HEADER_LEN) + len +
			(set == encoder->set ? 0 : SET_HEADER_LEN);
	encoder->set = set;
}

/*
 * Between templates and records, libfixbuf refuses once, for it wants a new message:
 * when it does so here, the message is new.
 */
static bool is_passing(GError **error)
{
	if (!g_error_matches(*error, FB_ERROR_DOMAIN, FB_ERROR_EOM))
		return false;
	g_clear_error(error);
	return true;
}

static bool append_template(fbSession_t *session, uint16_t id, GError **error)
{
	return fbSessionExportTemplate(session, id, error) ||
	       (is_passing(error) && fbSessionExportTemplate(session, id, error));
}

static bool append_record(fBuf_t *fbuf, void *record, size_t len, GError **error)
{
	return fBufAppend(fbuf, record, len, error) ||
	       (is_passing(error) && fBufAppend(fbuf, record, len, error));
}

/* pmacct misreads all options templates of a set but the first. */
static bool may_follow(const struct encoder *encoder, uint16_t set)
{
	return set != encoder->set || set == TEMPLATE_SET;
}

int encoder_add_template(struct encoder *encoder, enum layout_kind kind)
{
	const struct layout_template *template = &encoder->layout.templates[kind];
	uint16_t set = template->n_scope ? OPTIONS_TEMPLATE_SET : TEMPLATE_SET;
	GError *error = NULL;

	if (encoder->records || !may_follow(encoder, set) ||
	    !has_room(encoder, set, template->template_len))
		return 0;
	if (!append_template(fBufGetSession(encoder->fbuf), template->id, &error))
		return clear_refusal(&error);
	note_added(encoder, set, template->template_len);
	return 1;
}

int encoder_add(struct encoder *encoder, enum layout_kind kind, void *record,
		size_t len)
{
	const struct layout_template *template = &encoder->layout.templates[kind];
	fBuf_t *fbuf = encoder->fbuf;
	GError *error = NULL;

	if (!has_room(encoder, template->id, template->record_len))
		return 0;
	if (!fBufSetInternalTemplate(fbuf, template->internal_id, &error) ||
	    !fBufSetExportTemplate(fbuf, template->id, &error) ||
	    !append_record(fbuf, record, len, &error))
		return clear_refusal(&error);
	note_added(encoder, template->id, template->record_len);
	encoder->records++;
	return 1;
}

int encoder_add_flow(struct encoder *encoder, const struct netobs_flow *flow)
{
	struct record_flow record;
	enum layout_kind kind =
		record_from_flow(&record, flow, &encoder->layout.options);

	return encoder_add(encoder, kind, &record, sizeof(record));
}

int encoder_add_other(struct encoder *encoder, const struct netobs_record *record)
{
	uint8_t bytes[RECORD_OTHER_SIZE];
	enum layout_kind kind = record_from_other(bytes, record);

	return encoder_add(encoder, kind, bytes,
			   encoder->layout.templates[kind].record_len);
}

int encoder_take(struct encoder *encoder, struct encoder_message *ret_message)
{
	uint32_t sequence = htobe32(encoder->sequence);
	GError *error = NULL;

	if (!fBufEmit(encoder->fbuf, &error))
		return clear_refusal(&error);
	/* Ours, because what is sent a second time has the number it had. */
	memcpy(encoder->bytes + SEQUENCE_AT, &sequence, sizeof(sequence));
	*ret_message = (struct encoder_message){
		.bytes = encoder->bytes,
		.len = fbExporterGetMsgLen(
			(fbExporter_t *)fBufGetExporter(encoder->fbuf)),
		.sequence = encoder->sequence,
		.records = encoder->records,
	};
	encoder->sequence += encoder->records;
	encoder->used = encoder->set = 0;
	encoder->records = 0;
	return 0;
}
