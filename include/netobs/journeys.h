/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file journeys.h
 * Journeys of a tracer (trace.h), summed up by direction: how long each part took. Counts, sums and
 * maxima are exact. netobsctl trace prints them.
 *
 * Sums are independent of tracers. One thread at a time may use them.
 */
#ifndef NETOBS_JOURNEYS_H
#define NETOBS_JOURNEYS_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs_journeys;

#define NETOBS_JOURNEY_DIRECTIONS 2

/** Percentiles are exact up to so many journeys of a direction. Of more, they are those of as many
 *  that are chosen at random, each with the same chance. */
#define NETOBS_JOURNEYS_KEPT_MAX 100000

/** A series of times: enum netobs_journey_part, or one of these. */
enum netobs_journey_series {
	NETOBS_JOURNEY_UNKNOWN = NETOBS_JOURNEY_PARTS, /**< in no part */
	NETOBS_JOURNEY_TOTAL, /**< from the first to the last step, if both ends were seen */
	NETOBS_JOURNEY_SERIES
};

/** The time of a part, over all journeys of which it is known. It does not grow in later libraries. */
struct netobs_journey_time {
	uint64_t journeys; /**< of which it is known */
	uint64_t sum_ns;   /**< over these */
	uint64_t max_ns;   /**< of one of these */
};

/** Sums of a direction. */
struct netobs_journey_sums {
	size_t sz; /**< sizeof(struct netobs_journey_sums), set by the caller */
	/** "client > server"; "direction 0", if it is not known of all who opened the connection */
	const char *name;
	uint64_t journeys;	/**< all */
	uint64_t kept;		/**< of these, those that percentiles are of */
	uint64_t complete;	/**< without unknown parts */
	uint64_t bytes;		/**< of the streams */
	uint64_t retransmitted; /**< journeys with several attempts */
	uint64_t drops;		/**< by this kernel */
	uint64_t all_ns; /**< time of all journeys, also of those whose ends were not seen */
	struct netobs_journey_time series[NETOBS_JOURNEY_SERIES];
};

/**
 * @param ret_journeys  the caller frees them by netobs_journeys_free()
 * @return 0; -EINVAL: @p ret_journeys is NULL; -ENOMEM
 */
NETOBS_API int netobs_journeys_new(struct netobs_journeys **ret_journeys);

/**
 * Add a journey.
 *
 * @return 0; -EINVAL: an argument is NULL, or no journey; -ENOMEM: percentiles lack it
 */
NETOBS_API int netobs_journeys_add(struct netobs_journeys *journeys,
				   const struct netobs_journey *journey);

/**
 * Read the sums of a direction.
 *
 * @param ret_sums  the caller sets sz; filled up to that size, and sz becomes the number of bytes filled
 * @return 0; -EINVAL: an argument is NULL, there is no such direction, or sz is too small
 */
NETOBS_API int netobs_journeys_get(const struct netobs_journeys *journeys,
				   unsigned int direction,
				   struct netobs_journey_sums *ret_sums);

/**
 * Find percentiles by rank: the times that so many of the journeys do not exceed.
 *
 * @param series     enum netobs_journey_series
 * @param per_mille  @p n ranks: 500 is the median, 1000 and more the maximum
 * @param ret_ns     as many times
 * @return 0; -ENODATA: the time is known of no journey; -EINVAL: an argument is NULL, or there is
 *         no such direction or series; -ENOMEM
 */
NETOBS_API int netobs_journeys_percentiles(const struct netobs_journeys *journeys,
					   unsigned int direction,
					   unsigned int series,
					   const uint32_t *per_mille,
					   uint32_t n, uint64_t *ret_ns);

/**
 * Find the journey whose total has a rank, of those whose ends were seen, or of all if there is none.
 *
 * @param per_mille  as above; 1000: the longest
 * @param ret_ns     its time of each series
 * @return 0; -ENODATA: there are no journeys; -EINVAL: an argument is NULL, or there is no such
 *         direction
 */
NETOBS_API int netobs_journeys_ranked(struct netobs_journeys *journeys,
				      unsigned int direction, uint32_t per_mille,
				      uint64_t ret_ns[NETOBS_JOURNEY_SERIES]);

/** Free the sums. NULL is fine. */
NETOBS_API void netobs_journeys_free(struct netobs_journeys *journeys);

/** The name of a part, or "unknown", "total"; NULL beyond the last. */
NETOBS_API const char *netobs_journey_series_name(unsigned int series);

#ifdef __cplusplus
}
#endif

#endif
