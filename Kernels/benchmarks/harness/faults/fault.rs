//! What a contender does wrong.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// One element in the last row is off.
    WrongResult,
    /// One element is NaN.
    NotANumber,
    /// The last row is never written.
    UnwrittenTail,
    /// One element after the end of the output is written.
    OutOfBounds,
    /// An input is changed.
    InputMutation,
    /// The first answer is repeated regardless of the inputs.
    CachedOutput,
    /// The output is written on another stream, or by a thread that outlives the call.
    OtherStream,
    /// Right in the gate, idle when timed.
    IdleWhenTimed,
    /// Right in the gate, ends the process when timed.
    AbortWhenTimed,
    /// Right, but a thread that it starts when it is timed ends the process later, mostly in the turn of another.
    AbortLater,
    IllegalAddress,
    InfiniteLoop,
    Exit,
    Abort,
    AllocationFailure,
    /// Has another process plan and reports the result: not a fault.
    Planned,
    /// The same, but the other process dies: costs no row.
    AbortPlanning,
    /// Says it does not support the problem: not a fault.
    Unsupported,
    /// Right, and does much work for it: not a fault, but what those below pretend to do.
    Slow,
    /// Idle unless the output holds NaN.
    SensesNan,
    /// Idle if the output holds NaN.
    SensesGarbage,
    /// Slow on inputs it has not seen, for the others it has kept the answers.
    Memoises,
    /// The same for the second half of the output; the first is computed.
    MemoisesHalf,
    /// Keeps the last answer, and repeats it while the inputs stay the same.
    SkipsRepeats,
    /// Answers the inputs of the call before.
    PreviousAnswer,
    /// Computes the answer before it is called, when it is bound.
    Precomputed,
    /// Right in the gate, works in every third call only when timed.
    EveryThirdCall,
    /// Idle on every set of buffers but the first.
    OnlyFirstSet,
    /// Right in the first and the last row, zero in all others.
    RightEnds,
    /// The second half of the rows is rounded to bf16.
    LowPrecisionTail,
    /// Right in the gate, rounds when timed.
    CheaperWhenTimed,
    /// Right in the gate, writes half of the output when timed.
    HalfWhenTimed,
    /// Computes into scratch memory on a stream of its own while the given one is held, which then only
    /// copies the answer.
    SideStream,
    /// The same, but the call waits until the answer is there; on the CPU a thread computes between
    /// calls.
    EarlyLaunch,
    /// The same on the CPU, but its thread starts when it is timed.
    EarlyWhenTimed,
    /// Works for long on the host before it launches.
    HostWork,
    /// Keeps answers, until inputs are new so often that somebody must be judging it.
    MemoisesUntilJudged,
    /// The same, but then writes nothing to inputs that are new.
    IdleWhenJudged,
    /// Keeps answers, but repeats them in fewer than half of its calls.
    MemoisesAtTimes,
    /// Keeps answers, and takes those that it does not have from where somebody else has written them.
    CopiesOthers,
    /// Has a thread write half of the output once the call has returned.
    FinishesLate,
    /// Works only if the cache has been flushed. Buffers as small as the suite's always are.
    SensesFlush,
    /// Leaves out part of the work unless it was not called for longer than usual, as while others are checked.
    SensesPauses,
    /// Leaves out a row, but not in the set of buffers that the gate has seen.
    SlacksElsewhere,
    /// Lets a thread per core wait actively for a while after its calls: not a fault, but it must not cost others.
    SpinsOn,
    /// Fails if that lasts into many of its own calls.
    NeedsRest,
    /// Works only if its output is gone, as it is before every sample that is not a block.
    IdleIfDone,
    /// Asks the cache to keep its inputs: not a fault, but its cold cache must be cold.
    PinsInputs,
    /// The same kernel without asking.
    PinsNothing,
    /// Right, but does one hundredth of the work twice: not a fault but a known slow-down.
    OnePercentMore,
}

/// More calls than the gate makes before a contender is timed.
pub(crate) const GATE_CALLS: usize = 6;
