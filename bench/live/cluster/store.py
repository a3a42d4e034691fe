#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
store.py CHDB DIRECTORY PORT TABLES: ClickHouse, embedded in this process, behind the part of its HTTP interface
that agents use. The interface stands for that of a server: an INSERT is answered when its rows are in the table.
A request without the parameter "query" has its query in the body, and gets rows as lines of JSON.

Inserts that wait are carried out as one, as a server does with async_insert.
"""

import concurrent.futures
import http.server
import os
import queue
import sys
import threading
import urllib.parse

from lib import clickhouse

CLIENTS = 1024 # that may wait for a connection


class Job:
    def __init__(self, text, rows=None):
        self.text = text
        self.rows = rows # of an INSERT; None: it is none
        self.done = concurrent.futures.Future()


class Database:
    """One thread uses it: that of run()."""

    def __init__(self, package, directory):
        sys.path.insert(0, package)
        import chdb.session # pylint: disable=import-error,import-outside-toplevel
        self.session = chdb.session.Session(directory)
        self.file = os.path.join(directory, "rows.json")
        self.jobs = queue.Queue()

    def query(self, text):
        return str(self.session.query(text, "JSONEachRow"))

    def take(self):
        """All jobs that wait, at least one."""
        jobs = [self.jobs.get()]
        while not self.jobs.empty():
            jobs.append(self.jobs.get())
        return jobs

    def insert(self, text, jobs):
        with open(self.file, "wb") as file:
            file.writelines(job.rows for job in jobs)
        self.finish(jobs, text.replace(" FORMAT ", f" FROM INFILE '{self.file}' FORMAT ", 1))

    def finish(self, jobs, text):
        try:
            result = self.query(text)
        except Exception as error: # pylint: disable=broad-except
            for job in jobs:
                job.done.set_exception(RuntimeError(str(error)))
        else:
            for job in jobs:
                job.done.set_result(result)

    def run(self):
        while True:
            jobs = self.take()
            inserts = {}
            for job in jobs:
                if job.rows is not None:
                    inserts.setdefault(job.text, []).append(job)
            for text, waiting in inserts.items():
                self.insert(text, waiting)
            for job in jobs:
                if job.rows is None:
                    self.finish([job], job.text)

    def ask(self, job):
        self.jobs.put(job)
        return job.done.result()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self): # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("query")
        try:
            answer = self.server.database.ask(Job(query[0], body) if query else Job(body.decode()))
        except RuntimeError as error:
            print(error, file=sys.stderr, flush=True)
            self.answer(500, str(error))
        else:
            self.answer(200, answer)

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): # pylint: disable=arguments-differ
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = CLIENTS

    def __init__(self, port, database):
        self.database = database
        super().__init__(("", port), Handler)


def main():
    package, directory, port, tables = sys.argv[1:]
    database = Database(package, directory)
    with open(tables, encoding="utf-8") as file:
        for statement in clickhouse.statements(file.read()):
            database.query(statement)
    database.query("SET input_format_skip_unknown_fields = 1")
    server = Server(int(port), database)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    database.run()


if __name__ == "__main__":
    main()
