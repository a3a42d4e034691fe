// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The picture of a service map replaces a file as a whole, or leaves it. */
#include "lib_test.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

struct place {
	char directory[64], path[96], link[96];
	struct services_view view;
};

static int make_place(void **state)
{
	struct place *place = __real_calloc(1, sizeof(*place));
	const struct netobs_flow flow = { .sz = sizeof(flow),
					  .dst_port = 53,
					  .proto = 17,
					  .packets = 1,
					  .bytes = 700 };
	FILE *file;

	assert_non_null(place);
	*state = place;
	strcpy(place->directory, "/tmp/netobs-svg-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	snprintf(place->path, sizeof(place->path), "%s/map.svg",
		 place->directory);
	snprintf(place->link, sizeof(place->link), "%s/link.svg",
		 place->directory);
	file = fopen(place->path, "w");
	assert_non_null(file);
	fputs(OLD, file);
	fclose(file);
	chmod(place->path, 0640);
	assert_int_equal(netobs_services_new(NULL, &place->view.services), 0);
	assert_int_equal(
		netobs_services_add(place->view.services, NULL, &flow.record), 0);
	assert_int_equal(netobs_services_rows(place->view.services, 0), 2);
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;
	char pattern[96];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*", place->directory);
	if (!glob(pattern, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			unlink(found.gl_pathv[i]);
		globfree(&found);
	}
	rmdir(place->directory);
	netobs_services_free(place->view.services);
	free(place);
	return 0;
}

static void read_place(const struct place *place, char *text, size_t size)
{
	FILE *file = fopen(place->path, "r");

	assert_non_null(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

/* The old file is there, and no other. */
static void assert_old(const struct place *place)
{
	char text[4096], pattern[96];
	glob_t found;

	read_place(place, text, sizeof(text));
	assert_string_equal(text, OLD);
	snprintf(pattern, sizeof(pattern), "%s/*", place->directory);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	globfree(&found);
}

static void assert_new(const struct place *place)
{
	char text[4096];
	struct stat status;

	read_place(place, text, sizeof(text));
	assert_non_null(strstr(text, "<svg"));
	assert_string_equal(text + strlen(text) - 7, "</svg>\n");
	assert_int_equal(stat(place->path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
}

#define CASE(name) TEST_OF(name, struct place *place, make_place, remove_place)

CASE(without_memory_the_old_file_stays)
{
	int r;

	has_no_memory = true;
	r = services_write_svg(place->path, &place->view);
	has_no_memory = false;
	assert_int_equal(r, -ENOMEM);
	assert_old(place);
}

CASE(on_a_full_disk_the_old_file_stays)
{
	struct rlimit before, limit;
	int r;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 20;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	r = services_write_svg(place->path, &place->view);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_true(r < 0);
	assert_old(place);
}

CASE(a_file_is_replaced_and_keeps_its_mode)
{
	assert_int_equal(services_write_svg(place->path, &place->view), 0);
	assert_new(place);
}

CASE(of_a_link_what_it_leads_to_is_replaced)
{
	struct stat status;

	assert_int_equal(symlink("map.svg", place->link), 0);
	assert_int_equal(services_write_svg(place->link, &place->view), 0);
	assert_int_equal(lstat(place->link, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_new(place);
}

CASE(a_pipe_is_written_in_place)
{
	char text[4096], path[96];
	struct stat status;
	int fd;
	ssize_t len;

	snprintf(path, sizeof(path), "%s/pipe", place->directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(services_write_svg(path, &place->view), 0);
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_true(len > 0);
	text[len] = '\0';
	assert_non_null(strstr(text, "</svg>"));
	assert_int_equal(lstat(path, &status), 0);
	assert_true(S_ISFIFO(status.st_mode));
}
