// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Requests that cannot be started, for lack of memory. */
#include "lib_sink_host.h"

#include "base/clock_ms.h"

#include <curl/curl.h>
#include <dlfcn.h>

enum { CALL_MS = 20 };

static bool is_out_of_memory;
static unsigned int starts;

/* In place of libcurl's. */
CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	CURLMcode (*real)(CURLM * multi, CURL * easy);
	void *found = dlsym(RTLD_NEXT, "curl_multi_add_handle");

	memcpy(&real, &found, sizeof(real));
	starts++;
	if (!is_out_of_memory)
		return real(multi, easy);
	usleep(1000 * CALL_MS); /* the time of the call is over */
	return CURLM_OUT_OF_MEMORY;
}

TEST(a_failed_start_is_repeated_later)
{
	struct test_host host;
	void *module;

	test_host_open(&host);
	host.make = test_flow;
	host.n_records = 10;
	module = test_host_module(&host, &netobs_sink_module,
				  "http://127.0.0.1:9/?batch_delay=0&requests=4");
	is_out_of_memory = true;
	assert_int_equal(netobs_sink_module.work(module, true), 0);
	assert_int_equal(starts, 1);
	assert_non_null(strstr(host.logged, "Cannot allocate memory"));
	/* Nothing is due at once. */
	assert_true(host.wake_ms > now_ms() + 100);
	assert_int_equal(netobs_sink_module.work(module, true), 0);
	assert_int_equal(starts, 1);
	assert_int_equal(host.acked + host.refused, 0);
	sink_module_close(&netobs_sink_module, module);
	test_host_close(&host);
}
