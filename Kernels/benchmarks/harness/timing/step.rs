//! What a lane is about to do: reported beforehand, so that a crash can be attributed.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    WarmUp,
    /// Getting inputs that the set does not hold.
    Refill,
    Sample,
    Check,
    Trace,
}
