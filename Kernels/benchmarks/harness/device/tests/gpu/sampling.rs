//! Timing: work of known length, held streams, graphs, the tracer, readings.

use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};
use device::{
    Buffer, Cache, ContenderError, CudaDevice, Device, Place, Queue, Sample, SampleError,
    SampleMode, Stream, Trace,
};

use crate::with_gpu;

/// Enqueues work of a known length.
fn spin(duration_us: u64, stream: Stream) -> Result<(), ContenderError> {
    // SAFETY: the stream is the device's.
    unsafe { device_cuda::spin(duration_us * 1000, stream.0) }.map_err(ContenderError::new)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn samples(
    cuda: &CudaDevice,
    cache: Cache,
    mut enqueue: impl FnMut(Stream) -> Result<(), ContenderError>,
) -> Vec<Sample> {
    (0..21)
        .map(|_| cuda.sample(SampleMode::new(cache), &mut enqueue).unwrap())
        .collect()
}

#[test]
fn a_sample_takes_as_long_as_its_work() {
    with_gpu(|cuda, _| {
        let overhead = cuda.timer_overhead_us().unwrap();
        println!("{}: timer overhead {overhead:.3} us", cuda.info().name);
        assert!((0.0..10.0).contains(&overhead));
        for cache in [Cache::Cold, Cache::Hot, Cache::AsIs] {
            for expected in [20, 200, 2000] {
                let taken = samples(cuda, cache, |stream| spin(expected, stream));
                let elapsed = median(taken.iter().map(|sample| sample.elapsed_us).collect());
                let clock = taken[10].clock_mhz.expect("a clock reading");
                println!("{cache:?} {expected} us of work: {elapsed:.2} us at {clock:.0} MHz");
                assert!(taken.iter().all(|sample| sample.queue == Queue::Held));
                // Starting and ending a kernel takes a few tenths beyond its own instructions, and
                // without a tracer only a lower bound of the timer's overhead is known.
                let over = elapsed - expected as f64;
                assert!(
                    (-0.5..3.0).contains(&over),
                    "{expected} us took {elapsed} us"
                );
                assert!((200.0..4000.0).contains(&clock), "{clock} MHz");
            }
        }
    });
}

#[test]
fn a_cold_copy_is_slower_than_a_hot_one() {
    with_gpu(|cuda, _| {
        let bytes = 8 << 20;
        let (from, to) = (cuda.allocate(bytes).unwrap(), cuda.allocate(bytes).unwrap());
        cuda.set_bytes(from.address(), bytes, 3).unwrap();
        let (from, to) = (from.address() as u64, to.address() as u64);
        let copy = |stream: Stream| {
            // SAFETY: both allocations outlive the sample, which waits for the stream.
            unsafe { result::memcpy_dtod_async(to, from, bytes, stream.0 as sys::CUstream) }
                .map_err(ContenderError::new)
        };
        let time = |cache| {
            median(
                samples(cuda, cache, copy)
                    .iter()
                    .map(|sample| sample.elapsed_us)
                    .collect(),
            )
        };
        let (cold, hot) = (time(Cache::Cold), time(Cache::Hot));
        println!("8 MiB copy: cold {cold:.2} us, hot {hot:.2} us");
        assert!(cold > hot, "cold {cold} us, hot {hot} us");
    });
}

#[test]
fn work_that_waits_inside_is_marked_and_refusals_leave_the_stream_free() {
    with_gpu(|cuda, _| {
        let mode = SampleMode {
            cache: Cache::AsIs,
            hold_limit: Duration::from_millis(50),
        };
        let sample = cuda
            .sample(mode, &mut |stream| {
                cuda.synchronize().map_err(ContenderError::new)?;
                spin(10, stream)
            })
            .unwrap();
        assert_eq!(sample.queue, Queue::TimedOut);
        let refused = cuda.sample(mode, &mut |_| Err(ContenderError::new("no plan")));
        assert!(matches!(refused, Err(SampleError::Contender(_))));
        let after = cuda.sample(mode, &mut |stream| spin(10, stream)).unwrap();
        assert_eq!(after.queue, Queue::Held);
    });
}

#[test]
fn a_graph_replays_what_was_captured() {
    with_gpu(|cuda, _| {
        let graph = cuda
            .capture(&mut |stream| (0..3).try_for_each(|_| spin(100, stream)))
            .unwrap();
        assert_eq!(graph.nodes(), 3);
        let taken = samples(cuda, Cache::AsIs, |stream| graph.launch(stream));
        let elapsed = median(taken.iter().map(|sample| sample.elapsed_us).collect());
        println!("graph of 3 x 100 us: {elapsed:.2} us");
        assert!((298.0..320.0).contains(&elapsed), "{elapsed} us");
        let waiting = cuda.capture(&mut |_| cuda.synchronize().map_err(ContenderError::new));
        assert!(waiting.is_err());
        cuda.sample(SampleMode::default(), &mut |stream| spin(10, stream))
            .expect("the stream works after a failed capture");
    });
}

#[test]
fn work_on_another_stream_is_seen() {
    with_gpu(|cuda, _| {
        let bytes = 1 << 20;
        let memory = cuda.allocate(bytes).unwrap();
        let address = memory.address();
        let watched = [Buffer { address, bytes }];
        let fill = |stream: usize| {
            // SAFETY: the allocation outlives the call; stream 0 is the legacy default stream.
            unsafe { device_cuda::fill_index(address, 1 << 18, 5, 1, 9, stream) }
                .map_err(ContenderError::new)
        };
        let start = Instant::now();
        fill(cuda.stream().0).unwrap();
        cuda.synchronize().unwrap();
        let length = start.elapsed();
        cuda.set_bytes(address, bytes, 0xFF).unwrap();
        let orderly =
            cuda.writes_out_of_order(&watched, 0xFF, length, &mut |stream| fill(stream.0));
        assert!(!orderly.unwrap());
        cuda.set_bytes(address, bytes, 0xFF).unwrap();
        let escaped = cuda.writes_out_of_order(&watched, 0xFF, length, &mut |_| fill(0));
        assert!(escaped.unwrap());
        let waiting = cuda.writes_out_of_order(&watched, 0xFF, length, &mut |_| {
            cuda.synchronize().map_err(ContenderError::new)
        });
        assert!(matches!(waiting, Err(SampleError::Unsupported(_))));
    });
}

/// Runs the test if there is a tracer.
fn with_tracer(test: impl FnOnce(&CudaDevice)) {
    with_gpu(|cuda, _| match cuda.trace_obstacle() {
        Some(obstacle) => workspace::say!("SKIPPED: {obstacle}"),
        None => test(cuda),
    });
}

#[test]
fn the_tracer_agrees_with_events() {
    with_tracer(|cuda| {
        for cache in [Cache::Cold, Cache::Hot] {
            for expected in [5, 50, 500] {
                cuda.start_trace().unwrap();
                let taken = samples(cuda, cache, |stream| spin(expected, stream));
                let traces = cuda.stop_trace().unwrap();
                assert_eq!(traces.len(), taken.len());
                let seen = traces.iter().map(|trace| trace.activity_us().unwrap());
                let activity = median(seen.collect());
                let event = median(taken.iter().map(|sample| sample.elapsed_us).collect());
                println!("{cache:?} {expected} us: events {event:.2}, tracer {activity:.2} us");
                for trace in &traces {
                    assert_eq!(trace.activities.len(), 1, "{trace:?}");
                    assert!(trace.activities[0].name.contains("spin_kernel"));
                    // The untimed run that warms the cache.
                    assert_eq!(trace.outside.len(), usize::from(cache == Cache::Hot));
                    assert!(trace
                        .outside
                        .iter()
                        .all(|(place, _)| *place == Place::OtherTime));
                }
                assert!((event - activity).abs() <= f64::max(1.0, 0.02 * activity));
            }
        }
    });
}

#[test]
fn the_tracer_sees_every_stream_copy_and_graph() {
    with_tracer(|cuda| {
        let bytes = 1 << 20;
        let memory = cuda.allocate(2 * bytes).unwrap();
        let (to, from) = (memory.address() as u64, (memory.address() + bytes) as u64);
        // SAFETY: the allocation outlives the samples, which wait for the stream.
        let copy = |stream: Stream| {
            unsafe { result::memcpy_dtod_async(to, from, bytes, stream.0 as sys::CUstream) }
                .map_err(ContenderError::new)
        };
        let graph = cuda.capture(&mut |stream| spin(10, stream)).unwrap();
        let trace = |enqueue: &mut dyn FnMut(Stream) -> Result<(), ContenderError>| {
            enqueue(cuda.stream()).unwrap();
            cuda.synchronize().unwrap();
            cuda.start_trace().unwrap();
            cuda.sample(SampleMode::default(), enqueue).unwrap();
            cuda.synchronize().unwrap();
            cuda.stop_trace().unwrap().remove(0)
        };
        let counts = |trace: &Trace| (trace.activities.len(), trace.outside.len());
        let both = trace(&mut |stream| copy(stream).and_then(|()| spin(10, stream)));
        assert_eq!(counts(&both), (2, 0), "{both:?}");
        let replayed = trace(&mut |stream| graph.launch(stream));
        assert_eq!(counts(&replayed), (1, 0), "{replayed:?}");
        assert!(replayed.activities[0].in_graph);
        // The legacy default stream does not wait for the harness's.
        let aside = trace(&mut |stream| spin(10, Stream(0)).and_then(|()| spin(10, stream)));
        assert_eq!(counts(&aside), (1, 1), "{aside:?}");
        assert_eq!(aside.outside[0].0, Place::OtherStream);
    });
}

#[test]
fn host_time_of_the_call_is_measured_and_not_part_of_the_sample() {
    with_gpu(|cuda, _| {
        let taken = samples(cuda, Cache::AsIs, |stream| {
            std::thread::sleep(Duration::from_millis(3));
            spin(10, stream)
        });
        let elapsed = median(taken.iter().map(|sample| sample.elapsed_us).collect());
        let host = median(
            taken
                .iter()
                .map(|sample| sample.enqueue_us.unwrap())
                .collect(),
        );
        assert!(host > 3000.0 && elapsed < 100.0, "{host} us, {elapsed} us");
    });
}

#[test]
fn readings_and_profiling_work() {
    with_gpu(|cuda, _| {
        let state = cuda.state();
        println!("{}", serde_json::to_string_pretty(&state).unwrap());
        println!("{}", serde_json::to_string_pretty(cuda.info()).unwrap());
        assert!(state.cuda.is_some());
        if state.driver.is_some() {
            assert!(state.clock_mhz.is_some_and(|clock| clock > 0.0));
            assert!(state.power_w.is_some_and(|power| power > 0.0));
        }
        cuda.profile("test", Cache::Cold, &mut |stream| spin(10, stream))
            .unwrap();
    });
}
