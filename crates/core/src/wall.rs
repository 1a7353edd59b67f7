use crate::*;
pub(crate) mod tokio {
    use super::*;
    pub(crate) fn run<M: Message>(_: &Config, _: impl Scenario<M>) -> Result<Report, RunError> {
        unimplemented!()
    }
}
pub(crate) mod threads {
    use super::*;
    pub(crate) fn run<M: Message>(_: &Config, _: impl Scenario<M>) -> Result<Report, RunError> {
        unimplemented!()
    }
}
pub(crate) mod pool {
    use super::*;
    pub(crate) fn run<M: Message>(_: &Config, _: impl Scenario<M>) -> Result<Report, RunError> {
        unimplemented!()
    }
}
