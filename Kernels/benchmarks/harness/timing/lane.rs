//! A contender in a race: bound to every buffer set.

use std::rc::Rc;

use contender::{Bound, Buffer, Contender, ContenderError, Facts, Problem, Stream, PLAN_US};
use device::{Device, Graph};
use gate::Failure;

use crate::{Course, Launch};

pub struct Lane<'a> {
    pub name: String,
    device: &'a dyn Device,
    /// One per buffer set. A graph is dropped before the work it was captured from.
    graphs: Vec<Box<dyn Graph>>,
    bounds: Vec<Box<dyn Bound>>,
    /// Its own buffers, if they are nobody else's.
    own: Option<Rc<Course<'a>>>,
}

impl<'a> Lane<'a> {
    /// Binds a contender to the sets of a course, and captures its graphs if requested.
    pub fn new<P: Problem + ?Sized>(
        contender: &dyn Contender<P>,
        problem: &P,
        course: &Course<'a>,
        launch: Launch,
    ) -> Result<Self, Failure> {
        let device = course.device();
        let mut bounds = Vec::new();
        for set in course.sets() {
            bounds.push(contender.bind(problem, set.buffers(), device.info())?);
        }
        let mut graphs = Vec::new();
        if launch == Launch::Graph {
            for bound in &mut bounds {
                graphs.push(captured(device, &mut **bound)?);
            }
        }
        Ok(Self {
            name: contender.identity().name.clone(),
            device,
            own: None,
            graphs,
            bounds,
        })
    }

    /// The same on buffers that are nobody else's.
    pub fn on_own_course<P: Problem + ?Sized>(
        contender: &dyn Contender<P>,
        problem: &P,
        own: Course<'a>,
        launch: Launch,
    ) -> Result<Self, Failure> {
        let lane = Self::new(contender, problem, &own, launch)?;
        Ok(Self {
            own: Some(Rc::new(own)),
            ..lane
        })
    }

    /// Its own buffers, if they are nobody else's.
    pub fn own_course(&self) -> Option<Rc<Course<'a>>> {
        self.own.clone()
    }

    /// How long the last execution on a set took, if the contender has a better clock for that than the device.
    pub(crate) fn elapsed_us(&self, set: usize) -> Option<f64> {
        let elapsed = self.bounds[set].elapsed()?;
        Some(elapsed.as_secs_f64() * 1e6)
    }

    /// Has inputs of a set arrive only when it is next run, if it could begin before.
    pub(crate) fn deliver(&mut self, set: usize, inputs: &[(Buffer, Vec<u8>)]) -> bool {
        self.bounds[set].deliver(inputs)
    }

    /// Does the work once on one set.
    pub fn enqueue(&mut self, set: usize, stream: Stream) -> Result<(), ContenderError> {
        match self.graphs.get(set) {
            Some(graph) => graph.launch(stream),
            None => self.bounds[set].enqueue(stream),
        }
    }

    /// What the contender chose for its first set. Its plan took what one for a set takes in the median: a server has
    /// planned before.
    pub fn facts(&self) -> Facts {
        let mut each = self.bounds.iter().map(|bound| bound.facts());
        let mut facts = each.next().unwrap_or_default();
        let took = |facts: &Facts| facts.get(PLAN_US).and_then(serde_json::Value::as_f64);
        if let Some(first) = took(&facts) {
            let others = each.filter_map(|facts| took(&facts));
            let mut plans: Vec<f64> = others.chain([first]).collect();
            plans.sort_by(f64::total_cmp);
            facts.insert(PLAN_US.to_owned(), plans[(plans.len() - 1) / 2].into());
        }
        facts
    }

    /// The work of the first set, for the gate.
    pub fn first(&mut self) -> FirstSet<'_, 'a> {
        FirstSet(self)
    }
}

/// A lane on its first set: the gate checks exactly what will be timed.
pub struct FirstSet<'l, 'a>(&'l mut Lane<'a>);

impl Bound for FirstSet<'_, '_> {
    fn enqueue(&mut self, stream: Stream) -> Result<(), ContenderError> {
        self.0.enqueue(0, stream)
    }

    fn reread(&mut self) -> Result<(), ContenderError> {
        let bound = &mut self.0.bounds[0];
        bound.reread()?;
        if let Some(graph) = self.0.graphs.first_mut() {
            *graph = captured(self.0.device, &mut **bound).map_err(ContenderError::new)?;
        }
        Ok(())
    }
}

/// The work as a graph.
fn captured(device: &dyn Device, bound: &mut dyn Bound) -> Result<Box<dyn Graph>, Failure> {
    // Lazy module loading is not allowed during stream capture.
    bound.enqueue(device.stream())?;
    device.synchronize()?;
    let graph = device.capture(&mut |stream| bound.enqueue(stream))?;
    if graph.nodes() == 0 {
        return Err(ContenderError::new("graph capture recorded no work").into());
    }
    Ok(graph)
}
