// Package conformance has what suites share that check the duties of a driver: driver/drivertest and
// machinepool/pooldriver/pooldrivertest. A suite is a list of [Check]; [Run] runs them as subtests. A
// [Trial] is one run of one check. It watches each [Call] of the driver.
//
// [Outcomes] and [Judge] test the suite itself, with broken drivers.
package conformance
