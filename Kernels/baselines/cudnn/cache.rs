//! The last plan that was made: a contender is asked for the same one several times in a row.

use std::cell::RefCell;
use std::rc::Rc;

use crate::{Error, Plan};

/// A plan, or why there is none.
type Made = Result<Rc<Plan>, Error>;

/// What `K` describes, and its plan.
pub struct LastPlan<K> {
    last: RefCell<Option<(K, Made)>>,
}

impl<K> Default for LastPlan<K> {
    fn default() -> Self {
        Self {
            last: RefCell::new(None),
        }
    }
}

impl<K: Clone + PartialEq> LastPlan<K> {
    /// The plan of `key`, made anew if the last was of another.
    pub fn of(&self, key: &K, make: impl FnOnce(&K) -> Result<Plan, Error>) -> Made {
        if let Some((last, plan)) = &*self.last.borrow() {
            if last == key {
                return plan.clone();
            }
        }
        // The old plan goes first: both might not fit in memory.
        self.last.replace(None);
        let plan = make(key).map(Rc::new);
        self.last.replace(Some((key.clone(), plan.clone())));
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_remembered_until_another_key_comes() {
        let cache = LastPlan::<u32>::default();
        let fail = |key: &u32| {
            Err(Error::TooLarge {
                value: i64::from(*key),
            })
        };
        let value = |made: Made| made.err();
        assert_eq!(
            value(cache.of(&1, fail)),
            Some(Error::TooLarge { value: 1 })
        );
        let unasked = |_: &u32| panic!("the last plan serves");
        assert_eq!(
            value(cache.of(&1, unasked)),
            Some(Error::TooLarge { value: 1 })
        );
        assert_eq!(
            value(cache.of(&2, fail)),
            Some(Error::TooLarge { value: 2 })
        );
    }
}
