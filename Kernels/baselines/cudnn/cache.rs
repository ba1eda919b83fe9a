//! Cached plans: the last one, which is used several times in a row, and those serialised by another
//! process. cuDNN compiles kernels for most plans, which takes up to two seconds; a serialised plan
//! contains them and is ready in milliseconds.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::{Error, Graph, Plan};

/// A plan, or why there is none.
type Made = Result<Rc<Plan>, Error>;

/// A key and its plan.
pub struct Plans<K> {
    last: RefCell<Option<(K, Made)>>,
    written: RefCell<Vec<(K, String)>>,
}

impl<K> Default for Plans<K> {
    fn default() -> Self {
        Self {
            last: RefCell::new(None),
            written: RefCell::new(Vec::new()),
        }
    }
}

impl<K: Clone + PartialEq> Plans<K> {
    /// The plan of `key`, built again if the last one was for another.
    pub fn of(&self, key: &K, graph: impl Fn(&K) -> Result<Graph, Error>) -> Made {
        if let Some((last, plan)) = &*self.last.borrow() {
            if last == key {
                return plan.clone();
            }
        }
        // Drop the old plan first: both might not fit in memory.
        self.last.replace(None);
        let written = self.read(key, &graph);
        let plan = written.unwrap_or_else(|| graph(key)?.plan()).map(Rc::new);
        self.last.replace(Some((key.clone(), plan.clone())));
        plan
    }

    /// Makes and serialises a plan, with the time it took; none if there is no plan or it cannot be
    /// serialised.
    pub fn write(&self, graph: Result<Graph, Error>) -> Option<String> {
        let plan = graph.and_then(Graph::plan).ok()?;
        let text = String::from_utf8(plan.text().ok()?).ok()?;
        Some(format!("{} {text}", plan.build_time().as_micros()))
    }

    /// Stores what `write` returned in another process.
    pub fn take(&self, key: K, written: &str) {
        self.written.borrow_mut().push((key, written.to_owned()));
    }

    /// None if nothing was serialised or cuDNN rejects it: the plan is then made here.
    fn read(
        &self,
        key: &K,
        graph: impl Fn(&K) -> Result<Graph, Error>,
    ) -> Option<Result<Plan, Error>> {
        let written = self.written.borrow();
        let (_, written) = written.iter().find(|(known, _)| known == key)?;
        let (micros, text) = written.split_once(' ')?;
        let time = Duration::from_micros(micros.parse().ok()?);
        let plan = graph(key).and_then(|graph| graph.plan_of(text.as_bytes(), time));
        plan.ok().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(key: &u32) -> Result<Graph, Error> {
        Err(Error::TooLarge {
            value: i64::from(*key),
        })
    }

    fn value(made: Made) -> i64 {
        match made.err() {
            Some(Error::TooLarge { value }) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failure_is_remembered_until_another_key_comes() {
        let plans = Plans::<u32>::default();
        let unasked = |_: &u32| panic!("the last plan serves");
        assert_eq!(value(plans.of(&1, fail)), 1);
        assert_eq!(value(plans.of(&1, unasked)), 1);
        assert_eq!(value(plans.of(&2, fail)), 2);
        assert_eq!(value(plans.of(&1, fail)), 1);
    }

    #[test]
    fn what_cannot_be_read_is_made() {
        let plans = Plans::<u32>::default();
        plans.take(1, "12 {}");
        plans.take(2, "no number");
        assert_eq!(value(plans.of(&1, fail)), 1);
        assert_eq!(value(plans.of(&2, fail)), 2);
        assert_eq!(plans.write(fail(&3)), None);
    }
}
