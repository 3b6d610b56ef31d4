"""Which phase of a step a sample belongs to: by the functions that it was taken in, from the innermost outwards."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

LIBRARY = "_cpu_kernels.so"
# By patterns of the functions of `xla_ext/cpu`; tests hold that there are such functions, and a phase for each kernel.
# What several phases call belongs to its caller, and so do the copies of the C library.
SUMS = "sums of rows of weights"
PHASES = {
    SUMS: (
        # What is compiled into `runForward` are products, but for little.
        *("multiply", "Product::*", "addPatches", "convolve", "runForward"),
        *("ConvolutionColumns::add", "ConvolutionColumns::addDense", "addTaps"),
        *("writeVectors", "finishStream", "SynapticShares::*", "ArrivingPairs::*"),
        *("sendPairs", "sendDelayed", "ShareColumns::*", "SampleColumns::*"),
        *("addIntegers", "addWhole"),
    ),
    "cotangents sent back densely": (
        *(
            "multiplyPanels",
            "multiplySplit",
            "multiplyOnTiles",
            "splitRows",
            "splitPanels",
            "pairRows",
            "pairPanels",
            "roundingPays",
            "splitLength",
            "PanelProduct::*",
            "sendThroughWeights",
            "sendBackInPlace",
            "SendThroughConvolution::*",
            "TransposedConvolution::*",
            *("WinogradConvolution::*", "ImageConvolution::*", "spreadBlock", "collectBlock"),
            "sendBack",
            "collectShares",
            "collectSteps",
            "SynapticCollector::*",
            "SynapticCotangents::*",
            "collectDelayed",
            "ArrivingColumns::*",
        ),
        "Windows::*",  # of pools
    ),
    "dot products at listed neurons": (
        *("dotRows", "dotPatches", "SpikeCotangents::*", "markSlopes", "Dots::*", "dotLists"),
        *("convolveToInputs", "convolveToSlots", "SentBack::*", "dotTaps"),
        *("DelayedCotangents::*", "RecurrentCotangents::*", "transpose"),
    ),
    "gradients of weights": (
        *("TransposedSpikes::accumulate", "TransposedSpikes::addDense", "ConvolutionColumns::addGradient"),
        *(
            "DenseConvolution::addGradient",
            "addProducts",
            "addPatchGradients",
            "addRows",
            "addPaddedGradients",
            "padRow",
            "ChannelGradient::*",
        ),
        *("computeWeightGradient", "finishWeightGradient", "convolveToWeights", "DelayGradient::*"),
        *("streamRows", "sumTaps", "pickTaps", "readVectors", "correlatePairs", "correlateDelayed"),
    ),
    "steps of the neurons, forward": (
        "stepForward",
        "stepRow",
        "stepsForward",
        "affine",
        "stepSynaptic",
        "stepIntegers",
        "addPoisson",
        "addNoise",
    ),
    "steps of the neurons, backward": (
        *("stepBackward", "stepBackRow", "stepAgain", "derivative", "stepBackThroughAll", "stepsBackward"),
        *("PatchBackward::advance", "runAllSteps", "runReadoutBackward", "BlockRecord::*"),
    ),
    "lists of spikes, and the same by neuron": (
        *("listNonZero", "listNonZeroBytes", "listBits", "listEntries", "markOnes", "markIds", "expandBits"),
        *("mark", "listRows"),
        *("countMarks", "compressMarked", "expandMarked", "expandList", "addList"),
        *("RowLister::*", "ListedCotangents::*"),
        *("SpikeLists::*", "SpikeRows::*", "ListedRows::*", "*Source::*", "StepSpikes::*", "Selection::*"),
        *("TransposedSpikes::TransposedSpikes", "TransposedSpikes::fill", "ForwardPass::*"),
        *(
            "Arrivals::*",
            "writeUnderWay",
            "DelayLine::*",
            "SampleGroups::*",
            "IncomingSynapses::*",
        ),
    ),
    "weights copied close together": (
        "pack*",
        "PackedWeights::*",
        "PackedConvolution::*",
        "PatchWeights::*",
        *("spreadShares", "splitShares"),
    ),
}
# Called by several, and by this one as its last act, so that it is not in the stack any more.
SHARED = {SUMS: ("sumRow", "sumRows", "sumRowsInt8", "multiplyRows", "multiplyTile", "multiplyColumns")}
OTHER_KERNELS = "all else in the kernels"
PAGES = "new pages, cleared by the operating system"
COMPILED = "Adam and all else that XLA compiles"
REST = "Python, JAX, and threads that look for work"
ALL = (*PHASES, OTHER_KERNELS, PAGES, COMPILED, REST)

# A function of ours, without what templates run for others: their name holds that of their task after it.
OWN = re.compile(r"snnjax::(?!snnjax|eachRow<|eachRange<|Sequence::eachBlock<)([\w:~]*[\w~])")
NAMESPACES = re.compile(r"\(anonymous namespace\)::|\b(portable|avx2|avx512|neon)::")
# What XLA compiles lies in no library: perf names the file that would describe it.
IN_MEMORY = re.compile(r"/perf-\d+\.map$|\[JIT\]|^//anon")
PAGE_FAULTS = re.compile("page_fault|do_translation_fault|munmap|madvise")


class Frame(NamedTuple):
    """A function in a stack."""

    function: str
    library: str

    @property
    def is_ours(self) -> bool:
        return self.library.endswith(LIBRARY)


def own_name(symbol: str) -> str | None:
    """``void snnjax::avx2::stepRow<(snnjax::Reset)0>(...)`` -> ``stepRow``; None for what is not of snnjax."""
    found = OWN.search(NAMESPACES.sub("", symbol))
    return found[1] if found else None


def phase_of_names(names: Sequence[str], table: Mapping[str, Sequence[str]]) -> str | None:
    """That of the first name that has one."""
    matches = (
        phase
        for name in names
        for phase, patterns in table.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    )
    return next(matches, None)


def phase_of(stack: Sequence[Frame]) -> str:
    """Of a sample, by its stack, innermost first."""
    if any(PAGE_FAULTS.search(frame.function) for frame in stack):
        return PAGES
    ours = [frame for frame in stack if frame.is_ours]
    if ours:
        names = [name for frame in ours if (name := own_name(frame.function))]
        return phase_of_names(names, PHASES) or phase_of_names(names, SHARED) or OTHER_KERNELS
    return COMPILED if any(IN_MEMORY.search(frame.library) for frame in stack) else REST


FRAME = re.compile(r"\s*[0-9a-f]+ (.*) \((.*)\)$")


def stacks(script: str) -> list[list[Frame]]:
    """Of the samples that `perf script -F ip,sym,dso` prints: a line a function, and blank lines between samples."""
    samples = ([FRAME.match(line) for line in block.splitlines()] for block in script.split("\n\n"))
    return [frames for sample in samples if (frames := [Frame(each[1], each[2]) for each in sample if each])]
