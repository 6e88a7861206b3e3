/* An allreduce of argv[1] bytes and, before it, messages between two ranks:

       smpicc -O2 smpi.c -o smpi

   simulate.py starts it on a machine that is not there. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void send(float *x, int n, int to) {
    MPI_Send(x, n, MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

static void take(float *x, int n, int from) {
    MPI_Recv(x, n, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, ranks;
    int bytes = atoi(argv[1]), n = bytes / sizeof(float);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* All simulated ranks share one piece of memory: the numbers do not
       matter, the messages do. */
    float *mine = SMPI_SHARED_MALLOC(bytes);
    float *sum = SMPI_SHARED_MALLOC(bytes);
    for (int size = 4; size <= bytes && rank < 2; size *= 4) {
        double start = MPI_Wtime();
        if (rank == 0) {
            send(mine, size, 1);
            take(sum, size, 1);
            printf("message %d %.9f\n", size, (MPI_Wtime() - start) / 2);
        } else {
            take(sum, size, 0);
            send(mine, size, 0);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), slowest;
    MPI_Allreduce(mine, sum, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    if (rank == 0) printf("allreduce %d %.9f\n", ranks, slowest);
    SMPI_SHARED_FREE(mine);
    SMPI_SHARED_FREE(sum);
    MPI_Finalize();
    return 0;
}
