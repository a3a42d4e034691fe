// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_lines.h"

#include "lib_spool.h"
#include "lib_test.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

static void keep_lines(int level, const char *message, void *user)
{
	struct lines_fixture *f = user;
	size_t used = strlen(f->logged);

	(void)level;
	snprintf(f->logged + used, sizeof(f->logged) - used, "%s\n", message);
}

int lines_set_up(void **state)
{
	struct lines_fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%s/netobs-sink.XXXXXX",
		 getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/out", f->dir);
	*state = f;
	return 0;
}

int lines_tear_down(void **state)
{
	struct lines_fixture *f = *state;
	char command[PATH_MAX];

	netobs_sink_close(f->sink);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

int try_open_sink(struct lines_fixture *f, const char *spec)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .on_log = keep_lines,
			  .user = f);

	f->logged[0] = '\0';
	return netobs_sink_open(spec, &opts, &f->sink);
}

void assert_refused(struct lines_fixture *f, const struct refused_spec *cases,
		    size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(try_open_sink(f, cases[i].spec), cases[i].err);
		assert_null(f->sink);
		if (!strstr(f->logged, cases[i].words))
			fail_msg("%s: %s", cases[i].spec, f->logged);
	}
}

void open_sink(struct lines_fixture *f, const char *format)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(f->spec, sizeof(f->spec), format, f->path);
#pragma GCC diagnostic pop
	assert_int_equal(try_open_sink(f, f->spec), 0);
}

void close_sink(struct lines_fixture *f)
{
	netobs_sink_close(TAKE_PTR(f->sink));
}

/* ---- Records ------------------------------------------------------------------- */

static const struct netobs_point point = { .ifindex = 7, .name = "eth0" };

struct netobs_flow make_numbered_flow(uint64_t n)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS,
		.start_ns = (int64_t)n * NSEC_PER_MSEC,
		.packets = n % 10 + 1,
		.bytes = n,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst = { [10] = 0xff,
			 0xff,
			 10,
			 (uint8_t)(n >> 16),
			 (uint8_t)(n >> 8),
			 (uint8_t)n },
		.ethertype = 0x0800,
		.proto = 17,
		.n_points = 1,
		.point_size = sizeof(struct netobs_point),
		.points = &point,
	};
}

void write_flows(struct lines_fixture *f, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		struct netobs_flow flow = make_numbered_flow(n);

		assert_int_equal(netobs_sink_write(f->sink, &flow.record), 0);
	}
}

void flush_all(struct lines_fixture *f)
{
	struct pollfd fd = { .fd = netobs_sink_fd(f->sink), .events = POLLIN };

	assert_int_equal(netobs_sink_flush(f->sink), 0);
	for (int i = 0; i < 100000 && poll(&fd, 1, 0) > 0; i++)
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
}

struct netobs_sink_stats sink_stats_of(const struct lines_fixture *f)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_sink_stats_get(f->sink, &stats), 0);
	return stats;
}

static void add(struct netobs_sink_count *sum,
		const struct netobs_sink_count *part)
{
	sum->records += part->records;
	sum->packets += part->packets;
	sum->bytes += part->bytes;
}

void assert_sink_identity(const struct lines_fixture *f)
{
	struct netobs_sink_stats stats = sink_stats_of(f);
	struct netobs_sink_count in = stats.taken, out = stats.delivered;

	add(&in, &stats.recovered);
	add(&out, &stats.pending);
	for (int i = 0; i < NETOBS_SINK_DROPS; i++)
		add(&out, &stats.dropped[i]);
	assert_memory_equal(&in, &out, sizeof(in));
}

/* ---- What comes out ------------------------------------------------------------ */

/* Behind the record are the members of sink/host_fields.h. */
static size_t skip_host(const char *text, size_t len)
{
	static const char host[] = ",\"AgentIP\":", name[] = ",\"HostName\":";

	len--; /* the bracket */
	if (!strncmp(text + len, host, strlen(host)) ||
	    !strncmp(text + len, name, strlen(name))) {
		/* The sanitizer's strcspn() looks at all of the text. */
		while (text[len] && text[len] != '\n')
			len++;
		len--;
	}
	assert_int_equal(text[len], '}');
	return len + 1;
}

uint64_t check_lines(const char *text, uint64_t n)
{
	char expected[NETOBS_FLOW_JSON_MAX];

	while (*text) {
		struct netobs_flow flow = make_numbered_flow(n);
		int len = netobs_flow_json(&flow, expected, sizeof(expected));

		assert_true(len > 0);
		if (!strncmp(text, expected, (size_t)len - 1))
			len = (int)skip_host(text, (size_t)len);
		else
			len = 0;
		if (!len || text[len] != '\n')
			fail_msg("record %llu: %.500s", (unsigned long long)n,
				 text);
		text += len + 1;
		n++;
	}
	return n;
}

char *read_text(const char *path)
{
	size_t len;
	char *text = read_file(path, &len);

	text[len] = '\0';
	return text;
}

int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)),
			 0);
	assert_int_equal(listen(fd, 5), 0);
	return fd;
}

void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = min_u64(bytes, limit.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

void assert_lines(const char *path, uint64_t from, uint64_t to)
{
	char *text = read_text(path);

	assert_int_equal(check_lines(text, from), to);
	free(text);
}
