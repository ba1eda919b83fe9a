//! Scans over memory on CUDA. Many are queued at a time: what a single one costs is mostly the wait.

use contender::Buffer;
use device_cuda::{Compared, FoundNonFinite};
use numeric::DType;

use crate::cuda_device::{dtype_code, CudaDevice};
use crate::cuda_driver::{bridge, OwnStream, Staging};
use crate::{checksum, Comparison, Device, DeviceError, NonFinite, Tiles, Tolerance};

/// Results that are waited for at a time.
const SCANS: usize = Staging::BYTES / size_of::<u64>();
/// An entry of the list of pieces: `Piece` in `cuda/kernels.h`.
const PIECE_BYTES: usize = 3 * size_of::<u64>();
/// Longer ranges are worth a grid each.
const SHORT_BYTES: usize = 256 << 10;
/// Tiles that are compared at a time.
const TILES: usize = 64;

impl CudaDevice {
    pub(crate) fn scan_first_bytes_not(
        &self,
        ranges: &[Buffer],
        value: u8,
        stream: &OwnStream,
    ) -> Result<Vec<Option<usize>>, DeviceError> {
        let short = ranges.iter().all(|range| range.bytes <= SHORT_BYTES);
        let firsts = if short {
            self.scan_short(ranges, value, stream)?
        } else {
            self.scan(ranges, stream, |range, result| {
                let (bytes, scratch) = (range.bytes as u64, self.scratch.address());
                let stream = stream.0 as usize;
                // SAFETY: the caller owns the range; scratch and result are as large as required.
                let queued = unsafe {
                    device_cuda::first_byte_not(
                        range.address,
                        bytes,
                        value,
                        scratch,
                        result,
                        stream,
                    )
                };
                bridge("first_byte_not", queued)
            })?
        };
        let inside = |(first, range): (u64, &Buffer)| {
            let first = usize::try_from(first).ok();
            first.filter(|first| *first < range.bytes)
        };
        Ok(firsts.into_iter().zip(ranges).map(inside).collect())
    }

    /// The first byte that is not `value` in each of some short ranges: one kernel for all.
    fn scan_short(
        &self,
        ranges: &[Buffer],
        value: u8,
        stream: &OwnStream,
    ) -> Result<Vec<u64>, DeviceError> {
        let mut firsts = Vec::new();
        for some in ranges.chunks(SCANS.min(Staging::BYTES / PIECE_BYTES)) {
            let (pieces, count) = (self.list(some.iter().map(|range| (range, 0))), some.len());
            let results = self.staging.address();
            // SAFETY: the caller owns the ranges; nothing else uses staging and list until the wait.
            let queued = unsafe {
                let stream = stream.0 as usize;
                device_cuda::first_bytes_not(pieces, count as u32, value, results, stream)
            };
            bridge("first_bytes_not", queued)?;
            stream.synchronize()?;
            // SAFETY: the scans have left a word each, and have finished.
            firsts.extend_from_slice(unsafe { self.staging.values::<u64>(count) });
        }
        Ok(firsts)
    }

    pub(crate) fn scan_non_finite(
        &self,
        address: usize,
        dtype: DType,
        elements: usize,
    ) -> Result<NonFinite, DeviceError> {
        if elements == 0 {
            return Ok(NonFinite::default());
        }
        let (code, result) = (dtype_code(dtype), self.staging.address());
        // SAFETY: the caller owns the range; scratch and result are as large as required.
        let queued = unsafe {
            let (scratch, stream) = (self.scratch.address(), self.stream().0);
            device_cuda::non_finite(address, elements as u64, code, scratch, result, stream)
        };
        bridge("non_finite", queued)?;
        self.stream.synchronize()?;
        // SAFETY: the scan has left its result, and has finished.
        let found = unsafe { self.staging.values::<FoundNonFinite>(1) }[0];
        Ok(NonFinite {
            count: found.count,
            first: (found.count > 0).then_some(found.first as usize),
        })
    }

    pub(crate) fn scan_checksums(&self, ranges: &[Buffer]) -> Result<Vec<u64>, DeviceError> {
        let sums = self.scan(ranges, &self.stream, |range, result| {
            let (bytes, scratch) = (range.bytes as u64, self.scratch.address());
            let stream = self.stream().0;
            // SAFETY: as above.
            let queued =
                unsafe { device_cuda::checksum_sum(range.address, bytes, scratch, result, stream) };
            bridge("checksum", queued)
        })?;
        let sums = sums.into_iter().zip(ranges);
        Ok(sums
            .map(|(sum, range)| checksum::finish(sum, range.bytes))
            .collect())
    }

    /// Queues one scan per range, waits, and returns the word that each has left.
    fn scan(
        &self,
        ranges: &[Buffer],
        stream: &OwnStream,
        mut queue: impl FnMut(&Buffer, usize) -> Result<(), DeviceError>,
    ) -> Result<Vec<u64>, DeviceError> {
        let mut words = Vec::new();
        for some in ranges.chunks(SCANS) {
            for (place, range) in some.iter().enumerate() {
                queue(range, self.staging.address() + place * size_of::<u64>())?;
            }
            stream.synchronize()?;
            // SAFETY: the scans have left a word each, and have finished.
            words.extend_from_slice(unsafe { self.staging.values::<u64>(some.len()) });
        }
        Ok(words)
    }

    pub(crate) fn scan_compare(
        &self,
        actual: usize,
        reference: usize,
        dtype: DType,
        Tiles { elements, step }: Tiles,
        limit: Tolerance,
    ) -> Result<Vec<Comparison>, DeviceError> {
        let mut found = Vec::new();
        for start in (0..elements).step_by(TILES * step) {
            let some = (elements - start).min(TILES * step);
            let offset = start * dtype.size_bytes();
            // SAFETY: the caller owns both tensors; scratch and staging are as large as required.
            let queued = unsafe {
                device_cuda::compare(
                    actual + offset,
                    reference + offset,
                    some as u64,
                    step as u64,
                    dtype_code(dtype),
                    limit.absolute,
                    limit.relative,
                    self.scratch.address(),
                    self.staging.address(),
                    self.stream().0,
                )
            };
            bridge("compare", queued)?;
            self.stream.synchronize()?;
            // SAFETY: there is a result for every tile, and the kernels have finished.
            let tiles = unsafe { self.staging.values::<Compared>(some.div_ceil(step)) };
            found.extend(tiles.iter().map(comparison));
        }
        Ok(found)
    }

    pub(crate) fn read_staged(&self, ranges: &[Buffer]) -> Result<Vec<Vec<u8>>, DeviceError> {
        let mut copies = Vec::new();
        let mut rest = ranges;
        while let Some(first) = rest.first() {
            if padded(first) > Staging::BYTES {
                let mut bytes = vec![0; first.bytes];
                self.read(first.address, &mut bytes)?;
                copies.push(bytes);
                rest = &rest[1..];
                continue;
            }
            let mut used = 0;
            let fits = |range: &&Buffer| {
                used += padded(range);
                used <= Staging::BYTES
            };
            let most = rest.len().min(Staging::BYTES / PIECE_BYTES);
            let fitting = rest[..most].iter().take_while(fits).count();
            let (some, others) = rest.split_at(fitting);
            copies.extend(self.read_some(some)?);
            rest = others;
        }
        Ok(copies)
    }

    /// Lists ranges for a kernel, each with the place of its copy.
    fn list<'r>(&self, ranges: impl Iterator<Item = (&'r Buffer, usize)>) -> usize {
        for (place, (range, to)) in ranges.enumerate() {
            let piece = [range.address, range.bytes, to].map(|word| word as u64);
            // SAFETY: nothing else uses the list of pieces until the caller has waited.
            let listed = unsafe { self.pieces.bytes_mut(place * PIECE_BYTES, PIECE_BYTES) };
            for (word, bytes) in piece.iter().zip(listed.chunks_exact_mut(size_of::<u64>())) {
                bytes.copy_from_slice(&word.to_ne_bytes());
            }
        }
        self.pieces.address()
    }

    /// Of ranges that fit into the staging memory together. One kernel copies all: a copy of each on its
    /// own takes longer than the work that is checked.
    fn read_some(&self, ranges: &[Buffer]) -> Result<Vec<Vec<u8>>, DeviceError> {
        let (mut end, mut starts) = (0, Vec::new());
        for range in ranges {
            starts.push(end);
            end += padded(range);
        }
        let pieces = self.list(ranges.iter().zip(starts.iter().copied()));
        let count = ranges.len() as u32;
        // SAFETY: the caller owns the ranges; nothing else uses the staging memory until the wait.
        let queued =
            unsafe { device_cuda::gather(pieces, count, self.staging.address(), self.stream().0) };
        bridge("gather", queued)?;
        self.stream.synchronize()?;
        // SAFETY: the copies have finished.
        let bytes = unsafe { self.staging.values::<u8>(end) };
        let copy = |(start, range): (usize, &Buffer)| bytes[start..start + range.bytes].to_vec();
        Ok(starts.into_iter().zip(ranges).map(copy).collect())
    }
}

/// What a range takes of the staging memory: whole packs, so that all can be copied as such.
fn padded(range: &Buffer) -> usize {
    range.bytes.next_multiple_of(16)
}

fn comparison(compared: &Compared) -> Comparison {
    Comparison {
        max_abs: compared.max_abs,
        sum_squared_error: compared.sum_squared_error,
        sum_squared_reference: compared.sum_squared_reference,
        non_finite: compared.non_finite,
        over_limit: compared.over_limit,
        first_over: (compared.over_limit > 0).then_some(compared.first_over as usize),
    }
}
