"""One process of a parameter server: TensorFlow serves until its stdin ends.

watching.py starts it, for each server and each worker; there is nothing to
fill in here. Whatever ends the rank that started it ends its stdin, too, and
so this process. To a line on stdin it answers with the bytes that its sockets
have sent and received so far.
"""

import json
import os
import socket
import struct
import sys

TCP_INFO_BYTES = 208  # of Linux's struct tcp_info, up to what we read
RECEIVED_AT = 128  # where in it stands tcpi_bytes_received
SENT_AT = 200  # and tcpi_bytes_sent


def socket_bytes() -> dict:
    """Bytes that this process's TCP connections have sent and received."""
    sent = 0
    received = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            # A copy of the descriptor: to close it leaves the other open.
            with socket.socket(fileno=os.dup(int(name))) as one:
                info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO,
                                      TCP_INFO_BYTES)
        except OSError:
            continue  # no TCP socket, or closed meanwhile
        sent += struct.unpack_from("Q", info, SENT_AT)[0]
        received += struct.unpack_from("Q", info, RECEIVED_AT)[0]
    return {"sent": sent, "received": received}


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
    for _ in sys.stdin:
        print(json.dumps(socket_bytes()), file=answers, flush=True)
    # TensorFlow's threads would go on serving.
    os._exit(0)


main(*sys.argv[1:])
