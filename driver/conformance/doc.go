// Package conformance has the parts of suites that check the duties of a driver. driver/drivertest
// is one, machinepool/pooldriver/pooldrivertest another. A suite is a list of [Check]; [Run] runs
// them as subtests. A [Trial] is one check's time with a driver, and watches each [Call].
//
// [Outcomes] and [Judge] test the suite itself, with broken drivers.
package conformance
