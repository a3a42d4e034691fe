/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A connection to a collector, over TCP or TLS, which is made again after a failure.
 * Nothing here waits. A module's work() uses it like this:
 *
 *	state = stream_prepare(s);	PEER_NEW: the session starts anew
 *	stream_read() until -EAGAIN	also if nothing is expected
 *	stream_write() what there is
 *	host->ops->wake_in(host, sooner_ms(stream_rest(s), ...));
 *
 * An outage is logged when it begins, and when it ends.
 */
#ifndef NETOBS_SINKS_NET_NET_H
#define NETOBS_SINKS_NET_NET_H

#include "base/outage.h"
#include "base/spec.h"
#include "base/worker.h"
#include "sink/module.h"

#include <netdb.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The address of a collector, the local address for it, as the user writes them, and sockets. */

struct address {
	char host[256]; /* a name, or an IP address without brackets */
	uint16_t port;
	char name[272]; /* both, for messages: host:port, [address]:port */
};

/*
 * @text: //HOST, //HOST:PORT, //ADDRESS:PORT or //[ADDRESS]:PORT; NULL: the user
 * gave none. @otherwise: the port where none is given; 0: it must be. What is wrong
 * is said by spec_refuse(). False: something was.
 */
bool address_parse(struct spec *spec, const char *text, uint16_t otherwise,
		   struct address *ret_address);

/* Option source: the IP address to send from; AF_UNSPEC where it is not given. */
void address_read_source(struct spec *spec, struct sockaddr_storage *ret_source);

/* @return whether @text is one, and not a name. @ret_address may be NULL. */
bool address_is_numeric(const char *text, struct sockaddr_storage *ret_address);

/*
 * Looks up the addresses of a name, in a thread that waits for the answer unless the name
 * is an address. It may be closed before there is an answer.
 */

enum { RESOLVE_REASON_SIZE = 128 };

/*
 * @type: SOCK_STREAM or SOCK_DGRAM. The sink is called when the answer is there. -errno:
 * the query could not be started.
 */
int resolve_start(struct sink_host *sink, const struct address *address,
		  int type, struct worker **ret_resolve);

/*
 * 0: @ret_list is the caller's, to be given to freeaddrinfo(); -EAGAIN: there is no answer yet; others:
 * there are no addresses, and @ret_reason says why: "the host name is unknown" ...
 */
int resolve_take(struct worker *resolve, struct addrinfo **ret_list,
		 char ret_reason[static RESOLVE_REASON_SIZE]);

/* May be called at any time; takes NULL. */
void resolve_close(struct sink_host *sink, struct worker *resolve);

/* @return the number of addresses in a list */
unsigned int address_count(const struct addrinfo *list);

/* @return address @i of a list; behind the last one, the first follows */
const struct addrinfo *address_at(const struct addrinfo *list, unsigned int i);

/* ---- Non-blocking sockets, and what TCP says of them: address.c. Errors are -errno. ------ */

/*
 * A socket on its way to @address, of its type. @source: the address to send from, unless it is
 * AF_UNSPEC; -EAFNOSUPPORT: it is of another family.
 */
int socket_connect(const struct addrinfo *address,
		   const struct sockaddr_storage *source);

ssize_t socket_read(int fd, void *to, size_t len);
ssize_t socket_write(int fd, const void *from, size_t len);

/* @return the error of the socket since the last call; 0: none */
int socket_error(int fd);

/* Like socket_connect(), with keepalives. */
int tcp_connect(const struct addrinfo *address,
		const struct sockaddr_storage *source);

/* 0: connected; -EAGAIN: not yet; others: why not. */
int tcp_connect_result(int fd);

/* Bytes that were written and that the other side has not acknowledged. */
size_t tcp_unacknowledged(int fd);

struct tcp_peer {
	/* Data were sent again, or a closed window was probed: no answer so far. */
	bool is_silent;
	uint32_t silent_ms; /* since its last acknowledgement */
};

/* Get the state of the other side from TCP_INFO. @return 0 or -errno */
int tcp_look(int fd, struct tcp_peer *ret_peer);

/*
 * TLS 1.2 or newer over a socket that is not waited for. A server must have a certificate
 * for its name; the own one is shown if it asks for it.
 */

/* The part that all connections of a sink share. */
struct tls_context {
	BIO_METHOD *method;    /* how the socket is written to and read from */
	char name[256];	       /* name that a server's certificate must have */
	bool is_address;       /* the name is an address */
	char *ca, *cert, *key; /* paths; NULL: none */
	const char *alpn;
	SSL_CTX *ctx; /* the contents of the files, which are read again when they change */
	uint64_t stamp;	 /* stamp of the files when they were read */
	char error[512]; /* the error of the last reading; "": none */
};

/*
 * Options ca, cert, key_file and server_name. @host: the name unless server_name is given; @alpn: a
 * literal, the protocol inside as RFC 7301, 3.1 has it, "\2h2"; NULL: none is named. What is wrong with
 * options and files is said by spec_refuse(). 0, or -errno.
 */
int tls_context_open(struct tls_context *context, struct spec *spec,
		     const char *host, const char *alpn);

/*
 * Before a connection is made: read the files again if they have changed, since
 * certificates are renewed while programs run. -EINVAL: what is read is of no use, as
 * context->error says; what was read before is used.
 */
int tls_context_refresh(struct tls_context *context);

/* For sinks without TLS: refuse the options above. */
void tls_refuse_options(struct spec *spec);

/* @return whether any of them is given */
bool tls_has_options(struct spec *spec);

void tls_context_close(struct tls_context *context);

/* A connection; zeroed: none. */
struct tls {
	SSL *ssl;
	int fd;	   /* borrowed */
	int error; /* error of the socket, as errno */
	int depth; /* depth of the wrong certificate; 0 is the other side's own */
	bool was_asked;	  /* for a certificate, and had none */
	bool wants_out;	  /* no progress until the socket can be written to */
	bool has_read;	  /* something, once */
	bool is_broken;	  /* send nothing more to the other side */
	char reason[512]; /* reason of the last failure */
};

/* Begin a connection on @fd, which stays the caller's. */
int tls_start(struct tls *tls, const struct tls_context *context, int fd);

/* 0: it is done; -EAGAIN; others: it failed, and tls->reason says why. */
int tls_handshake(struct tls *tls, const struct tls_context *context);

/* Bytes, -EAGAIN, 0 from tls_read() at the end; others: it failed, as above. */
ssize_t tls_read(struct tls *tls, void *to, size_t len);
/* After -EAGAIN, the same bytes must come first. */
ssize_t tls_write(struct tls *tls, const void *from, size_t len);

/* The socket has failed beside TLS: @error, as errno, becomes tls->reason. */
void tls_break(struct tls *tls, int error);

/* Say goodbye, if that is possible now, and forget it. */
void tls_stop(struct tls *tls);

/** @return how OpenSSL uses the socket; the caller frees it with BIO_meth_free(). NULL: no memory */
BIO_METHOD *tls_bio_method(void);

struct stream_options {
	struct address address;
	struct sockaddr_storage source; /* AF_UNSPEC: any */
	struct tls_context *tls; /* NULL: plain TCP; outlives the stream */
	uint32_t connect_ms;	 /* per address, with TLS; 0: 4 s */
	uint32_t retry_ms, retry_max_ms; /* 0: 1 s, growing to 3 s */
	uint32_t unanswered_ms; /* without an answer it has failed; 0: 8 s */
	uint32_t good_ms;	/* 0: only stream_is_good() says so */
};

enum stream_phase {
	STREAM_WAITING, /* until the next attempt */
	STREAM_RESOLVING,
	STREAM_CONNECTING, /* TCP's handshake */
	STREAM_HANDSHAKE,  /* the TLS handshake */
	STREAM_READY,
};

/* Must not be moved while it is open. */
struct stream {
	struct sink_host *host;
	struct stream_options options;
	enum stream_phase phase;
	int64_t due_ms;	  /* the end of the phase */
	int64_t began_ms; /* the last attempt */
	struct worker *resolve;
	struct addrinfo *addresses; /* addresses of the name */
	unsigned int first, tried;  /* the best address so far; number tried */
	int fd;
	uint32_t watched; /* events of fd */
	struct tls tls;
	bool wants_out;	   /* until the socket can be written to */
	bool is_new;	   /* not reported to the owner yet */
	bool is_good;	   /* the connection has been used with success */
	bool was_good;	   /* the previous connection was good */
	bool is_idle;	   /* set by the owner: closing it now is no failure */
	int64_t look_ms;   /* when to check its answers again */
	int64_t silent_ms; /* the time of the last answer; 0: none is missing */
	struct backoff backoff;
	struct outage outage;
	char reason[512];     /* reason of the last failure */
	uint64_t connections; /* since the start */
};

/* Connecting begins with the first stream_prepare(). */
void stream_open(struct stream *stream, const struct stream_options *options,
		 struct sink_host *host);

/* A stream that is zeroed or closed is fine. */
void stream_close(struct stream *stream);

enum peer_state stream_prepare(struct stream *stream);

/** @return bytes; -EAGAIN; others: the connection has failed, and is made again */
ssize_t stream_read(struct stream *stream, void *to, size_t len);

/* @return as stream_read(). After -EAGAIN the next call has to begin with the same bytes. */
ssize_t stream_write(struct stream *stream, const void *from, size_t len);

/** Register the events to wait for. @return when to be called next, as for wake_in() */
int stream_rest(struct stream *stream);

/*
 * The peer works: an outage is over, and after the next failure the first attempt is soon.
 * To be called each time, or once per connection.
 */
void stream_is_good(struct stream *stream);

/* The peer does not work: close the connection, and make it again later. */
__attribute__((format(printf, 2, 3))) void stream_fail(struct stream *stream,
						       const char *format, ...);

/* Make another connection instead, at once if this one was good. */
void stream_restart(struct stream *stream);

/** @return bytes, with those that TLS adds, that the peer's TCP has not acknowledged */
size_t stream_unacknowledged(const struct stream *stream);

/*
 * Messages over TCP or TLS, in a protocol without acknowledgements. A message is delivered
 * once the peer's TCP has acknowledged all of its bytes. Other messages are sent again over
 * the next connection, which begins with a whole one. Nothing here waits. A module's work()
 * uses it like this:
 *
 *	while ((state = feed_prepare(f)) != PEER_AWAY) {
 *		PEER_NEW: make all messages again from the records behind f->acked
 *		make messages, and feed_mark() each
 *		if (feed_is_busy(f)) break;
 *		feed_send() them
 *	}
 *	host->ops->wake_in(host, feed_rest(f));
 */

/* The end of a message. */
struct feed_mark {
	uint64_t at;	     /* bytes of the connection before it */
	struct position end; /* behind its last record */
};

struct feed {
	struct sink_host *host;
	struct stream stream;
	struct position acked; /* all before it was delivered */
	bool is_up;	       /* a session is under way */
	const uint8_t *unsent; /* the rest of what is being sent */
	size_t n_unsent;
	uint64_t marked, written; /* bytes of this connection */
	/* The mark that is waited for, and the last one: those between them wait for the last. */
	struct feed_mark next, last;
	uint64_t sessions, broken_sessions;
};

/**
 * Begin to connect with the first feed_prepare().
 *
 * @param options  without good_ms, which is set here
 */
void feed_open(struct feed *feed, const struct stream_options *options,
	       struct sink_host *host);

/** A feed that is zeroed or closed is fine. */
void feed_close(struct feed *feed);

/** @return PEER_NEW, PEER_READY or PEER_AWAY */
enum peer_state feed_prepare(struct feed *feed);

/** A message of @len bytes, with the records before @end, will be sent next. */
void feed_mark(struct feed *feed, size_t len, struct position end);

/** @return whether the bytes of feed_send() are not all sent: they must not be moved */
static inline bool feed_is_busy(const struct feed *feed)
{
	return feed->n_unsent;
}

/** Send messages that were marked, unless it is busy. @bytes: borrowed until they are sent. */
void feed_send(struct feed *feed, const void *bytes, size_t len);

/** @return when to be called, as wake_in() has it */
int feed_rest(struct feed *feed);

#endif
