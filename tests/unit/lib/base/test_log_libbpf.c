// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What libbpf prints is for the thread that called it, or for the host program. */
#include "lib_test.h"

#include "base/log.h"

#include <bpf/libbpf.h>
#include <pthread.h>

/* All that was printed. */
struct page {
	char text[4096];
	size_t len;
};

static struct page hosts;

static void add_line(struct page *page, const char *line)
{
	page->len += (size_t)snprintf(page->text + page->len,
				      sizeof(page->text) - page->len, "%s\n",
				      line);
	assert_true(page->len < sizeof(page->text));
}

static void write_page(int level, const char *message, void *user)
{
	(void)level;
	add_line(user, message);
}

static int print_hosts(enum libbpf_print_level level, const char *format,
		       va_list args)
{
	char line[512];

	(void)level;
	vsnprintf(line, sizeof(line), format, args);
	add_line(&hosts, line);
	return 0;
}

/* libbpf complains that there is no such file. */
static void complain_of(const char *path)
{
	assert_null(bpf_object__open_file(path, NULL));
}

static void assert_only(const struct page *page, const char *word)
{
	static const char *const words[] = { "/nowhere/one", "/nowhere/other",
					     "/nowhere/host" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_int_equal(strstr(page->text, words[i]) != NULL,
				 word && !strcmp(words[i], word));
}

static void *use_other(void *user)
{
	const struct log log = { .write = write_page, .user = user };

	log_borrow_libbpf(&log);
	complain_of("/nowhere/other");
	log_return_libbpf();
	complain_of("/nowhere/host");
	return NULL;
}

TEST(threads_neither_wait_nor_share_lines)
{
	struct page one = { .len = 0 }, other = { .len = 0 };
	const struct log log = { .write = write_page, .user = &one };
	const libbpf_print_fn_t before = libbpf_set_print(print_hosts);
	pthread_t thread;

	log_borrow_libbpf(&log);
	assert_int_equal(pthread_create(&thread, NULL, use_other, &other), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	complain_of("/nowhere/one");
	log_return_libbpf();
	assert_only(&one, "/nowhere/one");
	assert_only(&other, "/nowhere/other");
	assert_only(&hosts, "/nowhere/host");
	assert_ptr_equal(libbpf_set_print(before), print_hosts);
}

TEST(a_callback_that_the_host_sets_meanwhile_stays)
{
	const libbpf_print_fn_t before = libbpf_set_print(NULL);
	const struct log silent = { 0 };

	log_borrow_libbpf(&silent);
	libbpf_set_print(print_hosts);
	log_return_libbpf();
	assert_ptr_equal(libbpf_set_print(before), print_hosts);
}
