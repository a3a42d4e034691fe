// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "http.h"

#include "base/io.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SECRET_MAX = 16 << 10 };

/* ---- The URL -------------------------------------------------------------------- */

static void refuse_url(struct spec *spec, CURLUcode code)
{
	spec_refuse(spec, "'%s:%s' is not a URL: %s", spec->kind,
		    spec->target ?: "", curl_url_strerror(code));
}

/* A parameter of the URL; its name and value may be any text. */
static void add_param(struct spec *spec, CURLU *url,
		      const struct spec_option *option, const char *name)
{
	char *key = curl_easy_escape(NULL, name, 0);
	char *value = curl_easy_escape(NULL, option->value, 0);
	cleanup_free char *pair = NULL;

	if (key && value && asprintf(&pair, "%s=%s", key, value) < 0)
		pair = NULL;
	if (!pair || curl_url_set(url, CURLUPART_QUERY, pair, CURLU_APPENDQUERY))
		spec_refuse(spec, "option %s: it cannot be part of a URL",
			    option->name);
	curl_free(key);
	curl_free(value);
}

static void add_params(struct spec *spec, CURLU *url)
{
	static const char prefix[] = "param.";
	const struct spec_option *option;
	size_t position = 0;

	while ((option = spec_next(spec, prefix, &position)))
		add_param(spec, url, option, option->name + strlen(prefix));
}

static bool has_part(CURLU *url, CURLUPart part)
{
	char *text = NULL;
	bool has = !curl_url_get(url, part, &text, 0);

	curl_free(text);
	return has;
}

static bool has_path(CURLU *url)
{
	char *path = NULL;
	bool has = !curl_url_get(url, CURLUPART_PATH, &path, 0) &&
		   strcmp(path, "/") != 0;

	curl_free(path);
	return has;
}

/* Complete the URL of a server of OTLP, of which a host is enough. */
static CURLUcode complete_otlp(CURLU *url, const char *path)
{
	CURLUcode code = CURLUE_OK;

	if (!has_part(url, CURLUPART_PORT))
		code = curl_url_set(url, CURLUPART_PORT, "4318", 0);
	if (!code && !has_path(url))
		code = curl_url_set(url, CURLUPART_PATH, path, 0);
	return code;
}

static void read_parts(struct http_options *options, struct spec *spec,
		       CURLU *url, const char *path)
{
	CURLUcode code = path ? complete_otlp(url, path) : CURLUE_OK;
	char *text = NULL;

	if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
		spec_refuse(
			spec,
			"the URL has a user: options user and password_file are for that");
	add_params(spec, url);
	code = code ?: curl_url_get(url, CURLUPART_URL, &text, 0);
	if (code)
		refuse_url(spec, code);
	else
		options->url = strdup(text);
	curl_free(text);
}

/* https of otlp+https */
static const char *scheme_of(const struct spec *spec)
{
	const char *plus = strchr(spec->kind, '+');

	return plus ? plus + 1 : spec->kind;
}

/* @path: of a server of OTLP; NULL: it is another one. */
static int read_url(struct http_options *options, struct spec *spec,
		    const char *path)
{
	const char *target = spec->target ?: "";
	CURLU *url = curl_url();
	CURLUcode code;
	int len;

	if (!url)
		return -ENOMEM;
	len = snprintf(options->name, sizeof(options->name), "%s:%s",
		       scheme_of(spec), target);
	if (len < 0 || (size_t)len >= sizeof(options->name))
		spec_refuse(spec, "the URL is longer than %zu bytes",
			    sizeof(options->name) - 1);
	code = strncmp(target, "//", 2) ?
		       CURLUE_NO_HOST :
		       curl_url_set(url, CURLUPART_URL, options->name, 0);
	if (code)
		refuse_url(spec, code);
	else
		read_parts(options, spec, url, path);
	curl_url_cleanup(url);
	return options->url || spec->is_wrong ? 0 : -ENOMEM;
}

/* ---- Headers -------------------------------------------------------------------- */

/* RFC 9110, 5.6.2: the characters of a token; a value has no control characters. */
static bool is_header(const char *name, size_t len, const char *value)
{
	static const char token[] =
		"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (; *value; value++)
		if ((unsigned char)*value < ' ' && *value != '\t')
			return false;
	return len && strspn(name, token) >= len;
}

static void add_header(struct http_options *options, const char *line)
{
	struct curl_slist *more = curl_slist_append(options->headers, line);

	options->headers = more ?: options->headers;
}

static bool has_header(const struct http_options *options, const char *name)
{
	size_t len = strlen(name);

	for (struct curl_slist *at = options->headers; at; at = at->next)
		if (!strncasecmp(at->data, name, len) && at->data[len] == ':')
			return true;
	return false;
}

static void read_header_options(struct http_options *options, struct spec *spec)
{
	static const char prefix[] = "header.";
	const struct spec_option *option;
	size_t position = 0;

	while ((option = spec_next(spec, prefix, &position))) {
		const char *name = option->name + strlen(prefix);
		cleanup_free char *line = NULL;

		if (!is_header(name, strlen(name), option->value))
			spec_refuse(spec, "option %s: that is not a header",
				    option->name);
		else if (asprintf(&line, "%s: %s", name, option->value) > 0)
			add_header(options, line);
		else
			line = NULL;
	}
}

/* Lines "Name: value". */
static void read_header_file(struct http_options *options, struct spec *spec)
{
	const char *path = spec_string(spec, "header_file", NULL);
	FILE *file = path ? fopen(path, "re") : NULL;
	cleanup_free char *line = NULL;
	size_t size = 0;
	unsigned int n = 0;

	if (path && !file)
		spec_refuse(spec, "option header_file: %s: %s", path,
			    strerror(errno));
	while (file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		n++;
		if (!*line)
			continue;
		if (!strchr(line, ':') ||
		    !is_header(line, strcspn(line, ":"), line))
			spec_refuse(spec,
				    "option header_file: %s:%u is not 'Name: value'",
				    path, n);
		else
			add_header(options, line);
	}
	if (file)
		fclose(file);
}

static bool read_secret(struct spec *spec, const char *name,
			char text[SECRET_MAX])
{
	const char *path = spec_string(spec, name, NULL);
	int err = path ? io_read_password(path, text, SECRET_MAX) : -ENOENT;

	if (path && err)
		spec_refuse(spec, "option %s: %s: %s", name, path,
			    strerror(-err));
	return !err;
}

static void read_authentication(struct http_options *options, struct spec *spec)
{
	const char *user = spec_string(spec, "user", NULL);
	char secret[SECRET_MAX], header[SECRET_MAX + 32];

	if (read_secret(spec, "password_file", secret) &&
	    (!user || asprintf(&options->credentials, "%s:%s", user, secret) < 0))
		options->credentials = NULL;
	if (!user != !options->credentials)
		spec_refuse(spec,
			    "options user and password_file need each other");
	if (read_secret(spec, "token_file", secret)) {
		if (user)
			spec_refuse(
				spec,
				"options user and token_file exclude each other");
		snprintf(header, sizeof(header), "Authorization: Bearer %s",
			 secret);
		add_header(options, header);
		explicit_bzero(header, sizeof(header));
	}
	explicit_bzero(secret, sizeof(secret));
}

static void add_content_headers(struct http_options *options)
{
	char line[128];

	if (!has_header(options, "Content-Type")) {
		snprintf(line, sizeof(line), "Content-Type: %s",
			 options->format.encoding->content_type);
		add_header(options, line);
	}
	if (options->packer.name) {
		snprintf(line, sizeof(line), "Content-Encoding: %s",
			 options->packer.name);
		add_header(options, line);
	}
	/* Not to be asked before a body is sent: few servers answer that. */
	add_header(options, "Expect:");
}

/* ---- The rest ------------------------------------------------------------------- */

static void read_http_tls(struct http_options *options, struct spec *spec)
{
	const char **const files[] = { &options->ca, &options->cert,
				       &options->key };
	static const char *const names[] = { "ca", "cert", "key_file" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		*files[i] = spec_string(spec, names[i], NULL);
		if (!*files[i])
			continue;
		if (strcmp(scheme_of(spec), "https"))
			spec_refuse(spec, "option %s: it needs https", names[i]);
		else if (access(*files[i], R_OK))
			spec_refuse(spec, "option %s: %s: %s", names[i],
				    *files[i], strerror(errno));
	}
	if (!options->cert != !options->key)
		spec_refuse(spec, "options cert and key_file need each other");
}

/* A call packs a whole batch, which must not take it long. */
static void read_batches(struct http_options *options, struct spec *spec)
{
	packer_parse(spec, &options->packer);
	options->batch_bytes = spec_size(spec, "batch_bytes", HTTP_BATCH_MIN,
					 16 << 20, 512 << 10);
	if (options->packer.name && options->batch_bytes > HTTP_PACKED_MAX)
		spec_refuse(spec, "option batch_bytes: with compress at most %dM",
			    HTTP_PACKED_MAX >> 20);
	options->batch_records = (uint32_t)spec_number(spec, "batch_records", 1,
						       100 * 1000, 10 * 1000);
	options->batch_delay_ms = (uint32_t)spec_duration_ms(spec, "batch_delay",
							     0, 60 * 1000, 1000);
	options->requests =
		(uint32_t)spec_number(spec, "requests", 1, HTTP_REQUESTS_MAX, 2);
	options->timeout_ms = (uint32_t)spec_duration_ms(
		spec, "timeout", 100, 10 * 60 * 1000, 30 * 1000);
}

int http_options_read(struct http_options *options, struct spec *spec,
		      uint32_t types)
{
	int err;

	*options = (struct http_options){ 0 };
	err = format_read(&options->format, spec, types) ?:
							   read_url(options, spec,
								    format_path(&options->format, types));
	if (err)
		return err;
	read_batches(options, spec);
	read_header_options(options, spec);
	read_header_file(options, spec);
	read_authentication(options, spec);
	add_content_headers(options);
	read_http_tls(options, spec);
	options->proxy = spec_string(spec, "proxy", NULL);
	return 0;
}

void http_options_free(struct http_options *options)
{
	format_free(&options->format);
	curl_slist_free_all(options->headers);
	if (options->credentials)
		explicit_bzero(options->credentials,
			       strlen(options->credentials));
	free(options->credentials);
	free(options->url);
	*options = (struct http_options){ 0 };
}
