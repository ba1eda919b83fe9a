"""Writes a PEM bundle of CA certificates as a Java trust store: trust_store.py BUNDLE STORE.

The JKS format is a header, one record a certificate, and a SHA-1 over a fixed salt and the rest.
"""

import base64
import hashlib
import os
import re
import struct
import sys
import tempfile

PASSWORD = "changeit"


def utf(text):
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def main(bundle, store):
    with open(bundle, encoding="utf-8", errors="replace") as file:
        blocks = re.findall("-----BEGIN CERTIFICATE-----(.*?)-----END", file.read(), re.DOTALL)
    if not blocks:
        sys.exit(f"bazelw: no certificate in {bundle}: set SSL_CERT_FILE to the CA bundle")
    body = struct.pack(">III", 0xFEEDFEED, 2, len(blocks))
    for index, block in enumerate(blocks):
        certificate = base64.b64decode(block)
        body += struct.pack(">I", 2) + utf(f"ca{index}") + struct.pack(">Q", 0)
        body += utf("X.509") + struct.pack(">I", len(certificate)) + certificate
    salt = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(store), delete=False) as file:
        file.write(body + hashlib.sha1(salt + body).digest())
    os.replace(file.name, store)


main(*sys.argv[1:])
