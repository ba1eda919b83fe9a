"""Downloads one file using only the standard library: download.py URL FILE.

Proxies and SSL_CERT_FILE are honoured as urllib and OpenSSL do. The exit codes are curl's, which
official.sh turns into words; packaged.py uses the function.
"""

import errno
import os
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request

CONNECT_S = 10
STALL_S = float(os.environ.get("BAZELW_TEST_STALL_S", "20"))
STALL_BYTES_PER_S = 1024


class Failed(Exception):
    """Why a download failed, and curl's exit code for it."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


def download(url, path):
    """Downloads url to path; raises Failed."""
    try:
        with urllib.request.urlopen(url, timeout=min(CONNECT_S, STALL_S)) as response, open_new(
            path
        ) as file:
            copy(response, file)
    except Failed:
        raise
    except urllib.error.HTTPError as error:
        raise Failed(22, f"{error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise Failed(*explain(error.reason)) from error
    except OSError as error:
        raise Failed(*explain(error)) from error
    except Exception as error:  # http.client has its own exceptions for a broken response
        raise Failed(56, f"broken response ({error})") from error


def open_new(path):
    try:
        return open(path, "wb")
    except OSError as error:
        raise Failed(23, f"cannot write {path}: {error.strerror}") from error


def copy(response, file):
    expected = response.headers.get("Content-Length")
    total = since_bytes = 0
    since = time.monotonic()
    while True:
        # At most one read of the socket, so that a trickle is recognised.
        block = response.read1(1 << 16)
        if not block:
            break
        try:
            file.write(block)
        except OSError as error:
            raise Failed(23, f"cannot write {file.name}: {error.strerror}") from error
        total += len(block)
        since_bytes += len(block)
        elapsed = time.monotonic() - since
        if elapsed > STALL_S:
            if since_bytes < STALL_BYTES_PER_S * elapsed:
                raise Failed(28, "the transfer stalled")
            since, since_bytes = time.monotonic(), 0
    if expected is not None and total != int(expected):
        raise Failed(18, f"cut off after {total} of {expected} bytes")


def explain(error):
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return 23, f"cannot write: {error.strerror}"
    if isinstance(error, socket.gaierror):
        return 6, "unknown host"
    if isinstance(error, ssl.SSLCertVerificationError):
        return 60, "certificate not trusted"
    if isinstance(error, ssl.SSLError):
        return 35, f"TLS failed ({error.reason})"
    if isinstance(error, (socket.timeout, TimeoutError)):
        return 28, "no response in time"
    if isinstance(error, ConnectionError):
        return 7, "connection refused or lost"
    return 56, str(error)


if __name__ == "__main__":
    try:
        download(*sys.argv[1:])
    except Failed as failure:
        sys.exit(failure.code)
    except KeyboardInterrupt:
        sys.exit(130)
