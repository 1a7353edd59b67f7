//! Features of kapacitor that are missing here, with alternatives.

/// The message for each missing feature: nodes first, then properties.
pub(crate) const NOT_HERE: &[(&str, &str)] = &[
    ("autoscale", SCALE),
    (
        "batch",
        "there is no database to query; send the points to /write and begin with `stream`",
    ),
    (
        "dbrp",
        "a task takes the points that its `from` names: `stream | from().database('DB').retentionPolicy('RP')`",
    ),
    ("ec2Autoscale", SCALE),
    ("k8sAutoscale", SCALE),
    #[cfg(not(feature = "kafka"))]
    (
        "kafka_out",
        "this program was built without Kafka; build it with `--features corsair-stream/kafka`",
    ),
    (
        "kapacitorLoopback",
        "a task cannot write points of its own; let the receiver of an `http_post` send them to /write",
    ),
    (
        "mode",
        "the most frequent value is not computed; `groupBy` it as a tag and `count`",
    ),
    ("noOp", "it does nothing; leave it out"),
    (
        "scraper",
        "nothing is fetched from here; let an agent such as telegraf write the points",
    ),
    (
        "sideload",
        "no files are read; `default` gives fields and tags to points without them",
    ),
    ("swarmAutoscale", SCALE),
    (
        "trickle",
        "windows do not become single points again; aggregate them, or leave out the `window`",
    ),
    ("category", INHIBIT),
    ("inhibit", INHIBIT),
    (
        "flapping",
        "levels that change often are all reported; `.stateChangesOnly(10m)` repeats an unchanged level every 10 minutes",
    ),
    (
        "history",
        "no levels of the past are kept, which `flapping` alone would need; leave it out",
    ),
    (
        "exec",
        "no programs are started; let the receiver of `.post('URL')` start them",
    ),
    ("email", HANDLER),
    ("hipChat", HANDLER),
    ("pagerDuty", HANDLER),
    ("opsGenie", HANDLER),
    ("opsGenie2", HANDLER),
    ("alerta", HANDLER),
    ("sensu", HANDLER),
    ("pushover", HANDLER),
    ("mqtt", HANDLER),
    ("kafka", HANDLER),
    ("snmpTrap", HANDLER),
    ("talk", HANDLER),
    ("bigPanda", HANDLER),
    ("serviceNow", HANDLER),
    ("zenoss", HANDLER),
    ("tcp", HANDLER),
    (
        "captureResponse",
        "answers are not logged; those that refuse are counted as `failed`",
    ),
    (
        "skipSSLVerification",
        "certificates are always checked; post to a plain http URL, or to a proxy",
    ),
    (
        "deleteAll",
        "groups without points are forgotten after `serve --series-idle`",
    ),
    (
        "timeout",
        "one time counts for all posts: `serve --post-timeout 10`",
    ),
    (
        "codeField",
        "the status of a response is not stored in a field; refused requests are counted as `failed`",
    ),
    (
        "level",
        "lines are logged without a level; `.prefix('WARN')` stands before each",
    ),
];

/// The messages for missing functions of expressions.
pub(crate) const FUNCTIONS_NOT_HERE: &[(&str, &str)] = &[
    (
        "rand",
        "the same points have the same results; write a random field with the points",
    ),
    (
        "humanBytes",
        "numbers are written as they are; divide by the unit, and name it in the text",
    ),
    (
        "duration",
        "durations are written out, `10s`, and are integers of nanoseconds",
    ),
    ("pow10", "use `pow(10, …)`"),
    ("erf", SPECIAL),
    ("erfc", SPECIAL),
    ("gamma", SPECIAL),
    ("j0", SPECIAL),
    ("j1", SPECIAL),
    ("jn", SPECIAL),
    ("y0", SPECIAL),
    ("y1", SPECIAL),
    ("yn", SPECIAL),
];

const SPECIAL: &str = "special functions are missing; compute them where the points are written";
const SCALE: &str = "nothing is scaled from here; let the receiver of an `http_post` do it";
const HANDLER: &str =
    "alerts go to `.log('PATH')` and `.post('URL')`; let the receiver of the post pass them on";
const INHIBIT: &str =
    "alerts do not silence each other; put what must hold into the condition of the level";
