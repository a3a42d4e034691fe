/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "file_module.h"

#include "base/json.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fixbuf/public.h>
#include <inttypes.h>
#include <netobs/flow.h>
#include <netobs/version.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	JSON_MAX = 1 << 20, /* a message has 64 KiB */
	RECORD_MAX = 256 << 10,
	TEXT_MAX = 64 << 10,
	NTP_EPOCH_S = 2208988800U, /* 1900 to 1970 */
};

struct ipfix_file {
	fbInfoModel_t *model;
	fbSession_t *session;
	fBuf_t *buf;
	char *json, *text;
	uint8_t *record;
	uint16_t none; /* template that records are copied to of which nothing is read */
	bool is_closing;
	void (*on_warning)(const char *message, void *user);
	void *user;
};

/* libfixbuf looks at errors itself: each call has to have one. */

/* ---- Templates ------------------------------------------------------------------------ */

/* What a record is copied to: as the file has it, but for lists and short integers. */
struct copy {
	fbTemplate_t *template;
	uint16_t id; /* 0: nothing is read of it */
};

static bool is_list(const fbInfoElement_t *element)
{
	return element->type == FB_BASIC_LIST ||
	       element->type == FB_SUB_TMPL_LIST ||
	       element->type == FB_SUB_TMPL_MULTI_LIST;
}

/* @return the bytes of integers and of floats; 0: it is none */
static uint16_t width_of(uint8_t type)
{
	switch (type) {
	case FB_UINT_8:
	case FB_INT_8:
	case FB_BOOL:
		return 1;
	case FB_UINT_16:
	case FB_INT_16:
		return 2;
	case FB_UINT_32:
	case FB_INT_32:
	case FB_FLOAT_32:
	case FB_DT_SEC:
	case FB_IP4_ADDR:
		return 4;
	case FB_UINT_64:
	case FB_INT_64:
	case FB_FLOAT_64:
	case FB_DT_MILSEC:
	case FB_DT_MICROSEC:
	case FB_DT_NANOSEC:
		return 8;
	default:
		return 0;
	}
}

/* Templates are repeated in files that were sent over UDP. */
static void free_copy(void *object, void *user)
{
	const struct ipfix_file *file = user;
	struct copy *copy = object;
	GError *error = NULL;

	if (copy && copy->id && !file->is_closing)
		fbSessionRemoveTemplate(file->session, TRUE, copy->id, &error);
	g_clear_error(&error);
	free(copy);
}

/* Called for each template in the file. */
static void copy_template(fbSession_t *session, uint16_t id,
			  fbTemplate_t *template, void *user,
			  void **ret_context, fbTemplateCtxFree_fn *ret_free)
{
	struct ipfix_file *file = user;
	const uint32_t n = fbTemplateCountElements(template);
	struct copy *copy = calloc(1, sizeof(*copy));
	GError *error = NULL;

	(void)id;
	*ret_context = copy;
	*ret_free = free_copy;
	if (!copy || fbTemplateGetOptionsScope(template))
		return;
	copy->template = fbTemplateAlloc(file->model);
	for (uint32_t i = 0; i < n; i++) {
		fbInfoElement_t element = *fbTemplateGetIndexedIE(template, i);
		const uint16_t width = width_of(element.type);

		if (is_list(&element))
			continue;
		if (width > element.len)
			element.len = width;
		fbTemplateAppend(copy->template, &element, &error);
		g_clear_error(&error);
	}
	if (!fbTemplateCountElements(copy->template)) {
		fbTemplateFreeUnused(copy->template);
		return;
	}
	copy->id = fbSessionAddTemplate(session, TRUE, FB_TID_AUTO,
					copy->template, &error);
	g_clear_error(&error);
}

static void add_empty_template(struct ipfix_file *file)
{
	fbTemplate_t *template = fbTemplateAlloc(file->model);
	fbInfoElementSpec_t any[] = { { NULL, 8, 0 }, FB_IESPEC_NULL };
	GError *error = NULL;
	char name[] = "flowId";

	any[0].name = name;
	fbTemplateAppendSpecArray(template, any, UINT32_MAX, &error);
	g_clear_error(&error);
	file->none = fbSessionAddTemplate(file->session, TRUE, FB_TID_AUTO,
					  template, &error);
	g_clear_error(&error);
}

/* ---- Values --------------------------------------------------------------------------- */

static uint64_t read_integer(const uint8_t *bytes, size_t len)
{
	uint64_t value64;
	uint32_t value32;
	uint16_t value16;

	switch (len) {
	case 8:
		memcpy(&value64, bytes, sizeof(value64));
		return value64;
	case 4:
		memcpy(&value32, bytes, sizeof(value32));
		return value32;
	case 2:
		memcpy(&value16, bytes, sizeof(value16));
		return value16;
	default:
		return len ? *bytes : 0;
	}
}

static int64_t read_signed(const uint8_t *bytes, size_t len)
{
	const uint64_t value = read_integer(bytes, len);

	return len == 8 ? (int64_t)value :
	       len == 4 ? (int32_t)value :
	       len == 2 ? (int16_t)value :
			  (int8_t)value;
}

/*
 * RFC 7011, 6.1.9: of seconds since 1900 and their fraction. An exporter that does not know the time may
 * have 0. @return parts of @per_s since 1970, which are negative before it
 */
static int64_t read_ntp(uint64_t value, uint64_t per_s)
{
	const int64_t seconds = (int64_t)(value >> 32) - NTP_EPOCH_S;

	return seconds * (int64_t)per_s +
	       (int64_t)((value & UINT32_MAX) * per_s >> 32);
}

static void put_address(struct json *json, int family, const void *bytes)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(family, bytes, text, sizeof(text));
	json_string(json, text);
}

static void put_ipv4(struct json *json, const uint8_t *bytes)
{
	const uint32_t address = htonl((uint32_t)read_integer(bytes, 4));

	put_address(json, AF_INET, &address);
}

static void put_mac(struct json *json, const uint8_t mac[6])
{
	char text[TEXT_MAC_MAX + TEXT_SPARE + 1];

	*text_mac(text, mac) = '\0';
	json_string(json, text);
}

/* A NUL ends it, where it is shorter than its field. */
static void put_text(struct ipfix_file *file, struct json *json,
		     const uint8_t *bytes, size_t len)
{
	snprintf(file->text, TEXT_MAX, "%.*s", (int)min_u64(len, TEXT_MAX - 1),
		 (const char *)bytes);
	json_string(json, file->text);
}

static void put_bytes(struct ipfix_file *file, struct json *json,
		      const uint8_t *bytes, size_t len)
{
	char *to = file->text;

	for (size_t i = 0; i < len && i < TEXT_MAX / 2 - 1; i++)
		to += sprintf(to, "%02x", bytes[i]);
	*to = '\0';
	json_string(json, file->text);
}

static void put_float(struct json *json, const uint8_t *bytes, size_t len)
{
	double value = 0;
	float narrow;
	char text[40];

	if (len == sizeof(value)) {
		memcpy(&value, bytes, sizeof(value));
	} else {
		memcpy(&narrow, bytes, sizeof(narrow));
		value = narrow;
	}
	snprintf(text, sizeof(text), "%.17g", value);
	/* JSON has no infinity. */
	if (text[strspn(text, "-")] >= '0' && text[strspn(text, "-")] <= '9')
		json_members(json, text, strlen(text));
	else
		json_string(json, text);
}

static void put_number(struct json *json, uint8_t type, const uint8_t *bytes,
		       size_t len)
{
	const uint64_t value = read_integer(bytes, len);

	switch (type) {
	case FB_INT_8:
	case FB_INT_16:
	case FB_INT_32:
	case FB_INT_64:
		json_i64(json, read_signed(bytes, len));
		break;
	case FB_FLOAT_32:
	case FB_FLOAT_64:
		put_float(json, bytes, len);
		break;
	case FB_DT_MICROSEC:
		json_i64(json, read_ntp(value, 1000000));
		break;
	case FB_DT_NANOSEC:
		json_i64(json, read_ntp(value, NSEC_PER_SEC));
		break;
	case FB_IP4_ADDR:
		put_ipv4(json, bytes);
		break;
	default:
		json_u64(json, value);
	}
}

static void put_value(struct ipfix_file *file, struct json *json, uint8_t type,
		      const uint8_t *bytes, size_t len)
{
	const uint16_t width = width_of(type);

	if (width && len == width)
		put_number(json, type, bytes, len);
	else if (type == FB_IP6_ADDR && len == 16)
		put_address(json, AF_INET6, bytes);
	else if (type == FB_MAC_ADDR && len == 6)
		put_mac(json, bytes);
	else if (type == FB_STRING)
		put_text(file, json, bytes, len);
	else
		put_bytes(file, json, bytes, len);
}

/* ---- Records -------------------------------------------------------------------------- */

/* "sourceIPv4Address"; of one without a name "e64500id12"; the second one is ".._2". */
static void put_key(struct json *json, const fbInfoElement_t *element)
{
	const char *name = element->ref.canon->ref.name;
	char key[128], again[16] = "";

	if (element->midx)
		snprintf(again, sizeof(again), "_%" PRIu32, element->midx + 1);
	if (!name || !strcmp(name, "_alienInformationElement"))
		snprintf(key, sizeof(key), "e%" PRIu32 "id%u%s", element->ent,
			 element->num, again);
	else
		snprintf(key, sizeof(key), "%s%s", name, again);
	/* Names of elements may come from the file. */
	json_string(json, key);
	json_put(json, ":", 1);
	json->comma = false;
}

static void put_record(struct ipfix_file *file, const struct copy *copy,
		       struct json *json)
{
	const uint32_t n = fbTemplateCountElements(copy->template);
	const uint8_t *bytes = file->record;

	for (uint32_t i = 0; i < n; i++) {
		const fbInfoElement_t *element =
			fbTemplateGetIndexedIE(copy->template, i);
		const uint8_t *value = bytes;
		size_t len = element->len;
		fbVarfield_t field;

		bytes += element->len == FB_IE_VARLEN ? sizeof(field) : len;
		if (element->len == FB_IE_VARLEN) {
			memcpy(&field, value, sizeof(field));
			value = field.buf;
			len = field.len;
		}
		if (element->ent == 0 && element->num == 210) /* padding */
			continue;
		put_key(json, element);
		put_value(file, json, element->type, value, len);
	}
}

static int complain(GError **error, char *why, size_t why_size)
{
	const bool is_end =
		g_error_matches(*error, FB_ERROR_DOMAIN, FB_ERROR_EOF);

	if (!is_end)
		snprintf(why, why_size, "%s", *error ? (*error)->message : "?");
	g_clear_error(error);
	return is_end ? 0 : -EBADMSG;
}

static int write_record(struct ipfix_file *file, const struct copy *copy,
			char *why, size_t why_size)
{
	struct json json;

	json_begin(&json, file->json, JSON_MAX);
	json_open(&json, '{');
	put_record(file, copy, &json);
	json_close(&json, '}');
	if (json_end(&json) >= 0)
		return 1;
	snprintf(why, why_size, "a record is too long");
	return -EBADMSG;
}

static int next_record(struct ipfix_file *file, const char **ret_json,
		       char *why, size_t why_size)
{
	*ret_json = file->json;
	for (;;) {
		size_t size = RECORD_MAX;
		GError *error = NULL;
		fbTemplate_t *template =
			fBufNextCollectionTemplate(file->buf, NULL, &error);
		const struct copy *copy =
			template ? fbTemplateGetContext(template) : NULL;
		const bool is_read = copy && copy->id;

		if (!template ||
		    !fBufSetInternalTemplate(
			    file->buf, is_read ? copy->id : file->none, &error) ||
		    !fBufNext(file->buf, file->record, &size, &error))
			return complain(&error, why, why_size);
		if (is_read)
			return write_record(file, copy, why, why_size);
	}
}

/* Of libfixbuf, by GLib. */
static void pass_warning(const gchar *domain, GLogLevelFlags level,
			 const gchar *message, gpointer object)
{
	const struct ipfix_file *file = object;

	(void)domain;
	(void)level;
	file->on_warning(message, file->user);
}

static void close_file(struct ipfix_file *file)
{
	if (!file)
		return;
	file->is_closing = true;
	g_log_set_default_handler(g_log_default_handler, NULL);
	if (file->buf)
		fBufFree(file->buf); /* and the session */
	if (file->model)
		fbInfoModelFree(file->model);
	free(file->json);
	free(file->text);
	free(file->record);
	free(file);
}

static int open_file(FILE *stream,
		     void (*on_warning)(const char *message, void *user),
		     void *user, struct ipfix_file **ret_file)
{
	struct ipfix_file *file = calloc(1, sizeof(*file));
	GError *error = NULL;

	if (!file)
		return -ENOMEM;
	file->json = malloc(JSON_MAX);
	file->text = malloc(TEXT_MAX);
	file->record = malloc(RECORD_MAX);
	if (!file->json || !file->text || !file->record) {
		close_file(file);
		return -ENOMEM;
	}
	file->on_warning = on_warning;
	file->user = user;
	g_log_set_default_handler(pass_warning, file);
	file->model = fbInfoModelAlloc();
	file->session = fbSessionAlloc(file->model);
	add_empty_template(file);
	fbSessionAddNewTemplateCallback(file->session, copy_template, file);
	file->buf = fBufAllocForCollection(file->session,
					   fbCollectorAllocFP(NULL, stream));
	/* Elements that the file describes (RFC 5610) have their names. */
	fBufSetAutomaticInsert(file->buf, &error);
	g_clear_error(&error);
	*ret_file = file;
	return 0;
}

__attribute__((visibility("default")))
const struct ipfix_file_module netobs_ipfix_file = {
	.loaded = { NETOBS_VERSION },
	.open = open_file,
	.next = next_record,
	.close = close_file,
};
