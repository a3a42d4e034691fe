// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The picture of a service map replaces a file, or leaves it: test_file_replacement.c has the ways to do that. */
#include "lib_lines.h"
#include "lib_test.h"

#include <netobs/flow.h>

#include "cli/services/services_view.h"

#define OLD "the old one\n"

static bool has_no_memory;

void *__wrap_calloc(size_t n, size_t size);
void *__real_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return has_no_memory ? NULL : __real_calloc(n, size);
}

static void make_services(struct netobs_services **ret_services)
{
	const struct netobs_flow flow = { .sz = sizeof(flow),
					  .dst_port = 53,
					  .proto = 17,
					  .packets = 1,
					  .bytes = 700 };

	assert_int_equal(netobs_services_new(NULL, ret_services), 0);
	assert_int_equal(netobs_services_add(*ret_services, NULL, &flow.record),
			 0);
	assert_int_equal(netobs_services_rows(*ret_services, 0), 2);
}

LINES_TEST(without_memory_the_old_file_stays)
{
	struct services_view view = { .services = NULL };
	FILE *file = fopen(f->path, "w");
	char *text;
	int r;

	assert_non_null(file);
	fputs(OLD, file);
	fclose(file);
	make_services(&view.services);
	has_no_memory = true;
	r = services_write_svg(f->path, &view);
	has_no_memory = false;
	assert_int_equal(r, -ENOMEM);
	text = read_text(f->path);
	assert_string_equal(text, OLD);
	free(text);
	assert_int_equal(services_write_svg(f->path, &view), 0);
	text = read_text(f->path);
	assert_non_null(strstr(text, "<svg"));
	assert_string_equal(text + strlen(text) - 7, "</svg>\n");
	free(text);
	netobs_services_free(view.services);
	/* No file was left beside it. */
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(rmdir(f->dir), 0);
}
