"""What the preview asks: for each lesson the predictions that a stored comparison answers.

The questions are those of the notebooks' own Predict cells, where a headline answers these; the
line below each bounds the answer by arithmetic, before anything was measured.
"""

from typing import NamedTuple


class Question(NamedTuple):
    """A prediction, and the comparison and the variant that answer it."""

    key: str  # what it is called where guesses are handed in; it never changes
    comparison: tuple[str, ...]  # its name; of several, the first that a machine has
    variant: str  # a pattern; of several variants that fit, the last
    asks: str
    bound: str
    who: str  # with its verb; what follows is "faster than" and `than`
    than: str
    unit: str = "times as fast"
    inverse: bool = False  # `who` is the baseline
    faster: str = ""  # the reason that the notebook gives, where every machine says "faster"
    function: str = ""  # of tools/headlines.py, where the lesson's own or a cell is not what ran
    lines: tuple[str, str] = ("", "")  # of it: what the first and the last line hold


TOP = ("AVX512_CORE_AMX", "AVX512_CORE_BF16", "AVX512_CORE_VNNI", "AVX512_CORE")  # newest first

QUESTIONS: dict[str, list[Question]] = {
    "00": [
        Question(
            "pi",
            ("pi",),
            r"\d+ ranks",
            "How many times as fast is the sum of forty million strips, with the allreduce, on "
            "2 ranks as on 1?",
            "Each rank adds up half of the strips, and then one number travels. Two cores can "
            "bring at most about 2.",
            "The ranks are",
            "one rank",
        ),
    ],
    "01": [
        Question(
            "kernels",
            ("kernels",),
            "oneDNN",
            "A small convolutional network is trained. How many times as fast as TensorFlow's "
            "default kernels is oneDNN?",
            "A library speeds up only its own part of a step. If that part takes a share s of "
            "the time, the step is at most 1 / (1 - s) times as fast: with half of it, at most "
            "2.",
            "oneDNN is",
            "the default kernels",
            faster="One difference: oneDNN has a kernel for a whole convolution, of which the "
            "default kernels make many products of matrices.",
        ),
        Question(
            "fused",
            ("resnet50",),
            "oneDNN, fused",
            "oneDNN trains ResNet-50 with Keras's layers, and then with your own layer, which "
            "fuses the batch normalisation. How many times as fast is yours?",
            "If batch normalisation took a third of a step, and then nothing at all, the step "
            "would be 1 / (1 - 1/3) = 1.5 times as fast. That is the most, and it still takes "
            "something.",
            "The fused layer is",
            "Keras's layers",
            faster="Your layer reads the batch less often.",
        ),
        Question(
            "graph",
            ("graph",),
            "oneDNN",
            "The small network takes steps of 16 images. How many times as fast is a graph as "
            "single operations, which Python asks for one after another (eager)?",
            "Both run the same kernels, so only what Python adds to each operation can be "
            "saved. The shorter the operations, the larger is its share.",
            "The graph is",
            "single operations",
            faster="A graph asks Python once a step, not once an operation.",
        ),
    ],
    "02": [
        Question(
            "crowd",
            ("crowd",),
            "by default",
            "Two copies of K-means run at once. By default each takes a thread for each core; "
            "with a fair share each takes half of that. How many times as fast as by default "
            "are the copies with a fair share?",
            "Cores and work are the same, and every core has work: so you may expect about 1.",
            "The copies with a fair share are",
            "those by default",
            inverse=True,
            faster="By default, threads that wait for the others of their copy stay on a core, "
            "and keep it from a thread of the other copy that has work to do.",
        ),
        Question(
            "copies",
            ("threads",),
            r"\d+ copies x 1 thread",
            "A small network is trained, by independent copies: one on each core, with one "
            "thread each. How many times the rate of one thread do they reach together?",
            "n cores bring at most about n times the rate of one, and copies wait for nobody.",
            "The copies are",
            "one thread",
        ),
        Question(
            "threads",
            ("threads",),
            r"1 rank x \d+ threads",
            "And one process with a thread for each core, how many times as fast as one thread "
            "is it?",
            "Again n cores bring at most about n. But the threads of one process wait for each "
            "other after each operation, and copies never do.",
            "The threads are",
            "one thread",
        ),
    ],
    "03": [
        Question(
            "message",
            ("message",),
            "4,194,304 bytes",
            "A rank sends another rank of the same machine a message, and gets it back. How "
            "many times as long as for one byte does that take for 4 MiB?",
            "A message of n bytes takes alpha + n beta. If alpha were 1 microsecond and 5 GB "
            "were moved in a second, one byte would take 1 microsecond, and 4 MiB 840.",
            "A message of one byte is",
            "one of 4 MiB",
            unit="times as long",
            inverse=True,
            function="messages",
        ),
        Question(
            "ring",
            ("allreduce-16MiB",),
            "ring",
            "Each rank has 16 MiB, and all need the sum. How many times as fast is a ring as "
            "sending everything to rank 0, which sends the sum back?",
            "With two ranks, a whole array travels to rank 0, and then one back. In the ring, "
            "halves travel both ways at once, twice. So the bytes allow at most 2.",
            "The ring is",
            "the way through rank 0",
        ),
        Question(
            "mpi",
            ("allreduce-16MiB",),
            "mpi",
            "And the MPI library's own allreduce, how many times as fast as the way through "
            "rank 0 is it?",
            "For arrays this large its table names the ring's way, so the bytes allow at most 2 "
            "here, too.",
            "The library is",
            "the way through rank 0",
        ),
    ],
    "04": [
        Question(
            "ranks",
            ("k-means",),
            r"\d+ ranks",
            "K-means groups a million points into 64 clusters. How many times as fast as one "
            "rank is it with a rank on each core, which share the points?",
            "The work divides evenly, and in an iteration a rank sends about a KiB. n cores "
            "bring at most about n.",
            "The ranks are",
            "one rank",
        ),
        Question(
            "threads",
            ("k-means",),
            r"\d+ threads",
            "And one rank with a thread for each core, how many times as fast as with one thread?",
            "The points and the cores are the same, so it is again at most about n.",
            "The threads are",
            "one thread",
        ),
        Question(
            "library",
            ("four-ways",),
            r"daal4py \(ranks\)",
            "On all cores and from the same start, how many times as fast as scikit-learn is "
            "daal4py with ranks?",
            "Both compute the same distances on the same cores, ten times over. Only how well "
            "their code does it can differ, and 1 is what two equally good codes would give.",
            "daal4py is",
            "scikit-learn",
        ),
    ],
    "05": [
        Question(
            "apart",
            ("efficiency",),
            r"\d+ ranks, apart",
            "A rank on each core trains on its own, without a single message to the others. How "
            "many times the images per second of one rank do they reach together?",
            "n cores bring at most about n times the rate of one. This is the limit for ranks "
            "that do talk.",
            "The ranks are",
            "one rank",
        ),
        Question(
            "cycle-1",
            ("efficiency",),
            r"\d+ ranks, cycle 1 ms",
            "Now the ranks average their gradients, and Horovod asks once in each millisecond "
            "which ones are ready, which is its default. How many times the rate of one rank is "
            "left?",
            "No more than when they train apart: a question is a message, and the thread that "
            "asks shares its core with the one that computes.",
            "The ranks are",
            "one rank",
        ),
        Question(
            "cycle-4",
            ("efficiency",),
            r"\d+ ranks, cycle 4 ms",
            "And if it asks only every 4 milliseconds?",
            "Again no more than apart. There are fewer questions, but gradients that are ready "
            "wait for up to 4 ms.",
            "The ranks are",
            "one rank",
        ),
    ],
    "06": [
        Question(
            "tuned",
            ("whole-job",),
            "tuned",
            "Two networks learn at the same time, on two ranks, and nobody has chosen the "
            "settings. Then evaluation, threads and waiting are tuned. How many times as fast "
            "as first written is the whole job?",
            "If rank 0 spends only a share s of its time on training, nothing but training can "
            "be left of it: at most 1 / s. Better threads can bring more on top of that.",
            "The tuned job is",
            "the job as first written",
        ),
    ],
    "07": [
        Question(
            "weak",
            ("weak-scaling",),
            r"\d+ ranks",
            "In weak scaling each rank keeps its number of rows, and all average their "
            "gradients. How many times the rows per second of one rank does a rank on each core "
            "reach?",
            "n ranks reach at most n times the rate of one. Each step adds an exchange, which "
            "one rank alone does not have.",
            "The ranks are",
            "one rank",
        ),
    ],
    "08": [
        Question(
            "int8-avx2",
            ("product-AVX2",),
            "int8",
            "Two large matrices are multiplied, and the processor may use only AVX2. How many "
            "times as fast as fp32 is int8?",
            "A register holds four times as many numbers of 8 bits as of 32, so at most about "
            "4. But AVX2 adds products of two of them in 16 bits.",
            "int8 is",
            "fp32",
            lines=("climbed = ", "yield Headline(f"),
        ),
        Question(
            "int8-newest",
            tuple(f"product-{step}" for step in TOP),
            "int8",
            "And with the newest instructions that the processor has?",
            "Again at most about 4 by the length of the numbers. An instruction that multiplies "
            "and adds int8 at once (VNNI) has fewer steps, and one for small matrices (AMX) "
            "fewer still.",
            "int8 is",
            "fp32",
            lines=("climbed = ", "yield Headline(f"),
        ),
        Question(
            "bf16",
            (*(f"network-{step}" for step in TOP), "network-AVX2"),
            "bf16",
            "A small convolutional network runs with the newest instructions. How many times as "
            "fast as in fp32 is it in bf16?",
            "bf16 has half the bytes of fp32, which allows about 2. Not all of a step is "
            "convolutions, and where a processor cannot multiply bf16, every number is "
            "converted there and back.",
            "bf16 is",
            "fp32",
            lines=("climbed = ", "yield Headline(f"),
        ),
    ],
    "09": [
        Question(
            "cnn",
            ("together-cnn-2",),
            "together",
            "Two ranks train a small network together. What share of the rate of two copies "
            "that train apart do they keep?",
            "At most about 1: the arithmetic is the same, and only ranks that train together "
            "send their gradients and wait for each other.",
            "Training together is",
            "training apart",
            unit="of the copies' rate",
        ),
        Question(
            "resnet50",
            ("together-resnet50-2",),
            "together",
            "And what share do they keep of ResNet-50, which computes far longer in a step?",
            "At most about 1 again. Its 25.6 million weights make a gradient of about 100 MB: a "
            "longer step, but a larger message, too.",
            "Training together is",
            "training apart",
            unit="of the copies' rate",
        ),
        Question(
            "torch",
            ("frameworks",),
            "PyTorch",
            "One rank with all cores trains the small network. How many times as fast as "
            "TensorFlow is PyTorch?",
            "Both do the same arithmetic on the same images: 1 is what two equally good "
            "libraries would give.",
            "PyTorch is",
            "TensorFlow",
        ),
    ],
    "10": [
        Question(
            "steps",
            ("pipeline",),
            "all four",
            "The naive pipeline reads one image after another. How many times as fast is the "
            "one with parallel reading, batches, a cache and prefetch?",
            "If a step waits for images for a share w of its time, better input brings at most "
            "1 / (1 - w). Input and training share the cores here, so it brings less, unless "
            "the cache saves work as well.",
            "All four steps together are",
            "the naive pipeline",
        ),
    ],
    "11": [
        Question(
            "quarter",
            ("crossing-0.25",),
            "tensor",
            "The batch has a quarter as many rows as the layer is wide. How many times as fast "
            "as dividing the batch (data parallelism) is dividing the weights (tensor "
            "parallelism)?",
            "With four layers, data parallelism adds up 4 x width x width numbers, and tensor "
            "parallelism 3 x batch x width, here 3/16 of that. The products are as many.",
            "Tensor parallelism is",
            "data parallelism",
        ),
        Question(
            "equal",
            ("crossing-1",),
            "tensor",
            "And if the batch has as many rows as the layer is wide?",
            "Tensor parallelism adds up three quarters as many numbers: nobody needs the gradient of "
            "the examples. Both compute as many products.",
            "Tensor parallelism is",
            "data parallelism",
        ),
        Question(
            "four",
            ("crossing-4",),
            "tensor",
            "And if it has four times as many?",
            "Tensor parallelism adds up three times as many numbers. But the products grow with "
            "the batch, too: the longer they take, the less the messages decide.",
            "Tensor parallelism is",
            "data parallelism",
        ),
    ],
    "12": [
        Question(
            "tuned",
            ("training",),
            "tuned, 1 rank",
            "A network learns to outline tumours. How many times as fast as first written is "
            "its training after our changes, on one rank with all cores?",
            "A function with a share s of the profile brings at most 1 / (1 - s), and shares of "
            "several functions add up: with three quarters, at most 4.",
            "The tuned training is",
            "the training as first written",
        ),
        Question(
            "ranks",
            ("training",),
            r"tuned, \d+ ranks",
            "And after the same changes, with one rank on each core?",
            "The cores are the same, so nothing is gained by their number: only by what the "
            "threads of one rank lose, and against what the ranks send.",
            "The ranks are",
            "the training as first written",
        ),
    ],
}
