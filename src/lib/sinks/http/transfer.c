// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "http.h"

#include "base/clock_ms.h"
#include "base/util.h"

#include <errno.h>
#include <netobs/version.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	CONNECT_MS = 5000,
	ROUNDS = 8, /* of work for one call: each does what is possible at once */
	RETRY_AFTER_MAX_S = 300,
	EVENTS = 64, /* of sockets, at a time */
	/* libcurl reads 100 times as much of a socket at once, whatever the time is. */
	BUFFER_BYTES = 4096,
};

/* ---- Sockets and timers ----------------------------------------------------------- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *own)
{
	const struct transfer *transfer = arg;
	struct epoll_event event = {
		.events = (what & CURL_POLL_IN ? EPOLLIN : 0U) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0U),
		.data.fd = fd,
	};

	(void)easy;
	(void)own;
	if (what == CURL_POLL_REMOVE)
		epoll_ctl(transfer->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(transfer->epoll_fd, EPOLL_CTL_MOD, fd, &event))
		epoll_ctl(transfer->epoll_fd, EPOLL_CTL_ADD, fd, &event);
	return 0;
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
	struct transfer *transfer = arg;

	(void)multi;
	transfer->timer_ms = ms < 0 ? 0 : now_ms() + ms;
	return 0;
}

int transfer_open(struct transfer *transfer, struct sink_host *host)
{
	cleanup_fd int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	*transfer = (struct transfer){ .host = host };
	if (epoll_fd < 0)
		return -errno;
	transfer->multi = curl_multi_init();
	if (!transfer->multi)
		return -ENOMEM;
	transfer->epoll_fd = TAKE_FD(epoll_fd);
	curl_multi_setopt(transfer->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(transfer->multi, CURLMOPT_SOCKETDATA, transfer);
	curl_multi_setopt(transfer->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	curl_multi_setopt(transfer->multi, CURLMOPT_TIMERDATA, transfer);
	return host->ops->watch(host, transfer->epoll_fd, EPOLLIN);
}

void transfer_close(struct transfer *transfer)
{
	if (!transfer->multi)
		return;
	curl_multi_cleanup(TAKE_PTR(transfer->multi));
	transfer->host->ops->watch(transfer->host, transfer->epoll_fd, 0);
	close_fd(&transfer->epoll_fd);
}

int transfer_rest(const struct transfer *transfer)
{
	return until_ms(transfer->timer_ms);
}

/* ---- Work ------------------------------------------------------------------------- */

static void run_timer(struct transfer *transfer)
{
	int running;

	if (!transfer->timer_ms || now_ms() < transfer->timer_ms)
		return;
	transfer->timer_ms = 0;
	curl_multi_socket_action(transfer->multi, CURL_SOCKET_TIMEOUT, 0,
				 &running);
}

/* True: there was something to do, and there may be more. */
static bool run_sockets(struct transfer *transfer)
{
	struct epoll_event ready[EVENTS];
	int n = epoll_wait(transfer->epoll_fd, ready, EVENTS, 0), running;

	for (int i = 0; i < n && now_ms() < transfer->end_ms; i++) {
		uint32_t events = ready[i].events;

		curl_multi_socket_action(
			transfer->multi, ready[i].data.fd,
			(events & EPOLLIN ? CURL_CSELECT_IN : 0) |
				(events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
				(events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR :
								  0),
			&running);
	}
	return n > 0 && now_ms() < transfer->end_ms;
}

/* A delay that a server asks for is limited. */
static int64_t retry_after_ms(CURL *easy)
{
	curl_off_t seconds = 0;

	curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds <= 0)
		return 0;
	return 1000 * (int64_t)min_u64((uint64_t)seconds, RETRY_AFTER_MAX_S);
}

static void explain_failure(struct request *request, CURLcode code)
{
	curl_off_t sent = 0;

	curl_easy_getinfo(request->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	request->is_cut = sent;
	request->is_late = sent && code == CURLE_OPERATION_TIMEDOUT;
	request->cause = curl_easy_strerror(code);
	if (!*request->error)
		snprintf(request->error, sizeof(request->error), "%s",
			 request->cause);
}

/*
 * A server that refuses a request may close the connection before it has read all of it. A status
 * says all, however long the rest of the answer is, unless records have a status of their own.
 */
static void end_request(struct request *request, CURLcode code)
{
	long status = 0;

	curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
	if (request->is_long && !request->reader.read)
		code = CURLE_OK;
	else if (request->header_bytes > ANSWER_HEADERS_MAX)
		snprintf(request->error, sizeof(request->error),
			 "the answer has more than %d bytes of headers",
			 ANSWER_HEADERS_MAX);
	else if (request->is_long)
		snprintf(request->error, sizeof(request->error),
			 "the answer has more than %llu bytes",
			 (unsigned long long)request->answer_max);
	if (code && status < 400) {
		explain_failure(request, code);
	} else {
		request->status = status;
		request->retry_ms = retry_after_ms(request->easy);
	}
	request->phase = REQUEST_ENDED;
}

static void take_ended(struct transfer *transfer)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(transfer->multi, &left))) {
		CURLcode code = message->data.result;
		CURL *easy = message->easy_handle;
		struct request *request = NULL;

		curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&request);
		curl_multi_remove_handle(transfer->multi, easy);
		end_request(request, code);
	}
}

void transfer_run(struct transfer *transfer, int64_t end_ms)
{
	transfer->end_ms = end_ms;
	for (int i = 0; i < ROUNDS; i++) {
		run_timer(transfer);
		if (!run_sockets(transfer))
			break;
	}
	run_timer(transfer);
	take_ended(transfer);
}

/* ---- Requests --------------------------------------------------------------------- */

/* A line costs libcurl about a microsecond, and it reads many at once. */
static size_t take_header(char *bytes, size_t one, size_t n, void *arg)
{
	struct request *request = arg;

	(void)bytes;
	request->header_bytes += one * n;
	return request->header_bytes > ANSWER_HEADERS_MAX ? 0 : one * n;
}

/* libcurl calls it for each piece of what it reads at once, which may take long. */
static size_t take_answer(char *bytes, size_t one, size_t n, void *arg)
{
	struct request *request = arg;
	long status = 0;

	(void)one;
	request->is_paused = now_ms() >= request->transfer->end_ms;
	if (request->is_paused)
		return CURL_WRITEFUNC_PAUSE;
	request->answered += n;
	request->is_long = request->answered > request->answer_max;
	if (request->is_long)
		return 0;
	curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
	/* Items of another status may be those of a proxy, or of a part of the request. */
	if (request->reader.read && status >= 200 && status < 300)
		request->reader.read(request->reader.ctx, bytes, n);
	for (size_t i = 0; i < n && request->answer_len < REQUEST_ANSWER_MAX; i++)
		request->answer[request->answer_len++] =
			bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : ' ';
	return n;
}

static CURLcode set_ca(CURL *easy, const char *path)
{
	CURLcode code = curl_easy_setopt(easy, CURLOPT_CAINFO, path);

	code = code ?: curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	/* New connections see a file that has changed. */
	return code ?: curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
}

static CURLcode set_request_options(struct request *request,
				    const struct http_options *options)
{
	const struct {
		CURLoption name;
		const void *value;
	} pointers[] = {
		{ CURLOPT_URL, options->url },
		{ CURLOPT_PROTOCOLS_STR, "http,https" },
		/* A proxy is a matter of configuration, not of the environment. */
		{ CURLOPT_PROXY, options->proxy ?: "" },
		{ CURLOPT_NOPROXY, "" },
		{ CURLOPT_HTTPHEADER, options->headers },
		{ CURLOPT_USERAGENT, "netobs/" NETOBS_VERSION },
		{ CURLOPT_USERPWD, options->credentials },
		{ CURLOPT_SSLCERT, options->cert },
		{ CURLOPT_SSLKEY, options->key },
		{ CURLOPT_WRITEDATA, request },
		{ CURLOPT_HEADERDATA, request },
		{ CURLOPT_PRIVATE, request },
		{ CURLOPT_ERRORBUFFER, request->error },
	};
	const struct {
		CURLoption name;
		long value;
	} numbers[] = {
		{ CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
		{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
		{ CURLOPT_NOSIGNAL, 1 },
		{ CURLOPT_POST, 1 },
		{ CURLOPT_BUFFERSIZE, BUFFER_BYTES },
		/* A name that is still being looked up is not waited for. */
		{ CURLOPT_QUICK_EXIT, 1 },
		{ CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS },
		{ CURLOPT_TIMEOUT_MS, options->timeout_ms },
	};
	CURL *easy = request->easy;
	CURLcode code =
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);

	code = code ?: curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);

	for (size_t i = 0; i < ARRAY_SIZE(pointers) && !code; i++)
		code = curl_easy_setopt(easy, pointers[i].name,
					pointers[i].value);
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !code; i++)
		code = curl_easy_setopt(easy, numbers[i].name, numbers[i].value);
	return code || !options->ca ? code : set_ca(easy, options->ca);
}

int request_open(struct request *request, const struct http_options *options,
		 const struct answer_reader *reader, const struct log *log)
{
	CURLcode code;

	*request =
		(struct request){ .easy = curl_easy_init(), .reader = *reader };
	if (!request->easy)
		return -ENOMEM;
	code = set_request_options(request, options);
	if (!code)
		return 0;
	log_error(log, "http: libcurl: %s", curl_easy_strerror(code));
	return code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
}

void request_close(struct request *request, struct transfer *transfer)
{
	if (!request->easy)
		return;
	if (request->phase == REQUEST_OPEN)
		curl_multi_remove_handle(transfer->multi, request->easy);
	curl_easy_cleanup(request->easy);
	*request = (struct request){ 0 };
}

int request_start(struct request *request, struct transfer *transfer,
		  const void *bytes, size_t len, uint32_t records)
{
	request->transfer = transfer;
	request->answered = 0;
	request->header_bytes = 0;
	request->answer_max = ANSWER_MAX + (uint64_t)records * ANSWER_ITEM_MAX;
	request->status = 0;
	request->is_cut = request->is_late = request->is_long = false;
	request->is_paused = false;
	request->retry_ms = 0;
	request->cause = "";
	request->error[0] = '\0';
	memset(request->answer, 0, sizeof(request->answer));
	request->answer_len = 0;
	curl_easy_setopt(request->easy, CURLOPT_POSTFIELDS, bytes);
	curl_easy_setopt(request->easy, CURLOPT_POSTFIELDSIZE_LARGE,
			 (curl_off_t)len);
	if (curl_multi_add_handle(transfer->multi, request->easy))
		return -ENOMEM;
	request->phase = REQUEST_OPEN;
	return 0;
}

void request_resume(struct request *request, struct transfer *transfer,
		    int64_t end_ms)
{
	if (!request->is_paused)
		return;
	transfer->end_ms = end_ms;
	request->is_paused = false;
	curl_easy_pause(request->easy, CURLPAUSE_CONT);
}

enum outcome status_outcome(long status)
{
	if (status >= 200 && status < 300)
		return OUTCOME_ACCEPTED;
	if (status < 400 || status > 499)
		return OUTCOME_WAITING;
	switch (status) {
	case 401: /* Unauthorized */
	case 403: /* Forbidden */
	case 404: /* Not Found */
	case 405: /* Method Not Allowed */
	case 407: /* Proxy Authentication Required */
	case 408: /* Request Timeout */
	case 425: /* Too Early */
	case 429: /* Too Many Requests */
		return OUTCOME_WAITING;
	default:
		return OUTCOME_REFUSED;
	}
}
