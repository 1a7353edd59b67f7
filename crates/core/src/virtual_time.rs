use crate::*;
pub(crate) fn run<M: Message>(_: &Config, _: impl Scenario<M>) -> Result<Report, RunError> {
    unimplemented!()
}
