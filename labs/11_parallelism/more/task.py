"""One process of a parameter server: TensorFlow serves until its stdin ends.

watching.py starts it, for each server and each worker; there is nothing to
fill in here. Whatever ends the rank that started it ends its stdin, too, and
so this process. To a line on stdin it answers with the bytes that its sockets
have sent and received so far.
"""

import ctypes
import json
import os
import socket
import struct
import sys

TCP_INFO_BYTES = 208  # of Linux's struct tcp_info, up to what we read
RECEIVED_AT = 128  # where in it stands tcpi_bytes_received
SENT_AT = 200  # and tcpi_bytes_sent


def socket_bytes(seen: dict) -> dict:
    """Bytes that this process's TCP connections have sent and received.

    seen: of each connection what it had counted when we last looked. Linux
    forgets a connection when it is closed, such as one to a killed worker.
    """
    libc = ctypes.CDLL(None)
    for name in os.listdir("/proc/self/fd"):
        # Linux itself is asked: Python would make a socket of its own of it,
        # and gRPC does not expect that anyone else holds one of its sockets.
        info = ctypes.create_string_buffer(TCP_INFO_BYTES)
        length = ctypes.c_uint32(TCP_INFO_BYTES)
        failed = libc.getsockopt(int(name), socket.IPPROTO_TCP,
                                 socket.TCP_INFO, info, ctypes.byref(length))
        try:
            which = os.fstat(int(name)).st_ino
        except OSError:
            continue  # closed meanwhile
        if failed or length.value < SENT_AT + 8:
            continue  # no TCP socket
        sent = struct.unpack_from("Q", info, SENT_AT)[0]
        received = struct.unpack_from("Q", info, RECEIVED_AT)[0]
        seen[which] = (sent, received)
    return {"sent": sum(sent for sent, _ in seen.values()),
            "received": sum(received for _, received in seen.values())}


def main(job: str, index: str, cluster: str) -> None:
    import tensorflow as tf

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what TensorFlow prints is no answer
    tf.distribute.Server(
        tf.train.ClusterSpec(json.loads(cluster)),
        job_name=job,
        task_index=int(index),
        protocol="grpc",
    )
    print("ready", file=answers, flush=True)
    seen = {}
    for _ in sys.stdin:
        print(json.dumps(socket_bytes(seen)), file=answers, flush=True)
    # TensorFlow's threads would go on serving.
    os._exit(0)


main(*sys.argv[1:])
