// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The service map of files, of which some cannot be read, or have wrong lines. */
#include "lib_test.h"

#include "lib_stdout.h"
#include "cli/services/services_view.h"

#define FLOW                                                  \
	"{\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"10.0.0.2\"," \
	"\"SrcPort\":40000,\"DstPort\":53,\"Proto\":17,"      \
	"\"TimeFlowStartMs\":1000,\"TimeFlowEndMs\":2000,"    \
	"\"Bytes\":700,\"Packets\":"

struct file {
	char path[64];
};

static struct file make_file(const char *text)
{
	struct file file = { "/tmp/netobs-services-XXXXXX" };
	const int fd = mkstemp(file.path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return file;
}

/* @return the status; messages go to @ret_errors */
static int run(const char **paths, size_t n, char *ret_errors, size_t size)
{
	const struct map_options options = { .output = SERVICES_JSON,
					     .operands = { paths, n } };
	const int saved = dup(STDERR_FILENO);
	FILE *errors = tmpfile();
	int status;

	assert_true(saved >= 0);
	assert_non_null(errors);
	assert_true(dup2(fileno(errors), STDERR_FILENO) >= 0);
	status = services_of_files(&options);
	dup2(saved, STDERR_FILENO);
	close(saved);
	fflush(stdout);
	rewind(errors);
	ret_errors[fread(ret_errors, 1, size - 1, errors)] = '\0';
	fclose(errors);
	return status;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text);
}

TEST_WITH(a_file_that_cannot_be_read_leaves_the_others, stdout_make_pipe,
	  stdout_restore)
{
	const struct file good = make_file(FLOW "7}\n"),
			  other = make_file(FLOW "5}\n");
	const char *paths[] = { good.path, "/nonexistent/records", other.path };
	char errors[4096];
	const int status = run(paths, 3, errors, sizeof(errors));
	const char *written = stdout_written(*state);

	unlink(good.path);
	unlink(other.path);
	assert_int_equal(status, 1);
	assert_has(errors, "/nonexistent/records");
	assert_has(errors, "2 records of 2 hosts");
	assert_has(written, "\"type\":\"edge\"");
	assert_has(written, "\"Packets\":7,"); /* of each file a host */
	assert_has(written, "\"RepeatedPackets\":5");
}

TEST_WITH(a_wrong_number_is_named_with_its_place, stdout_make_pipe, stdout_restore)
{
	const struct file file = make_file(FLOW "7}\n" FLOW "\"7\"}\n");
	const char *paths[] = { file.path };
	char errors[4096], place[128];
	const int status = run(paths, 1, errors, sizeof(errors));
	const char *written = stdout_written(*state);

	unlink(file.path);
	assert_int_equal(status, 1);
	snprintf(place, sizeof(place), "%s:2: Packets is no whole number",
		 file.path);
	assert_has(errors, place);
	assert_has(errors, "1 lines are no records");
	assert_has(written, "\"Packets\":7,");
}
