//! The output of a plain implementation on the first inputs, or as much of it as fits.

use std::fmt;
use std::ops::Range;

use contender::{Bound, Buffer, ContenderError, Piece, Problem};
use device::{DeviceError, Memory};
use numeric::{bits, index_below};

use crate::buffers::ALIGNMENT_BYTES;
use crate::check::check_slice;
use crate::part::{tiles, Part};
use crate::{Answers, Budget, BufferSet, Failure};

/// How much of a contender's output was compared with another implementation's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    Full,
    Slices {
        compared: usize,
        of: usize,
    },
    /// Nothing: only the sampled units, with the oracle's answers.
    Sample,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coverage::Full => f.pad("full"),
            Coverage::Slices { compared, of } => f.pad(&format!("slices {compared} of {of}")),
            Coverage::Sample => f.pad("sample"),
        }
    }
}

/// Binds the reference implementation to the buffers of a problem.
pub type Bind<'b> =
    dyn FnMut(&dyn Problem, &[Buffer]) -> Result<Box<dyn Bound>, ContenderError> + 'b;

pub(crate) struct Reference {
    pub(crate) parts: Vec<Part>,
    pub(crate) coverage: Coverage,
    _memory: Vec<Memory>,
}

/// Random stream for the choice of slices.
const SLICE_STREAM: u32 = u32::MAX - 20;

/// Operations that pieces may take together: about as long as the slowest reference for a whole.
const PIECES_FLOPS: f64 = 1e12;

impl Reference {
    /// Copies the outputs in `set`: whole, or slices of them if memory is short.
    pub(crate) fn copied(set: &BufferSet, entropy: u64) -> Result<Option<Self>, DeviceError> {
        let whole: Vec<(usize, Range<usize>)> = written(set).collect();
        let cut = |(tensor, range): &(usize, Range<usize>)| {
            let tensor = *tensor;
            tiles(range.clone()).map(move |tile| (tensor, tile))
        };
        let slices: Vec<_> = whole.iter().flat_map(cut).collect();
        let of = slices.len();
        let mut attempts = vec![(whole, Coverage::Full)];
        for share in [4, 16, 64] {
            let drawn = |place: &usize| {
                index_below(bits(entropy, SLICE_STREAM, *place as u64), share) == 0 || *place == 0
            };
            let chosen: Vec<_> = (0..of).filter(drawn).map(|at| slices[at].clone()).collect();
            let compared = chosen.len();
            attempts.push((chosen, Coverage::Slices { compared, of }));
        }
        for (ranges, coverage) in attempts {
            match Self::copy(set, ranges, coverage) {
                Err(DeviceError::OutOfMemory { .. }) => {}
                copied => return copied.map(Some),
            }
        }
        Ok(None)
    }

    fn copy(
        set: &BufferSet,
        ranges: Vec<(usize, Range<usize>)>,
        coverage: Coverage,
    ) -> Result<Self, DeviceError> {
        let bytes = |tensor: usize, range: &Range<usize>| {
            range.len() * set.specs()[tensor].dtype.size_bytes()
        };
        let room = |tensor, range: &_| bytes(tensor, range).next_multiple_of(ALIGNMENT_BYTES);
        let total = ranges.iter().map(|(tensor, range)| room(*tensor, range));
        let memory = set.device().allocate(total.sum())?;
        let (mut parts, mut next) = (Vec::new(), memory.address());
        for (tensor, range) in ranges {
            let first = range.start * set.specs()[tensor].dtype.size_bytes();
            let (from, address) = (set.buffers()[tensor].address + first, next);
            set.device().copy(address, from, bytes(tensor, &range))?;
            next += room(tensor, &range);
            parts.push(Part {
                tensor,
                range,
                address,
            });
        }
        Ok(Self {
            parts,
            coverage,
            _memory: vec![memory],
        })
    }

    /// Computes some of the pieces that hold sampled units, and checks them against those.
    pub(crate) fn in_pieces(
        set: &BufferSet,
        pieces: &[Piece],
        (answers, budgets): (&Answers, &[Budget]),
        entropy: u64,
        bind: &mut Bind,
    ) -> Result<Option<Self>, Failure> {
        let (mut parts, mut memories) = (Vec::new(), Vec::new());
        let (mut compared, mut flops) = (0, 0.0);
        for piece in sampled(pieces, answers, entropy) {
            let cost = piece.problem.cost().flops;
            if compared > 0 && flops + cost > PIECES_FLOPS {
                break;
            }
            let (ran, memory) = run(set, piece, bind)?;
            parts.extend(ran);
            memories.extend(memory);
            flops += cost;
            compared += 1;
        }
        for slice in answers.units.iter().flat_map(|unit| &unit.oracle) {
            let holds = |part: &&Part| {
                let end = slice.start + slice.values.len();
                part.tensor == slice.tensor
                    && part.range.start <= slice.start
                    && end <= part.range.end
            };
            if let Some(part) = parts.iter().find(holds) {
                check_slice(set, part, slice, &budgets[part.tensor])?;
            }
        }
        let of = pieces.len();
        let coverage = Coverage::Slices { compared, of };
        Ok((compared > 0).then_some(Self {
            parts,
            coverage,
            _memory: memories,
        }))
    }
}

/// The elements of all outputs that contenders must write.
fn written<'s>(set: &'s BufferSet) -> impl Iterator<Item = (usize, Range<usize>)> + 's {
    let outputs = set.specs().iter().enumerate();
    let outputs = outputs.filter(|(_, spec)| spec.role.is_written());
    outputs.flat_map(|(tensor, spec)| {
        let ranges = spec.written_ranges().into_iter();
        ranges.map(move |range| (tensor, range))
    })
}

/// The pieces that hold sampled units, in an order of chance.
fn sampled<'p>(pieces: &'p [Piece], answers: &Answers, entropy: u64) -> Vec<&'p Piece> {
    let holds = |piece: &&Piece| {
        let units = answers.units.iter().flat_map(|unit| &unit.oracle);
        let mut slices = units.map(|slice| (slice.tensor, slice.start));
        slices.any(|(tensor, start)| {
            let places = piece.problem.tensors().iter().zip(&piece.places);
            places.into_iter().any(|(spec, place)| {
                let inside = |first: usize| (first..first + spec.elements()).contains(&start);
                spec.role.is_written()
                    && place.is_some_and(|(whole, first)| whole == tensor && inside(first))
            })
        })
    };
    let mut held: Vec<_> = pieces.iter().filter(holds).collect();
    for last in (1..held.len()).rev() {
        let other = index_below(bits(entropy, SLICE_STREAM, last as u64), last as u32 + 1);
        held.swap(last, other as usize);
    }
    held
}

/// Solves one piece: inputs are where the whole has them, outputs in memory of their own.
fn run(
    set: &BufferSet,
    piece: &Piece,
    bind: &mut Bind,
) -> Result<(Vec<Part>, Vec<Memory>), Failure> {
    let device = set.device();
    let (mut buffers, mut parts, mut memories) = (Vec::new(), Vec::new(), Vec::new());
    let tensors = piece.problem.tensors();
    for (index, (spec, place)) in tensors.iter().zip(&piece.places).enumerate() {
        let bytes = spec.bytes();
        let address = match place {
            Some((tensor, first)) if !spec.role.is_written() => {
                set.buffers()[*tensor].address + first * spec.dtype.size_bytes()
            }
            _ => {
                let memory = device.allocate(bytes)?;
                let address = memory.address();
                memories.push(memory);
                if spec.role.is_read() {
                    device.fill(address, spec, index as u32, set.seed())?;
                }
                address
            }
        };
        if let (Some((tensor, first)), true) = (place, spec.role.is_written()) {
            parts.push(Part {
                tensor: *tensor,
                range: *first..first + spec.elements(),
                address,
            });
        }
        buffers.push(Buffer { address, bytes });
    }
    let mut bound = bind(&*piece.problem, &buffers)?;
    bound.enqueue(device.stream())?;
    device.synchronize()?;
    Ok((parts, memories))
}
