/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A web server for texts, in a shared object, so that netobsctl needs libmicrohttpd only
 * for that. It works on its caller's thread and never waits: neither many clients nor slow
 * ones keep the caller from other work, or others from being served.
 */
#ifndef NETOBS_SERVICE_HTTPD_HTTPD_MODULE_H
#define NETOBS_SERVICE_HTTPD_HTTPD_MODULE_H

#include "base/shared_object.h"

#include <stddef.h>

#define HTTPD_MODULE_SYMBOL "netobs_httpd"
extern const struct httpd_module netobs_httpd;

struct httpd;

struct httpd_answer {
	const char *type; /* media type of the body */
	const char *body; /* copied */
	size_t len;
};

/**
 * Answer a GET or HEAD request.
 *
 * @param path  without a query
 * @return the status code, such as 200
 */
typedef unsigned int httpd_answer_fn(void *user, const char *path,
				     struct httpd_answer *ret_answer);

struct httpd_module {
	struct loaded loaded;

	/**
	 * Serve the clients that connect to @listen_fd.
	 *
	 * @param listen_fd  the server's on success: close() closes it
	 * @return 0 or -errno
	 */
	int (*open)(int listen_fd, httpd_answer_fn *answer, void *user,
		    struct httpd **ret_httpd);

	/** @return what polls readable when run() has work, the server's */
	int (*fd)(const struct httpd *httpd);

	/**
	 * Serve the clients that are ready.
	 *
	 * @return in how many milliseconds to call again at the latest; -1: no need
	 */
	int (*run)(struct httpd *httpd);

	void (*close)(struct httpd *httpd); /* NULL is fine */
};

#endif
